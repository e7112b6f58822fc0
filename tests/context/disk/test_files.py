"""The door to the disk: decoding rules, odd things in a file's place, caching by stamp, trust."""

import errno
import functools
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.disk import files, ownership
from nexus_context.disk.files import (
    BytesRead,
    FileRead,
    RealFiles,
    decode,
    list_directory,
    read_bytes,
    read_text,
    real_path,
    which,
)
from nexus_context.disk.ownership import shared_directory, trusted_directory, trusted_file, trusted_read
from nexus_context.folder.layers.walk import RealPaths

LONGEST_S = 0.2
LIMIT = 1000


def check(data: bytes, status: str, text: str | None, *problems: str) -> None:
    """What decoding makes of bytes; a problem reads `code@start-end severity: message`."""
    assert render(decode("/f", data)) == (status, text, list(problems))


def render(read: FileRead) -> tuple[str, str | None, list[str]]:
    lines = [
        f"{each.code}@{each.span.start}-{each.span.end} {each.severity.name}: {each.message}"
        for each in read.problems
    ]
    return read.status, read.text, lines


def timed(path: Path | str, limit: int = LIMIT) -> tuple[str, str | None, list[str]]:
    started = time.process_time()
    read = read_text(str(path), limit=limit)
    assert time.process_time() - started < LONGEST_S
    return render(read)


BOM = "layer.bom@0-0 WARNING: The file starts with a byte order mark. Save it as UTF-8 without BOM."


def test_decoding_utf8() -> None:
    check(b"", "loaded", "")
    check("aé😀\n".encode(), "loaded", "aé😀\n")
    check(b"\xef\xbb\xbf", "loaded", "", BOM)
    check(b"\xef\xbb\xbfa\n", "loaded", "a\n", BOM)


def test_decoding_line_ends() -> None:
    told = "which become LF in the prompt. Save with LF to see the same."
    check(b"a\nb\r\nc", "loaded", "a\nb\r\nc", f"layer.line-endings@3-5 HINT: Lines end with CRLF, {told}")
    check(b"a\rb", "loaded", "a\rb", f"layer.line-endings@1-2 HINT: Lines end with CR, {told}")


@pytest.mark.parametrize(
    "name", ["config.json", "x.code-workspace", "config.toml", "x.yaml", "opencode.jsonc"]
)
def test_line_ends_of_settings_are_nobodys_business(name: str) -> None:
    assert decode(f"/a/{name}", b"{\r\n}\r").problems == ()


def test_decoding_what_is_not_utf8() -> None:
    check(
        "é".encode() + b"\xe9t\xe9",
        "invalid",
        "é\ufffdt\ufffd",
        "layer.encoding@1-2 ERROR: The file is not UTF-8: byte 0xE9 at byte 2 (invalid continuation byte). "
        "Save the file as UTF-8.",
    )
    check(
        b"\xef\xbb\xbfa\xff",
        "invalid",
        "a\ufffd",
        BOM,
        "layer.encoding@1-2 ERROR: The file is not UTF-8: byte 0xFF at byte 4 (invalid start byte). "
        "Save the file as UTF-8.",
    )
    # a surrogate in UTF-8, as some Windows programs write it
    assert decode("/f", b"\xed\xa0\x80").status == "invalid"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_decoding_utf16_and_utf32(encoding: str, mark: str) -> None:
    check(
        (mark + '{"a": 1}').encode(encoding),
        "invalid",
        '{"a": 1}',
        f"layer.encoding@0-0 ERROR: The file is encoded in {encoding.upper()}, not UTF-8. Save it as UTF-8.",
    )


def test_decoding_nul() -> None:
    check(
        b"ab\0c\0\0",
        "invalid",
        "ab\0c\0\0",
        "layer.nul@2-3 ERROR: The file holds 3 NUL characters (U+0000): it is not text. Remove them.",
    )


