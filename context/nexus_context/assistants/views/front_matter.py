"""What the front matter of a file may have: fields and values, by the documentation of the programs."""

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
    """A field: its name, its purpose, and its values if there are only few."""

    name: str
    text: str
    values: tuple[str, ...]


class MatterPlace(NamedTuple):
    """A place where a field (`field` is None) or the value of a field may be written.

    `written` is what stands there; `names` are the other fields.
    """

    field: str | None
    written: Span
    names: frozenset[str]


def matter_fields(path: str) -> tuple[MatterField, ...]:
    """The fields that the front matter of a file may have; none of a file that is not known."""
    for kind in load_schema(FIELDS)["kinds"]:
        if re.search(f"{kind['path']}$", path.replace("\\", "/")):
            return tuple(
                MatterField(name, field["text"], tuple(field.get("values", ())))
                for name, field in kind["fields"].items()
            )
    return ()


def find_matter_place(text: str, offset: int) -> MatterPlace | None:
    """What can be written at an offset of front matter, closed or not; None elsewhere."""
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
