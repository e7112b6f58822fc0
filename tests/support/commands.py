"""Commands of `nexus` that run in this process, for a user with a home directory of their own."""

from pathlib import Path
from typing import NamedTuple

import pytest

from nexus_daemon.cli import main
from support.fixture import Fixture


class Output(NamedTuple):
    """The exit code of a command, and what it prints on its two streams."""

    code: int
    out: str
    err: str


def use_home(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Make `home` and `state` beneath a root the user's directories, and let no other variable show."""
    monkeypatch.setenv("HOME", str(root / "home"))
    monkeypatch.setenv("NEXUS_STATE", str(root / "state"))
    assistants = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    for name in ("NEXUS_HOME", "FORCE_COLOR", "COLUMNS", *assistants):
        monkeypatch.delenv(name, raising=False)


def run_nexus(capsys: pytest.CaptureFixture[str], *arguments: str, root: str = "") -> Output:
    """Run a command; the root of the test's files is left out of what it prints."""
    code = main(arguments)
    out, err = capsys.readouterr()
    return Output(code, out.replace(root, ""), err.replace(root, ""))


def output_of(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """All that a command prints, which must end with this exit code."""
    output = run_nexus(capsys, *arguments, root=tree.root)
    assert output.code == code
    return output.out + output.err
