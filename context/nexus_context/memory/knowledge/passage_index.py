"""Stores the index of a workspace's knowledge in an SQLite file that can be rebuilt at any time.

1. The table `passages` has a file's passages as they are, and the full-text table `words` has them as
   searchable words. The table `vectors` has their embeddings by the digest of the passage: equal passages
   share a vector, and a passage that moved keeps it.
2. If anything is wrong with the index (not a database, damaged, another version), it is emptied in place,
   since other processes may have it open. If it cannot be written, it is kept in memory.
3. One connection writes, another reads. Processes may share the file: a writer takes the lock at once and
   briefly, and others wait for it.
"""

import contextlib
import hashlib
import itertools
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import NexusError, Span

if TYPE_CHECKING:
    import apsw

VERSION = 2
"""The version of the tables and of how texts become passages and words; another number rebuilds all."""

BUSY_MS = 30_000
MOST_EMPTIED = 2
"""How often one process empties an index before it leaves it to others and keeps its own in memory."""

_MEMORY = "file:/nexus-knowledge-"
_NUMBERS = itertools.count(1)
_APPLICATION = 0x4E58_4B42  # "NXKB"
_WRITTEN = VERSION, _APPLICATION
_SCHEMA = """
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE passages (
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
  heading TEXT NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX passages_of_file ON passages (file);
CREATE TABLE vectors (
  model BLOB NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL, UNIQUE (model, digest)
);
CREATE VIRTUAL TABLE words USING fts5 (
  heading, body, content='', contentless_delete=1, columnsize=1,
  tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(3.0, 1.0)');  -- a word in a heading counts for three
"""


class Indexed(msgspec.Struct, frozen=True):
    """What the index stores about a file. `stamp` is that of `files.FileRead`, and `digest` is of the file's
    text.
    """

    stamp: tuple[int, ...]
    digest: bytes


class IndexedPassage(msgspec.Struct, frozen=True):
    """A passage as it is written to the index, with the searchable words of its heading and of its text."""

    heading: str
    text: str
    span: Span
    heading_words: str
    words: str


class Changed(msgspec.Struct, frozen=True):
    """A file to write to the index. If `passages` is None, its text is unchanged and only its stamp is
    written.
    """

    path: str
    indexed: Indexed
    passages: tuple[IndexedPassage, ...] | None


class PassageHit(msgspec.Struct, frozen=True):
    """A passage that a search returned. A better passage has a higher `score`; `digest` is of its heading and
    text.
    """

    id: int
    digest: bytes
    path: str
    heading: str
    text: str
    span: Span
    score: float


class IndexLostError(NexusError):
    """The index was emptied, or is now kept in memory. The caller must start again."""


def index_path(workspace: str, environ: Mapping[str, str]) -> str:
    """Return the path of the index of a workspace. `workspace` is an absolute real path."""
    name = hashlib.sha256(workspace.encode("utf-8", "surrogateescape")).hexdigest()[:24] + ".db"
    state = environ.get("NEXUS_STATE")
    if not state:
        from platformdirs import user_cache_path  # only a knowledge base needs it

        state = str(user_cache_path("nexus", appauthor=False))
    return os.path.join(os.path.abspath(state), "knowledge", name)


class IndexBusyError(NexusError):
    """Another process has held the index for too long. The caller should try again later."""


