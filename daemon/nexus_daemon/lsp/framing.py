"""Read and write frames of LSP's base protocol, and JSON in both directions, without I/O.

A frame is `Content-Length: N`, CRLF, other headers, an empty line, N bytes of UTF-8 JSON. Rules:

1. Header names may be in any case, with any number of spaces around a value. `Content-Type` is absent, or has
   the charset utf-8 or no charset.
2. Every line ends with CRLF; the header has one Content-Length of decimal digits only and at most 8 KiB.
3. A body has at most 32 MiB.
4. Anything else raises a `FrameError` as early as possible and ends the connection, since the next frame
   cannot be located. An HTTP request fails at its first line.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from nexus_context.errors import NexusError
from nexus_context.text.decoding import convert_to, decoder_of

HEADER_LIMIT = 8 * 1024  # bytes
BODY_LIMIT = 32 * 1024 * 1024  # bytes
LONG = 64 * 1024  # bytes; from here on a copy costs more than avoiding it
_BUFFER_SIZE = 128 * 1024  # bytes to read at once unless a long body is arriving
_LEAST_ROOM = 16 * 1024  # bytes
_SHORT = 32 * 1024  # bytes; from here on an incomplete body gets its own buffer
_TRUSTED = 4 * 1024 * 1024  # bytes that a length alone may allocate
_LONG_ITEM = 2 * 1024  # bytes on average; shorter items are cheaper to copy than to list
_GAP = msgspec.Raw(b"\0")  # stands for a list of parts; JSON has this byte nowhere else
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e]*")
_DIGITS = re.compile(rb"[0-9]{1,20}")
_CHARSET = re.compile(rb'charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)
# an escaped pair, a lone escaped surrogate, or any other escape (so that \\ud800 is not mistaken for one)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)

Body = bytes | bytearray
Part = bytes | memoryview
Json = Body | msgspec.Raw
Id = int | str | float


class FrameError(NexusError):
    """The bytes are not a frame. The message says why."""


class Envelope(msgspec.Struct, frozen=True):
    """A JSON-RPC message whose payload is not decoded yet."""

    jsonrpc: str | msgspec.UnsetType = msgspec.UNSET
    id: Id | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class FrameReader:
    """Cuts a stream of bytes into bodies.

    The caller reads bytes into `room()`. A long body has its own buffer and is never copied; a short body is
    copied once, out of the shared buffer.
    """

    def __init__(self, *, body_limit: int = BODY_LIMIT) -> None:
        self._body_limit = body_limit
        self._data = bytearray(_BUFFER_SIZE)
        self._at = 0  # start of what is not consumed, in _data
        self._end = 0  # of what was read into _data
        self._line = 0  # start of the header line that is not read yet, in _data
        self._length: int | None = None  # of the body, once its header line is read
        self._in_body = False
        self._long: bytearray | None = None  # a long body, being read
        self._have = 0  # bytes of it

    @property
    def pending(self) -> int:
        """Return the number of bytes that arrived but were not returned yet."""
        return self._end - self._at + self._have

    def feed(self, data: bytes) -> None:
        """Add bytes that the caller read elsewhere."""
        unread = memoryview(data)
        while unread:
            with self.room() as buffer:
                count = min(len(buffer), len(unread))
                buffer[:count] = unread[:count]
            self.filled(count)
            unread = unread[count:]

    def room(self) -> memoryview:
        """Return the buffer for the next bytes, which is never empty.

        Release it after reading, then call `filled`.
        """
        if self._fills_long():
            return memoryview(self._growing())[self._have : self._length]
        unread_size = self._end - self._at
        if not unread_size:
            if len(self._data) > _BUFFER_SIZE:
                self._data = bytearray(_BUFFER_SIZE)  # it had grown
            self._start_with(0)
        elif len(self._data) - self._end < _LEAST_ROOM:
            if unread_size > len(self._data) // 2:
                self._data.extend(bytes(len(self._data)))
            self._data[:unread_size] = self._data[self._at : self._end]
            self._start_with(unread_size)
        return memoryview(self._data)[self._end :]

    def filled(self, count: int) -> None:
        """Report that `count` bytes were read into `room()`."""
        if self._fills_long():
            self._have += count
        else:
            self._end += count

    def next(self) -> Body | None:
        """Return the next body, or None until more bytes arrive.

        Raise `FrameError` if the bytes are not a frame.
        """
        if not self._in_body and not self._read_header():
            return None
        length = self._length or 0
        if self._long is None:
            if length > self._end - self._at:
                if length > _SHORT:
                    self._begin_long(length)
                return None
            body: Body = bytes(memoryview(self._data)[self._at : self._at + length])
            self._at += length
        else:
            if self._have < length:
                return None
            body, self._long, self._have = self._long, None, 0
        self._line = self._at
        self._length, self._in_body = None, False
        return body

    def _begin_long(self, length: int) -> None:
        self._long = bytearray(min(length, _TRUSTED))
        self._have = self._end - self._at
        self._long[: self._have] = memoryview(self._data)[self._at : self._end]
        self._at = self._end

    def _fills_long(self) -> bool:
        return self._long is not None and self._have < (self._length or 0)

    def _growing(self) -> bytearray:
        """Return the long body with room for more; past _TRUSTED at most twice what has arrived."""
        body = self._long
        assert body is not None  # noqa: S101 - `_fills_long` was true
        if self._have == len(body):
            body.extend(bytes(min(len(body), (self._length or 0) - len(body))))
        return body

    def _start_with(self, unread_size: int) -> None:
        """Note that the remaining bytes moved to the start of the buffer."""
        self._line -= self._at
        self._at, self._end = 0, unread_size

    def _read_header(self) -> bool:
        while True:
            data = self._data
            end = data.find(b"\n", self._line, self._end)
            if (self._end if end < 0 else end) - self._at > HEADER_LIMIT:
                raise FrameError(f"the header is longer than {HEADER_LIMIT} bytes")
            if end < 0:
                has_begun = self._end > self._line
                if has_begun and not (data[self._line] == 13 or _NAME.match(data, self._line, self._end)):
                    raise FrameError("a header line does not start with a header name")
                return False
            line = bytes(data[self._line : end])
            self._line = end + 1
            if not line.endswith(b"\r"):
                raise FrameError("a header line does not end with CRLF")
            if line == b"\r":
                break
            self._read_line(line[:-1])
        if self._length is None:
            raise FrameError("the header has no Content-Length")
        self._at, self._in_body = self._line, True
        return True

    def _read_line(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise FrameError("a header line is not `Name: value`")
        name, value = name.lower(), value.strip(b"\t ")
        if name == b"content-length":
            self._read_length(value)
        elif name == b"content-type":
            charset = _CHARSET.search(value)
            if charset is not None and charset[1].lower() not in (b"utf-8", b"utf8"):
                raise FrameError("the charset of Content-Type is not utf-8")

    def _read_length(self, value: bytes) -> None:
        if self._length is not None:
            raise FrameError("the header has two Content-Length lines")
        if not _DIGITS.fullmatch(value):
            raise FrameError("Content-Length is not a number of bytes")
        self._length = int(value)
        if self._length > self._body_limit:
            raise FrameError(f"the message is longer than {self._body_limit} bytes")


def header(size: int) -> bytes:
    """Return the header of a body of `size` bytes."""
    return b"Content-Length: %d\r\n\r\n" % size


# ---------------------------------------------------------------- JSON


def decode(data: Json, kind: Any, *, keeps_halves: bool = False) -> Any:
    """Decode JSON into `kind`. Escaped lone surrogates, which JavaScript may send, become U+FFFD.

    With `keeps_halves` they stay, because the text may be the half of a pair.

    Raise msgspec.ValidationError, which names the place, for JSON that does not match `kind`, and
    msgspec.DecodeError for data that is not JSON, or not UTF-8.
    """
    try:
        return _decode(data, kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        repaired = _ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], bytes(data))
        if repaired == bytes(data):
            raise
    value = _decode(repaired, kind)
    if not keeps_halves:
        return value
    import json  # rarely needed

    return convert_to(json.loads(bytes(data)), kind)


def _decode(data: Json, kind: Any) -> Any:
    try:
        return decoder_of(kind).decode(data)
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def encode(value: Any) -> bytes:
    """Encode to JSON: NaN and infinities become null, lone surrogates U+FFFD.

    Raise TypeError, ValueError, OverflowError or RecursionError for a value that is not JSON.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_without_surrogates(msgspec.to_builtins(value, builtin_types=(msgspec.Raw,))))


