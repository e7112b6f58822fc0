"""Standard LSP values: lsprotocol objects ↔ JSON, by lsprotocol's own converter.

The converter knows every union of LSP. It is built when the first message needs it.
"""

from functools import cache
from typing import Any

import attrs
import msgspec
from cattrs import Converter
from lsprotocol import converters, types

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.lsp_types import HOT


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
        The JSON does not match `kind`.

    """
    if not attrs.has(kind):
        return framing.decode(raw, kind)
    value = framing.decode(raw, dict[str, Any])
    try:
        return converter().structure(value, kind)
    except Exception as error:
        # the hooks of cattrs raise KeyError, TypeError or a group of errors
        raise msgspec.ValidationError(f"{_reason(error)} ({kind.__name__})") from error


def unstructure(value: Any) -> Any:
    """Return `value` with every lsprotocol object, at any depth of lists and dicts, as JSON values."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [unstructure(item) for item in value]
    if kind is dict:
        return {key: unstructure(item) for key, item in value.items()}
    return converter().unstructure(value) if attrs.has(kind) else value


@cache
def converter() -> Converter:
    """Return the process's cattrs converter for lsprotocol."""
    return converters.get_converter()


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = f"missing {error}" if isinstance(error, KeyError) else str(error)
    notes = [note for note in getattr(error, "__notes__", ()) if "attribute" in note]
    return f"{text}: {notes[0].split('@')[-1].strip()}" if notes else text
