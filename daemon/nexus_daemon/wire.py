"""Frames of the base protocol and JSON in both directions, without I/O.

A frame is `Content-Length: N`, CRLF, other headers, an empty line, N bytes of UTF-8 JSON. What is accepted:

1. Header names in any case, any number of spaces around a value, `Content-Type` with charset utf-8 or none.
2. Every line ends with CRLF; the header has one Content-Length of decimal digits only and at most 8 KiB.
3. A body has at most 32 MiB.
4. Anything else is `FrameError`, as soon as it can be told: whoever sent it cannot be understood any
   more, so its connection ends. An HTTP request never gets past its first line.
"""

import re
from functools import cache
from typing import Any

import msgspec

from nexus_context.errors import NexusError

HEADER_LIMIT = 8 * 1024  # bytes
BODY_LIMIT = 32 * 1024 * 1024  # bytes
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e]*")
_DIGITS = re.compile(rb"[0-9]{1,20}")
_CHARSET = re.compile(rb'charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)
# an escaped pair, a lone escaped surrogate, or any other escape (so that \\ud800 is not taken for one)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)

Json = bytes | msgspec.Raw
Id = int | str | float


class FrameError(NexusError):
    """Bytes that are no frame; the message says why."""


class Envelope(msgspec.Struct, frozen=True):
    """A JSON-RPC message whose payload is not looked at yet."""

    jsonrpc: str | msgspec.UnsetType = msgspec.UNSET
    id: Id | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class FrameReader:
    """Cuts a stream of bytes into bodies. A body is copied once, and what follows it is left in place."""

    def __init__(self, *, body_limit: int = BODY_LIMIT) -> None:
        self._body_limit = body_limit
        self._data = b""
        self._at = 0  # start of what is not consumed, in _data
        self._line = 0  # start of the header line that is not read yet, in _data
        self._more: list[bytes] = []  # what was fed after _data
        self._more_size = 0
        self._length: int | None = None  # of the body, once its header line is read
        self._in_body = False

    @property
    def pending(self) -> int:
        """Bytes that were fed and not taken yet."""
        return len(self._data) - self._at + self._more_size

    def feed(self, data: bytes) -> None:
        if not self.pending:
            self._data, self._at, self._line = data, 0, 0
        else:
            self._more.append(data)
            self._more_size += len(data)

    def next(self) -> bytes | None:
        """Return the next body, or None until more is fed; raise `FrameError`."""
        if not self._in_body and not self._read_header():
            return None
        length = self._length or 0
        over = self.pending - length
        if over < 0:
            return None
        if self._more and over < len(self._more[-1]):
            body = self._take_all_but(over)
        else:
            if length > len(self._data) - self._at:
                self._join()
            body = self._data[self._at : self._at + length]
            self._at += length
        self._line = self._at
        self._length, self._in_body = None, False
        return body

    def _take_all_but(self, over: int) -> bytes:
        """All but the last bytes of the last piece, which becomes the data; one copy of the rest."""
        *whole, last = self._more
        at = len(last) - over
        body = b"".join((memoryview(self._data)[self._at :], *whole, memoryview(last)[:at]))
        self._data, self._at = last, at
        self._more, self._more_size = [], 0
        return body

    def _join(self) -> None:
        """Make one piece of all that is not consumed."""
        self._data = b"".join((memoryview(self._data)[self._at :], *self._more))
        self._more, self._more_size = [], 0
        self._line -= self._at
        self._at = 0

    def _read_header(self) -> bool:
        while True:
            data = self._data
            end = data.find(b"\n", self._line)
            if end < 0 and self._more:
                self._join()
                continue
            if (len(data) if end < 0 else end) - self._at > HEADER_LIMIT:
                raise FrameError(f"the header is longer than {HEADER_LIMIT} bytes")
            if end < 0:
                if len(data) > self._line and not (data[self._line] == 13 or _NAME.match(data, self._line)):
                    raise FrameError("a header line does not start with a header name")
                return False
            line = data[self._line : end]
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


def header(body: bytes) -> bytes:
    """Return what goes before a body."""
    return b"Content-Length: %d\r\n\r\n" % len(body)


def frame(body: bytes) -> bytes:
    """Return a body with its header."""
    return header(body) + body


# ---------------------------------------------------------------- JSON


def decode(data: Json, kind: Any) -> Any:
    """Decode JSON into `kind`; escaped lone surrogates, which JavaScript may send, become U+FFFD.

    Raises
    ------
    msgspec.ValidationError
        When the JSON does not fit `kind`; the message names the place.
    msgspec.DecodeError
        When the data is not JSON.

    """
    try:
        return _decoder(kind).decode(data)
    except msgspec.ValidationError:
        raise
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None
    except msgspec.DecodeError:
        mended = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], bytes(data))
        if mended == bytes(data):
            raise
    return _decoder(kind).decode(mended)


def encode(value: Any) -> bytes:
    """Encode to JSON: NaN and infinities become null, lone surrogates U+FFFD.

    Raises
    ------
    TypeError, ValueError, OverflowError, RecursionError
        When the value is no JSON.

    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_without_surrogates(msgspec.to_builtins(value, builtin_types=(msgspec.Raw,))))


_encode = msgspec.json.Encoder().encode


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
