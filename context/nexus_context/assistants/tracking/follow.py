"""Follows one session: what its program appends, and its report after each change.

1. `advance` costs one `stat` of each followed file while nothing changes.
2. Only what was appended to a transcript is read. If it was rewritten, all of it is read again
   (`record_reader`).
3. A transcript of more than `record_reader.WHOLE` bytes is read from near its end. The program's own sums
   include the rest.
4. Sub-agents that are sessions of their own come from the caller, in `agents`.
"""

from collections.abc import Callable, Sequence

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.record_values import seconds
from nexus_context.assistants.sessions.prices import price_session
from nexus_context.assistants.sessions.report import SessionReport, SubAgent
from nexus_context.assistants.sessions.session_types import AssistantSession, Usage

Files = Sequence[tuple[str, float]]
"""Instruction files with their tokens."""


class SessionFollower:
    """Follows one session of an assistant. Not thread-safe.

    `list_files` lists the instruction files that the program reads in a session's folder, with their tokens.
    It is called once, and only if the transcript does not name them.
    """

    def __init__(
        self,
        session: AssistantSession,
        *,
        list_files: Callable[[AssistantSession], Files] = lambda _: (),
    ) -> None:
        self.session = session
        self.agents: tuple[AssistantSession, ...] = ()
        """Sessions that are its sub-agents (rule 4)."""
        self._list_files = list_files
        self._reported_agents: tuple[AssistantSession, ...] = ()
        self._files: Files | None = None
        self._followed = PROGRAMS[session.assistant].sessions.follow(session)
        self._report: SessionReport | None = None

    def advance(self) -> bool:
        """Read what is new since the last call. Return whether the report has changed.

        Raise apsw.Error if the session is in a database that cannot be read.
        """
        has_changed = self._followed.advance()
        if has_changed:
            self._report = None
        return has_changed

    @property
    def paths(self) -> tuple[str, ...]:
        """The files to watch. When one of them or its directory changes, `advance` may have something to
        read.
        """
        return self._followed.paths

    def report(self) -> SessionReport:
        """Return what is known now. It is the same object until something changes."""
        if self._report is None or self._reported_agents != self.agents:
            self._report, self._reported_agents = self._build(), self.agents
        return self._report

    def _build(self) -> SessionReport:
        followed = self._followed
        fold, own_agents = followed.fold, followed.agents
        report = fold.report(
            followed.complete(self.session),
            files=() if fold.instructions else self._instruction_files(),
            agents=tuple(map(_as_agent, self.agents)) if own_agents is None else own_agents,
            agents_since=followed.agents_since,
        )
        return msgspec.structs.replace(
            report,
            skipped_bytes=followed.skipped_bytes,
            damaged=followed.damaged,
            long_lines=followed.long_lines,
            unread=dict(followed.unknown),
        )

    def _instruction_files(self) -> Files:
        if self._files is None:
            self._files = self._list_files(self.session)
        return self._files


def _as_agent(session: AssistantSession) -> SubAgent:
    """A session whose parent is the one that is followed."""
    usage = session.total or session.last or Usage()
    cost = price_session(msgspec.structs.replace(session, total=usage))
    return SubAgent(
        id=session.id,
        title=session.prompt,
        model=session.model,
        requests=0,
        usage=usage,
        window=session.last.sent if session.last is not None else 0,
        cost_usd=cost.usd,
        changed=seconds(session.changed),
        lacks=dict.fromkeys(cost.lacks, 0),
    )
