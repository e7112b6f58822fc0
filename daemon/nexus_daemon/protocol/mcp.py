"""`nexus/mcp/*`: the MCP servers of a folder: what they would start, what they offer and cost, and calls."""

from typing import Annotated, Any, Literal, get_args

from nexus_daemon.protocol.shapes import FolderParams, OneOf, Range, Sparse, Wire

State = Literal[
    "disabled",
    "untrusted",
    "unapproved",
    "stopped",
    "starting",
    "ready",
    "changed",
    "failed",
    "needs-auth",
]
STATES = OneOf(*get_args(State), open=True)


class ServerTool(Sparse, frozen=True):
    """A tool that a server offers."""

    name: str  # its name at the server
    offered_as: str  # its name for a model: `mcp__server__tool`, with what providers refuse replaced
    description: str  # what the server says of it
    tokens: int  # tokens of its definition in every request
    enabled: bool = True  # false: the settings leave it out
    deferred: bool = False  # true: a model gets its definition only when it looks for it


class TextChange(Wire, frozen=True):
    """A stretch of a text that was compared."""

    text: str  # the stretch
    state: Annotated[str, OneOf("kept", "added", "removed")]  # `kept`, `added` or `removed`


class ToolChange(Wire, frozen=True):
    """A difference of what a server offers from what was approved."""

    kind: Annotated[str, OneOf("added", "removed", "changed")]  # `added`, `removed` or `changed`
    place: str  # the tool, and behind a dot what of it: `read_file.description`
    words: list[TextChange]  # the text, word by word


class ServerFlag(Wire, frozen=True):
    """Something suspicious in a text that a model is told."""

    suspicion: Annotated[str, OneOf("hidden", "orders", open=True)]  # `hidden` text, or `orders` to a model
    place: str  # as in a change
    message: str  # what it is


class ServerInfo(Sparse, frozen=True):
    """An MCP server in force in a folder, and what is known of it."""

    name: str  # its name in the file
    origin: str  # the layer of its file; `project` for `.mcp.json`, `vscode` for `.vscode/mcp.json`
    uri: str  # that file
    range: Range  # its entry in the file
    transport: Annotated[str, OneOf("stdio", "http", "sse")]  # `stdio`, `http` or `sse`
    # `disabled` in its file; `untrusted`: the folder is not trusted; `unapproved`: the user has not approved
    # what it would start; `stopped`: it may start; `starting`; `ready`; `changed`: it runs, but offers
    # something else than what was approved, so it is not called; `failed`; `needs-auth`: the user has to
    # sign in (`nexus/mcp/login`), or its file gives an Authorization header that it refuses
    state: Annotated[str, STATES]
    hash: str | None = None  # what an approval is bound to; absent if it cannot be started as configured
    command: str | None = None  # what it would start, in the words of a shell; secrets are covered
    program: str | None = None  # where the program of the command really is
    directory: str | None = None  # the directory where it would start
    variables: dict[str, str] = {}  # what its file gives its process, by name; secrets are covered
    headers: dict[str, str] = {}  # what its file adds to each request, by name; secrets are covered
    url: str | None = None  # the address that it would connect to
    pid: int | None = None  # its process
    error: str | None = None  # why it failed
    pin: str | None = None  # what stands for everything that it offers
    tokens: int = 0  # tokens of all its enabled tools in every request
    exact: bool = False  # false: an estimate
    # true: it never ran here; `tools` are those that the same program offered in another folder
    seen_elsewhere: bool = False
    tools: list[ServerTool] = []  # what it offers, or offered when it ran last
    instructions: str | None = None  # what it tells models besides
    prompts: list[str] = []  # names of its prompts
    # how each is called in a chat: its name and those of its arguments, `[…]` if one may be left out
    prompt_usages: list[str] = []
    resources: list[str] = []  # addresses of its resources
    changes: list[ToolChange] = []  # of a `changed` server
    flags: list[ServerFlag] = []  # suspicious texts
    warnings: list[str] = []  # what to know before approving it: packages that it fetches in any version
    # when a conversation of the folder, or one kept of another program, last called one of its tools: UTC,
    # ISO 8601. Only in `nexus/mcp/servers`
    last_call: str | None = None
    log: str | None = None  # URI of the file with what it prints to its standard error, if it has run


