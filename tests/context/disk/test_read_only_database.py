"""A database that is only read: what the reader leaves to the programs that write it."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nexus_context.disk import read_only_database

KILLED = """
import apsw, os, signal, sys
connection = apsw.Connection(sys.argv[1])
connection.pragma("journal_mode", "wal")
connection.execute("CREATE TABLE turn(text); INSERT INTO turn VALUES ('first')")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left_behind(tmp_path: Path) -> str:
    """A database whose program was killed: its log and its `-shm` are still there."""
    database = str(tmp_path / "ledger.db")
    subprocess.run([sys.executable, "-c", KILLED, database], check=False)
    assert Path(f"{database}-shm").exists()
    return database


def test_a_reader_does_not_keep_its_own_process_from_writing(left_behind: str) -> None:
    reader = read_only_database.connect(left_behind, owner="Nexus", patience_ms=50, is_written_here=True)
    with closing(reader), closing(apsw.Connection(left_behind)) as writer:
        assert reader.execute("SELECT text FROM turn").get == "first"
        writer.execute("INSERT INTO turn VALUES ('second')")
        assert reader.execute("SELECT count(*) FROM turn").get == 2
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute("DELETE FROM turn")


def test_the_database_of_another_program_is_left_unchanged(left_behind: str) -> None:
    folder = Path(left_behind).parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with closing(read_only_database.connect(left_behind, owner="opencode", patience_ms=50)) as reader:
        assert reader.execute("SELECT text FROM turn").get == "first"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
