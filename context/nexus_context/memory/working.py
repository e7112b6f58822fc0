"""Builds L2, the working memory of a session: the exchanges that matter, in a few lines each, without a
model.

1. Turns are read as one sequence of messages and cut into exchanges. A new exchange begins at a user's
   message after a message of another role, at every TURNS_TOGETHER turns, and after LONGEST messages. A
   tool's result stays with its call.
2. Orders and corrections of the user, decisions, changed files and errors make an exchange matter, and so
   does a command that succeeds after it failed: it is the fix, and the error is shown as resolved. Pinned
   messages (`meta.pinned`, a pin of a compaction) matter most.
3. Only the last SCANNED turns are read, each once: reading continues where it ended, and an exchange is
   analysed when it is first requested. The result depends on the thread alone, not on when it was read.
4. A later order or decision about the same subject (`subjects`) replaces an earlier one. The later line says
   so, and the earlier line is left out. The same holds for a pinned message with the same `meta.subject`. A
   decision of the assistant never replaces an order of the user.
5. Summaries of compactions (L3) are collected while the turns are read, without those of undone compactions.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from nexus_context.conversation.compaction.extract_facts import Facts, extract_facts, lines
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.summary import is_summary, pins_in, summary_of
from nexus_context.ledger.records import Head, Turn
from nexus_context.ledger.store import Ledger
from nexus_context.memory.events import events_of
from nexus_context.memory.item import brief, line
from nexus_context.memory.subjects import subject_of

SCANNED = 512
"""Turns at the end of a thread that are read."""
TURNS_TOGETHER = 64
LONGEST = 100
"""Messages of one exchange."""
MOST_LINES = 10
"""Lines that describe an exchange."""
LONGEST_LINE = 400
"""Characters of a line."""

IMPORTANT = 1.0
"""The minimum weight of an exchange that is included."""
PINNED, ERROR, FIXED, CHANGED, DECIDED, REPORTED = 5.0, 1.5, 1.5, 1.0, 1.0, 0.5
_DECISION, _REPORT = 2.0, 1.5  # weights of `sentence_patterns`


class Entry(msgspec.Struct, frozen=True):
    """Something that is remembered of a session. `seq` is the number of its turn, and `created` is its time
    for people.
    """

    session: str
    seq: int
    created: str
    text: str
    weight: float = 0.0


class ExchangeNotes(msgspec.Struct, frozen=True):
    """Notes about one exchange: the lines that describe it, the commands that failed and were not fixed, and
    the commands that succeeded.
    """

    seq: int
    created: str
    weight: float
    lines: tuple[str, ...]
    failed: dict[str, tuple[str, ...]] = {}  # command → its errors
    fine: dict[str, str] = {}  # command → how it ended
    subjects: dict[str, str] = {}  # line → what it is about
    opening: tuple[str, ...] = ()  # the lines that say only how it began


class Summary(msgspec.Struct, frozen=True):
    """The summary of a compaction. `compaction` is None if the summary was extracted on request."""

    compaction: str | None
    seq: int
    created: str
    text: str


class _Exchange(msgspec.Struct):
    """An exchange that was not analysed yet, or that may still go on."""

    seq: int
    created: str
    messages: list[Message]


class WorkingMemory:
    """The working memory of one thread of a session, as far as the thread was read. Hold `lock` while using
    it.
    """

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.lock = threading.Lock()
        self.summaries: list[Summary] = []
        self._read = 0  # seq of the last turn that was read
        self._messages = 0  # position behind its last message
        self._closed: list[ExchangeNotes | _Exchange] = []
        self._open: _Exchange | None = None
        self._role = ""

    def follow(self, ledger: Ledger, workspace: str, session: str, head: Head) -> bool:
        """Read the new turns, at least up to `head`. Return False if the session has another thread by
        now.
        """
        next_read = max(self._read, first_scanned(head.seq))  # the last turn may have been extended
        count = head.seq - next_read + 1 if (head.seq, head.messages) > (self._read, self._messages) else 0
        while count > 0:
            turns = list(ledger.turns(workspace, session, last=count))
            missing = turns[0].seq - next_read if turns else 0
            if missing > 0:  # turns were appended during the read
                count += missing
                continue
            for turn in turns:
                self._take(turn)
            break
        now = ledger.head(workspace, session)
        self._forget(first_scanned(self._read))
        return now is not None and now.thread == self.thread

    def entries(self, session: str, limit: int) -> list[Entry]:
        """Return the `limit` exchanges that matter most, oldest first."""
        noted = [_notes_of(exchange) for exchange in self._closed]
        self._closed = list(noted)
        if self._open is not None:
            noted.append(_notes_of(self._open))
        candidates = [*_important_entries(noted, session), *self._pins(session)]
        best = sorted(candidates, key=lambda entry: (-entry.weight, -entry.seq))[: max(limit, 0)]
        return sorted(best, key=lambda entry: entry.seq)

    def _take(self, turn: Turn) -> None:
        added = turn.messages
        if turn.seq <= self._read:
            added = turn.messages[max(self._messages - turn.first, 0) :]
            if not added:
                return
        self._read, self._messages = turn.seq, turn.first + len(turn.messages)
        if turn.type == "compaction":
            summaries = (message for message in turn.messages if is_summary(message))
            self.summaries += [
                Summary(turn.compaction, turn.seq, turn.created, summary_of(summary_message))
                for summary_message in summaries
            ]
        elif turn.type == "undo":
            names = [summary.compaction for summary in self.summaries]
            if turn.compaction in names:
                del self.summaries[names.index(turn.compaction) :]
        else:
            for message in added:
                self._hear(message, turn)

    def _hear(self, message: Message, turn: Turn) -> None:
        if message.role != "tool" and self._begins(message, turn):
            if self._open is not None:
                self._closed.append(self._open)
            self._open = _Exchange(turn.seq, turn.created, [])
        self._role = message.role
        if self._open is not None:
            self._open.messages.append(message)

    def _begins(self, message: Message, turn: Turn) -> bool:
        """Whether the message, which is not a tool's result, begins an exchange."""
        if self._open is None:
            return True
        asks = message.role == "user" and self._role != "user"
        apart = turn.seq // TURNS_TOGETHER != self._open.seq // TURNS_TOGETHER
        return asks or apart or len(self._open.messages) >= LONGEST

    def _forget(self, first_seq: int) -> None:
        self._closed = [exchange for exchange in self._closed if exchange.seq >= first_seq]
        if self._open is not None and self._open.seq < first_seq:
            self._open = None

    def _pins(self, session: str) -> list[Entry]:
        """The pins of the last summary."""
        if not self.summaries:
            return []
        last_summary = self.summaries[-1]
        return [
            Entry(session, last_summary.seq, last_summary.created, pin, weight=PINNED)
            for pin in pins_in(last_summary.text)
        ]


