"""URIs, positions, ranges."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.text.lines import LineIndex
from nexus_daemon.lsp import convert, framing, lsp_types
from nexus_daemon.protocol import Position

TEXT = st.text(st.sampled_from("ab é\u2028\u0085\f😀𝒳\r\n"), max_size=30)
ENCODING = st.sampled_from(lsp_types.ENCODINGS)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file:/a", "/a"),
        ("file://localhost/a", "/a"),
        ("file:///a%20b/%C3%A9", "/a b/é"),
        ("file:///a/é", "/a/é"),
        ("file:///a/%23%3F", "/a/#?"),
        ("file:///a/b/", "/a/b"),
        ("file:///", "/"),
        ("file:///a%FF", "/a\udcff"),
        ("file:///a%00", None),
        ("file://", None),
        ("file:a", None),
        ("file://server/share/a", None),
        ("untitled:Untitled-1", None),
        ("vscode-vfs://github/a", None),
        ("http://localhost/a", None),
        ("/a/b", None),
        ("", None),
    ],
)
def test_uri_to_path(uri: str, path: str | None) -> None:
    assert convert.uri_to_path(uri) == path


@pytest.mark.parametrize(
    ("uri", "path", "back"),
    [
        ("file:///c%3A/Users/a%20b", "C:\\Users\\a b", "file:///c%3A/Users/a%20b"),
        ("file:///C:/", "C:\\", "file:///c%3A/"),
        ("file:///d:", "D:\\", "file:///d%3A/"),
        ("file://server/share/a", "\\\\server\\share\\a", "file://server/share/a"),
        ("file:///a/b", None, None),
    ],
)
def test_windows(uri: str, path: str | None, back: str | None) -> None:
    assert convert.uri_to_path(uri, windows=True) == path
    if path is not None:
        assert convert.path_to_uri(path, windows=True) == back


PART = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(PART, min_size=1, max_size=4))
def test_path_round_trip(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    uri = convert.path_to_uri(path)
    assert uri.isascii()
    assert convert.uri_to_path(uri) == path


def naive_units(text: str, encoding: str) -> int:
    if encoding == "utf-32":
        return len(text)
    return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


@given(TEXT, ENCODING)
def test_positions_round_trip(text: str, encoding: str) -> None:
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        line, column = index.position(offset)
        position = convert.position_at(index, offset, encoding)
        assert position == Position(line, naive_units(index.line(line)[:column], encoding))
        assert convert.offset_at(index, position.line, position.character, encoding) == index.offset(
            line, column
        )


@given(TEXT, ENCODING, st.lists(st.integers(-2, 40), min_size=1, max_size=2 * convert.COUNTED))
def test_a_place_is_the_same_counted_out_or_looked_up(text: str, encoding: str, starts: list[int]) -> None:
    locate = convert.Locator(Snapshot({"/a": text}), encoding)
    index = LineIndex(text)
    for start in starts:
        span = Span(start, start + 3)
        assert locate.range("/a", span) == convert.range_of(index, span, encoding)


@given(TEXT, ENCODING, st.integers(-2, 40), st.integers(-2, 40))
def test_any_position_is_in_the_text(text: str, encoding: str, line: int, character: int) -> None:
    index = LineIndex(text)
    offset = convert.offset_at(index, line, character, encoding)
    assert 0 <= offset <= len(text)
    if 0 <= line < index.count and character >= 0:
        found = convert.position_at(index, offset, encoding)
        assert found.line == line
        assert found.character <= character


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", (1, 2, 3)), ("utf-16", (1,)), ("utf-32", ())])
def test_inside_a_character_is_its_start(encoding: str, units: tuple[int, ...]) -> None:
    index = LineIndex("x😀y")
    assert [convert.offset_at(index, 0, 1 + unit, encoding) for unit in units] == [1] * len(units)


class Snapshot:
    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts


def test_diagnostic() -> None:
    snapshot = Snapshot({"/a b.json": '{"é😀": 1}\nx', "/c.json": "1\n2"})
    problem = Problem(
        "/a b.json",
        Span(6, 7),
        "json.syntax",
        Severity.WARNING,
        "It is wrong.",
        related=(Related("/c.json", Span(2, 3), "First here."), Related("/gone", Span(5, 9), "Not read.")),
    )
    found: Any = framing.decode(
        framing.encode(convert.diagnostic(problem, convert.Locator(snapshot, "utf-16"))), Any
    )

    def at(line: int, start: int, end: int) -> dict[str, Any]:
        return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}

    assert found == {
        "range": at(0, 7, 8),
        "severity": 2,
        "code": "json.syntax",
        "source": "nexus",
        "message": "It is wrong.",
        "relatedInformation": [
            {"location": {"uri": "file:///c.json", "range": at(1, 0, 1)}, "message": "First here."},
            {"location": {"uri": "file:///gone", "range": at(0, 0, 0)}, "message": "Not read."},
        ],
    }


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("abc", (1, 2), (1, 2)),
        ("abc", (1, 1), (1, 2)),
        ("abc", (3, 3), (2, 3)),
        ("abc\n", (4, 4), (2, 3)),
        ("ab\r\n\r\n", (4, 4), (1, 2)),
        ("\n\nab", (0, 0), (2, 3)),
        ("ab", (9, 9), (1, 2)),
        ("", (0, 0), (0, 0)),
        ("\n\n", (1, 1), (1, 1)),
    ],
)
def test_an_editor_can_underline_every_problem(
    text: str, span: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert convert.visible_span(text, Span(*span)) == Span(*expected)


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 3), ("utf-16", 1), ("utf-32", 1)])
def test_a_client_that_keeps_the_byte_order_mark_counts_it(encoding: str, units: int) -> None:
    snapshot = Snapshot({"/a": "ab\ncd"})
    locate = convert.Locator(snapshot, encoding, {"/a": "\ufeffab\ncd"})
    found = locate.range("/a", Span(1, 4))
    assert (found.start.character, found.end.line, found.end.character) == (1 + units, 1, 1)
    assert locate.offset("/a", found.start) == 1
    assert locate.offset("/a", found.end) == 4
