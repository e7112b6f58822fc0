"""Settings of other programs: JSON with comments, read as far as it can be read."""

from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument


def read_json(disk: Disk, path: str) -> dict[str, Any]:
    """The object of a JSON file, comments and trailing commas allowed; empty if there is none."""
    document = read_document(disk, path)
    value = None if document is None else document.value
    return value if isinstance(value, dict) else {}


def read_document(disk: Disk, path: str) -> JsonDocument | None:
    """A JSON file with the places of its values, None if there is none.

    A blank stands for a byte order mark, so that the places are those in the file.
    """
    text = disk.text(path)
    return None if text is None else jsontext.parse(path, without_mark(text))


def without_mark(text: str) -> str:
    """A text with a blank in place of a byte order mark."""
    return f" {text[1:]}" if text.startswith("\ufeff") else text


def texts_of(value: Any) -> list[str]:
    """The texts of a list; empty for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