def encode_in_parts(result: Any, envelope: Callable[[Any], Any]) -> list[Part]:
    """Encode `envelope(result)` to JSON, in consecutive parts.

    Long lists of encoded values in a struct are parts of their own instead of being copied. Raise the same
    errors as `encode`.
    """
    lists = dict(_long_lists(result))
    if lists:
        shell = encode(envelope(msgspec.structs.replace(result, **dict.fromkeys(lists, _GAP))))
        shell_parts = shell.split(bytes(_GAP))
        if len(shell_parts) == len(lists) + 1:
            parts: list[Part] = [shell_parts[0]]
            for items, following_text in zip(lists.values(), shell_parts[1:], strict=True):
                comma_and_item = [part for item in items for part in (b",", memoryview(item))]
                parts += [b"[", *comma_and_item[1:], b"]", following_text]
            return parts
    return [encode(envelope(result))]


def _long_lists(result: Any) -> Iterator[tuple[str, list[msgspec.Raw]]]:
    """Yield the fields of a struct, in order, that are lists of encoded values too long to copy."""
    if not isinstance(result, msgspec.Struct):
        return
    for name in result.__struct_fields__:
        items = getattr(result, name)
        if type(items) is list and items and all(type(item) is msgspec.Raw for item in items):
            size = sum(len(memoryview(item)) for item in items)
            if size > max(LONG, _LONG_ITEM * len(items)):
                yield name, items


_encode = msgspec.json.Encoder().encode


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
