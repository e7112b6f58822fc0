"""Finds all sessions of other assistants that work in a folder."""

from collections.abc import Collection
from threading import Lock

import apsw
import msgspec

from nexus_context.assistants.programs import WITH_SESSIONS, readable_programs
from nexus_context.assistants.sessions.session_types import (
    AssistantSession,
    Folders,
    Place,
    SessionSource,
    larger_window,
)
from nexus_context.tokens.models import get_model_limits

MOST_REMEMBERED = 50_000


class AssistantSessions(msgspec.Struct, frozen=True):
    """The sessions that were found, the one that changed last first. `failures` has the path of each file
    that could not be read, with the reason.

    `notice` is a sentence for people that says why nothing was read, if a setting forbids it.
    """

    sessions: tuple[AssistantSession, ...]
    failures: tuple[tuple[str, str], ...]
    notice: str | None = None


_cached_sessions: dict[tuple[str, Folders], tuple[tuple[int, ...], list[AssistantSession]]] = {}
_lock = Lock()


def find_sessions(
    place: Place, folder: Folders = None, *, assistants: Collection[str] = WITH_SESSIONS
) -> AssistantSessions:
    """Find the sessions in some folders, or everywhere if `folder` is None. There are none if the user has
    turned that off.

    A file that has not changed since the last call is not read again by this process.
    """
    sessions: list[AssistantSession] = []
    failures: list[tuple[str, str]] = []
    programs = readable_programs(place)
    for name in filter(programs.__contains__, assistants):
        program, program_sessions = programs[name].sessions, list[AssistantSession]()
        for source in program.list_sources(place, folder):
            try:
                program_sessions += _read(source, folder)
            except (apsw.Error, OSError) as error:
                failures.append((source.path, getattr(error, "strerror", None) or str(error)))
        sessions += map(_with_window, program.link_forks(program_sessions))
    by_id = {  # a file that was copied to another directory has the same session
        (session.assistant, session.id): session
        for session in sorted(sessions, key=lambda session: session.changed)
    }
    return AssistantSessions(
        tuple(sorted(by_id.values(), key=lambda session: session.changed, reverse=True)),
        tuple(failures),
        None if place.reads_conversations else place.not_read,
    )


def _read(source: SessionSource, folder: Folders) -> list[AssistantSession]:
    key = (source.path, folder)
    cached = _cached_sessions.get(key)
    if cached is not None and cached[0] == source.stamp:
        return cached[1]
    sessions = source.read()
    with _lock:
        if len(_cached_sessions) >= MOST_REMEMBERED:
            _cached_sessions.clear()
        _cached_sessions[key] = (source.stamp, sessions)
    return sessions


def _with_window(session: AssistantSession) -> AssistantSession:
    """The session with the window of its model, where its program does not state one."""
    if session.window is not None or session.model is None:
        return session
    limits = get_model_limits(session.model)
    sent_tokens = 0 if session.last is None else session.last.sent
    window = larger_window(limits.context_window, sent_tokens)
    return msgspec.structs.replace(session, window=window) if limits.known else session
