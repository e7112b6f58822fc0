"""Defines the values of a folder's layers."""

from typing import Any, Literal

import msgspec

from nexus_context.config.limits import Excess
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import ConfigLayer, Effective
from nexus_context.config.picked_model import ModelChoice
from nexus_context.disk.files import FileRead
from nexus_context.errors import Problem, Span
from nexus_context.folder.skills import ReadSkill, Skill
from nexus_context.text.json import JsonDocument

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

    `text` is the present text if it can be read; it counts only if the file is `loaded`. A `stale` JSON file
    is broken, and its last good value counts; an `invalid` one counts as absent. A nearer layer replaces a
    `shadowed` file; the settings leave out an `excluded` one. A `conditional` file is sent with turns about
    files that match the globs `applies_to`. `body` is the part of the text that is sent, or None if all of it
    is.
    """

    kind: Kind
    path: str
    status: Status
    text: str | None = None
    applies_to: str | None = None
    body: Span | None = None


class Layer(msgspec.Struct, frozen=True):
    """One layer. `directory` is the directory it belongs to, `config_directory` its `.nexus3`.

    `opened` is the opened folder that is or contains the directory, or None if there is none. If `strict`,
    each file must belong to this user or root.
    """

    name: str
    directory: str
    config_directory: str
    files: tuple[LayerFile, ...]
    opened: str | None = None
    strict: bool = False

    @property
    def tree(self) -> str:
        """The directory that must contain all files that a file of this layer names."""
        return self.opened or self.directory

    @property
    def in_workspace(self) -> bool:
        """Whether the layer comes with a workspace, not with the user or the installation."""
        return self.name == LOCAL or self.name.startswith(ANCESTOR_PREFIX)


class Remedy(msgspec.Struct, frozen=True):
    """The edits that together make Nexus read an instruction file. A part that is None is not needed.

    Add `entry` to `context.instruction_files`; write `@name` in the file `importer`; set
    `context.ancestor_depth` to `depth`.
    """

    entry: str | None = None
    importer: str | None = None
    name: str | None = None
    depth: int | None = None


class Skipped(msgspec.Struct, frozen=True):
    """A directory or file that could belong to a layer and is not read.

    `remedy` has the edits that would change that, or is None if there are none. `cause` is the reason without
    its advice, for a single line. It is empty if the reason has no advice.
    """

    path: str
    reason: str
    remedy: Remedy | None = None
    cause: str = ""


class Reach(msgspec.Struct, frozen=True):
    """Where instruction files are looked for.

    `directories` are those of the opened folder, then those above it, each with its height above the folder.
    They reach up to the root of its repository, and further if ancestors are read. Instruction files are read
    up to the height `depth`, but not from `stop` upwards.
    """

    directories: tuple[tuple[str, int], ...] = ()
    depth: int = 0
    stop: Skipped | None = None


class CheckedDocument(msgspec.Struct, frozen=True):
    """A settings file's JSON document with all its problems."""

    document: JsonDocument
    problems: tuple[Problem, ...]


class MergedSettings(msgspec.Struct, frozen=True):
    """The merged settings of `layers`, with the limits that they exceed and their problems.

    `present` are the layers as the present texts have them, and `problems` are about the settings that these
    may not set. `unmerged` are the problems of layers that had to be left out (`containment`). `choice` is
    the picked model in force.
    """

    layers: tuple[ConfigLayer, ...]
    present: tuple[ConfigLayer, ...]
    effective: Effective
    excesses: tuple[Excess, ...]
    problems: tuple[Problem, ...]
    unmerged: tuple[Problem, ...] = ()
    choice: ModelChoice | None = None


class DocumentServers(msgspec.Struct, frozen=True):
    """The servers and the problems of an MCP file, for the environment `environ`.

    `commands` maps each command that was looked up to its path.
    """

    document: JsonDocument
    environ: dict[str, str]
    commands: dict[str, str | None]
    servers: tuple[McpServer, ...]
    problems: tuple[Problem, ...]


class LayerSkill(msgspec.Struct, frozen=True):
    """A skill in force. `layer` is the name of its layer."""

    layer: str
    skill: Skill


class Listing(msgspec.Struct, frozen=True):
    """The subdirectories of a directory, sorted. `more` is true if there are more than are read."""

    names: tuple[str, ...] = ()
    more: bool = False


class Presence(msgspec.Struct, frozen=True):
    """Which instruction files a directory has: those called as in `names`, and those of other programs.

    `candidates` maps the paths that were looked up to their names below the directory; `present` are names
    and paths of existing files; `watch` are the paths that the result depends on.
    """

    names: tuple[str, ...]
    candidates: dict[str, str]
    present: tuple[tuple[str, str], ...]
    watch: tuple[str, ...]


class Remarks(msgspec.Struct, frozen=True):
    """The problems that were found in a text."""

    text: str
    problems: tuple[Problem, ...]


class AgentRemarks(msgspec.Struct, frozen=True):
    """The problems of the agents of the settings `effective`, except those of their directories.

    `present` tells for each merged document whether it is the file's present text. `servers` are the names of
    the MCP servers. `layers` are those whose values are reported.
    """

    effective: Effective
    present: tuple[bool, ...]
    servers: tuple[str, ...]
    layers: frozenset[str]
    problems: tuple[Problem, ...]


class LoadMemory(msgspec.Struct, frozen=True):
    """What a load leaves for the next one, mostly by path. It does not change once it is built."""

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
        """Return the parts that hold for a file in any folder: its text, and what derives from that alone."""
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
    """Everything that a folder's files say, and their problems.

    `layers` are in order, the most important last. `documents` are the JSON files' present texts, parsed as
    far as possible; `good` are their last values without an error; `texts` are all texts by path. `watch` are
    all paths whose change matters, of existing and missing files and directories; a path that ends with a
    separator stands for everything in that directory. `memory` only saves work of the next load. `skills` are
    those in force, in the order of the prompt. `root` is the opened folder: `folder`, or one that contains
    it. `links` maps the real path that a symbolic link leads to, to the path of the link. `reach` tells where
    instruction files are looked for; `unread` are existing ones that are not read. `task` is the task of a
    worker, for whom only skills about the task count; None for other agents.
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
    task: str | None = None

    @property
    def not_read(self) -> tuple[Skipped, ...]:
        """Everything that could be read and is not, with the reasons."""
        return (*self.skipped, *self.unread)
