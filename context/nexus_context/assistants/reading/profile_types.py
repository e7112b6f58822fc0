"""The values of a profile: what an assistant sends of a folder's files, what it leaves out, and why."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.errors import Problem, Span
from nexus_context.text.json import JsonDocument
from nexus_context.text.lines import LineIndex

Verified = Literal["run", "documentation"]
"""How the rules of an assistant are known: by its own requests, or by what its maker documents."""
Scope = Literal[
    "program",  # text of the assistant around the files
    "managed",
    "user",
    "parent",  # a directory above the folder
    "project",
    "local",  # not checked in
    "rule",
    "import",
    "settings",  # a file that the settings name
    "memory",  # notes that the assistant keeps
    "skill",
    "agent",
    "nested",  # a directory below the folder
]
LISTED: tuple[Scope, ...] = ("skill", "agent")
"""The scopes of files of which every request has only the name and the description."""
NESTED_WHEN = "after a file in or below its directory is read"
"""When a file of a directory below the folder is sent."""
Place = Literal["system", "user", "developer"]
Kind = Literal["instructions", "skills", "agents"]
Start = Literal["starts", "asks", "off"]
"""Whether an MCP server is started with the assistant, after the user's approval, or not at all."""


class Rule(msgspec.Struct, frozen=True):
    """One thing that an assistant does with files, and its source: an address, or the version that did it."""

    text: str
    source: str


class Assistant(msgspec.Struct, frozen=True):
    """A program, the version whose rules these are, and the model that its tokens are counted for.

    The version of one that is known by its documentation is the month of that. `names` are the instruction
    files that it looks for in a project, `reads` the same in few words. `limit` is the most that it reads of
    a project's instructions, in bytes. `own_tokens` is what its own prompt and tools cost in a request from
    an empty repository, at a terminal, by the counter of its model; None where no request was seen.
    """

    name: str
    title: str
    version: str
    verified: Verified
    model: str
    names: tuple[str, ...]
    reads: str
    rules: tuple[Rule, ...]
    limit: int | None = None
    own_tokens: int | None = None


class Surroundings(msgspec.Struct, frozen=True):
    """Where an assistant runs: the resolved folder, the user's home, and its environment variables.

    `trusted`: the user trusts the folder, whatever the settings say.
    """

    folder: str
    user_home: str
    environ: Mapping[str, str]
    trusted: bool = False


class AssistantSettingsFile(msgspec.Struct, frozen=True):
    """A settings file, and what its program takes of it: nothing of one that it refuses.

    `document` has the places of the values, where a reader needs them.
    """

    path: str
    scope: Scope
    values: Mapping[str, Any]
    document: JsonDocument | None = None


Keys = tuple[str, ...]
CombineLists = Callable[[Keys, list[Any], list[Any]], list[Any]]
"""Makes one list at a path of keys from those of two files, the less important first."""


def replace_list(_: Keys, less: list[Any], more: list[Any]) -> list[Any]:  # noqa: ARG001
    """The list of the more important file."""
    return more


def join_lists(_: Keys, less: list[Any], more: list[Any]) -> list[Any]:
    """Both lists, each item once."""
    return [*less, *(item for item in more if item not in less)]


