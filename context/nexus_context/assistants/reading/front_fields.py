"""Reads fields of front matter as editors do: texts, and lists separated by commas.

A value may begin with an unquoted `*`, which YAML would take for an alias. This is documented,
but was not tried.
"""

import re
from typing import Any

from nexus_context.assistants.reading.yaml_fields import UnreadableError, read_fields

UNREADABLE = "assistant.front-matter"
_STAR = "\ue000"
"""Stands for a `*` that YAML would take for an alias."""
_LEADING_STAR = re.compile(r"^([\w-]+:[ \t]+|[ \t]*-[ \t]+)\*", re.MULTILINE)


def field_text(matter: str | None, name: str) -> str | None:
    """Return a field that is a text, else None."""
    value = _field(matter, name)
    return value.replace(_STAR, "*") if isinstance(value, str) else None


def field_list(matter: str | None, name: str) -> list[str]:
    """Return the items of a field that is a list or a text with commas. Commas within braces separate
    nothing.
    """
    value = _field(matter, name)
    texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
    items = [item.strip() for text in texts for item in re.split(r",(?![^{]*\})", text)]
    return [item.replace(_STAR, "*") for item in items if item]


def is_readable(matter: str | None) -> bool:
    """Whether front matter is YAML. True if there is none."""
    return _values(matter) is not None


def _field(matter: str | None, name: str) -> Any:
    return (_values(matter) or {}).get(name)


def _values(matter: str | None) -> dict[str, Any] | None:
    text = _LEADING_STAR.sub(rf"\1{_STAR}", matter or "")
    try:
        return read_fields(text, plain=str).values
    except UnreadableError:
        return None
