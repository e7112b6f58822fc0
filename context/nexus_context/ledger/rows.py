"""Converts messages and other values to columns of a row and back, and reads the first row of a result.

1. The text of a message is stored once. If its content is a text, the column `said` begins with it, and
   `data` is the JSON of the rest, if there is any.
2. A value that is read equals the value that was written, except that half surrogate pairs become U+FFFD.
   This holds also for those that an earlier version has written. Values that msgspec does not round-trip
   (NaN) are written by Python's own JSON module.
3. A row has a checksum: SQLite does not notice a changed text.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

import apsw
import msgspec

from nexus_context.conversation.agent_result import TurnOutcome
from nexus_context.conversation.half_pairs import is_whole, whole_message, without_halves
from nexus_context.conversation.message import Message, text_of
from nexus_context.ledger.records import StoredMessage
from nexus_context.text.decoding import convert_to, decoder_of

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_message = decoder_of(Message).decode
_SAID_APART = "\n"
_set = msgspec.structs.force_setattr
_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(Message))
_ROLES = frozenset(("user", "assistant", "tool", "system"))
_POSITION = (1 << 32) - 1
_NO_COUNTER = {0: ""}


class DamagedError(ValueError):
    """A row differs from what was written."""


class MessageRow(NamedTuple):
    """The columns of `message` in order, without `summary` and `counter`."""

    id: int
    turn: int  # seq
    role: str
    tokens: int
    length: int | None
    text: str  # column `said`
    data: str | None
    crc: int


SELECTED = """
SELECT id, turn, role, tokens, length, CAST(said AS BLOB), CAST(data AS BLOB), crc, counter
FROM message WHERE id >= ? AND id < ?
"""
"""The rows in a range of ids: the columns of `MessageRow`, then the counter."""


def row_of(message: Message, number: int, turn: int, tokens: int) -> MessageRow:
    """Convert a message to columns. Raise TypeError or ValueError if it is not JSON or not a message."""
    role, length, text, data = _texts(whole_message(message))
    crc = crc32(text.encode(), number + turn + tokens + (length or 0))  # only the last 32 bits count
    if data is not None:
        crc = crc32(data.encode(), crc)
    return MessageRow(
        id=number,
        turn=turn,
        role=role,
        tokens=tokens,
        length=length,
        text=text,
        data=data,
        crc=crc,
    )


def unwritable(message: Message) -> str | None:
    """Return why a message cannot be written, as the end of a sentence. Return None if it can."""
    try:
        row_of(message, 0, 0, 0)
    except RecursionError:
        return "its values are nested too deeply."
    except (TypeError, ValueError) as error:  # ValueError: a message that msgspec cannot write
        return f"{str(error)[:200]}."
    return None


def message_of(row: tuple[Any, ...]) -> Message:
    """Convert a row of SELECTED to a message. Raise DamagedError if the row differs from what was written."""
    return read_messages(((*row[:8], 0),), _NO_COUNTER)[0].message


def read_messages(rows: Iterable[tuple[Any, ...]], counters: Mapping[int, str]) -> list[StoredMessage]:
    """Convert rows of SELECTED to messages. `counters` maps numbers to names; raise DamagedError if a row
    differs from what was written.
    """
    messages: list[StoredMessage] = []
    # one loop: somebody waits while long histories are read
    for number, turn, role, tokens, length, text, data, crc, counter in rows:
        checksum = crc32(text, number + turn + tokens + (length or 0))
        if data is not None:
            checksum = crc32(data, checksum)
        if checksum != crc or role not in _ROLES:
            raise DamagedError(f"the message {number & _POSITION} is not what was written")
        if data is None:
            message = Message(role, text.decode()[:length])
        else:
            message = _decoded(data)
            if length is not None:
                _set(message, "content", text.decode()[:length])  # not shared yet
        messages.append(StoredMessage(number & _POSITION, tokens, counters[counter], message))
    return messages


def _decoded(data: bytes) -> Message:
    try:
        return _decode_message(data)
    except (msgspec.DecodeError, UnicodeError):
        values = without_halves(json.loads(data))
        if isinstance(values, dict):  # a later version of Nexus may write other fields, too
            values = {name: value for name, value in values.items() if name in _FIELDS}
        return convert_to(values, Message)


def searchable(message: Message) -> str:
    """Return the searchable text of a message: its text, then names and arguments of its tool calls."""
    parts = [text_of(message)]
    for call in message.tool_calls:
        parts.append(call.name)
        parts.extend(_strings(call.arguments))
    text: str = without_halves(_SAID_APART.join(parts))
    return text


def json_text(value: Any) -> str:
    """Return JSON that `value_of` reads back as the same value. Raise TypeError or ValueError if the value is
    not JSON.
    """
    try:
        encoded = _encode(value)
        if _decode(encoded) == value:
            return encoded.decode()
    except (UnicodeError, msgspec.DecodeError):
        pass
    return json.dumps(msgspec.to_builtins(value))


def value_of(text: str) -> Any:
    """Return the value of a JSON text that `json_text` made."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return json.loads(text)


