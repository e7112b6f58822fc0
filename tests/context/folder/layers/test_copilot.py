"""Copilot's instruction files as sources: which are read, when they apply, and their problems."""

from pathlib import Path
from textwrap import dedent

import pytest

from nexus_context.folder.layers.copilot import MOST_FILES, NO_FIELD
from nexus_context.folder.layers.layer_types import LOCAL
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

ALWAYS = ".github/copilot-instructions.md"
FOR_SOME = ".github/instructions/*.instructions.md"
BOTH = f'"NEXUS.md", "AGENTS.md", "{ALWAYS}", "{FOR_SOME}"'


def fixture_of(root: Path, text: str, listed: str = BOTH) -> Fixture:
    settings = f'{{"context": {{"instruction_files": [{listed}]}}}}'
    return write_fixture(f"//- /home/a/.nexus3/config.json\n{settings}\n{dedent(text).lstrip()}", root)


def check(
    root: Path,
    text: str,
    *files: tuple[str, str, str | None],
    listed: str = BOTH,
    folder: str = "/home/a",
) -> Snapshot:
    """The instruction files of the folder's own layer: path, status, and the globs of a conditional one."""
    fixture = fixture_of(root, text, listed)
    snapshot = load_folder(fixture, folder)
    (layer,) = (layer for layer in snapshot.layers.layers if layer.name == LOCAL)
    assert [
        (relative(fixture, file.path).removeprefix(f"{folder}/"), file.status, file.applies_to)
        for file in layer.files
        if file.kind == "instructions"
    ] == list(files)
    return snapshot


def some(name: str, applies_to: str, body: str = "Body.") -> str:
    return (
        f"//- /home/a/.github/instructions/{name}.instructions.md\n---\napplyTo: {applies_to}\n---\n{body}\n"
    )


def test_they_stand_beside_the_instruction_file(tmp_path: Path) -> None:
    snapshot = check(
        tmp_path,
        f"//- /home/a/AGENTS.md\nAgents.\n//- /home/a/{ALWAYS}\nCopilot.\n" + some("py", "'**'", "Python."),
        ("AGENTS.md", "loaded", None),
        (ALWAYS, "loaded", None),
        (".github/instructions/py.instructions.md", "loaded", None),
    )
    text = snapshot.prompt.text
    assert text.index("Agents.") < text.index("Copilot.") < text.index("Python.")
    assert "applyTo" not in text
    assert snapshot.problems == ()
    assert snapshot.layers.unread == ()


def test_they_need_no_instruction_file_and_no_readme_replaces_them(tmp_path: Path) -> None:
    snapshot = check(
        tmp_path,
        f"//- /home/a/{ALWAYS}\nCopilot.\n//- /home/a/README.md\nReadme.\n",
        (".nexus3/NEXUS.md", "missing", None),
        (ALWAYS, "loaded", None),
    )
    assert "Readme." not in snapshot.prompt.text


@pytest.mark.parametrize("value", ["**", "'**'", '"**/*"', "'*'", "'src/*.py, **'", "**/*"])
def test_for_all_files(tmp_path: Path, value: str) -> None:
    path = ".github/instructions/x.instructions.md"
    snapshot = check(
        tmp_path, some("x", value), (".nexus3/NEXUS.md", "missing", None), (path, "loaded", None)
    )
    assert "Body." in snapshot.prompt.text


@pytest.mark.parametrize(
    ("value", "applies_to"),
    [("'**/*.py'", "**/*.py"), ("**/*.{ts,tsx}, *.js", "**/*.{ts,tsx}, *.js"), ("src/**", "src/**")],
)
def test_for_some_files(tmp_path: Path, value: str, applies_to: str) -> None:
    path = ".github/instructions/x.instructions.md"
    snapshot = check(
        tmp_path, some("x", value), (".nexus3/NEXUS.md", "missing", None), (path, "conditional", applies_to)
    )
    assert "Body." not in snapshot.prompt.text
    (conditional,) = snapshot.contents.conditional
    assert "".join(piece.text for piece in conditional.block.pieces) == "Body."


@pytest.mark.parametrize("text", ["Body.\n", "---\ndescription: x\n---\nBody.\n", "---\napplyTo: ''\n---\n"])
def test_for_nobody_who_does_not_attach_it(tmp_path: Path, text: str) -> None:
    path = "/home/a/.github/instructions/x.instructions.md"
    snapshot = check(tmp_path, f"//- {path}\n{text}", (".nexus3/NEXUS.md", "missing", None))
    assert [skipped.reason for skipped in snapshot.layers.not_read][1:] == [NO_FIELD]
    assert "Body." not in snapshot.prompt.text


def test_one_file_and_files_of_directories_below(tmp_path: Path) -> None:
    text = some("a", "'**'") + some("deep/er/b", "'**'") + some("c", "'**'")
    a, b, c = (f".github/instructions/{name}.instructions.md" for name in ("a", "deep/er/b", "c"))
    missing = (".nexus3/NEXUS.md", "missing", None)
    check(tmp_path / "1", text, missing, (a, "loaded", None), (c, "loaded", None), (b, "loaded", None))
    check(tmp_path / "2", text, missing, (c, "loaded", None), listed=f'"NEXUS.md", "{c}"')


