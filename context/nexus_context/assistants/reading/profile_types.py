"""Defines a profile: what an assistant sends of a folder's files, what it leaves out, and why."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
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
    """One thing that an assistant does with files. `source` is an address, or the version that was seen to do
    it.
    """

    text: str
    source: str


class Assistant(msgspec.Struct, frozen=True):
    """A program, and which of its versions was examined. `model` is the model that tokens are counted for.

    For a program that is known by its documentation, `version` is the month of that. `names` are the
    instruction files that it looks for in a project, `reads` says the same in few words. `limit` is how many
    bytes of a project's instructions it reads at most. `own_tokens` is what its own prompt and tools cost in
    a request from an empty repository, at a terminal, by the counter of `model`. It is None where no request
    was seen.
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
    """Where an assistant runs: the folder with links resolved, the user's home, and the environment
    variables.

    With `trusted`, the user trusts the folder, whatever the settings say.
    """

    folder: str
    user_home: str
    environ: Mapping[str, str]
    trusted: bool = False


class AssistantSettingsFile(msgspec.Struct, frozen=True):
    """A settings file. `values` are what its program takes of it, empty if the program refuses the file.

    `document` has the places of the values; it is None where no reader needs them. `written_keys` maps a
    setting to the key of the file that decides it, where that has another name.
    """

    path: str
    scope: Scope
    values: Mapping[str, Any]
    document: JsonDocument | None = None
    written_keys: Mapping[str, str] = MappingProxyType({})


Keys = tuple[str, ...]
CombineLists = Callable[[Keys, list[Any], list[Any]], list[Any]]
"""Makes one list at a path of keys from those of two files, the less important first."""


def replace_list(_: Keys, less: list[Any], more: list[Any]) -> list[Any]:  # noqa: ARG001
    """Return `more`, the list of the more important file. The other list does not count."""
    return more


def join_lists(_: Keys, less: list[Any], more: list[Any]) -> list[Any]:
    """Return the items of both lists, each once."""
    return [*less, *(item for item in more if item not in less)]


