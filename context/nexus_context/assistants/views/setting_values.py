"""Reads a setting of an assistant in a folder: its value in force, and the files that set it.

1. Keys are written as in the files: `permissions.allow`, `/env/HOME`, `chat.agent.enabled`. A key at the top
   may itself have dots.
2. Nothing counts in a file that the program refuses.
3. A file counts if the value in force would be another one without it. The most important file always counts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec
from msgspec.structs import replace

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.findings import value_at
from nexus_context.assistants.reading.profile_types import AssistantSettings, AssistantSettingsFile, Keys
from nexus_context.assistants.reading.toml import read_toml
from nexus_context.config.fixes import meant
from nexus_context.errors import Span
from nexus_context.text.json import parse_pointer
from nexus_context.text.redact import is_secret_place, printable_setting

COVER = "***"
_KEY = re.compile(r"/?[\w$-]+(?:[./][\w$@-]+)*")


class SettingSource(msgspec.Struct, frozen=True):
    """A file that sets a setting: the place of the key there, and the value with possible secrets covered.

    `counts` is true if the value in force would be another one without this file.
    """

    path: str
    span: Span
    value: Any
    counts: bool


class SettingValue(msgspec.Struct, frozen=True):
    """A setting of one assistant. `value` is the value in force, with possible secrets covered, None without
    one.

    `is_known` tells whether the assistant has such a setting; None where its settings are not known.
    `sources` are the files that set it, the most important first.
    """

    value: Any
    sources: tuple[SettingSource, ...]
    is_known: bool | None


def read_keys(name: str, text: str, settings: AssistantSettings) -> Keys:
    """Parse a text that names a setting into keys, from the top of an assistant's settings. Return () if it
    names none.
    """
    if _KEY.fullmatch(text) is None:
        return ()
    schema = PROGRAMS[name].settings_schema
    return _keys_of(text, [schema.get("properties", {}), *(_document_value(file) for file in settings.files)])


def find_setting(name: str, keys: Keys, settings: AssistantSettings, disk: Disk) -> SettingValue | None:
    """Find the setting at these keys. Return None if no file sets it and the assistant's schema does not have
    it.
    """
    if not keys:
        return None
    schema = PROGRAMS[name].settings_schema
    sources = tuple(_sources(settings, keys, disk))
    is_known = _is_known(schema, keys) if schema else None
    if not sources and not (is_known and _is_described(schema, keys)):
        return None
    return SettingValue(printable(value_at(settings.merged(), keys), keys), sources, is_known)


def nearest_setting(schema: Mapping[str, Any], text: str) -> str | None:
    """Return the setting of a schema that a misspelt text most likely means, None if none is similar.

    A single word, which may be a command, must differ little and begin alike.
    """
    if _KEY.fullmatch(text) is None:
        return None
    dotted = [key for key in schema.get("properties", {}) if "." in key]
    if dotted:  # the keys of VS Code
        return None if text in dotted or "." not in text else meant(text, dotted)
    keys = list(_keys_of(text, ()))
    near: list[str] = []
    node: Any = schema
    for key in keys:
        properties = node.get("properties", {}) if isinstance(node, Mapping) else {}
        close = key if key in properties else meant(key, properties)
        if close is None:
            return None
        near.append(close)
        node = properties[close]
    is_like = near != keys and (
        len(keys) > 1 or (near[0][0] == text[0] and abs(len(near[0]) - len(text)) < 2)
    )
    return ".".join(near) if is_like else None


def printable(value: Any, keys: Sequence[str]) -> Any:
    """Return a value of a settings file with possible secrets covered."""
    if isinstance(value, dict):
        return {key: printable(member, (*keys, key)) for key, member in value.items()}
    if value is not None and is_secret_place(keys):
        return COVER
    if isinstance(value, list):
        return [printable(item, keys) for item in value]
    return printable_setting(value, keys)


def _keys_of(text: str, tops: Sequence[Any]) -> tuple[str, ...]:
    """The keys that a text names, down to a list; `tops` are objects with keys of the top."""
    if any(isinstance(top, Mapping) and text in top for top in tops):
        return (text,)
    steps = map(str, parse_pointer(text)) if text.startswith("/") else iter(text.split("."))
    return tuple(takewhile(lambda step: not step.isdecimal(), steps))


def _sources(settings: AssistantSettings, keys: tuple[str, ...], disk: Disk) -> Iterator[SettingSource]:
    value_in_force, is_last = value_at(settings.merged(), keys), True
    for file in reversed(settings.files):
        written_value = value_at(_document_value(file), keys)
        value = value_at(file.values, keys)
        if written_value is None and value is None:
            continue
        other_settings = replace(
            settings, files=tuple(other_file for other_file in settings.files if other_file is not file)
        )
        counts = value is not None and (is_last or value_at(other_settings.merged(), keys) != value_in_force)
        is_last = is_last and value is None
        displayed = written_value if value is None else value
        yield SettingSource(file.path, _key_span(file, keys, disk), printable(displayed, keys), counts)


def _document_value(file: AssistantSettingsFile) -> Any:
    """What is written in a file, whether its program takes it or not."""
    return file.values if file.document is None else file.document.value


def _key_span(file: AssistantSettingsFile, keys: tuple[str, ...], disk: Disk) -> Span:
    if file.document is not None:
        try:
            return file.document.key_span(keys) or Span(0, 0)
        except KeyError:  # the program takes the key over from another name
            return Span(0, 0)
    if not file.path.endswith(".toml"):
        return Span(0, 0)
    document, written_keys = read_toml(disk, file.path), (file.written_keys.get(keys[0], keys[0]), *keys[1:])
    spans = (document.key_span(written_keys[:count]) for count in range(len(keys), 0, -1))
    return next((span for span in spans if span is not None), Span(0, 0))


def _is_described(schema: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Whether the schema has every key, or what each key of its object is: not just any object."""
    node: Any = schema
    for key in keys:
        node = node.get("properties", {}).get(key) or node.get("additionalProperties")
        if not isinstance(node, Mapping):
            return False
    return True


def _is_known(schema: Mapping[str, Any], keys: Sequence[str]) -> bool:
    node: Any = schema
    for key in keys:
        if not isinstance(node, Mapping) or not (node.keys() & {"properties", "additionalProperties"}):
            kinds = node.get("type", "object") if isinstance(node, Mapping) else "object"
            return "object" in kinds  # what is below is not described
        child = node.get("properties", {}).get(key)
        node = node.get("additionalProperties", False) if child is None else child
        if node is False:
            return False
    return True