def test_those_of_ancestors_are_theirs(tmp_path: Path) -> None:
    fixture = fixture_of(
        tmp_path, f"//- /home/a/b/x.md\nx\n//- /home/a/{ALWAYS}\nCopilot.\n//- /home/a/.git/HEAD\nx\n"
    )
    Path(fixture.path("/home/a/b/.nexus3")).mkdir()
    Path(fixture.path("/home/a/b/.nexus3/config.json")).write_text(
        f'{{"context": {{"instruction_files": ["{ALWAYS}"]}}}}'
    )
    snapshot = load_folder(fixture, "/home/a/b")
    assert [
        (layer.name, relative(fixture, file.path))
        for layer in snapshot.layers.layers
        for file in layer.files
        if file.path.endswith(ALWAYS)
    ] == [("ancestor:a", f"/home/a/{ALWAYS}")]


def test_what_they_import_is_in_the_prompt_once(tmp_path: Path) -> None:
    text = (
        f"//- /home/a/{ALWAYS}\n@../docs/style.md\n//- /home/a/docs/style.md\nStyle.\n"
        "//- /home/a/docs/more.md\nMore.\n"
        + some("x", "'*.py'", "@../../docs/style.md\n@../../docs/more.md")
        + some("y", "'*.py'", "@../../docs/more.md")
    )
    fixture = fixture_of(tmp_path, text)
    snapshot = load_folder(fixture, "/home/a")
    assert snapshot.prompt.text.count("Style.") == 1
    texts = ["".join(piece.text for piece in each.block.pieces) for each in snapshot.contents.conditional]
    assert [each.split() for each in texts] == [["@../../docs/style.md", "More."], ["More."]]


@pytest.mark.parametrize(
    ("text", "message", "fixed"),
    [
        (
            "---\napplyTo: '**'\nBody.\n",
            "The front matter does not end: write a line `---` after its last field.",
            "---\napplyTo: '**'\n---\nBody.\n",
        ),
        (
            "---\napplyTo: ['*.ts', **/*.py]\n---\nBody.\n",
            "The front matter cannot be read: did not find expected alphabetic or numeric character.",
            "---\napplyTo: '*.ts, **/*.py'\n---\nBody.\n",
        ),
        (
            "---\napplyTo: ['*.ts', '*.py']\n---\nBody.\n",
            "`applyTo` must be one text with commas, as in `applyTo: '**/*.ts, **/*.tsx'`.",
            '---\napplyTo: "*.ts, *.py"\n---\nBody.\n',
        ),
        (
            f"---\napplyTo: '{'{a,b}' * 9}'\n---\nBody.\n",
            (
                "`applyTo` has more than 256 patterns or 16,384 characters with its braces expanded. "
                "Write fewer."
            ),
            None,
        ),
        (
            "---\napply-to: '**'\n---\nBody.\n",
            "`apply-to` is not read. Write `applyTo`.",
            "---\napplyTo: '**'\n---\nBody.\n",
        ),
    ],
)
def test_a_broken_front_matter_is_said_with_its_fix(
    tmp_path: Path, text: str, message: str, fixed: str | None
) -> None:
    path = "/home/a/.github/instructions/x.instructions.md"
    fixture = fixture_of(tmp_path, f"//- {path}\n{text}")
    snapshot = load_folder(fixture, "/home/a")
    (problem,) = snapshot.problems
    assert (problem.path, problem.code, problem.message) == (
        fixture.path(path),
        "layer.front-matter",
        message,
    )
    assert "Body." not in snapshot.prompt.text
    if fixed is None:
        assert problem.fix is None
    else:
        assert problem.fix is not None
        (edit,) = problem.fix.edits
        assert text[: edit.span.start] + edit.text + text[edit.span.end :] == fixed


@pytest.mark.parametrize("link", [ALWAYS, ".github/instructions/x.instructions.md"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, link: str) -> None:
    fixture = fixture_of(tmp_path, "//- /home/secret.md\n---\napplyTo: '**'\n---\nSecret.\n")
    at = Path(fixture.path(f"/home/a/{link}"))
    at.parent.mkdir(parents=True)
    at.symlink_to(fixture.path("/home/secret.md"))
    snapshot = load_folder(fixture, "/home/a")
    assert "Secret." not in snapshot.prompt.text
    assert [problem.code for problem in snapshot.problems] == ["layer.refused"]


def test_too_many_and_too_large_ones(tmp_path: Path) -> None:
    fixture = fixture_of(tmp_path, f"//- /home/a/{ALWAYS}\nx\n")
    directory = Path(fixture.path("/home/a/.github/instructions"))
    directory.mkdir()
    for number in range(MOST_FILES + 5):
        (directory / f"{number:04}.instructions.md").write_text("---\napplyTo: '**'\n---\nx\n")
    Path(fixture.path(f"/home/a/{ALWAYS}")).write_text("x" * 2**20 + "y")
    snapshot = load_folder(fixture, "/home/a")
    statuses = [
        file.status for layer in snapshot.layers.layers for file in layer.files if ".github" in file.path
    ]
    assert statuses == ["too-large", *["loaded"] * MOST_FILES]


def test_unsaved_text_counts_and_a_keystroke_reads_only_its_file(tmp_path: Path) -> None:
    path = "/home/a/.github/instructions/x.instructions.md"
    fixture = fixture_of(tmp_path, some("x", "'**'"))
    first = load_folder(fixture, "/home/a")
    unsaved = {path: "---\napplyTo: '*.py'\n---\nUnsaved.\n"}
    second = load_folder(fixture, "/home/a", previous=first, overlays=unsaved)
    assert [each.applies_to for each in second.contents.conditional] == ["*.py"]
    assert second.revision == first.revision + 1
    new = {"/home/a/.github/instructions/new.instructions.md": "---\napplyTo: '**'\n---\nNew.\n"}
    third = load_folder(fixture, "/home/a", previous=second, overlays=new)
    assert "New." in third.prompt.text
    assert "Body." in third.prompt.text
