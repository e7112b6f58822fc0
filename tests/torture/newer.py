"""A ledger of a newer version, another program's database: refused clearly, not a byte changed."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw

from nexus_context.ledger.errors import LedgerError
from torture.figures import Figure, Outcome, Watch, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, opened, turn

NEWER = 999
LIKE = ("newer", "version")  # what the message has to speak of


def run(_: int = 1) -> Outcome:
    """A newer one that was closed, one that another program has open, and a database that is no ledger."""
    watch = Watch()
    wrong: list[str] = []
    touched = refused = 0
    with tempfile.TemporaryDirectory(prefix="nexus-newer-") as root:
        for name, make in (("closed", _closed), ("in use", _in_use), ("foreign", _foreign)):
            path = Path(root) / name / NAME
            path.parent.mkdir(mode=0o700)
            with make(path):
                before = _contents(path.parent)
                error = _refusal(path)
                after = _contents(path.parent)
            touched += before != after
            refused += error is not None
            wrong += [f"{name}: {line}" for line in _unclear(error, name)]
            if before != after:
                wrong.append(f"{name}: {sorted(before)} became {sorted(after)}, or other bytes")
    figures = (
        Figure("ledgers of a newer version or another program", 3),
        Figure("refused", refused, at_least=3),
        Figure("touched, or files made beside them", touched, at_most=0),
        nothing_wrong(wrong),
    )
    return Outcome("newer ledger", figures, tuple(wrong), seconds=watch.seconds)


def _refusal(path: Path) -> LedgerError | None:
    try:
        with opened(path):
            return None
    except LedgerError as error:
        return error


def _unclear(error: LedgerError | None, name: str) -> list[str]:
    if error is None:
        return ["was opened"]
    wrong = [] if str(error.code) in ("ledger-newer", "ledger-foreign") else [f"is called {error.code}"]
    if name != "foreign" and not all(word in str(error) for word in LIKE):
        wrong.append(f"is refused without saying why: {error}")
    return wrong


@contextlib.contextmanager
def _closed(path: Path) -> Iterator[None]:
    with opened(path) as ledger:
        ledger.append(WORKSPACE, MAIN, turn("one"))
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {NEWER}")
    connection.close()
    yield


@contextlib.contextmanager
def _in_use(path: Path) -> Iterator[None]:
    """The newer program has it open: what makes it a newer one is still in the log beside it."""
    with opened(path) as ledger:
        ledger.append(WORKSPACE, MAIN, turn("one"))
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA user_version = {NEWER}")
        yield


@contextlib.contextmanager
def _foreign(path: Path) -> Iterator[None]:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')")
    yield


def _contents(folder: Path) -> dict[str, str]:
    """Every file's digest; the index of the log is shared memory, where readers leave marks."""
    return {
        file.name: "" if file.name.endswith("-shm") else hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
    }
