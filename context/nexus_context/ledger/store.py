"""The interface of a ledger, independent of the database.

Every method may block on the disk, may be called from any thread, and raises LedgerError. When a writing
method returns, its data survives the end of the process and a power cut.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from nexus_context.ledger.records import (
    Appended,
    DirectMessage,
    Excerpt,
    Head,
    Hit,
    LiveAgent,
    MirroredFile,
    MirroredSession,
    MirrorTurns,
    NewAgent,
    NewCompaction,
    NewTurn,
    Session,
    SessionOptions,
    StoredHistory,
    StoredMessage,
    StoredReceipt,
    StoredState,
    Turn,
    Verification,
)
from nexus_context.tokens.accuracy import DatedReport
from nexus_context.tokens.correction import Correction


class OptionsStore(Protocol):
    """The options of conversations: which model, how many tokens."""

    def of(self, workspace: str) -> dict[str | None, SessionOptions]:
        """The options of the sessions of a workspace that have some, by name.

        Under None: those that one of them used last, for the sessions without options.
        """
        ...

    def keep(self, workspace: str, session: str, options: SessionOptions) -> None:
        """Store the options of a session, if it exists, and of its workspace."""
        ...


class UsageStore(Protocol):
    """What providers counted of requests, and what that says about our counts."""

    def correction(self, family: str) -> Correction:
        """What the reports of all workspaces say about a family of models; without an anchor."""
        ...

    def reports(self) -> list[DatedReport]:
        """What providers counted of requests beside what we estimated: the newest ones, the newest first."""
        ...


class SessionPages(Protocol):
    """What people look at."""

    def excerpt(
        self,
        workspace: str,
        session: str,
        *,
        thread: str | None = None,
        first: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> Excerpt | None:
        """A page of a session for people; None if there is no such session.

        `limit` messages, fewer if they are long: from the position `first` on, else the last ones before
        `before`, else the last ones. `thread`: one from before the session was cleared. Costs what is read.
        """
        ...

    def receipt(self, workspace: str, session: str, compaction: str | None = None) -> StoredReceipt:
        """The receipt of a compaction, by default the session's last one; else `unknown-compaction`.

        An id is searched in all sessions of the workspace: the session may have been renamed.
        """
        ...

    def search(
        self,
        query: str,
        *,
        workspace: str | None = None,
        inside: bool = False,
        parents: Sequence[str] = (),
        session: str | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        """Messages in which all words of a query occur, best first.

        `"two words"` is a phrase, `word*` a prefix, `-word` must not occur. There are no syntax errors.
        With `inside`, those of the folders inside the workspace and of `parents` are searched, too.
        """
        ...

    def last_call(self, workspace: str, prefix: str) -> str | None:
        """When an assistant last called a tool whose name begins with this, UTC, ISO 8601; None if never.

        `prefix` has a letter or a digit. Of messages that mention it, the newest thousands are read.
        """
        ...


class MirrorStore(Protocol):
    """Sessions of other assistants."""

    def files(self) -> dict[str, MirroredFile]:
        """How far each file of another assistant was read, by path."""
        ...

    def find(self, assistant: str, program_id: str) -> MirroredSession | None:
        """What there is of a session of another assistant, by the id that its program gave it."""
        ...

    def imported(self) -> dict[str, tuple[str, str]]:
        """Sessions that were imported from files and are not kept: workspace and name, by program's id."""
        ...

    def write(self, changes: Sequence[MirrorTurns], files: Iterable[MirroredFile] = ()) -> None:
        """Write new turns of other assistants' sessions, and how far files were read: all or nothing.

        HeadMovedError if somebody else has written to one of the sessions since the writer looked.
        """
        ...


class Upkeep(Protocol):
    """What concerns the ledger as a whole."""

    def verify(self) -> Verification:
        """Verify the chain of every session and the file. Costs as much as reading everything."""
        ...

    def backup(self, path: str) -> int:
        """Copy the ledger at one moment to a new file at an absolute path; returns the number of sessions.

        Others may write meanwhile. The copy is verified before it gets its name. FileExistsError if the path
        exists, another OSError if it cannot be written, LedgerError `ledger-corrupt` if the copy is damaged;
        then no file is left.
        """
        ...

    def back_up_daily(self) -> str | None:
        """Make today's backup beside the ledger if it is due (`daily_backups`); returns its path.

        Raises as `backup`; the earlier backups then stay.
        """
        ...


class MessageStore(Protocol):
    """Direct messages between agents."""

    def send(self, message: DirectMessage) -> None:
        """Store a direct message; a repeated id is ignored."""
        ...

    def inbox(
        self, workspace: str, agent: str, *, now: float, node: str | None = None, limit: int = 20
    ) -> list[DirectMessage]:
        """The waiting messages of an agent that are valid at `now`: by priority, then oldest first."""
        ...

    def delivered(self, ids: Iterable[str]) -> None:
        """Mark messages as delivered."""
        ...

    def newest(self) -> int:
        """The number of the newest direct message, in the order of arrival; 0 if there is none."""
        ...

    def since(self, number: int, *, limit: int) -> list[DirectMessage]:
        """The waiting messages of all workspaces behind a number, oldest first, at most `limit`."""
        ...


