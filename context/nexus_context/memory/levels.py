"""Reads the four levels of memory from a ledger (SPEC §9).

    L1  the newest messages of a session
    L2  the turns of a session that matter (`working`)
    L3  the summaries of a session's compactions; if it has none, a summary of its old turns, extracted on
        request
    L4  all sessions of the workspace: the results of a query, or their latest summaries

1. L1 to L3 are read from one session if it is named, otherwise from the sessions that changed last. L4 always
   covers all sessions.
2. The results are cached, and only new turns are read. The ledger decides whether a cached result is still
   valid.
3. A search finds the messages that have all words of a query. If there is none, it finds those that have most
   of the longer words. Tool results come last, and only on request.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeVar

import msgspec

from nexus_context.conversation.compaction.extractive import summary as extractive_summary
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.summary import is_summary, summary_of
from nexus_context.ledger.records import Head, Hit, Session
from nexus_context.ledger.store import Ledger
from nexus_context.memory.events import memory_messages
from nexus_context.memory.item import brief, line
from nexus_context.memory.working import Entry, Summary, WorkingMemory
from nexus_context.text.decoding import convert_to
from nexus_context.tokens import SimpleTokenCounter

SESSIONS = 5
"""Sessions that are read if none is named, or for their summaries."""
FOUND = 100
"""Hits that a search requests; the best are used."""
FOLLOWED = 32
"""Sessions whose working memory is kept."""
PICKED = 600
"""Estimated tokens of the summary of a session without compactions."""
PICKED_FROM = 128
"""Turns at its end that such a summary covers."""
WORDS = 6
"""Words of a query that are searched for one by one if no message has all of them."""
NEWEST = 6
"""Messages that such a summary leaves out, since L1 has them."""
LONGEST_SUMMARY = 6_000
"""Characters of a summary."""
_SPARE = 8  # extra turns, since compactions and undos have no messages here
_TRIES = 3

_T = TypeVar("_T")


Level = Literal["L1", "L2", "L3", "L4"]


class MemorySettings(msgspec.Struct, frozen=True):
    """How much of memory comes with a message. A limit of 0 switches its level off."""

    l1_messages: int = 6  # newest messages of the session, which are always included
    l2_limit: int = 20  # important turns that the working memory keeps
    l3_limit: int = 10  # summaries that are kept
    levels: tuple[Level, ...] = ("L1",)  # that come with a message
    events: int = 12  # newest events that come with a message


def settings_of(section: Mapping[str, Any]) -> MemorySettings:
    """Return the settings in a checked section of config.json, completed by the defaults."""
    values = {
        name: section[name] for name in MemorySettings.__struct_fields__ if section.get(name) is not None
    }
    return convert_to(values, MemorySettings)


class Levels:
    """Reads the memory of all sessions of a ledger. Any thread may call its methods, which may block on the
    disk.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock = threading.Lock()
        self._working: dict[tuple[str, str], WorkingMemory] = {}
        self._picked: dict[tuple[str, str], tuple[Head, Summary | None]] = {}

    def over(self, ledger: Ledger) -> "Levels":
        """Return these levels over another connection to the same ledger. Both share one cache."""
        levels = Levels(ledger)
        levels._lock, levels._working, levels._picked = self._lock, self._working, self._picked
        return levels

    def recent(self, workspace: str, session: str | None, *, limit: int) -> list[Entry]:
        """Return L1: the newest `limit` messages, oldest first, without tool results."""
        return [
            Entry(entry.session, entry.seq, entry.created, _spoken_line(message))
            for entry, message in self.newest(workspace, session, limit=limit)
        ]

    def newest(self, workspace: str, session: str | None, *, limit: int) -> list[tuple[Entry, Message]]:
        """Return the entries that `recent` returns, each with its message."""
        names = self._names(workspace, session)[:1]
        if limit <= 0 or not names:
            return []
        for turn_count in (limit + _SPARE, 8 * (limit + _SPARE)):
            entries = [
                (Entry(names[0], turn.seq, turn.created, _spoken_line(message)), message)
                for turn in self.ledger.turns(workspace, names[0], last=turn_count)
                if turn.type == "query"
                for message in memory_messages(turn.messages)
            ]
            if len(entries) >= limit:
                break
        return entries[-limit:]

    def important(self, workspace: str, session: str | None = None, *, limit: int) -> list[Entry]:
        """Return L2: the `limit` exchanges that matter most, oldest first within each session."""
        return self._from_sessions(
            workspace, session, limit, lambda name, count: self._important(workspace, name, count)
        )

    def summaries(self, workspace: str, session: str | None = None, *, limit: int) -> list[Entry]:
        """Return L3: the newest `limit` summaries, oldest first within each session."""
        return self._from_sessions(
            workspace, session, limit, lambda name, count: self._summaries(workspace, name, count)
        )

    def across(
        self,
        workspace: str,
        query: str | None = None,
        *,
        limit: int,
        only: str | None = None,
        besides: str | None = None,
        results: bool = True,
    ) -> list[Entry]:
        """Return L4: search all sessions if there is a `query`, else list the sessions' latest summaries.

        With a `query`, return its hits, best first. `only` restricts the search to one session, and `results`
        says whether tool results are searched, too. Without a query, return the latest summary of each
        session except `besides`, beginning with the session that changed last.
        """
        if query is not None and query.strip():
            hits = self._search(workspace, query, only, FOUND if limit > 0 else 0)
            spoken = [hit for hit in hits if hit.role != "tool"]
            returned = [hit for hit in hits if hit.role == "tool"] if results else []
            return [
                Entry(hit.session, hit.seq, hit.created, line("said", role=hit.role, text=brief(hit.snippet)))
                for hit in [*spoken, *returned][: max(limit, 0)]
            ]
        max_sessions = min(max(limit, 0), SESSIONS)
        entries: list[Entry] = []
        for name in self._names(workspace, only, besides=besides)[:max_sessions]:
            entries += self._summaries(workspace, name, 1)
        return entries

    def sessions(self, workspace: str) -> list[Session]:
        """Return the sessions of a workspace. The one that changed last comes first."""
        return self.ledger.sessions(workspace)

    # ------------------------------------------------------------ inside

    def _names(self, workspace: str, session: str | None, *, besides: str | None = None) -> list[str]:
        if session is not None:
            return [session] if self.ledger.find(workspace, session) is not None else []
        return [
            stored_session.name
            for stored_session in self.ledger.sessions(workspace)
            if stored_session.name != besides
        ][:SESSIONS]

    def _from_sessions(
        self, workspace: str, session: str | None, limit: int, read: Callable[[str, int], list[Entry]]
    ) -> list[Entry]:
        """`read(session, limit)` of each session, the latest first, until there are enough entries."""
        entries: list[Entry] = []
        for name in self._names(workspace, session):
            if len(entries) >= limit:
                break
            entries += read(name, limit - len(entries))
        return entries

    def _important(self, workspace: str, session: str, limit: int) -> list[Entry]:
        return self._read(workspace, session, lambda working: working.entries(session, limit)) or []

    def _summaries(self, workspace: str, session: str, limit: int) -> list[Entry]:
        if limit <= 0:
            return []
        read = self._read(workspace, session, lambda working: list(working.summaries))
        summaries = read or self._other_summaries(workspace, session)
        return [
            Entry(session, summary.seq, summary.created, brief(summary.text, LONGEST_SUMMARY))
            for summary in summaries[-limit:]
        ]

    def _read(self, workspace: str, session: str, use: Callable[[WorkingMemory], _T]) -> _T | None:
        """What `use` returns for the up-to-date working memory of a session; None without such a session."""
        for _ in range(_TRIES):
            head = self.ledger.head(workspace, session)
            if head is None:
                self._forget((workspace, session))
                return None
            working = self._followed((workspace, session), head.thread)
            with working.lock:
                if working.follow(self.ledger, workspace, session, head):
                    return use(working)
        return None  # it restarts again and again: there is nothing to remember yet

    def _followed(self, key: tuple[str, str], thread: str) -> WorkingMemory:
        with self._lock:
            working = self._working.pop(key, None)
            if working is None or working.thread != thread:
                working = WorkingMemory(thread)
            self._working[key] = working  # the last used one is the last
            if len(self._working) > FOLLOWED:
                del self._working[next(iter(self._working))]
            return working

    def _forget(self, key: tuple[str, str]) -> None:
        """Drop everything about a deleted session."""
        with self._lock:
            self._working.pop(key, None)
            self._picked.pop(key, None)

    def _other_summaries(self, workspace: str, session: str) -> list[Summary]:
        """The summary in force of a compaction that is too old to be scanned; else an extracted one."""
        history = self.ledger.history(workspace, session, tokens=0)
        if history is None:
            return []
        if history.compaction is not None:
            summaries = (stored.message for stored in history.messages if is_summary(stored.message))
            return [
                Summary(history.compaction, 0, "", summary_of(message)) for message in islice(summaries, 1)
            ]
        key, head = (workspace, session), history.head
        picked = self._picked.get(key)
        if picked is None or picked[0] != head:
            picked = (head, self._pick(workspace, session))
            with self._lock:
                self._picked.pop(key, None)
                self._picked[key] = picked
                if len(self._picked) > FOLLOWED:
                    del self._picked[next(iter(self._picked))]
        return [picked[1]] if picked[1] is not None else []

    def _pick(self, workspace: str, session: str) -> Summary | None:
        """A summary of the turns before the newest messages."""
        turns = [
            turn for turn in self.ledger.turns(workspace, session, last=PICKED_FROM) if turn.type == "query"
        ]
        messages = [message for turn in turns for message in turn.messages]
        text = extractive_summary(messages[:-NEWEST], SimpleTokenCounter(), limit=PICKED)
        return Summary(None, turns[-1].seq, turns[-1].created, text) if text and turns else None

    def _search(self, workspace: str, query: str, session: str | None, limit: int) -> list[Hit]:
        if not limit:
            return []

        def find(words: str) -> list[Hit]:
            return self.ledger.pages.search(words, workspace=workspace, session=session, limit=limit)

        hits = find(query)
        words = [] if hits else _telling_words(query)
        if len(words) < 2:
            return hits
        hit_by_place: dict[tuple[str, int, int], Hit] = {}
        points: dict[tuple[str, int, int], float] = {}
        for word in words:
            for rank, hit in enumerate(find(f'"{word}"')):
                key = (hit.session, hit.seq, hit.position)
                hit_by_place.setdefault(key, hit)
                points[key] = points.get(key, 0.0) + 1 - rank / (limit + 1) / 2
        best = sorted(hit_by_place, key=lambda key: (-points[key], key))
        return [hit_by_place[key] for key in best[:limit]]


def session_names(sessions: Sequence[Session], most: int = 8) -> str:
    """Return the names of the first `most` sessions for an error message, and the number of the others."""
    names = [repr(session.name) for session in sessions[:most]]
    hidden_count = len(sessions) - len(names)
    return ", ".join(names) + (f" and {hidden_count} more" if hidden_count > 0 else "") if names else "none"


def _telling_words(query: str) -> list[str]:
    """The longest significant words of a query, in its order."""
    from nexus_context.memory.knowledge.terms import query_terms  # rarely needed

    words = query_terms(query)
    best = set(sorted(words, key=lambda word: (-len(word), word))[:WORDS])
    return [word for word in words if word in best]


def _spoken_line(message: Message) -> str:
    return line("said", role=message.role, text=brief(text_of(message)))