class KnowledgeIndex:
    """An index, which is opened on first use. Every method may block on the disk, and any thread may call it.

    A method raises IndexLostError if the index had to be emptied.
    """

    def __init__(self, path: str) -> None:
        self.location = path
        """The file, or the name of a temporary database in memory if the file is unusable."""
        self._writing = threading.Lock()
        self._reading = threading.Lock()  # taken before the other one
        self._writer: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._read_from = ""
        self._emptied = 0

    def indexed_files(self, paths: Collection[str] | None = None) -> dict[str, Indexed]:
        """Return the indexed files: path → stamp and digest. If `paths` is not None, return only those of
        these paths.
        """
        query = "SELECT path, stamp, digest FROM files"
        with self._write() as connection:
            if paths is None:
                rows = list(connection.execute(query))
            else:
                rows = [row for path in paths for row in connection.execute(f"{query} WHERE path=?", (path,))]
        return {path: Indexed(tuple(map(int, stamp.split())), digest) for path, stamp, digest in rows}

    def has_below(self, directory: str) -> bool:
        """Whether the index has a file beneath this directory."""
        start = directory.rstrip(os.sep) + os.sep
        query = "SELECT 1 FROM files WHERE path >= ? AND path < ? LIMIT 1"
        with self._write() as connection:
            return bool(list(connection.execute(query, (start, start[:-1] + chr(ord(os.sep) + 1)))))

    def write(self, changed: Sequence[Changed], removed: Collection[str] = ()) -> None:
        """Add or replace the `changed` files and remove the `removed` ones, in one transaction."""
        with self._write() as connection, _transaction(connection):
            if connection.pragma("user_version") != VERSION:
                raise _OtherVersionError
            for path in removed:
                _remove(connection, path)
            for changed_file in changed:
                _put(connection, changed_file)

    def totals(self) -> tuple[int, int]:
        """Return the number of files and the number of passages."""
        with self._read() as connection:
            query = "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM passages)"
            ((files, passages),) = connection.execute(query)
        return files, passages

    def frequency(self, term: str, most: int) -> int:
        """Return the number of passages with a full-text term. Counting ends at `most`."""
        query = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        with self._read() as connection:
            ((count,),) = connection.execute(query, (term, most))
        return int(count)

    def best(self, expression: str, limit: int) -> list[PassageHit]:
        """Return at most `limit` passages that match a full-text expression, the best by BM25 first."""
        query = (
            "SELECT p.id, p.digest, f.path, p.heading, p.body, p.start, p.end, -w.rank FROM "
            "(SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?) w "
            "JOIN passages p ON p.id = w.rowid JOIN files f ON f.id = p.file ORDER BY w.rank, f.path, p.start"
        )
        with self._read() as connection:
            return [_hit(row) for row in connection.execute(query, (expression, limit))]

    def containing(self, term: str) -> set[int]:
        """Return the ids of all passages with a full-text term."""
        with self._read() as connection:
            rows = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (term,))
            return {number for (number,) in rows}

    def with_digest(self, digest: bytes, score: float) -> list[PassageHit]:
        """Return the passages with this digest, in the order of their files. Each gets this `score`."""
        query = (
            "SELECT p.id, p.digest, f.path, p.heading, p.body, p.start, p.end, ? "
            "FROM passages p JOIN files f ON f.id = p.file WHERE p.digest = ? ORDER BY f.path, p.start"
        )
        with self._read() as connection:
            return [_hit(row) for row in connection.execute(query, (score, digest))]

    def change(self) -> tuple[int, int]:
        """Return a value that differs after each change of the index, whichever process made it."""
        with self._read() as connection:
            return id(connection), int(connection.pragma("data_version"))

    def without_vector(self, model: bytes, size: int, most: int) -> tuple[list[bytes], bool]:
        """Return the digests of passages that have no vector of `size` bytes, in the order of their files.
        Also return whether there are more than `most` different passages.

        Only the first `most` different passages are examined.
        """
        query = (
            "SELECT d.digest, length(v.vector) FROM "
            "(SELECT digest, min(id) AS first FROM passages GROUP BY digest ORDER BY first LIMIT ?) d "
            "LEFT JOIN vectors v ON v.model = ? AND v.digest = d.digest ORDER BY d.first"
        )
        with self._read() as connection:
            rows = list(connection.execute(query, (most + 1, model)))
        return [digest for digest, length in rows[:most] if length != size], len(rows) > most

    def texts(self, digests: Collection[bytes]) -> dict[bytes, tuple[str, str]]:
        """Return heading and text of the passages with these digests: digest → (heading, text)."""
        query = "SELECT heading, body FROM passages WHERE digest = ? LIMIT 1"
        with self._read() as connection:
            return {
                digest: (heading, body)
                for digest in digests
                for heading, body in connection.execute(query, (digest,))
            }

    def vectors(self, model: bytes) -> list[tuple[bytes, bytes]]:
        """Return the stored vectors of a model as pairs of a passage's digest and its vector."""
        with self._read() as connection:
            return list(connection.execute("SELECT digest, vector FROM vectors WHERE model = ?", (model,)))

    def write_vectors(self, model: bytes, vectors: Mapping[bytes, bytes]) -> None:
        """Add or replace vectors of a model. `vectors` maps the digest of a passage to its vector."""
        with self._write() as connection, _transaction(connection):
            connection.executemany(
                "INSERT OR REPLACE INTO vectors (model, digest, vector) VALUES (?, ?, ?)",
                ((model, digest, vector) for digest, vector in vectors.items()),
            )

    def drop_vectors(self, model: bytes, damaged: Collection[bytes]) -> None:
        """Drop the `damaged` vectors of this model, all vectors of other models, and those without a passage.

        Also create the table index that finds passages by digest, which is not needed without vectors.
        """
        query = "DELETE FROM vectors WHERE model <> ? OR digest NOT IN (SELECT digest FROM passages)"
        with self._write() as connection, _transaction(connection):
            connection.execute("CREATE INDEX IF NOT EXISTS passages_by_digest ON passages (digest)")
            connection.execute(query, (model,))
            for digest in damaged:
                connection.execute("DELETE FROM vectors WHERE model = ? AND digest = ?", (model, digest))

    def close(self) -> None:
        """Close the file. The next call of a method opens it again."""
        with self._reading, self._writing:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    @contextlib.contextmanager
    def _write(self) -> "Iterator[apsw.Connection]":
        with self._writing, self._recovering():
            if self._writer is None:
                self._writer = _open(self.location)
            yield self._writer

    @contextlib.contextmanager
    def _read(self) -> "Iterator[apsw.Connection]":
        with self._reading:
            if self._reader is None or self._read_from != self.location:
                with self._write():  # creates the tables, and determines their location
                    self._reader, self._read_from = _connect(self.location), self.location
            try:
                yield self._reader
            except Exception as error:
                self._reader = None
                with self._writing, self._recovering():
                    raise error

    @contextlib.contextmanager
    def _recovering(self) -> Iterator[None]:
        """Empty the index, or continue in memory, if the file cannot be used as it is."""
        import apsw

        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, _OtherVersionError) as error:
            if isinstance(error, apsw.SQLError) and not str(error).startswith("no such"):
                raise  # a bug, not different tables
            self._writer = None
            self._emptied += 1
            if self._emptied > MOST_EMPTIED or not _emptied(self.location):
                self.location = _in_memory()
            raise IndexLostError(f"the index was emptied: {error!r}") from error
        except apsw.BusyError as error:
            raise IndexBusyError(f"the index is written by another process: {error}") from error
        except _unusable() as error:
            self._writer = None
            self.location = _in_memory()
            raise IndexLostError(f"the index is kept in memory: {error!r}") from error


