"""Model parameters with the place that each value comes from: request over configuration over defaults."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nexus_context.config.check import check_value
from nexus_context.config.merge import Effective
from nexus_context.errors import RequestError
from nexus_context.jsontext import pointer_text


class Parameter(msgspec.Struct, frozen=True):
    """A value and its origin: `request`, a layer's name, or `built-in`."""

    value: Any
    origin: str


def resolve(effective: Effective, requested: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters to send, by name; those that nobody set are absent.

    Raises RequestError for a requested one that does not exist or is out of range.
    """
    found = {
        name: Parameter(value, _origin(effective, name)) for name, value in _configured(effective).items()
    }
    for name, value in requested.items():
        # a name is one step: `thinking/level` is no parameter
        wrong = check_value(pointer_text(("parameters", name)), value)
        if wrong:
            raise RequestError(f"Parameter {name} of the request: {wrong}", code="bad-parameter")
        found[name] = Parameter(value, "request")
    return found


def _configured(effective: Effective) -> dict[str, Any]:
    values = effective.get("/parameters") or {}
    return {name: value for name, value in values.items() if value is not None}


def _origin(effective: Effective, name: str) -> str:
    prefix = pointer_text(("parameters", name))
    origins = [
        entry.layer
        for pointer, chain in effective.provenance.items()
        if pointer == prefix or pointer.startswith(prefix + "/")
        for entry in chain
        if entry.wins
    ]
    return origins[-1] if origins else "built-in"
