"""Opens an SQLite database for reading only: by default, without changing any of its files.

To read the log of a database in WAL mode, SQLite needs the file `-shm`, which only programs that may write
create. If that file is missing, nobody has the database open. The database is then read as it is if its log
is empty. Otherwise its program has to open it first.

All connections of one process share one `-shm`, in the mode of the connection that opened it first. If the
process also writes the database, the reader opens `-shm` for writing too: otherwise every write would fail.
"""

from urllib.parse import quote

import apsw

from nexus_context.disk import files

_SIZE = 2  # of a stamp: the bytes of the file


def connect(path: str, *, owner: str, patience_ms: int, is_written_here: bool = False) -> apsw.Connection:
    """Open a database for reading only. apsw.Error if the database of the program `owner` cannot be read.

    `patience_ms` is how long a statement waits for a lock. `is_written_here`: this process may also write the
    database.
    """
    is_open = files.file_stamp(f"{path}-shm") is not None
    log = files.file_stamp(f"{path}-wal")
    if log is not None and log[_SIZE] and not is_open:
        raise apsw.CantOpenError(f"{owner} ended without writing its log to the database: start it once")
    index_mode = f"readonly_shm={int(not is_written_here)}"
    uri = f"file:{quote(path)}?mode=ro&{index_mode if is_open else 'immutable=1'}"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    connection.set_busy_timeout(patience_ms)
    return connection
