"""Messages and other values as what stands in a row, and back.

1. The text of a message stands once: where its content is text, that is the beginning of `said`, and `data`
   is the JSON of the rest; where there is no rest, there is no `data`.
2. What comes back equals what went in. What msgspec does not write or read back as it was (a lone surrogate,
   a number that is none) is written by Python's own JSON.
3. A row carries a checksum: SQLite does not see that a text is another one than was written.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.ledger.records import StoredMessage

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_message = msgspec.json.Decoder(Message).decode
_SAID_APART = "\n"
_set = msgspec.structs.force_setattr
_ROLES = frozenset(("user", "assistant", "tool", "system"))
_POSITION = (1 << 32) - 1
_NO_COUNTER = {0: ""}


class DamagedError(ValueError):
    """A row that is not what was written."""


class MessageRow(NamedTuple):
    """The columns of `message`, in their order but for `summary` and `counter`."""

    id: int
    turn: int  # seq
    role: str
    tokens: int
    length: int | None
    said: str
    data: str | None
    crc: int


SELECTED = """
SELECT id, turn, role, tokens, length, CAST(said AS BLOB), CAST(data AS BLOB), crc, counter
FROM message WHERE id >= ? AND id < ?
"""
"""The rows in a range of ids: what `message_of` wants, and the counter."""


def row_of(message: Message, number: int, turn: int, tokens: int) -> MessageRow:
    """A message as columns. TypeError or ValueError for what is no JSON or no message."""
    role, length, said, data = _texts(message)
    crc = _checksum(number, turn, tokens, length, said.encode(), None if data is None else data.encode())
    return MessageRow(number, turn, role, tokens, length, said, data, crc)


def unwritable(message: Message) -> str | None:
    """Why a message cannot be written, as the end of a sentence; None where it can."""
    try:
        row_of(message, 0, 0, 0)
    except RecursionError:
        return "its values are nested too deeply."
    except (TypeError, ValueError) as error:  # a message that msgspec does not write is a ValueError
        return f"{str(error)[:200]}."
    return None


def message_of(
    number: int,
    turn: int,
    role: str,
    tokens: int,
    length: int | None,
    said: bytes,
    data: bytes | None,
    crc: int,
) -> Message:
    """The message of a row of SELECTED, without its counter. DamagedError for one that was not written so."""
    return read_messages(((number, turn, role, tokens, length, said, data, crc, 0),), _NO_COUNTER)[0].message


def read_messages(rows: Iterable[tuple[Any, ...]], counters: Mapping[int, str]) -> list[StoredMessage]:
    """The messages of rows of SELECTED, `counters` by number. DamagedError for what was not written so."""
    held: list[StoredMessage] = []
    # one loop, with `_checksum` written out: long histories are read while somebody waits
    for number, turn, role, tokens, length, said, data, crc, counter in rows:
        found = crc32(said, number + turn + tokens + (length or 0))
        if data is not None:
            found = crc32(data, found)
        if found != crc or role not in _ROLES:
            raise DamagedError(f"the message {number & _POSITION} is not what was written")
        if data is None:
            message = Message(role, said.decode()[:length])
        else:
            message = _decoded(data)
            if length is not None:
                _set(message, "content", said.decode()[:length])  # nobody has seen it yet
        held.append(StoredMessage(number & _POSITION, tokens, counters[counter], message))
    return held


def _decoded(data: bytes) -> Message:
    try:
        return _decode_message(data)
    except (msgspec.DecodeError, UnicodeError):
        return msgspec.convert(json.loads(data), Message)


def searchable(message: Message) -> str:
    """What of a message can be found: its text, then names and arguments of its tool calls."""
    parts = [text_of(message)]
    for call in message.tool_calls:
        parts.append(call.name)
        parts.extend(_strings(call.arguments))
    return _clean(_SAID_APART.join(parts))


def json_text(value: Any) -> str:
    """JSON that `value_of` reads back as the same value. TypeError or ValueError for what is no JSON."""
    try:
        text = _encode(value)
        if _decode(text) == value:
            return text.decode()
    except (UnicodeError, msgspec.DecodeError):
        pass
    return json.dumps(msgspec.to_builtins(value))


def value_of(text: str) -> Any:
    """The value of a JSON text from `json_text`."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return json.loads(text)


def optional_json(value: Any) -> str | None:
    return None if value is None else json_text(value)


def optional_value(text: str | None) -> Any:
    return None if text is None else value_of(text)


def _message_text(message: Message) -> str:
    try:
        text = _encode(message)
        if _decode_message(text) == message:
            return text.decode()
    except UnicodeError:
        pass
    text_of_it = json.dumps(_builtins(message))
    msgspec.convert(json.loads(text_of_it), Message)  # what could not be read back is not written
    return text_of_it


def _builtins(message: Message) -> dict[str, Any]:
    """As `msgspec.to_builtins`, which refuses nothing but leaves numbers that are none as they are."""
    made: dict[str, Any] = msgspec.to_builtins(message)
    return made


def _texts(message: Message) -> tuple[str, int | None, str, str | None]:
    content = message.content
    if message.role not in _ROLES:
        raise ValueError(f"A message has the role {message.role!r}; there are {', '.join(sorted(_ROLES))}.")
    if not isinstance(content, str) or not _encodable(content):
        return message.role, None, searchable(message), _message_text(message)
    if message == Message(message.role, content):
        return message.role, len(content), content, None
    said = searchable(message) if message.tool_calls else content
    rest = msgspec.structs.replace(message, content=msgspec.UNSET)
    return message.role, len(content), said, _message_text(rest)


def _checksum(
    number: int, turn: int, tokens: int, length: int | None, said: bytes, data: bytes | None
) -> int:
    crc = crc32(said, number + turn + tokens + (length or 0))  # of the sum its last 32 bits count
    return crc if data is None else crc32(data, crc)


def _strings(value: Any) -> list[str]:
    """Texts in a JSON value in their order; a text by itself may be JSON, which reads well enough."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list | tuple):
            waiting.extend(reversed(one))
    return found


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _clean(text: str) -> str:
    return text if _encodable(text) else text.encode(errors="replace").decode()
