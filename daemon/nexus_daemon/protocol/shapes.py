"""Shapes that several methods share: positions, folders, problems, token usage."""

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


class Params(Wire, frozen=True, forbid_unknown_fields=True):
    """Base of everything in a client's request: a field that does not exist is an error."""


class Sparse(Wire, frozen=True, omit_defaults=True):
    """A wire value whose absent fields are left out."""


class Position(Wire, frozen=True):
    """A position in a text."""

    line: int  # from 0
    character: int  # from 0, in units of the agreed position encoding


class Range(Wire, frozen=True):
    """A part of a text."""

    start: Position  # first position
    end: Position  # position after the last character


class Location(Wire, frozen=True):
    """A part of a file."""

    uri: str  # a file
    range: Range  # the range in its text


class FolderParams(Params, frozen=True):
    """The folder that a request is about."""

    workspace_folder: str  # URI of a workspace folder, or of anything inside one


class SessionParams(FolderParams, frozen=True):
    """A folder and one of its conversations."""

    session: str = "main"  # name of a conversation; each folder has its own


class Freshness(Sparse, frozen=True):
    """How Nexus notices changes of a folder's files on disk; the least reliable file counts."""

    # `watched`: the system reports them. `polled`: the daemon polls the files, because the system does not
    # report all changes. `unknown`: changes may go unnoticed, while the watch of a new folder is being set up
    # or a file system hangs
    state: Annotated[str, OneOf("watched", "polled", "unknown")]
    since: str | None = None  # if `unknown`: since when, in UTC
    every_seconds: float | None = None  # if `polled`: the interval
    reasons: list[str] = []  # why the files are not watched, if known


class FixEdit(Wire, frozen=True):
    """One replacement in a text."""

    range: Range  # the text to replace
    new_text: str  # its replacement


class Fix(Wire, frozen=True):
    """A fix of one problem."""

    title: str  # what the edits do, in a few words
    edits: list[FixEdit]  # edits of the problem's file, which do not overlap


class Problem(Sparse, frozen=True):
    """A mistake in a file. The same problems are published as diagnostics with the source `nexus`.

    Those of the assistants in use are published beside them, with the titles of the programs as their source.
    """

    uri: str  # the file
    range: Range  # where in the file
    severity: Annotated[int, OneOf(1, 2, 3, 4)]  # 1 error, 2 warning, 3 information, 4 hint, as in LSP
    code: str  # stable name: `json.…`, `config.…`, `mcp.…`, `layer.…`, `prompt.…`, `skill.…`, or `internal`
    message: str  # what is wrong and what to do
    fix: Fix | None = None  # edits that fix it, if there is exactly one fix


class Counter(Wire, frozen=True):
    """The counter behind the figures."""

    name: str  # an encoding such as `o200k_base`, or the name of an estimate
    exact: bool  # false: the figures are an estimate


class UsageRow(Sparse, frozen=True):
    """One row of a token table."""

    # `system`, `tools`, `history`, `memory` or `event`
    category: Annotated[str, OneOf("system", "tools", "history", "memory", "event")]
    label: str  # what it is, for people
    tokens: int  # its tokens
    exact: bool  # false: an estimate
    source: Location | None = None  # its source in a file
    message: int | None = None  # in `history`: number of its first message, from 0


class UsagePart(Wire, frozen=True):
    """The cost of one kind of text in the system prompt."""

    # `instructions`: instruction files, bootstrap files, READMEs and custom sections of all layers and
    # agents, and what a request adds; `skills`: the list of skills and the text of active ones; `tools`: MCP
    # servers and tools that the prompt lists (their definitions are rows of the category `tools`); `nexus`:
    # text of Nexus, such as the environment, headings, paths and built-in defaults; `program`: the prompt and
    # the tools of another assistant
    part: Annotated[str, OneOf("instructions", "skills", "tools", "nexus", "program")]
    tokens: int  # its tokens
    exact: bool  # false: an estimate


class CacheBreak(Sparse, frozen=True):
    """The first difference from the preceding request. The provider has to read everything after it again."""

    # `tools`, `system` (the prompt), `history`, or `model`
    category: Annotated[str, OneOf("tools", "system", "history", "model")]
    label: str  # what it is, for people
    tokens: int  # tokens that have to be read again
    cost_usd: float | None = None  # their price in US dollars, if the model's prices are known
    source: Location | None = None  # its source in a file