def _hit(row: Any) -> PassageHit:
    number, digest, path, heading, body, start, end, score = row
    return PassageHit(number, digest, path, heading, text=body, span=Span(start, end), score=score)


class _OtherVersionError(Exception):
    """The tables are of another version."""


def _unusable() -> tuple[type[Exception], ...]:
    import apsw

    return (
        OSError,
        apsw.CantOpenError,
        apsw.FullError,
        apsw.IOError,
        apsw.PermissionsError,
        apsw.ReadOnlyError,
    )


def _connect(location: str) -> "apsw.Connection":
    import apsw

    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(location, flags=flags)
    connection.set_busy_timeout(BUSY_MS)
    return connection


def _open(location: str) -> "apsw.Connection":
    """A connection for writing to a database that has the tables."""
    import apsw

    on_disk = not location.startswith(_MEMORY)
    if on_disk:
        os.makedirs(os.path.dirname(location), mode=0o700, exist_ok=True)
    connection = _connect(location)
    if on_disk:
        os.chmod(location, 0o600)  # a new one is still empty; SQLite gives its other files the same mode
    with contextlib.suppress(apsw.BusyError):  # another process is doing the same
        connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "off")  # damage by a power cut only costs a rebuild
    with _transaction(connection):
        if not list(connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1")):
            connection.execute(_SCHEMA)
            connection.pragma("application_id", _APPLICATION)
            connection.pragma("user_version", VERSION)
        elif (connection.pragma("user_version"), connection.pragma("application_id")) != _WRITTEN:
            raise _OtherVersionError
    return connection


def _emptied(location: str) -> bool:
    """Empty a database in place, whatever it holds; other connections go on. False if that is impossible."""
    import apsw

    try:
        with contextlib.closing(_connect(location)) as connection:
            with contextlib.suppress(apsw.Error):
                connection.pragma("user_version")  # SQLite requires a read first
            connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
            connection.execute("VACUUM")
            connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
    except apsw.Error:
        return False
    return True


def _in_memory() -> str:
    return f"{_MEMORY}{next(_NUMBERS)}?vfs=memdb"


@contextlib.contextmanager
def _transaction(connection: "apsw.Connection") -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _remove(connection: "apsw.Connection", path: str) -> None:
    for (file,) in list(connection.execute("SELECT id FROM files WHERE path=?", (path,))):
        connection.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE file=?)", (file,))
        connection.execute("DELETE FROM passages WHERE file=?", (file,))
        connection.execute("DELETE FROM files WHERE id=?", (file,))


def _put(connection: "apsw.Connection", changed: Changed) -> None:
    path, indexed = changed.path, changed.indexed
    stamp = " ".join(map(str, indexed.stamp))
    if changed.passages is None:
        query = "UPDATE files SET stamp=? WHERE path=? AND digest=?"
        connection.execute(query, (stamp, path, indexed.digest))
        return
    _remove(connection, path)
    query = "INSERT INTO files (path, stamp, digest) VALUES (?, ?, ?)"
    connection.execute(query, (path, stamp, indexed.digest))
    file = connection.last_insert_rowid()
    for passage in changed.passages:
        connection.execute(
            "INSERT INTO passages (file, start, end, heading, body, digest) VALUES (?, ?, ?, ?, ?, ?)",
            (file, *passage.span, passage.heading, passage.text, _digest(passage)),
        )
        connection.execute(
            "INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)",
            (connection.last_insert_rowid(), passage.heading_words, passage.words),
        )


def _digest(passage: IndexedPassage) -> bytes:
    return hashlib.blake2b(f"{passage.heading}\n{passage.text}".encode(), digest_size=16).digest()
