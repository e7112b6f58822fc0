"""Defines a call of a tool, and what an assistant's settings say of it."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.errors import Span

Outcome = Literal["allowed", "asks", "denied"]
RuleKind = Literal["allow", "ask", "deny"]


class ExplainedCall(msgspec.Struct, frozen=True):
    """A call that a model makes. `inputs` are the arguments: each name that the tool gives an argument → its
    value.
    """

    tool: str
    inputs: dict[str, Any] = {}


class PermissionRule(msgspec.Struct, frozen=True):
    """A permission rule of a settings file. `pattern` is the text in its parentheses; None if the rule covers
    each call of the tool.
    """

    kind: RuleKind
    text: str
    tool: str
    pattern: str | None
    path: str
    span: Span


class Decision(msgspec.Struct, frozen=True):
    """What an assistant does with a call. `reason` is a sentence; `rule` is the rule that decides, if one
    does.

    `is_offered` is false if the model is not even told of the tool. `shadowed` are rules that would decide
    otherwise if `rule` did not come first. `part` is the command of a script that decides.
    """

    outcome: Outcome
    reason: str
    rule: PermissionRule | None = None
    shadowed: tuple[PermissionRule, ...] = ()
    is_offered: bool = True
    part: str | None = None


NOT_STARTED = Decision("denied", "The program does not start with these settings.", is_offered=False)


class PermissionReader(msgspec.Struct, frozen=True):
    """Decides on calls as a program does: `read` takes its permissions from settings, `decide` decides on one
    call.

    `version` is the version of the program that was observed.
    """

    version: str
    read: Callable[[AssistantSettings, Disk], Any]
    decide: Callable[[Any, ExplainedCall], Decision]
