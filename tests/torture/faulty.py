"""File systems between SQLite and the real one: they fail, lie, or remember every write.

Each is a shim that is SQLite's default while it is installed, so the ledger under test is opened as
always. The index of the log (`-shm`) is memory, not a file, and does not pass through it.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import apsw
import msgspec

BUSY_MS = 10_000

Name = str | apsw.URIFilename | None


class Event(msgspec.Struct, frozen=True):
    """One thing that was done to a file; `data` of writes, `at` an offset, a size for truncations."""

    kind: str  # open, write, truncate, sync, delete, ack
    file: str  # its name without the folder; of an ack, the key
    at: int = 0
    data: bytes = b""


class Fault(msgspec.Struct):
    """What fails: from the `nth` call of a kind on, once or for ever. `seen` counts the calls."""

    call: str  # read, write, sync, truncate, size, delete, open
    nth: int = 0  # 0: none fails, they are only counted
    lasts: bool = False
    short: bool = False  # a part of the bytes gets through
    code: int = apsw.SQLITE_IOERR
    seen: int = 0

    def strikes(self, call: str) -> bool:
        if call != self.call:
            return False
        self.seen += 1
        return 0 < self.nth <= self.seen if self.lasts else self.seen == self.nth


class Shim(apsw.VFS):
    """The real file system, with everything told to `told` and failing as `fault` says."""

    number: ClassVar[int] = 0

    def __init__(self, fault: Fault | None, told: Callable[[Event], None]) -> None:
        Shim.number += 1
        self.base = apsw.vfs_names()[0]
        self.fault, self.told = fault, told
        super().__init__(f"torture-{Shim.number}", self.base, makedefault=True)

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        self.fail("open")
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        known = os.path.exists(path)
        file = ShimFile(self, os.path.basename(path), name, flags)
        if path and not known:
            self.told(Event("open", file.name))
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.fail("delete")
        super().xDelete(filename, syncdir)
        self.told(Event("delete", os.path.basename(filename)))

    def fail(self, call: str) -> None:
        if self.fault and self.fault.strikes(call):
            raise apsw.exception_for(self.fault.code)


class ShimFile(apsw.VFSFile):
    """One open file of a Shim."""

    def __init__(self, shim: Shim, basename: str, name: Name, flags: list[int]) -> None:
        self.shim, self.name = shim, basename
        super().__init__(shim.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self.shim.fail("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        fault, written = self.shim.fault, bytes(data)
        if fault and fault.strikes("write"):
            if fault.short:
                super().xWrite(written[: len(written) // 2], offset)
            raise apsw.exception_for(fault.code)
        super().xWrite(written, offset)
        self.shim.told(Event("write", self.name, offset, written))

    def xSync(self, flags: int) -> None:
        self.shim.fail("sync")
        super().xSync(flags)
        self.shim.told(Event("sync", self.name))

    def xTruncate(self, newsize: int) -> None:
        self.shim.fail("truncate")
        super().xTruncate(newsize)
        self.shim.told(Event("truncate", self.name, newsize))

    def xFileSize(self) -> int:
        self.shim.fail("size")
        return super().xFileSize()


@contextlib.contextmanager
def file_system(fault: Fault | None = None, told: Callable[[Event], None] = lambda _: None) -> Iterator[Shim]:
    """SQLite's file system is a Shim; close every ledger before the end."""
    shim = Shim(fault, told)
    try:
        yield shim
    finally:
        shim.unregister()


@contextlib.contextmanager
def careless() -> Iterator[None]:
    """Ledgers get `synchronous=NORMAL`, whatever they ask for: what a control group does wrong."""

    def allow(operation: int, name: str | None, value: str | None, *_: str | None) -> int:
        asked = operation == apsw.SQLITE_PRAGMA and (name or "").lower() == "synchronous" and value
        return apsw.SQLITE_IGNORE if asked else apsw.SQLITE_OK

    def hook(connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_MS)  # until it has its own patience
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.authorizer = allow

    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)
