"""A conversation far longer than any window: what a request takes does not depend on its length.

And an export with tens of thousands of compactions and undos, which is read and imported in linear time.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nexus_context.assistants.importing import importers, jsonl
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.ledger import open_ledger
from nexus_context.ledger.location import workspace_of
from nexus_context.ledger.records import Counted, NewTurn, Turn
from nexus_context.tokens import get_token_counter
from support.editor import Editor, uri_of
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import NAME, WORKSPACE, opened

MESSAGE = 4_000  # characters
COMPACTIONS = 400  # for each megabyte: 40,000 beside 100 MB
FIRST_S, SECOND_S, OTHER_S = 15.0, 5.0, 5.0  # on a machine with other work; the figures are the point
COMPACTED_S = 30.0
PATIENCE_S = 120.0
CREATED = "2026-01-01T00:00:00.000Z"
SETTINGS = (
    '//- /NAME/.nexus3/config.json\n{"provider": {"model": "gpt-4o"}, "compaction": {"enabled": COMPACTS}}\n'
)
ENCODING = "o200k_base"


def run(megabytes: int, seed: int = 1) -> Outcome:
    """A conversation of so many megabytes in a daemon, and an export with compactions in proportion."""
    watch = Watch()
    wrong: list[str] = []
    figures = [Figure("conversation", megabytes, "MB")]
    with tempfile.TemporaryDirectory(prefix="nexus-long-") as root:
        for shape, compacts in (
            ("turns", False),
            ("turns", True),
            ("one turn", True),
            ("strangely counted", True),
        ):
            figures += assembled(Path(root), shape, megabytes, seed, wrong, compacts=compacts)
    compactions = COMPACTIONS * megabytes
    read_s, written_s = compacted(compactions)
    figures += [
        Figure("export with compactions, all taken back", compactions),
        Figure("it is read", read_s, "s", at_most=COMPACTED_S),
        Figure("it is imported", written_s, "s", at_most=COMPACTED_S),
        nothing_wrong(wrong),
    ]
    return Outcome("long conversations", tuple(figures), tuple(wrong), seconds=watch.seconds)


def assembled(
    root: Path, shape: str, megabytes: int, seed: int, wrong: list[str], *, compacts: bool
) -> Iterator[Figure]:
    """Times of a first and a second turn, and of a request about another folder while the first is made."""
    name = f"{shape.replace(' ', '-')}-{compacts}"
    with Editor(root / name) as editor:
        settings = SETTINGS.replace("COMPACTS", str(compacts).lower())
        here, there = (
            editor.tree(settings.replace("NAME", folder)).path(f"/{folder}") for folder in ("here", "there")
        )
        ledger = open_ledger(environ={"NEXUS_STATE": str(editor.home / "state")})
        counter = "another" if shape == "strangely counted" else ENCODING
        ledger.import_turns(workspace_of(here), "main", _turns(shape, megabytes, counter, seed))
        ledger.close()
        editor.hello(here, there)
        editor.ask("context/usage", there)  # loads the vocabulary
        began = time.perf_counter()
        first = editor.send_request("nexus/context/assemble", _params(here))
        other = editor.send_request(
            "nexus/context/usage", {"workspaceFolder": uri_of(there), "session": "other"}
        )
        editor.wait_reply(other, PATIENCE_S)
        other_s = time.perf_counter() - began
        made = editor.wait_reply(first, PATIENCE_S)
        first_s = time.perf_counter() - began
        began = time.perf_counter()
        again = editor.wait_reply(editor.send_request("nexus/context/assemble", _params(here)), PATIENCE_S)
        second_s = time.perf_counter() - began
        wrong += _wrong_with(shape, made, compacts=compacts) + _wrong_with(shape, again, compacts=False)
        editor.stop()
    what = f"{shape}, {'compacted' if compacts else 'cut'}"
    yield Figure(f"{what}: first assemble", first_s, "s", at_most=FIRST_S)
    yield Figure(f"{what}: second assemble", second_s, "s", at_most=SECOND_S)
    yield Figure(f"{what}: another folder's usage meanwhile", other_s, "s", at_most=OTHER_S)


def compacted(count: int) -> tuple[float, float]:
    """Seconds to read an export with so many compactions and as many undos, and to import it."""
    text = "".join(jsonl.lines("compacted", _compactions(count)))
    began = time.perf_counter()
    contents = importers.read(text.encode(), "/x/compacted.jsonl")
    read_s = time.perf_counter() - began
    assert not contents.problems, contents.problems
    with tempfile.TemporaryDirectory(prefix="nexus-long-") as root, opened(Path(root) / NAME) as ledger:
        began = time.perf_counter()
        importer = importers.Importer(ledger, WORKSPACE, lambda _: get_token_counter())
        (added,) = [importer.add(found) for found in contents.sessions]
        written_s = time.perf_counter() - began
        assert added.turns == 2 * count + 1, added
        history = ledger.history(WORKSPACE, added.session)
        assert history is not None and history.compaction is None
    return read_s, written_s


def _turns(shape: str, megabytes: int, counter: str, seed: int) -> Iterator[NewTurn]:
    dice = dice_of(seed)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(3_000)]

    def text() -> str:
        said = " ".join(dice.choices(words, k=MESSAGE // 6))
        return f"{said[:MESSAGE]}. You must never edit src/{dice.choice(words)}/{dice.choice(words)}.py."

    groups = (
        (
            Message("user" if shape != "one turn" or number == 0 else "assistant", text()),
            Message(
                "assistant", text()[: MESSAGE // 4], (ToolCall(f"c{number}", "bash", {"command": "make"}),)
            ),
            Message("tool", text(), tool_call_id=f"c{number}"),
        )
        for number in range(megabytes * 1_000_000 // (2 * MESSAGE + MESSAGE // 4))
    )
    turns = groups if shape != "one turn" else [tuple(message for group in groups for message in group)]
    for turn in turns:
        counted = (Counted(message, len(str(message.content)) // 4 + 10) for message in turn)
        yield NewTurn(messages=tuple(counted), counter=counter)


def _compactions(count: int) -> Iterator[Turn]:
    said = (Message("user", "Go."), Message("assistant", "Gone."))
    yield Turn(id="", seq=1, type="query", created=CREATED, tokens=0, messages=said)
    for number in range(count):
        yield Turn(
            id="",
            seq=2 + number,
            type="compaction",
            created=CREATED,
            tokens=0,
            messages=(Message("user", f"[CONTEXT SUMMARY]\n{number}"),),
            compaction=f"c{number}",
            receipt={},
            kept=((0, 1),),
        )
    for number in reversed(range(count)):
        yield Turn(id="", seq=2, type="undo", created=CREATED, tokens=0, messages=(), compaction=f"c{number}")


def _params(folder: str) -> dict[str, Any]:
    return {"workspaceFolder": uri_of(folder), "message": {"role": "user", "content": "Go on."}}


def _wrong_with(shape: str, reply: dict[str, Any], *, compacts: bool) -> list[str]:
    """What is wrong with a turn: it must fit, its rows must sum to its total, and what is unread is said."""
    if "error" in reply:
        return [f"{shape}: {reply['error']}"]
    usage, metadata = reply["result"]["usage"], reply["result"]["metadata"]
    wrong = []
    if sum(row["tokens"] for row in usage["rows"]) != usage["total"]:
        wrong.append(f"{shape}: the rows do not sum to {usage['total']}")
    if usage["total"] > usage["available"]:
        wrong.append(f"{shape}: {usage['total']} of {usage['available']} tokens")
    receipt = metadata.get("compaction", {}).get("receipt")
    if compacts and receipt is None:
        wrong.append(f"{shape}: not compacted: {metadata.get('compaction')}")
    if receipt is not None and not 0 < receipt.get("unreadMessages", 0) < receipt["replacedMessages"]:
        wrong.append(f"{shape}: {receipt.get('unreadMessages')} messages are said to be unread")
    return wrong
