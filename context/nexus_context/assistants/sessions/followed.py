"""Follows a session, whatever program writes it; by default its records are in one file.

A program whose sessions are not one file of records has a `FollowedSession` of its own (`opencode.database`),
as has one that writes sub-agents to files beside the session's (`claude_code.sub_agents`).
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from nexus_context.assistants.sessions.fold import SessionFold, Sum
from nexus_context.assistants.sessions.record import SessionRecord
from nexus_context.assistants.sessions.record_reader import RecordReader
from nexus_context.assistants.sessions.report import SubAgent
from nexus_context.assistants.sessions.session_types import AssistantSession, utc
from nexus_context.assistants.sessions.steps import AgentStep, Step
from nexus_context.disk import files

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=SessionRecord)
R_contra = TypeVar("R_contra", bound=SessionRecord, contravariant=True)


class StepReader(Protocol[R_contra]):
    """Turns the records of one file into steps."""

    def read(self, record: R_contra, /) -> Iterable[Step | AgentStep]: ...


class FollowedSession(Protocol):
    """A session that is followed as it grows. `damaged` counts lines that are not records, `unknown` things
    of each kind that Nexus does not know.
    """

    @property
    def fold(self) -> SessionFold:
        """The sums and the report that the steps read so far lead to."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The files to watch. When one of them or its directory changes, `advance` may have something to
        read.
        """
        ...

    def advance(self) -> bool:
        """Read what is new. Return whether there was anything."""
        ...

    def complete(self, session: AssistantSession) -> AssistantSession:
        """Return the session with what has become known of it since."""
        ...

    @property
    def agents(self) -> Sequence[SubAgent] | None:
        """The session's sub-agents; None if they are sessions of their own."""
        ...

    @property
    def agents_since(self) -> Callable[[float], Sum] | None:
        """Sums up the requests of the sub-agents after a time. None if the program's own sums do not include
        sub-agents.
        """
        ...

    @property
    def skipped_bytes(self) -> int: ...

    @property
    def damaged(self) -> int: ...

    @property
    def long_lines(self) -> int: ...

    @property
    def unknown(self) -> Mapping[str, int]: ...


class FollowedFile(Generic[R]):
    """Follows a session that is one file of records. `list_instructions` gets the path of an instruction file
    as records name it, and returns the files on disk that this may be.
    """

    def __init__(
        self,
        path: str,
        record_type: type[R],
        steps: Callable[[], StepReader[R]],
        *,
        list_instructions: Callable[[str], Iterable[str]] = lambda path: (path,),
    ) -> None:
        self.fold = SessionFold()
        self._records = RecordReader(path, record_type)
        self._steps = steps
        self._list_instructions = list_instructions
        self._reader = steps()
        self._restarts = 0
        self._refused = 0  # records that could not be taken in

    @property
    def paths(self) -> tuple[str, ...]:
        return (self._records.path,)

    @property
    def agents(self) -> Sequence[SubAgent] | None:
        return None

    @property
    def agents_since(self) -> Callable[[float], Sum] | None:
        return None

    @property
    def skipped_bytes(self) -> int:
        return self._records.skipped_bytes

    @property
    def damaged(self) -> int:
        return self._records.damaged + self._refused

    @property
    def long_lines(self) -> int:
        return self._records.long_lines

    @property
    def unknown(self) -> Mapping[str, int]:
        return self._records.unknown

    def advance(self) -> bool:
        if not self._records.has_changed():
            return False
        previous_state = self._records.offset, self._restarts
        try:
            for record in self._records.read():
                self._follow_restart()
                self._take(record)
        except OSError as error:  # removed, or no longer readable
            logger.debug("%s cannot be read: %s", self._records.path, error.strerror)
        self._follow_restart()
        return previous_state != (self._records.offset, self._restarts)

    def complete(self, session: AssistantSession) -> AssistantSession:
        stamp = self._records.stamp
        return session if stamp is None else msgspec.structs.replace(session, changed=utc(stamp[3]))

    def _follow_restart(self) -> None:
        if self._restarts == self._records.restarts:
            return
        self._restarts = self._records.restarts
        self._refused = 0
        self._reader = self._steps()
        self.fold = SessionFold(is_partial=self.skipped_bytes > 0, find_change=self._find_change)

    def _take(self, record: R) -> None:
        try:
            for step in self._reader.read(record):
                self.fold.take(step)
        except Exception:  # a bug in the work on one record must not hide the others
            self._refused += 1
            logger.debug("a record of %s cannot be read", self._records.path, exc_info=True)

    def _find_change(self, start: float, end: float) -> str:
        """Find an instruction file that was last written between two times; empty for none."""
        for path in (
            file_path
            for instruction in self.fold.instructions
            for file_path in self._list_instructions(instruction)
        ):
            stamp = files.file_stamp(path)
            if stamp is not None and start < stamp[3] / 1e9 <= end:
                return path
        return ""
