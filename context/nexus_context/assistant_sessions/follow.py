"""Follow one session: what its program appends, and its report after each change.

1. `advance` costs one `stat` of each followed file while nothing changes.
2. Of a transcript only what was appended is read; if it was rewritten, everything again (`appended`).
3. A large transcript is read from its end (`appended.WHOLE`). The program's own sums include the rest.
4. Sub-agents of Claude Code have files of their own beside the session's; those of Codex and opencode are
   sessions with a parent, which the caller knows.
5. opencode's database has rows that change: its session is read again whenever the database has changed, and
   only if the session's own row has.
"""

from collections.abc import Callable, Iterable, Sequence
from os.path import basename, join
from typing import Any, Protocol

import apsw
import msgspec

from nexus_context import files
from nexus_context.assistant_sessions import claude_code, codex, opencode
from nexus_context.assistant_sessions.appended import AppendedLines
from nexus_context.assistant_sessions.cache_misses import FindChange
from nexus_context.assistant_sessions.claude_code_steps import ClaudeCodeSteps
from nexus_context.assistant_sessions.codex_steps import CodexSteps
from nexus_context.assistant_sessions.fold import SessionFold, Sum
from nexus_context.assistant_sessions.model import AssistantSession, Usage, seconds, text, utc
from nexus_context.assistant_sessions.opencode_steps import MessageParts, steps_of
from nexus_context.assistant_sessions.prices import request_prices
from nexus_context.assistant_sessions.report import SessionReport, SubAgent
from nexus_context.assistant_sessions.steps import AgentStep, StatedTotals, Step
from nexus_context.files import JSON_LIMIT, read_text

MOST_AGENTS = 500  # files of sub-agents of one session
MOST_ROWS = 20_000  # messages of a session of opencode, the last ones

Files = Sequence[tuple[str, float]]
"""Instruction files with their tokens."""


class _StepReader(Protocol):
    def read(self, line: bytes) -> Iterable[Step | AgentStep]: ...


class _Transcript:
    """A file of records and what they say."""

    def __init__(
        self,
        path: str,
        steps: Callable[[], _StepReader],
        find_change: FindChange = lambda *_: "",
    ) -> None:
        self.lines = AppendedLines(path)
        self.fold = SessionFold()
        self.damaged = 0
        self._steps = steps
        self._find_change = find_change
        self._reader = steps()
        self._restarts = 0

    def advance(self) -> bool:
        """Read what is new; whether there was anything."""
        if not self.lines.has_changed():
            return False
        has_lines = False
        for line in self.lines.read():
            if self.lines.restarts != self._restarts:
                self._restart()
            has_lines = True
            if line.strip():
                self._take(line)
        return has_lines

    def _restart(self) -> None:
        self._restarts = self.lines.restarts
        self._reader = self._steps()
        self.fold = SessionFold(is_partial=self.lines.skipped_bytes > 0, find_change=self._find_change)
        self.damaged = 0

    def _take(self, line: bytes) -> None:
        try:
            for step in self._reader.read(line):
                self.fold.take(step)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.damaged += 1


