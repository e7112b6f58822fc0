"""The options of sessions: the picked model, stored for each session and for its workspace."""

from pathlib import Path
from typing import Any

import apsw

from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.message import Message
from nexus_context.ledger.records import Counted, NewTurn, SessionOptions
from nexus_context.ledger.store import Ledger
from support.ledgers import FOLDER, append, ledger_in, turn_of

TOOLS = {"memoryTools": True}


def options(model: str | None, max_tokens: int | None = None, besides: Any = None) -> SessionOptions:
    return SessionOptions(ModelChoice(model, max_tokens), besides)


def check(ledger: Ledger, expected: str, workspace: str = FOLDER) -> None:
    """Whose options there are: `*=a main=b` is a workspace's and a session's."""
    kept = ledger.options.of(workspace)
    said = {name or "*": f"{one.choice.model}" for name, one in kept.items()}
    assert " ".join(f"{name}={model}" for name, model in sorted(said.items())) == expected


def test_they_come_back_as_they_were(ledger: Ledger) -> None:
    append(ledger, "u1")
    for kept in (options("gpt-4o", 9_000, TOOLS), options("über/modell"), options(None)):
        ledger.options.keep(FOLDER, "main", kept)
        assert ledger.options.of(FOLDER) == {None: kept, "main": kept}
    assert ledger.options.of("/other") == {}


def test_a_session_that_is_not_there_has_none_of_its_own(ledger: Ledger) -> None:
    ledger.options.keep(FOLDER, "main", options("a"))
    check(ledger, "*=a")
    append(ledger, "u1")
    check(ledger, "*=a")


def test_a_turn_brings_them_along_for_its_session(ledger: Ledger) -> None:
    ledger.options.keep(FOLDER, "main", options("a"))
    turn = turn_of(Message("user", "x"), options=options("b"))
    ledger.append(FOLDER, "main", turn)
    check(ledger, "*=a main=b")


def test_a_turn_that_comes_too_late_brings_them_to_the_fork(ledger: Ledger) -> None:
    append(ledger, "u1")
    ledger.options.keep(FOLDER, "main", options("a"))
    late = NewTurn(
        messages=(Counted(Message("user", "x"), 1),), counter="c", parent=None, options=options("b")
    )
    assert ledger.append(FOLDER, "main", late).session == "main (2)"
    check(ledger, "*=a main=a main (2)=b")


def test_what_becomes_of_a_session_becomes_of_them(ledger: Ledger) -> None:
    append(ledger, "u1")
    ledger.options.keep(FOLDER, "main", options("a"))
    ledger.fork(FOLDER, "main", "idea")
    check(ledger, "*=a idea=a main=a")
    ledger.options.keep(FOLDER, "idea", options("b"))
    ledger.rename(FOLDER, "idea", "plan")
    ledger.clear(FOLDER, "main")
    check(ledger, "*=b main=a plan=b")
    ledger.delete(FOLDER, "plan")
    ledger.create(FOLDER, "plan")
    check(ledger, "*=b main=a")


def test_a_ledger_of_the_version_before_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with ledger_in(path) as ledger:
        append(ledger, "u1")
    connection = apsw.Connection(str(path))
    connection.execute(
        "ALTER TABLE turn DROP COLUMN outcome; ALTER TABLE report DROP COLUMN created; "
        "DROP TABLE session_options; DROP INDEX message_counter; "
        "DROP TABLE workspace_options; PRAGMA user_version = 4"
    )
    connection.close()
    with ledger_in(path) as ledger:
        assert ledger.options.of(FOLDER) == {}
        ledger.options.keep(FOLDER, "main", options("a"))
        check(ledger, "*=a main=a")
        assert ledger.upkeep.verify().sound
