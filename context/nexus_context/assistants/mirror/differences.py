"""Compares a conversation of another program with what the ledger has of it.

1. Messages are compared by their parts, so that an answer that was read in two pieces equals the whole one.
   Times and other notes about a message do not matter.
2. If the ledger has messages that the program lost, that is no difference. If the program has other messages
   than the ledger, the two differ from some turn on.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.message import Message, content_of
from nexus_context.ledger.records import Turn


class Comparison(NamedTuple):
    """How a conversation and the turns of the ledger differ. `rest` are the messages that the ledger does not
    have; the first may lack its beginning.

    `turns` is how many turns of the ledger are wholly part of the conversation. With `differs`, the turn
    after them has other messages. `surplus` is how many of the ledger's last messages the program no longer
    has.
    """

    rest: tuple[Message, ...]
    turns: int
    differs: bool = False
    surplus: int = 0


class _Atom(NamedTuple):
    """A part of a message: its place, and what is compared."""

    message: int
    number: int  # among the parts of the message
    value: tuple[Any, ...]


def compare(existing: Sequence[Turn], messages: Sequence[Message], *, skip: int = 0) -> Comparison:
    """Compare the turns of a session with a conversation. The first `skip` messages of the turns are left
    out.
    """
    turn_of_message = [index for index, turn in enumerate(existing) for _ in turn.messages][skip:]
    stored_messages = [message for turn in existing for message in turn.messages][skip:]
    equal_messages = _equal_messages(stored_messages, messages)
    stored_atoms = _atoms(stored_messages, equal_messages)
    program_atoms = _atoms(messages, equal_messages)
    last_equal_atom: _Atom | None = None
    for stored_atom in stored_atoms:
        program_atom = next(program_atoms, None)
        if program_atom is None:  # the program lost something
            surplus = len(stored_messages) - stored_atom.message - (stored_atom.number > 0)
            return Comparison((), len(existing), surplus=surplus)
        if program_atom.value != stored_atom.value:
            diverging_turn = turn_of_message[stored_atom.message]
            messages_before = sum(turn_index < diverging_turn for turn_index in turn_of_message)
            new_messages = _from_message(stored_messages, messages, messages_before)
            return Comparison(new_messages, diverging_turn, differs=True)
        last_equal_atom = program_atom
    return _continuation(
        messages, program_atoms, last_equal_atom, turns=len(existing), equal_messages=equal_messages
    )


def count_atoms(messages: Sequence[Message]) -> int:
    """Count the parts (texts, calls and others) that messages consist of."""
    return sum(1 for _ in _atoms(messages, 0))


def messages_with(messages: Sequence[Message], count: int) -> int | None:
    """Return how many of the last messages have `count` parts together, None if the count ends within a
    message.
    """
    number = 0
    while count > 0 and number < len(messages):
        number += 1
        count -= count_atoms([messages[-number]])
    return number if count == 0 else None


def ends_with(messages: Sequence[Message], end: Sequence[Message]) -> bool:
    """Whether messages end with the messages `end`."""
    last_values = [atom.value for atom in _atoms(messages[max(len(messages) - len(end) - 1, 0) :], 0)]
    end_values = [atom.value for atom in _atoms(end, 0)]
    return len(last_values) >= len(end_values) and (
        not end_values or last_values[-len(end_values) :] == end_values
    )


def _continuation(
    messages: Sequence[Message],
    program_atoms: Iterator[_Atom],
    last_equal_atom: _Atom | None,
    *,
    turns: int,
    equal_messages: int,
) -> Comparison:
    next_atom = next(program_atoms, None)
    if next_atom is None:
        return Comparison((), turns)
    start = next_atom.message
    if last_equal_atom is None or last_equal_atom.message != start:
        start = equal_messages if last_equal_atom is None else start
        return Comparison(tuple(messages[start:]), turns)
    parts = [atom.value for atom in chain([next_atom], program_atoms) if atom.message == start]
    return Comparison((_reduced(messages[start], parts), *messages[start + 1 :]), turns)


def _equal_messages(stored: Sequence[Message], messages: Sequence[Message]) -> int:
    """How many messages at the beginning are equal as a whole: nearly all of them."""
    count = 0
    for stored_message, program_message in zip(stored, messages, strict=False):
        if (
            stored_message.role != program_message.role
            or stored_message.content != program_message.content
            or stored_message.tool_calls != program_message.tool_calls
            or stored_message.tool_call_id != program_message.tool_call_id
        ):
            break
        count += 1
    return count


def _from_message(stored: Sequence[Message], messages: Sequence[Message], count: int) -> tuple[Message, ...]:
    """The messages behind the first `count` of the stored ones."""
    atoms = count_atoms(stored[:count])
    for atom in _atoms(messages, 0):
        if not atoms:
            if atom.number:
                parts = [
                    part_atom.value for part_atom in _atoms(messages[atom.message : atom.message + 1], 0)
                ]
                message = _reduced(messages[atom.message], parts[atom.number :])
                return (message, *messages[atom.message + 1 :])
            return tuple(messages[atom.message :])
        atoms -= 1
    return ()


def _atoms(messages: Sequence[Message], start: int) -> Iterator[_Atom]:
    for at in range(start, len(messages)):
        for number, value in enumerate(_values(messages[at])):
            yield _Atom(at, number, value)


def _values(message: Message) -> Iterator[tuple[Any, ...]]:
    """What is compared of a message: its parts and calls in their order."""
    role, content = message.role, content_of(message)
    if role == "tool":
        yield role, "result", message.tool_call_id, content
        return
    calls = {call.id: call for call in message.tool_calls}
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    is_empty = True
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_call" and part.get("id") in calls:
            call = calls.pop(part["id"])
            yield role, "call", call.id, call.name, call.arguments
        elif kind == "text" and part.keys() == {"type", "text"}:
            if not part["text"]:
                continue
            yield role, "text", part["text"]
        else:
            yield role, "part", part
        is_empty = False
    for call in calls.values():
        yield role, "call", call.id, call.name, call.arguments
        is_empty = False
    if is_empty:
        yield role, "empty"


def _reduced(message: Message, values: Sequence[tuple[Any, ...]]) -> Message:
    """A message with only some of its parts."""
    identifiers = {value[2] for value in values if value[1] == "call"}
    calls = tuple(call for call in message.tool_calls if call.id in identifiers)
    parts: list[Any] = []
    for value in values:
        if value[1] == "text":
            parts.append({"type": "text", "text": value[2]})
        elif value[1] == "part":
            parts.append(value[2])
    content: Any = parts
    if not parts:
        content = None
    elif len(values) - len(calls) == 1 and any(value[1] == "text" for value in values):
        content = parts[0]["text"]
    return msgspec.structs.replace(message, content=content, tool_calls=calls)
