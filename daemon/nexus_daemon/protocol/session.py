"""`nexus/session/*`: conversations."""

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.shapes import SessionParams, TokenUsage, Wire


class AppendParams(SessionParams, frozen=True, kw_only=True):
    """Messages for the end of a conversation."""

    messages: list[Message]  # the messages of one turn, in order
    idempotency_key: str | None = None  # a repeated key adds nothing and returns the first turn's id


class AppendResult(Wire, frozen=True):
    """What the append came to."""

    session: str  # the conversation
    turn: str  # id of what was appended
    count: int  # messages that the session now holds
    usage: TokenUsage  # what the session now costs


class MessagesResult(Wire, frozen=True):
    """The messages of a conversation."""

    session: str  # the conversation
    # oldest first; after a compaction the summary, a user's message, then what was kept
    messages: list[Message] | list[msgspec.Raw]


class ClearResult(Wire, frozen=True):
    """What a cleared conversation costs."""

    session: str  # the conversation
    usage: TokenUsage  # what is left: the system prompt


class CompactParams(SessionParams, frozen=True):
    """A conversation to compact, and what the summary must keep."""

    # what matters, in words, instead of the configured instructions; for summarizers that are models: the
    # embedded, extractive one does not read it, so use `pins`
    instructions: str | None = None
    # texts that must stand in the summary word for word; numbers: messages that stay whole, counted from 0
    pins: list[str | int] = []
    overflow: bool = False  # true: a provider refused the context as too long, so go down further


class Lost(Wire, frozen=True):
    """What stood in the replaced messages and stands nowhere now. At most 50 of each kind are listed."""

    paths: list[str]  # paths of files
    commands: list[str]  # commands that were run
    identifiers: list[str]  # names, ids and numbers
    errors: list[str]  # error messages
    instructions: list[str]  # what the user asked for
    decisions: list[str]  # what was decided
    counts: dict[str, int]  # how many there are of each, listed or not


class Receipt(Wire, frozen=True):
    """What a compaction did."""

    id: str  # the compaction, for `nexus/session/undoCompaction`
    reason: str  # `explicit` or `token_limit`
    summarizer: str  # who wrote the summary: `extractive`, which needs no model
    replaced_messages: int  # messages that the summary stands for
    tokens_before: int  # tokens of the conversation before
    tokens_after: int  # and after
    created: str  # when, in ISO 8601
    lost: Lost  # what appears nowhere any more
    failures: list[str]  # summarizers that were asked before, and why they failed


class CompactResult(Wire, frozen=True):
    """What a compaction did, and what the conversation costs now."""

    compaction: str  # id of the compaction
    receipt: Receipt  # what it replaced, and what was lost
    usage: TokenUsage  # what the session now costs


class UndoParams(SessionParams, frozen=True):
    """A compaction to take back."""

    compaction: str | None = None  # its id; none: the last one. Later ones are taken back with it


class UndoResult(Wire, frozen=True):
    """What the conversation costs again."""

    session: str  # the conversation
    usage: TokenUsage  # what it costs
