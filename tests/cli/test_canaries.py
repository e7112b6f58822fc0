"""No secret of a file is shown to people, whatever is wrong beside it, and frames still say what is wrong."""

import itertools
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_context.config.frames import format_frame
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text.lines import LineIndex
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import read
from support.canaries import MARK, STATES, WORD, Canary, canaries, commands, leaks, said, states, write

CANARIES = tuple(canaries())
QUICK = 4
"""States of each canary here; all of them are `python -m tests.torture --only canaries`."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root that a canary is written beneath."""
    for name, path in (("HOME", "home"), ("NEXUS_HOME", "home/.nexus3"), ("NEXUS_STATE", "state")):
        monkeypatch.setenv(name, str(tmp_path / path))
    monkeypatch.setattr(output, "is_read_by_person", lambda: True)  # the user's own files are shown, too
    return tmp_path


def check(root: Path, canary: Canary, state: str) -> list[str]:
    """The outputs that show the secret of a canary in a state."""
    folder = write(root, canary, states(canary)[state])
    return [f"{state}: {leak}" for leak in leaks(canary, folder)]


def some_states(number: int, canary: Canary) -> Iterator[str]:
    """The file as it is, and other states in turn, so that all are met."""
    names = list(states(canary))
    yield names[0]
    for step in range(1, min(QUICK, len(names))):
        yield names[1 + (number * (QUICK - 1) + step) % (len(names) - 1)]


def test_there_are_enough() -> None:
    assert len(CANARIES) >= 61
    assert len({canary.name for canary in CANARIES}) == len(CANARIES)
    assert all(canary.text.count(MARK) == 1 for canary in CANARIES)


@pytest.mark.parametrize("part", range(8))
def test_nothing_shows_a_secret(home: Path, part: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = [
        leak
        for number, canary in itertools.islice(enumerate(CANARIES), part, None, 8)
        for state in some_states(number, canary)
        for leak in check(home / f"{number}-{state}", canary, state)
    ]
    assert found == []
    assert WORD not in caplog.text


@pytest.mark.parametrize("number", range(0, len(CANARIES), 17))
def test_no_command_prints_a_secret(home: Path, number: int) -> None:
    canary = CANARIES[number]
    folder = write(home, canary)
    shown = {command: said(*command) for command in commands(folder)}
    assert all(text for command, text in shown.items() if "github" not in command)  # empty without problems
    assert [one for one, text in shown.items() if any(piece in text for piece in canary.pieces)] == []


def test_the_ledger_keeps_no_secret(home: Path) -> None:
    folder = write(home, CANARIES[0])
    for command in commands(folder):
        said(*command)
    kept = [path.read_bytes() for path in Path(os.environ["NEXUS_STATE"]).rglob("*") if path.is_file()]
    assert not any(WORD.encode() in data for data in kept)


# ---------------------------------------------------------------- what is still shown


def frames(root: Path, canary: Canary, state: str) -> Iterator[tuple[Problem, str, str]]:
    """Each problem of a canary's file with the file's text and its frame."""
    snapshot = read(write(root, canary, STATES[state]))
    for problem in snapshot.problems:
        text = snapshot.layers.texts.get(problem.path)
        if text is not None:
            yield problem, text, format_frame(problem, text)


@pytest.mark.parametrize("state", ["unknown key before", "unknown key in the line", "tabs and CRLF"])
def test_frames_show_place_and_key(home: Path, state: str) -> None:
    """Of every problem the line, the column and, if a key is reported, the key above the mark."""
    keys = 0
    for number, canary in enumerate(CANARIES[:36]):
        for problem, text, frame in frames(home / str(number), canary, state):
            line, column = LineIndex(text).position(problem.span.start)
            assert f"Line {line + 1}, Column {column + 1}: " in frame
            rows = frame.splitlines()
            mark = next(row for row in rows if re.fullmatch(r" +\| *\t*[ \t]*\^", row))
            marked = rows[rows.index(mark) - 1][mark.index("^") :]
            reported = text[slice(*problem.span)]
            if re.match(r"\s*:", text[problem.span.end :]):
                assert marked.startswith(reported)
                keys += 1
    assert keys > 10


@pytest.mark.parametrize(
    ("text", "mark", "line"),
    [
        ('{"tools": {"summary": "yes"}}', '"yes"', '{"tools": {"summary": "yes"}}'),
        ('{"tools": {"summary": 17}}', "17", '{"tools": {"summary": 17}}'),
        (
            '{"tools": {"summary": 17, "disabled": ["x", 2]}}',
            "17",
            '{"tools": {"summary": 17, "disabled": ["*", *]}}',
        ),
        ('{"provider": {"headers": "x", "model": 1}}', '"x"', '{"provider": {"headers": "*", "model": *}}'),
        ('{"a": {"b": true, "c": null}, "d": "x" "e"}', '"e"', '{"a": {"b": true, "c": null}, "d": "*" "*"}'),
        ('{tools: {"summary": yes}}', "tools", '{tools: {"summary": ***}}'),
        ('{"tools": {"summary": "yes}}', '"yes}}', '{"tools": {"summary": "*****'),
        ('{"zzz": "x, "tools": 1}', '"x, ', '{"***": "***"tools"****'),
        ("{'tools': 'x'}", "'tools'", "{'tools': ***}"),
    ],
)
def test_what_a_line_shows(text: str, mark: str, line: str) -> None:
    problem = _problem("/w/config.json", text, mark)
    assert f"  1 | {line}\n" in format_frame(problem, text)


@pytest.mark.parametrize(
    ("text", "mark", "shown"),
    [
        ("---\nname: One\ntoken: x1\n---\n", "One", ["name: One", "token: **"]),
        ("---\nname: One\ndescription: xy\n---\n", "xy", ["name: ***", "description: xy"]),
        ("---\nteam: red\nmetadata:\n  a: b\n---\n", "red", ["team: ***", "metadata:"]),
        ("See @x.md and more.\nToken: abc def\n", "@x.md", ["See @x.md and more.", "Token: *******"]),
        ("Max tokens: 5. See https://h.org/a?b=c#d\n", "Max", ["Max tokens: 5. See https://h.org/a******"]),
        ("Use ${A} and ${A:-xyz}.\n", "Use", ["Use ${A} and ${A:-***}."]),
    ],
)
def test_what_lines_of_markdown_show(text: str, mark: str, shown: list[str]) -> None:
    frame = format_frame(_problem("/w/SKILL.md", text, mark, code="skill.field"), text)
    assert [line for line in shown if f"| {line}" not in frame] == []


def _problem(path: str, text: str, mark: str, code: str = "config.type") -> Problem:
    start = text.index(mark)
    return Problem(path, Span(start, start + len(mark)), code, Severity.ERROR, "Wrong.")
