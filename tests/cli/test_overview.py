"""`nexus` alone: one screen of the folder."""

import json
import re
from pathlib import Path

import pytest

from nexus_daemon.cli.commands import COMMANDS, GROUPS
from nexus_daemon.cli.folder_overview import WORST
from support.assistant_logs import ClaudeLog
from support.commands import run_nexus

STARTED = 1_795_169_000.0  # 2026-11-20T10:03:20Z, minutes after the first records of a ClaudeLog


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a user's home, which is the current directory."""
    home = tmp_path.resolve() / "home"
    for name, path in (("HOME", home), ("NEXUS_HOME", home / ".nexus3"), ("NEXUS_STATE", tmp_path / "state")):
        monkeypatch.setenv(name, str(path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    work = home / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.chdir(work)
    return work


def test_an_empty_folder(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_nexus(capsys)
    assert (code, err) == (0, "")
    assert "no assistant is in use here" in out
    assert out.endswith("No problems.\nNext: nexus show --for all\n")


def test_what_is_in_use_and_what_is_wrong(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "AGENTS.md").write_text("Use tabs.\n")
    (work / "CLAUDE.md").write_text("".join(f"See @docs/none{n}.md\n" for n in range(5)))
    code, out, _ = run_nexus(capsys)
    rows = [line.split("`")[0].strip() for line in out.splitlines() if "not on the PATH" in line]
    assert (code, rows) == (0, ["Claude Code", "Codex"])
    assert "CLAUDE.md:1:5" in out
    assert out.count("[assistant.") == WORST
    assert "0 errors and 5 warnings, of which these 3 are the worst." in out
    assert out.endswith("Next: nexus check\n")
    assert "opencode" not in out


def test_what_was_shown_whole_is_not_shown_again(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "CLAUDE.md").write_text("See @docs/none.md\n")
    servers = {"a": {"command": "npx", "args": ["pack"]}, "b": {"url": "https://example.com/mcp"}}
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    out = run_nexus(capsys).out
    assert out.endswith("\n0 errors and 3 warnings.\nNext: nexus show --for all\n")
    assert re.findall(r"\[([a-z.-]+)\]", out)[-1] == "mcp.unpinned"


def test_a_cost_that_is_known_in_part(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / ".cursor" / "rules").mkdir(parents=True)
    (work / ".cursor" / "rules" / "a.mdc").write_text("---\nalwaysApply: true\n---\nUse tabs.\n")
    row = next(line for line in run_nexus(capsys).out.splitlines() if "Cursor" in line)
    assert re.search(r" (≈\d+) +\1 \+ \?", row)


def test_what_runs_now(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ClaudeLog(work.parent, "s1", folder=str(work))
    log.user("Fix the login.")
    log.answer("It is fixed.", sent=43_000)
    monkeypatch.setattr("time.time", lambda: STARTED)
    out = run_nexus(capsys).out
    assert "it runs here" in out
    assert "Runs now: Claude Code “Fix the login.” · 43,000 of " in out
    assert out.endswith("Next: nexus watch\n")


def test_a_folder_in_place_of_a_command(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = run_nexus(capsys, "overview", str(work))
    assert whole[0] == 0
    assert run_nexus(capsys, str(work)) == whole


def test_a_command_before_a_folder_of_its_name(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "status").mkdir()
    monkeypatch.chdir(work)
    assert run_nexus(capsys, "status") != run_nexus(capsys, "./status")


def test_a_folder_that_does_not_exist(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_nexus(capsys, "overview", "nowhere") == (2, "", "nexus overview: nowhere does not exist.\n")


def test_every_command_is_in_one_group_of_the_help() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(COMMANDS)
