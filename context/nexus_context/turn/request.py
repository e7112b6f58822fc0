"""Defines the input and the result of an assembly: `Options`, `Request`, `AssembledContext`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from nexus_context.config.parameters import Parameter
from nexus_context.conversation.budget import TokenBudget, TokenUsage
from nexus_context.conversation.coercion import message_from
from nexus_context.conversation.frozen import ChangeKind, Proposal
from nexus_context.conversation.message import Message
from nexus_context.conversation.sent_requests import AssembledRequest
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.conversation.view import View
from nexus_context.errors import Problem, RequestError
from nexus_context.folder.prompt.render import Prompt
from nexus_context.tokens import ModelLimits
from nexus_context.turn.event_facts import check_event
from nexus_context.turn.git import GitState
from nexus_context.turn.prefix import Prefix

Format = Literal["neutral", "openai", "openai-responses", "anthropic", "gemini"]
FORMATS: tuple[Format, ...] = ("neutral", "openai", "openai-responses", "anthropic", "gemini")


class Options(msgspec.Struct, frozen=True):
    """What one request changes. A value that is None leaves the configuration's value; limits are in tokens.

    `permissions` are patterns that narrow what is allowed. `sandbox` leaves out tools that change something.
    `server_tools` are tools of MCP servers. They may be deferred (`deferral`), in the way of the body format
    `tool_format`.

    `memory_tools` offers the memory queries, `skill_tools` the tool that reads a skill, and `agent_tools` the
    tools that start and direct agents. The caller has to run these tools (`memory/queries`,
    `turn/skill_tool`, `agents/tool_calls`).

    `skip_skills` leaves out all skills. `skill_filter` leaves out all skills that match none of these names
    or patterns. The system prompt contains the texts of the skills named in `skills`.
    """

    model: str | None = None
    parameters: Mapping[str, Any] = {}
    additional_system_prompt: str | None = None
    additional_tools: Sequence[dict[str, Any]] = ()
    server_tools: Sequence[dict[str, Any]] = ()
    tool_format: str = "neutral"
    disabled_tools: Sequence[str] = ()
    max_context_tokens: int | None = None
    reserve_tokens: int | None = None
    truncation_strategy: str | None = None
    skip_skills: bool = False
    skill_filter: Sequence[str] | None = None
    skills: Sequence[str] = ()
    sandbox: bool | None = None
    permissions: Sequence[str] | None = None
    memory_tools: bool = False
    skill_tools: bool = False
    agent_tools: bool = False


class Request(msgspec.Struct, frozen=True):
    """One turn to assemble. `event` may hold platform, actions and hook data, and `format` is one of FORMATS.

    `git` is the state of the folder's working tree (`git.look`, `git.read`), which is sent with the message.
    `session` is the name of the conversation. `session_parameters` and `agent_parameters` are model
    parameters that the request's own override.
    """

    message: Message | None = None
    event: Mapping[str, Any] | None = None
    format: str = "neutral"
    options: Options = Options()
    session: str = "main"
    session_parameters: Mapping[str, Any] = {}
    agent_parameters: Mapping[str, Any] = {}
    git: GitState | None = None


class PendingChange(msgspec.Struct, frozen=True):
    """A part of the system prompt, or a tool, that is now different from what is sent.

    `tokens` are those of the note about it. `told` is true if an earlier message has that note.
    """

    kind: ChangeKind
    label: str
    tokens: int
    told: bool
    path: str | None = None
    is_tool: bool = False


class Pending(msgspec.Struct, frozen=True):
    """The changes since the system prompt and the tools were sent. Notes tell the model about them.

    If both were rendered anew now, `tokens` would be written to the cache again. That would cost `cost` US
    dollars more than cached input, or None if the prices are unknown. `loses_reasoning` is true if the
    history has reasoning that a provider binds to what precedes it.
    """

    changes: tuple[PendingChange, ...]
    tokens: int
    cost: float | None
    loses_reasoning: bool


class AssembledContext(msgspec.Struct, frozen=True):
    """What is sent to a model. `request` is the provider's body, or None in the format `neutral`.

    `current_message` is the last message as it is sent. `turn_message` is the same message in the form for
    the conversation: the user's text, apart from it the facts and memory before it, and the id of the
    request. Add `turn_message` to the conversation before the answer. Then later requests begin with the same
    bytes, and the answer's reasoning is bound to this request. If the request has no message of its own, for
    example after a tool's result, `turn_message` has only the id and is not stored. `sent_request` is what
    the conversation remembers of the request under that id.

    `view` is the part of the conversation that fits. `metadata` tells what was left out and why
    (docs/protocol.md). `prefix` is what the next request can share with this one (`prefix.compare`).
    `pending` is what changed since the system prompt and the tools were sent.
    """

    prompt: Prompt
    view: View
    current_message: Message | None
    turn_message: Message
    sent_request: AssembledRequest
    tools: list[dict[str, Any]]
    parameters: dict[str, Parameter]
    model: str
    provider: str
    usage: TokenUsage
    budget: TokenBudget
    permissions: dict[str, Any]
    workspace_path: str
    session: str
    metadata: dict[str, Any]
    problems: tuple[Problem, ...]
    request: dict[str, Any] | None
    prefix: Prefix
    pending: Pending | None = None

    @property
    def proposal(self) -> Proposal:
        """What the conversation's later requests begin with if it continues from this one."""
        return self.sent_request.proposal or Proposal(None)

    @property
    def system_prompt(self) -> str:
        return self.prompt.text

    @property
    def history(self) -> list[Message]:
        """The messages of the conversation that are sent, oldest first."""
        return self.view.messages()


def check(request: Request, model: ModelLimits) -> Request:
    """Return the request with its message checked. Raise RequestError if no context can be assembled from the
    request.
    """
    if request.event is not None:
        check_event(request.event)
    if request.format not in FORMATS:
        raise RequestError(
            f"Unknown format {request.format!r}. Known formats: {', '.join(FORMATS)}.", code="unknown-format"
        )
    if request.format != "neutral" and not model.given.strip():
        raise RequestError(
            f"A body in the format {request.format} names a model, and none is set. Set provider.model in "
            "config.json, or options.model of the request.",
            code="no-model",
        )
    strategy = request.options.truncation_strategy
    if strategy is not None and strategy not in STRATEGIES:
        raise RequestError(
            f"Unknown truncation strategy {strategy!r}. Known strategies: {', '.join(STRATEGIES)}.",
            code="bad-option",
        )
    for name, value, least in (
        ("maxContextTokens", request.options.max_context_tokens, 1),
        ("reserveTokens", request.options.reserve_tokens, 0),
    ):
        if value is not None and value < least:
            raise RequestError(f"{name} is {value}; it must be at least {least}.", code="bad-option")
    if request.message is None:
        return request
    return msgspec.structs.replace(request, message=message_from(request.message, "message"))