def first_scanned(seq: int) -> int:
    """Return the number of the first turn that is read in a thread of `seq` turns. It is the first of a group
    of TURNS_TOGETHER turns.
    """
    return max((seq - SCANNED) // TURNS_TOGETHER * TURNS_TOGETHER, 1)


def _notes_of(exchange: ExchangeNotes | _Exchange) -> ExchangeNotes:
    if isinstance(exchange, ExchangeNotes):
        return exchange
    return note(exchange.messages, seq=exchange.seq, created=exchange.created)


def note(messages: Sequence[Message], *, seq: int, created: str) -> ExchangeNotes:
    """Take notes of one exchange: the facts that matter later."""
    fresh = [message for message in messages if not is_summary(message)]
    facts = extract_facts(fresh)
    weight, notes = _spoken_notes(facts)
    changed = [item.text for item in facts.of("files") if item.weight > 1]
    if changed:
        weight += CHANGED
        notes += changed
    failures = facts.activity.failures
    if failures:
        weight += ERROR
        notes += [_error(failure.text, failure.where, resolved=failure.resolved) for failure in failures]
    pinned = [
        line("said", role=message.role, text=brief(text_of(message)))
        for message in fresh
        if _is_pinned(message)
    ]
    if pinned:
        weight += PINNED
    opening = [] if pinned or weight < IMPORTANT or facts.of("instructions") else _opening(fresh)
    notes = [*opening, *notes]
    failed: dict[str, tuple[str, ...]] = {}
    for failure in failures:
        if not failure.resolved:
            failed[failure.where] = (*failed.get(failure.where, ()), failure.text)
    fine = {run.command: run.outcome for run in facts.activity.runs if not run.failed}
    unique = dict.fromkeys([*pinned, *(brief(note_text, LONGEST_LINE) for note_text in notes)])
    subjects = {brief(note, LONGEST_LINE): subject for note, subject in _subjects(facts)}
    subjects |= {
        pin: subject
        for message, pin in zip(filter(_is_pinned, fresh), pinned, strict=True)
        if (subject := _named_subject(message))
    }
    return ExchangeNotes(
        seq,
        created,
        weight,
        tuple(unique)[:MOST_LINES],
        failed=failed,
        fine=fine,
        subjects=subjects,
        opening=tuple(opening),
    )


def _subjects(facts: Facts) -> Iterator[tuple[str, str]]:
    """The lines that have a subject, each with it."""
    for role, items in (("user", facts.of("instructions")), ("assistant", facts.of("decisions"))):
        for item in items:
            subject = subject_of(item.text)
            if subject is not None:
                yield line("said", role=role, text=item.text), subject


def _named_subject(message: Message) -> str | None:
    """The subject that a client names for a pinned message."""
    subject = message.meta.get("subject") if isinstance(message.meta, dict) else None
    return f"named {subject.strip().casefold()}" if isinstance(subject, str) and subject.strip() else None


class _Replaced(NamedTuple):
    """Lines by the place of their exchange: those that a later one replaced, and those that replaced one."""

    gone: set[tuple[int, str]]
    marked: dict[int, dict[str, str]]


def _replaced(noted: Sequence[ExchangeNotes]) -> _Replaced:
    """Find the lines that later lines replace (rule 4)."""
    result = _Replaced(set(), {})
    latest: dict[str, tuple[int, str]] = {}
    orders = line("said", role="user", text="")
    for index, exchange in enumerate(noted):
        for text in exchange.lines:
            subject = exchange.subjects.get(text)
            if subject is None:
                continue
            earlier_line = latest.get(subject)
            if (
                earlier_line is not None
                and earlier_line[1].startswith(orders)
                and not text.startswith(orders)
            ):
                continue
            latest[subject] = index, text
            if earlier_line is None or earlier_line == (index, text):
                continue
            result.gone.add(earlier_line)
            if earlier_line[1] != text:
                mark = line("replaces", text=text, turn=noted[earlier_line[0]].seq)
                result.marked.setdefault(index, {})[text] = mark
    return result


def _is_pinned(message: Message) -> bool:
    return isinstance(message.meta, dict) and message.meta.get("pinned") is True


def _spoken_notes(facts: Facts) -> tuple[float, list[str]]:
    """The weight of what was said, and its lines."""
    ordered = facts.of("instructions")
    decided = [item for item in facts.of("decisions") if item.weight >= _REPORT]
    weight = max((item.weight for item in ordered), default=0.0)
    if decided:
        weight += DECIDED if any(item.weight >= _DECISION for item in decided) else REPORTED
    notes = [line("said", role="user", text=item.text) for item in ordered]
    return weight, notes + [line("said", role="assistant", text=item.text) for item in decided]


def _opening(messages: Iterable[Message]) -> list[str]:
    """The beginning of an exchange, if none of the sentences that matter is the user's."""
    request = next((event.text for event in events_of(messages) if event.action == "execute"), "")
    if not request:
        return []
    return [line("said", role="user", text=brief(request, LONGEST_LINE // 2))]


def _error(text: str, where: str, *, resolved: bool) -> str:
    return lines()["resolved" if resolved else "unresolved"].format(error=text, where=where)


def _important_entries(noted: Sequence[ExchangeNotes], session: str) -> list[Entry]:
    """Make entries of the exchanges that matter; an error that a later one fixed is shown as resolved."""
    fails: dict[str, list[int]] = {}
    resolved: dict[int, dict[str, str]] = {}
    fixes: dict[int, list[str]] = {}
    for index, exchange in enumerate(noted):
        for command, outcome in exchange.fine.items():
            for earlier_index in fails.pop(command, ()):
                pairs = noted[earlier_index].failed[command]
                resolved.setdefault(earlier_index, {}).update(
                    (_error(text, command, resolved=False), _error(text, command, resolved=True))
                    for text in pairs
                )
                form = lines()["ran" if outcome else "silent"]
                fixes.setdefault(index, []).append(form.format(command=command, outcome=outcome))
        for command in exchange.failed:
            fails.setdefault(command, []).append(index)
    entries = []
    replaced = _replaced(noted)
    for index, exchange in enumerate(noted):
        replaced_lines = {
            brief(old_line, LONGEST_LINE): new_line for old_line, new_line in resolved.get(index, {}).items()
        }
        remaining_lines = [
            note_line for note_line in exchange.lines if (index, note_line) not in replaced.gone
        ]
        remaining_lines = (
            []
            if len(remaining_lines) < len(exchange.lines) and set(remaining_lines) <= set(exchange.opening)
            else remaining_lines
        )
        replaced_lines |= replaced.marked.get(index, {})
        notes = [
            *(replaced_lines.get(note_line, note_line) for note_line in remaining_lines),
            *dict.fromkeys(fixes.get(index, ())),
        ]
        weight = exchange.weight + (FIXED if index in fixes else 0)
        if weight >= IMPORTANT and notes:
            entries.append(Entry(session, exchange.seq, exchange.created, "\n".join(notes), weight=weight))
    return entries
