"""`nexus/context/*`: what a model is sent, what it costs and where it comes from."""

from typing import Annotated, Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.agents import Role, ViewAs
from nexus_daemon.protocol.shapes import (
    Counter,
    FolderParams,
    Freshness,
    Location,
    OneOf,
    Problem,
    Range,
    Sparse,
    TokenBudget,
    TokenUsage,
    Wire,
)


class AgentViewParams(FolderParams, frozen=True):
    """A folder, as it is or as one of its agents sees it."""

    agent: str | None = None  # a live agent; none: the folder's own, `main`


class PreviewParams(AgentViewParams, frozen=True):
    """A folder, as it is or as an agent sees it that is live, or that could be started."""

    view_as: ViewAs | None = None  # instead of `agent`: what this one would see; it is not started


class ConversationParams(FolderParams, frozen=True):
    """A folder, one of its agents and a conversation."""

    session: str | None = None  # name of a conversation; none: the agent's own, `main` without an agent
    # a live agent, which has a system prompt, tools, permissions, parameters and a model of its own; none:
    # the folder's own, `main`
    agent: str | None = None


class AssembleOptions(Wire, frozen=True):
    """What one request changes; a field that is absent or null keeps what the configuration says."""

    model: str | None = None  # instead of the picked or configured model
    parameters: dict[str, Any] = {}  # model parameters by name; they win over the configured ones
    additional_system_prompt: str | None = None  # text that is added to the system prompt
    additional_tools: list[dict[str, Any]] = []  # tool definitions, in the form of any provider
    disabled_tools: list[str] = []  # names or patterns such as `browser.*`, beside the configured
    max_context_tokens: int | None = None  # a smaller window than the model's
    reserve_tokens: int | None = None  # instead of the configured reserve
    # instead of the configured: `oldest_first`, `smart`, `middle_out`, `sliding`, `simple` or `recency`
    truncation_strategy: str | None = None
    skip_skills: bool = False  # true: no skills
    skill_filter: list[str] | None = None  # only skills of these names, or patterns such as `git-*`
    skills: list[str] = []  # names of skills to activate: their text is put into the system prompt
    sandbox: bool | None = None  # true: only tools that say of themselves that they only read
    permissions: list[str] | None = None  # patterns; a tool needs one that allows it
    # true: offers the memory tools too; `nexus/memory/query` runs their calls
    memory_tools: bool = False


class Attachment(Wire, frozen=True):
    """An instruction file that an editor attaches to a turn by itself."""

    uri: str  # where it is; any scheme
    # what it says; null: the unsaved text of the open document, else the file on disk
    text: str | None = None


class NextTurnParams(Wire, frozen=True):
    """What a client knows of its next turn before the user has said anything."""

    options: AssembleOptions | None = None  # as those of `nexus/context/assemble`
    attachments: list[Attachment] = []  # instruction files that the editor will attach by itself
    files: list[str] = []  # URIs of the files that it will be about


class UsageParams(ConversationParams, frozen=True):
    """A folder, one of its agents, a conversation, and what its next turn will be."""

    next_turn: NextTurnParams | None = None  # none: the usage without what only a turn is sent with


class AssembleParams(ConversationParams, frozen=True):
    """A folder, who is asked and the turn to assemble.

    The messages that wait for the agent are delivered with the turn; those for `main` where none is named,
    except in the conversation of a live agent: a turn there is that agent's. An `agent` that never lived (see
    `nexus/agent/spawn`) is a name that only clients know: its turn is the folder's own, with its messages.
    The name of an agent that has ended is none of these, nor is one that differs from an agent's only in
    upper and lower case: that is the error `unknown-agent`, and so is a turn in the conversation of an agent
    that has ended, unless `agent` is given, as `main` for the folder's own.
    """

    # what the user says: text, a list of parts or a whole message
    message: str | list[Any] | Message | None = None
    event: dict[str, Any] | None = None  # facts of this turn, put before the message line by line
    # `neutral`, or with a body to send: `openai`, `anthropic`
    format: Annotated[str, OneOf("neutral", "openai", "anthropic")] = "neutral"
    options: AssembleOptions | None = None  # what is different for this one request
    # instruction files that the editor attaches by itself. Those that the prompt has are left out; the others
    # stand before the message, once in each request, and are never part of the conversation
    attachments: list[Attachment] = []
    # URIs of the files that the turn is about: attached, referenced or edited. Instruction files for some
    # files only (`applyTo`) are sent where one of these fits, as attachments are
    files: list[str] = []


class ParameterValue(Wire, frozen=True):
    """A model parameter and where its value comes from."""

    value: Any  # the value that wins
    origin: str  # `request`, the layer that sets it, or `built-in`


