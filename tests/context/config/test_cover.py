"""Lines of JSON for a frame: whatever is mistyped in a file, no value of a secret place is shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.check import check_config
from nexus_context.config.frames import format_frame
from nexus_context.config.mcp import read_servers
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text.json import parse
from nexus_context.text.lines import LineIndex

WORD = "moonlitharbour"
TEXTS = (
    '{"servers": [{"name": "one", "command": "x", "args": ["--token", "§"], "env": {"A": "b"}}]}',
    '{"mcpServers": {"one": {"command": ["x", "--key", "§"],\n "env": {"PGPASSWORD": "c"}}}}',
    '{"servers": {"one": {"command": "x",\n "env": {\n  "A": "§",\n  "B": 5}}}}',
    '{"servers": {"one": {"url": "https://h.org/?a=§",\n "headers": {"Cookie": "a=b; c"}}}}',
    '{"provider": {"name": "openai", "headers": {"X": "§", "Y": "z"}},\n "tools": {"summary": true}}',
)
PIECES = (
    "",
    '"',
    "'",
    "\\",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\n",
    "//",
    "/*",
    "x",
    " ",
    '""',
    '":"',
    "true",
    "\ufeff",
)
# the word is a key now, or part of one: keys are shown
KEY = re.compile(rf"{WORD}[^,\n]*[:=]")


def problems(text: str) -> tuple[Problem, ...]:
    """Everything that a text is told as settings and as MCP servers."""
    document = parse("/w/x.json", text)
    _, found = read_servers(document, origin="local", folder="/w", environ={}, which=lambda _: None)
    return (*document.problems, *check_config(document), *found)


def check(text: str) -> None:
    """No frame, message, title or edit holds the word."""
    for problem in problems(text):
        fix = problem.fix
        frames = [format_frame(problem, text, is_private=is_private) for is_private in (False, True)]
        shown = [*frames, problem.message, *(one.message for one in problem.related)]
        shown += [] if fix is None else [fix.title, *(edit.text for edit in fix.edits)]
        assert not [one for one in shown if WORD in one], problem.code


@st.composite
def mistyped(draw: st.DrawFn) -> str:
    """A file with up to four places where something is missing, or is put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.integers(0, 2)) :]
    return text.replace("§", WORD)


@given(mistyped())
def test_nothing_mistyped_uncovers_a_value(text: str) -> None:
    if not KEY.search(text):
        check(text)


def test_every_beginning_of_a_file() -> None:
    for template in TEXTS:
        text = template.replace("§", WORD)
        for end in range(text.index(WORD) + len(WORD), len(text)):
            check(text[:end])


@given(mistyped())
def test_columns_stay(text: str) -> None:
    index = LineIndex(text)
    for problem in problems(text):
        for number, row in re.findall(r"(?m)^ +([0-9]+) \|(.*)$", format_frame(problem, text)):
            line = f" {index.line(int(number) - 1)}"
            assert len(line.rstrip()) <= len(row) <= len(line) or not line.strip()


@pytest.mark.parametrize(
    "blank", ["\n", "\r\n", "\n\n \n", "\n" * 21_000], ids=["LF", "CRLF", "lines", "far"]
)
@pytest.mark.parametrize("rest", [": }}}", ': "x"}}}', ":"])
def test_a_value_below_its_key_is_no_key(blank: str, rest: str) -> None:
    """Whatever follows it: as half of the next key it would be shown."""
    check(f'{{"provider": {{"headers": {{"Cookie":{blank} "{WORD}"{rest}')


def test_a_key_below_its_neighbor_is_shown() -> None:
    text = '{"provider": {"cookie": "x",\n"region": "y" 1}}'
    (problem,) = parse("/w/x.json", text).problems
    assert '2 | "region": "*"' in format_frame(problem, text)


def test_the_users_own_terminal_shows_what_cannot_be_secret() -> None:
    text = """{
  // at most so many
  "context": {"max_tokens": 3, "ancestor_depth": "5"}, "x": "moonlitharbour",
  // "headers": {"a": "moonlitharbour"}
  "provider": {"headers": {"X": "moonlitharbour", "Y": 5}},
  "tools": 3, "_comment": "two words", "_comment2": "moonlitharbour"
}
"""
    shown = "\n".join(format_frame(each, text, is_private=True) for each in problems(text))
    assert "2 |   // at most so many" in shown
    assert '3 |   "context": {"max_tokens": 3, "ancestor_depth": "5"}, "x": "*' in shown
    assert '6 |   "tools": 3, "_comment": "two words", "_comment2": "*' in shown
    assert '"Y": *' in shown
    assert WORD not in shown
    others = "\n".join(format_frame(each, text) for each in problems(text))
    assert '"max_tokens": *' in others and "two words" not in others and "so many" not in others


def test_what_a_comment_of_several_lines_holds_is_covered() -> None:
    text = f'{{\n  /* "a":\n  {WORD} 1234\n  */ "tools": 3\n}}\n'
    for problem in problems(text):
        shown = format_frame(problem, text, is_private=True)
        assert WORD not in shown and "1234" not in shown


@pytest.mark.parametrize(
    ("text", "value", "code", "line"),
    [
        ('{"mode": "yolo", "x": "y"}', '"yolo"', "assistant.void", '{"mode": "yolo", "x": "*"}'),
        ('{"mode": "yolo", "x": "y"}', '"yolo"', "json.duplicate", '{"mode": "****", "x": "*"}'),
        ('{"apiKey": "yolo"}', '"yolo"', "assistant.void", '{"apiKey": "****"}'),
        ('{"env": {"A": "yolo"}}', '"yolo"', "assistant.no-effect", '{"env": {"A": "****"}}'),
        ('{"args": ["-y", "pack"]}', "pack", "mcp.unpinned", '{"args": ["**", "pack"]}'),
        ('{"args": ["-y", "pack"]}', "pack", "mcp.type", '{"args": ["**", "****"]}'),
    ],
)
def test_the_reported_value_is_shown_where_it_cannot_be_secret(
    text: str, value: str, code: str, line: str
) -> None:
    start = text.index(value)
    problem = Problem("/w/x.json", Span(start, start + len(value)), code, Severity.ERROR, "Wrong.")
    assert f"  1 | {line}\n" in format_frame(problem, text)
