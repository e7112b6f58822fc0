"""`nexus show`: what the model will see, what it costs and where it comes from."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import main
from support.commands import run_nexus, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/.nexus3/NEXUS.md
Global rules.
//- /home/a/.nexus3/NEXUS.md
Project rules.
See @more.md here.
//- /home/a/.nexus3/more.md
More rules.
//- /home/a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "parameters": {"temperature": 0.5}}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def check(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The output of `nexus show /home/a`, which must succeed, the root's path left out."""
    code, out, err = run_nexus(capsys, "show", tree.path("/home/a"), *arguments, root=tree.root)
    assert (code, err, "\x1b" in out) == (0, "", False)
    return out


def test_the_prompt(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys)
    order = ["# System Configuration", "## Global Configuration", "Global rules.", "## Project Configuration"]
    order += ["Source: /home/a/.nexus3/NEXUS.md", "Project rules.", "More rules.", "## Environment"]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
    assert check(tree, capsys) == shown


def test_the_prompt_is_what_the_formats_hold(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys).removesuffix("\n")
    neutral = json.loads(check(tree, capsys, "--format", "json"))
    openai = json.loads(check(tree, capsys, "--format", "openai"))
    anthropic = json.loads(check(tree, capsys, "--format", "anthropic", "--message", "Why?"))
    assert neutral["systemPrompt"] == shown
    assert openai["messages"] == [{"role": "system", "content": shown}]
    assert "".join(block["text"] for block in anthropic["system"]) == shown
    assert anthropic["messages"][0]["content"][-1]["text"].endswith("Why?")
    assert neutral["usage"]["total"] == sum(row["tokens"] for row in neutral["usage"]["rows"])
    assert (openai["model"], openai["temperature"]) == ("gpt-4o", 0.5)


