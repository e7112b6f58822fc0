"""A user without a home directory: every command says what to set, and none writes where it stands."""

import os
from pathlib import Path

import pytest

from nexus_daemon.cli import main

pwd = pytest.importorskip("pwd", reason="the users of POSIX")

COMMANDS = [
    "check .",
    "status",
    "doctor",
    "sessions list",
    "sessions append main hi",
    "show",
    "memory list",
    "memory add note",
    "stop",
    "init new",
    "init --global",
    "logs",
    "logs --record debug",
    "watch --once",
    "skill list",
    "agents list",
    "statusline",
    "setup claude-code --yes",
    "knowledge status",
    "trust .",
    "trust --list",
]


@pytest.mark.parametrize("home", [None, "", "relative"])
@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_home_directory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    home: str | None,
) -> None:
    def nobody(_: object) -> object:
        raise KeyError("no entry")

    for name in ("HOME", "NEXUS_STATE", "NEXUS_HOME", "NEXUS_LOG", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(pwd, "getpwnam", nobody)
    monkeypatch.chdir(tmp_path)
    try:
        code = main(command.split())
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, errors = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in out + errors
    assert "RuntimeError" not in out + errors
    if command in ("init --global", "logs", "logs --record debug"):
        assert code == 1
        assert "Set " in errors, errors
    assert set(os.listdir(tmp_path)) <= {"new"}
    assert not Path("/.nexus3").exists()
