"""The log is read from its oldest line on, and followed across rotation."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.process.logs.log_file import KEPT, LogFile
from nexus_daemon.process.logs.read_log import Follower, last_lines

START = "2025-11-23T13:48:10.123Z INFO stdio-1 nexus_daemon.server: "


def lines_of(*texts: str) -> bytes:
    return "".join(f"{START}{text}\n" for text in texts).encode()


def read(follower: Follower) -> list[str]:
    return [line["message"] for line in follower.read()]


@given(
    st.lists(st.lists(st.text("ab", max_size=30), max_size=KEPT), max_size=6),
    st.integers(60, 400),
)
def test_a_follower_reads_every_line_once(
    tmp_path_factory: object, steps: list[list[str]], size: int
) -> None:
    directory = tmp_path_factory.mktemp("log")  # type: ignore[attr-defined]
    log, follower = LogFile(str(directory), size=size), Follower(str(directory))
    try:
        for step in steps:
            for text in step:
                log.append(lines_of(text))
            assert read(follower) == step
    finally:
        follower.close()


def test_it_begins_with_the_oldest_file(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path), size=100)
    for text in ("one", "two", "three"):
        log.append(lines_of(text))
    follower = Follower(str(tmp_path))
    assert read(follower) == ["one", "two", "three"]
    follower.close()


def test_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    follower, path = Follower(str(tmp_path)), tmp_path / "nexus.log"
    whole = lines_of("é")
    with path.open("ab", buffering=0) as file:
        for index in range(len(whole) - 1):
            file.write(whole[index : index + 1])
            assert read(follower) == []
        file.write(whole[-1:])
    assert read(follower) == ["é"]
    follower.close()


def test_a_file_that_somebody_deleted(tmp_path: Path) -> None:
    log, follower = LogFile(str(tmp_path)), Follower(str(tmp_path))
    log.append(lines_of("one"))
    assert read(follower) == ["one"]
    (tmp_path / "nexus.log").unlink()
    assert read(follower) == []
    log.append(lines_of("two"))
    assert read(follower) == ["two"]
    follower.close()


def test_what_is_not_a_line_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "nexus.log").write_bytes(b"rest of a line\n\xff\xfe\n" + lines_of("one") + b"x" * 1_000_000)
    follower = Follower(str(tmp_path))
    assert read(follower) == ["one"]
    follower.close()


def test_the_last_lines_that_are_shown(tmp_path: Path) -> None:
    LogFile(str(tmp_path)).append(lines_of("a1", "b1", "a2", "b2", "a3"))
    follower = Follower(str(tmp_path))
    lines = last_lines(follower, 2, lambda line: line["message"].startswith("a"))
    assert [line["message"] for line in lines] == ["a2", "a3"]
    follower.close()
