"""Open documents: edits land where the editor made them."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.lsp.documents import Document, OpenDocuments, apply_change
from nexus_daemon.lsp.lsp_types import ContentChange, TextDocumentItem
from nexus_daemon.protocol import Position, Range

TEXT = st.text(st.sampled_from("ab é\u2028\u0085\f\v😀𝒳\r\n"), max_size=25)
ENCODING = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> ContentChange:
    return ContentChange(text, Range(Position(*start), Position(*end)))


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ("abc", ContentChange("new"), "new"),
        ("a\nb\nc", edit((1, 0), (1, 1), "X"), "a\nX\nc"),
        ("a\r\nb\r\nc", edit((1, 0), (2, 0), ""), "a\r\nc"),
        ("a\rb\rc", edit((1, 0), (1, 1), "X"), "a\rX\rc"),
        ("a\rb\r\nc\nd", edit((3, 0), (3, 1), "X"), "a\rb\r\nc\nX"),
        ("a\u2028b\u0085c\fd\ne", edit((1, 0), (1, 1), "X"), "a\u2028b\u0085c\fd\nX"),
        ("a\u2028b", edit((0, 2), (0, 3), "X"), "a\u2028X"),
        ("ab\ncd", edit((0, 99), (0, 99), "X"), "abX\ncd"),
        ("ab\r\ncd", edit((0, 3), (0, 99), "X"), "abX\r\ncd"),
        ("ab\ncd", edit((9, 0), (9, 9), "X"), "ab\ncdX"),
        ("ab\n", edit((1, 0), (1, 0), "X"), "ab\nX"),
        ("", edit((0, 0), (0, 0), "X"), "X"),
        ("", edit((5, 5), (7, 7), "X"), "X"),
        ("abcd", edit((0, 3), (0, 1), "X"), "aXd"),
        ("x😀y", edit((0, 3), (0, 4), "Z"), "x😀Z"),
        ("x😀y", edit((0, 2), (0, 2), "Z"), "x\ud83dZ\ude00y"),
        ("x😀y", edit((0, 2), (0, 3), "\ude80"), "x🚀y".replace("🚀", "\U0001f680")),
        ("x😀y", edit((0, 1), (0, 2), ""), "x\ude00y"),
        ("ab\ncd", edit((-1, 0), (0, -5), "X"), "Xab\ncd"),
    ],
)
def test_change(before: str, change: ContentChange, after: str) -> None:
    assert apply_change(before, change, "utf-16") == after


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, the slow and sure way."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z|\Z", text) or [""]


def naive_edit(text: str, start: tuple[int, int], end: tuple[int, int], new: str) -> str:
    """An edit in UTF-16, unit by unit."""
    units = text.encode("utf-16-le", "surrogatepass")
    halves = "".join(chr(units[at] | units[at + 1] << 8) for at in range(0, len(units), 2))
    low, high = sorted(naive_offset(halves, *place, "utf-32") for place in (start, end))
    edited = halves[:low] + new + halves[high:]
    return edited.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def naive_offset(text: str, line: int, character: int, encoding: str) -> int:
    lines = lines_of(text)
    if line >= len(lines):
        return len(text)
    offset = sum(map(len, lines[:line]))
    for char in lines[line].rstrip("\r\n"):
        units = {
            "utf-8": len(char.encode("utf-8", "surrogatepass")),
            "utf-16": len(char.encode("utf-16-le", "surrogatepass")) // 2,
            "utf-32": 1,
        }[encoding]
        if character < units:
            break
        character -= units
        offset += 1
    return offset


@given(TEXT, ENCODING, st.data())
def test_edits_equal_a_naive_model(text: str, encoding: str, data: st.DataObject) -> None:
    number = st.integers(0, 12)
    for _ in range(data.draw(st.integers(1, 6))):
        start, end = data.draw(st.tuples(number, number)), data.draw(st.tuples(number, number))
        new = data.draw(TEXT)
        low, high = sorted((naive_offset(text, *start, encoding), naive_offset(text, *end, encoding)))
        expected = text[:low] + new + text[high:]
        if encoding == "utf-16":
            expected = naive_edit(text, start, end, new)
        text = apply_change(text, edit(start, end, new), encoding)
        assert text == expected


def opened(text: str = "one\ntwo") -> OpenDocuments:
    documents = OpenDocuments("utf-16")
    documents.open(TextDocumentItem("file:///a%20b.json", text, "json", 1))
    return documents


def test_life_of_a_document() -> None:
    documents = opened()
    first = documents.get("file:///a%20b.json")
    changes = (edit((0, 0), (0, 3), "1"), edit((1, 0), (1, 3), "2"), edit((1, 1), (1, 1), "3"))
    second = documents.change("file:///a%20b.json", 1, changes)
    paths: dict[str, Any] = {"path": "/a b.json", "real": "/a b.json", "opening": 1}
    assert first == Document("file:///a%20b.json", "json", 1, "one\ntwo", **paths, edited=1)
    assert second == Document("file:///a%20b.json", "json", 1, "1\n23", **paths, edited=2)
    assert documents.of_file("/a b.json") == list(documents) == [second]
    assert documents.close("file:///a%20b.json") == second
    assert (len(documents), documents.of_file("/a b.json"), documents.get("file:///a%20b.json")) == (
        0,
        [],
        None,
    )


def test_what_is_not_open_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    documents = OpenDocuments()
    assert documents.change("untitled:1", 2, (ContentChange("x"),)) is None
    assert documents.close("untitled:1") is None
    assert [record.getMessage() for record in caplog.records] == [
        "ignored a change of untitled:1, which is not open",
        "ignored the closing of untitled:1, which is not open",
    ]


def test_two_spellings_of_one_file() -> None:
    documents = opened()
    documents.open(TextDocumentItem("file:///a b.json", "other"))
    assert [one.text for one in documents.of_file("/a b.json")] == ["other", "one\ntwo"]
    documents.close("file:///a%20b.json")
    assert [one.text for one in documents.of_file("/a b.json")] == ["other"]


def fastest(action: Any, *arguments: Any) -> float:
    """The fastest of five runs in milliseconds: what the machine's other work cannot blur."""
    times = []
    for _ in range(5):
        start = time.thread_time()
        action(*arguments)
        times.append((time.thread_time() - start) * 1000)
    return min(times)


