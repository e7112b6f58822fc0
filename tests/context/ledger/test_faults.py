"""Ledgers that are newer, foreign, damaged, moved, full, locked, read-only: each is reported."""

import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from inline_snapshot import snapshot

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.ledger import connections, integrity, open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.location import place, workspace_of
from nexus_context.ledger.migrations import VERSION
from nexus_context.ledger.rows import message_of, permissions_of, permissions_text, row_of
from nexus_context.ledger.store import Ledger
from support.ledgers import FOLDER, append, history, ledger_in, turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger with a turn in it is, which nobody has open."""
    place = tmp_path / "state" / "ledger.db"
    with ledger_in(place) as ledger:
        append(ledger, "u1 a1")
    return place


def refused(code: str, *call: Any) -> str:
    """What is said."""
    with pytest.raises(LedgerError) as caught:
        call[0](*call[1:])
    assert caught.value.code == code
    return str(caught.value)


def changed(path: Path, *statements: str) -> None:
    """Do to the file what a failing disk might do: its time stays."""
    with unnoticed(path):
        connection = apsw.Connection(str(path))
        for statement in statements:
            connection.execute(statement)
        connection.close()


@contextmanager
def unnoticed(path: Path) -> Iterator[None]:
    """The time of a file stays as it is."""
    before = path.stat() if path.exists() else None
    yield
    if before is not None:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


# ---------------------------------------------------------------- place and rights


def test_only_the_user_can_read_it(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u2")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == {f"ledger.db{end}": 0o600 for end in ("", "-wal", "-shm", ".witness")}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    with ledger_in(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_its_place_is_a_path_or_named_by_the_environment_or_the_users_own(tmp_path: Path) -> None:
    assert place("/x/y.db", {"NEXUS_STATE": "/z"}) == "/x/y.db"
    assert place(None, {"NEXUS_STATE": "/z"}) == "/z/ledger.db"
    own = place(None, {})
    assert os.path.isabs(own) and own.endswith(os.path.join("nexus", "ledger.db"))
    ledger = open_ledger(environ={"NEXUS_STATE": str(tmp_path / "state")})
    assert (ledger.location, ledger.persists) == (str(tmp_path / "state" / "ledger.db"), True)
    ledger.close()


@pytest.mark.parametrize("where", ["{}/file/ledger.db", "{}/file/below/ledger.db", "{}"])
def test_where_nothing_can_be_written_it_is_in_memory(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").touch()
    with ledger_in(where.format(tmp_path)) as ledger:
        assert not ledger.persists
        assert (
            ledger.notice is not None
            and "NEXUS_STATE" in ledger.notice + "NEXUS_STATE" * where.startswith("s")
        )
        append(ledger, "u1 a1")
        assert history(ledger) == "u1 a1"
        assert [hit.seq for hit in ledger.pages.search("a1")] == [1]


@pytest.mark.parametrize("opened", [False, True], ids=["closed", "open elsewhere"])
def test_what_cannot_be_written_is_read(path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool) -> None:
    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied")

    other = open_ledger(str(path))
    append(other, "u2")
    if not opened:
        other.close()
    monkeypatch.setattr(integrity, "check_header", denied)
    with ledger_in(path) as ledger:
        assert ledger.notice is not None and "Permission denied" in ledger.notice
        assert (ledger.persists, history(ledger)) == (False, "u1 a1 u2")
        append(ledger, "u3")
        assert history(ledger) == "u1 a1 u2 u3"
    other.close()


def test_a_folder_whose_path_is_no_text_has_sessions(path: Path, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("the system has no such folders")
    workspace = workspace_of(os.fsdecode(folder))
    assert workspace == f"{os.path.realpath(tmp_path)}/caf\\xe9"
    with ledger_in(path) as ledger:
        ledger.append(workspace, "main", turn("u1"))
        assert [one.workspace for one in ledger.sessions(workspace)] == [workspace]
    with pytest.raises(ValueError, match="null"):
        workspace_of("a\0b")


# ---------------------------------------------------------------- newer and strange


@pytest.mark.parametrize("beside", [False, True], ids=["in the header", "beside"])
def test_a_newer_ledger_is_left_as_it_is(path: Path, beside: bool) -> None:
    holder = apsw.Connection(str(path)) if beside else None
    if holder is not None:
        holder.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        holder.execute(f"PRAGMA user_version = {VERSION + 1}")
        holder.close()
    else:
        changed(path, f"PRAGMA user_version = {VERSION + 1}")
    before = contents(path.parent)
    assert refused("ledger-newer", open_ledger, str(path)) == (
        f"The ledger {path} was written by a newer version of Nexus (its format is {VERSION + 1}, this "
        f"version supports {VERSION}) and is left unchanged. Install the newer version, or set "
        "NEXUS_STATE to another folder."
    )
    after = contents(path.parent)
    after.pop("ledger.db-shm", None)
    before.pop("ledger.db-shm", None)
    assert after == before


def test_a_ledger_that_becomes_newer_is_not_written_any_more(path: Path) -> None:
    with ledger_in(path) as ledger:
        changed(path, f"PRAGMA user_version = {VERSION + 1}")
        refused("ledger-newer", append, ledger, "u2")
        refused("ledger-newer", history, ledger)


@pytest.mark.parametrize(
    "statements",
    [("PRAGMA application_id = 7",), ("CREATE TABLE other (a)",), ("PRAGMA user_version = 1",)],
    ids=str,
)
def test_another_programs_database_is_left_as_it_is(tmp_path: Path, statements: tuple[str, ...]) -> None:
    place = tmp_path / "other.db"
    changed(place, "VACUUM", *statements)
    before = contents(tmp_path)
    refused("ledger-foreign", open_ledger, str(place))
    assert contents(tmp_path) == before


# ---------------------------------------------------------------- damage


def notice_of(ledger: Ledger, path: Path, aside: Path | None = None) -> str:
    """A ledger's notice, without the paths of this test."""
    notice = str(ledger.notice)
    return (notice if aside is None else notice.replace(str(aside), "<aside>")).replace(str(path), "<ledger>")


