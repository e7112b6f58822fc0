"""Lets a conversation in memory write one session of a ledger, and follow what is stored there.

1. What is appended is on the disk before `append` returns.
2. A turn of the ledger begins with what the user says. The answers and tool results that follow extend the
   same turn.
3. If another program wrote in between, `append` returns False, and the session must be read again.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from nexus_context.conversation.agent_result import ProviderUsage, RequestBasis, TurnOutcome
from nexus_context.conversation.message import Message
from nexus_context.conversation.tool_pairs import begins_exchange
from nexus_context.errors import RequestError
from nexus_context.ledger.records import (
    Appended,
    Counted,
    Head,
    NewCompaction,
    NewTurn,
    ServerCompaction,
    StoredHistory,
)
from nexus_context.ledger.store import Ledger
from nexus_context.tokens.correction import Correction, UsageReport


class BoundSession:
    """One session of a folder, with its place in the ledger.

    `compactions` are the ids of the compactions in force, as far as they are known, oldest first. `frozen` is
    the prompt and tools with which its requests begin, as JSON.
    """

    def __init__(self, ledger: Ledger, folder: str | os.PathLike[str] | None, session: str) -> None:
        if folder is None:
            raise ValueError("a conversation with a ledger needs the absolute path of its folder: folder=…")
        path = os.fspath(folder)
        if not os.path.isabs(path):
            raise ValueError(f"the folder must be an absolute path, not {path!r}")
        self._ledger = ledger
        self._folder = os.path.realpath(path)
        self._session = session
        self._positions: list[int] = []  # in the ledger, of each message in memory
        self._head: Head | None = None
        self._open: Head | None = None  # behind the turn that was written here last, while it may go on
        self.compactions: tuple[str, ...] = ()
        self.frozen: str | None = None
        self._correction: Correction | None = None  # None: not read yet
        self._prompt = ""  # of the last turn that was appended here

    def load(self) -> StoredHistory | None:
        """Read the whole history. Return None if no message was appended yet."""
        self._correction = None
        history = self._ledger.history(self._folder, self._session)
        self._positions = [message.position for message in history.messages] if history else []
        self._head = history.head if history else None
        self._open = None
        self._note_compaction(history.compaction if history else None)
        state = self._ledger.state(self._folder, self._session)
        self.frozen = None if state is None else state.frozen
        return history if history and history.messages else None

    @staticmethod
    def server_compaction(summary: Counted | None, kept: int) -> ServerCompaction | None:
        """Make the compaction that is written together with a turn. Return None if there is no summary."""
        from nexus_context.conversation.compaction.run import new_id  # rarely needed

        return None if summary is None else ServerCompaction(new_id(), summary, kept)

    def correction(self, family: str) -> Correction:
        """Return how the totals of this session are corrected for a family of models."""
        if self._correction is None or self._correction.family != family:
            state = self._ledger.state(self._folder, self._session)
            anchor = None if state is None else state.anchor
            anchor = anchor if anchor is not None and anchor.family == family else None
            self._correction = msgspec.structs.replace(self._ledger.usage.correction(family), anchor=anchor)
        return self._correction

    def append(  # noqa: PLR0913 - a turn has so many parts
        self,
        messages: Sequence[Counted],
        *,
        counter: str,
        opening: Counted | None,
        frozen: str | UnsetType | None = UNSET,
        compaction: ServerCompaction | None = None,
        report: UsageReport | None = None,
        usage: ProviderUsage | None = None,
        basis: RequestBasis | None = None,
    ) -> bool:
        """Append a turn, or extend the last one. The turn is on the disk before this returns.

        Return False if the session must be loaded again, because the turn does not follow the messages in
        memory or compacted the session. The system prompt is stored with the turn if it changed since the
        turn before. If LedgerError is raised, nothing was written.
        """
        turn = NewTurn(
            messages=tuple(messages),
            counter=counter,
            opening=opening,
            frozen=frozen,
            compaction=compaction,
            extends=None if begins_exchange([counted.message for counted in messages]) else self._open,
            report=report,
            outcome=None if usage is None else TurnOutcome(usage),
            **self._facts(basis),
        )
        if report is not None:
            self._correction = None
        appended = self._ledger.append(self._folder, self._session, turn)
        self._open = appended.head if compaction is None else None
        self._prompt = self._prompt if basis is None else basis.prompt
        return self._follows(appended) and compaction is None

    def _facts(self, basis: RequestBasis | None) -> dict[str, Any]:
        if basis is None:
            return {}
        model, role, toolset, prompt = basis
        context = None if prompt == self._prompt else {"system": {"text": prompt}}
        return {"model": model, "role": role, "toolset": toolset, "context": context}

    @staticmethod
    def new_compaction(compaction: str, summary: Counted, counter: str, *, receipt: Any) -> NewCompaction:
        """Make a compaction for the method `compact`, which fills in its place and the kept messages."""
        receipt = msgspec.to_builtins(receipt)
        return NewCompaction(id=compaction, seq=0, summary=summary, counter=counter, kept=(), receipt=receipt)

    def compact(
        self, history: Sequence[Message], preserved: Iterable[Message], compaction: NewCompaction
    ) -> None:
        """Put a compaction in force. The session must be read again afterwards.

        `preserved` are messages of `history`, the messages in memory. Raise RequestError if one of them is
        not in `history`, or if no turn was appended yet. Raise HeadMovedError if another program compacted
        the session.
        """
        head = self._head
        if head is None:
            raise RequestError("Nothing was compacted: no turn was appended yet.", code="nothing-to-compact")
        positions = {id(message): at for message, at in zip(history, self._positions, strict=False)}
        try:
            kept_positions = [positions[id(message)] for message in preserved]
        except KeyError:
            raise RequestError(
                "A preserved message is not one of this conversation: pass objects of `messages`.",
                code="bad-message",
            ) from None
        ranges = tuple((at, at + 1) for at in sorted(kept_positions))
        written = msgspec.structs.replace(
            compaction, seq=head.seq, messages=head.messages, thread=head.thread, kept=ranges
        )
        self._ledger.compact(self._folder, self._session, written)
        self.compactions = (*self.compactions, compaction.id)

    def arrange(self, order: Sequence[int]) -> None:
        """Follow a change of the messages in memory: only those with these indexes remain, in this order. The
        ledger stays as it is.
        """
        self._positions = [self._positions[index] for index in order]

    def undo(self, compaction: str | None) -> None:
        """Undo a compaction, or the one in force if `compaction` is None. Raise LedgerError, code
        `unknown-compaction`, if there is no such compaction.
        """
        self._ledger.undo(self._folder, self._session, compaction)

    def clear(self) -> None:
        """Begin an empty thread. What was written before stays in the ledger."""
        if self._ledger.head(self._folder, self._session) is not None:  # others may have begun it
            self._ledger.clear(self._folder, self._session)
        self.load()

    def _note_compaction(self, in_force: str | None) -> None:
        compactions = self.compactions
        end = compactions.index(in_force) + 1 if in_force in compactions else 0
        self.compactions = compactions[:end] if end or in_force is None else (in_force,)

    def _follows(self, appended: Appended) -> bool:
        message_count = self._head.messages if self._head else 0
        follows = appended.before.messages == message_count and not appended.forked
        if follows and self._head is not None:
            follows = appended.before == self._head
        self._positions.extend(range(appended.before.messages, appended.head.messages))
        self._head = appended.head
        return follows
