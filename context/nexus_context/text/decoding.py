"""Converts JSON and plain values to typed values, in any thread.

msgspec learns a type where it is first used, and is not safe then: two threads that meet at a struct whose
fields are being learned read a null pointer, and the process ends. So types are learned here, one at a time.
"""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_learning = threading.Lock()


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of JSON to a type."""
    decoder = _decoders.get(kind)
    if decoder is None:
        with _learning:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder


def decode_as(data: bytes | bytearray | memoryview | str | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON to a value of the type `kind`. msgspec.DecodeError if it does not fit the type."""
    return decoder_of(kind).decode(data)


def convert_to(value: Any, kind: type[T], *, from_attributes: bool = False) -> T:
    """Convert plain values to a value of the type `kind`. msgspec.ValidationError if they do not fit."""
    decoder_of(kind)
    return msgspec.convert(value, kind, from_attributes=from_attributes)