class AssembledContext(Sparse, frozen=True):
    """One turn as a model is sent it."""

    revision: int  # revision of the folder's snapshot; it grows with every change
    workspace_folder: str  # URI of the folder that was chosen
    session: str  # the conversation that was used
    system_prompt: str  # the whole system prompt
    history: list[Message] | list[msgspec.Raw]  # messages of the session that are sent, oldest first
    current_message: Message | None  # the turn's facts and the message; null without both
    tools: list[dict[str, Any]]  # tool definitions in the order of their names, disabled ones left out
    parameters: dict[str, ParameterValue]  # model parameters by name, each with its origin
    model: str  # the model's name
    provider: str  # the configured provider
    usage: TokenUsage  # what all of it costs
    token_budget: TokenBudget  # the same figures by category, for whoever runs the model
    # `level`, `allow` and `deny`; `narrowedTo` where the request narrows them; `preapproved` where active
    # skills of the user's own name tools that need no question
    permissions: dict[str, Any]
    toolset: str  # `all`, or `narrowed` where a tool was left out
    role: Role  # the agent's: `manager`, `worker` or `unified`
    workspace_path: str  # path of the folder, or of the directory that the agent works in
    # sums by category, what providers can cache, what was left out and why, whether to compact: see
    # [Metadata](#metadata)
    metadata: dict[str, Any]
    problems: list[Problem]  # what is wrong in the folder's files
    agent: str | None = None  # the agent that was asked for
    request: dict[str, Any] | None = None  # the body to send, for the formats openai and anthropic
    parent_turn: str | None = None  # id of the last turn that was appended to the session
    source_event: str | None = None  # the event's own `id`, if it has one


class Fragment(Wire, frozen=True):
    """A run of the prompt's text and where it came from."""

    section: str  # the section of the prompt
    # the layer that wrote it, as `nexus/context/layers` names it for the same agent; null for text of Nexus
    # itself, and for what an agent above brings from a directory that is no layer of this one's
    layer: str | None
    title: str  # what it is, for people
    range: Range  # its place in the prompt's text
    source: Location | None  # its place in a file; an empty range where the text itself is not there
    tokens: int  # its share of the prompt's tokens
    verbatim: bool  # the source's text word for word, but for line ends; else made from what stands there


class Preview(Wire, frozen=True):
    """The system prompt and the source of its every character."""

    revision: int  # revision of the folder's snapshot
    text: str  # the system prompt
    fragments: list[Fragment]  # they cover the text without gap or overlap, in order
    tokens: int  # tokens of the text: the sum over the fragments


class ImportedFile(Sparse, frozen=True):
    """A file that is in the prompt because another one imports it."""

    uri: str  # the file
    depth: int  # 1: the layer's file imports it; 2: a file does that this one imports, and so on
    source: Location  # the `@path` that imports it
    tokens: int | None = None  # its own tokens in the prompt


class LayerFile(Sparse, frozen=True):
    """One file that a layer has or may have."""

    # `instructions`, `config`, `mcp`, `readme`, `skill`; of bootstrap files `agent`, `soul`, `identity`,
    # `user-identity`, `context`
    kind: str
    uri: str  # the file, also where it is missing
    # `loaded`, `missing`, `stale`, `invalid`, `unreadable`, `too-large`, `shadowed` (a nearer layer has one),
    # `excluded` (by the settings), `conditional` (sent with turns about files that `appliesTo` stands for)
    status: Annotated[
        str,
        OneOf(
            "loaded",
            "missing",
            "stale",
            "invalid",
            "unreadable",
            "too-large",
            "shadowed",
            "excluded",
            "conditional",
        ),
    ]
    tokens: int | None = None  # its tokens in the prompt; absent where nothing of it is there
    # the files that it imports, each followed by what it imports itself
    imports: list[ImportedFile] | None = None
    applies_to: str | None = None  # the globs of a `conditional` file, separated by commas


class Layer(Wire, frozen=True):
    """One directory's say in the context."""

    name: str  # `defaults`, `global`, `ancestor:<directory>` or `local`
    path: str  # the directory of its configuration
    files: list[LayerFile]  # the files that it may have
    tokens: int  # of its files, with what they import and define, in the prompt of whose layers these are


class SkippedLayer(Wire, frozen=True):
    """Something that could have been a layer and is not."""

    path: str  # a directory or file that was left out
    reason: str  # why


class LayersResult(Sparse, frozen=True):
    """What a folder's context is made of."""

    revision: int  # revision of the folder's snapshot
    layers: list[Layer]  # lowest first; a later one wins
    skipped: list[SkippedLayer]  # what was not read
    problems: list[Problem]  # what is wrong in the files
    counter: Counter  # who counted the tokens
    # how changes of the files on disk are noticed; absent where they were read once, as by `nexus show`
    freshness: Freshness | None = None


class ContextDidChange(Sparse, frozen=True):
    """Sent to every client when what the model will see, or what it costs, is different from before."""

    workspace_folder: str  # URI of the folder
    revision: int  # revision of its snapshot now
    # `folder` (was added), `config`, `model` (another one was picked), `mcp`, `instructions`, `disk`,
    # `layers` (init), `session`, `compaction` or `tokens` (what was estimated is exact now)
    reason: Annotated[
        str,
        OneOf(
            "folder",
            "config",
            "model",
            "mcp",
            "instructions",
            "disk",
            "layers",
            "session",
            "compaction",
            "tokens",
            open=True,
        ),
    ]
    usage: TokenUsage  # what the session `main` costs now, whichever has changed
    # the session that has changed, for `session` and `compaction`; absent where several have
    session: str | None = None
