"""Explain what is wrong with parameters: msgspec's error, with the whole path of an unknown field.

`$.options` and the unknown field `paramters` become `options.paramters`; the nearest field of that object is
proposed.
"""

import re
from collections.abc import Iterator
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec

from nexus_context.config.fixes import meant

_UNKNOWN = re.compile(
    r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$(?P<path>.*)`)?\Z", re.DOTALL
)
_STEP = re.compile(r"\.(?P<field>\w+)|\[(?P<index>[^\]]*)\]")


def describe(error: msgspec.DecodeError, kind: Any) -> str:
    """Return the sentence for an error of decoding a value of type `kind`."""
    unknown = _UNKNOWN.fullmatch(str(error))
    if unknown is None:
        return str(error)
    path = (unknown["path"] or "").removeprefix(".")
    fields = _fields_at(kind, unknown["path"] or "")
    name = unknown["name"]
    suggestion = meant(name, fields)
    prefix = f"{path}." if path else ""
    proposal = (
        f"did you mean `{suggestion}`?"
        if suggestion
        else f"known are {', '.join(f'`{field_name}`' for field_name in fields)}."
    )
    if not fields:
        proposal = "there are no fields."
    return f"Unknown field `{prefix}{name}`: {proposal}"


def _fields_at(kind: Any, path: str) -> list[str]:
    """The fields of the objects at a path, in the order of their declaration."""
    kinds = [kind]
    for step in _STEP.finditer(path):
        kinds = [inner for object_kind in kinds for inner in _inside(object_kind, step["field"])]
    structs = [struct for object_kind in kinds for struct in _parts(object_kind) if _is_struct(struct)]
    return [field.encode_name for struct in structs for field in msgspec.structs.fields(struct)]


def _inside(kind: Any, field: str | None) -> Iterator[Any]:
    """The types of a field of the objects of a type; of the items of its arrays without a field."""
    for member_kind in _parts(kind):
        if field is None:
            if get_origin(member_kind) in (list, tuple):
                yield get_args(member_kind)[0]
        elif _is_struct(member_kind):
            yield from (
                struct_field.type
                for struct_field in msgspec.structs.fields(member_kind)
                if struct_field.encode_name == field
            )


@cache
def _parts(kind: Any) -> tuple[Any, ...]:
    """The types of a union, without null and annotations; else the type itself."""
    if hasattr(kind, "__metadata__"):
        return _parts(get_args(kind)[0])
    if _is_struct(kind) or get_origin(kind) in (list, tuple, dict) or not get_args(kind):
        return () if kind is NoneType else (kind,)
    return tuple(member for argument in get_args(kind) for member in _parts(argument))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