class SessionFollower:
    """One session of an assistant. Not thread-safe.

    `list_files` lists the instruction files that the program reads in a session's folder, with their tokens.
    It is called once, for programs whose transcripts do not name them.
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
        self._transcript: _Transcript | None = None
        self._database: _Database | None = None
        if session.assistant == opencode.NAME:
            self._database = _Database(session.path, session.id)
        else:
            steps = CodexSteps if session.assistant == codex.NAME else ClaudeCodeSteps
            self._transcript = _Transcript(session.path, steps, self._find_change)
        self._agent_files: dict[str, _Transcript] = {}
        self._report: SessionReport | None = None

    def advance(self) -> bool:
        """Read what is new since the last call; whether the report is another one."""
        if self._database is not None:
            has_changed = self._database.advance()
        else:
            assert self._transcript is not None  # noqa: S101 - one of both
            has_changed = self._transcript.advance()
            if self.session.assistant == claude_code.NAME:
                has_changed = self._advance_agents(find=has_changed) or has_changed
        if has_changed:
            self._report = None
        return has_changed

    @property
    def paths(self) -> tuple[str, ...]:
        """The files to watch: when one of them or its directory changes, `advance` may read something."""
        path = self.session.path
        if self._database is not None:
            return (path, f"{path}-wal")
        return (path, *self._agent_files, join(agents_directory(path), "agent-"))

    def report(self) -> SessionReport:
        """What is known now; the same object until something changes."""
        if self._report is None or self._reported_agents != self.agents:
            self._report, self._reported_agents = self._build(), self.agents
        return self._report

    def _build(self) -> SessionReport:
        session = self.session
        if self._database is not None:
            return self._build_database(self._database)
        transcript = self._transcript
        assert transcript is not None  # noqa: S101 - one of both
        fold, stamp = transcript.fold, transcript.lines.stamp
        is_claude = session.assistant == claude_code.NAME
        agents = self._file_agents() if is_claude else tuple(map(_as_agent, self.agents))
        report = fold.report(
            session if stamp is None else msgspec.structs.replace(session, changed=utc(stamp[3])),
            files=self._instruction_files(fold),
            agents=agents,
            agents_since=self._agents_since if is_claude else None,
        )
        return msgspec.structs.replace(
            report,
            skipped_bytes=transcript.lines.skipped_bytes,
            damaged=transcript.damaged + sum(each.damaged for each in self._agent_files.values()),
            long_lines=transcript.lines.long_lines,
        )

    def _build_database(self, database: "_Database") -> SessionReport:
        session = database.session or self.session
        listed, agents = self._instruction_files(database.fold), tuple(map(_as_agent, self.agents))
        return database.fold.report(session, files=listed, agents=agents)

    def _file_agents(self) -> tuple[SubAgent, ...]:
        return tuple(
            each.fold.sub_agent(_agent_id(path), _agent_title(path))
            for path, each in self._agent_files.items()
        )

    def _instruction_files(self, fold: SessionFold) -> Files:
        if fold.instructions:
            return ()
        if self._files is None:
            self._files = self._list_files(self.session)
        return self._files

    # ------------------------------------------------------------ instruction files on disk

    def _find_change(self, start: float, end: float) -> str:
        """The instruction file that was last written between two times; empty for none."""
        transcript = self._transcript
        paths = [] if transcript is None else list(transcript.fold.instructions)
        if self.session.assistant == codex.NAME:
            paths = [join(path, name) for path in paths for name in ("AGENTS.override.md", "AGENTS.md")]
        for path in paths:
            stamp = files.file_stamp(path)
            if stamp is not None and start < stamp[3] / 1e9 <= end:
                return path
        return ""

    # ------------------------------------------------------------ sub-agents of Claude Code

    def _advance_agents(self, *, find: bool) -> bool:
        if find:
            self._find_agents()
        changes = [each.advance() for each in self._agent_files.values()]
        return any(changes)

    def _find_agents(self) -> None:
        directory = agents_directory(self.session.path)
        names = files.list_directory(directory, MOST_AGENTS) or ()
        for name, kind in names:
            path = join(directory, name)
            if kind == "file" and name.endswith(".jsonl") and path not in self._agent_files:
                self._agent_files[path] = _Transcript(path, lambda: ClaudeCodeSteps(is_agent=True))

    def _agents_since(self, at: float) -> Sum:
        later = Sum()
        transcript = self._transcript
        inline = () if transcript is None else tuple(transcript.fold.agents.values())
        for fold in (*(each.fold for each in self._agent_files.values()), *inline):
            since = fold.since(at)
            later.add(since.usage, since.cost_usd)
        return later


def agents_directory(path: str) -> str:
    """Where Claude Code has the files of the sub-agents of a session's file."""
    return join(path.removesuffix(".jsonl"), "subagents")


def _agent_id(path: str) -> str:
    return basename(path).removesuffix(".jsonl").removeprefix("agent-")


def _agent_title(path: str) -> str | None:
    """What the session called the sub-agent; None if nobody says."""
    read = read_text(f"{path.removesuffix('.jsonl')}.meta.json", limit=JSON_LIMIT)
    values = opencode.decode(read.text)
    return text(values.get("description")) or text(values.get("agentType"))


def _as_agent(session: AssistantSession) -> SubAgent:
    """A session whose parent is the one that is followed."""
    usage = session.total or session.last or Usage()
    prices = None if session.cost_usd is not None else request_prices(session.model, usage)
    return SubAgent(
        id=session.id,
        title=session.prompt,
        model=session.model,
        requests=0,
        usage=usage,
        window=session.last.sent if session.last is not None else 0,
        cost_usd=session.cost_usd if prices is None else prices.cost(usage),
        changed=seconds(session.changed),
    )


class _Database:
    """A session in opencode's database."""

    def __init__(self, path: str, name: str) -> None:
        self.fold = SessionFold()
        self.session: AssistantSession | None = None
        self._path = path
        self._name = name
        self._stamp: tuple[Any, ...] = ()
        self._updated: Any = None

    def advance(self) -> bool:
        """Read the session again if the database changed; apsw.Error if it cannot be read."""
        stamp = files.file_stamp(self._path), files.file_stamp(f"{self._path}-wal")
        if stamp == self._stamp:
            return False
        connection = opencode.connect(self._path)
        try:
            connection.execute("BEGIN")
            updated, session = opencode.read_session(connection, self._path, self._name)
            self._stamp = stamp
            if updated == self._updated:
                return False
            rows = [] if session is None else _rows(connection, self._name)
        finally:
            connection.close()
        self._updated, self.session = updated, session
        fold = SessionFold()
        for step in steps_of(rows):
            fold.take(step)
        if session is not None:
            fold.take(StatedTotals(session.total, session.cost_usd))
        self.fold = fold
        return True


def _rows(connection: apsw.Connection, name: str) -> list[MessageParts]:
    messages: list[tuple[Any, ...]] = connection.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT ?",
        (name, MOST_ROWS),
    ).fetchall()
    parts: dict[Any, list[dict[str, Any]]] = {}
    for message, data in connection.execute(
        "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", (name,)
    ):
        parts.setdefault(message, []).append(opencode.decode(data))
    return [
        MessageParts(str(one), opencode.decode(data), parts.get(one, ())) for one, data in reversed(messages)
    ]