def test_ordinary_and_missing(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    assert timed(tmp_path / "a.md") == ("loaded", "text", [])
    assert timed(tmp_path / "none" / "a.md") == ("missing", None, [])
    assert timed(tmp_path / "a.md" / "b.md") == ("missing", None, [])
    assert timed("") == ("missing", None, [])


def test_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "directory").mkdir()
    found = {name: timed(tmp_path / name) for name in ("fifo", "zero", "null", "socket", "directory")}
    assert found == {name: ("unreadable", None, [not_a_file(kind)]) for name, kind in KINDS.items()}


KINDS = {
    "fifo": "a named pipe (FIFO)",
    "zero": "a device",
    "null": "a device",
    "socket": "a socket",
    "directory": "a directory",
}


def not_a_file(kind: str) -> str:
    return (
        f"layer.not-a-file@0-0 ERROR: A file is expected here, this is {kind}. "
        "Replace it by an ordinary file or remove it."
    )


def test_file_that_becomes_a_fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    before = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda _path: before)
    assert timed(path) == ("unreadable", None, [not_a_file("a named pipe (FIFO)")])


TOO_LARGE = (
    "layer.too-large@0-0 ERROR: The file is too large: {}, and at most 1,000 bytes are read. Make it shorter."
)


def test_too_large(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.touch()
    os.truncate(path, 1 << 30)
    assert timed(path) == ("too-large", None, [TOO_LARGE.format("1,073,741,824 bytes")])
    path.write_bytes(b"x" * LIMIT)
    assert timed(path)[0] == "loaded"
    path.write_bytes(b"x" * (LIMIT + 1))
    assert timed(path) == ("too-large", None, [TOO_LARGE.format("1,001 bytes")])


def test_file_that_grows_while_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 10)
    asked: list[int] = []

    def endless(_descriptor: int, size: int) -> bytes:
        asked.append(size)
        return b"x" * min(size, 300)

    monkeypatch.setattr(os, "read", endless)
    assert timed(path)[2] == [TOO_LARGE.format("more than 1,000 bytes")]
    assert asked == [1001, 701, 401, 101]


def test_symlinks(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    loop = "its path is a loop of symbolic links; point the link at a real file or remove it"
    refused = f"layer.unreadable@0-0 ERROR: Cannot read the file: {loop}."
    assert timed(tmp_path / "a") == ("unreadable", None, [refused])
    assert timed(tmp_path / "dangling") == ("missing", None, [])
    assert timed(tmp_path / "link") == ("loaded", "text", [])


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.EACCES, "no permission to read it; give this user read access (chmod u+r) or remove the file"),
        (errno.EIO, "the disk reported a read error; check the disk, then save the file again"),
        (errno.ESTALE, "Stale file handle; check that it is an ordinary, readable file"),
    ],
)
@pytest.mark.parametrize("call", ["open", "read", "stat"])
def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, cause: str) -> None:
    path = tmp_path / "a"
    path.write_text("text")

    def refuse(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    assert timed(path) == (
        "unreadable",
        None,
        [f"layer.unreadable@0-0 ERROR: Cannot read the file: {cause}."],
    )


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000, "\udc80"])
def test_impossible_paths(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    assert timed(path)[0] in ("unreadable", "missing")
    assert not files.exists(path)
    assert not files.is_dir(path)
    assert trusted_directory(path) is not None
    assert which(name) is None


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "ok").write_text("text")
    (tmp_path / "big").write_bytes(b"x" * (LIMIT + 1))
    before = len(list(Path("/dev/fd").iterdir()))
    for name in ("ok", "big"):
        for _ in range(5):
            read_text(str(tmp_path / name), limit=LIMIT)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    monkeypatch.setattr(files, "SETTLED_NS", -(10**18))
    first = read_text(str(path), limit=LIMIT)
    monkeypatch.setattr(os, "open", None)
    assert read_text(str(path), limit=LIMIT, previous=first) is first


def test_fresh_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    first = read_text(str(path), limit=LIMIT)
    assert read_text(str(path), limit=LIMIT, previous=first) is first
    # the same size within the same tick of the clock: only the content tells
    path.write_text("TEXT")
    os.utime(path, ns=(0, (first.stamp or ())[3]))
    assert read_text(str(path), limit=LIMIT, previous=first).text == "TEXT"


