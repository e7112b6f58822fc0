"""Which files of other assistants hold sessions, with those of sub-agents.

1. Claude Code writes sub-agents beside their session, or to `<session>/subagents/` and directories below.
2. A directory in a project's place may be a link, as the user may have moved his files; below it, links to
   directories are not followed, so there are no loops.
"""

from collections.abc import Iterator
from os.path import basename, join

import msgspec

from nexus_context import files
from nexus_context.assistant_sessions import PROGRAMS, claude_code, opencode
from nexus_context.assistant_sessions.model import Place

DEEPEST = 4  # directories below `subagents`
_SUFFIX = ".jsonl"
_AGENT = "agent-"


class TranscriptFile(msgspec.Struct, frozen=True):
    """A file with a session, or opencode's database. `parent`: of a sub-agent, the id of its session."""

    assistant: str
    path: str
    stamp: tuple[int, ...]
    parent: str | None = None

    @property
    def is_agent(self) -> bool:
        """Whether it is a sub-agent's of Claude Code."""
        return self.assistant == claude_code.NAME and basename(self.path).startswith(_AGENT)

    @property
    def session_id(self) -> str:
        """The name that the program gave the file's session, as far as the path says it."""
        return basename(self.path).removesuffix(_SUFFIX)


def list_files(place: Place, folder: str | None, assistant: str | None = None) -> Iterator[TranscriptFile]:
    """The files of one assistant, or of all. Those of other folders than `folder` may be among them."""
    for name, program in PROGRAMS.items():
        if assistant not in (None, name):
            continue
        if name == claude_code.NAME:
            yield from _claude_files(place, folder)
            continue
        for source in program.list_sources(place, folder):
            file = file_at(source.path, name)
            if file is not None:
                yield file


def file_at(path: str, assistant: str) -> TranscriptFile | None:
    """The file at a path; None if there is none."""
    stamp = files.file_stamp(path)
    if stamp is None:
        return None
    if assistant == opencode.NAME:
        # without the time of its last change of state: to open a log changes that
        stamp = (*stamp[:4], *(files.file_stamp(f"{path}-wal") or ())[:4])
    return TranscriptFile(assistant, path, stamp, _parent_of(path))


def agents_of(path: str) -> Iterator[TranscriptFile]:
    """The files of the sub-agents of a session of Claude Code."""
    session = path.removesuffix(_SUFFIX)
    yield from _agents(join(session, "subagents"), basename(session), DEEPEST)


def _claude_files(place: Place, folder: str | None) -> Iterator[TranscriptFile]:
    for path, kind in claude_code.entries(place, folder):
        if kind == "directory":
            yield from _agents(join(path, "subagents"), basename(path), DEEPEST)
        elif path.endswith(_SUFFIX) and (stamp := files.file_stamp(path)) is not None:
            yield TranscriptFile(claude_code.NAME, path, stamp)


def _agents(directory: str, session: str, depth: int) -> Iterator[TranscriptFile]:
    for name, kind in files.list_directory(directory) or ():
        path = join(directory, name)
        if kind == "directory":
            if depth:
                yield from _agents(path, session, depth - 1)
        elif name.startswith(_AGENT) and name.endswith(_SUFFIX):
            stamp = files.file_stamp(path)
            if stamp is not None:
                yield TranscriptFile(claude_code.NAME, path, stamp, session)


def _parent_of(path: str) -> str | None:
    """The session of a sub-agent's file, by its directory."""
    above, marker, _ = path.rpartition("/subagents/")
    return basename(above) if marker else None
