"""`nexus/chat/*`: a whole turn through the configured provider; and the question whether a tool may run."""

from typing import Annotated, Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.context import Attachment, ConversationParams
from nexus_daemon.protocol.session import ProviderUsage
from nexus_daemon.protocol.shapes import OneOf, Params, Sparse, TokenUsage, Wire

ITEM_KINDS = OneOf("notice", "text", "thinking", "toolCall", "toolResult", "usage", open=True)


class ChatOptions(Params, frozen=True):
    """Changes for one turn; an absent or null field leaves the configuration in force."""

    model: str | None = None  # instead of the configured model
    parameters: dict[str, Any] = {}  # model parameters by name; they win over the configured ones
    additional_system_prompt: str | None = None  # text to add to the system prompt
    skills: list[str] = []  # names of skills to activate
    disabled_tools: list[str] = []  # names or patterns, in addition to the configured ones
    max_steps: int | None = None  # a lower `chat.max_steps`
    max_tokens: int | None = None  # a lower `chat.max_tokens`
    max_usd: float | None = None  # a lower `chat.max_usd`


class ChatSendParams(ConversationParams, frozen=True, kw_only=True):
    """A message to the model of the configured provider."""

    message: str | list[Any] | Message  # the user's message: text, a list of parts or a whole message
    options: ChatOptions | None = None  # changes for this turn
    attachments: list[Attachment] = []  # as in `nexus/context/assemble`
    files: list[str] = []  # as in `nexus/context/assemble`
    # where the answer is streamed: the `value` of each `$/progress` is a list of [ChatItem](#chatitem)
    partial_result_token: int | str | None = None


class ChatItem(Sparse, frozen=True):
    """A piece of a turn as it happens. Text and thinking of one step follow each other."""

    # `notice`, `text`, `thinking`, `toolCall`, `toolResult` or `usage`, which ends a step
    kind: Annotated[str, ITEM_KINDS]
    text: str | None = None  # of the answer, of thinking, of a notice, or a tool's result for the model
    id: str | None = None  # of the tool call
    name: str | None = None  # of the tool
    arguments: Any = msgspec.UNSET  # of the tool call
    is_error: bool = False  # the tool failed, or was not run
    agent: str | None = None  # of a call and its result: the agent that the turn started, whose call it is
    provider_usage: ProviderUsage | None = None  # what the provider counted of the step


class ChatParams(msgspec.Struct, frozen=True):
    """The parameters of a `$/progress` with a part of the turn."""

    token: int | str
    value: list[ChatItem]


class ChatSpending(Sparse, frozen=True):
    """What all steps of a turn were billed for."""

    tokens: int  # sent and answered, whether or not they came from the provider's cache
    usd: float | None = None  # at the list prices of the registry; absent without a price
    lacks: list[str] = []  # what `usd` does not include


class ChatSendResult(Sparse, frozen=True):
    """A turn that has ended."""

    session: str  # the conversation that holds it; another one if `forked`
    turn: str  # id of the last turn that was written
    message: Message  # the model's last message
    usage: TokenUsage  # what the conversation now costs
    # why it ended: the provider's reason of the last step, or the setting whose limit is reached, such as
    # `chat.max_steps`
    stop_reason: str
    steps: int  # requests to the provider
    spending: ChatSpending  # what they were billed for, together
    model: str  # the model that answered
    provider_usage: ProviderUsage | None = None  # what the provider counted of the last step
    forked: bool = False  # another window went on in the conversation, so the turn is in a fork
    # false: the ledger is in memory only, and `nexus/status` says why; absent if the turn is on the disk
    persists: bool = True


class ToolApproveParams(Sparse, frozen=True):
    """A question to the user: may the model call this tool?"""

    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    tool: str  # the tool's name for the model
    arguments: Any  # the call's arguments
    agent: str | None = None  # the agent whose model calls
    server: str | None = None  # the MCP server that runs it


class ToolApproveResult(Wire, frozen=True):
    """The user's answer."""

    approved: bool = False  # whether the call may run
    # true: the tool may be called again in this conversation, while its server offers the same
    remember: bool = False
