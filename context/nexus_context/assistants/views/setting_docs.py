"""Reads what a settings key of another program does, and its default: `settings.docs.json` in the program's
room.

1. `own` is written for Nexus, `program` is what the program says itself; `own` counts more. Both map JSON
   pointers to an object with `text`, and with `default` if that is known and not null.
2. `*` in a pointer stands for any name or index. A pointer with the name itself counts more.
"""

import functools
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.config.check import load_schema
from nexus_context.text.json import parse_pointer

ROOMS = Path(__file__).parents[1]


class SettingDoc(NamedTuple):
    """What a settings key does, in one or two sentences. `default` is None where it is not known."""

    text: str
    default: Any


def setting_doc(program: str, keys: Sequence[str]) -> SettingDoc | None:
    """Return the documentation of a program's settings key, None where nothing is known of it."""
    docs = _setting_docs(program)
    if len(keys) > max(map(len, docs), default=0):
        return None
    patterns = product(*((key, "*") for key in keys))
    return next((docs[pattern] for pattern in patterns if pattern in docs), None)


@functools.cache
def _setting_docs(program: str) -> Mapping[tuple[str, ...], SettingDoc]:
    if not PROGRAMS[program].settings_schema:
        return {}
    file = load_schema(str(ROOMS / program.replace("-", "_") / "settings.docs.json"))
    return {
        tuple(map(str, parse_pointer(pointer))): SettingDoc(entry["text"], entry.get("default"))
        for pointer, entry in {**file.get("program", {}), **file["own"]}.items()
    }
