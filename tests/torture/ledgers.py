"""A turn that tells its key; what is wrong with a ledger, said turn by turn."""

import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from zlib import crc32

import apsw

from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewCompaction, NewTurn, Ranges, Turn
from nexus_context.ledger.store import Ledger

WORKSPACE = "/torture"
MAIN = "main"
NAME = "ledger.db"
LONG_EVERY = 5
LONG_WORDS = 4_000  # some 25 kB: several pages, and the log is soon folded into the file
_WORDS = [
    "the",
    "plan",
    "changed",
    "because",
    "disk",
    "and",
    "window",
    "were",
    "full",
    "when",
    "it",
    "rained",
    "on",
    "copper",
    "rooftops",
]


def opened(path: str | Path) -> contextlib.closing[Ledger]:
    """The ledger at a path; closed at the end."""
    return contextlib.closing(open_ledger(str(path), environ={}))


def turn(key: str, *, words: int = 12, parts: int = 1) -> NewTurn:
    """A turn whose first message begins with its key; with more parts, a call and its results beside it."""
    text = " ".join(_WORDS[(len(key) + place) % len(_WORDS)] for place in range(words))
    messages = [Message("user", f"{key} {text}")]
    if parts > 1:
        calls = tuple(ToolCall(f"{key}-{n}", "read", {"path": f"/src/{n}.py"}) for n in range(1, parts))
        messages.append(Message("assistant", None, tool_calls=calls))
        messages += [Message("tool", text, tool_call_id=call.id) for call in calls]
    counted = tuple(Counted(message, 5 + words) for message in messages)
    return NewTurn(messages=counted, counter="words", key=key)


def parts_of(key: str) -> int:
    """How many parts the turn with this key has, whoever sends it, however often."""
    return 1 + crc32(key.encode()) % 4


def words_of(key: str) -> int:
    """How many words the turn with this key has, whoever sends it: a turn that is sent again is the same."""
    return LONG_WORDS if int(key.rpartition("-")[2]) % LONG_EVERY == 0 else 1 + crc32(key.encode()) // 4 % 40


def compaction(id_: str, seq: int, kept: Ranges = ()) -> NewCompaction:
    """A compaction of all turns up to `seq`, the last one."""
    summary = Counted(Message("user", "[CONTEXT SUMMARY]\nIt rained."), 5)
    return NewCompaction(id=id_, seq=seq, summary=summary, counter="words", kept=kept, receipt={"lost": []})


def key_of(found: Turn) -> str:
    """The key that `turn` was given; what a compaction or an undo is called by its type."""
    return text_of(found.messages[0]).partition(" ")[0] if found.type == "query" else found.type


def wrong_with(
    ledger: Ledger, session: str, acknowledged: Mapping[str, int], sent: Collection[str] | None = None
) -> list[str]:
    """What is wrong with a session, each in a line: nothing, if all is well.

    `acknowledged`: the keys that have to be there, each at its `seq`. `sent`: no others may be.
    """
    found = list(ledger.turns(WORKSPACE, session)) if ledger.find(WORKSPACE, session) else []
    keys = [key_of(each) for each in found if each.type == "query"]
    places = {key_of(each): each.seq for each in found if each.type == "query"}
    wrong = [f"{session}: {key} was acknowledged and is lost" for key in acknowledged if key not in places]
    wrong += [
        f"{session}: {key} was acknowledged as {seq} and is {places[key]}"
        for key, seq in acknowledged.items()
        if places.get(key, seq) != seq
    ]
    if [each.seq for each in found] != list(range(1, len(found) + 1)):
        wrong.append(f"{session}: numbers of turns have gaps or double: {_gaps(found)}")
    if len(keys) != len(places):
        twice = sorted({key for key in keys if keys.count(key) > 1})
        wrong.append(f"{session}: twice: {', '.join(twice)}")
    if sent is not None:
        wrong += [f"{session}: {key} is there and nobody sent it" for key in places if key not in sent]
    return wrong + list(_wrong_head(ledger, session, found))


def _wrong_head(ledger: Ledger, session: str, found: list[Turn]) -> Iterator[str]:
    head = ledger.head(WORKSPACE, session)
    if head is None:
        if found:
            yield f"{session}: has turns and no head"
        return
    messages = sum(len(each.messages) for each in found if each.type == "query")
    messages += sum(1 for each in found if each.type == "compaction")  # its summary
    told = (head.seq, head.messages, head.turn)
    true = (len(found), messages, found[-1].id if found else None)
    if told != true:
        yield f"{session}: the head says {told}, the turns {true}"
    if any(each.type != "query" for each in found):
        return  # a history after a compaction does not begin at 0
    history = ledger.history(WORKSPACE, session)
    positions = [held.position for held in history.messages] if history else []
    if positions != list(range(messages)):
        yield f"{session}: positions of messages have gaps or double"
    if history and sum(held.tokens for held in history.messages) != head.tokens:
        yield f"{session}: the head's tokens are not those of its messages"


def _gaps(found: list[Turn]) -> str:
    jumps = [f"{a.seq} → {b.seq}" for a, b in itertools.pairwise(found) if b.seq != a.seq + 1]
    return ", ".join(jumps[:5]) or f"begins with {found[0].seq}"


def damage_in(path: str | Path) -> list[str]:
    """What SQLite's own check, of the full-text index too, finds in a file; nothing if it is sound."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        with contextlib.closing(connection):
            said = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            said += [
                f"row without its parent: {row}" for row in connection.execute("PRAGMA foreign_key_check")
            ]
    except apsw.Error as error:
        return [f"integrity_check: {error}"]
    return [f"integrity_check: {line}" for line in said if line != "ok"]


def unfound(ledger: Ledger, keys: Collection[str]) -> list[str]:
    """The keys that the search does not find."""
    return [
        f"{key} is not found by the search"
        for key in keys
        if not ledger.pages.search(f'"{key}"', workspace=WORKSPACE, limit=3)
    ]
