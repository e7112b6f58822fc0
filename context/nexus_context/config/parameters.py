"""Finds the model parameters of a request in four layers, each value with its origin.

The request's parameters come before the session's, then the agent's, then the configuration's, whose origin
is the layer that wins there, then the defaults.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from nexus_context.config.check import check_value
from nexus_context.config.merge import Effective
from nexus_context.errors import RequestError
from nexus_context.text.json import pointer_text


class Parameter(msgspec.Struct, frozen=True):
    """A value and its origin: `request`, `session`, `agent`, a layer's name, or `built-in`."""

    value: Any
    origin: str


def resolve(
    effective: Effective,
    *,
    agent: Mapping[str, Any] | None = None,
    session: Mapping[str, Any] | None = None,
    request: Mapping[str, Any] | None = None,
) -> dict[str, Parameter]:
    """Return the parameters to send by name, without those that nothing sets.

    A value of None counts as not set. Raises RequestError if a parameter is unknown or out of range; the
    message names the parameter and its layer.
    """
    parameters = {
        name: Parameter(value, _origin(effective, name)) for name, value in _configured(effective).items()
    }
    for origin, values in (("agent", agent), ("session", session), ("request", request)):
        for name, value in (values or {}).items():
            if value is not None:
                check(name, value, origin)
                parameters[name] = Parameter(value, origin)
    return parameters


def check(name: str, value: Any, origin: str) -> None:
    """Raise RequestError unless the parameter called `name` may have this value."""
    # a name is one step: `thinking/level` is not a parameter
    wrong = check_value(pointer_text(("parameters", name)), value)
    if wrong:
        raise RequestError(f"Parameter {name} of the {origin}: {wrong}", code="bad-parameter")


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
