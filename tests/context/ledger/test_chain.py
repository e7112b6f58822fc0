"""The chain of turns: a changed, removed or added turn is located; backups are verified."""

import stat
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.ledger import chain
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from support.ledgers import FOLDER, append, compaction, history, ledger_in, make_old, new_ledger, turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger: `main` of six turns, `fork` behind its third, `other`."""
    place = tmp_path / "ledger.db"
    with ledger_in(place) as ledger:
        append(ledger, "u1 a1", model="m", context={"é": 1})
        append(ledger, "u2 a2")
        third = append(ledger, "u3")
        ledger.compact(FOLDER, "main", compaction("s1", 3, (0, 1)))
        ledger.undo(FOLDER, "main")
        append(ledger, "u4 a4")
        ledger.fork(FOLDER, "main", "fork", turn=third.turn)
        append(ledger, "u5", "fork")
        append(ledger, "u6", "other")
    return place


def check(path: Path, damage: str, **broken: int) -> None:
    """`broken`: sessions with the first turn that is not what was written; all others are sound."""
    with ledger_in(path) as ledger:
        other = apsw.Connection(str(path))
        other.execute(f"PRAGMA foreign_keys = OFF; {damage}")
        other.close()
        result = ledger.upkeep.verify()
    assert {one.session: one.broken for one in result.sessions if one.broken is not None} == broken
    assert result.sound == (not broken)
    assert all(one.reason for one in result.sessions if one.broken)


# turns of `main` have the ids (1 << 32) + seq, those of `fork` alone (2 << 32) + seq
@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        ("SELECT 1", {}),
        ("UPDATE turn SET created = 'x' WHERE id = (1 << 32) + 2", {"main": 2, "fork": 2}),
        ("UPDATE turn SET created = 'x' WHERE id = (1 << 32) + 4", {"main": 4}),
        ("UPDATE turn SET model = NULL WHERE id = (1 << 32) + 1", {"main": 1, "fork": 1}),
        ("UPDATE turn SET context = '{}' WHERE id = (1 << 32) + 1", {"main": 1, "fork": 1}),
        ("UPDATE turn SET sum = x'00' WHERE id = (1 << 32) + 6", {"main": 6}),
        ("UPDATE turn SET sum = NULL WHERE id = (1 << 32) + 6", {"main": 6}),
        ("UPDATE compaction SET receipt = '{}' WHERE turn = (1 << 32) + 4", {"main": 4}),
        ("DELETE FROM turn WHERE id = (1 << 32) + 2", {"main": 2, "fork": 2}),
        ("DELETE FROM turn WHERE id = (1 << 32) + 6", {"main": 6}),
        ("DELETE FROM turn WHERE id = (1 << 32) + 3", {"main": 3, "fork": 3}),
        ("DELETE FROM turn WHERE id > (2 << 32)", {"fork": 4, "other": 1}),
        ("DELETE FROM message WHERE id = (1 << 32) + 2", {"main": 2, "fork": 2}),
        ("UPDATE message SET said = 'u3' WHERE id = (1 << 32) + 2", {"main": 2, "fork": 2}),
        ("UPDATE message SET counter = 2 WHERE id = (1 << 32) + 2", {"main": 2, "fork": 2}),
        ("UPDATE counter SET name = 'x'", {"main": 1, "fork": 1, "other": 1}),
        ("UPDATE thread SET seq = 5 WHERE id = 1", {"main": 6}),
        ("UPDATE thread SET tokens = 0 WHERE id = 1", {"main": 6}),
        ("UPDATE thread SET base_seq = 2 WHERE id = 2", {"fork": 2}),
        ("UPDATE thread SET base_seq = 99 WHERE id = 2", {"fork": 99}),
        ("UPDATE turn SET created = CAST(x'ff' AS TEXT) WHERE id = (1 << 32) + 5", {"main": 5}),
        (
            "UPDATE message SET crc = crc + 1, tokens = tokens + 1 WHERE id = (1 << 32) + 7",
            {"main": 6},
        ),
    ],
)
def test_what_is_not_what_was_written_is_found_at_its_turn(
    path: Path, damage: str, broken: dict[str, int]
) -> None:
    check(path, damage, **broken)


def test_a_sound_turn_of_another_session_does_not_fit(path: Path) -> None:
    """Its own sum is right; that of the turn behind it covers another one."""
    with ledger_in(path) as ledger:
        for session in ("left", "right"):
            append(ledger, "u1", session, model=session)
            append(ledger, "u2", session)
    damage = """
        UPDATE turn SET (created, model, sum) =
            (SELECT created, model, sum FROM turn WHERE id = (5 << 32) + 1) WHERE id = (4 << 32) + 1
    """
    check(path, damage, left=2)


@given(
    st.lists(
        st.sampled_from(["append", "extend", "compact", "undo", "fork", "clear", "import", "delete"]),
        max_size=14,
    )
)
@settings(max_examples=30, deadline=None)
def test_whatever_is_written_verifies(steps: list[str]) -> None:
    with new_ledger() as ledger:
        append(ledger, "u0")
        for number, step in enumerate(steps):
            _do(ledger, step, number)
            result = ledger.upkeep.verify()
            assert result.sound, result
            assert result.unchained == 0


def _do(ledger: Ledger, step: str, number: int) -> None:
    head = ledger.head(FOLDER, "main")
    assert head is not None
    match step:
        case "append":
            append(ledger, f"u{number} a{number}")
        case "extend":
            append(ledger, f"a{number}", extends=head)
        case "compact" if head.seq:
            ledger.compact(FOLDER, "main", compaction(f"s{number}", head.seq))
        case "undo":
            try:
                ledger.undo(FOLDER, "main")
            except LedgerError:
                append(ledger, "u1")
        case "fork":
            ledger.fork(FOLDER, "main", f"fork {number}")
            append(ledger, "u1", f"fork {number}")
        case "clear":
            ledger.clear(FOLDER, "main")
        case "import":
            ledger.import_turns(FOLDER, f"import {number}", list(ledger.turns(FOLDER, "main")))
        case "delete":
            ledger.delete(FOLDER, "main")
            append(ledger, "u1")


@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        ("UPDATE turn SET sum = NULL WHERE id = (1 << 32) + 8", {"main": 8}),
        ("UPDATE turn SET tokens = 1 WHERE id = (1 << 32) + 3", {"main": 4, "fork": 3}),
    ],
)
def test_turns_of_the_version_before_have_no_sum_and_the_next_one_begins_the_chain(
    path: Path, damage: str, broken: dict[str, int]
) -> None:
    make_old(path, 3)
    with ledger_in(path) as ledger:
        assert ledger.notice is None
        append(ledger, "u7")
        append(ledger, "u8")
        result = ledger.upkeep.verify()
        assert (result.sound, result.unchained) == (True, 8)
    check(path, damage, **broken)


def test_a_sum_is_as_this_version_writes_it() -> None:
    """Whoever changes this gives the ledger a new version: old turns would not be what was written."""
    columns = ("query", 0, 1, 0, 5, None, 0, None, "2026-01-01T00:00:00Z", "m", None, None, None, None, "{}")
    message = chain.MessageColumns(0, "user", 5, "letters", 2, "hé".encode(), None)
    first = chain.turn_sum(None, columns, None, [message])
    second = chain.turn_sum(first, columns, ("s", None, 5, "[]", "{}"), [message._replace(data=b"{}")])
    assert (first.hex(), second.hex()) == (FIRST, SECOND)


FIRST, SECOND = "fa6fd0df53976d6e4407041bd6bad0ab", "438d70832272ddd2dde45c7dc4be2c0a"


def test_damage_of_the_file_is_told(path: Path) -> None:
    with ledger_in(path) as ledger:
        other = apsw.Connection(str(path))
        other.execute("DELETE FROM found_data WHERE id > 10")
        other.close()
        result = ledger.upkeep.verify()
    assert not result.sound
    assert any("found" in line for line in result.damage)
    assert [one.broken for one in result.sessions] == [None, None, None]


# ---------------------------------------------------------------- backups


def test_a_backup_is_one_file_that_only_the_user_can_read(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    with ledger_in(path) as ledger:
        append(ledger, "u7")
        assert ledger.upkeep.backup(str(target)) == 3
        before = history(ledger)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("backup")] == ["backup.db"]
    with ledger_in(target) as copy:
        assert (copy.notice, history(copy), copy.upkeep.verify().sound) == (None, before, True)


def test_nothing_is_overwritten_and_nothing_half_written_stays(path: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with ledger_in(path) as ledger:
        with pytest.raises(FileExistsError):
            ledger.upkeep.backup(str(taken))
        with pytest.raises(FileNotFoundError):
            ledger.upkeep.backup(str(tmp_path / "nowhere" / "backup.db"))
        other = apsw.Connection(str(path))
        other.execute("UPDATE turn SET created = 'x' WHERE id & 7 = 2")
        other.close()
        before = sorted(tmp_path.iterdir())
        with pytest.raises(LedgerError, match="at turn 2") as caught:
            ledger.upkeep.backup(str(tmp_path / "backup.db"))
        assert caught.value.code == "ledger-corrupt"
        assert sorted(tmp_path.iterdir()) == before
    assert taken.read_text() == "mine"


def test_a_backup_is_of_one_moment_while_others_write(path: Path, tmp_path: Path) -> None:
    done = threading.Event()

    def write() -> None:
        with ledger_in(path) as ledger:
            for number in range(60):
                append(ledger, f"u{number}" + "x" * 5_000, "other")
        done.set()

    writer = threading.Thread(target=write)
    with ledger_in(path) as ledger:
        writer.start()
        copies: list[Any] = []
        while not done.is_set() or not copies:
            copies.append(tmp_path / f"backup-{len(copies)}.db")
            ledger.upkeep.backup(str(copies[-1]))
        writer.join()
    for each in copies:
        with ledger_in(each) as copy:
            head = copy.head(FOLDER, "other")
            assert head is not None
            assert [one.seq for one in copy.turns(FOLDER, "other")] == list(range(1, head.seq + 1))
            assert copy.upkeep.verify().sound


def test_a_ledger_in_memory_can_be_verified(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with ledger_in(tmp_path / "file" / "ledger.db") as ledger:
        ledger.append(FOLDER, "main", turn("u1"))
        assert ledger.upkeep.verify().sound
