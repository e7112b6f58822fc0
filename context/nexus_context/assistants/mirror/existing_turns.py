"""Finds what a piece of a conversation adds to the ledger: nothing, turns behind its session's, or a fork.

1. The turns that the mirror wrote are compared with the conversation. What the program has beyond them is
   added.
2. If others wrote turns behind these, those stay in their session. What the program has beyond its own turns
   then goes to a fork, unless the other turns say the same, as an import of the same file does.
3. If a program forked a session from another one, the session becomes a fork in the ledger, and shares the
   turns that both have.
4. If the program has other messages, as after the user went back, the conversation goes on in a fork from
   the last turn that both have.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import msgspec

from nexus_context.assistants.mirror.differences import (
    Comparison,
    compare,
    count_atoms,
    ends_with,
    messages_with,
)
from nexus_context.assistants.reading.record_values import seconds
from nexus_context.conversation.message import Message
from nexus_context.ledger.records import Head, MirroredSession, NewTurn, Turn
from nexus_context.ledger.store import Ledger

SPARE = 200
"""Messages that are read of a session beyond twice those of a piece."""

Way = Literal["same", "continued", "forked", "new", "unclear"]


class Addition(msgspec.Struct, frozen=True):
    """What to write. `rest` are the messages: they follow the last turn of the session, or in a fork the turn
    `base`.

    `existing` are the turns of the session before `rest`; the session has `turns` turns and `messages`
    messages before these. `surplus` is how many of the last messages in `existing` the program no longer has.
    The way "unclear" means that the piece does not fit what is there, so that the whole file must be read.
    """

    way: Way
    rest: tuple[Message, ...] = ()
    base: str | None = None
    existing: tuple[Turn, ...] = ()
    turns: int = 0
    messages: int = 0
    surplus: int = 0


def compare_with_ledger(
    ledger: Ledger,
    session: MirroredSession,
    messages: Sequence[Message],
    *,
    position: tuple[int, int],
    can_reread: bool,
) -> Addition:
    """Find what a conversation adds to its session.

    `position` has how many messages and turns the session has before the conversation, if that is a piece.
    With `can_reread`, the answer is "unclear" where it would be a fork.
    """
    head = session.head
    if session.session is None or head is None:
        return Addition("new", tuple(messages))
    start = max(position[1] - 1, 0)  # one turn more, to fork from
    turns, is_cut = _read(ledger, session, head, start, most_messages=2 * len(messages) + SPARE)
    earlier_messages = _messages_before(ledger, session, turns, start=start, is_cut=is_cut)
    skip = max(position[0] - earlier_messages, 0)
    count = next((at for at, turn in enumerate(turns, 1) if turn.id == session.turn), None)
    if count is None and session.turn is not None and not is_cut:
        return Addition("forked", (), session.turn)  # it was cleared: then it is compared with the fork
    mirrored_turns, later_turns = turns[:count], turns[count:] if count is not None else []
    comparison = compare(mirrored_turns, messages, skip=skip)
    if (
        later_turns
        and comparison.rest
        and not comparison.differs
        and all(turn.type == "query" for turn in later_turns)
    ):
        entire = compare(turns, messages, skip=skip)
        if not entire.differs:
            mirrored_turns, later_turns, comparison = turns, [], entire
    if not comparison.rest and not comparison.differs:
        surplus = comparison.surplus
        return Addition(
            "same", existing=tuple(mirrored_turns), turns=start, messages=earlier_messages, surplus=surplus
        )
    if comparison.differs and can_reread:
        return Addition("unclear")
    if comparison.differs or later_turns:
        return _fork(mirrored_turns, comparison, start, earlier_messages)
    return Addition(
        "continued", comparison.rest, existing=tuple(mirrored_turns), turns=start, messages=earlier_messages
    )


def shared_turns(ledger: Ledger, session: MirroredSession, until: str) -> list[Turn]:
    """List the turns of a session up to a time. A fork shares them although its file does not repeat them."""
    if session.session is None:
        return []
    moment = seconds(until)
    turns = ledger.turns(session.workspace, session.session)
    return list(takewhile(lambda turn: seconds(turn.created) <= moment, turns))


def compare_with_origin(ledger: Ledger, origin: MirroredSession, messages: Sequence[Message]) -> Addition:
    """Find what a fork adds to the turns that it shares with its origin. The way is "new" if it shares
    none.
    """
    addition = compare_with_ledger(ledger, origin, messages, position=(0, 0), can_reread=False)
    common = list(addition.existing)
    surplus = addition.surplus
    while common and (surplus > 0 or not common[-1].messages):
        surplus -= len(common.pop().messages)
    if not common or (addition.way == "forked" and addition.base is None):
        return Addition("new", tuple(messages))
    new_messages = addition.rest
    if addition.surplus:
        new_messages = tuple(messages[sum(len(turn.messages) for turn in common) :])
    return Addition("forked", new_messages, common[-1].id, existing=tuple(common))


def position_before(
    addition: Addition, added: Sequence[NewTurn], last_messages: Sequence[Message]
) -> tuple[int, int] | None:
    """Count the messages and turns that a session has before its `last_messages`. Return None if it does not
    end with these.
    """
    stored_messages = [message for turn in addition.existing for message in turn.messages]
    del stored_messages[len(stored_messages) - addition.surplus :]
    stored_messages += (counted.message for turn in added for counted in turn.messages)
    number = messages_with(stored_messages, count_atoms(last_messages))
    if number is None or not ends_with(stored_messages, last_messages):
        return None
    end = addition.messages + len(stored_messages) - number
    messages, turns = addition.messages, addition.turns
    for count in (len(turn.messages) for turn_list in (addition.existing, added) for turn in turn_list):
        messages += count
        if messages > end:
            break
        turns += 1
    return end, turns


def _fork(
    mirrored_turns: Sequence[Turn], comparison: Comparison, start: int, earlier_messages: int
) -> Addition:
    """A fork from the last turn that both have; a new session if there is none."""
    common = tuple(mirrored_turns[: comparison.turns])
    if not common:
        return Addition("new", comparison.rest)
    return Addition(
        "forked", comparison.rest, common[-1].id, existing=common, turns=start, messages=earlier_messages
    )


def _read(
    ledger: Ledger, session: MirroredSession, head: Head, start: int, *, most_messages: int
) -> tuple[list[Turn], bool]:
    """The turns behind the first `start`, until they have `most` messages, and whether there are more."""
    turns: list[Turn] = []
    messages = 0
    if head.seq <= start or session.session is None:
        return turns, False
    for turn in ledger.turns(session.workspace, session.session, last=head.seq - start):
        turns.append(turn)
        messages += len(turn.messages)
        if messages > most_messages:
            return turns, turn.seq < head.seq
    return turns, False


def _messages_before(
    ledger: Ledger, session: MirroredSession, turns: Sequence[Turn], *, start: int, is_cut: bool
) -> int:
    """The messages of a session in its first `start` turns."""
    head = session.head
    if not start or head is None:
        return 0
    if not is_cut:
        return head.messages - sum(len(turn.messages) for turn in turns)
    later_turns = ledger.turns(session.workspace, session.session or "", last=head.seq - start)
    return head.messages - sum(len(turn.messages) for turn in later_turns)
