"""`nexus/session/transcript`: a conversation for people, page by page."""

from typing import Annotated

from nexus_daemon.protocol.session import Receipt
from nexus_daemon.protocol.shapes import Counter, OneOf, SessionParams, Sparse


class TranscriptParams(SessionParams, frozen=True):
    """A page of a conversation."""

    first: int | None = None  # number, from 0, of the page's first message
    # number of the message after the page; without `first` and `before` the page is the last one
    before: int | None = None
    limit: int = 200  # at most this many messages, up to 1,000; fewer if they are long
    # id of a line of turns from before the conversation was cleared, such as `thread` of a search hit; null:
    # the present one
    thread: str | None = None


class TranscriptCall(Sparse, frozen=True):
    """A tool call of an assistant."""

    name: str  # the tool
    arguments: str  # as text: indented JSON, or the client's own text
    id: str | None = None  # the id that the result refers to


class TranscriptMessage(Sparse, frozen=True):
    """A message for people: control characters are made visible, each character of a secret becomes `*`."""

    position: int  # number of the message, from 0
    # `system`, `user`, `assistant` or `tool`
    role: Annotated[str, OneOf("system", "user", "assistant", "tool")]
    text: str  # its text parts; only beginning and end of a very long text
    tokens: int  # its tokens, by the `counter` of the page
    exact: bool = True  # false: an estimate
    name: str | None = None  # name of the speaker or of the tool
    tool_call_id: str | None = None  # the call that a tool's message answers
    calls: list[TranscriptCall] = []  # its tool calls; the first hundred
    attachments: list[str] = []  # other parts, a few words each: `image image/png`
    time: str | None = None  # when, in ISO 8601, if the client sent it
    omitted: int = 0  # number of characters of text and arguments that are left out


class TranscriptTurn(Sparse, frozen=True):
    """A turn with those of its messages that lie within the page."""

    turn: str  # its id, for `nexus/session/fork`
    seq: int  # its number, from 1
    # `query`, `compaction` (its one message is the summary) or `undo` (has no message)
    type: Annotated[str, OneOf("query", "compaction", "undo")]
    created: str  # when, in ISO 8601
    first: int  # number of its first message, even if outside the page
    count: int  # how many messages it has
    messages: list[TranscriptMessage]  # those within the page
    model: str | None = None  # the model that answered
    compaction: str | None = None  # id of the compaction, or of the one that is undone
    receipt: Receipt | None = None  # of a compaction: its receipt
    kept: list[tuple[int, int]] = []  # of a compaction: the messages kept beside the summary, as `folded`
    # of a compaction: the messages that the summary replaces, as ranges: the first one, and the one after the
    # last
    folded: list[tuple[int, int]] = []
    beside: list[str] = []  # what was sent beside the messages: git's state, attached files, memory
    left_out: list[str] = []  # what of that did not fit


class TranscriptResult(Sparse, frozen=True):
    """A page of a conversation, and which messages the next request sends."""

    session: str  # the conversation
    thread: str  # id of its line of turns; empty if there is no such conversation
    messages: int  # number of messages, including compacted ones and summaries
    first: int  # number of the first message of the page
    end: int  # number of the message after the page
    turns: list[TranscriptTurn]  # oldest first
    counter: Counter  # the counter behind the figures
    # the messages that the next request sends, as ascending ranges like `folded`
    sent: list[tuple[int, int]] = []
    shortened: list[int] = []  # those of them that are shortened because they are too long
    # number of the summary in force; the messages that it replaces are no longer sent
    summary: int | None = None
    kept: list[tuple[int, int]] = []  # earlier messages that the summary in force does not replace
    cleared: bool = False  # true: the conversation was cleared since, so nothing of this is sent