class AgentStore(Protocol):
    """The running agents."""

    def running(self, workspace: str) -> list[LiveAgent]:
        """The running agents of a workspace in the order of their start."""
        ...

    def names(self, workspace: str, name: str) -> dict[str, bool]:
        """The names of agents, running and ended, that equal `name` except for case, and which are running.

        Costs one look-up.
        """
        ...

    def start(self, workspace: str, agent: NewAgent) -> int:
        """Store an agent; returns its number. `agent-exists`, `unknown-agent` (parent), `agent-count`."""
        ...

    def end(self, workspace: str, name: str) -> list[str]:
        """Remove an agent and all below it; returns their names, children first. None for an unknown one."""
        ...


class Ledger(Protocol):
    """The sessions of all workspaces of one user, with a store for each that asks for something else."""

    @property
    def persists(self) -> bool:
        """Whether data outlives the process."""
        ...

    @property
    def notice(self) -> str | None:
        """A notice for the user: why nothing persists, or that a damaged file was set aside."""
        ...

    @property
    def location(self) -> str:
        """The path of the ledger."""
        ...

    def version(self) -> int:
        """A number that changes when another process writes; costs next to nothing."""
        ...

    def close(self) -> None: ...

    @property
    def options(self) -> OptionsStore: ...

    @property
    def usage(self) -> UsageStore: ...

    @property
    def pages(self) -> SessionPages: ...

    @property
    def mirrors(self) -> MirrorStore: ...

    @property
    def upkeep(self) -> Upkeep: ...

    @property
    def messages(self) -> MessageStore: ...

    @property
    def agents(self) -> AgentStore: ...

    # ------------------------------------------------------------ sessions

    def sessions(self, workspace: str | None = None) -> list[Session]:
        """The sessions of a workspace, or all; the most recently changed first."""
        ...

    def find(self, workspace: str, session: str) -> Session | None: ...

    def create(
        self,
        workspace: str,
        session: str,
        *,
        agent: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Session:
        """Create a session; `session-exists` if the name is taken. `parameters` are those of the model."""
        ...

    def set_parameters(self, workspace: str, session: str, parameters: Mapping[str, Any]) -> Session:
        """Change model parameters of a session; one that is None is dropped. A missing session is created."""
        ...

    def rename(self, workspace: str, session: str, to: str) -> Session: ...

    def delete(self, workspace: str, session: str) -> None:
        """Remove a session and all turns that no other session shares, from searches as well."""
        ...

    def clear(self, workspace: str, session: str) -> Session:
        """Give the session an empty thread. Its previous turns stay in the ledger."""
        ...

    def fork(self, workspace: str, session: str, to: str, *, turn: str | None = None) -> Session:
        """A new session that shares all turns up to and including `turn`, by default all."""
        ...

    # ------------------------------------------------------------ turns

    def append(self, workspace: str, session: str, turn: NewTurn) -> Appended:
        """Append a turn; an unknown session is created."""
        ...

    def import_turns(
        self,
        workspace: str,
        session: str,
        turns: Iterable[NewTurn | Turn],
        *,
        parameters: Mapping[str, Any] | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> Session:
        """Append many turns to a new session, all or none; `on_progress` gets their number so far.

        A Turn from `turns` is restored as it was, including compactions and undos, with its `created`; only
        its `id` and `seq` are new. `parameters` are those of the session.
        """
        ...

    def compact(self, workspace: str, session: str, compaction: NewCompaction) -> Appended:
        """Put a compaction in force. Turns appended since it was planned follow what it keeps.

        HeadMovedError if anything else happened to the thread.
        """
        ...

    def undo(self, workspace: str, session: str, compaction: str | None = None) -> Appended:
        """Take back a compaction, by default the one in force, and all later ones."""
        ...

    def head(self, workspace: str, session: str) -> Head | None:
        """The end of a session; None if there is no such session. Costs one look-up."""
        ...

    def state(self, workspace: str, session: str) -> StoredState | None:
        """The state that the next request depends on beside the history; None if there is no such session."""
        ...

    def history(self, workspace: str, session: str, *, tokens: int | None = None) -> StoredHistory | None:
        """The messages for the next request; None if there is no such session.

        `tokens`: read only the beginning (the start of the session and the user messages before the first
        answer; or a summary and what was kept beside it) and whole turns from the end until they have that
        many tokens. Costs what is read, not what there is.
        """
        ...

    def render_anew(self, workspace: str, session: str) -> None:
        """Let the session's next request begin with what is present then: `frozen` is None from now on.

        LedgerError `unknown-session` if there is no such session.
        """
        ...

    def since(self, workspace: str, session: str, head: Head) -> tuple[StoredMessage, ...] | None:
        """The messages after `head`; None if anything but appends happened: then read the history again."""
        ...

    def turns(self, workspace: str, session: str, *, last: int | None = None) -> Iterator[Turn]:
        """All turns, oldest first, or the last few; read on demand."""
        ...
