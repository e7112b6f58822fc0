"""Examples of the types that a provider's SDK takes in a request: for each type, one with each of its fields.

1. A walk from a union reaches every TypedDict (Anthropic, OpenAI) or model (Google). An example has the
   required fields and one other; those inside it have all of theirs.
2. Every text in an example is unique, so that it can be found in a body. Texts that a reader checks (URLs,
   base64, kinds) are of the right form.
"""

import inspect
import types
from collections.abc import Iterator
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from typing_extensions import is_typeddict

from support.conversations import PDF, PNG

DEPTH = 5
"""Levels of types inside an example: the schemas of some contain themselves."""


class Example(NamedTuple):
    """A value of a type in which `field` is set; `label` is for people."""

    label: str
    field: str
    value: dict[str, Any]


def examples_of(union: Any) -> Iterator[Example]:
    """An example for each field of each type in a union."""
    for number, type_ in enumerate(sorted(_members(union), key=str)):
        fields = _fields(type_)
        required = [name for name, (_, needed) in fields.items() if needed]
        for name in fields:
            maker = _Maker(f"{number}")
            names = dict.fromkeys([*required, name])
            value = {one: maker.make(fields[one][0], one, DEPTH) for one in names}
            yield Example(f"{type_.__name__}.{name}", name, value)


def _members(union: Any) -> list[Any]:
    """The TypedDicts and models in a union, each once."""
    origin = get_origin(union)
    if origin in (Union, types.UnionType):
        return list({id(one): one for part in get_args(union) for one in _members(part)}.values())
    if origin in (Annotated, Required, NotRequired):
        return _members(get_args(union)[0])
    is_type = is_typeddict(union) or (inspect.isclass(union) and issubclass(union, BaseModel))
    return [union] if is_type else []


def _fields(type_: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a type by their names in JSON: the type of each, and whether it is required."""
    if not is_typeddict(type_):
        return {
            field.alias or name: (field.annotation, field.is_required())
            for name, field in type_.model_fields.items()
        }
    hints = get_type_hints(type_, include_extras=True)
    return {
        name: (hint, get_origin(hint) is Required) for name, hint in hints.items()
    }  # from strings: not known else


class _Maker:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0

    def make(self, type_: Any, name: str, depth: int) -> Any:
        """A value of a type, for a field of this name."""
        origin, arguments = get_origin(type_), get_args(type_)
        if origin in (Annotated, Required, NotRequired):
            return self.make(arguments[0], name, depth)
        if origin is Literal:
            return arguments[0]
        if origin in (Union, types.UnionType):
            return self._chosen(arguments, name, depth)
        if is_typeddict(type_) or (inspect.isclass(type_) and issubclass(type_, BaseModel)):
            fields = _fields(type_).items() if depth > 0 else ()
            return {one: self.make(hint, one, depth - 1) for one, (hint, _) in fields}
        if type_ in (int, float):
            return 7
        if type_ is bool:
            return True
        if type_ is str or (inspect.isclass(type_) and issubclass(type_, str)) or type_ is bytes:
            members = list(getattr(type_, "__members__", {}).values())
            return str(members[-1].value) if members else self._text(name)
        if origin is dict or type_ is dict:
            return {self._text("key"): self._text("value")}
        if arguments:
            return [self.make(arguments[0], name, depth)]
        return {"type": "object", "description": self._text("value")}

    def _chosen(self, arguments: tuple[Any, ...], name: str, depth: int) -> Any:
        """A value of the type in a union that has most to say: a list of objects, an object, any other."""
        options = [one for one in arguments if one is not type(None)]
        return self.make(max(options, key=_rank), name, depth)

    def _text(self, name: str) -> str:
        self._count += 1
        text = f"mark-{self._prefix}-{self._count}"
        lowered = name.lower()
        if lowered in ("url", "image_url", "file_url"):
            return f"https://x.example/{text}"
        if lowered in ("data", "file_data"):
            return f"{PDF}{text}" if lowered == "file_data" else PNG
        if lowered in ("media_type", "mimetype"):
            return "image/png"
        return "{}" if lowered == "arguments" else text


def _rank(type_: Any) -> int:
    members = _members(type_)
    if get_origin(type_) in (list, tuple) or "Iterable" in str(type_):
        return 3
    return 2 if members else 1
