"""Finds the files of other assistants that hold sessions, and those of sub-agents."""

from collections.abc import Iterator
from os.path import basename
from typing import Any

import msgspec

from nexus_context.assistants.programs import PROGRAMS, readable_programs
from nexus_context.assistants.sessions.record_format import RecordFormat
from nexus_context.assistants.sessions.session_types import Folders, Place
from nexus_context.disk import files

_SUFFIX = ".jsonl"


class TranscriptFile(msgspec.Struct, frozen=True):
    """A file with a session, or opencode's database. `parent` is the id of the session whose sub-agent wrote
    the file, else None.
    """

    assistant: str
    path: str
    stamp: tuple[int, ...]
    parent: str | None = None

    @property
    def format(self) -> RecordFormat[Any]:
        """The format of the records in the file. A database has none."""
        return PROGRAMS[self.assistant].sessions.record_format()

    @property
    def is_database(self) -> bool:
        """Whether the file has all sessions of its program."""
        return PROGRAMS[self.assistant].sessions.shares_file

    @property
    def is_agent(self) -> bool:
        """Whether the file is a sub-agent's own, beside the file of its session."""
        return PROGRAMS[self.assistant].sessions.is_agent(self.path)

    @property
    def session_id(self) -> str:
        """The id of the file's session, as far as the file name tells it."""
        return basename(self.path).removesuffix(".zst").removesuffix(_SUFFIX)


def list_files(place: Place, folder: Folders, assistant: str | None = None) -> Iterator[TranscriptFile]:
    """Yield the files of one assistant, or of all if `assistant` is None. Files of sessions in other folders
    may be among them.

    There are none if the user has turned reading them off.
    """
    for name, program in readable_programs(place).items():
        if assistant not in (None, name):
            continue
        for path in program.sessions.list_files(place, folder):
            file = file_at(path, name)
            if file is not None:
                yield file


def file_at(path: str, assistant: str) -> TranscriptFile | None:
    """Return the file at a path, None if there is none."""
    stamp = files.file_stamp(path)
    if stamp is None:
        return None
    if PROGRAMS[assistant].sessions.shares_file:
        # without the time of its last change of state: to open a log changes that
        stamp = (*stamp[:4], *(files.file_stamp(f"{path}-wal") or ())[:4])
    session_path, marker, _ = path.rpartition("/subagents/")
    return TranscriptFile(assistant, path, stamp, parent=basename(session_path) if marker else None)


def agents_of(path: str, assistant: str) -> Iterator[TranscriptFile]:
    """Yield the files of a session's sub-agents. `path` is the session's file."""
    for agent in PROGRAMS[assistant].sessions.list_agents(path):
        file = file_at(agent, assistant)
        if file is not None:
            yield file
