"""`nexus/model/complete`: what the daemon asks of the client's model."""

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.shapes import Sparse


class ModelCompleteParams(Sparse, frozen=True):
    """What a model is to answer."""

    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    purpose: str  # what for: `compaction`
    # what to send, oldest first: the system prompt, the conversation as it was last sent, and last, as a
    # user's message, the instruction; the system prompt is left out where it does not fit
    messages: list[Message] | list[msgspec.Raw]
    max_tokens: int  # what the answer may have
    model: str | None = None  # the model that the settings want for it; absent: the one that the user picked


class ModelCompleteResult(Sparse, frozen=True):
    """What the model answered."""

    content: str  # its text
    model: str | None = None  # its name
