"""`nexus/context/*`: what is sent to a model, its cost and its sources."""

from typing import Annotated, Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.agent import Role, ViewAs
from nexus_daemon.protocol.assistant import NAMES as ASSISTANTS
from nexus_daemon.protocol.assistant import AssistantMcpServer
from nexus_daemon.protocol.shapes import (
    Counter,
    FolderParams,
    Freshness,
    Location,
    OneOf,
    Params,
    Problem,
    Range,
    Sparse,
    TokenBudget,
    TokenUsage,
    Wire,
)


class AgentViewParams(FolderParams, frozen=True):
    """A folder, from the point of view of one of its agents."""

    agent: str | None = None  # a live agent; null: the folder's own, `main`


class LayersParams(AgentViewParams, frozen=True):
    """A folder, as another assistant sees it, or an agent that is live or could be started."""

    # instead of `agent`: `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    assistant: Annotated[str, ASSISTANTS] | None = None
    view_as: ViewAs | None = None  # instead of `agent`: an agent that is not started


class PreviewParams(LayersParams, frozen=True):
    """A folder, as another assistant sees it, or an agent that is live or could be started."""


class ConversationParams(FolderParams, frozen=True):
    """A folder, one of its agents and a conversation."""

    session: str | None = None  # a conversation; null: the agent's own, or `main` without an agent
    # a live agent, with its own system prompt, tools, permissions, parameters and model; null: the folder's
    # own, `main`
    agent: str | None = None


class AssembleOptions(Params, frozen=True):
    """Changes for one request; an absent or null field leaves the configuration in force."""

    model: str | None = None  # instead of the picked or configured model
    parameters: dict[str, Any] = {}  # model parameters by name; they win over the configured ones
    additional_system_prompt: str | None = None  # text to add to the system prompt
    additional_tools: list[dict[str, Any]] = []  # tool definitions, in the form of any provider
    disabled_tools: list[
        str
    ] = []  # names or patterns such as `browser.*`, in addition to the configured ones
    max_context_tokens: int | None = None  # a smaller window than the model's
    reserve_tokens: int | None = None  # instead of the configured reserve
    # instead of the configured: `oldest_first`, `smart`, `middle_out`, `sliding`, `simple` or `recency`
    truncation_strategy: str | None = None
    skip_skills: bool = False  # true: no skills
    skill_filter: list[str] | None = None  # only skills of these names, or patterns such as `git-*`
    skills: list[str] = []  # names of skills to activate: their text becomes part of the system prompt
    sandbox: bool | None = None  # true: only tools that declare that they only read
    permissions: list[str] | None = None  # patterns; only tools that match one are offered
    # true: also offer the memory tools; `nexus/memory/query` runs their calls
    memory_tools: bool = False
    # true: also offer `read_skill`, which reads a skill that the prompt lists; `nexus/skill/read` runs its
    # calls
    skill_tools: bool = False
    # true: also offer the agent tools that this agent may have; `nexus/agent/call` runs their calls
    agent_tools: bool = False
    # true: also offer the tools of the folder's MCP servers, approved ones in a trusted folder;
    # `nexus/mcp/call` runs their calls. Servers that do not run are started, unless the turn is only a
    # question of what it would be or cost. If there are too many tools (`tools.defer`), the model is offered
    # `search_tools` instead; `nexus/mcp/search` runs its calls
    mcp_tools: bool = False


class Attachment(Params, frozen=True):
    """An instruction file that the editor attaches to a turn automatically."""

    uri: str  # its URI, of any scheme
    # its text; null: the unsaved text of the open document, else the file on disk
    text: str | None = None


class NextTurnParams(Params, frozen=True):
    """What a client knows about its next turn before the user has written it."""

    options: AssembleOptions | None = None  # as in `nexus/context/assemble`
    attachments: list[Attachment] = []  # instruction files that the editor will attach automatically
    files: list[str] = []  # URIs of the files that the turn will be about
    turn_tools: list[dict[str, Any]] = []  # tool definitions that the client will send for this turn


class UsageParams(ConversationParams, frozen=True):
    """A folder, one of its agents, a conversation and its next turn."""

    next_turn: NextTurnParams | None = None  # null: the usage without what only a turn adds
    # another assistant: the usage is that of the folder's files in each request of `claude-code`, `codex`,
    # `opencode`, `gemini`, `copilot` or `cursor`
    assistant: Annotated[str, ASSISTANTS] | None = None


class DryRun(Params, frozen=True, kw_only=True):
    """What a turn would be. It picks no model, compacts nothing, and messages for the agent keep waiting."""

    view_as: ViewAs | None = None  # instead of `agent`: an agent that is not started
    memory: bool = True  # false: nothing that is remembered goes before the message
    # instead of a conversation in the ledger: these messages, for the model last picked in the folder
    messages: list[Message] | None = None
    system_prompt: str | None = None  # with `messages`: instead of the prompt of the folder


