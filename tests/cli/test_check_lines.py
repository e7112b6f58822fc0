"""`nexus check` on a terminal: a line each problem, of what is in use here."""

import json
import re
from pathlib import Path

import pytest

from nexus_daemon.cli import output
from support.commands import run_nexus

CLAUDE = '{\n  "permissions": {"allow": ["Bash(:*)"]},\n  "autoMemoryEnable": true\n}\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in the home of a user at a terminal."""
    home = tmp_path.resolve() / "home"
    for name, path in (("HOME", home), ("NEXUS_HOME", home / ".nexus3"), ("NEXUS_STATE", tmp_path / "state")):
        monkeypatch.setenv(name, str(path))
    monkeypatch.setattr(output, "is_read_by_person", lambda: True)
    work = home / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return work


def write(work: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(("current", "shown"), [(".", ""), ("..", "work/"), ("docs", "~/work/")])
def test_a_line_for_each_problem(
    work: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    current: str,
    shown: str,
) -> None:
    write(work, {".claude/settings.json": CLAUDE, "CLAUDE.md": "See @docs/none.md\n", "docs/a.md": ""})
    monkeypatch.chdir(work / current)
    code, out, _ = run_nexus(capsys, "check", str(work))
    lines = out.splitlines()
    places = [line.partition(" ")[0] for line in lines if "[assistant." in line]
    assert code == 0
    assert places == [
        f"{shown}.claude/settings.json:2:29",
        f"{shown}.claude/settings.json:3:3",
        f"{shown}CLAUDE.md:1:5",
    ]
    assert lines[-2:] == [
        f"Begin with {shown}.claude/settings.json.",
        "0 errors and 3 warnings in what is read by Claude Code.",
    ]


def test_a_file_is_checked_alone(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = '{"permissions": {"allow": "Bash"}}'
    write(
        work, {".claude/settings.json": broken, "CLAUDE.md": "See @docs/none.md\n", "src/CLAUDE.md": "X.\n"}
    )
    (work / "link.md").symlink_to("CLAUDE.md")
    monkeypatch.chdir(work)
    assert run_nexus(capsys, "check").code == 1
    for options in ([], ["--for", "claude-code"]):
        code, out, _ = run_nexus(capsys, "check", "CLAUDE.md", *options)
        assert (code, out.count("[assistant.")) == (0, 1)
        assert out.endswith("0 errors and 1 warning in CLAUDE.md alone. The whole folder: nexus check\n")
        assert run_nexus(capsys, "check", "CLAUDE.md", "--strict", *options).code == 1
        code, out, _ = run_nexus(capsys, "check", ".claude/settings.json", "--format", "json", *options)
        assert (code, len(json.loads(out)["problems"])) == (1, 1)
        assert run_nexus(capsys, "check", ".git/HEAD", *options).code == 2
    monkeypatch.chdir(work.parent)
    out = run_nexus(capsys, "check", "work/CLAUDE.md").out
    assert out.endswith(f"in work/CLAUDE.md alone. The whole folder: nexus check {work}\n")
    assert run_nexus(capsys, "check", "work/CLAUDE.md", "--for", "codex", "--budget", "5").code == 2


def test_frames_on_request_and_where_nobody_looks(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(work, {"CLAUDE.md": "See @docs/none.md\n"})
    framed = run_nexus(capsys, "check", str(work), "--frames").out
    assert "Configuration Warning: Problem in" in framed
    assert "\n\n~/work/CLAUDE.md:1:5 warning [assistant.import] (Claude Code)\n\n" in framed
    assert "try again" not in framed
    assert run_nexus(capsys, "check", str(work), "--format", "text").out == framed
    assert run_nexus(capsys, "check", str(work), "--frames", "--format", "json").code == 2
    monkeypatch.setattr(output, "is_read_by_person", lambda: False)
    assert "Configuration Warning: Problem in" in run_nexus(capsys, "check", str(work)).out


def test_what_nobody_uses_here_is_not_mentioned(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = "Word after word. " * 20_000
    write(
        work,
        {"CLAUDE.md": f"Use tabs. {big}", ".mcp.json": json.dumps({"mcpServers": {"a": {"command": "a"}}})},
    )
    out = run_nexus(capsys, "check", str(work), "--level", "hint").out
    assert "prompt.size" not in out
    assert "Nexus" not in out
    assert "layer" not in out
    write(work, {".nexus3/config.json": '{"context": {"ancestor_dept": 1}}'})
    out = run_nexus(capsys, "check", str(work)).out
    assert ".nexus3/config.json:1:14 error" in out
    assert "of 2 layers" in out or "of 1 layer" in out


def test_the_program_that_minds_is_named(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, {"CLAUDE.md": "See @docs/none.md\n"})
    lines = [line for line in run_nexus(capsys, "check", str(work)).out.splitlines() if "CLAUDE.md:1" in line]
    assert lines
    assert all("Claude Code" in line for line in lines)


def test_remarks_that_are_shown_are_counted(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, {"CLAUDE.md": "Use tabs.\n", "AGENTS.md": "Be brief.\n"})
    shown = run_nexus(capsys, "check", str(work), "--level", "hint").out.splitlines()
    remarks = [line for line in shown if re.match(r"\S+:\d+:\d+ (?:hint|information) ", line)]
    assert remarks
    noun = "remark" if len(remarks) == 1 else "remarks"
    assert shown[-1].startswith(f"0 errors, 0 warnings and {len(remarks)} {noun} in what is read by ")
    assert run_nexus(capsys, "check", str(work)).out.startswith("No problems in what is read by ")
