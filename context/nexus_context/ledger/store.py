"""Defines the interface of a ledger, independent of the database.

Every method may block on the disk, may be called from any thread, and may raise LedgerError. When a writing
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
    """Stores the options of sessions: the picked model, the limit of tokens, and what is sent beside the
    conversation.
    """

    def of(self, workspace: str) -> dict[str | None, SessionOptions]:
        """Return the options of a workspace's sessions: name → options. Sessions without options are left
        out.

        The key None has the options that one of the sessions used last, if any. They apply to the sessions
        without options.
        """
        ...

    def keep(self, workspace: str, session: str, options: SessionOptions) -> None:
        """Store these options for a workspace, and for a session if it exists."""
        ...


class UsageStore(Protocol):
    """Reads what providers counted for requests, and what that says about our counts."""

    def correction(self, family: str) -> Correction:
        """Return the correction that the reports of all workspaces give for a family of models. It has no
        anchor.
        """
        ...

    def reports(self) -> list[DatedReport]:
        """Return the newest reports, newest first. Each has what a provider counted for a request, and what
        we estimated.
        """
        ...


class SessionPages(Protocol):
    """Reads what people look at: pages of sessions, receipts, and results of searches."""

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
        """Return a page of a session for people. Return None if there is no such session.

        The page has `limit` messages, or fewer if they are long. It begins at the position `first`. If
        `first` is None, it ends before the position `before`, or with the last message. `thread` is the id of
        a thread from before the session was cleared. The cost depends on the size of the page only.
        """
        ...

    def receipt(self, workspace: str, session: str, compaction: str | None = None) -> StoredReceipt:
        """Return the receipt of a compaction, or of the session's last one if `compaction` is None. Raise
        LedgerError, code `unknown-compaction`, if there is none.

        If the session does not have the compaction, all sessions of the workspace are searched, because the
        session may have been renamed.
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
        """Return the messages in which all words of a query occur, best first.

        `"two words"` is a phrase, `word*` a prefix, and `-word` must not occur. There are no syntax errors.
        With `inside`, messages of the folders inside the workspace and of the workspaces `parents` are
        searched, too.
        """
        ...

    def last_call(self, workspace: str, prefix: str) -> str | None:
        """Return when an assistant last called a tool whose name begins with `prefix`, in ISO 8601, UTC.
        Return None if it never did.

        `prefix` must have a letter or a digit. Of the messages that mention it, only the newest thousands are
        read.
        """
        ...


class MirrorStore(Protocol):
    """Stores copies of the sessions of other assistants."""

    def files(self) -> dict[str, MirroredFile]:
        """Return how far each file of another assistant was read: path → stamp and progress."""
        ...

    def find(self, assistant: str, program_id: str) -> MirroredSession | None:
        """Return the ledger's copy of a session of another assistant, or None if it was never copied.
        `program_id` is the id that the assistant's program gave the session.
        """
        ...

    def imported(self) -> dict[str, tuple[str, str]]:
        """Return the sessions that were imported from files and are not copies of this kind: the program's id
        → workspace and name.
        """
        ...

    def write(self, changes: Sequence[MirrorTurns], files: Iterable[MirroredFile] = ()) -> None:
        """Write new turns of other assistants' sessions, and how far files were read, all in one transaction.

        Raise HeadMovedError if another program has written to one of the sessions since the writer read it.
        """
        ...


class Upkeep(Protocol):
    """Verifies and copies the ledger as a whole."""

    def verify(self) -> Verification:
        """Verify the chain of every session and the file. This takes as long as reading everything."""
        ...

    def backup(self, path: str) -> int:
        """Copy the ledger, as it is at one moment, to a new file at an absolute path. Return the number of
        sessions.

        Other programs may write meanwhile. The copy is verified before it gets its name. Raise
        FileExistsError if the path exists, another OSError if it cannot be written, and LedgerError, code
        `ledger-corrupt`, if the copy is damaged. Then no file is left.
        """
        ...

    def back_up_daily(self) -> str | None:
        """Make today's backup beside the ledger if it is due (`daily_backups`). Return its path, or None if
        no backup was made.

        It raises the same errors as `backup`. Then the earlier backups stay.
        """
        ...


class MessageStore(Protocol):
    """Stores direct messages between agents."""

    def send(self, message: DirectMessage) -> None:
        """Store a direct message. If one with its id exists, do nothing."""
        ...

    def inbox(
        self, workspace: str, agent: str, *, now: float, node: str | None = None, limit: int = 20
    ) -> list[DirectMessage]:
        """Return the waiting messages of an agent that have not expired at `now`. The highest priority comes
        first, then the oldest.
        """
        ...

    def delivered(self, ids: Iterable[str]) -> None:
        """Mark the messages with these ids as delivered. Their content is removed."""
        ...

    def newest(self) -> int:
        """Return the number of the newest direct message, or 0 if there is none. Messages are numbered in the
        order of arrival.
        """
        ...

    def since(self, number: int, *, limit: int) -> list[DirectMessage]:
        """Return the waiting messages of all workspaces whose number is greater than `number`, oldest first,
        at most `limit`.
        """
        ...