class AssistantSettings(msgspec.Struct, frozen=True):
    """The settings of a program in a folder. They are read before anything else.

    `where` has the environment with the variables that the settings add. `files` are sorted, the least
    important first. `problems` are what the program refuses or ignores in the files; `stop` is the problem
    for which it does not start. `texts` maps the path of each problem to the text that its span is in.
    `combine` makes one list of the lists that two files have under the same keys.
    """

    where: Surroundings
    files: tuple[AssistantSettingsFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    stop: Problem | None = None
    texts: Mapping[str, str] = {}
    combine: CombineLists = replace_list

    def merged(self) -> dict[str, Any]:
        """Merge the values of all files: objects merge, lists are combined by `combine`, and of other values
        the last counts.
        """
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
        """Yield the value at a path of keys in each file that has one, the least important file first."""
        for file in self.files:
            value: Any = file.values
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                yield value

    def place(self, *keys: str) -> str:
        """Return ` (PATH:LINE)` of the value at a path of keys in the most important file that has one, else
        an empty text.
        """
        for file in reversed(self.files):
            value: Any = file.values
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                return self.place_in(file, keys)
        return ""

    def place_in(self, file: AssistantSettingsFile, pointer: Sequence[str | int]) -> str:
        """Return ` (PATH:LINE)` of a value in a file, or ` (PATH)` if the line is not known."""
        path = short_path(file.path, self.where.folder, self.where.user_home)
        if file.document is None:
            return f" ({path})"
        try:
            start = file.document.span(tuple(pointer)).start
        except KeyError:  # the program takes the value over from another name
            return f" ({path})"
        return f" ({path}:{LineIndex(file.document.text).position(start)[0] + 1})"

    def value(self, *keys: str) -> Any:
        """Return the value at a path of keys in the most important file that has one, else None."""
        values = list(self.each(*keys))
        return values[-1] if values else None


class Cut(msgspec.Struct, frozen=True):
    """The end of a file that is not read: its lines, from 1, and how many bytes it has. The first of its
    lines may be read in part.
    """

    first_line: int
    last_line: int
    bytes: int
    reason: str


class SentPart(msgspec.Struct, frozen=True):
    """A stretch of a block. `content` is the range in `text` that comes from the file at `path`; the
    assistant wrote the rest.

    `path` is None if all of the text is the assistant's own. `importer` is the file that imports this one.
    """

    text: str
    scope: Scope
    path: str | None = None
    content: Span = Span(0, 0)
    importer: str | None = None
    cut: Cut | None = None
    tokens: int = 0


class SentBlock(msgspec.Struct, frozen=True):
    """One text of a request. The parts follow each other without a gap.

    `complete` is false if the assistant adds text of its own between the parts.
    """

    kind: Kind
    place: Place
    parts: tuple[SentPart, ...]
    complete: bool = True

    @property
    def text(self) -> str:
        """The text as it is sent."""
        return "".join(part.text for part in self.parts)


class LaterFile(msgspec.Struct, frozen=True):
    """A file that is sent only when something happens. `when` says what: it continues a sentence "… is
    sent".
    """

    path: str
    scope: Scope
    when: str
    tokens: int = 0


class IgnoredFile(msgspec.Struct, frozen=True):
    """A file that the assistant does not send. `reason` is a sentence.

    `is_problem` is false where nothing is amiss, for example because another file has the same text.
    """

    path: str
    reason: str
    is_problem: bool = True


class Sent(msgspec.Struct, frozen=True):
    """What an assistant does with a folder's files, before tokens are counted.

    Files named `nested_names` below the folder are sent after the first read beside or below them.
    `explain_unread` returns why the file at another path is not sent, None if the assistant has no reason of
    its own. `changes_own` is true if a setting changes the assistant's own prompt and tools.
    """

    blocks: tuple[SentBlock, ...]
    later: tuple[LaterFile, ...] = ()
    ignored: tuple[IgnoredFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    nested_names: tuple[str, ...] = ()
    explain_unread: Callable[[str], IgnoredFile | None] = lambda _: None
    changes_own: bool = False


class AssistantServer(msgspec.Struct, frozen=True):
    """An MCP server in the settings of an assistant. `reason` is a sentence that says why the server does not
    simply start, else None.
    """

    name: str
    path: str
    scope: Scope
    start: Start = "starts"
    reason: str | None = None


class InstructionReader(msgspec.Struct, frozen=True, kw_only=True):
    """Says how the instruction files of an assistant are read.

    `read` computes what the assistant sends of a folder's files. `list_user_files` lists the paths of the
    user's own files; a path that ends with a separator stands for the Markdown files below it.
    `list_settings` lists the paths of the user's settings. A path that contains `own_place` is for this
    assistant alone; `own_files` names such files in words.
    """

    assistant: Assistant
    read: Callable[[Disk, AssistantSettings], Sent]
    own_place: str
    own_files: str
    list_user_files: Callable[[Surroundings], Iterable[str]] = lambda _: ()
    list_settings: Callable[[Surroundings], Iterable[str]] = lambda _: ()


class ServerReader(msgspec.Struct, frozen=True):
    """Says how the MCP servers in an assistant's settings are read, and what the assistant does with them.

    Of several servers with one name, the first that `read` yields counts. `why` is a sentence that says which
    one that is, empty if the others count, too.
    """

    rules: tuple[Rule, ...]
    read: Callable[[Disk, AssistantSettings], Iterator[AssistantServer]]
    why: str = ""


class Profile(msgspec.Struct, frozen=True):
    """What an assistant reads in a user's folder. `total` is the sum of the tokens of all parts; `exact` says
    whether `counter` counts exactly.

    `own_tokens` are the tokens of the assistant's own prompt and tools. They are None if they are not known,
    if a setting changes them, or if the assistant does not start. `texts` maps paths to the texts that the
    spans of the problems are in. The tools of `servers` are not known.
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
        """All parts in the order in which the request has them."""
        return tuple(part for block in self.blocks for part in block.parts)

    @property
    def request_tokens(self) -> int | None:
        """The tokens of each request besides the conversation. None if the assistant's own part is not
        known.
        """
        return None if self.own_tokens is None else self.own_tokens + self.total

    def shorten(self, path: str) -> str:
        """Return a path as people read it: relative to the folder, or from the user's home with `~`, or with
        `..`.
        """
        return short_path(path, self.folder, self.user_home)


def short_path(path: str, folder: str, user_home: str) -> str:
    """Return a path as people read it: relative to the folder, or from the user's home with `~`. In a
    directory above the folder it begins with `..`; elsewhere it stays as it is.
    """
    for directory, prefix in ((folder, ""), (user_home, f"~{os.sep}")):
        if path.startswith(directory + os.sep):
            return prefix + path[len(directory) + 1 :]
    parent = os.path.dirname(path)
    is_above = folder.startswith(parent.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, folder) if is_above else path
