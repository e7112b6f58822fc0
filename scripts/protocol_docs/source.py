"""What the package `protocol` says about itself: fields with types, defaults and meanings.

1. A field's meaning is the comment behind it, or the comment lines above it where the line is too short.
2. Types are in TypeScript's notation. `Raw` is JSON encoded earlier: the field's other form names its type.
3. `strict` returns a twin of a struct that refuses unknown fields and values outside a `OneOf`, at any depth.
"""

import ast
import importlib
import inspect
import pkgutil
import tokenize
import types
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from nexus_daemon import protocol
from nexus_daemon.protocol.shapes import OneOf

StructType = type[msgspec.Struct]


class Field(msgspec.Struct, frozen=True):
    """One field as it is on the wire. `default` is JSON; None where the field is required."""

    name: str
    type: str
    default: str | None
    meaning: str


def fields(kind: StructType) -> list[Field]:
    """The fields of a struct, inherited ones first."""
    return [
        Field(field.encode_name, notation(field.type), _default(field), meaning(kind, field.name))
        for field in msgspec.structs.fields(kind)
    ]


def declared_fields(kind: StructType) -> list[Field]:
    """The fields of a struct without those of its bases."""
    inherited = {field.encode_name for base in bases(kind) for field in msgspec.structs.fields(base)}
    return [field for field in fields(kind) if field.name not in inherited]


def bases(kind: StructType) -> list[StructType]:
    """The structs with fields that a struct extends."""
    return [base for base in kind.__bases__ if is_struct(base) and msgspec.structs.fields(base)]


def structs_in(kind: Any) -> list[StructType]:
    """Every struct that a value of this type can hold, itself first, each once, in reading order."""
    found: dict[StructType, None] = {}

    def visit(one: Any) -> None:
        if is_struct(one):
            if one not in found:
                found[one] = None
                for field in msgspec.structs.fields(one):
                    visit(field.type)
            return
        for part in get_args(one):
            visit(part)

    visit(kind)
    return list(found)


def declared_structs() -> list[StructType]:
    """The structs of `protocol`, by module and name."""
    names = (f"{protocol.__name__}.{module.name}" for module in pkgutil.iter_modules(protocol.__path__))
    modules = [importlib.import_module(name) for name in names]
    structs = {value for module in modules for value in vars(module).values() if is_struct(value)}
    declared = (struct for struct in structs if struct.__module__.startswith(protocol.__name__))
    return sorted(declared, key=lambda one: (one.__module__, one.__name__))


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def notation(kind: Any) -> str:
    """A type in TypeScript's notation; `integer` is a number, and `JSON` any value."""
    plain = {
        str: "string",
        int: "integer",
        float: "number",
        bool: "boolean",
        types.NoneType: "null",
        Any: "JSON",
    }
    if kind in plain:
        return plain[kind]
    if is_struct(kind):
        return str(kind.__name__)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return notation(parts[0])
    if origin is Literal:
        return " | ".join(f'"{part}"' for part in parts)
    if origin in (Union, types.UnionType):
        names = list(dict.fromkeys(notation(part) for part in parts if not _is_silent(part)))
        return " | ".join(name for name in names if name != "integer" or "number" not in names)
    if origin in (list, tuple):
        item = notation(parts[0])
        return f"({item})[]" if " " in item else f"{item}[]"
    if origin is dict:
        return "object" if parts[1] is Any else f"{{[name]: {notation(parts[1])}}}"
    raise TypeError(f"protocol.md has no notation for {kind}")


def values_of(kind: Any) -> OneOf | None:
    """The values that an annotated type names."""
    return get_args(kind)[1] if get_origin(kind) is Annotated else None


def strict(kind: Any) -> Any:
    """The same type, with structs that refuse unknown fields."""
    if is_struct(kind):
        return _strict_struct(kind)
    if (one_of := values_of(kind)) is not None:
        return Literal[one_of.values]
    origin, parts = get_origin(kind), [strict(part) for part in get_args(kind) if not _is_raw(part)]
    if origin in (Union, types.UnionType):
        return Union[tuple(parts)]  # noqa: UP007 - built at run time
    if origin in (list, dict):
        return origin[tuple(parts)]
    if origin is tuple:
        return tuple[parts[0], ...]  # type: ignore[valid-type]
    return kind


@cache
def _strict_struct(kind: StructType) -> StructType:
    config = kind.__struct_config__
    listed: list[Any] = []
    for field in msgspec.structs.fields(kind):
        default = msgspec.field(name=field.encode_name)
        if field.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(name=field.encode_name, default_factory=field.default_factory)
        elif field.default is not msgspec.NODEFAULT:
            default = msgspec.field(name=field.encode_name, default=field.default)
        listed.append((field.name, strict(field.type), default))
    return msgspec.defstruct(
        kind.__name__, listed, kw_only=True, omit_defaults=config.omit_defaults, forbid_unknown_fields=True
    )


def _is_silent(kind: Any) -> bool:
    """Raw JSON stands for a type that is named beside it; an absent field is said by its default."""
    return _is_raw(kind) or kind is msgspec.UnsetType


def _is_raw(kind: Any) -> bool:
    return kind is msgspec.Raw or msgspec.Raw in get_args(kind)


def _default(field: msgspec.structs.FieldInfo) -> str | None:
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT:
        return None
    if value is msgspec.UNSET:
        return "absent"
    return "{}" if isinstance(value, msgspec.Struct) else msgspec.json.encode(value).decode()


def meaning(kind: StructType, name: str) -> str:
    """The comment of a field, in its struct or the struct that it is inherited from."""
    owner = next(one for one in kind.__mro__ if name in inspect.get_annotations(one))
    return _comments(inspect.getsourcefile(owner) or "").get(f"{owner.__name__}.{name}", "")


@cache
def _comments(path: str) -> dict[str, str]:
    """`Class.field` → the comment behind it or the comments right above it, for every class of a file."""
    with tokenize.open(path) as file:
        text = file.read()
    lines = text.splitlines(keepends=True)
    said = {
        token.start[0]: token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(iter(lines).__next__)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for owner in (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)):
        for item in owner.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                first = item.lineno
                while lines[first - 2].lstrip().startswith("#"):
                    first -= 1
                above = " ".join(said[line] for line in range(first, item.lineno))
                found[f"{owner.name}.{item.target.id}"] = said.get(item.end_lineno or item.lineno) or above
    return found
