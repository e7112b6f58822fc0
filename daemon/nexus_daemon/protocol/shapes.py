"""What several methods speak of: places, folders, problems, token usage."""

from typing import Annotated

import msgspec


class OneOf:
    """The values of a field, for documentation and generated types; nothing is refused because of them.

    `open`: values may be added without another protocol number.
    """

    def __init__(self, *values: str | int, open: bool = False) -> None:  # noqa: A002 - as in `open set`
        self.values = values
        self.open = open


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of everything that crosses the wire."""


class Sparse(Wire, frozen=True, omit_defaults=True):
    """A wire value whose absent fields are left out."""


class Position(Wire, frozen=True):
    """A place in a text."""

    line: int  # from 0
    character: int  # from 0, in units of the agreed position encoding


class Range(Wire, frozen=True):
    """A part of a text."""

    start: Position  # first position
    end: Position  # position after the last character


class Location(Wire, frozen=True):
    """A part of a file."""

    uri: str  # a file
    range: Range  # a part of its text


class FolderParams(Wire, frozen=True):
    """Which folder: the URI of a workspace folder, or of anything inside one."""

    workspace_folder: str  # URI of a workspace folder, or of anything inside one


class SessionParams(FolderParams, frozen=True):
    """A folder and one of its conversations."""

    session: str = "main"  # name of a conversation; each folder has its own


class Freshness(Sparse, frozen=True):
    """How changes on disk of the files of a folder are noticed; the least certain file counts."""

    # `watched`: the system reports them. `polled`: the daemon looks at the files again and again, because the
    # system does not report all changes of some. `unknown`: changes may be unnoticed, as until the watch of a
    # folder that was just added stands, or while a file system hangs
    state: Annotated[str, OneOf("watched", "polled", "unknown")]
    since: str | None = None  # of `unknown`: since when, in UTC
    every_seconds: float | None = None  # of `polled`: the pause between two looks
    reasons: list[str] = []  # why the files are not watched, where that is known


class FixEdit(Wire, frozen=True):
    """One replacement in a text."""

    range: Range  # the text to replace
    new_text: str  # what takes its place


class Fix(Wire, frozen=True):
    """A mend of one problem."""

    title: str  # what the edits do, in a few words
    edits: list[FixEdit]  # edits of the problem's file, none overlapping another


class Problem(Sparse, frozen=True):
    """A mistake in a file. The same problems are published as diagnostics with the source `nexus`."""

    uri: str  # the file that has it
    range: Range  # where in the file
    severity: Annotated[int, OneOf(1, 2, 3, 4)]  # 1 error, 2 warning, 3 information, 4 hint, as in LSP
    code: str  # stable name: `json.…`, `config.…`, `mcp.…`, `layer.…`, `prompt.…`, `skill.…`, or `internal`
    message: str  # what is wrong and what to do
    fix: Fix | None = None  # edits that mend it, where there is one sure way


class Counter(Wire, frozen=True):
    """Which counter made the figures, and whether it is the model's own."""

    name: str  # an encoding such as `o200k_base`, or the name of an estimate
    exact: bool  # false: the figures are an estimate


class UsageRow(Sparse, frozen=True):
    """One thing that tokens are spent on."""

    # `system`, `tools`, `history`, `memory` or `event`
    category: Annotated[str, OneOf("system", "tools", "history", "memory", "event")]
    label: str  # what it is, for people
    tokens: int  # its tokens
    exact: bool  # false: an estimate
    source: Location | None = None  # the part of a file that it comes from
    message: int | None = None  # of `history`: number of the first message that it is about, from 0


class UsagePart(Wire, frozen=True):
    """One kind of text in the system prompt, and what it costs."""

    # `instructions`: what stands in instruction files, bootstrap files, READMEs and custom sections of all
    # layers and agents, and what a request adds; `skills`: the list of skills and the text of active ones;
    # `tools`: MCP servers and tools where the prompt lists them (their definitions are rows of the category
    # `tools`); `nexus`: Nexus's own text, such as the environment, headings, paths and the defaults it ships
    part: Annotated[str, OneOf("instructions", "skills", "tools", "nexus")]
    tokens: int  # its tokens
    exact: bool  # false: an estimate


class CacheBreak(Sparse, frozen=True):
    """The first thing that is not as it was in the request before: from there on all has to be read again."""

    # `tools`, `system` (the prompt), `history`, or `model`
    category: Annotated[str, OneOf("tools", "system", "history", "model")]
    label: str  # what it is, for people
    tokens: int  # that have to be read again
    cost_usd: float | None = None  # the price of that in US dollars, where the model's prices are known
    source: Location | None = None  # the part of a file that it comes from


class CacheReport(Sparse, frozen=True):
    """What a provider's cache can reuse of the request before, the last that was made for a message."""

    reused_tokens: int  # at the beginning, that are the same
    prefix_tokens: int  # of all but the current message, which is never cached
    broke: CacheBreak | None = None  # what ends that; absent where nothing of the request before changed


class TokenUsage(Sparse, frozen=True):
    """What a context costs. Σ rows.tokens = total, exactly."""

    model: str  # the model that it is counted for
    limit: int  # tokens of the model's window, or of the configured maximum
    limit_known: bool  # false: the model is unknown, and the limit a guess
    reserved: int  # tokens kept free for the answer and for tool results
    available: int  # the smaller of limit - reserved and what the model takes as input, never below 0
    total: int  # tokens used: the sum of the rows
    remaining: int  # available - total; below 0 when over
    percent: float  # total as a share of available, in percent, to one decimal
    over: bool  # total > available
    counter: Counter  # who counted
    rows: list[UsageRow]  # in the order in which they are sent
    # the system prompt by kind of text, each kind once, in this order: `instructions`, `skills`, `tools`,
    # `nexus`. Σ parts.tokens = Σ tokens of the rows of the category `system`, exactly
    parts: list[UsagePart] = []
    wanted_percent: float | None = None  # as `percent`, had nothing been cut
    removed_messages: int | None = None  # that are not sent any more, where there are any
    # why it is time to compact, where it is: `token_limit`, `message_count` or `tool_count`
    compaction_reason: Annotated[str, OneOf("token_limit", "message_count", "tool_count")] | None = None
    # what the conversation's next request could reuse of its last one, were it made now with the same
    # options: what an edit breaks, before it is paid for. In `nexus/context/usage` and
    # `nexus/context/didChange`, once this daemon has made a request
    cache: CacheReport | None = None


class CategoryTokens(Wire, frozen=True):
    """Tokens by category."""

    system: int  # the system prompt
    tools: int  # tool definitions
    history: int  # messages of the session
    memory: int  # what is remembered from elsewhere
    event: int  # the current message
    total: int  # their sum


class TokenBudget(Wire, frozen=True):
    """What a context may cost, and what it does cost."""

    model_limit: int  # tokens of the model's window, or of the configured maximum
    reserve_response: int  # tokens kept free for the answer
    reserve_tools: int  # tokens kept free for tool results
    available: int  # what is left for the context
    used: CategoryTokens  # what it takes
    remaining: int  # available - used.total