class AssembleParams(ConversationParams, frozen=True):
    """A folder, an agent and the turn to assemble.

    Messages that wait for the agent are delivered with the turn. Without `agent`, the agent is the owner of
    the conversation if that is a live agent, else `main`. An `agent` that was never started with
    `nexus/agent/spawn` is a name that only the client uses: it gets the folder's own context, and the
    messages for that name. The error `unknown-agent` reports the name of an agent that has ended, a name that
    differs from an agent's only in case, and a turn in the conversation of an ended agent without `agent`.
    """

    # the user's message: text, a list of parts or a whole message
    message: str | list[Any] | Message | None = None
    # a node of the agent: messages for its other nodes wait, and those for the whole agent come
    node: str | None = None
    event: dict[str, Any] | None = None  # facts about this turn, sent before the message (docs/prompt.md)
    # `neutral`, or with a body to send: `openai` (chat completions), `openai-responses`, `anthropic`
    # (messages), `gemini` (`generateContent`)
    format: Annotated[str, OneOf("neutral", "openai", "openai-responses", "anthropic", "gemini")] = "neutral"
    options: AssembleOptions | None = None  # changes for this request
    # instruction files that the editor attaches automatically. Files that the prompt already contains are
    # left out; the others come before the message, once in each request, and never become part of the
    # conversation
    attachments: list[Attachment] = []
    # URIs of the files that the turn is about: attached, referenced or edited. Instruction files with
    # `applyTo` are sent like attachments if it matches one of these
    files: list[str] = []
    # tool definitions for this turn only, in addition to those of `options`: the next turn is not expected to
    # have them unless `nextTurn` names them
    turn_tools: list[dict[str, Any]] = []
    dry_run: DryRun | None = None  # null: the turn is about to be sent


class ParameterValue(Wire, frozen=True):
    """A model parameter and where its value comes from."""

    value: Any  # the value that wins
    origin: str  # `request`, `session`, `agent`, the layer that sets it, or `built-in`


class Endpoint(Sparse, frozen=True):
    """Where the client sends a request, by the settings of `provider`, without values of headers and keys."""

    has_key: bool  # whether the environment variable with the API key is set in the client's environment
    # the API's address: `provider.base_url`, else the provider's own, with `*` for passwords; absent: the
    # settings have to name one
    url: str | None = None
    headers: list[str] = []  # names of the extra headers, `provider.headers`
    key_variable: str | None = None  # the variable with the API key, `provider.api_key_env`


class AssembledContext(Sparse, frozen=True):
    """One assembled turn."""

    revision: int  # revision of the folder's snapshot, which grows with every change
    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    system_prompt: str  # the whole system prompt
    history: list[Message] | list[msgspec.Raw]  # the messages of the conversation that are sent, oldest first
    current_message: Message | None  # the turn's facts and message; null if there is neither
    tools: list[dict[str, Any]]  # tool definitions, sorted by name, without disabled ones
    parameters: dict[str, ParameterValue]  # model parameters by name, each with its origin
    model: str  # the model's name
    provider: str  # the configured provider
    usage: TokenUsage  # the cost of all of it
    token_budget: TokenBudget  # the same figures by category
    # `level`, `allow` and `deny`; `narrowedTo` if the request narrows them; `preapproved` if active skills of
    # the user name tools that need no confirmation
    permissions: dict[str, Any]
    toolset: str  # `all`, or `narrowed` if a tool was left out
    role: Role  # the agent's: `manager`, `worker` or `unified`
    workspace_path: str  # path of the folder, or of the agent's working directory
    # sums by category, what providers can cache, what was left out and why, and whether to compact: see
    # [Metadata](#metadata)
    metadata: dict[str, Any]
    problems: list[Problem]  # mistakes in the folder's files
    agent: str | None = None  # the requested agent
    request: dict[str, Any] | None = None  # the body to send, for all formats but `neutral`
    request_id: str | None = None  # names this request in `nexus/session/append`
    parent_turn: str | None = None  # id of the conversation's last turn
    source_event: str | None = None  # the event's `id`, if it has one
    # where to send it; absent with the providers `editor`, whose model the client asks itself, and `none`
    endpoint: Endpoint | None = None
    # of a dry run: the sources of its parts, and what becomes of the messages
    explanation: "Explanation | None" = None


class Fragment(Wire, frozen=True):
    """A run of the prompt's text and its source."""

    # the section of the prompt; of another assistant `instructions`, `skills`, `agents`, or `heading`: a line
    # that is not sent
    section: str
    # the layer that it comes from, named as in `nexus/context/layers` for the same agent; null for Nexus's
    # own text, and for text that a parent agent has from a directory that is not a layer of this agent
    layer: str | None
    title: str  # what it is, for people
    range: Range  # its range in the prompt
    source: Location | None  # its range in a file; empty if the file does not contain the text itself
    tokens: int  # its share of the prompt's tokens
    verbatim: bool  # true: the source's text verbatim, except for line ends; false: generated from the source


