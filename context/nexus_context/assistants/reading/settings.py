"""Reads settings of other programs: JSON with comments, as far as it can be read."""

from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument


def read_json(disk: Disk, path: str) -> dict[str, Any]:
    """Return the object in a JSON file, empty if there is none. Comments and trailing commas are allowed."""
    document = read_document(disk, path)
    value = None if document is None else document.value
    return value if isinstance(value, dict) else {}


def read_document(disk: Disk, path: str) -> JsonDocument | None:
    """Read a JSON file with the places of its values. Return None if there is no such file.

    A byte order mark becomes a blank, so that the places are those in the file.
    """
    text = disk.text(path)
    return None if text is None else jsontext.parse(path, without_mark(text))


def without_mark(text: str) -> str:
    """Return a text with a blank in place of a byte order mark."""
    return f" {text[1:]}" if text.startswith("\ufeff") else text


def texts_of(value: Any) -> list[str]:
    """Return the texts in a list. Return an empty list for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