def permissions_text(permissions: Any) -> str | None:
    """Return an agent's permissions as a column: JSON, or the name of a level. Half surrogate pairs are
    replaced.
    """
    storable = without_halves(permissions)
    return storable if isinstance(storable, str | None) else json_text(storable)


def permissions_of(text: str | None) -> Any:
    """Return the permissions in a column that `permissions_text` made."""
    return value_of(text) if text is not None and text.startswith("{") else text


def outcome_of(value: Any) -> TurnOutcome | None:
    """Convert a JSON value to the outcome of a turn. Return None if it is None, or in the form of a later
    version.
    """
    try:
        return None if value is None else convert_to(value, TurnOutcome)
    except msgspec.ValidationError:
        return None


def optional_json(value: Any) -> str | None:
    """Return a value as JSON for a column, or None if it is None. Half surrogate pairs are replaced, as in
    messages.
    """
    return None if value is None else json_text(without_halves(msgspec.to_builtins(value)))


def optional_value(text: str | None) -> Any:
    return None if text is None else without_halves(value_of(text))


def _message_text(message: Message) -> str:
    try:
        text = _encode(message)
        if _decode_message(text) == message:
            return text.decode()
    except UnicodeError:
        pass
    text_of_it = json.dumps(msgspec.to_builtins(message))  # keeps NaN
    convert_to(json.loads(text_of_it), Message)  # fails if it cannot be read back
    return text_of_it


def _texts(message: Message) -> tuple[str, int | None, str, str | None]:
    content = message.content
    if message.role not in _ROLES:
        raise ValueError(f"A message has the role {message.role!r}; there are {', '.join(sorted(_ROLES))}.")
    if not isinstance(content, str) or not is_whole(content):
        return message.role, None, searchable(message), _message_text(message)
    if message == Message(message.role, content):
        return message.role, len(content), content, None
    search_text = searchable(message) if message.tool_calls else content
    without_content = msgspec.structs.replace(message, content=msgspec.UNSET)
    return message.role, len(content), search_text, _message_text(without_content)


def _strings(value: Any) -> list[str]:
    """The strings in a JSON value in order; a string that is JSON itself stays as it is."""
    strings: list[str] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            strings.append(node)
        elif isinstance(node, dict):
            waiting.extend(reversed(node.values()))
        elif isinstance(node, list | tuple):
            waiting.extend(reversed(node))
    return strings


def row(connection: apsw.Connection, statement: str, *values: Any) -> Any:
    """Run a statement and return the first row of its result as a tuple. Return None if there is no row."""
    return connection.execute(statement, values).fetchone()


def value(connection: apsw.Connection, statement: str, *values: Any) -> Any:
    """Run a statement and return the first value of the first row of its result. Return None if there is no
    row.
    """
    first_row = connection.execute(statement, values).fetchone()
    return None if first_row is None else first_row[0]
