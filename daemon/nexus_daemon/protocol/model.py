"""`nexus/model/*`: the model that the user picked, and requests to the client's model."""

from typing import Annotated

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.shapes import OneOf, SessionParams, Sparse, TokenUsage


class PickParams(SessionParams, frozen=True):
    """The model that the user picked for a conversation."""

    model: str | None = None  # its name; null: the model of the settings
    max_context_tokens: int | None = None  # its limit according to the editor; null: its window
    memory_tools: bool | None = None  # offer memory tools with each request; null: no change
    skill_tools: bool | None = None  # offer `read_skill` with each request; null: no change
    agent_tools: bool | None = None  # offer agent tools with each request; null: no change


class PickResult(Sparse, frozen=True):
    """The cost of the conversation with that model."""

    session: str  # the conversation
    usage: TokenUsage  # cost of its next request
    # false: the pick lasts only as long as this process, because it could not be stored in the ledger
    persists: bool = True
    problem: str | None = None  # why it could not be stored; Nexus tries again


class ModelCompleteParams(Sparse, frozen=True):
    """A request to the client's model."""

    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    purpose: Annotated[str, OneOf("compaction", open=True)]  # its purpose: `compaction`
    # the messages to send, oldest first: the system prompt, unless it does not fit; the conversation as it
    # was last sent; and the instruction as a user's message
    messages: list[Message] | list[msgspec.Raw]
    max_tokens: int  # limit of the answer
    model: str | None = None  # the model that the settings name; absent: the one that the user picked


class ModelCompleteResult(Sparse, frozen=True):
    """The model's answer."""

    content: str  # its text
    model: str | None = None  # its name
