"""A ledger in memory, because its file cannot be written: it is written there once that is possible."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_context.ledger import open_ledger, opening
from nexus_context.ledger.store import Ledger
from support.ledgers import FOLDER, append, compaction, history, ledger_in


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "RETRY_S", 0.0)


def in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger whose file cannot be written until the patch is undone."""

    def refuse(_: str) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(opening, "_make", refuse)
    ledger = open_ledger(str(path))
    assert not ledger.persists
    return ledger


def is_stored(ledger: Ledger) -> bool:
    return ledger.persists


def turns(ledger: Ledger, session: str = "main") -> list[str]:
    return [turn.id for turn in ledger.turns(FOLDER, session)]


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        yield patched


def test_where_there_was_no_file_it_is_written_whole(path: Path, patch: pytest.MonkeyPatch) -> None:
    path.parent.parent.joinpath("state").write_text("a file in the way")
    ledger = open_ledger(str(path))
    append(ledger, "u1 a1", key="k")
    append(ledger, "u2 a2")
    ledger.compact(FOLDER, "main", compaction("s", 2, (2, 4)))
    ids = turns(ledger)
    assert not ledger.persists
    path.parent.unlink()
    append(ledger, "u3 a3")
    assert is_stored(ledger)
    assert "can be written again" in (ledger.notice or "")
    assert turns(ledger)[:3] == ids
    assert append(ledger, "u1 a1", key="k").repeated
    ledger.close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not [each for each in path.parent.iterdir() if not each.name.startswith("ledger.db")]
    with ledger_in(path) as again:
        assert history(again) == "s u2 a2 u3 a3"
        assert again.notice is None
        assert again.upkeep.verify().sound


def test_a_file_that_others_wrote_meanwhile_gets_what_it_lacks(path: Path, patch: pytest.MonkeyPatch) -> None:
    with ledger_in(path) as first:
        append(first, "u1 a1")
        append(first, "u1 a1", "both")
        append(first, "u1", "others")
    ledger = in_memory(path, patch)
    before = turns(ledger)
    append(ledger, "u2 a2")
    extended = append(ledger, "u3")
    append(ledger, "a3", extends=extended.head)
    append(ledger, "u2", "both")
    append(ledger, "u1", "new")
    ids = turns(ledger)
    assert ids[:1] == before
    patch.undo()
    with ledger_in(path) as other:
        append(other, "u9", "both")
        append(other, "u2", "others")
    append(ledger, "u4")
    assert ledger.persists
    assert "both is both (2)" in (ledger.notice or "")
    assert turns(ledger)[:3] == ids
    assert history(ledger) == "u1 a1 u2 a2 u3 a3 u4"
    assert history(ledger, "both") == "u1 a1 u9"
    assert history(ledger, "both (2)") == "u1 a1 u2"
    assert (history(ledger, "others"), history(ledger, "new")) == ("u1 u2", "u1")
    assert ledger.upkeep.verify().sound
    ledger.close()


def test_a_turn_that_was_extended_in_memory_is_whole(path: Path, patch: pytest.MonkeyPatch) -> None:
    with ledger_in(path) as first:
        last = append(first, "u1")
    ledger = in_memory(path, patch)
    append(ledger, "a1", extends=last.head)
    patch.undo()
    append(ledger, "u2")
    assert history(ledger) == "u1 a1 u2"
    ledger.close()


def test_what_still_cannot_be_written_stays_in_memory(path: Path, patch: pytest.MonkeyPatch) -> None:
    ledger = in_memory(path, patch)
    append(ledger, "u1")
    append(ledger, "u2")
    assert not ledger.persists
    assert history(ledger) == "u1 u2"
    assert "Conversations are lost when Nexus ends." in (ledger.notice or "")
    ledger.close()
