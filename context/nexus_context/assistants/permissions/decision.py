"""A call of a tool, and what an assistant's settings say of it."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.errors import Span

Outcome = Literal["allowed", "asks", "denied"]
RuleKind = Literal["allow", "ask", "deny"]


class ExplainedCall(msgspec.Struct, frozen=True):
    """A call that a model makes. `inputs` are the arguments under the names of the tool."""

    tool: str
    inputs: dict[str, Any] = {}


class PermissionRule(msgspec.Struct, frozen=True):
    """A rule of a settings file. `pattern` is what stands in its parentheses; None: each call of the tool."""

    kind: RuleKind
    text: str
    tool: str
    pattern: str | None
    path: str
    span: Span


class Decision(msgspec.Struct, frozen=True):
    """The decision on a call. `reason` is a sentence; `rule` is the deciding rule, if there is one.

    `is_offered` is false if the model is not even told of the tool. `shadowed` are the rules that would say
    something else, and do not count beside this one. `part` is the command of a script that decides.
    """

    outcome: Outcome
    reason: str
    rule: PermissionRule | None = None
    shadowed: tuple[PermissionRule, ...] = ()
    is_offered: bool = True
    part: str | None = None


NOT_STARTED = Decision("denied", "The program does not start with these settings.", is_offered=False)


class PermissionReader(msgspec.Struct, frozen=True):
    """Decides on calls as a program does: `read` its permissions from settings, `decide` on a call.

    `version` is that of the program that was asked.
    """

    version: str
    read: Callable[[AssistantSettings, Disk], Any]
    decide: Callable[[Any, ExplainedCall], Decision]
