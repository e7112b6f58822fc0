"""What can be seen of a JSON document: its value, its problems, and where everything is."""

import json
from collections.abc import Iterator
from typing import Any

from nexus_context.config.check import check_config
from nexus_context.text.json import JsonDocument, Pointer


def pointers(value: Any, path: Pointer = ()) -> Iterator[Pointer]:
    """The paths of a value and of everything in it."""
    todo: list[tuple[Pointer, Any]] = [(path, value)]
    while todo:  # values can be nested as deep as the parser allows
        path, value = todo.pop()
        yield path
        if isinstance(value, dict | list):
            members = value.items() if isinstance(value, dict) else enumerate(value)
            todo += [((*path, name), member) for name, member in members]


def places(found: JsonDocument) -> Iterator[Any]:
    """Where each value and its key are, and what is at forty places of the text."""
    for pointer in pointers(found.value) if found.value is not None else ():
        yield pointer, found.span(pointer), found.key_span(pointer)
    for offset in range(0, len(found.text) + 1, len(found.text) // 40 + 1):
        yield found.path_at(offset)


def observed(found: JsonDocument) -> list[Any]:
    """All that can be seen of a document, and what the checker says of it."""
    return [
        json.dumps(found.value),
        found.problems,
        (found.ok, found.empty),
        check_config(found),
        *places(found),
    ]
