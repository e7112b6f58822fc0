"""The values of a folder's layers."""

from typing import Any, Literal

import msgspec

from nexus_context.config.limits import Excess
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import ConfigLayer, Effective
from nexus_context.config.picked_model import ModelChoice
from nexus_context.errors import Problem, Span
from nexus_context.files import FileRead
from nexus_context.jsontext import JsonDocument
from nexus_context.skills import ReadSkill, Skill

DEFAULTS = "defaults"
GLOBAL = "global"
LOCAL = "local"
ANCESTOR_PREFIX = "ancestor:"

Bootstrap = Literal["agent", "soul", "identity", "user-identity", "context"]
Kind = Bootstrap | Literal["instructions", "config", "mcp", "readme", "skill"]
Status = Literal[
    "loaded",
    "missing",
    "stale",
    "invalid",
    "unreadable",
    "too-large",
    "shadowed",
    "excluded",
    "conditional",
]


class LayerFile(msgspec.Struct, frozen=True):
    """A file that a layer has or could have.

    `text` is the present text where it can be read; only that of a `loaded` file counts. A `stale` JSON
    file is broken and its last good value counts; an `invalid` one counts as absent. A `shadowed` file has no
    effect: a nearer layer has one in its place; an `excluded` one has none by the settings. A `conditional`
    one is sent with turns about files that the globs `applies_to` stand for. `body` is the part of the text
    that is sent; None: all of it.
    """

    kind: Kind
    path: str
    status: Status
    text: str | None = None
    applies_to: str | None = None
    body: Span | None = None


class Layer(msgspec.Struct, frozen=True):
    """One layer. `directory` is what it speaks for, `config_directory` its `.nexus3`.

    `opened` is the opened folder that the directory is, or is in; None: it is in none. `strict`: each file
    must belong to this user or root.
    """

    name: str
    directory: str
    config_directory: str
    files: tuple[LayerFile, ...]
    opened: str | None = None
    strict: bool = False

    @property
    def tree(self) -> str:
        """The directory that what the files of a workspace's layer name must be in."""
        return self.opened or self.directory

    @property
    def in_workspace(self) -> bool:
        """Whether the layer comes with a workspace, not with the user or the installation."""
        return self.name == LOCAL or self.name.startswith(ANCESTOR_PREFIX)


class Remedy(msgspec.Struct, frozen=True):
    """What makes Nexus read an instruction file, together.

    `entry` is to be added to `context.instruction_files`; `@name` is to be written in the file `importer`;
    `depth` is the `context.ancestor_depth` that it takes.
    """

    entry: str | None = None
    importer: str | None = None
    name: str | None = None
    depth: int | None = None


class Skipped(msgspec.Struct, frozen=True):
    """A directory or file that is not read although it is where a layer could be.

    `remedy` is what would change that, where an edit can.
    """

    path: str
    reason: str
    remedy: Remedy | None = None


class Reach(msgspec.Struct, frozen=True):
    """Where instruction files are looked for.

    `directories` are those of the opened folder, then those above it up to its repository's root, each with
    how many directories it lies above the folder. `depth` of those above are read, but none from `stop` on.
    """

    directories: tuple[tuple[str, int], ...] = ()
    depth: int = 0
    stop: Skipped | None = None


class CheckedDocument(msgspec.Struct, frozen=True):
    """A JSON document of a settings file and everything that is wrong with it."""

    document: JsonDocument
    problems: tuple[Problem, ...]


class MergedSettings(msgspec.Struct, frozen=True):
    """Settings merged from these layers, what exceeded a limit, and what the present texts may not set.

    `unmerged` are the problems of layers that had to be left out (`containment`). `choice` is the picked
    model that is in force.
    """

    layers: tuple[ConfigLayer, ...]
    present: tuple[ConfigLayer, ...]
    effective: Effective
    excesses: tuple[Excess, ...]
    problems: tuple[Problem, ...]
    unmerged: tuple[Problem, ...] = ()
    choice: ModelChoice | None = None


