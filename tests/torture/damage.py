"""A damaged file: bits flipped, pages lost, swapped or old, the end cut off, something else in its place.

1. A ledger of a few hundred turns is damaged at random, then opened, read through, searched and written
   to by another process, which may neither hang nor end with anything but the ledger's own errors.
2. Damage is *noticed* if the ledger says so: it was fixed, or set aside as it was, under the path that
   the notice tells. The ledger that begins anew takes turns and keeps them.
3. *Harmless*: everything came back as it had been written. *Unseen*: no error, and yet something is
   missing or different, because SQLite's pages have no checksums: a flipped letter is a letter.
4. What was set aside is salvaged, and the turns that come back are counted.
"""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import NewTurn
from nexus_context.ledger.salvage import salvage
from nexus_context.ledger.store import Ledger
from torture.children import Child, Voice, children
from torture.failing import DEFECTS
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import MAIN, NAME, WORKSPACE, opened, turn, wrong_with

PAGE = 4096  # bytes
HEADER = 100  # bytes that say what the file is
TURNS = 300
LEAST_BYTES = (
    64 << 10
)  # of what was set aside; what is smaller holds next to nothing, and may be another file
PATIENCE_S = 30.0
PROBLEMS = ("hung", "died", "raised", "wrong")
WORDS = ("plan", "copper", '"were full"', "roof*", "t-17")

Damage = Callable[[bytearray, bytes, random.Random], None]


class Tally(msgspec.Struct):
    """What became of all trials."""

    ends: dict[str, int] = {}
    there: int = 0  # turns in the ledgers that were set aside
    salvaged: int = 0
    wrong: list[str] = []


def run(trials: int, seed: int = 1) -> Outcome:
    """So many damaged files, each kind of damage in turn."""
    watch, tally, dice = Watch(), Tally(), dice_of(seed)
    with tempfile.TemporaryDirectory(prefix="nexus-damage-") as root:
        original, older = _prepare(Path(root))
        for trial in range(trials):
            folder = Path(root) / f"trial-{trial}"
            folder.mkdir(mode=0o700)
            what = list(DAMAGES)[trial % len(DAMAGES)]
            data = bytearray(original)
            DAMAGES[what](data, older, dice)
            (folder / NAME).write_bytes(data)
            found = _trial(folder / NAME, bytes(data), tally)
            tally.wrong += [f"{what}, {trial}: {line}" for line in found]
            shutil.rmtree(folder)
    share = tally.salvaged / tally.there if tally.there else 1.0
    figures = (
        Figure("damaged files", trials),
        *(Figure(end, tally.ends.get(end, 0)) for end in ENDS),
        Figure("hung, or ended by another error", tally.ends.get("hung", 0), at_most=0),
        Figure("turns salvaged of what was set aside", 100 * share, "%"),
        nothing_wrong(tally.wrong),
    )
    return Outcome("damaged file", figures, tuple(tally.wrong), seconds=watch.seconds)


ENDS = (
    "noticed: set aside, a new one begun",
    "noticed: fixed",
    "noticed: refused as newer or foreign, untouched",
    "noticed: an error says what cannot be read",
    "harmless: all as it was written",
    "unseen: something is different",
)


