"""A ledger that was cut, emptied, replaced or lacks acknowledged turns is reported and set aside."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.ledger import integrity, open_ledger, opening, rows, witness
from nexus_context.ledger.connections import identity
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.witness import Mark, Witness
from support.ledgers import FOLDER, append, history, ledger_in, make_old, turn

ENDS = ("", "-wal", ".witness")
Files = dict[str, bytes]


class Moments:
    """The files of one ledger: `old` with one turn, `log` with a log beside it, `new`, `closed`."""

    def __init__(self, path: Path) -> None:
        with ledger_in(path) as ledger:
            append(ledger, "u1 a1")
        self.old = files(path)
        ledger = open_ledger(str(path))
        append(ledger, "u2")
        self.log = files(path)
        for number in range(40):
            append(ledger, f"u{number}" + "long" * 2_000)
        append(ledger, "u3", "other")
        self.new = files(path)
        ledger.close()
        self.closed = files(path)
        for end in ENDS:
            path.with_name(path.name + end).unlink(missing_ok=True)


def files(path: Path) -> Files:
    return {end: beside.read_bytes() for end in ENDS if (beside := Path(f"{path}{end}")).exists()}


def put(path: Path, contents: Files) -> None:
    for end, data in contents.items():
        Path(f"{path}{end}").write_bytes(data)


def check(path: Path, contents: Files, reason: str | None) -> None:
    """Open what is there: `reason` is told, and everything is set aside; or nothing is told, for None."""
    put(path, contents)
    before = {end: data for end, data in contents.items() if data}
    with ledger_in(path) as ledger:
        if reason is None:
            assert ledger.notice is None
            return
        assert ledger.notice is not None and reason in ledger.notice
        assert "nexus sessions salvage" in ledger.notice and "verify --accept" in ledger.notice
        assert ledger.sessions() == []
        append(ledger, "u1")
    aside = next(path.parent.glob("*.broken-*Z"))
    assert f"salvage {aside}." in ledger.notice
    assert {end: data for end, data in files(aside).items() if data} == before
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1")


GONE, OLDER, OTHER = "empty or gone", "was acknowledged", "another ledger"


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (lambda at: at.new | {"": b""}, GONE),
        (lambda at: {end: data for end, data in at.new.items() if end != ""}, GONE),
        (lambda at: {"": b"", "-wal": at.new["-wal"]}, GONE),
        (lambda at: {"-wal": at.new["-wal"]}, GONE),
        (lambda at: at.closed | {"": b""}, GONE),
        (lambda at: {".witness": at.closed[".witness"]}, GONE),
        (lambda at: at.closed | {"": at.old[""]}, OLDER),
        (lambda at: at.log | {".witness": at.new[".witness"]}, OLDER),
        (lambda at: {end: data for end, data in at.new.items() if end != "-wal"}, OLDER),
        (lambda at: at.new | {"-wal": at.log["-wal"]}, OLDER),
    ],
    ids=[
        "emptied beside a log",
        "removed beside a log",
        "emptied beside a log, no witness",
        "removed beside a log, no witness",
        "emptied",
        "removed",
        "older file",
        "older file and log",
        "log removed",
        "older log",
    ],
)
def test_what_lacks_turns_is_set_aside(path: Path, attack: Callable[[Moments], Files], reason: str) -> None:
    check(path, attack(Moments(path)), reason)


def test_another_ledger_is_set_aside(path: Path, tmp_path: Path) -> None:
    moments = Moments(path)
    with ledger_in(tmp_path / "other.db") as ledger:
        ledger.import_turns(FOLDER, "main", [turn("u9")])
    check(path, moments.closed | {"": (tmp_path / "other.db").read_bytes()}, OTHER)


def test_a_copy_that_went_on_by_itself_is_set_aside(path: Path, tmp_path: Path) -> None:
    moments = Moments(path)
    put(tmp_path / "copy.db", {"": moments.old[""]})
    with ledger_in(tmp_path / "copy.db") as ledger:
        for _ in range(50):
            append(ledger, "u9")
    check(path, moments.closed | {"": (tmp_path / "copy.db").read_bytes()}, "continued from an older copy")


def test_a_ledger_of_an_older_version_is_older(path: Path) -> None:
    moments = Moments(path)
    put(path, {"": moments.closed[""]})
    make_old(path, 3)
    check(path, files(path) | {".witness": moments.closed[".witness"]}, "older")


@pytest.mark.parametrize(
    "contents",
    [
        lambda at: at.closed,
        lambda at: at.new,
        lambda at: at.old,
        lambda at: {end: data for end, data in at.closed.items() if end != ".witness"},
        lambda at: at.closed | {".witness": at.old[".witness"]},
        lambda at: at.new | {".witness": at.log[".witness"]},
        lambda at: at.closed | {".witness": b""},
        lambda at: at.closed | {".witness": bytes(4096)},
        lambda at: at.closed | {".witness": b"\xff" * 5_000},
        lambda at: at.closed | {".witness": at.closed[".witness"][:200]},
        lambda at: at.closed | {".witness": at.closed[".witness"][:64] + b"\xff" * 4032},
        lambda at: {},
    ],
    ids=[
        "copied",
        "copied while it was open",
        "restored with its witness",
        "no witness",
        "witness lags",
        "witness lags, log beside",
        "witness is empty",
        "witness is zeros",
        "witness is garbage",
        "witness is cut",
        "records are garbage",
        "nothing is there",
    ],
)
def test_no_false_alarms(path: Path, contents: Callable[[Moments], Files]) -> None:
    check(path, contents(Moments(path)), None)


def test_what_is_emptied_while_it_is_open_is_set_aside(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    with ledger_in(path) as ledger:
        append(ledger, "u2")
        log = Path(f"{path}-wal").read_bytes()
        path.write_bytes(b"")
        with pytest.raises(LedgerError, match="damaged"):
            list(ledger.turns(FOLDER, "main"))
        assert GONE in str(ledger.notice)
        append(ledger, "u3")
        assert history(ledger) == "u3"
    (aside,) = path.parent.glob("*.broken-*Z")
    assert files(aside)["-wal"].startswith(log)


def test_what_may_be_lost_is_not_reported(path: Path) -> None:
    """Sessions that were deleted, renamed, cleared; a ledger without a session."""
    with ledger_in(path) as ledger:
        assert not Path(f"{path}.witness").exists()
        append(ledger, "u1")
        append(ledger, "u2", "other")
        ledger.delete(FOLDER, "other")
        ledger.rename(FOLDER, "main", "first")
        ledger.clear(FOLDER, "first")
        ledger.delete(FOLDER, "first")
    check(path, {}, None)


def test_a_ledger_that_was_removed_with_its_witness_is_begun_anew(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    for each in path.parent.iterdir():
        each.unlink()
    check(path, {}, None)


def test_whoever_died_before_the_witness_heard_is_caught_up_with(path: Path) -> None:
    moments = Moments(path)
    put(path, moments.new | {".witness": moments.log[".witness"]})
    behind = witness.claim(str(path))
    with ledger_in(path) as ledger:
        assert ledger.notice is None
        claim = witness.claim(str(path))
        assert behind and claim and claim.mark.number > behind.mark.number


def test_an_append_that_is_sent_again_is_known_to_the_witness(path: Path) -> None:
    """It may have been committed by a process that died before the witness heard."""
    with ledger_in(path) as one, ledger_in(path) as two:
        append(one, "u1")
        before = Path(f"{path}.witness").read_bytes()
        two.append(FOLDER, "main", turn("u2", key="k"))
        Path(f"{path}.witness").write_bytes(before)
        assert one.append(FOLDER, "main", turn("u2", key="k")).repeated
        claim = witness.claim(str(path))
        assert claim is not None and claim.mark.number == 2


def test_two_windows_keep_one_witness(path: Path) -> None:
    with ledger_in(path) as one, ledger_in(path) as two:
        for number in range(witness.SLOTS + 5):
            append((one, two)[number % 2], f"u{number}")
            claim = witness.claim(str(path))
            assert claim is not None and claim.mark.number == number + 1


def test_who_still_has_the_ledger_that_was_set_aside_does_not_speak_for_the_new_one(path: Path) -> None:
    with ledger_in(path) as one:
        for number in range(5):
            append(one, f"u{number}")
        aside = path.with_name("aside.db")
        for end in ("-wal", "-shm", "", ".witness"):
            Path(f"{path}{end}").rename(f"{aside}{end}")
        with ledger_in(path) as two:
            append(two, "u1")
            append(one, "u2")
            assert history(one) == "u1 u2"
    check(path, {}, None)


def test_a_ledger_goes_on_without_a_witness_that_can_be_written(path: Path) -> None:
    Path(f"{path}.witness").mkdir(parents=True)
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        assert (ledger.notice, history(ledger)) == (None, "u1")


def test_a_file_that_another_program_changed_is_looked_through(path: Path) -> None:
    with ledger_in(path) as ledger:
        for number in range(5):
            append(ledger, f"u{number}")
        append(ledger, "u1", "other")
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE turn SET created = 'yesterday' WHERE id = (1 << 32) + 3")
    connection.close()
    with ledger_in(path) as ledger:
        assert str(ledger.notice).replace(str(path), "<ledger>") == snapshot(
            "The ledger <ledger> was changed by another program: the session 'main' of "
            "/work/project is not what was written from turn 3 on. nexus sessions verify checks "
            "all sessions."
        )
        assert len(ledger.sessions()) == 2
    check(path, {}, None)  # it is told once


def test_what_others_write_while_a_file_is_looked_through_raises_no_alarm(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        append(ledger, "u1", "other")
    os.utime(path, ns=(0, 0))

    def write_before_turns_are_read(_: object, statement: str, __: object) -> bool:
        if "compaction" in statement and "FROM turn" in statement and not others_wrote:
            others_wrote.append(statement)
            with ledger_in(path) as ledger:
                append(ledger, "u2")
                ledger.delete(FOLDER, "other")
        return True

    def trace(connection: apsw.Connection) -> None:
        connection.set_exec_trace(write_before_turns_are_read)

    others_wrote: list[str] = []
    monkeypatch.setattr(apsw, "connection_hooks", [trace])
    with ledger_in(path) as ledger:
        assert others_wrote
        assert (ledger.notice, history(ledger)) == (None, "u1 u2")


def test_what_others_write_while_a_suspect_ledger_is_compared_does_not_set_it_aside(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        late = [lambda: ledger.delete(FOLDER, "main")]

        def meanwhile(*given: Any) -> Any:
            while late:
                late.pop()()
            return rows.value(*given)

        monkeypatch.setattr("nexus_context.ledger.witness.value", meanwhile)
        assert integrity.set_aside(str(path), identity(str(path)), "it seems to lack a write") is None
        assert not late


@pytest.mark.parametrize(
    "damage", ["DROP TABLE ledger", "DELETE FROM ledger", "UPDATE ledger SET id = x'00'", "DROP TABLE mark"]
)
def test_a_damaged_ledger_that_cannot_be_written_is_not_in_the_way(
    path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    Moments(path)
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    connection = apsw.Connection(str(path))
    connection.execute(damage)
    connection.close()
    monkeypatch.setattr(os, "rename", refuse)  # so that it cannot be set aside
    ledger = open_ledger(str(path))
    assert "Read-only file system" in str(ledger.notice)
    assert "Its content" in str(ledger.notice) or "It lacks" in str(ledger.notice)
    append(ledger, "u7", "new")
    assert history(ledger, "new") == "u7"
    ledger.close()


@pytest.mark.parametrize("has_witness", [True, False])
@pytest.mark.parametrize("statement", ["UPDATE ledger SET id = 'text'", "UPDATE mark SET token = 'text'"])
def test_an_id_or_a_mark_of_another_kind_is_damage(path: Path, statement: str, *, has_witness: bool) -> None:
    """As where two pages of the file were exchanged."""
    Moments(path)
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    connection = apsw.Connection(str(path))
    connection.pragma("writable_schema", 1)
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '')")
    connection.close()
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()
    if not has_witness:
        path.with_name(path.name + ".witness").unlink()
    with ledger_in(path) as ledger:
        assert ledger.notice is not None
        append(ledger, "u7", "new")


def test_a_large_file_that_was_changed_is_not_looked_through_for_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_in(path) as ledger:
        ledger.import_turns(FOLDER, "main", [turn(f"u{n}") for n in range(5_000)])
    monkeypatch.setattr(opening, "LOOK", -1.0)
    check(path, files(path), None)


def test_in_a_folder_that_cannot_be_written_the_log_of_an_emptied_file_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = Moments(path)
    put(path, moments.new | {"": b""})

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(integrity, "set_aside_remains", denied)
    with ledger_in(path) as ledger:
        assert not ledger.persists
        assert GONE in str(ledger.notice)
    assert files(path) == moments.new | {"": b""}


# ---------------------------------------------------------------- accepting


def test_a_backup_is_restored_by_accepting_it(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.backup(str(backup))
        append(ledger, "u2")
    shutil.copy(backup, path)
    with ledger_in(path) as ledger:
        aside = next(path.parent.glob("*.broken-*Z"))
        append(ledger, "u9")
    where, replaced = opening.accept(str(path), {}, str(aside))
    assert where == str(path) and replaced is not None
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1")
        append(ledger, "u3")
    with ledger_in(replaced) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u9")
    check(path, {}, None)


def test_what_is_in_place_is_accepted(path: Path) -> None:
    moments = Moments(path)
    put(path, moments.closed | {"": moments.old[""]})
    assert opening.accept(str(path), {}) == (str(path), None)
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1 a1")


@pytest.mark.parametrize(
    ("data", "code"), [(b"", "ledger-foreign"), (b"x" * 200, "ledger-foreign"), (None, "ledger-foreign")]
)
def test_what_is_no_ledger_is_not_accepted(path: Path, data: bytes | None, code: str) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    other = path.with_name("other")
    if data is not None:
        other.write_bytes(data)
    with pytest.raises(LedgerError) as caught:
        opening.accept(str(path), {}, str(other))
    assert caught.value.code == code
    check(path, {}, None)


def test_a_damaged_backup_is_not_accepted(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.backup(str(backup))
    data = bytearray(backup.read_bytes())
    data[len(data) // 2 : -100] = b"\xff" * (len(data) - len(data) // 2 - 100)
    backup.write_bytes(data)
    with pytest.raises(LedgerError) as caught:
        opening.accept(str(path), {}, str(backup))
    assert (caught.value.code, backup.exists()) == ("ledger-corrupt", True)
    check(path, {}, None)


@pytest.mark.parametrize("name", ["ledger.db", "link.db"])
def test_what_is_in_place_is_accepted_by_its_name_too(path: Path, name: str) -> None:
    moments = Moments(path)
    put(path, moments.closed | {"": moments.old[""]})
    path.with_name("link.db").symlink_to(path)
    assert opening.accept(str(path), {}, str(path.with_name(name))) == (str(path), None)
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1 a1")


def test_what_cannot_be_moved_leaves_the_ledger_in_its_place(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = tmp_path / "other file system" / "backup.db"
    backup.parent.mkdir()
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.backup(str(backup))
        append(ledger, "u2")
    move = os.rename

    def rename(source: str, target: str) -> None:
        if str(backup.parent) in source:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        move(source, target)

    with monkeypatch.context() as patched, pytest.raises(LedgerError) as caught:
        patched.setattr(os, "rename", rename)
        opening.accept(str(path), {}, str(backup))
    assert f"Copy it to {path.parent} first" in str(caught.value)
    assert sorted(each.name for each in path.parent.glob("*.db*")) == [
        "ledger.db",
        "ledger.db.lock",
        "ledger.db.witness",
    ]
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1 u2")


def test_a_backup_is_accepted_where_there_is_no_ledger_yet(path: Path, tmp_path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.backup(str(tmp_path / "backup.db"))
    new = tmp_path / "another machine" / "nexus" / "ledger.db"
    assert opening.accept(str(new), {}, str(tmp_path / "backup.db")) == (str(new), None)
    check(new, {}, None)


# ---------------------------------------------------------------- the file


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=80),
    st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=4),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_witness_never_claims_more_than_was_recorded(
    tmp_path: Path, numbers: list[int], damage: list[tuple[int, int]]
) -> None:
    path = tmp_path / "ledger.db"
    Path(f"{path}.witness").unlink(missing_ok=True)
    ledger = bytes(range(16))
    for number in numbers:
        one = Witness(str(path))  # as each process has its own
        one.record(ledger, Mark(number, number))
        one.close()
    claim = witness.claim(str(path))
    assert claim is not None and (claim.ledger, claim.mark.number) == (ledger, max(numbers))
    data = bytearray(Path(f"{path}.witness").read_bytes())
    for at, value in damage:
        data[at] = value
    Path(f"{path}.witness").write_bytes(data)
    torn = witness.claim(str(path))
    assert torn is None or torn.mark.number in {0, *numbers}
