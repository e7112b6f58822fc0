"""Tells what the front matter of a file may have: fields and values, by the documentation of the programs."""

import re
from pathlib import Path
from typing import NamedTuple

from nexus_context.config.check import load_schema
from nexus_context.errors import Span

FIELDS = str(Path(__file__).with_name("front_matter.json"))
_OPENING = re.compile(r"---[ \t]*(?:\r\n|\r|\n)")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)
_FIELD = re.compile(r"^([\w-]+)[ \t]*:", re.MULTILINE)
_KEY = re.compile(r"([\w-]*)")
_VALUE = re.compile(r"([\w-]+)[ \t]*:[ \t]*([^\s#]*)")


class MatterField(NamedTuple):
    """A field of front matter: its name, its purpose, and its possible values if they are few."""

    name: str
    text: str
    values: tuple[str, ...]


class MatterPlace(NamedTuple):
    """A place in front matter where the name of a field may be written, or the value of `field` if that is
    not None.

    `written` is the place of what stands there. `names` are the fields in the other lines.
    """

    field: str | None
    written: Span
    names: frozenset[str]


def matter_fields(path: str) -> tuple[MatterField, ...]:
    """Return the fields that the front matter of a file may have, by its path. Empty if the kind of file is
    not known.
    """
    for kind in load_schema(FIELDS)["kinds"]:
        if re.search(f"{kind['path']}$", path.replace("\\", "/")):
            return tuple(
                MatterField(name, field["text"], tuple(field.get("values", ())))
                for name, field in kind["fields"].items()
            )
    return ()


def find_matter_place(text: str, offset: int) -> MatterPlace | None:
    """Find what can be written at an offset in front matter, which may be unfinished. Return None anywhere
    else.
    """
    opening = _OPENING.match(text)
    if opening is None or offset < opening.end():
        return None
    closing = _CLOSING.search(text, opening.end())
    end = len(text) if closing is None else closing.start()
    if offset > end:
        return None
    line = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    names = frozenset(
        match[1] for match in _FIELD.finditer(text, opening.end(), end) if match.start() != line
    )
    if (value := _VALUE.fullmatch(text, line, offset)) is not None:
        return MatterPlace(value[1], Span(value.start(2), offset), names)
    key = _KEY.fullmatch(text, line, offset)
    return None if key is None else MatterPlace(None, Span(line, offset), names)
