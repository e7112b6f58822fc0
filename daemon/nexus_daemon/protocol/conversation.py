"""`nexus/conversation/*`: the conversations of Nexus and of all programs, kept or not."""

from nexus_daemon.protocol.assistant_session import AssistantSessionFailure
from nexus_daemon.protocol.session import SearchHit, SessionInfo
from nexus_daemon.protocol.shapes import FolderParams, Params, Sparse, Wire


class ConversationListParams(Params, frozen=True):
    """The conversations to list."""

    # URI of a workspace folder, or of anything inside one: its conversations, and those of the folders inside
    # it and above it, up to the user's home; null: all
    workspace_folder: str | None = None
    program: str | None = None  # only of this one: `nexus`, `claude-code`, `codex`, `opencode` or `gemini`
    since: str | None = None  # ISO 8601: only those with a turn since then
    limit: int | None = None  # at most this many, the last ones; the total counts all


class ConversationInfo(Sparse, frozen=True, kw_only=True):
    """A conversation of Nexus or of a program, kept or not. What is absent is not known."""

    program: str  # `nexus`, `claude-code`, `codex`, `opencode`, `gemini`, or what a kept one came from
    program_title: str  # how the program is written: `Claude Code`
    # names it in `nexus/conversation/transcript`: the id in its program, else that of its line of turns
    id: str
    title: str | None = None  # its program's, the first prompt, or its name in Nexus; without secrets
    folder: str | None = None  # URI of the folder where it works
    last_turn: str  # when it had its last turn, ISO 8601
    # of a program: those of its last request; of Nexus: those that the next request would send
    tokens: int | None = None
    estimated: bool = False  # true: some of `tokens` are an estimate
    window: int | None = None  # tokens of the model's window
    cost_usd: float | None = None  # so far, as its program states it, else by list prices
    cost_lacks: list[str] = []  # what is not part of the cost
    kept: bool = False  # whether the ledger has it
    session: str | None = None  # its name in the ledger
    thread: str | None = None  # in the ledger, the id of its line of turns
    workspace_folder: str | None = None  # URI of its folder in the ledger
    uri: str | None = None  # the program's file that holds it, if that is still there
    parent: str | None = None  # the session whose sub-agent it is
    fork_of: str | None = None  # the conversation from which it was forked


class ConversationTotal(Sparse, frozen=True, kw_only=True):
    """The sum of all conversations that were asked for, listed or not."""

    conversations: int  # how many there are
    tokens: int  # of their windows
    cost_usd: float | None = None  # what they cost together; absent: of none it is known
    cost_lacks: list[str] = []  # what is not part of the cost


class ConversationListResult(Wire, frozen=True):
    """Conversations."""

    conversations: list[ConversationInfo]  # the one with the last turn first
    total: ConversationTotal  # their sum
    failures: list[AssistantSessionFailure]  # what could not be read


class ConversationSearchParams(Params, frozen=True, kw_only=True):
    """A search in conversations, kept or not."""

    query: str  # as in `nexus/session/search`
    workspace_folder: str | None = None  # as in `nexus/conversation/list`
    limit: int = 20  # at most this many hits in the ledger, and as many in files


class ConversationHit(Sparse, frozen=True, kw_only=True):
    """A message that matches in the file of a program: the ledger does not have it."""

    program: str  # `claude-code`, `codex`, `opencode` or `gemini`
    program_title: str  # how the program is written
    id: str  # names the conversation in `nexus/conversation/transcript`
    title: str | None = None  # what it would be called in the ledger; absent: its beginning was not read
    folder: str | None = None  # URI of the folder where it works
    uri: str  # the file
    position: int  # number of the message, from 0
    role: str  # the role of its author
    created: str | None = None  # when, in ISO 8601
    snippet: str  # the text around the matches, each marked: `«word»`


class ConversationSearchResult(Wire, frozen=True):
    """The matches."""

    hits: list[SearchHit]  # in the ledger, best first
    named: list[SessionInfo]  # conversations of the ledger whose name matches, if no message of theirs does
    file_hits: list[ConversationHit]  # in files of programs, the newest file first
    searched: int  # number of conversations whose files were searched: they are not kept, or not to the end
    failures: list[AssistantSessionFailure]  # what could not be read


class ConversationTranscriptParams(FolderParams, frozen=True, kw_only=True):
    """A page of a conversation of any folder, kept or not."""

    program: str  # its `program` in `nexus/conversation/list`
    id: str  # its `id` there
    first: int | None = None  # number, from 0, of the page's first message
    # number of the message after the page; without `first` and `before` the page is the last one
    before: int | None = None
    limit: int = 200  # at most this many messages, up to 1,000
