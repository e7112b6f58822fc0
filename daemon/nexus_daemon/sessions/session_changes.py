"""Find what happened to the sessions of a ledger, by comparing their heads before and after."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from nexus_daemon.sessions.ledger_events import Reason

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.ledger.records import Head, Session
    from nexus_context.ledger.store import Ledger

_KINDS: dict[str, Reason] = {"query": "appended", "compaction": "compacted", "undo": "undone"}


class Change(msgspec.Struct, frozen=True):
    """What happened to a session.

    `by` is the client that requested it, or None if another process wrote it.
    """

    workspace: str
    session: str
    reason: Reason
    turn: str | None = None
    former: str | None = None  # name before it was renamed
    by: object = None


def differences(
    workspace: str, heads: "Mapping[str, Head]", sessions: "Mapping[str, Session]"
) -> list[Change]:
    """Compare the previous `heads` (name → head) with `sessions` (name → session) of a workspace.

    Return the changes. A thread that went on counts as appended to; `exactly` finds out more.
    """
    gone_names = {head.thread: name for name, head in heads.items() if name not in sessions}
    changes = []
    for name, session in sessions.items():
        previous_head, head = heads.get(name), session.head
        if previous_head is None:
            former = gone_names.pop(head.thread, None)
            reason: Reason = "forked" if session.forked_from is not None else "created"
            reason = "renamed" if former is not None else reason
            changes.append(Change(workspace, name, reason, head.turn, former=former))
        elif previous_head.thread != head.thread:
            changes.append(Change(workspace, name, "cleared", head.turn))
        elif previous_head != head:  # the last turn may have been extended
            changes.append(Change(workspace, name, "appended", head.turn))
    return [*(Change(workspace, name, "deleted") for name in gone_names.values()), *changes]


def exactly(ledger: "Ledger", change: Change) -> Change:
    """Return the change of a thread that went on, with its exact reason.

    The reason is that of the turn that the change names: the last turn, or the one before if this process has
    written one since.
    """
    for turn in ledger.turns(change.workspace, change.session, last=2):
        if turn.id == change.turn:
            return msgspec.structs.replace(change, reason=_KINDS[turn.type])
    return change
