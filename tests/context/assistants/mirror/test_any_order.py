"""Whatever a program and the user do between the runs: nothing is lost, and nothing is there twice."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexus_context.assistants.importing import importers
from nexus_context.assistants.mirror import excerpts, mirror_files
from nexus_context.conversation.message import Message, text_of
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.ledger.store import Ledger
from support.assistant_logs import FOLDER, ClaudeLog, CodexLog, use

STEPS = st.lists(
    st.sampled_from(
        ("ask", "answer", "call", "half", "note", "keep", "keep", "back", "compact", "cut", "mine", "touch")
    ),
    max_size=25,
)


class Program:
    """Claude Code, as far as it writes; `texts` are those in its file now."""

    def __init__(self, home: Path) -> None:
        self.log = ClaudeLog(home, "s1")
        self.number = 0
        self.ends: list[Any] = []  # the last records of turns
        self.log.user("Begin")

    def step(self, step: str) -> None:
        self.number += 1
        log, text = self.log, f"{step} {self.number}"
        if step == "ask":
            self.ends.append(log.last)
            log.user(text)
        elif step == "answer":
            log.answer(text)
        elif step == "call":
            calls = [f"c{self.number}", f"d{self.number}"]
            log.answer(text, *map(use, calls))
            for call in calls:
                log.result(call, f"{text} {call}")
        elif step == "half":
            log.answer(text, message=f"h{self.number}")
            self.keep_between()
            log.answer(use(f"h{self.number}"), message=f"h{self.number}")
            self.keep_between()
            log.result(f"h{self.number}", f"{text} result")
        elif step == "note":  # the user's own command; what follows may follow what was before it
            self.ends.append(log.last)
            log.put("system", subtype="local_command", content=text)
        elif step == "back" and self.ends:
            log.user(text, parent=self.ends[self.number % len(self.ends)])
        elif step == "compact":
            log.put("system", subtype="compact_boundary", parent=None, logicalParentUuid=log.last)
            log.user(text, isCompactSummary=True)
        elif step == "touch":
            log.path.touch()

    def keep_between(self) -> None:
        """Replaced by the test."""


@contextmanager
def places() -> Iterator[tuple[Path, Ledger]]:
    with TemporaryDirectory() as root:
        ledger = open_ledger(f"{root}/ledger.db")
        yield Path(root, "home"), ledger
        ledger.close()


def texts_of(turns: Any) -> list[str]:
    return [text for turn in turns for message in turn.messages if (text := text_of(message))]


def calls_of(turns: Any) -> list[str]:
    return [call.id for turn in turns for message in turn.messages for call in message.tool_calls]


@settings(deadline=None, max_examples=60)
@given(STEPS)
@example(["ask", "ask", "back", "keep", "cut"])  # what the user had left before the first run comes back
@example(["answer", "note", "ask", "back", "keep", "cut"])  # within what follows a request
def test_nothing_is_lost_and_nothing_is_doubled(steps: list[str]) -> None:
    with places() as (home, ledger):
        program = Program(home)
        mine: list[str] = []
        everything: set[str] = set()  # that was ever in the live conversation when it was kept

        def keep() -> None:
            summary = mirror_files(ledger, str(home), {})
            assert [file.failure for file in summary.files if file.failure] == []
            entire = importers.read(program.log.path.read_bytes(), "s1.jsonl").sessions
            current = texts_of(entire[0].turns) if entire else []
            everything.update(current)
            sessions = [list(ledger.turns(FOLDER, one.name)) for one in ledger.sessions(FOLDER)]
            kept = [texts_of(turns) for turns in sessions]
            # no session says anything twice, and one has what the file has now
            assert all(max(Counter(texts).values(), default=1) == 1 for texts in kept)
            assert all(max(Counter(calls_of(turns)).values(), default=1) == 1 for turns in sessions)
            assert everything | set(mine) == {text for texts in kept for text in texts}
            wanted = [text for text in current if text not in mine]
            assert any(texts[: len(wanted)] == wanted for texts in kept) or not wanted

        program.keep_between = keep  # type: ignore[method-assign]
        for step in steps:
            if step == "keep":
                keep()
            elif step == "cut":
                data = program.log.path.read_bytes()
                lines = data.splitlines(keepends=True)
                if len(lines) > 3:
                    program.log.path.write_bytes(b"".join(lines[:-1]))
                    keep()
                    program.log.path.write_bytes(data)
            elif step == "mine" and ledger.sessions(FOLDER):
                mine.append(f"mine {len(mine)}")
                message = Counted(Message("user", mine[-1]), 1)
                name = ledger.sessions(FOLDER)[0].name
                ledger.append(FOLDER, name, NewTurn(messages=(message,), counter="c"))
            else:
                program.step(step)
        keep()
        sessions = len(ledger.sessions(FOLDER))
        keep()
        assert len(ledger.sessions(FOLDER)) == sessions
        assert ledger.upkeep.verify().sound


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(("user", "answer", "call", "keep")), max_size=40), st.booleans())
def test_a_file_in_pieces_is_the_file_as_a_whole(steps: list[str], is_codex: bool) -> None:
    with places() as (home, ledger), pytest.MonkeyPatch.context() as patch:
        patch.setattr(excerpts, "WHOLE", 1)
        patch.setattr(excerpts, "PIECE", 3_000)
        log: Any = CodexLog(home, "r1") if is_codex else ClaudeLog(home, "s1")
        log.user("Begin")
        for number, step in enumerate(steps):
            text = f"{step} {number} " + "x" * 200
            if step == "user":
                log.user(text)
            elif step == "answer":
                log.answer(text)
            elif step == "keep":
                mirror_files(ledger, str(home), {})
            elif is_codex:
                log.call(f"c{number}")
                log.result(f"c{number}", text)
            else:
                log.answer(use(f"c{number}"))
                log.result(f"c{number}", text)
        mirror_files(ledger, str(home), {})
        (entire,) = importers.read(log.path.read_bytes(), "x.jsonl").sessions
        (session,) = ledger.sessions(FOLDER)
        stored = list(ledger.turns(FOLDER, session.name))
        assert texts_of(stored) == texts_of(entire.turns)
        assert calls_of(stored) == calls_of(entire.turns)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(("user", "answer", "back", "keep", "cut")), max_size=20))
@example(["user", "answer", "user", "back", "keep", "cut"])  # a record that takes two turns back is cut off
def test_turns_that_codex_took_back_are_kept_when_they_return(steps: list[str]) -> None:
    with places() as (home, ledger):
        log = CodexLog(home, "r1")
        log.user("Begin")
        everything: set[str] = set()  # that was ever in the live conversation when it was kept

        def keep() -> None:
            summary = mirror_files(ledger, str(home), {})
            assert [file.failure for file in summary.files if file.failure] == []
            entire = importers.read(log.path.read_bytes(), "x.jsonl").sessions
            current = texts_of(entire[0].turns) if entire else []
            everything.update(current)
            kept = [texts_of(ledger.turns(FOLDER, session.name)) for session in ledger.sessions(FOLDER)]
            assert everything == {text for texts in kept for text in texts}
            assert any(texts[: len(current)] == current for texts in kept) or not current

        for number, step in enumerate(steps):
            if step == "user":
                log.user(f"user {number}")
            elif step == "answer":
                log.answer(f"answer {number}")
            elif step == "back":
                log.put("event_msg", type="thread_rolled_back", num_turns=1 + number % 2)
            elif step == "keep":
                keep()
            else:
                data = log.path.read_bytes()
                log.path.write_bytes(b"".join(data.splitlines(keepends=True)[:-1]))
                keep()
                log.path.write_bytes(data)
        keep()
