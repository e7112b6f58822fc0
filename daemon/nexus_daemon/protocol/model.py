"""`nexus/model/*`: which model the user picked, and what the daemon asks of the client's model."""

from typing import Annotated

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.shapes import OneOf, SessionParams, Sparse, TokenUsage


class PickParams(SessionParams, frozen=True):
    """The model that the user picked for a conversation."""

    model: str | None = None  # its name; none: the one that the settings name
    max_context_tokens: int | None = None  # the most that it takes, as the editor says it; none: its window
    memory_tools: bool | None = None  # offer memory tools with each request; none: as before


class PickResult(Sparse, frozen=True):
    """What the conversation costs with that model."""

    session: str  # the conversation
    usage: TokenUsage  # what its next request costs
    # false: the model holds in this process only, as the ledger keeps nothing or could not be written yet
    persists: bool = True
    problem: str | None = None  # why it could not be written; that is tried again


class ModelCompleteParams(Sparse, frozen=True):
    """What a model is to answer."""

    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    purpose: Annotated[str, OneOf("compaction", open=True)]  # what for: `compaction`
    # what to send, oldest first: the system prompt, the conversation as it was last sent, and last, as a
    # user's message, the instruction; the system prompt is left out where it does not fit
    messages: list[Message] | list[msgspec.Raw]
    max_tokens: int  # what the answer may have
    model: str | None = None  # the model that the settings want for it; absent: the one that the user picked


class ModelCompleteResult(Sparse, frozen=True):
    """What the model answered."""

    content: str  # its text
    model: str | None = None  # its name
