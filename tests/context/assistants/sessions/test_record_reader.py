"""The records that a program appends to a file: each once, whatever happens to the file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.sessions import record_reader as reader
from nexus_context.assistants.sessions.record import MOST_KINDS, SessionRecord
from nexus_context.assistants.sessions.record_reader import (
    RecordReader,
    ResumePoint,
    last_compaction,
    mark_of,
    records_since_compaction,
)
from nexus_context.disk import files

LONG = b"x" * 600


def line(text: str | bytes) -> bytes:
    return b'{"t":"%s"}\n' % (text.encode() if isinstance(text, str) else text)


def lines(texts: str) -> bytes:
    return b"".join(map(line, texts.split()))


def reading(path: Path, **options: Any) -> RecordReader[SessionRecord]:
    return RecordReader(str(path), SessionRecord, **options)


def read(records: RecordReader[SessionRecord]) -> str:
    return " ".join(record.value["t"] for record in records.read())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_records_are_read_once_and_an_unfinished_one_waits(path: Path) -> None:
    path.write_bytes(lines("one two") + b'{"t":"thr')
    records = reading(path)
    assert (read(records), read(records)) == ("one two", "")
    append(path, b'ee"}\n\n{"t":')
    assert read(records) == "three"
    append(path, b'"four"}\n')
    assert read(records) == "four"
    assert (records.restarts, records.damaged, records.offset) == (1, 0, path.stat().st_size)


def test_a_whole_object_does_not_wait_for_the_end_of_its_line(path: Path) -> None:
    path.write_bytes(lines("one") + b'{"t":"two"}')
    records = reading(path)
    assert read(records) == "one two"
    append(path, b"\n" + line("three"))
    assert (read(records), records.restarts, records.damaged) == ("three", 1, 0)


def test_without_a_change_the_file_is_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(lines("one"))
    records = reading(path)
    assert records.has_changed()
    read(records)
    monkeypatch.setattr(files, "read_range", lambda *_: pytest.fail("it was read"))
    assert (records.has_changed(), read(records)) == (False, "")


def truncate(path: Path) -> None:
    path.write_bytes(lines("new"))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(lines("new old1 old2 old3"))
    other.replace(path)


def rewrite(path: Path) -> None:
    with path.open("r+b") as file:  # the same inode, no shorter
        file.write(lines("new2"))
        file.seek(0, os.SEEK_END)
        file.write(lines("more"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [(truncate, "new"), (replace, "new old1 old2 old3"), (rewrite, "new2 old2 more")],
)
def test_another_file_is_read_from_its_beginning(path: Path, change: Any, expected: str) -> None:
    path.write_bytes(lines("old1 old2"))
    records = reading(path)
    read(records)
    change(path)
    assert (read(records), records.restarts) == (expected, 2)


@pytest.mark.parametrize("cut", [4, 12])  # within a record, and before it
def test_a_file_whose_end_is_another_one_is_read_again(path: Path, cut: int) -> None:
    path.write_bytes(line(LONG) + lines("one two"))
    records = reading(path)
    read(records)
    os.truncate(path, path.stat().st_size - cut)
    append(path, b'"}\n' if cut == 4 else lines("another and more"))
    assert read(records).split()[1:] == (["one", "tw"] if cut == 4 else ["one", "another", "and", "more"])
    assert records.restarts == 2


def test_a_file_that_is_removed_and_comes_back(path: Path) -> None:
    path.write_bytes(lines("one"))
    records = reading(path)
    read(records)
    path.unlink()
    assert (records.has_changed(), read(records), records.has_changed()) == (True, "", False)
    path.write_bytes(lines("one"))
    assert (read(records), records.restarts) == ("one", 2)


@pytest.mark.parametrize("name", ["mkdir", "mkfifo"])
def test_what_is_no_file_has_no_records(path: Path, name: str) -> None:
    if not hasattr(os, name):
        pytest.skip("there are no FIFOs")
    getattr(os, name)(path)
    assert read(reading(path)) == ""


def test_a_long_line_is_counted_and_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK", 40)
    path.write_bytes(lines("one") + b"x" * 1_000 + b"\n" + lines("two") + b"y" * 500)
    records = reading(path, longest=100)
    assert (read(records), records.long_lines, records.first_damaged) == ("one two", 2, 12)
    append(path, b"yy\n" + lines("three"))
    assert (read(records), records.long_lines, records.damaged) == ("three", 2, 0)


def test_a_large_file_is_read_from_its_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"".join(line(f"{number:03}") for number in range(100)))
    monkeypatch.setattr(reader, "TAIL", 30)
    records = reading(path, whole=500)
    assert (read(records), records.skipped_bytes) == ("098 099", 1_170)
    append(path, lines("100"))
    assert (read(records), records.restarts) == ("100", 1)


def test_what_is_no_object_is_counted(path: Path) -> None:
    path.write_bytes(lines("one") + b"oh no\n\n[1]\n" + b"\0" * 9 + b"\n" + lines("two"))
    records = reading(path)
    assert (read(records), records.damaged, records.first_damaged) == ("one two", 3, 12)


def test_half_a_pair_of_surrogates_and_bytes_that_are_no_utf_8_become_marks(path: Path) -> None:
    path.write_bytes(line(rb"a\ud83d") + line(b"b\xff"))
    records = reading(path)
    assert (read(records), records.damaged) == ("a� b�", 0)


def test_unknown_kinds_are_counted(path: Path) -> None:
    kinds = ["user", "later", "later", *(f"k{number}" for number in range(MOST_KINDS + 9))]
    path.write_text("".join(json.dumps({"type": kind}) + "\n" for kind in [*kinds, 7, None]))
    records = RecordReader(str(path), ClaudeCodeRecord)
    list(records.read())
    assert (records.unknown["later"], len(records.unknown)) == (2, MOST_KINDS + 1)
    assert records.unknown["other kinds"] == 12
    assert sum(records.unknown.values()) == len(kinds) + 1


def test_the_records_since_the_last_compaction(path: Path) -> None:
    written = [
        {"type": "response_item", "payload": {"type": "message", "text": '"type":"compacted"'}},
        {"type": "compacted", "payload": {"message": "first"}},
        {"type": "event_msg", "payload": {}},
        {"type": "compacted", "payload": {"message": "last"}},
        {"type": "response_item", "payload": {"text": 'a line with "type":"compacted" in it'}},
    ]
    data = [json.dumps(value, separators=(",", ":")) for value in written]
    for count, expected in ((1, [0]), (2, [1]), (3, [1, 2]), (5, [3, 4])):
        path.write_text("\n".join(data[:count]) + '\n{"type":')
        found = records_since_compaction(str(path), CodexRecord, 10_000)
        assert [record.value for record in found] == [written[at] for at in expected]
        last = last_compaction(str(path), CodexRecord, 10_000)
        assert (last is None) == (count == 1)
        assert last is None or last.value == written[expected[0]]


STEP = st.one_of(
    st.tuples(st.just("append"), st.binary(max_size=30)),
    st.tuples(st.just("record"), st.integers(0, 99)),
    st.tuples(st.just("long"), st.integers(100, 700)),
    st.tuples(st.just("truncate"), st.integers(0, 800)),
    st.tuples(st.just("rewrite"), st.binary(max_size=20)),
    st.tuples(st.just("rotate"), st.integers(0, 3)),
    st.tuples(st.just("end"), st.just(0)),
)


def change(path: Path, step: tuple[str, Any]) -> None:
    name, value = step
    if name == "rewrite":
        with path.open("r+b") as file:
            file.write(value)
    elif name == "truncate":
        os.truncate(path, min(value, path.stat().st_size))
    elif name == "rotate":
        other = path.with_name("other")
        other.write_bytes(b"".join(line(str(number)) for number in range(value)))
        other.replace(path)
    else:
        long = b"%d" % value if name == "record" else b"z" * value if name == "long" else b""
        append(path, {"append": value, "end": b"\n"}.get(name, line(long)))


def objects(data: bytes) -> list[Any]:
    """The records of a file that is read once."""
    found = []
    for text in data.split(b"\n"):
        try:
            value = json.loads(text.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(
    steps=st.lists(STEP, max_size=12),
    block=st.integers(1, 900),
    looks=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_whatever_happens_to_a_file_its_records_are_those_in_it(
    tmp_path: Path, steps: list[tuple[str, Any]], block: int, looks: list[bool]
) -> None:
    """Of one that follows it, and of one that resumes where another one was."""
    path = tmp_path / "session.jsonl"
    path.unlink(missing_ok=True)
    path.write_bytes(b"")
    records, seen, restarts = reading(path), list[Any](), 0
    point, before = ResumePoint(), list[Any]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BLOCK", block)
        for number, (step, is_read) in enumerate(zip(steps, looks, strict=False)):
            change(path, step)
            os.utime(path, ns=(number, number))  # a clock that is coarse hides no change
            if not is_read:
                continue
            found = [record.value for record in records.read()]
            seen = [*(seen if records.restarts == restarts else ()), *found]
            restarts = records.restarts
            assert seen == objects(path.read_bytes())
            resumed = reading(path, resume=point)
            rest = [record.value for record in resumed.read()]
            assert [*(() if resumed.restarts else before), *rest] == seen
            point, before = ResumePoint(records.offset, mark_of(str(path), records.offset)), seen