def overwritten(path: Path, at: int, data: bytes) -> None:
    with unnoticed(path), path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("data", [b"no database at all", b"x" * 8192, b"SQLite format 3\0"])
def test_what_is_no_ledger_is_set_aside_and_told(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with ledger_in(path) as ledger:
        (aside,) = path.parent.glob("*.broken-*Z")
        assert notice_of(ledger, path, aside) == snapshot(
            "The ledger <ledger> was damaged: it was set aside as <aside>; a new one was "
            "started. Recover what can be read: nexus sessions salvage <aside>"
        )
        assert ledger.persists and ledger.sessions() == []
        append(ledger, "u1")
        assert aside.read_bytes() == data
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1")


def test_damage_that_is_found_later_is_set_aside_too(path: Path) -> None:
    with ledger_in(path) as ledger:
        ledger.import_turns(FOLDER, "long", [turn(f"u{n}") for n in range(2_000)])
    size = path.stat().st_size
    overwritten(path, size // 8192 * 4096, b"\xff" * (size // 4))  # not the newest turn, which is looked at
    damaged = path.read_bytes()
    with ledger_in(path) as ledger:
        assert "broken-" not in str(ledger.notice)
        refused("ledger-corrupt", history, ledger, "long")
        (aside,) = path.parent.glob("*.broken-*Z")
        assert notice_of(ledger, path, aside) == snapshot(
            "The ledger <ledger> was damaged: it was set aside as <aside>; a new one was "
            "started. Recover what can be read: nexus sessions salvage <aside>"
        )
        assert ledger.sessions() == []
        append(ledger, "u1")
        assert history(ledger) == "u1"
    assert aside.read_bytes() == damaged


def test_a_damaged_index_of_words_is_made_anew(path: Path) -> None:
    changed(path, "UPDATE found_data SET block = x'ffffffffffff' WHERE id > 1")
    with ledger_in(path) as ledger:
        refused("ledger-corrupt", ledger.pages.search, "a1")
        assert notice_of(ledger, path) == snapshot(
            "An index of the ledger <ledger> was damaged and has been rebuilt; nothing is lost."
        )
        assert [hit.seq for hit in ledger.pages.search("a1")] == [1]
        assert history(ledger) == "u1 a1"


BAD_TEXT = (
    "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET"
    " sql = CAST(replace(CAST(sql AS BLOB), 'toolset', x'746fef6c736574') AS TEXT) WHERE name = 'turn'"
)


@pytest.mark.parametrize(
    "damage",
    ["ALTER TABLE turn RENAME toolset TO toolsit", BAD_TEXT, "DROP TABLE counter", "DROP TABLE found"],
)
def test_a_damaged_schema_is_set_aside(path: Path, damage: str) -> None:
    changed(path, damage)
    with ledger_in(path) as ledger:
        refused("ledger-corrupt", append, ledger, "u2")
        (aside,) = path.parent.glob("*.broken-*Z")
        assert notice_of(ledger, path, aside) == snapshot(
            "The ledger <ledger> was damaged: it was set aside as <aside>; a new one was "
            "started. Recover what can be read: nexus sessions salvage <aside>"
        )
        append(ledger, "u3")
        assert history(ledger) == "u3"


def test_a_damaged_index_of_sessions_is_made_anew(path: Path) -> None:
    connection = apsw.Connection(str(path))
    sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_session_1'"
    page = connection.execute(sql).get
    connection.close()
    assert isinstance(page, int)
    at = (page - 1) * 4096
    overwritten(path, at, path.read_bytes()[at : at + 4096].replace(b"main", b"mbin"))
    with ledger_in(path) as ledger:
        refused("ledger-corrupt", append, ledger, "u2")
        assert notice_of(ledger, path) == snapshot(
            "An index of the ledger <ledger> was damaged and has been rebuilt; nothing is lost."
        )
        append(ledger, "u2")
        assert history(ledger) == "u1 a1 u2"


def test_a_thread_that_seems_shorter_than_it_is_is_not_written_over(path: Path) -> None:
    with ledger_in(path) as ledger:
        changed(path, "UPDATE thread SET seq = 0, messages = 0")
        refused("ledger-corrupt", append, ledger, "u2")
        refused("ledger-corrupt", history, ledger)
        refused("ledger-corrupt", ledger.turns, FOLDER, "main")
        append(ledger, "u2", "other")


def test_turns_that_are_missing_are_not_said_to_be_deleted(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u2")
        changed(path, "DELETE FROM turn WHERE id & 1 = 0")
        refused("ledger-corrupt", lambda: list(ledger.turns(FOLDER, "main")))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE message SET said = 'u2'",
        "UPDATE message SET said = CAST(x'ff' AS TEXT)",
        "UPDATE message SET role = 'usar'",
        "UPDATE message SET tokens = 11",
        "UPDATE message SET length = 1",
        "UPDATE message SET data = '{'",
        "UPDATE message SET counter = 2",
        "UPDATE message SET id = id + 1000",
        "UPDATE turn SET context = '{'",
        "DELETE FROM message WHERE id & 1",
    ],
)
def test_what_is_not_what_was_written_is_not_shown(path: Path, damage: str) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1 a1", "other", context={})
        changed(path, damage + _only_first(damage))
        said = refused("ledger-corrupt", lambda: (history(ledger), list(ledger.turns(FOLDER, "main"))))
        assert "'main'" in said and "salvage" in said
        append(ledger, "u3", "third")
        assert (history(ledger, "other"), history(ledger, "third")) == ("u1 a1", "u3")


def _only_first(damage: str) -> str:
    """Only the first session's rows: those of the first thread."""
    return f"{' AND' if 'WHERE' in damage else ' WHERE'} id < {2 << 32}"


CALL = ToolCall("c1", "write_file", {"path": "notes.md", "lines": [1, "zwei"]})
CALLED = (
    '{"role":"assistant","toolCalls":[{"id":"c1","name":"write_file",'
    '"arguments":{"path":"notes.md","lines":[1,"zwei"]}}]}'
)
PARTS = '{"role":"tool","content":[{"type":"text","text":"done"}],"toolCallId":"c1"}'
HALF = '{"role": "user", "content": "half \\ud800"}'


@pytest.mark.parametrize(
    ("message", "columns"),
    [
        (Message("user", "naïve"), ("user", 11, 5, "naïve", None, 2702918534)),
        (
            Message("assistant", "Well.", (CALL,)),
            ("assistant", 11, 5, "Well.\nwrite_file\nnotes.md\nzwei", CALLED, 1773016788),
        ),
        (
            Message("tool", [{"type": "text", "text": "done"}], tool_call_id="c1"),
            ("tool", 11, None, "done", PARTS, 1261005462),
        ),
        (Message("user", "half \ufffd"), ("user", 11, 6, "half \ufffd", None, 286658533)),
    ],
    ids=["text", "calls", "parts", "half a pair"],
)
def test_a_row_is_as_this_version_writes_it(message: Message, columns: tuple[Any, ...]) -> None:
    """Whoever changes this gives the ledger a new version: old rows are read as they were written."""
    assert VERSION == 11
    number, turn, role, tokens, length, said, data, crc = row_of(message, (3 << 32) + 7, 5, 11)
    assert columns == (role, tokens, length, said, data, crc)
    raw = None if data is None else data.encode()
    assert message_of((number, turn, role, tokens, length, said.encode(), raw, crc)) == message


@pytest.mark.parametrize(
    ("permissions", "expected"), [("\ud800 x", "\ufffd x"), ({"level": "\ud800"}, {"level": "\ufffd"})]
)
def test_half_a_pair_in_what_was_granted_becomes_a_mark(permissions: object, expected: object) -> None:
    assert permissions_of(permissions_text(permissions)) == expected


def test_half_a_pair_that_an_earlier_version_wrote_heals() -> None:
    columns = ((3 << 32) + 7, 5, "user", 11, None, b"half ?", HALF.encode(), 249061213)
    assert message_of(columns) == Message("user", "half \ufffd")


# ---------------------------------------------------------------- moved away


@pytest.mark.parametrize("move", [Path.unlink, lambda path: path.rename(path.with_name("elsewhere"))])
def test_a_file_that_was_moved_away_is_not_written_any_more(path: Path, move: Callable[[Path], Any]) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u2")
        before = ledger.version()
        move(path)
        assert append(ledger, "u3").head.seq == 1
        assert ledger.version() != before
        assert history(ledger) == "u3"
    with ledger_in(path) as ledger:
        assert history(ledger) == "u3"


# ---------------------------------------------------------------- full, held, closed


def test_a_full_disk_is_told_and_nothing_is_half_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[apsw.Connection] = []
    monkeypatch.setattr(apsw, "connection_hooks", [connections.append])
    with ledger_in(path) as ledger:
        connection = connections[-1]  # the one that writes
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages + 2)
        large = "u" + "x" * 100_000
        assert refused("ledger-full", append, ledger, large).replace(str(path), "<ledger>") == snapshot(
            "No space is left for the ledger <ledger>; nothing was written. Free some space "
            "there and try again."
        )
        refused("ledger-full", ledger.import_turns, FOLDER, "new", [turn("u1"), turn(large)])
        assert (history(ledger), [one.name for one in ledger.sessions()]) == ("u1 a1", ["main"])
        connection.pragma("max_page_count", 1_000_000)
        assert append(ledger, large).head.seq == 2


