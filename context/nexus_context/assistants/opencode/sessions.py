"""Tells Nexus how to find, read and follow the sessions of opencode."""

from collections.abc import Iterator

from nexus_context.assistants.opencode import session_files
from nexus_context.assistants.opencode.database import FollowedDatabase
from nexus_context.assistants.sessions.program import ProgramSessions
from nexus_context.assistants.sessions.session_types import Folders, Place


def _list_files(place: Place, folder: Folders) -> Iterator[str]:
    return (source.path for source in session_files.sources(place, folder))


SESSIONS = ProgramSessions(
    list_sources=session_files.sources,
    root_of=session_files.root_of,
    watched=session_files.watched,
    follow=lambda session: FollowedDatabase(session.path, session.id),
    list_files=_list_files,
    shares_file=True,
)
