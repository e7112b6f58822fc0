"""Files behind symbolic links: the target counts as the file itself; refused files are not shown."""

import os
from pathlib import Path

import pytest

from support.fixture import Fixture, write_fixture
from support.folders import load_folder

TREE = """
//- /home/co/CLAUDE.md
<on the disk>
//- /home/co/docs/context.md
<facts>
//- /home/dotfiles/SOUL.md
<persona>
//- /home/secret.md
<secret>
"""
LINKS = {
    "/home/co/AGENTS.md": "CLAUDE.md",
    "/home/co/.nexus3/CONTEXT.md": "../docs/context.md",
    "/home/.nexus3/SOUL.md": "../dotfiles/SOUL.md",
}


@pytest.fixture
def tree(tmp_path: Path) -> Fixture:
    made = write_fixture(TREE, tmp_path)
    for path, target in LINKS.items():
        Path(made.path(path)).parent.mkdir(exist_ok=True)
        os.symlink(target, made.path(path))
    return made


TARGETS = ["/home/co/CLAUDE.md", "/home/co/docs/context.md", "/home/dotfiles/SOUL.md"]


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_link_leads_to_is_watched_and_read_again(tree: Fixture, target: str) -> None:
    before = load_folder(tree, "/home/co")
    assert tree.path(target) in before.layers.watch
    Path(tree.path(target)).write_text("<other>")
    changed = frozenset({tree.path(target)})
    assert "<other>" in load_folder(tree, "/home/co", previous=before, changed=changed).prompt.text
    assert "<other>" in load_folder(tree, "/home/co", previous=before).prompt.text
    assert "<other>" not in load_folder(tree, "/home/co", previous=before, changed=frozenset()).prompt.text


@pytest.mark.parametrize("target", TARGETS)
def test_unsaved_text_of_what_a_link_leads_to_counts(tree: Fixture, target: str) -> None:
    before = load_folder(tree, "/home/co")
    changed = frozenset({tree.path(target)})
    typed = load_folder(tree, "/home/co", previous=before, changed=changed, overlays={target: "<typed>"})
    assert "<typed>" in typed.prompt.text
    saved = load_folder(tree, "/home/co", previous=typed, changed=changed)
    assert saved.prompt == before.prompt


def test_unsaved_text_of_the_link_itself_comes_first(tree: Fixture) -> None:
    both = {"/home/co/AGENTS.md": "<as linked>", "/home/co/CLAUDE.md": "<as it is>"}
    seen = load_folder(tree, "/home/co", overlays=both)
    assert "<as linked>" in seen.prompt.text
    assert tree.path("/home/co/CLAUDE.md") not in seen.layers.links


@pytest.mark.parametrize("name", ["NEXUS.md", "config.json", "SOUL.md", "skills/one/SKILL.md"])
def test_the_text_of_a_refused_file_is_nowhere(tree: Fixture, name: str) -> None:
    path = Path(tree.path("/home/co/.nexus3")) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(tree.path("/home/secret.md"), path)
    for overlays in ({}, {"/home/secret.md": "<secret> too"}):
        seen = load_folder(tree, "/home/co", overlays=overlays)
        assert [problem.code for problem in seen.problems] == ["layer.refused"]
        assert not any("<secret>" in text for text in seen.layers.texts.values())
        assert "<secret>" not in seen.prompt.text


def replaced(tree: Fixture, path: str, target: str) -> None:
    os.unlink(tree.path(path))
    os.symlink(tree.path(target), tree.path(path))


def test_a_file_that_became_a_link_out_while_it_was_edited_is_refused(tree: Fixture) -> None:
    """Closing a document counts like typing: then the disk counts, whose text may differ."""
    path = "/home/co/.nexus3/NEXUS.md"
    Path(tree.path(path)).write_text("<own>")
    changed = frozenset({tree.path(path)})
    before = load_folder(tree, "/home/co")
    typed = load_folder(tree, "/home/co", previous=before, changed=changed, overlays={path: "<typed>"})
    replaced(tree, path, "/home/secret.md")
    closed = load_folder(tree, "/home/co", previous=typed, changed=changed)
    later = load_folder(tree, "/home/co", previous=closed)
    for seen in (closed, later):
        assert [problem.code for problem in seen.problems] == ["layer.refused"]
        assert "<secret>" not in seen.prompt.text


@pytest.mark.parametrize(
    ("target", "read"),
    [
        (".env", False),
        ("docs/.env", False),
        (".git/config.md", False),
        (".ai/rules.md", True),
        ("docs/x.md", True),
    ],
)
def test_a_link_to_a_hidden_file_is_refused(tmp_path: Path, target: str, read: bool) -> None:
    tree = write_fixture(f"//- /home/co/{target}\n<target>\n", tmp_path)
    os.symlink(target, tree.path("/home/co/AGENTS.md"))
    seen = load_folder(tree, "/home/co")
    assert ("<target>" in seen.prompt.text, not seen.problems) == (read, read)


def test_one_settings_file_of_two_layers(tmp_path: Path) -> None:
    """Text typed in it is checked for both, with the result of a full load."""
    tree = write_fixture("//- /home/co/.nexus3/config.json\n{\n//- /home/co/sub/.nexus3/x\n", tmp_path)
    os.symlink("../../.nexus3/config.json", tree.path("/home/co/sub/.nexus3/config.json"))
    path = "/home/co/.nexus3/config.json"
    typed, changed = {path: '{"tools": '}, frozenset({tree.path(path)})
    before = load_folder(tree, "/home/co/sub", root="/home/co")
    seen = load_folder(
        tree, "/home/co/sub", root="/home/co", previous=before, changed=changed, overlays=typed
    )
    anew = load_folder(tree, "/home/co/sub", root="/home/co", overlays=typed)
    assert (seen.problems, seen.layers.texts) == (anew.problems, anew.layers.texts)
    assert len({problem.path for problem in seen.problems}) == 2
