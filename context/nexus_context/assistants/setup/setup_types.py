"""What setup writes into the settings of another program, and the record that undoes it."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

Syntax = Literal["json", "commented", "jsonc", "toml", "text"]
"""JSON; JSON with comments; also with trailing commas; TOML; or a file that is ours alone.

What its program does not load can be edited all the same."""

Scope = Literal["user", "project"]
Path = tuple[str, ...]


class SettingsEntry(msgspec.Struct, frozen=True):
    """One entry: a member `key` of the object or table at `container`, or else an item of its list.

    In a file of the syntax `text`, `value` is all of its text.
    """

    container: Path
    key: str | None
    value: Any

    @property
    def title(self) -> str:
        """The entry as a person would name it."""
        return ".".join((*self.container, *(() if self.key is None else (self.key,)))) or "the file"


class SettingsFile(msgspec.Struct, frozen=True):
    """A file of another program, by its absolute path, and the entries that it is to have."""

    path: str
    syntax: Syntax
    entries: tuple[SettingsEntry, ...]


class SetupChoices(msgspec.Struct, frozen=True):
    """What the user chose. `command` starts Nexus: its words. `memory`: prompts get memory and knowledge."""

    command: tuple[str, ...]
    scope: Scope = "user"
    memory: bool = False


class SetupPlace(msgspec.Struct, frozen=True):
    """The user's home, the project's folder and the environment variables."""

    home: str
    folder: str
    environ: Mapping[str, str]


class ProgramSetup(msgspec.Struct, frozen=True):
    """The setup of a program: the files that it writes, and its advice afterwards.

    `prompt_event` is the event before a prompt is sent, where its hook may add to the context, if it has one.
    """

    list_files: Callable[[SetupChoices, SetupPlace], tuple[SettingsFile, ...]]
    prompt_event: str | None = None
    advice: str | None = None


class Insertion(msgspec.Struct, frozen=True):
    """Text that was put into a file, at an offset in characters of the new text."""

    offset: int
    text: str


class FileRecord(msgspec.Struct, frozen=True):
    """What setup wrote into one file.

    `insertions` are in the order in which they were made. `containers` are the objects and lists that were
    created for the entries, the innermost first. `directories` were created for the file.
    """

    path: str
    syntax: Syntax
    entries: tuple[SettingsEntry, ...]
    insertions: tuple[Insertion, ...]
    containers: tuple[Path, ...] = ()
    is_new: bool = False
    directories: tuple[str, ...] = ()


class EditedText(msgspec.Struct, frozen=True):
    """The new text of a file, what was put into it, and the containers that were created."""

    text: str
    insertions: tuple[Insertion, ...]
    containers: tuple[Path, ...]


class SettingsError(Exception):
    """The settings cannot be changed; the text says where and what to do. Nothing was written."""
