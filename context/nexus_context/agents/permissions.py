"""Computes what an agent may do: never more than its parent, and never more than its own folder allows.

1. Levels, widest first, are yolo, trusted, sandboxed and worker. An agent has the narrowest of its parent's,
   its folder's and the requested level.
2. What is denied by the parent, the folder or the request is denied.
3. An empty `allow` allows everything. Of two lists, the patterns remain that both allow; a pattern is dropped
   if that cannot be determined. The lists of an opened folder's layers count as one; each directory in the
   folder narrows it.
4. A request for more than the parent has is refused. A folder that allows more than the parent has no effect.
   If the parent's permissions narrow later, the agent's narrow, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.config import fixes
from nexus_context.config.check import check_value
from nexus_context.config.merge import Effective
from nexus_context.config.patterns import NOTHING, Patterns
from nexus_context.config.scope import LEVELS
from nexus_context.errors import RequestError
from nexus_context.folder.layers.layer_types import Layers


class AgentPermissions(msgspec.Struct, frozen=True):
    """A permission level, and the patterns of what is allowed and denied. An empty `allow` allows
    everything.
    """

    level: str = "trusted"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


NONE = AgentPermissions(LEVELS[0], NOTHING)
"""Nothing is allowed."""


def of(effective: Effective) -> AgentPermissions:
    """Return the permissions that a folder's settings grant."""
    get = effective.get
    return AgentPermissions(
        get("/permissions/level"), tuple(get("/permissions/allow")), tuple(get("/permissions/deny"))
    )


def directory_permissions(layers: Layers) -> AgentPermissions:
    """Return the permissions that the settings grant in a directory of an opened folder.

    Settings of directories inside the folder only narrow the folder's (rule 3).
    """
    permissions = of(layers.effective)
    inner = {layer.name for layer in layers.layers if layer.opened and layer.directory != layers.root}
    chain = layers.effective.provenance.get("/permissions/allow", ())
    lists = [(entry.layer in inner, entry.value) for entry in chain if entry.document and not entry.ignored]
    allow = tuple(
        dict.fromkeys(pattern for is_inner, patterns in lists if not is_inner for pattern in patterns)
    )
    for is_inner, patterns in lists:
        if is_inner:
            allow = _both(allow, patterns)
    return msgspec.structs.replace(permissions, allow=allow)


def narrow(parent: AgentPermissions, other: AgentPermissions) -> AgentPermissions:
    """Return the permissions that both `parent` and `other` grant."""
    level = min(parent.level, other.level, key=LEVELS.index)
    deny = tuple(dict.fromkeys((*parent.deny, *other.deny)))
    return AgentPermissions(level, _both(parent.allow, other.allow), deny)


def requested_permissions(agent: str, parent: AgentPermissions, spec: Mapping[str, Any]) -> AgentPermissions:
    """Return the permissions that a request sets, completed by the parent's.

    Raise RequestError if the request has an unknown permission, or asks for more than the parent has.
    """
    unknown = set(spec) - {"level", "allow", "deny"}
    for key in sorted(unknown):
        raise RequestError(
            f"Agent {agent!r}: there is no permission {key!r}. Give level, allow or deny.",
            code="agent-permissions",
        )
    for key, value in spec.items():
        wrong = None if value is None else check_value(f"/permissions/{key}", _listed(value))
        if wrong:
            raise RequestError(f"Agent {agent!r}, permissions.{key}: {wrong}", code="agent-permissions")
    level = spec.get("level") or parent.level
    if LEVELS.index(level) > LEVELS.index(parent.level):
        raise RequestError(
            f'Agent {agent!r} may not have the level "{level}": its parent has "{parent.level}". Ask for '
            f'"{parent.level}" or less, or widen permissions.level of the parent.',
            code="agent-permissions",
        )
    allow = tuple(spec.get("allow") or ())
    allowed = Patterns(parent.allow)
    excessive = next((pattern for pattern in allow if parent.allow and not allowed.cover(pattern)), None)
    if excessive is not None:
        raise RequestError(
            f"Agent {agent!r} may not be allowed {fixes.quoted(excessive)}: its parent is not. Ask for "
            f"what is within {fixes.listed([fixes.quoted(pattern) for pattern in parent.allow])}.",
            code="agent-permissions",
        )
    deny = tuple(dict.fromkeys((*parent.deny, *(spec.get("deny") or ()))))
    return AgentPermissions(level, allow or parent.allow, deny)


def left(parent: AgentPermissions, spec: Mapping[str, Any]) -> AgentPermissions:
    """Return the part of an agent's earlier request that its parent can still grant."""
    level = spec.get("level")
    known_level = level if level in LEVELS else parent.level
    return narrow(
        parent, AgentPermissions(known_level, tuple(spec.get("allow") or ()), tuple(spec.get("deny") or ()))
    )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _both(patterns: Sequence[str], other_patterns: Sequence[str]) -> tuple[str, ...]:
    if not patterns or not other_patterns:
        return (*patterns, *other_patterns)
    matcher, other_matcher = Patterns(patterns), Patterns(other_patterns)
    common = [pattern for pattern in patterns if other_matcher.cover(pattern)]
    common += [pattern for pattern in other_patterns if matcher.cover(pattern)]
    return tuple(dict.fromkeys(common)) or NOTHING