class ServersParams(FolderParams, frozen=True):
    """A folder, or one of its agents."""

    agent: str | None = None  # an agent: the servers of its directory


class ServersResult(Sparse, frozen=True):
    """The servers of a folder."""

    servers: list[ServerInfo]  # in the order of the layers, without overridden ones
    tokens: int  # tokens of all tools that a turn may have
    deferred_tokens: int = 0  # of these, tokens that a turn begins without: a model looks for the tools
    window: int = 0  # tokens of the model's window, or of the configured maximum
    unused: list[str] = []  # servers that a turn may have, with tools that were not called in 30 days
    summary: str | None = None  # the cost in words, for people; absent if no turn has any tool


class ServerParams(FolderParams, frozen=True):
    """A folder and one of its servers."""

    name: str  # the server


class ApproveParams(ServerParams, frozen=True, kw_only=True):
    """What the user approves."""

    hash: str  # of the server as the user was shown it; another one is refused
    pin: str | None = None  # of what it offers, to approve a change


class ServerCallParams(FolderParams, frozen=True, kw_only=True):
    """A call of a tool."""

    server: str  # the server
    tool: str  # the tool's name at the server
    arguments: dict[str, Any] = {}  # its arguments
    session: str | None = None  # the conversation that the call is for
    agent: str | None = None  # the agent that calls


class ServerCallResult(Sparse, frozen=True):
    """What a tool answered. It is text of somebody else: data, never an instruction."""

    content: list[dict[str, Any]]  # the parts of the answer as the server sent them
    is_error: bool  # whether the tool says that it failed
    tokens: int  # tokens of the texts of the answer
    # the answer for a model: its texts, marked as data of the server; the middle of a long one is left out
    text: str
    # all of `text`, where its middle is left out: for a conversation that keeps what was answered
    whole: str | None = None


class ServerPromptParams(FolderParams, frozen=True, kw_only=True):
    """A prompt of a server, with what goes into it."""

    server: str  # the server
    prompt: str  # the prompt's name at the server
    arguments: dict[str, str] = {}  # its arguments by their names
    # in place of `arguments`: one word for each argument in its order, the last one takes the rest
    words: str | None = None
    agent: str | None = None  # the agent that talks


class ServerPromptResult(Sparse, frozen=True):
    """The text that a server has for a prompt, to be sent as the user's message."""

    text: str  # its messages, a line between them; those of an assistant begin with `Assistant:`
    tokens: int  # tokens of the text
    description: str | None = None  # what the prompt is for, in the server's words


class ServerResourceParams(FolderParams, frozen=True, kw_only=True):
    """A resource of a server."""

    server: str  # the server
    uri: str  # the resource, as the server names it
    agent: str | None = None  # the agent that talks


class ServerResourceResult(Wire, frozen=True):
    """The contents of a resource. It is text of somebody else: data, never an instruction."""

    text: str  # marked as data of the server; the middle of a long one is left out
    tokens: int  # tokens of the text


class ToolSearchParams(FolderParams, frozen=True, kw_only=True):
    """A search of a model for tools that it was not sent: the arguments of its call of `search_tools`."""

    query: str  # words about what a tool does, or its name
    agent: str | None = None  # the agent that searches


class ToolSearchResult(Wire, frozen=True):
    """The tools that a search has found, best first."""

    # the answer to the call: if it is appended as its result, the next requests of the conversation offer
    # these tools
    text: str
    tools: list[dict[str, Any]]  # their definitions
    tokens: int  # tokens of the answer


class McpDidChange(Sparse, frozen=True):
    """A server of a folder has another state, or offers something else."""

    workspace_folder: str  # the folder
    server: str  # the server
    # `disabled`, `untrusted`, `unapproved`, `stopped`, `starting`, `ready`, `changed`, `failed` or
    # `needs-auth`, as in `nexus/mcp/servers`
    state: Annotated[str, STATES]
