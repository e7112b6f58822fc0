"""The commands meet half-typed files, and bugs: they report them, and go on."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.folder.layers import text_reader
from nexus_context.text import json as jsontext
from nexus_daemon.cli import output
from support.commands import run_nexus, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/NEXUS.md
Rules of the folder.
//- /home/a/.nexus3/config.json
{"context":{"zz":1},"context"}
//- /home/a/.nexus3/mcp.json
{"servers":{"db":{"command":"no-such-program"}}, "servers"}
//- /home/.nexus3/config.json
{"context":{"yy":1},"context":}
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    monkeypatch.setattr(output, "is_read_by_person", lambda: True)  # the user's own files count, too
    return write_fixture(FIXTURE, tmp_path)


def check(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and output of a command about the folder."""
    return run_nexus(capsys, arguments[0], tree.path("/home/a"), *arguments[1:])[:2]


def test_keys_that_are_typed_again(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = check(tree, capsys, "check")
    assert code == 1
    for part in (
        'Unknown key "zz"',
        'Unknown key "yy"',
        "There is no such program",
        "write a colon and a value",
    ):
        assert part in shown
    assert check(tree, capsys, "show")[0] == 0
    assert "Rules of the folder." in check(tree, capsys, "show")[1]


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_a_bug(
    tree: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    original = jsontext.parse

    def faulty(path: str, *arguments: Any) -> Any:
        if path.endswith("/a/.nexus3/config.json"):
            raise RecursionError
        return original(path, *arguments)

    monkeypatch.setattr(text_reader, "parse", faulty)
    code, shown = check(tree, capsys, "check", "--format", form)
    assert code == 1
    assert "This is a bug in Nexus, not your mistake." in shown
    assert "There is no such program" in shown
    assert "Fix the file" not in shown
    assert "Rules of the folder." in check(tree, capsys, "show")[1]