class AgentStore(Protocol):
    """Stores the running agents."""

    def running(self, workspace: str) -> list[LiveAgent]:
        """Return the running agents of a workspace, in the order of their start."""
        ...

    def names(self, workspace: str, name: str) -> dict[str, bool]:
        """Return the names of running and ended agents that equal `name` except for case: name → whether the
        agent is running.

        This costs one look-up.
        """
        ...

    def start(self, workspace: str, agent: NewAgent) -> int:
        """Store an agent and return its number. Raise LedgerError, code `agent-exists`, `unknown-agent` (its
        parent does not run) or `agent-count`.
        """
        ...

    def end(self, workspace: str, name: str) -> list[str]:
        """Remove an agent and all agents below it. Return their names, children first; the list is empty if
        there is no such agent.
        """
        ...


class Ledger(Protocol):
    """Stores the sessions of all workspaces of one user. Its properties are the stores for everything
    else.
    """

    @property
    def persists(self) -> bool:
        """Whether the data outlives the process."""
        ...

    @property
    def notice(self) -> str | None:
        """A notice for the user, or None. It says, for example, why nothing is stored, or that a damaged file
        was set aside.
        """
        ...

    @property
    def location(self) -> str:
        """The path of the ledger."""
        ...

    def version(self) -> int:
        """Return a number that changes when any process writes. This costs next to nothing."""
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
        """Return the sessions of a workspace, or of all workspaces if it is None. The one that changed last
        comes first.
        """
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
        """Create a session. Raise LedgerError, code `session-exists`, if the name is taken; `parameters` are
        model parameters.
        """
        ...

    def set_parameters(self, workspace: str, session: str, parameters: Mapping[str, Any]) -> Session:
        """Change model parameters of a session; a value of None removes one. A missing session is created."""
        ...

    def rename(self, workspace: str, session: str, to: str) -> Session: ...

    def delete(self, workspace: str, session: str) -> None:
        """Remove a session and all turns that it does not share with another session. They are removed from
        searches, too.
        """
        ...

    def clear(self, workspace: str, session: str) -> Session:
        """Give the session an empty thread. Its previous turns stay in the ledger."""
        ...

    def fork(self, workspace: str, session: str, to: str, *, turn: str | None = None) -> Session:
        """Create a session that shares all turns up to and including `turn`, or all turns if it is None."""
        ...

    # ------------------------------------------------------------ turns

    def append(self, workspace: str, session: str, turn: NewTurn) -> Appended:
        """Append a turn. If there is no such session, create it."""
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
        """Append many turns to a new session, all or none. `on_progress` is called with the number of turns
        so far.

        A `Turn` that `turns` returned is restored as it was, with its `created` time, even if it is a
        compaction or an undo. Only its `id` and `seq` are new. `parameters` are the session's model
        parameters.
        """
        ...

    def compact(self, workspace: str, session: str, compaction: NewCompaction) -> Appended:
        """Put a compaction in force. Turns that were appended since it was planned follow the messages that
        it keeps.

        Raise HeadMovedError if the thread changed in any other way since.
        """
        ...

    def undo(self, workspace: str, session: str, compaction: str | None = None) -> Appended:
        """Take back a compaction and all later ones. If `compaction` is None, take back the one in force."""
        ...

    def head(self, workspace: str, session: str) -> Head | None:
        """Return the end of a session. Return None if there is no such session; this costs one look-up."""
        ...

    def state(self, workspace: str, session: str) -> StoredState | None:
        """Return what the next request depends on beside the history. Return None if there is no such
        session.
        """
        ...

    def history(self, workspace: str, session: str, *, tokens: int | None = None) -> StoredHistory | None:
        """Return the messages for the next request. Return None if there is no such session.

        With `tokens`, only both ends are read. The beginning is the summary with the messages kept beside it;
        without a compaction, it is the messages before the first answer. The end is as many whole turns as
        are needed for that many tokens. The cost depends on what is read, not on the size of the session.
        """
        ...

    def render_anew(self, workspace: str, session: str) -> None:
        """Let the session's next request render prompt and tools anew: `frozen` is None from now on.

        Raise LedgerError, code `unknown-session`, if there is no such session.
        """
        ...

    def since(self, workspace: str, session: str, head: Head) -> tuple[StoredMessage, ...] | None:
        """Return the messages after `head`. Return None if more than appends has happened since: then the
        history must be read again.
        """
        ...

    def turns(self, workspace: str, session: str, *, last: int | None = None) -> Iterator[Turn]:
        """Return all turns, or the last `last` turns, oldest first. They are read on demand."""
        ...
