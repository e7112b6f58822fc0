"""`nexus/assistant/*`: what other assistants read in a folder."""

from typing import Annotated

from nexus_daemon.protocol.shapes import FolderParams, OneOf, Position, Sparse, Wire

NAMES = OneOf("claude-code", "codex", "opencode", "gemini", "copilot", "cursor", open=True)
VERIFIED = OneOf("run", "documentation")
SERVER_SCOPES = OneOf("managed", "user", "parent", "project", "local", open=True)
STARTS = OneOf("starts", "asks", "off")
PLACES = OneOf("system", "user", "developer", "none")
FIRST_SCOPES = ("managed", "user", "parent", "project", "local", "rule", "import")
SCOPES = OneOf(*FIRST_SCOPES, "settings", "memory", "skill", "agent", "nested", "other", open=True)


class AssistantInfo(Wire, frozen=True):
    """An assistant that Nexus has a profile of."""

    # its name in requests: `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    name: Annotated[str, NAMES]
    title: str  # its name for people
    version: str  # the version whose rules the profile has
    # `run`: the profile agrees with its own requests; `documentation`: it follows what its maker documents
    verified: Annotated[str, VERIFIED]
    model: str  # the model that its tokens are counted for
    names: list[str]  # the instruction files that it looks for in a project
    installed: bool  # whether its command is on the client's PATH
    settings: list[str]  # URIs of its settings files that exist


class AssistantListResult(Wire, frozen=True):
    """All assistants."""

    assistants: list[AssistantInfo]  # in the order of columns


class AssistantParams(FolderParams, frozen=True, kw_only=True):
    """A folder and an assistant."""

    # `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    assistant: Annotated[str, NAMES]


class AssistantFile(Sparse, frozen=True, kw_only=True):
    """A file, or a stretch of one, and what the assistant does with it."""

    uri: str  # the file
    # where in the request: in the `system` prompt, a `user` or `developer` message, or `none`
    role: Annotated[str, PLACES]
    # why it is read: it is of the organization (`managed`), the `user`, a `parent` directory, the `project`,
    # `local` (not checked in) or `nested` (below); it is a `rule`, a `skill` or an `agent`, an `import` of
    # another file, named by the `settings`, or in the assistant's `memory`; `other`: it is not read
    scope: Annotated[str, SCOPES]
    order: int | None = None  # its place among what is sent, from 0
    tokens: int = 0  # with the assistant's text around it; of a file that is sent later, of all its text
    exact: bool  # false: an estimate
    loaded: bool  # whether it is in every request
    reason: str | None = None  # when it is sent, or why it is not
    cut_at: Position | None = None  # the rest from here is never read
    imported_by: str | None = None  # the URI of the file that imports it


class AssistantMcpServer(Sparse, frozen=True, kw_only=True):
    """An MCP server in the settings of an assistant. Nexus does not start it: its tools are not known."""

    name: str  # its name there
    uri: str  # the settings file that names it
    # whose settings these are: of the organization (`managed`), the `user`, a `parent` directory, the
    # `project`, or the user's of this project (`local`)
    scope: Annotated[str, SERVER_SCOPES]
    # whether it `starts` with the assistant, after it `asks` the user, or not at all (`off`)
    start: Annotated[str, STARTS]
    reason: str | None = None  # what has to happen first, or why it is not started


class AssistantContextResult(Wire, frozen=True):
    """What an assistant reads in a folder."""

    # `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    assistant: Annotated[str, NAMES]
    version: str  # the version whose rules these are
    verified: Annotated[str, VERIFIED]  # `run` or `documentation`, as in `nexus/assistant/list`
    files: list[
        AssistantFile
    ]  # sent ones in their order, then those sent later, then those that are not read
    total: int  # tokens of the folder's files in every request, with the assistant's text around them
    limit: int | None  # bytes of the project's instructions that it reads at most; null: no limit
    counter: str  # what tokens are counted with
    problems: int  # what `nexus check --for` reports
    servers: list[AssistantMcpServer]  # the MCP servers in its settings, by name
    # tokens of the assistant's own prompt and tools beside `total`, as its version sends them at a terminal
    # from an empty repository; null where that is not known, or where a setting changes them
    own_tokens: int | None = None


class AssistantColumn(Wire, frozen=True):
    """An assistant in the table of who reads what."""

    # `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    name: Annotated[str, NAMES]
    title: str  # its name for people
    # `run` or `documentation`, as in `nexus/assistant/list`
    verified: Annotated[str, VERIFIED]
    tokens: int  # of the folder's files in every request
    exact: bool  # false: an estimate
    own_tokens: int | None = None  # of its own prompt and tools beside them; null where that is not known


class FileReader(Sparse, frozen=True):
    """What an assistant does with a file."""

    # `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    assistant: Annotated[str, NAMES]
    # `sent` with every request; `cut`: a part of it is; `later`: when something happens; or `unread`
    use: Annotated[str, OneOf("sent", "cut", "later", "unread")]
    tokens: int  # of it in every request
    exact: bool = False  # false: an estimate
    reason: str | None = None  # why it is not read or cut, or when it is sent


class FileReaders(Wire, frozen=True):
    """A file in the table of who reads what."""

    uri: str  # the file
    readers: list[FileReader]  # one for each assistant, in the order of columns


class AssistantReadersResult(Wire, frozen=True):
    """Who reads what."""

    assistants: list[AssistantColumn]  # the columns
    files: list[FileReaders]  # the rows: the user's files, those above and in the folder, those below
