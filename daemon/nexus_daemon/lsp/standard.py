"""Standard LSP values: lsprotocol objects ↔ JSON.

Results are unstructured by a table per class instead of by cattrs, whose code for one class takes 2 to
12 ms to make; a test compares the two for every class. Parameters are structured by cattrs, which knows
all the unions of LSP, on the first message that needs it.
"""

import enum
from functools import cache
from typing import Any, cast

import attrs
import msgspec
from cattrs import Converter
from lsprotocol import converters, types

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.lsp_types import HOT

_ATOMS = frozenset({str, int, float, bool, type(None)})


def params_type(method: str) -> Any:
    """Return the type of a method's parameters: None where it has none, `Any` for an unknown method."""
    if method in HOT:
        return HOT[method]
    return types.METHOD_TO_TYPES[method][2] if method in types.METHOD_TO_TYPES else Any


def is_notification(method: str) -> bool:
    """Return whether LSP sends this method without an id; False for a method that LSP does not have."""
    return method in types.METHOD_TO_TYPES and types.METHOD_TO_TYPES[method][1] is None


def structure(raw: framing.Json, kind: Any) -> Any:
    """Decode JSON into `kind`: an lsprotocol class, a struct, or anything that msgspec knows.

    Raises
    ------
    msgspec.ValidationError
        When the JSON does not fit.

    """
    if not attrs.has(kind):
        return framing.decode(raw, kind)
    given = framing.decode(raw, dict[str, Any])
    try:
        return converter().structure(given, kind)
    except Exception as error:
        # cattrs lets whatever its hooks raise through: KeyError, TypeError, a group of errors
        raise msgspec.ValidationError(f"{_reason(error)} ({kind.__name__})") from error


def unstructure(value: Any) -> Any:
    """Return `value` with every lsprotocol object, at any depth of lists and dicts, as JSON values."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is list or kind is tuple:
        return [unstructure(item) for item in value]
    if kind is dict:
        return {unstructure(key): unstructure(item) for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return value.value
    if not hasattr(kind, "__attrs_attrs__"):
        return value
    found = {}
    for name, key, default, always in _fields(cast("Any", kind)):
        item = getattr(value, name)
        if always or item != default:
            found[key] = unstructure(item)
    return found


@cache
def converter() -> Converter:
    """Return the process's cattrs converter for lsprotocol."""
    return converters.get_converter()


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return (attribute, JSON key, default, present even when default) of each field."""
    rows = []
    for field in attrs.fields(kind):
        always = field.default is attrs.NOTHING or types.is_special_property(kind, field.name)
        rows.append((field.name, _camel(field.name), field.default, always))
    return tuple(rows)


def _camel(name: str) -> str:
    first, *rest = name.removesuffix("_").split("_")
    return first + "".join(part.title() for part in rest)


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = f"missing {error}" if isinstance(error, KeyError) else str(error)
    notes = [note for note in getattr(error, "__notes__", ()) if "attribute" in note]
    return f"{text}: {notes[0].split('@')[-1].strip()}" if notes else text
