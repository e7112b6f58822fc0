"""Tells whether a value fits a schema node, yes or no, as fast as Python allows.

The checker reports where each error is, but of a thousand entries most have none. Each node is compiled once
into a chain of closures, and only what they reject is walked again to find the reason. In a large container,
members that are the same objects as in the text before, and were accepted then, are not tested again.
"""

import functools
import re
import sys
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


_Test = tuple[frozenset[type] | None, dict[type, Accept], Accept | None]
"""The types that a value may have (None: any), the test for each type, and that of the only type.

Unpacked where it is used, so that most values cost no Python call.
"""

_tests: dict[int, tuple[Node, _Test]] = {}


@functools.cache
def _acceptor(identity: int) -> Accept:
    types, parts, only = _tests[identity][1]
    if types is not None and only is not None:
        (kind,) = types
        return lambda value: type(value) is kind and only(value)
    if types is None:
        return lambda value: type(value) not in parts or parts[type(value)](value)
    return lambda value: type(value) in types and (type(value) not in parts or parts[type(value)](value))


def acceptor(node: Node) -> Accept:
    """Return the function that tells whether a value fits a schema node.

    The node must live as long as the process, as the shipped schemas do.
    """
    _test(node)
    return _acceptor(id(node))


def pattern(text: str) -> re.Pattern[str]:
    """Compile a schema's pattern.

    A `$` at its end is the end of the text; in Python a line end could follow.
    """
    return re.compile(re.sub(r"\$\Z", r"\\Z", text))


def _test(node: Node) -> _Test:
    entry = _tests.get(id(node))
    if entry is None:
        entry = _tests[id(node)] = (node, _compiled(node))
    return entry[1]


def _compiled(node: Node) -> _Test:
    expected = node.get("type")
    kinds = [expected] if isinstance(expected, str) else expected
    types = None if kinds is None else frozenset(kind for name in kinds for kind in _TYPES[name])
    parts: dict[type, Accept] = {}
    if {"properties", "additionalProperties", "required", "oneOf"} & node.keys():
        parts[dict] = _object(node)
    if node.get("items"):
        item = acceptor(node["items"])
        parts[list] = lambda value: all(map(item, value))
    if {"minLength", "maxLength", "pattern"} & node.keys():
        parts[str] = _text(node)
    if "minimum" in node or "maximum" in node:
        parts[int] = parts[float] = _number(node)
    if "enum" in node:
        choices = node["enum"]
        scalars = (types or {type(choice) for choice in choices}) - {dict, list}
        parts |= dict.fromkeys(scalars, choices.__contains__)
    if types is not None:
        parts = {kind: accept for kind, accept in parts.items() if kind in types}
    only_accept = next(iter(parts.values())) if types is not None and len(types) == len(parts) == 1 else None
    return types, parts, only_accept


def _object(node: Node) -> Accept:
    tests = {key: _test(child) for key, child in node.get("properties", {}).items()}
    additional = node.get("additionalProperties", ANYTHING)
    additional_test = None if additional is False else _test(additional)
    required = frozenset(node.get("required", ()))
    one_of = [choice["required"][0] for choice in node.get("oneOf", ())]

    def accepts(value: dict[str, Any]) -> bool:
        for key, child in value.items():
            test = tests.get(key)
            if test is None:
                if key.startswith(COMMENT_PREFIX):
                    continue
                if additional_test is None:
                    return False
                test = additional_test
            types, parts, only_accept = test
            if types is not None and type(child) not in types:
                return False
            if only_accept is not None:
                if not only_accept(child):
                    return False
            elif parts and type(child) in parts and not parts[type(child)](child):
                return False
        if required and not required <= value.keys():
            return False
        return not one_of or sum(value.get(key) is not None for key in one_of) == 1

    return accepts


def _text(node: Node) -> Accept:
    min_length, max_length = node.get("minLength", 0), node.get("maxLength", sys.maxsize)
    form = pattern(node["pattern"]).search if "pattern" in node else None
    if form is None and min_length == 1 and max_length == sys.maxsize:
        return bool
    return lambda value: min_length <= len(value) <= max_length and (form is None or form(value) is not None)


def _number(node: Node) -> Accept:
    low, high = node.get("minimum"), node.get("maximum")
    return lambda value: (low is None or value >= low) and (high is None or value <= high)
