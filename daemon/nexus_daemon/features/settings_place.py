"""Find what a position in a settings file stands for: a key with its path, or a value."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from nexus_context.assistants.reading.toml import TomlDocument
from nexus_context.errors import Span
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument
from nexus_daemon.features.open_document import OpenDocument


class SettingsPlace(NamedTuple):
    """A key or value that is written in a settings file: its path from the top, and its span."""

    path: tuple[str | int, ...]
    span: Span

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the path up to the first list: the keys before any list index."""
        return tuple(takewhile(lambda step: isinstance(step, str), self.path))  # type: ignore[arg-type]


def place_at(document: OpenDocument, offset: int) -> SettingsPlace | None:
    """Return the key or the plain value at an offset.

    None between them, and in a text that cannot be parsed.
    """
    parsed = parse(document)
    if parsed is None:
        return None
    path = parsed.path_at(offset)
    key = parsed.key_span(path) if path else None
    if key is not None and key.start <= offset <= key.end:
        return SettingsPlace(path, key)
    if not path or isinstance(_value(parsed.value, path), dict | list):
        return None
    span = parsed.span(path)
    return SettingsPlace(path, span) if span.start <= offset <= span.end else None


def parse(document: OpenDocument) -> JsonDocument | TomlDocument | None:
    """Parse the text of a settings file. None for a TOML text that is not valid."""
    if document.kind == "json":
        return jsontext.parse(document.path, document.text)
    parsed = TomlDocument(document.path, document.text)
    return None if parsed.failure is not None else parsed


def _value(value: object, path: Sequence[str | int]) -> object:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else None
    return value
