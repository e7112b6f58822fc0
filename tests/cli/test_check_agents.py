"""`nexus check` of what only agents read, and of files deep in the directories of configuration."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.agents import directory_snapshots
from nexus_context.folder.loading import load
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.cli import main
from nexus_daemon.cli.check_agents import MOST_AGENTS
from support.commands import run_nexus, use_home
from support.fixture import Fixture, write_fixture

SECRET = "sk-proj-" + "a1B2c3D4" * 5
FIXTURE = f"""
//- /home/c/.nexus3/AGENT.far.md
@./gone.md
//- /home/c/a/.nexus3/NEXUS.md
Rules. \u202e
//- /home/c/a/.nexus3/config.json
{{"agents": {{
  "api": {{"cwd": "api", "role": "manager"}},
  "test": {{"cwd": "test", "parent": "api"}},
  "lost": {{"cwd": "nowhere"}}
}}}}
//- /home/c/a/.nexus3/AGENT.writer.md
{SECRET}
//- /home/c/a/.nexus3/AGENT.lost.md
@./lost.md
//- /home/c/a/.nexus3/AGENT.-.md
@./nobody.md
//- /home/c/a/.nexus3/AGENT.main.md
@./nobody.md
//- /home/c/a/api/.nexus3/SOUL.md
@./soul.md
//- /home/c/a/api/.nexus3/mcp.json
{{]
//- /home/c/a/test/AGENTS.md
Tests. \u202e
"""
OWN = {
    ("/home/c/a/.nexus3/NEXUS.md", "prompt.hidden-text"),
    ("/home/c/a/.nexus3/config.json", "config.agent-cwd"),
}
FOUND = {
    "far": {("/home/c/.nexus3/AGENT.far.md", "prompt.import-missing")},
    "writer": {("/home/c/a/.nexus3/AGENT.writer.md", "prompt.secret")},
    "lost": {("/home/c/a/.nexus3/AGENT.lost.md", "prompt.import-missing")},
    "api": {
        ("/home/c/a/api/.nexus3/SOUL.md", "prompt.import-missing"),
        ("/home/c/a/api/.nexus3/mcp.json", "json.bracket"),
    },
    "test": {("/home/c/a/test/AGENTS.md", "prompt.hidden-text")},
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def check(
    tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str, at: str = "/home/c/a"
) -> tuple[int, set[tuple[str, str]], str]:
    """Exit code, files with the codes of what is wrong in them, and what was said on standard error."""
    command = ("check", tree.path(at), "--format", "json", *arguments)
    code, out, err = run_nexus(capsys, *command, root=tree.root)
    if code == 2:
        return code, set(), err
    problems = json.loads(out)["problems"]
    places = Counter((one["uri"], one["code"], str(one["range"])) for one in problems)
    assert all(count == 1 for count in places.values())
    found = {(one["uri"].removeprefix("file://"), one["code"]) for one in problems}
    return code, found, err


def test_what_each_agent_reads_is_checked(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, said = check(tree, capsys)
    assert (code, found) == (1, OWN.union(*FOUND.values()))
    assert said == snapshot(
        "nexus check: 'lost' is checked as if it worked in /home/c/a: The cwd of agent "
        "'lost', /home/c/a/nowhere, does not exist. Create it.\n"
    )


@pytest.mark.parametrize("agent", FOUND)
def test_one_agent(tree: Fixture, capsys: pytest.CaptureFixture[str], agent: str) -> None:
    _, found, _ = check(tree, capsys, "--agent", agent)
    assert found >= FOUND[agent]
    others = {one for name, theirs in FOUND.items() if name != agent for one in theirs}
    assert found.isdisjoint(others)


def test_the_folder_itself(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tree, capsys, "--agent", "main")[:2] == (1, OWN)


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("wirter", "no agent 'wirter'; did you mean 'writer'?"),
        ("zzz", "agents: main, api, test, lost, far, writer."),
    ],
)
def test_an_agent_that_nobody_knows(
    tree: Fixture, capsys: pytest.CaptureFixture[str], agent: str, said: str
) -> None:
    code, _, told = check(tree, capsys, "--agent", agent)
    assert (code, said in told) == (2, True)


@pytest.mark.parametrize(("file", "code"), [("writer", 0), ("far", 1), ("lost", 0), ("-", 2), ("main", 2)])
def test_the_file_of_an_agent(
    tree: Fixture, capsys: pytest.CaptureFixture[str], file: str, code: int
) -> None:
    place = "/home/c" if file == "far" else "/home/c/a"
    if file == "far":
        Path(tree.path("/home/c/.nexus3/AGENT.far.md")).write_bytes(b"Zo\xff\xff")
    assert check(tree, capsys, at=f"{place}/.nexus3/AGENT.{file}.md")[0] == code


def test_the_summary_says_for_whom(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        ([], "2 errors and 6 warnings in 11 files of 5 layers, for the folder and 5 agents."),
        (["--agent", "writer"], "for the agent writer."),
    ):
        main(["check", tree.path("/home/c/a"), *arguments])
        assert capsys.readouterr().out.endswith(said + "\n")
    Path(tree.path("/home/c/a/.nexus3/config.json")).write_text("{}")
    for path in Path(tree.root).rglob("AGENT.*.md"):
        path.unlink()
    main(["check", tree.path("/home/c/a")])
    assert capsys.readouterr().out.endswith("layers.\n")


def test_show_and_check_agree(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(tree.path("/home/c/a/.nexus3/config.json")).unlink()
    file = tree.path("/home/c/a/.nexus3/AGENT.writer.md")
    Path(file).write_bytes(b"Zo\xff\xff")
    main(["show", tree.path("/home/c/a"), "--agent", "writer"])
    assert capsys.readouterr().err.replace(tree.root, "") == snapshot(
        "nexus show: 1 error in this folder's files: run nexus check /home/c/a\n"
    )
    assert check(tree, capsys)[0] == check(tree, capsys, at="/home/c/a/.nexus3/AGENT.writer.md")[0] == 1


def test_an_agent_that_is_only_tried_is_checked_where_it_works(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(tree.path("/home/c/a/.nexus3/config.json")).unlink()
    Path(tree.path("/home/c/a/api/.nexus3/SOUL.md")).write_bytes(b"Zo\xff\xff")
    for arguments in (["--folder", tree.path("/home/c/a/api"), "--role", "manager"], ["--role", "manager"]):
        main(["show", tree.path("/home/c/a"), *arguments])
        said = capsys.readouterr().err.partition(": run nexus check ")[2].strip()
        assert bool(said) == ("--folder" in arguments)
        assert not said or main(["check", said]) == 1


VARIANTS = """
//- /home/a/.nexus3/AGENT.writer.md
You write.
//- /home/a/.nexus3/SOUL.writer.md
Kind.
//- /home/a/.nexus3/CONTEXT.old.md
Old.
//- /home/a/.nexus3/NOTES.writer.md
Notes.
//- /home/a/.nexus3/SOUL.writer.txt
Text.
//- /home/a/.nexus3/IDENTITY..md
No name.
"""


def test_only_the_definition_has_variants(
    tmp_path: Path, tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = write_fixture(VARIANTS, tmp_path)
    soul, old = (
        ("/home/a/.nexus3/SOUL.writer.md", "layer.no-variant"),
        ("/home/a/.nexus3/CONTEXT.old.md", "layer.no-variant"),
    )
    assert check(tree, capsys, at="/home/a")[:2] == (0, {soul})
    assert check(tree, capsys, "--strict", at="/home/a")[0] == 1
    assert check(tree, capsys, "--level", "information", at="/home/a")[1] == {soul, old}
    assert check(tree, capsys, "--agent", "writer", at="/home/a")[1] == {soul}
    assert check(tree, capsys, at=soul[0])[1] == {soul}
    main(["check", tree.path(soul[0])])
    assert "Write it into AGENT.writer.md." in capsys.readouterr().out


def test_many_agents(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    directory = Path(tree.path("/home/c/a/.nexus3"))
    for number in range(MOST_AGENTS + 6):
        (directory / f"AGENT.x{number:03}.md").write_text("@./gone.md\n")
    _, found, said = check(tree, capsys)
    looked = sum("AGENT." in path for path, _ in found)
    assert (looked, f"Only {MOST_AGENTS} of the 75 agents" in said) == (MOST_AGENTS - 3 + 1, True)
    last = f"x{MOST_AGENTS + 5:03}"
    assert f"/home/c/a/.nexus3/AGENT.{last}.md" in {
        path for path, _ in check(tree, capsys, "--agent", last)[1]
    }


def test_each_directory_is_read_once(
    tree: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {f"x{number}": {"cwd": "api"} for number in range(20)}
    Path(tree.path("/home/c/a/.nexus3/config.json")).write_text(json.dumps({"agents": config}))
    read: list[str] = []

    def reading(path: str, *args: Any, **rest: Any) -> Snapshot:
        read.append(path)
        return load(path, *args, **rest)

    monkeypatch.setattr(directory_snapshots, "load", reading)
    check(tree, capsys)
    assert read == [tree.path("/home/c/a/api")]


DEEP = """
//- /home/a/.claude/skills/one/SKILL.md
No front matter.
//- /home/a/.claude/skills/one/scripts/run.sh
//- /home/a/.claude/worktrees/p/.nexus3/config.json
{"tools": {"summery": true}}
//- /home/a/.claude/worktrees/p/.claude/skills/two/SKILL.md
---
name: two
description: Two.
---
Two.
//- /home/a/.nexus3/rules/style.md
@./gone.md
//- /home/a/NEXUS.md
@.nexus3/rules/style.md
"""


@pytest.mark.parametrize(
    ("at", "code", "wrong"),
    [
        ("/home/a/.claude/skills/one/SKILL.md", 0, None),
        ("/home/a/.claude/skills/one", 0, "/home/a/.nexus3/rules/style.md"),
        ("/home/a/.claude/skills", 0, "/home/a/.nexus3/rules/style.md"),
        ("/home/a/.nexus3/rules/style.md", 0, "/home/a/.nexus3/rules/style.md"),
        ("/home/a/.claude/worktrees/p", 1, "/home/a/.claude/worktrees/p/.nexus3/config.json"),
        ("/home/a/.claude/worktrees/p/.claude/skills/two/SKILL.md", 0, None),
        ("/home/a/.claude/skills/one/scripts/run.sh", 2, None),
    ],
)
def test_a_path_deep_in_a_directory_of_configuration(
    tmp_path: Path, tree: Fixture, capsys: pytest.CaptureFixture[str], at: str, code: int, wrong: str | None
) -> None:
    """It is the folder's around it, unless that reads nothing there."""
    tree = write_fixture(DEEP, tmp_path)
    done, found, _ = check(tree, capsys, at=at)
    assert done == code
    assert wrong is None or wrong in {path for path, _ in found}
