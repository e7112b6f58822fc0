"""The sessions of other assistants that run now, as their hooks say."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Literal

import msgspec
from msgspec.structs import replace

State = Literal["working", "waiting"]
MOST = 500
SILENT_S = 12 * 3600.0  # after which a session counts as ended: its program was killed


class RunningSession(msgspec.Struct, frozen=True):
    """A session that runs. Times are seconds since 1970. It waits for the user after the end of a turn."""

    assistant: str
    session: str
    folder: str
    transcript: str | None
    started: float
    changed: float
    state: State = "working"


class RunningSessions:
    """All sessions that run, by assistant and id; thread-safe."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._sessions: dict[tuple[str, str], RunningSession] = {}
        self._lock = Lock()

    def note(
        self, assistant: str, session: str, *, folder: str, transcript: str | None, state: State
    ) -> None:
        """Something happened in a session."""
        now = self._now()
        key = (assistant, session)
        with self._lock:
            earlier = self._sessions.pop(key, None)
            if earlier is None:
                earlier = RunningSession(
                    assistant, session, folder, transcript, started=now, changed=now, state=state
                )
            self._sessions[key] = replace(
                earlier, changed=now, state=state, transcript=transcript or earlier.transcript
            )
            while len(self._sessions) > MOST:
                del self._sessions[next(iter(self._sessions))]

    def end(self, assistant: str, session: str) -> None:
        """A session has ended."""
        with self._lock:
            self._sessions.pop((assistant, session), None)

    def all(self) -> list[RunningSession]:
        """The sessions that run, the one that changed last first."""
        oldest = self._now() - SILENT_S
        with self._lock:
            return [one for one in reversed(self._sessions.values()) if one.changed >= oldest]


RUNNING = RunningSessions()
"""Those of this process."""
