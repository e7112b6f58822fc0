"""Defines what setup writes into the settings of another program, and the record that undoes it."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

Syntax = Literal["json", "commented", "jsonc", "toml", "text"]
"""JSON; JSON with comments; also with trailing commas; TOML; or a file that is ours alone.

What its program does not load can be edited all the same."""

Scope = Literal["user", "project"]
Path = tuple[str, ...]


class SettingsEntry(msgspec.Struct, frozen=True):
    """One entry of a settings file: the member `key` of the object or table at `container`. If `key` is None,
    it is an item of the list there.

    In a file of the syntax `text`, `value` is the whole text of the file.
    """

    container: Path
    key: str | None
    value: Any

    @property
    def title(self) -> str:
        """The name of the entry for people."""
        return ".".join((*self.container, *(() if self.key is None else (self.key,)))) or "the file"


class SettingsFile(msgspec.Struct, frozen=True):
    """A file of another program, by its absolute path, and the entries that setup gives it."""

    path: str
    syntax: Syntax
    entries: tuple[SettingsEntry, ...]


class SetupChoices(msgspec.Struct, frozen=True):
    """What the user chose. `command` are the words that start Nexus; with `memory`, prompts get memory and
    knowledge.
    """

    command: tuple[str, ...]
    scope: Scope = "user"
    memory: bool = False


class SetupPlace(msgspec.Struct, frozen=True):
    """Where setup runs: the user's home, the project's folder and the environment variables."""

    home: str
    folder: str
    environ: Mapping[str, str]


class ProgramSetup(msgspec.Struct, frozen=True):
    """Says what setup writes for a program, what that does, and what it advises the user afterwards.

    `prompt_event` is the event before a prompt is sent whose hook may add to the context, None if the program
    has none.
    """

    list_files: Callable[[SetupChoices, SetupPlace], tuple[SettingsFile, ...]]
    effect: str
    prompt_event: str | None = None
    advice: str | None = None


class Insertion(msgspec.Struct, frozen=True):
    """A text that setup put into a file. `offset` is in characters of the new text."""

    offset: int
    text: str


class FileRecord(msgspec.Struct, frozen=True):
    """What setup wrote into one file; undo needs it.

    `insertions` are in the order in which they were made. `containers` are the objects and lists that were
    created for the entries, the innermost first. `is_new` is true if setup created the file, and
    `directories` are those that were created for it.
    """

    path: str
    syntax: Syntax
    entries: tuple[SettingsEntry, ...]
    insertions: tuple[Insertion, ...]
    containers: tuple[Path, ...] = ()
    is_new: bool = False
    directories: tuple[str, ...] = ()


class EditedText(msgspec.Struct, frozen=True):
    """The new text of a file, the texts that were put into it, and the containers that were created."""

    text: str
    insertions: tuple[Insertion, ...]
    containers: tuple[Path, ...]


class SettingsError(Exception):
    """The settings cannot be changed, and nothing was written. The text says what is wrong, where, and what
    to do.
    """