class CacheReport(Sparse, frozen=True):
    """What a provider's cache can reuse of the preceding request for a message."""

    reused_tokens: int  # tokens of the common beginning
    prefix_tokens: int  # tokens of everything but the current message
    broke: CacheBreak | None = None  # the first difference; absent if nothing changed
    # answers whose reasoning (thinking) was sent before and would not be now: it was bound to what changed
    lapsed_reasoning: int | None = None


class PendingChange(Sparse, frozen=True):
    """A part of the system prompt, or a tool, that is another now than what is sent."""

    kind: Annotated[str, OneOf("added", "changed", "removed")]  # `added`, `changed` or `removed`
    label: str  # the part, or the tool's name
    tokens: int  # tokens of the note that tells it
    told: bool  # a message of the conversation has the note; false: the next user message will have it
    tool: bool = False  # it is a tool
    source: Location | None = None  # its file, if any


class PendingChanges(Sparse, frozen=True):
    """What changed since the system prompt and the tools were sent: notes tell it."""

    changes: list[PendingChange]  # the parts in the order of the prompt, then the tools
    tokens: int  # tokens to write again if both were rendered anew now (`nexus/session/rebase`)
    loses_thinking: bool  # a model's thinking in the history is bound to what would change
    cost_usd: float | None = None  # what that costs more, in US dollars, if the model's prices are known


class CorrectedTotal(Sparse, frozen=True):
    """A total as the provider would count it: its last count, and an estimate of what came after."""

    total: int  # tokens of the request
    percent: float  # as a share of `available`, in percent, to one decimal
    # how far such totals of this family of models were off lately, in percent at the median; absent until
    # enough usages were reported
    error_percent: float | None = None


class TokenUsage(Sparse, frozen=True):
    """The cost of a context. Σ rows.tokens = total, exactly."""

    model: str  # the model for which tokens are counted
    limit: int  # tokens of the model's window, or of the configured maximum
    limit_known: bool  # false: the model is unknown, and the limit a guess
    reserved: int  # tokens kept free for the answer and for tool results
    available: int  # the smaller of limit - reserved and what the model takes as input, never below 0
    total: int  # tokens used: the sum of the rows
    remaining: int  # available - total; below 0 when over
    percent: float  # total as a share of available, in percent, to one decimal
    over: bool  # total > available
    counter: Counter  # the counter behind the figures
    rows: list[UsageRow]  # in the order of the request
    # the system prompt by kind of text, each kind once, in this order: `instructions`, `skills`, `tools`,
    # `nexus`. Σ parts.tokens = Σ tokens of the rows of the category `system`, exactly
    parts: list[UsagePart] = []
    # the total as the provider would count it, from its last `providerUsage` on: show this one. Rows are not
    # corrected; absent while no usage of this family of models is known
    corrected: CorrectedTotal | None = None
    # tokens of the definitions of MCP tools that are not sent: the model has to look for these tools
    # (`tools.defer`). Absent if there are none
    deferred_tokens: int | None = None
    wanted_percent: float | None = None  # `percent` of the corrected total if nothing had been cut
    removed_messages: int | None = None  # number of messages that are no longer sent, if any
    # why a compaction is due, if it is: `token_limit`, `message_count` or `tool_count`
    compaction_reason: Annotated[str, OneOf("token_limit", "message_count", "tool_count")] | None = None
    # instructions and tools that are others now than those that are sent, if any
    pending: PendingChanges | None = None
    # what the next request with the same options could reuse of the last one, which shows what an edit breaks
    # before it costs anything. In `nexus/context/usage` and `nexus/context/didChange`, once this daemon has
    # assembled a request
    cache: CacheReport | None = None


class CategoryTokens(Wire, frozen=True):
    """Tokens by category."""

    system: int  # the system prompt
    tools: int  # tool definitions
    history: int  # messages of the session
    memory: int  # memory from elsewhere
    event: int  # the current message
    total: int  # their sum


class TokenBudget(Wire, frozen=True):
    """The budget of a context and its use."""

    model_limit: int  # tokens of the model's window, or of the configured maximum
    reserve_response: int  # tokens kept free for the answer
    reserve_tools: int  # tokens kept free for tool results
    available: int  # tokens available for the context
    used: CategoryTokens  # tokens used, by category
    remaining: int  # available - used.total