class DocumentServers(msgspec.Struct, frozen=True):
    """The servers of a document and what is wrong with them, in these surroundings.

    `commands` are the commands that were looked for, each with what was found.
    """

    document: JsonDocument
    environ: dict[str, str]
    commands: dict[str, str | None]
    servers: tuple[McpServer, ...]
    problems: tuple[Problem, ...]


class LayerSkill(msgspec.Struct, frozen=True):
    """A skill that counts, and the name of its layer."""

    layer: str
    skill: Skill


class Listing(msgspec.Struct, frozen=True):
    """Names of the directories in a directory, sorted; `more`: there are more than are looked at."""

    names: tuple[str, ...] = ()
    more: bool = False


class Presence(msgspec.Struct, frozen=True):
    """Which files of some `names`, and of other programs, a directory has.

    `candidates` are the paths that were looked for, each with its name below the directory; `present` are
    names and paths of what is on the disk; `watch` are the paths that matter to it.
    """

    names: tuple[str, ...]
    candidates: dict[str, str]
    present: tuple[tuple[str, str], ...]
    watch: tuple[str, ...]


class Remarks(msgspec.Struct, frozen=True):
    """What is to be said of a text."""

    text: str
    problems: tuple[Problem, ...]


class AgentRemarks(msgspec.Struct, frozen=True):
    """What is to be said of the agents of these settings, but for their directories.

    `present` says of each merged document whether it is what is in its file now; `servers` are the names of
    the MCP servers; `layers` are the layers that are spoken of.
    """

    effective: Effective
    present: tuple[bool, ...]
    servers: tuple[str, ...]
    layers: frozenset[str]
    problems: tuple[Problem, ...]


class LoadMemory(msgspec.Struct, frozen=True):
    """What a load leaves for the next one: by path, and the merged settings. Nobody changes it later."""

    reads: dict[str, FileRead] = {}
    documents: dict[str, JsonDocument] = {}
    checked: dict[str, CheckedDocument] = {}
    good: dict[str, JsonDocument] = {}
    refusals: dict[str, str | None] = {}
    served: dict[str, DocumentServers] = {}
    merged: MergedSettings | None = None
    listings: dict[str, Listing] = {}
    skills: dict[str, ReadSkill] = {}
    remarks: dict[str, Remarks] = {}
    real_paths: dict[str, str] = {}
    agents: AgentRemarks | None = None
    headers: dict[str, tuple[str, Any]] = {}
    presences: dict[str, Presence] = {}

    def of_files(self) -> "LoadMemory":
        """What holds for a file whichever folder it is read for: its text, and what is made of that alone."""
        return LoadMemory(
            self.reads,
            self.documents,
            self.checked,
            self.good,
            skills=self.skills,
            remarks=self.remarks,
            headers=self.headers,
        )


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a folder's files say, and what is wrong with them.

    `layers` are in order, the most important last. `documents` are the JSON files' present texts, parsed as
    far as possible; `good` their last values without an error; `texts` all texts by path. `watch` are all
    paths whose change matters, of files and directories that exist or not; one that ends with a separator
    stands for whatever is in that directory. `memory` saves work of the next load and means nothing else.
    `skills` are those that count, in the order of the prompt. `root` is the opened folder: `folder`, or one
    that it is in. `links` are the paths of files by the real path that a symbolic link leads to. `reach` says
    where instruction files are looked for, and `unread` are those that are there and are not read.
    """

    folder: str
    root: str
    layers: tuple[Layer, ...]
    effective: Effective
    servers: tuple[McpServer, ...]
    memory: LoadMemory
    skipped: tuple[Skipped, ...] = ()
    problems: tuple[Problem, ...] = ()
    documents: dict[str, JsonDocument] = {}
    texts: dict[str, str] = {}
    good: dict[str, JsonDocument] = {}
    watch: tuple[str, ...] = ()
    skills: tuple[LayerSkill, ...] = ()
    links: dict[str, str] = {}
    reach: Reach = Reach()
    unread: tuple[Skipped, ...] = ()

    @property
    def not_read(self) -> tuple[Skipped, ...]:
        """Everything that could have been read and is not, each with the reason."""
        return (*self.skipped, *self.unread)