@pytest.mark.parametrize("line", ["x" * 1_000_000, "é" * 1_000_000, "x" * 999_999 + "😀"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_an_edit_of_a_long_line_is_fast(line: str, encoding: str) -> None:
    assert fastest(apply_change, line, edit((0, 900_000), (0, 900_001), "y"), encoding) < 200


def test_an_edit_at_the_end_of_many_lines_is_fast() -> None:
    text = '    "key": "value",\r\n' * 20_000
    assert fastest(apply_change, text, edit((19_999, 4), (19_999, 5), "y"), "utf-16") < 200


def test_after_an_edit_that_cannot_be_applied_the_text_is_unknown_until_it_is_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    documents = opened()
    uri = "file:///a%20b.json"
    for _ in range(2):
        documents.lose(uri, "Invalid params.")
    assert len(caplog.records) == 1, "said once"
    known = [
        (documents.change(uri, version, changes) or documents.open(TextDocumentItem(uri, ""))).is_known
        for version, changes in (
            (2, (edit((0, 0), (0, 3), "1"),)),
            (3, (edit((0, 0), (0, 1), "x"), ContentChange("whole"), edit((0, 0), (0, 1), "W"))),
        )
    ]
    document = documents.get(uri)
    assert document is not None
    assert (known, document.text, document.version) == ([False, True], "Whole", 3)
    documents.lose(uri, "again")
    assert documents.open(TextDocumentItem(uri, "x")).is_known
    documents.lose("untitled:1", "not open")


def test_halves_of_a_pair_may_come_one_by_one() -> None:
    documents = opened("\U0001f31f rule")
    uri = "file:///a%20b.json"
    texts = []
    for start, text in ((0, "\ud83d"), (1, "\ude80")):
        changed = documents.change(uri, 2, (edit((0, start), (0, start + 1), text),))
        assert changed is not None
        texts.append(changed.text)
    assert texts == ["\ufffd\ufffd rule".replace("\ufffd\ufffd", "\U0001f71f"), "\U0001f680 rule"]
