"""Daily backups: when one is made, which stay, what a deletion removes, and what restoring one says."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from nexus_context.ledger import daily_backups, migrations, open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.restore import MissingTurns, restore
from nexus_context.ledger.store import Ledger
from support.ledgers import FOLDER, append, history, ledger_in, ledger_in_memory
from support.waiting import block_until


def days(path: Path) -> list[str]:
    return [each.day for each in daily_backups.list_backups(str(path))]


def be_on_day(monkeypatch: pytest.MonkeyPatch, number: int) -> str:
    day = f"{datetime(2026, 11, 20, tzinfo=UTC) + timedelta(days=number):%Y-%m-%d}"
    monkeypatch.setattr(daily_backups, "_today", lambda: day)
    return day


def back_up(path: Path) -> bool:
    with ledger_in(path) as ledger:
        return ledger.upkeep.back_up_daily() is not None


def test_three_stay_and_none_is_made_of_what_did_not_change(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not back_up(path)  # there is no session yet
    for number in range(5):
        be_on_day(monkeypatch, number)
        with ledger_in(path) as ledger:
            append(ledger, f"u{number}")
            assert ledger.upkeep.back_up_daily() is not None
            append(ledger, f"a{number}")
            assert ledger.upkeep.back_up_daily() is None  # one a day
            undone = ledger.upkeep.verify()
            assert undone.sound
    assert days(path) == ["2026-11-24", "2026-11-23", "2026-11-22"]
    be_on_day(monkeypatch, 6)
    assert back_up(path)
    be_on_day(monkeypatch, 7)
    assert not back_up(path)  # nothing was written
    directory = Path(daily_backups.directory_of(str(path)))
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in directory.iterdir()} == {0o600}
    assert len(list(directory.iterdir())) == 3


@pytest.mark.parametrize(
    ("name", "limit"), [("LARGEST", 10_000), ("RESERVE", 1 << 60)], ids=["large", "no room"]
)
def test_none_is_made_of_a_large_ledger_or_without_room(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    monkeypatch.setattr(daily_backups, name, limit)
    assert not back_up(path)
    with ledger_in_memory() as memory:
        append(memory, "u1")
        assert memory.upkeep.back_up_daily() is None


def test_a_damaged_ledger_pushes_out_no_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_on_day(monkeypatch, 0)
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        append(ledger, "u2", "other")
        ledger.upkeep.back_up_daily()
        be_on_day(monkeypatch, 1)
        with ledger_in(path) as second:
            append(second, "a1")
        change(path, "UPDATE message SET tokens = 7 WHERE said = 'u2'")
        with pytest.raises(LedgerError) as caught:
            ledger.upkeep.back_up_daily()
    assert caught.value.code == "ledger-corrupt"
    assert (days(path), len(os.listdir(daily_backups.directory_of(str(path))))) == (["2026-11-20"], 1)


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def test_a_ledger_begun_anew_pushes_out_no_last_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        be_on_day(monkeypatch, number)
        with ledger_in(path) as ledger:
            append(ledger, f"u{number}")
            ledger.upkeep.back_up_daily()
    path.write_bytes(b"")
    for number in range(2, 7):
        be_on_day(monkeypatch, number)
        with ledger_in(path) as ledger:
            append(ledger, f"u{number}")
            ledger.upkeep.back_up_daily()
    assert days(path) == ["2026-11-26", "2026-11-25", "2026-11-24", "2026-11-21"]


def test_a_deleted_text_is_in_no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_on_day(monkeypatch, 0)
    with ledger_in(path) as ledger:
        append(ledger, "u1", "other")
        ledger.upkeep.back_up_daily()
        be_on_day(monkeypatch, 1)
        append(ledger, "uSecretWord")
        ledger.upkeep.back_up_daily()
        abandoned = Path(daily_backups.directory_of(str(path))) / "2026-11-21.db.1-ab.new"
        abandoned.write_bytes(b"SecretWord")
        ledger.rename(FOLDER, "main", "later")
        ledger.delete(FOLDER, "later")
        assert days(path) == ["2026-11-20"]
        assert ledger.upkeep.back_up_daily() is not None
    data = [each.read_bytes() for each in path.parent.rglob("*") if each.is_file()]
    assert not any(word in each.lower() for each in data for word in (b"secretword",))


def test_a_backup_that_was_made_during_a_deletion_is_removed(path: Path) -> None:
    with ledger_in(path) as ledger, ledger_in(path) as deleting:
        append(ledger, "u1")
        append(ledger, "uSecretWord", "secret")
        with ledger._database.reading() as connection:  # type: ignore[attr-defined]  # noqa: SLF001
            connection.execute("SELECT count(*) FROM session").fetchall()
            deleting.delete(FOLDER, "secret")
            written = daily_backups.write(connection, str(path))
        assert written is not None and days(path)
        with ledger._database.reading() as connection:  # type: ignore[attr-defined]  # noqa: SLF001
            daily_backups.settle(connection, str(path), written)
    assert days(path) == []


def test_restoring_says_what_is_missing_while_others_have_the_ledger_open(path: Path) -> None:
    with ledger_in(path) as one, ledger_in(path) as two:
        append(one, "u1 a1")
        append(one, "u2")
        one.upkeep.back_up_daily()
        append(one, "a2")
        append(two, "u3")
        append(two, "u9", "other")
        restored = restore(str(path), {})
        assert restored.missing == (
            MissingTurns(FOLDER, "other", 1, 1),
            MissingTurns(FOLDER, "main", 3, 4),
        )
        assert (restored.sessions, restored.unread) == (1, ())
        assert history(one) == history(two) == "u1 a1 u2"
        append(two, "u7")
        assert history(one) == "u1 a1 u2 u7"
        assert (one.notice, two.notice) == (None, None)
        assert one.upkeep.verify().sound
    assert restored.previous is not None
    with ledger_in(restored.previous) as previous:
        assert history(previous) == "u1 a1 u2 a2 u3"
    assert len(days(path)) == 1
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1 a1 u2 u7")


def test_restoring_again_and_again_raises_no_alarm_while_others_write(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.back_up_daily()
    ended, written, named = threading.Event(), {"one": 0, "two": 0}, 0
    stored = dict(written)
    with ledger_in(path) as one, ledger_in(path) as two:

        def write(ledger: Ledger, session: str) -> None:
            while not ended.is_set():
                with suppress(LedgerError):  # the file was replaced
                    append(ledger, "u2", session)
                    written[session] += 1
                    stored[session] += 1

        with ThreadPoolExecutor(2) as threads:
            writers = [threads.submit(write, each, name) for each, name in ((one, "one"), (two, "two"))]
            for _ in range(20):
                missing = restore(str(path), {}).missing
                named += sum(each.last - each.first + 1 for each in missing)
                for name in written:
                    written[name] = 0
                block_until(lambda: min(written.values()) > 1)
            ended.set()
        assert [each.result() for each in writers] == [None, None]
        named += sum(each.head.seq for each in one.sessions() if each.name in stored)
        assert named >= sum(stored.values())  # each turn is there, or it was named as missing
        append(one, "a1")
        assert (one.notice, two.notice, history(two)) == (None, None, "u1 a1")
        assert two.upkeep.verify().sound
    assert list(path.parent.glob("*.broken-*")) == []


def test_a_witness_that_is_written_late_does_not_call_the_backup_older(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.back_up_daily()
        for number in range(100):
            append(ledger, f"a{number}")
        late = path.with_name("ledger.db.witness").read_bytes()
        restore(str(path), {})
        path.with_name("ledger.db.witness").write_bytes(late)
    with ledger_in(path) as ledger:
        assert (ledger.notice, history(ledger)) == (None, "u1")


def test_after_damage_the_notice_names_the_backup_and_restoring_brings_it_back(path: Path) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
        ledger.upkeep.back_up_daily()
        append(ledger, "u2")
    path.write_bytes(b"")
    with ledger_in(path) as ledger:
        (day,) = days(path)
        assert f"Restore the backup of {day}: nexus sessions restore" in str(ledger.notice)
        append(ledger, "u5", "new")
        restored = restore(str(path), {})
        (aside,) = path.parent.glob("*.broken-*Z")
        assert restored.missing == (MissingTurns(FOLDER, "new", 1, 1),)
        assert restored.unread == ((str(aside), 1),)
        assert history(ledger) == "u1"


def test_a_damaged_backup_is_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        be_on_day(monkeypatch, number)
        with ledger_in(path) as ledger:
            append(ledger, f"u{number}")
            ledger.upkeep.back_up_daily()
    newest = daily_backups.list_backups(str(path))[0]
    Path(newest.path).write_bytes(b"x" * 10_000)
    with pytest.raises(LedgerError, match="is damaged; nothing was changed"):
        restore(str(path), {}, newest.day)
    with pytest.raises(LedgerError, match="There is no backup 2020-01-01"):
        restore(str(path), {}, "2020-01-01")
    assert restore(str(path), {}).backup.endswith("2026-11-20.db")
    with ledger_in(path) as ledger:
        assert history(ledger) == "u0"
    assert [each.name for each in path.parent.glob("*restoring*")] == []


def test_without_backups_nothing_is_restored(path: Path) -> None:
    open_ledger(str(path)).close()
    with pytest.raises(LedgerError, match="There is no backup in"):
        restore(str(path), {})


@pytest.mark.parametrize("version", [1, 3, 4, 10])
def test_a_backup_of_an_earlier_version_is_restored(
    path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    old = path.with_name("old.db")
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "VERSION", version)
        connection = apsw.Connection(str(old))
        migrations.migrate(connection)
        connection.close()
    assert restore(str(path), {}, str(old)).missing == (MissingTurns(FOLDER, "main", 1, 1),)
    with ledger_in(path) as ledger:
        assert (ledger.notice, ledger.sessions()) == (None, [])
