"""`nexus/skill/*`: the skills of a folder."""

from typing import Any

from nexus_daemon.protocol.context import AgentViewParams
from nexus_daemon.protocol.shapes import Wire


class SkillReadParams(AgentViewParams, frozen=True, kw_only=True):
    """A call of the tool `read_skill`, as a model made it."""

    arguments: dict[str, Any] | str  # the call's arguments, `{"name": …}`, as an object or as JSON text


class SkillReadResult(Wire, frozen=True):
    """The result of the call."""

    text: str  # for the model: the skill's text, its tools and examples
