"""What everything above a ledger may ask of it, whatever database it is kept in.

Every method may block on the disk, may be called from any thread, and raises LedgerError. When a writing
method returns, what it wrote survives the end of the process and of the power.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from nexus_context.ledger.records import (
    Appended,
    DirectMessage,
    Excerpt,
    Head,
    Hit,
    LiveAgent,
    NewAgent,
    NewCompaction,
    NewTurn,
    Session,
    SessionOptions,
    StoredHistory,
    StoredMessage,
    StoredReceipt,
    Turn,
    Verification,
)


class Ledger(Protocol):
    """Sessions of all workspaces of one user."""

    @property
    def persists(self) -> bool:
        """Whether what is written is there after the end of the process."""
        ...

    @property
    def notice(self) -> str | None:
        """What the user should know: that nothing persists and why, or that a broken file was set aside."""
        ...

    @property
    def location(self) -> str:
        """Where it is kept: a path."""
        ...

    def version(self) -> int:
        """A number that differs after another process has written; costs next to nothing."""
        ...

    def close(self) -> None: ...

    # ------------------------------------------------------------ sessions

    def sessions(self, workspace: str | None = None) -> list[Session]:
        """The sessions of a workspace, or all; those that changed last first."""
        ...

    def find(self, workspace: str, session: str) -> Session | None: ...

    def create(self, workspace: str, session: str, *, agent: str | None = None) -> Session:
        """Begin a session; `session-exists` if there is one."""
        ...

    def rename(self, workspace: str, session: str, to: str) -> Session: ...

    def delete(self, workspace: str, session: str) -> None:
        """Remove a session and all turns that no other session shares; they cannot be found any more."""
        ...

    def clear(self, workspace: str, session: str) -> Session:
        """Let the session begin anew: an empty thread. The turns before stay in the ledger."""
        ...

    def fork(self, workspace: str, session: str, to: str, *, turn: str | None = None) -> Session:
        """A new session that shares all turns up to and including `turn`, else all there are."""
        ...

    # ------------------------------------------------------------ options

    def options(self, workspace: str) -> dict[str | None, SessionOptions]:
        """What the sessions of a workspace are used with, by name, as far as they have options of their own.

        Under None: what one of them was used with last, for those that have none.
        """
        ...

    def keep_options(self, workspace: str, session: str, options: SessionOptions) -> None:
        """Keep what a session is used with from now on, if there is one, and what its workspace is."""
        ...

    # ------------------------------------------------------------ turns

    def append(self, workspace: str, session: str, turn: NewTurn) -> Appended:
        """Append a turn; an unknown session is begun."""
        ...

    def import_turns(
        self,
        workspace: str,
        session: str,
        turns: Iterable[NewTurn | Turn],
        *,
        told: Callable[[int], None] = lambda _: None,
    ) -> Session:
        """Append many turns to a new session, all or none; `told` hears how many there are so far.

        A Turn, as `turns` of a session gives it, becomes what it was, also a compaction or an undo, with its
        `created`; only its `id` and `seq` are given anew.
        """
        ...

    def compact(self, workspace: str, session: str, compaction: NewCompaction) -> Appended:
        """Put a compaction in force. Turns that were appended since it was planned are kept behind what it
        keeps; HeadMovedError if anything else happened to the thread.
        """
        ...

    def undo(self, workspace: str, session: str, compaction: str | None = None) -> Appended:
        """Take back a compaction, else the one in force, and with it all later ones."""
        ...

    def head(self, workspace: str, session: str) -> Head | None:
        """How far a session goes; None if there is none. Costs one look-up."""
        ...

    def history(self, workspace: str, session: str, *, tokens: int | None = None) -> StoredHistory | None:
        """What the next request is made of; None if there is no such session.

        `tokens`: read only what stands first (the session's start and the user's messages before any answer;
        a summary and what was kept beside it) and, of the rest, whole turns from the end until there are that
        many tokens. Costs what is read, not what there is.
        """
        ...

    def since(self, workspace: str, session: str, head: Head) -> tuple[StoredMessage, ...] | None:
        """The messages after `head`; None if more happened than appends: then read the history again."""
        ...

    def turns(self, workspace: str, session: str, *, last: int | None = None) -> Iterator[Turn]:
        """All turns, oldest first, or the last few; read as they are asked for."""
        ...

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
        """A page of everything that a session holds, to be read by people; None where there is none.

        From the position `first` on, else the last before `before`, else the last: `limit` messages, fewer
        where they are long. `thread`: one that the session was at before it was cleared. Costs what is read.
        """
        ...

    def receipt(self, workspace: str, session: str, compaction: str | None = None) -> StoredReceipt:
        """The receipt of a compaction, else of the session's last one; `unknown-compaction` if there is none.

        By its id it is found in whichever session of the workspace holds it: the session may have another
        name by now.
        """
        ...

    def search(
        self, query: str, *, workspace: str | None = None, session: str | None = None, limit: int = 20
    ) -> list[Hit]:
        """Messages in which all words of a query occur, best first.

        `"two words"` stand together, `word*` is a beginning, `-word` must not occur. Nothing is a syntax
        error.
        """
        ...

    # ------------------------------------------------------------ the whole of it

    def verify(self) -> Verification:
        """Walk the chain of every session, and have the file checked. Costs what it takes to read all."""
        ...

    def backup(self, path: str) -> int:
        """Copy the ledger, as it is at one moment, into a new file at an absolute path; its sessions.

        Others may write meanwhile. The copy is verified before it has its name. FileExistsError where
        something is there already, another OSError where it cannot be written, LedgerError `ledger-corrupt`
        where the copy is not sound: then no file is left.
        """
        ...

    # ------------------------------------------------------------ direct messages

    def send(self, message: DirectMessage) -> None:
        """Keep a direct message; one with the same id is there once."""
        ...

    def inbox(
        self, workspace: str, agent: str, *, now: float, node: str | None = None, limit: int = 20
    ) -> list[DirectMessage]:
        """What waits for an agent and has not expired at `now`: highest priority first, then oldest first."""
        ...

    def delivered(self, ids: Iterable[str]) -> None:
        """These have reached their agent: they wait no more."""
        ...

    # ------------------------------------------------------------ agents

    def agents(self, workspace: str) -> list[LiveAgent]:
        """The agents that live in a workspace, in the order in which they were started."""
        ...

    def agent_names(self, workspace: str, name: str) -> dict[str, bool]:
        """The names that agents have had in a workspace and that differ from `name` at most in upper and
        lower case, each with whether its agent lives. Costs one look-up.
        """
        ...

    def start_agent(self, workspace: str, agent: NewAgent) -> int:
        """Keep an agent; its number. `agent-exists`, `unknown-agent` (its parent) or `agent-count`."""
        ...

    def end_agent(self, workspace: str, name: str) -> list[str]:
        """Keep an agent and all below it no longer; their names, children first. None of an unknown one."""
        ...
