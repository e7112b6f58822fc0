"""Ledgers for tests: short ways to write turns, and what a ledger must answer, kept in plain lists."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec

from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.summary import as_summary
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import (
    Appended,
    Counted,
    NewCompaction,
    NewTurn,
    StoredHistory,
    StoredMessage,
)
from nexus_context.ledger.store import Ledger
from nexus_context.tokens.correction import UsageReport

FOLDER = "/work/project"
"""A workspace."""

DISK = "/var/tmp" if os.path.isdir("/var/tmp") else None
"""Where an fsync waits for a disk, also if temporary files are in memory."""

ROLES = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}


@contextmanager
def ledger_in(path: Path | str) -> Iterator[Ledger]:
    ledger = open_ledger(str(path))
    try:
        yield ledger
    finally:
        ledger.close()


def make_old(path: Path, version: int) -> None:
    """Make a closed ledger one that an earlier version has written."""
    connection = apsw.Connection(str(path))
    connection.execute(
        """
        DROP TABLE session_options; DROP TABLE workspace_options; DROP INDEX message_counter;
        DROP TABLE ledger; DROP TABLE mark; DROP TABLE part; DROP TABLE part_missing;
        DROP TRIGGER message_lost;
        ALTER TABLE turn DROP COLUMN outcome; ALTER TABLE report DROP COLUMN created;
        ALTER TABLE turn DROP COLUMN sum;
        CREATE TRIGGER message_lost AFTER DELETE ON message BEGIN
            INSERT INTO found (found, rowid, said) VALUES ('delete', old.id, old.said);
        END;
        """
    )
    if version < 3:
        connection.execute("DROP TABLE agent_name")
    if version < 2:
        connection.execute("DROP TABLE agent")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    path.with_name(f"{path.name}.witness").unlink(missing_ok=True)


@contextmanager
def new_ledger() -> Iterator[Ledger]:
    with TemporaryDirectory() as folder, ledger_in(f"{folder}/ledger.db") as ledger:
        yield ledger


@contextmanager
def ledger_in_memory() -> Iterator[Ledger]:
    """A ledger whose file cannot be written."""
    with TemporaryDirectory() as folder:
        no_directory = Path(folder) / "file"
        no_directory.touch()
        with ledger_in(no_directory / "ledger.db") as ledger:
            assert not ledger.persists
            yield ledger


ENGINES = {"file": new_ledger, "memory": ledger_in_memory}
"""How an empty ledger of each engine is opened."""


def said(word: str) -> Message:
    """`u1` is a user's message that says `u1`; a, t and s stand for the other roles."""
    return Message(ROLES[word[0]], word.partition(":")[0])  # type: ignore[arg-type]


def turn(words: str, **about: Any) -> NewTurn:
    """A turn of messages such as `u1 a1:30`; the number is its tokens, else 10."""
    return NewTurn(messages=tuple(_counted(word) for word in words.split()), counter="letters", **about)


def turn_of(*messages: Message, tokens: int = 1, **about: Any) -> NewTurn:
    """A turn of these messages, each of so many tokens."""
    return NewTurn(messages=tuple(Counted(one, tokens) for one in messages), counter="test", **about)


def compaction(name: str, head: int, *kept: tuple[int, int], tokens: int = 5) -> NewCompaction:
    """A compaction of the thread up to the turn `head`; its summary says its name."""
    summary = Counted(Message("user", name), tokens)
    return NewCompaction(
        id=name, seq=head, summary=summary, counter="letters", kept=kept, receipt={"of": name}
    )


def words(messages: Sequence[StoredMessage | Message] | None) -> str:
    """What was said, in a line."""
    found = [one.message if isinstance(one, StoredMessage) else one for one in messages or ()]
    return " ".join(str(content_of(message)) for message in found)


def history(ledger: Ledger, session: str = "main", workspace: str = FOLDER, **limits: Any) -> str:
    """What a session's history says, in a line; `…3/30…` stands for a gap of 3 messages of 30 tokens."""
    found = ledger.history(workspace, session, **limits)
    assert found is not None
    gap = f"…{found.gap_messages}/{found.gap_tokens}…" if found.gap_messages else ""
    parts = (words(found.messages[: found.lead]), gap, words(found.messages[found.lead :]))
    return " ".join(part for part in parts if part)


def append(ledger: Ledger, what: str, session: str = "main", **about: Any) -> Appended:
    return ledger.append(FOLDER, session, turn(what, **about))


def _counted(word: str) -> Counted:
    return Counted(said(word), int(word.partition(":")[2] or 10))


# ---------------------------------------------------------------- what a ledger must answer


class ModelTurn(msgspec.Struct, eq=False):
    """A turn as a test knows it; `id` is what the ledger called it."""

    type: str
    messages: tuple[Counted, ...] = ()
    compaction: str | None = None
    kept: tuple[tuple[int, int], ...] = ()
    undoes: "ModelTurn | None" = None
    id: str = ""

    def read_messages(self) -> tuple[Message, ...]:
        """The messages as the ledger gives them: summaries that were stored without a mark get it."""
        messages = (counted.message for counted in self.messages)
        return tuple(map(as_summary, messages) if self.type == "compaction" else messages)


class ModelSession(msgspec.Struct, eq=False):
    """A session as a test knows it. `before` are the threads that it was at before it was cleared."""

    turns: list[ModelTurn]
    forked_from: "ModelSession | None" = None
    before: list[list[ModelTurn]] = []
    keys: dict[str, ModelTurn] = {}
    changed: int = 0


def messages_of(turns: Sequence[ModelTurn]) -> list[tuple[ModelTurn, Counted]]:
    return [(one, counted) for one in turns for counted in one.messages]


def in_force(turns: Sequence[ModelTurn]) -> tuple[ModelTurn | None, bool]:
    """The compaction in force, and whether an undo is what last happened to compactions."""
    stack: list[ModelTurn] = []
    undone = False
    for one in turns:
        if one.type == "compaction":
            stack.append(one)
            undone = False
        elif one.undoes is not None:
            del stack[stack.index(one.undoes) :]
            undone = True
    return (stack[-1] if stack else None), undone


def stack_of(turns: Sequence[ModelTurn]) -> list[str]:
    """The ids of the compactions that can be taken back."""
    found: list[str] = []
    for one in turns:
        if one.type == "compaction":
            found.append(one.compaction or "")
        elif one.undoes is not None:
            del found[found.index(one.undoes.compaction or "") :]
    return found


def expected_history(turns: Sequence[ModelTurn]) -> list[tuple[int, int, Message]]:
    """Position, tokens and message of all that the next request is made of."""
    every = [(at, one, counted) for at, (one, counted) in enumerate(messages_of(turns))]
    force, _ = in_force(turns)
    start, first = 0, list[tuple[int, int, Message]]()
    if force is not None:
        summary = next(at for at, one, _ in every if one is force)
        kept = [at for low, high in force.kept for at in range(low, high)]
        first = [(summary, every[summary][2].tokens, force.read_messages()[0])]
        first += [(at, every[at][2].tokens, every[at][2].message) for at in kept]
        start = summary + 1
    rest = [(at, one.tokens, one.message) for at, turn, one in every[start:] if turn.type == "query"]
    return [*first, *rest]


def as_tuples(found: StoredHistory) -> list[tuple[int, int, Message]]:
    return [(held.position, held.tokens, held.message) for held in found.messages]


def anchor(ledger: Ledger, folder: str, session: str) -> UsageReport | None:
    """The newest report that later requests of a session contain."""
    state = ledger.state(folder, session)
    return None if state is None else state.anchor
