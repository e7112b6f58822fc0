"""Whether a value fits a schema node, yes or no, as fast as Python goes.

The checker wants to know where each error is; of a thousand entries most have none. A node is turned into a
chain of closures once, and only what they refuse is walked again to find out why.
"""

import re
from collections.abc import Callable
from typing import Any

Node = dict[str, Any]
Accept = Callable[[Any], bool]

COMMENT_PREFIX = "_comment"
ANYTHING: Node = {}

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
_known: dict[int, tuple[Node, Accept]] = {}


def acceptor(node: Node) -> Accept:
    """The test of a schema node, which must live as long as the process (the shipped schemas do)."""
    known = _known.get(id(node))
    if known is None:
        known = _known[id(node)] = (node, _compiled(node))
    return known[1]


def pattern(text: str) -> re.Pattern[str]:
    """A schema's pattern: `$` ends the text there; in Python it would allow a line end after it."""
    return re.compile(re.sub(r"\$\Z", r"\\Z", text))


def _compiled(node: Node) -> Accept:
    expected = node.get("type")
    if expected is None:
        return _anything if not node else _compiled_parts(node, None)
    kinds = [expected] if isinstance(expected, str) else expected
    types = frozenset(kind for name in kinds for kind in _TYPES[name])
    if "enum" in node:
        choices = node["enum"]
        return lambda value: type(value) in types and value in choices
    return _compiled_parts(node, types)


def _compiled_parts(node: Node, types: frozenset[type] | None) -> Accept:
    parts: dict[type, Accept] = {}
    if {"properties", "additionalProperties", "required", "oneOf"} & node.keys():
        parts[dict] = _object(node)
    if node.get("items"):
        item = acceptor(node["items"])
        parts[list] = lambda value: all(map(item, value))
    if "minLength" in node or "pattern" in node:
        parts[str] = _text(node)
    if "minimum" in node or "maximum" in node:
        parts[int] = parts[float] = _number(node)
    if types is None:
        return lambda value: parts[type(value)](value) if type(value) in parts else True
    if not parts:
        return lambda value: type(value) in types
    if len(types) == 1 and len(parts) == 1 and next(iter(types)) in parts:
        (only,) = types
        inner = parts[only]
        return lambda value: type(value) is only and inner(value)
    return lambda value: type(value) in types and (type(value) not in parts or parts[type(value)](value))


def _object(node: Node) -> Accept:
    known = {key: acceptor(child) for key, child in node.get("properties", {}).items()}
    others = node.get("additionalProperties", ANYTHING)
    other = None if others is False else acceptor(others)
    required = frozenset(node.get("required", ()))
    one_of = [choice["required"][0] for choice in node.get("oneOf", ())]

    def accepts(value: dict[str, Any]) -> bool:
        for key, child in value.items():
            test = known.get(key)
            if test is not None:
                if not test(child):
                    return False
            elif key.startswith(COMMENT_PREFIX):
                continue
            elif other is None or not other(child):
                return False
        if required and not required <= value.keys():
            return False
        return not one_of or sum(value.get(key) is not None for key in one_of) == 1

    return accepts


def _text(node: Node) -> Accept:
    least = node.get("minLength", 0)
    form = pattern(node["pattern"]).search if "pattern" in node else None
    return lambda value: len(value) >= least and (form is None or form(value) is not None)


def _number(node: Node) -> Accept:
    low, high = node.get("minimum"), node.get("maximum")
    return lambda value: (low is None or value >= low) and (high is None or value <= high)


def _anything(_: Any) -> bool:
    return True
