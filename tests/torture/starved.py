"""Compactions of a session to which other windows append as fast as they can.

1. A process appends through the library and another window through a daemon of its own, without a pause.
2. The library compacts: it reads the history, takes its time for the summary, and puts the compaction in
   force. Then a second daemon compacts again and again.
3. Each compaction succeeds at the first try.
4. No turn is lost, and each summary stands for the messages that its receipt says and for no others: what was
   appended while it was written follows it.
"""

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Counted, NewCompaction, Turn
from nexus_context.ledger.store import Ledger
from support.client import ReplyError
from support.editor import Editor
from support.talk import user
from support.waiting import block_until
from torture.children import Voice, children
from torture.figures import Figure, Outcome, Watch, nothing_wrong
from torture.ledgers import MAIN, NAME, key_of, opened, turn

SUMMARY_S = 0.05  # that a summary of the library takes: dozens of turns are appended meanwhile
BETWEEN_S = 0.05  # so that there is something to compact again
PATIENCE_S = 120.0
WORDS = 40  # of a turn
SETTINGS = '{"provider": {"model": "gpt-4o"}, "context": {"max_tokens": 4000, "reserve_tokens": 200}}'
ENDLESS = 10**9


def run(compactions: int) -> Outcome:
    """So many compactions by the library, and as many by a daemon."""
    watch = Watch()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nexus-starved-") as root:
        home, folder = Path(root) / "home", Path(root) / "work"
        (folder / ".nexus3").mkdir(parents=True)
        (folder / ".nexus3" / "config.json").write_text(SETTINGS, encoding="utf-8")
        path, workspace = str(home / "state" / NAME), os.path.realpath(folder)
        with Editor(home) as compacting, Editor(home) as appending, children() as start:
            compacting.hello(folder)
            appending.hello(folder)
            appending.ask("session/append", folder, messages=[user("first")])
            child = start(write_on, path, workspace)
            with _appending(appending, folder) as keys, opened(path) as ledger:
                block_until(lambda: len(child.hear()) >= 20)
                begun = len(child.hear()) + len(keys)
                refused = list(_compact_by_library(ledger, workspace, compactions))
                refused += _compact_by_daemon(compacting, folder, compactions)
                appended = len(child.hear()) + len(keys) - begun
            child.kill()
            acknowledged = {words[1] for words in child.hear() if words[0] == "ack"} | set(keys)
            wrong += [" ".join(words) for words in child.hear() if words[0] != "ack"]
            for editor in (compacting, appending):
                editor.goodbye()
        with opened(path) as ledger:
            turns = list(ledger.turns(workspace, MAIN))
            left = _held(turns, wrong)
            history = ledger.history(workspace, MAIN)
            positions = [held.position for held in history.messages] if history else []
        if positions != left:
            wrong.append("the history is not what its compactions leave")
    made = sum(each.type == "compaction" for each in turns)
    lost = acknowledged - {key_of(each) for each in turns if each.type == "query"}
    figures = (
        Figure("compactions, half by the library and half by a daemon", 2 * compactions),
        Figure("turns that other windows appended meanwhile", appended, at_least=compactions),
        Figure("compactions refused", len(refused), at_most=0),
        Figure("compactions in force", made, at_least=2 * compactions, at_most=2 * compactions),
        Figure("acknowledged turns lost", len(lost), at_most=0),
        nothing_wrong(wrong),
    )
    return Outcome("starved compaction", figures, tuple(refused + wrong), seconds=watch.seconds)


def write_on(voice: Voice, path: str, workspace: str) -> None:
    """Appends until it is killed, without a pause; says each turn."""
    with opened(path) as ledger:
        for number in range(ENDLESS):
            ledger.append(workspace, MAIN, turn(f"child-{number}", words=WORDS))
            voice.say("ack", f"child-{number}")


@contextlib.contextmanager
def _appending(editor: Editor, folder: Path) -> Iterator[list[str]]:
    """A window that appends until the end of the block; the keys of what was acknowledged."""
    keys: list[str] = []
    ends = threading.Event()

    def append() -> None:
        while not ends.is_set():
            key = f"window-{len(keys)}"
            editor.ask("session/append", folder, messages=[user(f"{key} " + "word " * WORDS)])
            keys.append(key)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        yield keys
    finally:
        ends.set()
        thread.join(PATIENCE_S)


def _compact_by_library(ledger: Ledger, workspace: str, count: int) -> Iterator[str]:
    """Compacts; what was refused."""
    for number in range(count):
        time.sleep(BETWEEN_S)
        history = ledger.history(workspace, MAIN)
        assert history is not None
        messages = history.messages
        half = len(messages) // 2
        kept = tuple((held.position, held.position + 1) for held in messages[half:])
        time.sleep(SUMMARY_S)
        asked = NewCompaction(
            id=f"library-{number}",
            seq=history.head.seq,
            thread=history.head.thread,
            summary=Counted(Message("user", f"[CONTEXT SUMMARY]\nNumber {number}."), 5),
            counter="words",
            kept=kept,
            receipt={"replacedMessages": half},
        )
        try:
            ledger.compact(workspace, MAIN, asked)
        except LedgerError as error:
            yield f"compaction {number} of the library: {error}"


def _compact_by_daemon(editor: Editor, folder: Path, count: int) -> Iterator[str]:
    for number in range(count):
        time.sleep(BETWEEN_S)
        try:
            editor.ask("session/compact", folder)
        except (ReplyError, TimeoutError) as error:
            yield f"compaction {number} of the daemon: {str(error) or 'no answer'}"


def _held(turns: list[Turn], wrong: list[str]) -> list[int]:
    """The positions that the history holds, as the turns tell; what a compaction took beside is wrong."""
    held: list[int] = []
    position = 0
    for each in turns:
        if each.type == "compaction":
            kept = [place for first, after in each.kept for place in range(first, after)]
            receipt = msgspec.to_builtins(each.receipt)
            count = receipt.get("replacedMessages")
            if kept != held[count:]:
                wrong.append(f"{each.compaction} stands for {count} messages, and took others or more")
            held = [position, *kept]
        else:
            held += range(position, position + len(each.messages))
        position += len(each.messages)
    return held
