"""Indexes parts of words, for scripts without spaces between words.

Text is split so that every part of a run can be found (`split_runs`, `phrase`):

1. A run is a maximal sequence of characters of such a script. It is indexed as its pairs of neighbors and its
   last character: `漢字テスト` as `漢字 字テ テス スト ト`.
2. A part of a run is a phrase of pairs: `字テス` is `字テ テス`. A single character is a prefix: `字*`.
3. Other words of the same message are indexed beside the runs, so that `python` finds `Pythonで`.
4. Characters are NFKC: half-width and full-width forms, and combining accents, are equal.
5. Only messages with a run are split; the index of all others is not affected.

The index is filled for messages that an earlier version wrote (`fill`):

6. New messages are indexed with their turn. Older ones are indexed in steps, newest thread first. Each step
   is a transaction, so that other writers run in between.
7. Steps are taken for a short time at each opening and before each search. Until the index is complete, older
   messages are found by whole words only.
"""

import re
import time
import unicodedata
from collections.abc import Callable

import apsw

from nexus_context.ledger.rows import value

STEP = 500
"""Most messages per transaction."""
LONGEST = 1 << 20
"""Characters per transaction after which it ends."""

_BELOW = "SELECT below FROM part_missing"
# a damaged page may hold a text that is NULL, whatever the column's constraint says
_OLD = """
SELECT id, ifnull(CAST(said AS BLOB), x'') FROM message
WHERE id < ? AND NOT EXISTS (SELECT 1 FROM part_docsize WHERE part_docsize.id = message.id)
ORDER BY id DESC LIMIT ?
"""

_SCRIPTS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Lao
    "\u0f40-\u0fbc"  # Tibetan
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9ef\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7fb"  # Hangul: particles follow words without a space
    "\u1780-\u17d3"  # Khmer
    "\u1950-\u19df\u1a20-\u1aad"  # Tai
    "\u1b05-\u1b4c\ua984-\ua9c0"  # Balinese, Javanese
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uffdc"  # Kana, and half-width forms
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_RUN = re.compile(f"[{_SCRIPTS}]+")


def is_whole(connection: apsw.Connection) -> bool:
    """Whether the index has all messages that belong in it."""
    return not value(connection, _BELOW)


def fill(connection: apsw.Connection) -> bool:
    """Index some more messages in the caller's transaction. Return whether there are more to index."""
    next_below = value(connection, _BELOW)
    if not next_below:
        return False
    parts: list[tuple[int, str]] = []
    count = size = last_rowid = 0
    rows = connection.execute(_OLD, (next_below, STEP))
    for last_rowid, text in rows:
        count += 1
        if (part := from_bytes(text)) is not None:
            parts.append((last_rowid, part))
            size += len(part)
            if size > LONGEST:
                rows.close()
                break
    connection.executemany("INSERT INTO part (rowid, said) VALUES (?, ?)", parts)
    next_below = last_rowid if count == STEP or size > LONGEST else 0
    connection.execute("UPDATE part_missing SET below = ?", (next_below,))
    return bool(next_below)


def fill_for(seconds: float, step: Callable[[], bool]) -> None:
    """Call `step` until it returns False or the time is up."""
    until = time.monotonic() + seconds
    while step() and time.monotonic() < until:
        pass


def fill_anew(connection: apsw.Connection) -> None:
    """Rebuild the whole index in the caller's transaction."""
    connection.execute("INSERT INTO part (part) VALUES ('delete-all')")
    connection.execute("UPDATE part_missing SET below = (SELECT ifnull(max(id) + 1, 0) FROM message)")
    while fill(connection):
        pass


def split_runs(text: str) -> str | None:
    """Return the text of a message as it is indexed. Return None if it has no run."""
    if text.isascii() or _RUN.search(text) is None:
        return None
    return _RUN.sub(lambda run: f" {_pairs(run[0], is_last=True)} ", unicodedata.normalize("NFKC", text))


def phrase(text: str) -> tuple[str, bool]:
    """Return the search phrase for a part of a message. Also return whether the last word of the phrase is a
    prefix.
    """
    normal = unicodedata.normalize("NFKC", text).replace('"', " ")
    pieces = _RUN.sub(lambda run: f" {_pairs(run[0], is_last=run.end() < len(normal))} ", normal)
    return pieces.strip(), bool(_RUN.search(normal[-1:])) and not _RUN.search(normal[-2:-1])


def from_bytes(data: bytes) -> str | None:
    """Do the same as `split_runs` for UTF-8 that may be damaged."""
    return None if data.isascii() else split_runs(data.decode(errors="replace"))


def _pairs(run: str, *, is_last: bool) -> str:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return " ".join([*pairs, run[-1]] if is_last or not pairs else pairs)
