"""Snapshots: what consecutive loads report, and when the revision grows."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from nexus_context.config.frames import ConfigError
from nexus_context.folder.init import plan_global_init, plan_init
from nexus_context.folder.snapshot import Snapshot
from nexus_context.loader import ContextLoader, FilePromptSource, PromptLoader
from support.fixture import Fixture, write_file, write_fixture
from support.folders import HOST, load_folder, relative

TREE = """
//- /home/.nexus3/NEXUS.md
Global
//- /home/a/.nexus3/config.json
{"tools": {"summary": true}}
//- /home/a/NEXUS.md
Local @x.md
"""
# milliseconds; the goal is 1.5, the rest is for machines under load
WARM_LIMIT_MS = 15


@pytest.mark.parametrize(
    ("overlays", "expected"),
    [
        ({}, (1, ["prompt.import-missing"])),
        ({"/home/a/NEXUS.md": "Local @x.md\n"}, (1, ["prompt.import-missing"])),
        ({"/home/a/NEXUS.md": "Local"}, (2, [])),
        ({"/home/a/x.md": "imported"}, (2, [])),
        ({"/home/a/other.md": "nobody reads this"}, (1, ["prompt.import-missing"])),
        ({"/home/a/.nexus3/config.json": '{"tools": {}}'}, (2, ["prompt.import-missing"])),
        ({"/home/a/.nexus3/mcp.json": '{"servers": []}'}, (2, ["prompt.import-missing"])),
    ],
)
def test_the_revision_grows_with_what_can_be_seen(
    tmp_path: Path, overlays: dict[str, str], expected: tuple[int, list[str]]
) -> None:
    """Revision and problem codes of a load with unsaved texts, after one without."""
    fixture = write_fixture(TREE, tmp_path)
    snapshot = load_folder(fixture, "/home/a", overlays=overlays, previous=load_folder(fixture, "/home/a"))
    assert (snapshot.revision, [problem.code for problem in snapshot.problems]) == expected


def test_files_on_the_disk_are_seen(tmp_path: Path) -> None:
    fixture = write_fixture(TREE, tmp_path)
    first = load_folder(fixture, "/home/a")
    (tmp_path / "home/a/x.md").write_text("imported now")
    second = load_folder(fixture, "/home/a", previous=first)
    assert (second.revision, second.problems) == (2, ())
    assert "imported now" in second.prompt.text
    assert fixture.path("/home/a/x.md") in second.layers.watch
    (tmp_path / "home/a/NEXUS.md").unlink()
    third = load_folder(fixture, "/home/a", previous=second)
    assert "## Project Configuration" not in third.prompt.text
    assert fixture.path("/home/a/NEXUS.md") not in third.layers.texts


def test_a_prompt_is_made_again_only_if_something_in_it_is_new(tmp_path: Path) -> None:
    fixture = write_fixture(TREE, tmp_path)
    first = load_folder(fixture, "/home/a")
    again = load_folder(fixture, "/home/a", previous=first)
    assert again.prompt is first.prompt
    # the same settings at another place: what the prompt says of them comes from there
    moved = {"/home/a/.nexus3/config.json": '\n\n{"tools": {"summary": true}}'}
    assert load_folder(fixture, "/home/a", overlays=moved, previous=first).prompt is not first.prompt


AGENTS = """
//- /home/.nexus3/NEXUS.md
Global
//- /home/co/.nexus3/NEXUS.md
Company @rules.md
//- /home/co/.nexus3/rules.md
Rules
//- /home/co/.nexus3/mcp.json
{"servers": [{"name": "tickets", "url": "https://x.example/mcp"}]}
//- /home/co/.nexus3/skills/deploy/SKILL.md
---
name: deploy
description: Deploys.
---
Push it.
//- /home/co/.nexus3/AGENT.reviewer.md
Review.
//- /home/co/svc/.nexus3/config.json
{"permissions": {"level": "sandboxed"}, "unknown": 1}
//- /home/co/svc/AGENTS.md
Service @more.md
//- /home/co/svc/more.md
More
"""


@pytest.mark.parametrize("agent", [None, "reviewer", "writer", "no name"])
def test_what_another_folder_has_read_changes_nothing(tmp_path: Path, agent: str | None) -> None:
    """The service alone, after its company was read, and from its own snapshot for no agent."""
    fixture = write_fixture(AGENTS, tmp_path)
    company = load_folder(fixture, "/home/co").layers
    shared = msgspec.structs.replace(company, memory=company.memory.of_files())
    beside = msgspec.structs.replace(load_folder(fixture, "/home/co"), layers=shared)
    alone = load_folder(fixture, "/home/co/svc", agent=agent)
    after = load_folder(fixture, "/home/co/svc", agent=agent, previous=beside)
    base = load_folder(fixture, "/home/co/svc")
    resumed = load_folder(fixture, "/home/co/svc", agent=agent, previous=base, changed=frozenset())
    for one in (after, resumed):
        assert seen(one) == seen(alone)
        assert set(one.layers.watch) == set(alone.layers.watch)


def seen(snapshot: Snapshot) -> list[object]:
    layers = snapshot.layers
    return [
        snapshot.prompt,
        snapshot.problems,
        layers.layers,
        layers.skipped,
        layers.servers,
        layers.skills,
        layers.texts,
        layers.effective.values,
        {
            pointer: [(entry.layer, entry.path, entry.span, entry.value, entry.wins) for entry in chain]
            for pointer, chain in layers.effective.provenance.items()
        },
    ]


def test_a_definition_that_appears_is_seen(tmp_path: Path) -> None:
    fixture = write_fixture(AGENTS, tmp_path)
    base = load_folder(fixture, "/home/co/svc")
    (tmp_path / "home/co/svc/.nexus3/AGENT.writer.md").write_text("Write.")
    unsaved = {"/home/co/.nexus3/AGENT.tester.md": "Test."}
    for agent, said in (("writer", "Write."), ("reviewer", "Review."), ("tester", "Test.")):
        made = load_folder(
            fixture, "/home/co/svc", agent=agent, previous=base, changed=frozenset(), overlays=unsaved
        )
        assert said in made.prompt.text


def test_a_load_after_one_edit_is_fast(tmp_path: Path) -> None:
    rules = "".join(f"- Rule {n}: do it this way and no other.\n" for n in range(60))
    folders = ["/home", "/srv/a", "/srv/a/b", "/srv/a/b/c"]
    text = "".join(
        f"//- {folder}/.nexus3/NEXUS.md\n{rules}"
        f'//- {folder}/.nexus3/config.json\n{{"tools": {{"disabled": ["{number}"]}}}}\n'
        f'//- {folder}/.nexus3/mcp.json\n{{"servers": [{{"name": "{number}", "command": ["x"]}}]}}\n'
        for number, folder in enumerate(folders)
    )
    fixture = write_fixture(text, tmp_path)
    for path in fixture.files:
        os.utime(path, ns=(0, 0))
    snapshot = load_folder(fixture, "/srv/a/b/c")
    assert len(snapshot.layers.layers) == 4
    times = []
    for number in range(20):
        overlays = {"/srv/a/b/c/.nexus3/NEXUS.md": f"{rules}{number}"}
        start = time.thread_time()
        snapshot = load_folder(fixture, "/srv/a/b/c", overlays=overlays, previous=snapshot)
        times.append((time.thread_time() - start) * 1000)
    assert min(times) < WARM_LIMIT_MS


def test_the_context_loader_raises_frames(tmp_path: Path) -> None:
    fixture = write_fixture('//- /home/a/.nexus3/config.json\n{"tools": {"summary": 1}}\n', tmp_path)
    loader = ContextLoader(environ={"HOME": fixture.path("/home")}, environment=HOST)
    with pytest.raises(ConfigError, match="Configuration Error") as raised:
        loader.load(tmp_path / "home/a")
    assert [problem.code for problem in raised.value.problems] == ["config.type"]


def test_the_context_loader_returns_everything(tmp_path: Path) -> None:
    fixture = write_fixture(TREE, tmp_path)
    loaded = ContextLoader(environ={"HOME": fixture.path("/home")}, environment=HOST).load(
        tmp_path / "home/a"
    )
    assert loaded.system_prompt == load_folder(fixture, "/home/a").prompt.text
    assert loaded.config.tools.model_dump() == {"disabled": [], "summary": True, "defer": "auto"}
    assert loaded.sources.global_dir == tmp_path / "home/.nexus3"
    assert loaded.sources.local_dir == tmp_path / "home/a/.nexus3"
    assert loaded.sources.ancestor_dirs == ()
    assert loaded.sources.prompt_sources == (
        (tmp_path / "home/.nexus3/NEXUS.md", "global"),
        (tmp_path / "home/a/NEXUS.md", "local"),
    )


def test_the_prompt_loader_combines_two_layers(tmp_path: Path) -> None:
    fixture = write_fixture(TREE, tmp_path)
    environ = {"NEXUS_HOME": fixture.path("/home/.nexus3"), "HOME": fixture.path("/home"), "TERM": "xterm"}
    folder = tmp_path / "home/a"
    loaded = PromptLoader(environ=environ).load(cwd=folder)
    start = (
        "# Personal Configuration\n\nGlobal\n\n# Project Configuration\n\nLocal @x.md\n\n# Environment\n\n"
    )
    assert relative(fixture, loaded.content).startswith(
        f"{start}Working directory: /home/a\nOperating system: "
    )
    assert loaded.content.endswith("\nTerminal: xterm\nMode: Interactive REPL")
    assert loaded.personal_path == tmp_path / "home/.nexus3/NEXUS.md"
    assert loaded.project_path == folder / "NEXUS.md"
    sources = [FilePromptSource(tmp_path / "missing.md"), FilePromptSource(folder / "NEXUS.md")]
    own = PromptLoader(sources, environ=environ).load(is_repl=False, cwd=folder)
    assert own.content.startswith("# Personal Configuration\n\nLocal @x.md\n\n")
    assert own.content.endswith("\nMode: HTTP JSON-RPC Server")
    assert own.personal_path == folder / "NEXUS.md"


def test_init_creates_what_is_missing_and_its_files_are_valid(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/.nexus3/mcp.json\n{}\n", tmp_path)
    plan = plan_init(fixture.path("/home/a"))
    assert plan.existing == (fixture.path("/home/a/.nexus3/mcp.json"),)
    created = dict(plan.create)
    assert [relative(fixture, path) for path in created] == [
        "/home/a/.nexus3/NEXUS.md",
        "/home/a/.nexus3/config.json",
    ]
    everything = plan_global_init(fixture.path("/home/.nexus3"))
    assert len(everything.create) == 3
    for path, text in (*plan.create, *everything.create):
        write_file(Path(path), text)
    snapshot = load_folder(Fixture(fixture.root, {}), "/home/a")
    check_only_placeholders(snapshot)
    assert [layer.name for layer in snapshot.layers.layers] == ["global", "local"]


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"])
def test_init_keeps_the_instructions_that_are_there(tmp_path: Path, name: str) -> None:
    fixture = write_fixture(f"//- /home/a/{name}\nAlways whisper.\n", tmp_path)
    plan = plan_init(fixture.path("/home/a"))
    for path, text in plan.create:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    snapshot = load_folder(fixture, "/home/a")
    assert "Always whisper." in snapshot.prompt.text
    check_only_placeholders(snapshot)


def check_only_placeholders(snapshot: Snapshot) -> None:
    """The template's comments, which the user replaces, are the only remarks."""
    assert snapshot.problems == ()
