"""Diagnostics of one file, from a snapshot: where each stands in the text, and in which order."""

from pathlib import Path

import msgspec
import pytest

from nexus_daemon.features.diagnostics import diagnostics
from nexus_daemon.lsp.convert import Locator
from support.fixture import write_fixture
from support.folders import load_folder

Row = tuple[str, str, int, str]


def check(root: Path, text: str, expected: list[Row], *, encoding: str = "utf-16") -> None:
    """Diagnostics of the file with the cursor: range, code, severity, first words of the message."""
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, "/home/a")
    mine = [problem for problem in snapshot.problems if problem.path == fixture.cursor_path]
    found = msgspec.to_builtins(diagnostics(mine, Locator(snapshot.layers, encoding), {}))
    assert all(one["source"] == "nexus" for one in found)
    assert [
        (shown(one["range"]), one["code"], one["severity"], " ".join(one["message"].split()[:2]))
        for one in found
    ] == expected


def shown(where: dict[str, dict[str, int]]) -> str:
    return "-".join(f"{where[end]['line']}:{where[end]['character']}" for end in ("start", "end"))


def test_all_problems_of_a_file_in_the_order_of_its_text(tmp_path: Path) -> None:
    text = """
    //- /home/a/.nexus3/config.json
    {$0
      "tools": {"summery": true},
      "context": {"ancestor_depth": 99},
      "nope": 1,
    }
    """
    expected = [
        ("1:12-1:21", "config.unknown-key", 1, "Unknown key"),
        ("2:32-2:34", "config.range", 1, '"ancestor_depth" must'),
        ("3:2-3:8", "config.unknown-key", 1, "Unknown key"),
        ("3:11-3:12", "json.trailing-comma", 1, "Illegal trailing"),
    ]
    check(tmp_path, text, expected)


@pytest.mark.parametrize(("encoding", "end"), [("utf-8", 20), ("utf-16", 18), ("utf-32", 17)])
def test_columns_are_those_of_the_editor(tmp_path: Path, encoding: str, end: int) -> None:
    text = "//- /home/a/NEXUS.md\n😀 See @missing.md$0\n"
    start = end - len("@missing.md")
    expected = [(f"0:{start}-0:{end}", "prompt.import-missing", 2, "Nexus leaves")]
    check(tmp_path, text, expected, encoding=encoding)


def test_a_file_is_told_of_its_own_problems_only(tmp_path: Path) -> None:
    broken = "//- /home/a/.nexus3/mcp.json\n{]\n"
    check(tmp_path, f"//- /home/a/.nexus3/config.json\n{{}}$0\n{broken}", [])


def test_the_same_server_twice_points_at_the_first(tmp_path: Path) -> None:
    server = '{"name": "x", "url": "https://h"}'
    text = f'//- /home/a/.nexus3/mcp.json\n{{"servers": [{server}, {server}]}}\n'
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, "/home/a")
    found = msgspec.to_builtins(diagnostics(snapshot.problems, Locator(snapshot.layers, "utf-16"), {}))
    related = [one["relatedInformation"] for one in found if one["code"] == "mcp.duplicate-name"]
    assert [shown(one[0]["location"]["range"]) for one in related] == ["0:22-0:25"]
