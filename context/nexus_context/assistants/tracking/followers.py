"""Keeps the sessions that are followed now, for all who want their reports.

At most MOST_FOLLOWED stay in memory, the ones that were wanted last: each holds the texts since its last
compaction.
"""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from nexus_context.assistants.reading.record_values import seconds
from nexus_context.assistants.sessions.report import SessionReport
from nexus_context.assistants.sessions.session_types import AssistantSession, Place
from nexus_context.assistants.tracking.follow import Files, SessionFollower

MOST_FOLLOWED = 6
LIVE_S = 900.0
"""A session is live if it changed in the last quarter of an hour: a turn may take long to be written."""

_Key = tuple[str, str, str]


class SessionFollowers:
    """Keeps a follower for each session that was asked for. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._followers: OrderedDict[_Key, tuple[SessionFollower, Lock]] = OrderedDict()

    def report(
        self, session: AssistantSession, place: Place, sessions: Sequence[AssistantSession]
    ) -> SessionReport:
        """Return the report of a session as it is now. Those of `sessions` whose parent it is are its
        sub-agents.

        Raise apsw.Error if the session is in a database that cannot be read.
        """
        follower, lock = self._follower(session, place)
        with lock:
            follower.session = session
            follower.agents = tuple(
                agent_session for agent_session in sessions if agent_session.parent == session.id
            )
            follower.advance()
            return follower.report()

    def paths(self, session: AssistantSession, place: Place) -> tuple[str, ...]:
        """Return the files to watch for a session (`SessionFollower.paths`)."""
        return self._follower(session, place)[0].paths

    def _follower(self, session: AssistantSession, place: Place) -> tuple[SessionFollower, Lock]:
        key = session.assistant, session.path, session.id
        with self._lock:
            entry = self._followers.pop(key, None)
            if entry is None:
                entry = (
                    SessionFollower(
                        session, list_files=lambda followed_session: profile_files(followed_session, place)
                    ),
                    Lock(),
                )
            self._followers[key] = entry
            while len(self._followers) > MOST_FOLLOWED:
                self._followers.popitem(last=False)
        return entry

    def close(self) -> None:
        """Stop following all sessions."""
        with self._lock:
            self._followers.clear()


def is_live(session: AssistantSession, now: float) -> bool:
    """Whether a session changed lately. `now` is in seconds since 1970."""
    return now <= live_until(session)


def live_until(session: AssistantSession) -> float:
    """Return until when a session counts as live if it does not change again, in seconds since 1970."""
    return seconds(session.changed) + LIVE_S


def profile_files(session: AssistantSession, place: Place) -> Files:
    """List the instruction files that the program of a session reads in its folder now, with their tokens."""
    if session.folder is None:
        return ()
    # 60 ms to import; most transcripts name their files
    from nexus_context.assistants.reading.profile_types import Surroundings
    from nexus_context.assistants.views.profile import read_profile

    surroundings = Surroundings(session.folder, place.home, place.environ)
    profile = read_profile(session.assistant, surroundings)
    return tuple((part.path, float(part.tokens)) for part in profile.parts if part.path is not None)
