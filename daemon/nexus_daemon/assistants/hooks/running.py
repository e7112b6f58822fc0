"""Keep the sessions of other assistants that run now, as their hooks report them."""

import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Literal

import msgspec
from msgspec.structs import replace

State = Literal["working", "waiting"]
MOST_SESSIONS = 500
SILENT_S = 12 * 3600.0  # after which a session counts as ended: its program was killed


class RunningSession(msgspec.Struct, frozen=True):
    """A session of an assistant that runs. Times are seconds since 1970.

    After the end of a turn its state is that it waits for the user. `process` is the id of the program's
    process, if it is known. Once that process has ended, the session has ended, too.
    """

    assistant: str
    session: str
    folder: str
    transcript: str | None
    started: float
    changed: float
    state: State = "working"
    process: int | None = None


class RunningSessions:
    """All sessions that run, by assistant and id. Any thread may use it."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._sessions: dict[tuple[str, str], RunningSession] = {}
        self._lock = Lock()

    def note(
        self,
        assistant: str,
        session: str,
        *,
        folder: str,
        transcript: str | None,
        state: State,
        process: int | None = None,
    ) -> None:
        """Note that something happened in a session, which now is in the given state."""
        now = self._now()
        key = (assistant, session)
        with self._lock:
            earlier_session = self._sessions.pop(key, None)
            if earlier_session is None:
                earlier_session = RunningSession(
                    assistant, session, folder, transcript, started=now, changed=now, state=state
                )
            self._sessions[key] = replace(
                earlier_session,
                changed=now,
                state=state,
                transcript=transcript or earlier_session.transcript,
                process=process or earlier_session.process,
            )
            while len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]

    def end(self, assistant: str, session: str) -> None:
        """Remove a session that has ended."""
        with self._lock:
            self._sessions.pop((assistant, session), None)

    def all(self) -> list[RunningSession]:
        """Return the running sessions, the last changed first. Sessions silent for SILENT_S are left out."""
        oldest = self._now() - SILENT_S
        with self._lock:
            sessions = list(reversed(self._sessions.values()))
        return [session for session in sessions if session.changed >= oldest and _is_alive(session.process)]


def _is_alive(process: int | None) -> bool:
    """Whether a process may be there; always where that cannot be asked."""
    if process is None or os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


RUNNING = RunningSessions()
"""The running sessions of which this process knows."""