@pytest.mark.parametrize("more", [[], ["--source"]])
def test_a_message(tree: Fixture, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    """After the prompt what changes from turn to turn, as the formats for programs have it."""
    before = check(tree, capsys, *more)
    shown = check(tree, capsys, *more, "--message", "Why?\nHow?")
    prompt, head, last = shown.partition("\n── last user message (")
    assert (prompt, head) == (before, head)
    said, time, *rest = last.splitlines()
    assert (said[-8:], time[:9], rest) == (" tokens)", "Current t", ["", "Why?", "How?"])
    neutral = json.loads(check(tree, capsys, "--format", "json", "--message", "Why?\nHow?"))
    spent = sum(row["tokens"] for row in neutral["usage"]["rows"] if row["category"] == "event")
    assert f"{spent} tokens)" == said


def test_a_message_tells_the_branch(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    """By what reading files says: a command line does not know which folders are trusted."""
    git = Path(tree.path("/home/a/.git"))
    (git / "objects").mkdir(parents=True)
    (git / "refs").mkdir()
    (git / "HEAD").write_text("ref: refs/heads/topic\n")
    (git / "config").write_text("[core]\n\tfsmonitor = touch ran\n")
    told = "Git: on branch topic"
    assert f"\n{told}\n\nWhy?\n" in check(tree, capsys, "--message", "Why?")
    for form in ("json", "openai", "openai-responses", "anthropic", "gemini"):
        assert told in check(tree, capsys, "--format", form, "--message", "Why?")
        assert told not in check(tree, capsys, "--format", form)
    assert "git state" in check(tree, capsys, "--tokens", "--message", "Why?")
    Path(tree.path("/home/a/.nexus3/config.json")).write_text('{"context": {"git": false}}')
    assert told not in check(tree, capsys, "--message", "Why?")
    assert not list(Path(tree.root).rglob("ran"))


def test_tokens(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys, "--tokens")
    usage: Any = json.loads(check(tree, capsys, "--format", "json"))["usage"]
    assert f"{usage['total']:,} of {usage['available']:,} tokens for gpt-4o" in shown
    for row in usage["rows"]:
        assert any(row["label"] in line and f" {row['tokens']:,} " in line for line in shown.splitlines())


def test_an_estimate_is_marked(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(tree.path("/home/a/.nexus3/config.json"))
    config.write_text('{"provider": {"model": "claude-sonnet-4-5"}}')
    assert "≈" in check(tree, capsys, "--tokens")


def test_layers(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys, "--layers")
    rows = [line.split() for line in shown.splitlines() if "missing" not in line]
    assert ["global", "~/.nexus3/NEXUS.md", "loaded"] in [row[:3] for row in rows]
    assert ["local", ".nexus3/NEXUS.md", "loaded"] in [row[:3] for row in rows]
    assert ["skipped", "~:"] in [row[:2] for row in rows]
    assert check(tree, capsys, "--layers", "--tokens").startswith(shown)


def test_layers_show_which_file_imports_which(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(tree.path("/home/a/.nexus3/more.md")).write_text("More rules.\n@deep.md\n@gone.md\n")
    Path(tree.path("/home/a/.nexus3/deep.md")).write_text("Deep.\n")
    lines = check(tree, capsys, "--layers").splitlines()
    first = next(number for number, line in enumerate(lines) if " .nexus3/NEXUS.md" in line)
    shown = [line.rstrip() for line in lines[first + 1 : first + 3]]
    column = lines[first].index(".nexus3")
    assert [line[column:].split()[:2] for line in shown] == [
        ["@.nexus3/more.md", "imported"],
        ["@.nexus3/deep.md", "imported"],
    ]
    assert [line.index("@") - column for line in shown] == [2, 4]
    assert all(int(line.split()[-1]) > 0 for line in shown)


def test_a_long_path_stays_in_one_piece(
    tree: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(tree.path("/home/a"))
    below = Path("long-name-" * 20, "b.md")
    (folder / below).parent.mkdir(parents=True)
    (folder / below).write_text("Deep.")
    (folder / ".nexus3" / "NEXUS.md").write_text(f"@../{below}")
    main(["show", str(folder), "--layers"])
    assert f"@{below}" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    main(["show", str(folder), "--layers"])
    assert max(map(len, capsys.readouterr().out.splitlines()[:4])) <= 80


def test_sources(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys, "--source")
    parts = [part.split("\n", 1) for part in shown.removeprefix("── ").split("\n── ")]
    found = {
        (head.rsplit(" (", 1)[0].rpartition(":")[0], line)
        for head, body in parts
        for line in body.splitlines()
    }
    assert ("/home/.nexus3/NEXUS.md", "Global rules.") in found
    assert ("/home/a/.nexus3/NEXUS.md", "Project rules.") in found
    assert ("/home/a/.nexus3/more.md", "More rules.") in found


def test_another_model(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        json.loads(check(tree, capsys, "--format", "json", "--model", "gpt-4-turbo"))["model"]
        == "gpt-4-turbo"
    )
    assert "gpt-4-turbo" in check(tree, capsys, "--tokens", "--model", "gpt-4-turbo")


def test_a_path_that_is_not_there(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", tree.path("/home/nowhere")]) == 2
    refusal = capsys.readouterr().err.replace(tree.root, "")
    assert refusal == "nexus show: /home/nowhere does not exist.\n"


def test_a_broken_folder_is_shown_all_the_same(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(tree.path("/home/a/.nexus3/config.json")).write_text("{]")
    assert main(["show", tree.path("/home/a")]) == 0
    shown = capsys.readouterr()
    assert "Project rules." in shown.out
    assert shown.err.replace(tree.root, "") == snapshot(
        "nexus show: 1 error in this folder's files: run nexus check /home/a\n"
    )


def test_odd_surroundings(tree: Fixture) -> None:
    Path(tree.path("/home/a/.nexus3/NEXUS.md")).write_text("Grüße ≈ ✓")
    for extra in ([], ["--tokens"], ["--format", "json"]):
        done = subprocess.run(
            [sys.executable, "-m", "nexus_daemon", "show", "a", *extra],
            cwd=tree.path("/home"),
            env={"HOME": tree.path("/home"), "PATH": "", "PYTHONIOENCODING": "ascii", "COLUMNS": "abc"},
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert "Grüße ≈ ✓" in json.loads(done.stdout)["systemPrompt"]


def test_a_real_process_in_any_directory(tree: Fixture, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nexus_daemon", "show", "a", "--tokens", "--layers"],
        cwd=tree.path("/home"),
        env={"HOME": tree.path("/home"), "PATH": "", "TERM": "xterm-256color", "COLUMNS": "200"},
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    assert "Project Configuration" in done.stdout.decode()
