"""Store which instruction files other assistants said they loaded, for the last session in each folder.

1. They are kept in `loaded.json` in the state directory, for MOST_FOLDERS folders and MOST_FILES files of
   each.
2. A session's file counts once, by path. A later event about the file replaces the earlier one.
3. A file that was changed after the session is not compared, since its new text says nothing about that
   session.
"""

import os
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from nexus_context.disk import files
from nexus_context.disk.user_state import state_directory
from nexus_context.text.decoding import decode_as
from nexus_daemon.process.state_files import write_file

NAME = "loaded.json"
MOST_FOLDERS = 200
MOST_FILES = 300
_LARGEST = 32 << 20  # bytes
AT_START = ("session_start", "include", "compact")
"""The reasons of files that are in the first request. Files with other reasons are loaded later."""
_MTIME = 3  # of a stamp, in nanoseconds


class LoadedFile(msgspec.Struct, frozen=True):
    """A file that an assistant loaded, and the reason in the assistant's own words."""

    path: str
    reason: str
    type: str = ""
    parent: str | None = None
    trigger: str | None = None


class LoadedSession(msgspec.Struct, frozen=True):
    """The files that the last session in a folder loaded.

    `at` is when the first of them was loaded, in seconds since 1970.
    """

    assistant: str
    folder: str
    session: str
    at: float
    files: tuple[LoadedFile, ...]


class Comparison(msgspec.Struct, frozen=True):
    """A profile compared with a session: the files that only one of them has.

    `unexpected` are files that only the session loaded, `absent` the paths that only the profile names.
    """

    session: LoadedSession
    unexpected: tuple[LoadedFile, ...]
    absent: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not (self.unexpected or self.absent)


def store_path(environ: Mapping[str, str]) -> str:
    return os.path.join(state_directory(environ), NAME)


def read_sessions(environ: Mapping[str, str]) -> list[LoadedSession]:
    """Read the stored sessions, the latest last. Empty if the file is missing or cannot be read."""
    file_read = files.read_bytes(store_path(environ), limit=_LARGEST)
    try:
        return decode_as(file_read.data or b"[]", list[LoadedSession])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def find_session(environ: Mapping[str, str], assistant: str, folder: str) -> LoadedSession | None:
    """Return the last session of an assistant in a folder, which is found by its real path.

    None if there is none.
    """
    real = files.real_path(folder)
    sessions = read_sessions(environ)
    return next(
        (
            session
            for session in reversed(sessions)
            if (session.assistant, session.folder) == (assistant, real)
        ),
        None,
    )


def add_files(environ: Mapping[str, str], new_sessions: Iterable[LoadedSession]) -> None:
    """Store the files that sessions loaded. OSError if they cannot be written."""
    stored_sessions = {(session.assistant, session.folder): session for session in read_sessions(environ)}
    for new_session in new_sessions:
        stored_session = stored_sessions.pop((new_session.assistant, new_session.folder), None)
        if stored_session is not None and stored_session.session == new_session.session:
            new_paths = {file.path for file in new_session.files}
            earlier_files = tuple(file for file in stored_session.files if file.path not in new_paths)
            new_session = replace(
                new_session, at=stored_session.at, files=(*earlier_files, *new_session.files)
            )
        stored_sessions[new_session.assistant, new_session.folder] = replace(
            new_session, files=new_session.files[-MOST_FILES:]
        )
    write_file(store_path(environ), msgspec.json.encode(list(stored_sessions.values())[-MOST_FOLDERS:]))


def compare(session: LoadedSession, paths: Iterable[str]) -> Comparison:
    """Compare the files that a session loaded at its start with `paths`, the files of a profile's first
    request.
    """
    at_start = {files.real_path(file.path): file for file in session.files if file.reason in AT_START}
    expected = {files.real_path(path) for path in paths}
    unexpected = [
        file for path, file in at_start.items() if path not in expected and _is_older(path, session)
    ]
    absent = [path for path in sorted(expected) if path not in at_start and _is_older(path, session)]
    return Comparison(session, tuple(unexpected), tuple(absent))


def _is_older(path: str, session: LoadedSession) -> bool:
    """Whether a file is there and has not been written since the session began."""
    stamp = files.file_stamp(path)
    return stamp is not None and stamp[_MTIME] / 1e9 < session.at
