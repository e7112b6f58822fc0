"""The input and the result of an assembly: `Options`, `Request`, `AssembledContext`."""

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
    """What one request changes; None keeps the configuration's value. Token limits are in tokens.

    `permissions` are patterns that narrow what is allowed. `sandbox` leaves out tools that change something.
    `server_tools` are those of MCP servers, which may be deferred (`deferral`) as in a body of the format
    `tool_format`.
    `memory_tools` offers the memory queries, `skill_tools` the tool that reads a skill, `agent_tools` those
    that start and direct agents: the caller has to run them (`memory/queries`, `turn/skill_tool`,
    `agents/tool_calls`).
    `skip_skills` leaves out all skills; `skill_filter` leaves out all but those that these names or patterns
    match. The system prompt contains the texts of `skills`.
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
    """One turn to assemble. `event` may hold platform, actions and hook data; `format` is one of FORMATS.

    `git` is the state of the folder's working tree (`git.look`, `git.read`), which is sent with the message.
    `session` names the conversation. `session_parameters` and `agent_parameters` are model parameters below
    the request's own.
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
    """A part of the system prompt, or a tool, that is another now than what is sent.

    `tokens` are those of the note; `told`: an earlier message has the note.
    """

    kind: ChangeKind
    label: str
    tokens: int
    told: bool
    path: str | None = None
    is_tool: bool = False


class Pending(msgspec.Struct, frozen=True):
    """The changes since the system prompt and the tools were sent; notes tell them.

    To render both anew now, `tokens` would have to be written again, for `cost` US dollars more than they
    cost as cached input (None: the prices are unknown); `loses_reasoning`: the history has reasoning that a
    provider binds to what precedes it.
    """

    changes: tuple[PendingChange, ...]
    tokens: int
    cost: float | None
    loses_reasoning: bool


class AssembledContext(msgspec.Struct, frozen=True):
    """What a model is sent. `request` is the provider's body, for all formats but `neutral`.

    `current_message` is the last message as it is sent; `turn_message` is the same as a conversation takes
    it, with the user's text and the facts and memory before it apart, and the id of the request. Append that
    one before the answer: later requests begin with the same bytes, and the answer's reasoning is bound to
    this request. Of a request without a message of its own, as behind a tool's result, it has nothing but the
    id and is not stored. `sent_request` is what is remembered of the request under that id.

    `view` is the part of the conversation that fits; `metadata` tells what was left out and why
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
        """What the conversation's requests begin with if it continues from here."""
        return self.sent_request.proposal or Proposal(None)

    @property
    def system_prompt(self) -> str:
        return self.prompt.text

    @property
    def history(self) -> list[Message]:
        """The messages of the conversation that are sent, oldest first."""
        return self.view.messages()


def check(request: Request, model: ModelLimits) -> Request:
    """The request with its message checked; RequestError if no context can be assembled from it."""
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
