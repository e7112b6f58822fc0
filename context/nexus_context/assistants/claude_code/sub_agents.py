"""Follows a session of Claude Code as it grows, with its sub-agents, whose files lie beside the session's.

1. The program's own sums include the sub-agents.
2. The files of sub-agents are in `<session>/subagents/` and directories below. Versions before 2.1 have them
   beside the session's file, and their records name the session. `watch` and `keep` see the same files
   (`list_agents`).
3. The directory of a project may be a link, since the user may have moved the files. Below it, links to
   directories are not followed, so there are no loops.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from os.path import basename, dirname, join

from nexus_context.assistants.claude_code import session_files as claude_code
from nexus_context.assistants.claude_code.forks import base_of
from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.claude_code.steps import ClaudeCodeSteps
from nexus_context.assistants.reading.record_values import decode_object, text
from nexus_context.assistants.sessions.fold import Sum
from nexus_context.assistants.sessions.followed import FollowedFile
from nexus_context.assistants.sessions.report import SubAgent
from nexus_context.assistants.sessions.session_types import Folders, Place, records
from nexus_context.disk import files
from nexus_context.disk.files import JSON_LIMIT, read_text

MOST_AGENTS = 2_000  # files of sub-agents of one session that are followed
DEEPEST = 4  # directories below `subagents`
EARLY = ("1.", "2.0.")
"""Versions that have the files of sub-agents beside that of the session."""
AGENT = "agent-"
"""How the name of a sub-agent's file begins."""
_SUFFIX = ".jsonl"


class FollowedClaudeCode(FollowedFile[ClaudeCodeRecord]):
    """Follows a session's file and the files of its sub-agents."""

    def __init__(self, path: str, fork_of: str | None = None) -> None:
        self._owners: dict[str, str] = {}  # of answers: the file that counts them
        super().__init__(
            path,
            ClaudeCodeRecord,
            lambda: ClaudeCodeSteps(base_of(path, fork_of), owners=self._owners, path=path),
        )
        self._directory = agents_directory(path)
        self._agent_files: dict[str, FollowedFile[ClaudeCodeRecord]] = {}
        self._unread_agents = 0
        self._beside: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        directories = dict.fromkeys((self._directory, *map(dirname, self._agent_files)))
        return (*super().paths, *self._agent_files, *(join(directory, AGENT) for directory in directories))

    @property
    def agents(self) -> Sequence[SubAgent]:
        return [
            followed_file.fold.sub_agent(
                basename(path).removesuffix(_SUFFIX).removeprefix(AGENT), _agent_title(path)
            )
            for path, followed_file in self._agent_files.items()
            if followed_file.fold.requests or followed_file.fold.last is None  # else it is a copy
        ]

    @property
    def agents_since(self) -> Callable[[float], Sum]:
        return self._sum_agents

    @property
    def damaged(self) -> int:
        return super().damaged + sum(followed_file.damaged for followed_file in self._agent_files.values())

    @property
    def unknown(self) -> Mapping[str, int]:
        counts = sum(
            (Counter(followed_file.unknown) for followed_file in self._agent_files.values()),
            Counter(super().unknown),
        )
        if self._unread_agents:
            counts[f"sub-agents beyond {MOST_AGENTS:,}"] = self._unread_agents
        return counts

    def advance(self) -> bool:
        has_changed = super().advance()
        if has_changed:
            self._find_agents()
        changes = [followed_file.advance() for followed_file in self._agent_files.values()]
        return any((has_changed, *changes))

    def _sum_agents(self, since: float) -> Sum:
        later_sum = Sum()
        for fold in (
            *(followed_file.fold for followed_file in self._agent_files.values()),
            *self.fold.agents.values(),
        ):
            requests = fold.since(since)
            later_sum.include(requests)
        return later_sum

    def _find_agents(self) -> None:
        path = self._records.path
        version = self.fold.last.version if self.fold.last is not None else None
        if (version or "").startswith(EARLY):
            self._beside = tuple(_list_beside(path))
        agent_paths = dict.fromkeys((*_list_agents(self._directory, DEEPEST), *self._beside))
        unfollowed = [agent_path for agent_path in agent_paths if agent_path not in self._agent_files]
        free_slots = max(MOST_AGENTS - len(self._agent_files), 0)
        self._unread_agents = len(unfollowed[free_slots:])
        for agent_path in unfollowed[:free_slots]:
            self._agent_files[agent_path] = FollowedFile(
                agent_path,
                ClaudeCodeRecord,
                lambda path=agent_path: ClaudeCodeSteps(  # type: ignore[misc]
                    is_agent=True, owners=self._owners, path=path
                ),
            )


def agents_directory(path: str) -> str:
    """Return the directory with the files of a session's sub-agents. `path` is the session's file."""
    return join(path.removesuffix(_SUFFIX), "subagents")


def list_files(place: Place, folder: Folders) -> Iterator[str]:
    """Yield the files of sessions and of their sub-agents in some folders, or in all if `folder` is None."""
    for path, kind in claude_code.entries(place, folder):
        if kind == "directory":
            yield from _list_agents(agents_directory(path), DEEPEST)
        elif path.endswith(_SUFFIX):
            yield path


def list_agents(path: str) -> Iterator[str]:
    """Yield the files of a session's sub-agents. `path` is the session's file."""
    yield from _list_agents(agents_directory(path), DEEPEST)
    yield from _list_beside(path)


def is_agent(path: str) -> bool:
    """Whether a file is a sub-agent's, by its name."""
    return basename(path).startswith(AGENT)


def _list_agents(directory: str, depth: int) -> Iterator[str]:
    for name, kind in files.list_directory(directory) or ():
        path = join(directory, name)
        if kind == "directory":
            if depth:
                yield from _list_agents(path, depth - 1)
        elif name.startswith(AGENT) and name.endswith(_SUFFIX):
            yield path


def _list_beside(path: str) -> Iterator[str]:
    """The files of sub-agents beside a session's file whose records name that session."""
    directory, session = dirname(path), basename(path).removesuffix(_SUFFIX)
    for name, kind in files.list_directory(directory) or ():
        if kind == "file" and name.startswith(AGENT) and name.endswith(_SUFFIX):
            agent = join(directory, name)
            if _session_of(agent) == session:
                yield agent


_sessions_of_agents: dict[str, str] = {}  # by path: the first record stays


def _session_of(path: str) -> str | None:
    """The session that a sub-agent's file names first."""
    session = _sessions_of_agents.get(path)
    if session is None:
        try:
            first_records = records(files.Lines(path, most=files.Lines.HEAD).first, ClaudeCodeRecord, set())
            session = next((record.session for record in first_records if record.session is not None), None)
        except OSError:  # it was removed
            return None
        if session is not None:
            _sessions_of_agents[path] = session
    return session


def _agent_title(path: str) -> str | None:
    """What the session called the sub-agent; None if nobody says."""
    values = decode_object(read_text(f"{path.removesuffix(_SUFFIX)}.meta.json", limit=JSON_LIMIT).text)
    return text(values.get("description")) or text(values.get("agentType"))
