"""The lines that a program appends: each once, whatever happens to the file."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context import files
from nexus_context.assistant_sessions import appended
from nexus_context.assistant_sessions.appended import AppendedLines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_lines_are_read_once_and_an_unfinished_one_waits(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthr")
    lines = AppendedLines(str(path))
    assert (list(lines.read()), list(lines.read())) == ([b"one", b"two"], [])
    append(path, b"ee\n\nfour")
    assert list(lines.read()) == [b"three", b""]
    append(path, b"\n")
    assert list(lines.read()) == [b"four"]
    assert lines.restarts == 1


def test_without_a_change_the_file_is_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"one\n")
    lines = AppendedLines(str(path))
    assert lines.has_changed()
    list(lines.read())
    monkeypatch.setattr(files, "read_range", lambda *_: pytest.fail("it was read"))
    assert (lines.has_changed(), list(lines.read())) == (False, [])


def truncate(path: Path) -> None:
    path.write_bytes(b"new\n")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"new\nold 1\nold 2\nold 3\n")
    other.replace(path)


def rewrite(path: Path) -> None:
    with path.open("r+b") as file:  # the same inode, no shorter
        file.write(b"new\nold")
        file.seek(0, os.SEEK_END)
        file.write(b"more\n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (truncate, [b"new"]),
        (replace, [b"new", b"old 1", b"old 2", b"old 3"]),
        (rewrite, [b"new", b"old", b"more"]),
    ],
)
def test_another_file_is_read_from_its_beginning(path: Path, change: object, expected: list[bytes]) -> None:
    path.write_bytes(b"old 1\nold 2\n" if change is not rewrite else b"aaa\nbbb\n")
    lines = AppendedLines(str(path))
    list(lines.read())
    change(path)  # type: ignore[operator]
    assert (list(lines.read()), lines.restarts) == (expected, 2)


def test_a_file_that_lost_its_end_is_read_again(path: Path) -> None:
    path.write_bytes(b"x" * 600 + b"\none\ntwo\n")
    lines = AppendedLines(str(path))
    assert len(list(lines.read())) == 3
    os.truncate(path, 604)
    append(path, b"1\n")
    assert (list(lines.read())[1:], lines.restarts) == ([b"one1"], 2)


def test_a_file_whose_end_was_replaced_by_a_longer_one(path: Path) -> None:
    path.write_bytes(b"x" * 600 + b"\none\ntwo\n")
    lines = AppendedLines(str(path))
    list(lines.read())
    os.truncate(path, 601)
    append(path, b"another\nand more\n")
    assert (list(lines.read())[1:], lines.restarts) == ([b"another", b"and more"], 2)


def test_a_file_that_is_removed_and_comes_back(path: Path) -> None:
    path.write_bytes(b"one\n")
    lines = AppendedLines(str(path))
    list(lines.read())
    path.unlink()
    assert (lines.has_changed(), list(lines.read()), lines.has_changed()) == (True, [], False)
    path.write_bytes(b"one\n")
    assert (list(lines.read()), lines.restarts) == ([b"one"], 2)


@pytest.mark.parametrize("name", ["mkdir", "mkfifo"])
def test_what_is_no_file_has_no_lines(path: Path, name: str) -> None:
    if not hasattr(os, name):
        pytest.skip("there are no FIFOs")
    getattr(os, name)(path)
    assert list(AppendedLines(str(path)).read()) == []


def test_a_long_line_is_counted_and_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appended, "LONGEST", 100)
    monkeypatch.setattr(appended, "BLOCK", 40)
    path.write_bytes(b"one\n" + b"x" * 1_000 + b"\ntwo\n" + b"y" * 500)
    lines = AppendedLines(str(path))
    assert (list(lines.read()), lines.long_lines) == ([b"one", b"two"], 2)
    append(path, b"yy\nthree\n")
    assert (list(lines.read()), lines.long_lines) == ([b"three"], 2)


def test_a_large_file_is_read_from_its_end(path: Path) -> None:
    path.write_bytes(b"".join(b"line %03d\n" % number for number in range(100)))
    lines = AppendedLines(str(path), whole=500, tail=25)
    assert list(lines.read()) == [b"line 098", b"line 099"]
    assert lines.skipped_bytes == 875
    append(path, b"line 100\n")
    assert list(lines.read()) == [b"line 100"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    texts=st.lists(st.binary(max_size=30).filter(lambda text: b"\n" not in text), max_size=12),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    block=st.integers(1, 50),
)
def test_however_a_file_is_written_its_lines_are_the_same(
    tmp_path: Path, texts: list[bytes], cuts: list[int], block: int
) -> None:
    path = tmp_path / "written.jsonl"
    path.write_bytes(b"")
    data = b"".join(text + b"\n" for text in texts)
    lines, read = AppendedLines(str(path)), []
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(appended, "BLOCK", block)
        start = 0
        for end in sorted({min(cut, len(data)) for cut in (*cuts, len(data))}):
            append(path, data[start:end])
            start = end
            read += list(lines.read())
    assert read == texts