def test_a_file_that_came_to_rest_is_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("text")
    fresh = read_text(str(path), limit=LIMIT)
    monkeypatch.setattr(files, "SETTLED_NS", -(10**18))
    rested = read_text(str(path), limit=LIMIT, previous=fresh)
    assert rested.text is fresh.text
    monkeypatch.setattr(os, "open", None)
    assert read_text(str(path), limit=LIMIT, previous=rested) is rested


TREE = {"a/b/file": None, "a/link": "b", "a/up": "..", "a/loop": "loop", "a/gone": "nowhere/x", "c": "a/link"}


@given(
    st.lists(st.sampled_from(["a", "b", "c", "file", "link", "up", "loop", "gone", "..", "."]), max_size=6)
)
def test_real_paths_are_those_of_the_system(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    root = tree(str(tmp_path_factory.getbasetemp() / "real-paths"))
    path = "/".join([root, *names])
    known = RealPaths()
    assert (known[path], known[path]) == (os.path.realpath(path), os.path.realpath(path))


@pytest.mark.parametrize("path", ["/", "//", "/..", "/a" * 3_000, "relative/path"])
def test_real_paths_of_odd_paths(path: str) -> None:
    assert RealPaths()[path] == os.path.realpath(path)


def test_real_paths_of_impossible_paths() -> None:
    with pytest.raises(ValueError, match=r"null (byte|character)"):
        RealPaths()["/a\0b"]


@functools.cache
def tree(root: str) -> str:
    """A directory with links: to a directory, upwards, in a circle, to nothing, by way of another."""
    for name, target in TREE.items():
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if target is None:
            path.write_text("text")
        else:
            path.symlink_to(target)
    return root


def opened(path: Path, real: Path | str | None = None, **options: Any) -> FileRead:
    """What is read of a file that lies at `real`."""
    return RealFiles().read(str(path), str(real or path), limit=LIMIT, **options)


def test_a_file_is_read_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "a/b"
    path.parent.mkdir()
    path.write_text("text")
    (tmp_path / "up").symlink_to("a")
    (tmp_path / "link").symlink_to("a/b")
    assert opened(path) == msgspec.structs.replace(read_text(str(path), limit=LIMIT), real=str(path))
    assert opened(tmp_path / "link", path).text == "text"
    assert opened(tmp_path / "none").status == "missing"
    for by in ("link", "up/b"):  # a link is on the way
        assert (opened(tmp_path / by).moved, opened(tmp_path / by).text) == (True, None)
    assert opened(path, tmp_path / "a/gone").moved
    moved = "is done, then save the file again."
    assert opened(path, tmp_path / "up/b").problems[0].message.endswith(moved)


def test_what_lay_elsewhere_is_not_what_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier text counts only for the file that it was read from."""
    monkeypatch.setattr(files, "SETTLED_NS", -(10**18))
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("text")
    link.symlink_to("a")
    before = opened(link, path)
    assert opened(link, path, previous=before) is before
    assert opened(link, link, previous=before).moved
    assert read_text(str(link), limit=LIMIT, previous=before) is before  # here links are followed


@pytest.mark.parametrize("count", [1, 40])
def test_few_directories_are_held_open(tmp_path: Path, count: int) -> None:
    before = descriptors()
    real = RealFiles()
    for number in range(count):
        path = tmp_path / "/".join("abcdefghijkl") / str(number) / "file"
        path.parent.mkdir(parents=True)
        path.write_text(str(number))
        assert real.read(str(path), str(path), limit=LIMIT).text == str(number)
        assert real.list_directory(str(path.parent)) == [("file", "file")]
    assert 0 < descriptors() - before <= 8
    real.close()
    assert descriptors() == before
    assert real.read(str(path), str(path), limit=LIMIT).status == "loaded"
    del real
    assert descriptors() == before


def test_a_directory_that_was_moved_away_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "a/file"
    path.parent.mkdir()
    path.write_text("old")
    real = RealFiles()
    assert real.read(str(path), str(path), limit=LIMIT).text == "old"
    (tmp_path / "a").rename(tmp_path / "b")
    path.parent.mkdir()
    path.with_name("other").write_text("new")
    other = str(path.with_name("other"))
    assert real.read(other, other, limit=LIMIT).moved
    assert real.read(other, other, limit=LIMIT).text == "new"


@pytest.mark.parametrize("by_steps", [True, False])
def test_directories_are_listed_where_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_steps: bool
) -> None:
    monkeypatch.setattr(files, "_BY_STEPS", by_steps)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").touch()
    (tmp_path / "link").symlink_to("a")
    real = RealFiles()
    assert real.list_directory(str(tmp_path / "a")) == [("file", "file")]
    assert [real.list_directory(str(tmp_path / name)) for name in ("link", "a/file", "no", "a\0b")] == [
        None
    ] * 4
    assert real.list_directory("/") == list_directory("/")


def test_where_directories_cannot_be_opened_from_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was opened is compared with what lies at its path (Windows)."""
    monkeypatch.setattr(files, "_BY_STEPS", False)
    path, outside = tmp_path / "a/file", tmp_path / "outside/file"
    for each, text in ((path, "text"), (outside, "from outside")):
        each.parent.mkdir()
        each.write_text(text)
    assert opened(path).text == "text"
    before = descriptors()
    system = os.open

    def swapped(at: str, flags: int) -> int:
        path.parent.rename(tmp_path / "b")
        path.parent.symlink_to("outside")
        return system(at, flags)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", swapped)
        assert (opened(path).moved, descriptors()) == (True, before)
    path.parent.unlink()
    (tmp_path / "b").rename(path.parent)

    def swapped_back(at: str, flags: int) -> int:
        descriptor = swapped(at, flags)
        path.parent.unlink()
        (tmp_path / "b").rename(path.parent)
        return descriptor

    monkeypatch.setattr(os, "open", swapped_back)
    assert (opened(path).moved, descriptors()) == (True, before)


def descriptors() -> int:
    """How many this process has open."""
    return len(os.listdir("/dev/fd"))


def test_real_paths_are_there_whatever_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that is something else by the time that it is read: `realpath` raises."""
    (tmp_path / "link").symlink_to("a")
    failing = iter([errno.EINVAL, errno.ENOENT])
    system = os.readlink

    def readlink(path: str) -> str:
        code = next(failing, None)
        if code is not None:
            raise OSError(code, os.strerror(code))
        return system(path)

    monkeypatch.setattr(os, "readlink", readlink)
    # from Python 3.13 on `realpath` does not raise: it takes the link for what it is not
    target = "link" if sys.version_info >= (3, 13) else "a"
    assert real_path(str(tmp_path / "link")) == str(tmp_path / target)
    failing = iter([errno.EINVAL] * 99)
    assert real_path(str(tmp_path / "x/../link")) == str(tmp_path / "link")


def test_changes_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "a"
    first = read_text(str(path), limit=LIMIT)
    assert read_text(str(path), limit=LIMIT, previous=first) is first
    path.write_text("text")
    second = read_text(str(path), limit=LIMIT, previous=first)
    replacement = tmp_path / "b"
    replacement.write_text("next")
    replacement.replace(path)
    third = read_text(str(path), limit=LIMIT, previous=second)
    path.unlink()
    fourth = read_text(str(path), limit=LIMIT, previous=third)
    assert [each.text for each in (first, second, third, fourth)] == [None, "text", "next", None]


class Info:
    """What a stat call says of owner and mode."""

    def __init__(self, uid: int, mode: int, inode: int = 1) -> None:
        self.st_uid, self.st_mode, self.st_ino = uid, mode, inode


@pytest.mark.parametrize(
    ("owner", "mode", "directory", "file"),
    [
        (1000, 0o40755, None, None),
        (0, 0o40755, None, None),
        (1001, 0o40755, "belongs to another user (uid 1001)", "belongs to another user (uid 1001)"),
        (1000, 0o40777, "is writable for everyone and not sticky", "is writable for everyone"),
        (0, 0o41777, None, "is writable for everyone"),
        (1001, 0o41777, "belongs to another user (uid 1001)", "belongs to another user (uid 1001)"),
        (1000, 0o40775, None, None),
    ],
)
def test_trust(
    monkeypatch: pytest.MonkeyPatch, owner: int, mode: int, directory: str | None, file: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "stat", lambda _path: Info(owner, mode))
    monkeypatch.setattr(os, "lstat", lambda _path: Info(owner, mode))
    monkeypatch.setattr(ownership, "is_dir", lambda _path: True)
    assert (trusted_directory("/d"), trusted_file("/d")) == (directory, file)


def test_trust_of_a_link_made_by_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "stat", lambda _path: Info(1000, 0o40755))
    monkeypatch.setattr(os, "lstat", lambda _path: Info(1001, 0o120777, inode=2))
    assert trusted_directory("/d") == "the symbolic link belongs to another user (uid 1001)"


def test_trust_on_the_disk(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "file").touch()
    assert [trusted_directory(str(tmp_path / name)) for name in (".", "open", "file", "none")] == [
        None,
        "is writable for everyone and not sticky",
        "is not a directory",
        "does not exist",
    ]
    open_to_all.chmod(0o1777)
    assert trusted_directory(str(open_to_all)) is None


def test_trust_in_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that was opened counts, whatever stands at its path afterwards."""
    path = tmp_path / "file"
    path.write_text("text")
    read = read_text(str(path), limit=LIMIT)
    assert read.owner == (os.geteuid(), path.stat().st_mode)
    assert trusted_read(read) is None
    planted = msgspec.structs.replace(read, owner=(4242, 0o100644))
    assert trusted_read(planted) == "belongs to another user (uid 4242)"
    assert trusted_read(msgspec.structs.replace(read, owner=(0, 0o100666))) == "is writable for everyone"
    path.unlink()
    assert trusted_read(planted) == "was replaced while it was read"
    assert trusted_read(FileRead(str(path), "loaded", "unsaved")) is None
    monkeypatch.delattr(os, "geteuid")
    assert trusted_read(planted) is None


def test_shared_directories(tmp_path: Path) -> None:
    found = {}
    for mode in (0o755, 0o777, 0o1777):
        tmp_path.chmod(mode)
        found[mode] = shared_directory(str(tmp_path))
    tmp_path.chmod(0o755)
    assert found == {0o755: False, 0o777: False, 0o1777: True}
    assert not shared_directory(f"{tmp_path}/none")


def test_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [which(name) for name in ("tool", "./tool", str(tool), "none", "")] == [
        str(tool),
        None,
        str(tool),
        None,
        None,
    ]
    assert which("tool", search="/none") is None
    assert which("tool", search=".") is None


def test_bytes_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(b"\x1f\x8b\xff\0")
    assert read_bytes(str(path), limit=4) == BytesRead(str(path), "loaded", b"\x1f\x8b\xff\0")
    refused = {
        str(path): "too-large",
        str(tmp_path): "unreadable",
        str(tmp_path / "no"): "missing",
        "a\0b": "unreadable",
    }
    for name, status in refused.items():
        read = read_bytes(name, limit=3)
        assert (read.status, read.data) == (status, None)
        assert [problem.path for problem in read.problems] == ([] if status == "missing" else [name])


def test_names_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").touch()
    (tmp_path / "c").symlink_to(tmp_path / "b")
    os.mkfifo(tmp_path / "d")
    listed = [("a", "file"), ("b", "directory"), ("c", "link"), ("d", "other")]
    assert list_directory(str(tmp_path)) == listed
    assert [list_directory(path) for path in (str(tmp_path / "a"), str(tmp_path / "no"), "a\0b")] == [
        None,
        None,
        None,
    ]
