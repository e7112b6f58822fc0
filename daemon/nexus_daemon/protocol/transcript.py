"""`nexus/session/transcript`: a conversation as people read it, page by page."""

from typing import Annotated

from nexus_daemon.protocol.session import Receipt
from nexus_daemon.protocol.shapes import Counter, OneOf, SessionParams, Sparse


class TranscriptParams(SessionParams, frozen=True):
    """A page of a conversation."""

    first: int | None = None  # the page begins with the message of this number, from 0
    before: int | None = None  # the page ends before this message; neither: it ends with the last
    limit: int = 200  # at most so many messages, up to 1,000; fewer where they are long
    # id of a line of turns that the conversation had before it was cleared, as `thread` of a search hit says
    # it; none: the present one
    thread: str | None = None


class TranscriptCall(Sparse, frozen=True):
    """A call that an assistant asks for."""

    name: str  # the tool
    arguments: str  # as text: indented JSON, or what the client gave
    id: str | None = None  # the id that the result refers to


class TranscriptMessage(Sparse, frozen=True):
    """A message to be read: control characters are visible, secrets are covered by as many `*`."""

    position: int  # number of the message, from 0
    # `system`, `user`, `assistant` or `tool`
    role: Annotated[str, OneOf("system", "user", "assistant", "tool")]
    text: str  # its text parts; of a very long one the beginning and the end
    tokens: int  # its tokens, by the `counter` of the page
    exact: bool = True  # false: an estimate
    name: str | None = None  # name of the speaker or of the tool
    tool_call_id: str | None = None  # the call that a tool's message answers
    calls: list[TranscriptCall] = []  # calls that it asks for; the first hundred
    attachments: list[str] = []  # what else it holds, a few words each: `image image/png`
    time: str | None = None  # when, in ISO 8601, where the client said so
    omitted: int = 0  # characters of text and arguments that are left out


class TranscriptTurn(Sparse, frozen=True):
    """A turn with those of its messages that lie within the page."""

    turn: str  # its id, for `nexus/session/fork`
    seq: int  # its number, from 1
    # `query`, `compaction` (its one message is the summary) or `undo` (has no message)
    type: Annotated[str, OneOf("query", "compaction", "undo")]
    created: str  # when, in ISO 8601
    first: int  # number of its first message, whether within the page or not
    count: int  # how many messages it has
    messages: list[TranscriptMessage]  # those within the page
    model: str | None = None  # who answered
    compaction: str | None = None  # id: of a compaction, or of the one that an undo takes back
    receipt: Receipt | None = None  # of a compaction: what it did
    kept: list[tuple[int, int]] = []  # of a compaction: the messages kept beside the summary, as `folded`
    # of a compaction: the messages that the summary stands for, each entry the first one and the one behind
    # the last one
    folded: list[tuple[int, int]] = []
    beside: list[str] = []  # what the turn was sent besides messages: git's state, attached files, memory
    left_out: list[str] = []  # what of that found no room


class TranscriptResult(Sparse, frozen=True):
    """A page of a conversation, and what of the whole is sent with the next request."""

    session: str  # the conversation
    thread: str  # id of its line of turns; empty where there is no such conversation
    messages: int  # how many there are, compacted ones and summaries too
    first: int  # number of the first message of the page
    end: int  # number of the message behind the last of the page
    turns: list[TranscriptTurn]  # oldest first
    counter: Counter  # who counted
    # the messages that the next request sends, each entry the first and the one behind the last, ascending
    sent: list[tuple[int, int]] = []
    shortened: list[int] = []  # of these, those that are too long and sent shortened
    summary: int | None = None  # number of the summary in force: what it stands for is not sent any more
    kept: list[tuple[int, int]] = []  # messages before the summary in force that it does not stand for
    cleared: bool = False  # true: the conversation was cleared since, and nothing of this is sent
