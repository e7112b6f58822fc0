"""Lines from both ends of a file that another program writes."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.disk.files import Lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\0", b"\r", "ü".encode()]), max_size=60).map(
        b"".join
    ),
    block=st.integers(1, 7),
    most=st.integers(1, 80),
    head=st.integers(1, 160),
)
def test_the_last_lines_come_first(tmp_path: Path, data: bytes, block: int, most: int, head: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    lines = Lines(str(file), most=most, head=head)
    lines.BLOCK = block
    complete = data.split(b"\n")[:-1]
    backwards = list(lines)
    assert backwards == complete[::-1][: len(backwards)]
    seen = len(data.rpartition(b"\n")[2]) + sum(len(line) + 1 for line in backwards)
    missing = len(complete) - len(backwards)
    # a line begins behind a line end, which has to be among the bytes, too
    assert not missing or seen + len(complete[missing - 1]) + 1 >= most
    assert lines.first == data[:head].split(b"\n")[:-1]


def test_only_the_start_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x\n" + b"y" * Lines.HEAD + b"\n")
    assert Lines(str(file), most=100).first == [b"x"]


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe"])
def test_no_regular_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "one"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(OSError, match=str(path)):
        Lines(str(path), most=100)
