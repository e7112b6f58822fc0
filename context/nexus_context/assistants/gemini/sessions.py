"""Tells Nexus how to find, read and follow the sessions of Gemini CLI."""

from typing import TYPE_CHECKING, Any

from nexus_context.assistants.gemini import session_files
from nexus_context.assistants.gemini.records import GeminiRecord
from nexus_context.assistants.gemini.steps import GeminiSteps
from nexus_context.assistants.sessions.followed import FollowedFile
from nexus_context.assistants.sessions.program import ProgramSessions

if TYPE_CHECKING:
    from nexus_context.assistants.sessions.record_format import RecordFormat


def _record_format() -> "RecordFormat[Any]":
    from nexus_context.assistants.gemini.record_format import FORMAT  # reports need none

    return FORMAT


SESSIONS = ProgramSessions(
    list_sources=session_files.sources,
    root_of=session_files.root_of,
    watched=session_files.watched,
    follow=lambda session: FollowedFile(session.path, GeminiRecord, GeminiSteps),
    list_files=session_files.list_files,
    record_format=_record_format,
)
