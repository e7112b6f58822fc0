"""Tells Nexus how to find, read and follow the sessions of Codex."""

from collections.abc import Iterable, Iterator
from os.path import join
from typing import TYPE_CHECKING, Any

from nexus_context.assistants.codex import session_files
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.codex.steps import CodexSteps
from nexus_context.assistants.sessions.followed import FollowedFile
from nexus_context.assistants.sessions.program import ProgramSessions
from nexus_context.assistants.sessions.session_types import AssistantSession, Folders, Place

if TYPE_CHECKING:
    from nexus_context.assistants.sessions.record_format import RecordFormat


def _record_format() -> "RecordFormat[Any]":
    from nexus_context.assistants.codex.record_format import FORMAT  # reports need none

    return FORMAT


def _list_instructions(folder: str) -> Iterable[str]:
    """The files that Codex calls by their folder."""
    return (join(folder, name) for name in ("AGENTS.override.md", "AGENTS.md"))


def _follow(session: AssistantSession) -> FollowedFile[CodexRecord]:
    def steps() -> CodexSteps:
        try:
            return CodexSteps(session_files.base_of(session))
        except OSError:  # it was removed
            return CodexSteps()

    return FollowedFile(session.path, CodexRecord, steps, list_instructions=_list_instructions)


def _list_files(place: Place, folder: Folders) -> Iterator[str]:
    return (source.path for source in session_files.sources(place, folder))


SESSIONS = ProgramSessions(
    list_sources=session_files.sources,
    root_of=session_files.root_of,
    watched=session_files.watched,
    follow=_follow,
    list_files=_list_files,
    record_format=_record_format,
)