def test_a_ledger_that_another_holds_for_too_long_is_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HELD", 0.2)
    with ledger_in(path) as ledger:
        holder = apsw.Connection(str(path))
        holder.execute("BEGIN IMMEDIATE")
        assert refused("ledger-busy", append, ledger, "u2") == (
            f"Another program keeps the ledger {path} locked; nothing was written. Try again in a moment. "
            "If it stays locked, close what else has the file open (an SQLite browser, a backup, a nexus "
            "that hangs)."
        )
        assert history(ledger) == "u1 a1"
        holder.close()
        append(ledger, "u2")


def test_who_waits_for_others_that_write_goes_on_waiting(path: Path) -> None:
    log = Path(f"{path}-wal")
    log.write_bytes(b"")
    patience = connections.Patience(str(path), held=0.0)
    for size in range(1, 4):
        log.write_bytes(b"x" * size)  # somebody wrote since
        assert patience(size)
    assert not patience(4)
    assert connections.HELD + 0.5 < 3  # with the start of a command: the goal is 3 s


def test_a_closed_ledger_says_so(path: Path) -> None:
    ledger = open_ledger(str(path))
    reading = ledger.turns(FOLDER, "main")
    ledger.close()
    ledger.close()
    for call in (ledger.version, ledger.sessions, lambda: append(ledger, "u2"), lambda: next(reading)):
        refused("ledger-closed", call)