def _prepare(root: Path) -> tuple[bytes, bytes]:
    """The file of a ledger, and the same file some turns before."""
    path = root / "original" / NAME
    contents = []
    for half in range(2):
        with opened(path) as ledger:
            for number in range(half * TURNS // 2, (half + 1) * TURNS // 2):
                ledger.append(WORKSPACE, MAIN, _sent(number))
            ledger.fork(WORKSPACE, MAIN, f"fork-{half}")
        contents.append(path.read_bytes())
    return contents[1], contents[0]


def _sent(number: int) -> NewTurn:
    """The turns that are written: short and long ones, of one to four messages."""
    return turn(f"t-{number}", words=1_500 if number % 10 == 5 else 30, parts=1 + number % 3)


# ------------------------------------------------------------ kinds of damage


def _bits(data: bytearray, _: bytes, dice: random.Random) -> None:
    for _each in range(dice.choice((1, 3, 30, 300))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _garbage(data: bytearray, _: bytes, dice: random.Random) -> None:
    for _each in range(dice.choice((1, 5))):
        page = dice.randrange(len(data) // PAGE) * PAGE
        data[page : page + PAGE] = dice.randbytes(PAGE)


def _zeros(data: bytearray, _: bytes, dice: random.Random) -> None:
    page = dice.randrange(len(data) // PAGE) * PAGE
    data[page : page + PAGE] = bytes(PAGE)


def _cut(data: bytearray, _: bytes, dice: random.Random) -> None:
    del data[dice.randrange(2, len(data)) :]


def _grown(data: bytearray, _: bytes, dice: random.Random) -> None:
    data += dice.randbytes(dice.randrange(1, 3 * PAGE))


def _swapped(data: bytearray, _: bytes, dice: random.Random) -> None:
    a, b = (page * PAGE for page in dice.sample(range(len(data) // PAGE), 2))
    data[a : a + PAGE], data[b : b + PAGE] = data[b : b + PAGE], data[a : a + PAGE]


def _old(data: bytearray, older: bytes, dice: random.Random) -> None:
    page = dice.randrange(len(older) // PAGE) * PAGE
    data[page : page + PAGE] = older[page : page + PAGE]


def _header(data: bytearray, _: bytes, dice: random.Random) -> None:
    for _each in range(dice.choice((1, 4, HEADER))):
        data[dice.randrange(HEADER)] = dice.randrange(256)


def _other(data: bytearray, _: bytes, dice: random.Random) -> None:
    data[:] = dice.choice(
        (b"xy", b"# Notes\n" * 1_000, b"\x89PNG\r\n\x1a\n" + dice.randbytes(5_000), b"\n" * 99)
    )


DAMAGES: dict[str, Damage] = {
    "bits flipped": _bits,
    "a page of garbage": _garbage,
    "a page of zeros": _zeros,
    "the end cut off": _cut,
    "garbage at the end": _grown,
    "pages swapped": _swapped,
    "a page of before": _old,
    "a damaged header": _header,
    "something else": _other,
}


# ------------------------------------------------------------ one trial


def _trial(path: Path, damaged: bytes, tally: Tally) -> Iterator[str]:
    """Uses a damaged ledger, in a process that may be killed; what was wrong."""
    with children() as start:
        child: Child = start(use, str(path))
        said = {words[0]: words[1:] for words in child.finish(PATIENCE_S)}
    end = _end(path, said)
    tally.ends[end] = tally.ends.get(end, 0) + 1
    for word in PROBLEMS:
        if word in said:
            yield " ".join([word, *said[word]])
    if end == ENDS[2] and path.read_bytes() != damaged:
        yield "refused, and touched"
    if end == ENDS[0]:
        aside = Path(said["aside"][0])
        if aside.read_bytes() != damaged:
            yield "what was set aside is not what was found"
        yield from _salvage(aside, damaged, tally)
    if "written" in said:
        yield from _wrong_again(path)


def _salvage(aside: Path, damaged: bytes, tally: Tally) -> Iterator[str]:
    """Brings back what was set aside, if there is anything in it; what was wrong with that."""
    with children() as start:
        said = start(bring_back, str(aside), str(aside.parent / "salvaged" / NAME)).finish(PATIENCE_S)
    yield from (f"salvage: {' '.join(words)}" for words in said if words[0] in PROBLEMS)
    if aside.read_bytes() != damaged:
        yield "salvage: what was set aside is not what it was"
    if len(damaged) >= LEAST_BYTES:
        tally.there += TURNS
        tally.salvaged += sum(int(words[1]) for words in said if words[0] == "whole")


def _end(path: Path, said: dict[str, list[str]]) -> str:
    if any(word in said for word in PROBLEMS[:3]):
        return "hung"
    if "refused" in said:
        return ENDS[2]
    if "notice" in said:
        return ENDS[0] if "aside" in said else ENDS[1]
    if "unreadable" in said:
        return ENDS[3]
    return ENDS[4] if said.get("turns") == ["same"] else ENDS[5]


def _wrong_again(path: Path) -> Iterator[str]:
    """The next process finds what was written after the damage."""
    with opened(path) as ledger:
        if not ledger.find(WORKSPACE, "after"):
            yield "what was written after the damage is lost"
        else:
            yield from wrong_with(ledger, "after", {"after": 1}, {"after"})


def use(voice: Voice, path: str) -> None:
    """Opens, reads, searches and writes, and says what came of it."""
    try:
        ledger = open_ledger(path, environ={})
        same = _reads(voice, ledger)
        if _again(lambda: ledger.append(WORKSPACE, "after", turn("after")).head.seq == 1) is None:
            voice.say("wrong", "nothing can be written, again and again")
        voice.say("written")
        voice.say("turns", "same" if same else "different")
        _tell(voice, ledger, path)
        ledger.close()
    except LedgerError as error:
        voice.say(
            "refused" if error.code in ("ledger-newer", "ledger-foreign") else "wrong", error.code, error
        )
    except DEFECTS as error:
        voice.say("raised", f"{error!r:.300}")


def _reads(voice: Voice, ledger: Ledger) -> bool:
    """Whether everything is as it was."""
    read = [_again(lambda name=name: _same(ledger, name)) for name in (MAIN, "fork-0", "fork-1")]  # type: ignore[misc]
    read += [_again(lambda word=word: bool(ledger.pages.search(word))) for word in WORDS]  # type: ignore[misc]
    if None in read:
        voice.say("unreadable")
    return all(read)


def _again(work: Callable[[], bool]) -> bool | None:
    """Tried again where damage was found: by then it is fixed, or another ledger begun. None: it was not."""
    for _ in range(3):
        try:
            return work()
        except LedgerError as error:
            if error.code != "ledger-corrupt":
                raise
    return None


def _same(ledger: Ledger, name: str) -> bool:
    """Whether a session has the turns that were written, word for word."""
    if ledger.find(WORKSPACE, name) is None:
        return False
    count = TURNS // 2 if name == "fork-0" else TURNS
    found = list(ledger.turns(WORKSPACE, name))
    history = ledger.history(WORKSPACE, name)
    sent = map(_sent, range(count))
    wanted = [tuple(each.message for each in one.messages) for one in sent]
    flat = [message for messages in wanted for message in messages]
    return [each.messages for each in found] == wanted and (
        [held.message for held in history.messages] if history else []
    ) == flat


def _tell(voice: Voice, ledger: Ledger, path: str) -> None:
    if ledger.notice is None:
        return
    voice.say("notice", ledger.notice.replace("\n", " "))
    aside = [word.strip(".,:;()") for word in ledger.notice.split() if word.startswith(f"{path}.broken-")]
    if aside:
        voice.say("aside", aside[0])
    if "set aside" in ledger.notice and not (aside and Path(aside[0]).exists()):
        voice.say("wrong", "the notice does not tell the path:", ledger.notice)


def bring_back(voice: Voice, aside: str, path: str) -> None:
    """Salvages into a new ledger, and says how many turns came back word for word."""
    written = [tuple(one.message for one in _sent(number).messages) for number in range(TURNS)]
    whole = {msgspec.json.encode(messages) for messages in written}
    known = {msgspec.json.encode(message) for messages in written for message in messages}
    with opened(path) as ledger:
        try:
            salvage(aside, ledger)
        except LedgerError as error:
            voice.say("refused", error.code, error)
            return
        came = [
            each.messages
            for session in ledger.sessions()
            for each in ledger.turns(session.workspace, session.name)
            if each.type == "query"
        ]
        voice.say("whole", len(whole & {msgspec.json.encode(messages) for messages in came}))
        changed = {msgspec.json.encode(message) for messages in came for message in messages} - known
        if changed:
            voice.say("wrong", len(changed), "messages are not what was written")
