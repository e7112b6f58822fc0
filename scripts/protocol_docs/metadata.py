"""What `metadata` of `nexus/context/assemble` may hold: for the daemon it is an open object."""

from typing import Annotated, Any

from nexus_daemon import protocol
from nexus_daemon.protocol.shapes import OneOf, Sparse


class TurnCompaction(Sparse, frozen=True, kw_only=True):
    """The compaction that was due before this turn.

    Without `id` and `problem`, another window or request compacted the conversation.
    """

    id: str | None = None  # the compaction
    reached: bool  # whether the turn is now below the threshold
    receipt: protocol.Receipt | None = None  # what it replaced, and what was lost
    problem: str | None = None  # why nothing was compacted; `reached` is then false


class Truncation(Sparse, frozen=True, kw_only=True):
    """What the history is sent without."""

    strategy: str  # the strategy that made the cut
    removed_messages: int  # how many messages are not sent
    removed_tokens: int  # `originalTokens` - `finalTokens`
    original_tokens: int  # tokens of the history before
    final_tokens: int  # and after
    kept_from_start: int  # how many of the first messages are sent
    identifier_tokens: int  # tokens of the note with names and values
    # indexes, among all messages of the session, of results that are sent shortened
    shortened: list[int]
    # of the removed messages, those that were not read, with their tokens as they were counted when they came
    unread_messages: int | None = None


class Repair(Sparse, frozen=True, kw_only=True):
    """A difference between the history and the provider's body that was built from it."""

    kind: str  # the same word for the same repair; `more` stands for all repairs past the hundredth
    text: str  # for people
    index: int | None = None  # the place in the history that is sent, then the current message
    tool_call_id: str | None = None  # the call that it is about
    given: str | None = None  # a name or id before
    sent: str | None = None  # and after


SentStatus = Annotated[
    str, OneOf("sent", "shortened", "in-prompt", "no-room", "unreadable", "not-applied", open=True)
]


class SentInstructions(Sparse, frozen=True, kw_only=True):
    """What became of an instruction file that only a turn is sent with."""

    uri: str  # the file
    label: str  # the label of its row
    # `sent`, `shortened`, `in-prompt` (the system prompt has it already), `no-room`, `unreadable` (or the
    # folder must not read it), or `not-applied` (no file of the turn fits `appliesTo`)
    status: SentStatus
    applies_to: str | None = None  # the globs of a file for some files only
    file: str | None = None  # the file of the turn that fits them


class SentMemory(Sparse, frozen=True, kw_only=True):
    """The memory that was put before the user's message."""

    included: list[str] | None = None  # labels of what was sent
    dropped: list[str] | None = None  # labels of what there was no room for
    tokens: int | None = None  # tokens of what was sent
    shortened: list[str] | None = None  # labels of what was sent shortened
    messages: list[str] | None = None  # ids of messages of agents that were delivered
    failures: list[str] | None = None  # what could not be asked, and why


class Metadata(Sparse, frozen=True, kw_only=True):
    """What `metadata` of the result may hold."""

    tokens: dict[str, int]  # sums of `usage.rows` by category
    stable_prefix_tokens: int  # tokens of system prompt and tools, which stay the same each turn
    prefix_hash: str  # SHA-256 of these; equal hashes are equal bytes
    # how full the context would be had nothing been cut, in percent of `usage.available`: what triggers a
    # compaction, at `compaction.threshold`
    wanted_percent: float
    should_compact: bool  # whether a compaction is advised
    # why: `token_limit`, `message_count` or `tool_count`
    compaction_reason: Annotated[str, OneOf("token_limit", "message_count", "tool_count")] | None = None
    compaction: TurnCompaction | None = None  # the compaction that was due before this turn
    truncated: bool  # whether messages of the session are not sent, or not whole
    truncation: Truncation | None = None  # what was cut
    cache: protocol.CacheReport  # what a provider can reuse of the request before
    tools_left_out: dict[str, str] | None = None  # names of tools that are not offered, each with the reason
    # differences between the history and a provider's body; with `neutral`, those that such a body would need
    repairs: list[Repair] | None = None
    # all renamed tools: their names by those that the provider gets, which the calls of an answer have
    renamed_tools: dict[str, str] | None = None
    # what the body cannot hold, such as parameters that the model does not take
    unsent: list[str] | None = None
    active_skills: list[str]  # names of the skills whose text is in the system prompt
    attachments: list[SentInstructions] | None = None  # what became of each of the request's `attachments`
    # what became of each instruction file of the folder that is for some files only
    instructions: list[SentInstructions] | None = None
    memory: SentMemory | None = None  # what was remembered, where there is anything
    context_json: dict[str, Any]  # a record of this turn for ledgers
    # whether the context was assembled before and nothing has changed since
    cached: bool
    assembly_ms: float  # milliseconds that it took