class AssistantSettings(msgspec.Struct, frozen=True):
    """The settings of a program in a folder, as it computes them before it reads anything else.

    `where` is where it runs, with the variables that the settings add. Of `files` the least important is the
    first. `problems` are what the program refuses of them or ignores; `stop` is the one for which it
    does not start. `texts` are the texts that the problems are in. `combine` makes one list of
    those of two files.
    """

    where: Surroundings
    files: tuple[AssistantSettingsFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    stop: Problem | None = None
    texts: Mapping[str, str] = {}
    combine: CombineLists = replace_list

    def merged(self) -> dict[str, Any]:
        """The values of all files: objects merge, lists are combined; of all else the last one counts."""
        values: dict[str, Any] = {}
        for file in self.files:
            self._merge(values, file.values, ())
        return values

    def _merge(
        self, values: dict[str, Any], more_values: Mapping[str, Any], pointer: tuple[str, ...]
    ) -> None:
        for key, value in more_values.items():
            existing_value, key_pointer = values.get(key), (*pointer, key)
            if isinstance(value, Mapping):
                values[key] = existing_value = (
                    dict(existing_value) if isinstance(existing_value, dict) else {}
                )
                self._merge(existing_value, value, key_pointer)
            elif isinstance(value, list) and isinstance(existing_value, list):
                values[key] = self.combine(key_pointer, existing_value, value)
            else:
                values[key] = value

    def each(self, *keys: str) -> Iterator[Any]:
        """The values at a path of keys in the files that have one, the least important first."""
        for file in self.files:
            value: Any = file.values
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                yield value

    def place(self, *keys: str) -> str:
        """` (PATH:LINE)` of a path of keys in the most important file that has a value there, else empty."""
        for file in reversed(self.files):
            value: Any = file.values
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                return self.place_in(file, keys)
        return ""

    def place_in(self, file: AssistantSettingsFile, pointer: Sequence[str | int]) -> str:
        """` (PATH:LINE)` of a value of a file, without the line where that is not known."""
        path = short_path(file.path, self.where.folder, self.where.user_home)
        if file.document is None:
            return f" ({path})"
        try:
            start = file.document.span(tuple(pointer)).start
        except KeyError:  # the program takes the value over from another name
            return f" ({path})"
        return f" ({path}:{LineIndex(file.document.text).position(start)[0] + 1})"

    def value(self, *keys: str) -> Any:
        """The value at a path of keys in the most important file that has one; None if none has."""
        values = list(self.each(*keys))
        return values[-1] if values else None


class Cut(msgspec.Struct, frozen=True):
    """The end of a file that is not read: its lines, from 1, and bytes. The first may be read in part."""

    first_line: int
    last_line: int
    bytes: int
    reason: str


class SentPart(msgspec.Struct, frozen=True):
    """A stretch of a block. `content` is the range of the file's text within `text`; the rest surrounds it.

    `path` is None for text of the assistant. `importer` is the file that names this one.
    """

    text: str
    scope: Scope
    path: str | None = None
    content: Span = Span(0, 0)
    importer: str | None = None
    cut: Cut | None = None
    tokens: int = 0


class SentBlock(msgspec.Struct, frozen=True):
    """One text of a request. Its parts follow each other without a gap.

    `complete` is false if the assistant adds text of its own between them.
    """

    kind: Kind
    place: Place
    parts: tuple[SentPart, ...]
    complete: bool = True

    @property
    def text(self) -> str:
        """The exact text."""
        return "".join(part.text for part in self.parts)


class LaterFile(msgspec.Struct, frozen=True):
    """A file that is sent only when something happens: `when` continues "is sent"."""

    path: str
    scope: Scope
    when: str
    tokens: int = 0


class IgnoredFile(msgspec.Struct, frozen=True):
    """A file that the assistant does not send; the reason is a sentence.

    `is_problem` is false where nothing is amiss: its text is sent from another file, say.
    """

    path: str
    reason: str
    is_problem: bool = True


class Sent(msgspec.Struct, frozen=True):
    """What an assistant does with a folder's files, before tokens are counted.

    Files with `nested_names` below the folder are sent after the first read beside or below them.
    `explain_unread` says of another path why it is not sent, if the assistant has a reason of its own. With
    `changes_own` a setting takes something away from the assistant's own prompt and tools, or adds to them.
    """

    blocks: tuple[SentBlock, ...]
    later: tuple[LaterFile, ...] = ()
    ignored: tuple[IgnoredFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    nested_names: tuple[str, ...] = ()
    explain_unread: Callable[[str], IgnoredFile | None] = lambda _: None
    changes_own: bool = False


class AssistantServer(msgspec.Struct, frozen=True):
    """An MCP server in the settings of an assistant; `reason` is a sentence where it does not just start."""

    name: str
    path: str
    scope: Scope
    start: Start = "starts"
    reason: str | None = None


class InstructionReader(msgspec.Struct, frozen=True, kw_only=True):
    """How the instruction files of an assistant are read.

    `read` says what it sends of a folder's files. `list_user_files` are the paths of the user's own; one that
    ends with a separator stands for the Markdown files below it. `list_settings` are the paths of the user's
    settings. A path with `own_place` in it is only for this assistant, which `own_files` says in words.
    """

    assistant: Assistant
    read: Callable[[Disk, AssistantSettings], Sent]
    own_place: str
    own_files: str
    list_user_files: Callable[[Surroundings], Iterable[str]] = lambda _: ()
    list_settings: Callable[[Surroundings], Iterable[str]] = lambda _: ()


class ServerReader(msgspec.Struct, frozen=True):
    """How the MCP servers of an assistant's settings are read, and what it does with them.

    Of several servers of a name, the first that `read` gives counts; `why` says which that is where the
    others count for nothing.
    """

    rules: tuple[Rule, ...]
    read: Callable[[Disk, AssistantSettings], Iterator[AssistantServer]]
    why: str = ""


class Profile(msgspec.Struct, frozen=True):
    """What an assistant reads in a user's folder. `total` is the sum of the parts; `exact` as of the counter.

    `own_tokens` is what its own prompt and tools cost beside them; None where that is not known, where a
    setting changes it, or where the assistant does not start. `texts` are the texts that the spans of the
    problems are in. Of `servers` the tools are not known.
    """

    assistant: Assistant
    folder: str
    user_home: str
    blocks: tuple[SentBlock, ...]
    later: tuple[LaterFile, ...]
    ignored: tuple[IgnoredFile, ...]
    problems: tuple[Problem, ...]
    texts: Mapping[str, str]
    total: int
    exact: bool
    counter: str
    servers: tuple[AssistantServer, ...] = ()
    own_tokens: int | None = None

    @property
    def parts(self) -> tuple[SentPart, ...]:
        """All parts, in the order of the request."""
        return tuple(part for block in self.blocks for part in block.parts)

    @property
    def request_tokens(self) -> int | None:
        """What each request has besides the conversation; None where the assistant's own part is unknown."""
        return None if self.own_tokens is None else self.own_tokens + self.total

    def shorten(self, path: str) -> str:
        """A path from the folder, from the user's home with `~`, or from a directory above with `..`."""
        return short_path(path, self.folder, self.user_home)


def short_path(path: str, folder: str, user_home: str) -> str:
    """A path from the folder, from the user's home with `~`, or from a directory above with `..`."""
    for directory, prefix in ((folder, ""), (user_home, f"~{os.sep}")):
        if path.startswith(directory + os.sep):
            return prefix + path[len(directory) + 1 :]
    parent = os.path.dirname(path)
    is_above = folder.startswith(parent.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, folder) if is_above else path
