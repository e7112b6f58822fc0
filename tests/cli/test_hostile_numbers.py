"""Numbers in a transcript that no program counts: they cost their own figure, and no other session."""

from pathlib import Path

import pytest

from support.assistant_logs import ClaudeLog, CodexLog, OpencodeDatabase
from support.commands import run_nexus

NUMBERS = {
    "400 digits": "9" * 400,
    "2^70": str(1 << 70),
    "a large fraction": "1e400",
    "below zero": "-" + "9" * 400,
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS.keys())
@pytest.mark.parametrize("program", ["claude", "codex", "opencode"])
def test_a_number_that_cannot_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    number: str,
) -> None:
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "NEXUS_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "shop"
    folder.mkdir()
    sound = ClaudeLog(tmp_path, "sound", folder=str(folder))
    sound.user("A sound one.")
    sound.answer("Yes.")
    if program == "opencode":
        database = OpencodeDatabase(tmp_path)
        database.session("odd", folder=str(folder))
        database.message("odd", "user", "An odd one.")
    else:
        log = (ClaudeLog if program == "claude" else CodexLog)(tmp_path, "odd", folder=str(folder))
        log.user("An odd one.")
        log.answer("Indeed.", sent=123_454_321)
        text = log.path.read_text()
        for figure in ("123454321", "123454311"):
            text = text.replace(figure, number)
        log.path.write_text(text.replace('"output_tokens": 5', f'"output_tokens": {number}'))
    for command in (
        ["watch", str(folder), "--once"],
        ["sessions", "list", "--assistants", "--folder", str(folder)],
        ["sessions", "list", "--assistants", "--json", "--folder", str(folder)],
    ):
        code, out, errors = run_nexus(capsys, *command)
        assert (code, errors) == (0, ""), command
        assert "sound" in out or command[0] == "watch"


def test_a_file_of_damaged_lines_is_not_read_to_its_end(tmp_path: Path) -> None:
    from nexus_context.assistants.sessions.record import SessionRecord
    from nexus_context.assistants.sessions.session_types import MOST_DAMAGED, records

    damaged: set[int] = set()
    lines = (b"{%d" % number for number in range(10 * MOST_DAMAGED))
    assert list(records(lines, SessionRecord, damaged)) == []
    assert len(damaged) == MOST_DAMAGED
    assert next(lines) == b"{%d" % MOST_DAMAGED