class ExplainedMessage(Sparse, frozen=True, kw_only=True):
    """A message of a dry run, and what becomes of it."""

    # `system`, `user`, `assistant` or `tool`
    role: Annotated[str, OneOf("system", "user", "assistant", "tool")]
    text: str  # its beginning in one line, with its tool calls, for people
    tokens: int  # as it is sent
    # `sent`; `pinned` or `kept`, before a cut; `note`, which has names and values of what a cut leaves out;
    # `anchor`, how the turn in which the cut is began; `left-out`, which no provider takes; `current`
    state: Annotated[
        str, OneOf("sent", "pinned", "kept", "note", "anchor", "left-out", "current", open=True)
    ] = "sent"
    position: int | None = None  # number of the message in the conversation, from 0
    whole_tokens: int | None = None  # of a shortened one: its tokens as it is stored
    preamble_tokens: int | None = None  # those of the facts and the memory that were sent before its text


class ExplainedCut(Wire, frozen=True):
    """The place of a dry run at which messages are left out, because not all fit."""

    at: int  # the number of the message in `messages` before which they are missing
    messages: int  # number of messages that are left out
    tokens: int  # their tokens
    whole_tokens: int  # the tokens of the whole request with them
    starts_turn: bool  # whether the first message behind the cut begins a turn
    strategy: str  # what to cut first, as in `options.truncationStrategy`
    target: float  # the share of what is available that a cut aims at


class Explanation(Sparse, frozen=True, kw_only=True):
    """Where the parts of a dry run come from, and what becomes of the messages."""

    fragments: list["Fragment"]  # of the system prompt, as in `nexus/context/preview`
    messages: list[ExplainedMessage]  # those that are sent, oldest first
    repairs: list[str]  # what a provider would refuse and how it is repaired, for people
    cut: ExplainedCut | None = None  # absent: all messages fit
    # who chose the model: the user, for the `session` or last in this `folder`; absent: the request or the
    # settings
    picked_for: Annotated[str | None, OneOf("session", "folder")] = None


class Preview(Wire, frozen=True):
    """The system prompt with the source of every character; of another assistant, what it sends of files."""

    revision: int  # revision of the folder's snapshot
    text: str  # the system prompt
    fragments: list[Fragment]  # in order; they cover the text without gaps or overlaps
    tokens: int  # tokens of the text: the sum of the fragments


class ImportedFile(Sparse, frozen=True):
    """A file in the prompt that another file imports."""

    uri: str  # the file
    depth: int  # 1: imported by the layer's file; 2: by a file that this one imports, and so on
    source: Location  # the `@path` that imports it
    tokens: int | None = None  # its own tokens in the prompt


class LayerFile(Sparse, frozen=True):
    """One file of a layer, existing or not."""

    # `instructions`, `config`, `mcp`, `readme`, `skill`; of bootstrap files `agent`, `soul`, `identity`,
    # `user-identity`, `context`
    kind: str
    uri: str  # the file, even if it is missing
    # `loaded`, `missing`, `stale`, `invalid`, `unreadable`, `too-large`, `shadowed` (a nearer layer has one),
    # `excluded` (by the settings), `conditional` (sent with turns about files that match `appliesTo`)
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
    tokens: int | None = None  # its tokens in the prompt; absent if the prompt contains nothing of it
    # the files that it imports, each followed by its own imports
    imports: list[ImportedFile] | None = None
    applies_to: str | None = None  # the globs of a `conditional` file, separated by commas
    reason: str | None = None  # in the layers of another assistant: what is cut, or when the file is sent
    name: str | None = None  # of a skill in force: its name
    description: str | None = None  # of a skill in force: what it does and when to use it


class Layer(Wire, frozen=True):
    """One directory that contributes to the context."""

    # `defaults`, `global`, `ancestor:<directory>` or `local`; of another assistant the `scope` of its files
    name: str
    path: str  # the directory of its configuration
    files: list[LayerFile]  # its files, existing or not
    tokens: int  # tokens in the prompt of its files, with their imports and definitions


class SkippedLayer(Wire, frozen=True):
    """A directory or file that was left out."""

    path: str  # its path
    reason: str  # why


class LayersResult(Sparse, frozen=True):
    """The layers of a folder's context."""

    revision: int  # revision of the folder's snapshot
    layers: list[Layer]  # lowest first; a later one wins
    skipped: list[SkippedLayer]  # what was left out
    problems: list[Problem]  # mistakes in the files
    counter: Counter  # the counter behind the figures
    servers: list[AssistantMcpServer] | None = None  # of another assistant: the MCP servers in its settings
    # how changes on disk are noticed; absent if the files were read once, as by `nexus show`
    freshness: Freshness | None = None


class ContextDidChange(Sparse, frozen=True):
    """Sent to every client when the context of a folder, or its cost, changes."""

    workspace_folder: str  # URI of the folder
    revision: int  # revision of its snapshot now
    # `folder` (added), `config`, `model` (another one was picked), `mcp`, `instructions`, `disk`, `layers`
    # (initialized), `session`, `compaction` or `tokens` (an estimate became exact)
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
    usage: TokenUsage  # the cost of the conversation `main`, whichever changed
    # the conversation that changed, for `session` and `compaction`; absent if several changed
    session: str | None = None