# ---------------------------------------------------------------- many at once


def test_many_may_begin_a_ledger_at_once(tmp_path: Path) -> None:
    def work(number: int) -> None:
        with ledger_in(tmp_path / "new" / "ledger.db") as ledger:
            for _ in range(5):
                append(ledger, f"u{number}")

    run(*(lambda number=number: work(number) for number in range(8)))
    with ledger_in(tmp_path / "new" / "ledger.db") as ledger:
        assert [one.seq for one in ledger.turns(FOLDER, "main")] == list(range(1, 41))


def test_readers_and_writers_of_one_ledger_may_be_in_many_threads(path: Path) -> None:
    with ledger_in(path) as one, ledger_in(path) as two:

        def write(ledger: Any) -> None:
            for number in range(40):
                append(ledger, f"u{number}")

        def read() -> None:
            for _ in range(40):
                found = one.history(FOLDER, "main")
                assert found is not None
                assert [held.position for held in found.messages] == list(range(found.head.messages))

        run(lambda: write(one), lambda: write(two), lambda: write(one), read, read)
        assert [turn.seq for turn in two.turns(FOLDER, "main")] == list(range(1, 122))


def test_the_version_tells_that_another_wrote(path: Path) -> None:
    with ledger_in(path) as one, ledger_in(path) as two:
        before = one.version()
        assert one.version() == before
        append(two, "u2")
        assert one.version() != before


def test_a_deleted_word_is_not_in_the_files_any_more(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "uSecretWord")
        append(ledger, "u5", "other")
        assert any(b"SecretWord" in data for data in contents(path.parent).values())
        ledger.delete(FOLDER, "main")
        found = contents(path.parent)
    assert not any(word in data for word in (b"SecretWord", b"secretword") for data in found.values())


def run(*jobs: Callable[[], None]) -> None:
    """Do all at once; the first exception is raised."""
    failed: list[BaseException] = []

    def one(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001  # raised below
            failed.append(error)

    threads = [threading.Thread(target=one, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_a_message_with_a_field_of_a_later_version_is_read() -> None:
    number, turn, role, tokens, length, said, data, _ = row_of(Message("user", "Hi", name="ada"), 1, 1, 2)
    assert data is not None
    later = data.replace("{", '{"mood":"calm",', 1)
    crc = zlib.crc32(later.encode(), zlib.crc32(said.encode(), number + turn + tokens + (length or 0)))
    row = (number, turn, role, tokens, length, said.encode(), later.encode(), crc)
    assert message_of(row) == Message("user", "Hi", name="ada")
