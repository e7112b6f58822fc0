"""The context of a task: its order, what leaves first, sources that fail."""

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.store import Ledger
from nexus_context.memory import knowledge, node_messages
from nexus_context.memory.bus import EventBus
from nexus_context.memory.events import Event
from nexus_context.memory.levels import Levels
from nexus_context.memory.task_context import (
    EventBusContextSource,
    MemoryContextSource,
    Task,
    TaskContextManager,
    message_of_task,
)
from nexus_context.tokens import get_token_counter
from support.ledgers import turn_of

FOLDER = "/home/a"
GO = Task(parameters={"content": "Go."}, target_agent="me", session_id="main")


class Letters:
    """A counter: a token a character."""

    def count_messages(self, messages: Iterable[Message]) -> int:
        return sum(len(text_of(message)) for message in messages)


class Memory:
    """A source with these messages."""

    name = "test"

    def __init__(self, *texts: str, direct: Iterable[str] = (), fails: bool = False) -> None:
        self._texts = texts
        self._direct = direct
        self._fails = fails

    def messages(self, task: Task) -> list[Message]:
        if self._fails:
            raise LedgerError("The disk failed.", code="ledger-io")
        return [Message("user", text) for text in self._texts]

    def direct_messages(self, task: Task) -> list[DirectMessage]:
        fields: Any = {"workspace": FOLDER, "source": "a", "target": "me", "now": 0.0}
        return [
            node_messages.make(content=text, priority=1 - number / 10, **fields)
            for number, text in enumerate(self._direct)
        ]


class Answers:
    """A knowledge base that answers in time."""

    async def query(self, text: str) -> list[str]:
        return [f"About {text}"]


def check(expected: list[str], *sources: Any, task: Task = GO, **options: Any) -> None:
    """The messages: `role: text`, in order."""
    manager = TaskContextManager(token_counter=Letters(), sources=sources, **options)
    messages = asyncio.run(manager.build_context(task))
    assert [f"{message['role']}: {message['content']}" for message in messages] == expected


ALL: dict[str, Any] = {"system_prompt": "S", "knowledge_base": Answers()}
DIRECT = "user: From a, priority 1:\nd"
KNOWLEDGE = "system: ## From the knowledge base\n\nAbout Go."


@pytest.mark.parametrize(
    ("max_tokens", "expected"),
    [
        (4000, ["system: S", DIRECT, "user: 1", "user: 2", KNOWLEDGE, "user: Go."]),
        (64, ["system: S", DIRECT, "user: 1", "user: 2", KNOWLEDGE, "user: Go."]),
        (63, ["system: S", DIRECT, "user: 2", KNOWLEDGE, "user: Go."]),
        (62, ["system: S", DIRECT, KNOWLEDGE, "user: Go."]),
        (61, ["system: S", DIRECT, "user: Go."]),
        (25, ["system: S", DIRECT, "user: Go."]),
        (24, ["system: S", "user: Go."]),
        (4, ["system: S", "user: Go."]),
    ],
)
def test_what_does_not_fit_leaves_in_order(max_tokens: int, expected: list[str]) -> None:
    check(expected, Memory("1", "2", direct=["d"]), max_tokens=max_tokens, **ALL)


def test_what_must_be_sent_does_not_fit() -> None:
    with pytest.raises(RequestError) as refusal:
        check([], max_tokens=3, **ALL)
    assert str(refusal.value) == (
        "The system prompt and the task need 4 tokens; max_tokens is 3. Shorten them, or raise max_tokens."
    )
    assert refusal.value.code == "context-overflow"


@given(st.lists(st.text("abc", min_size=1, max_size=9), max_size=9), st.integers(3, 60))
def test_the_newest_stay_and_the_limit_holds(texts: list[str], max_tokens: int) -> None:
    manager = TaskContextManager(token_counter=Letters(), sources=[Memory(*texts)], max_tokens=max_tokens)
    messages = [one["content"] for one in asyncio.run(manager.build_context(GO))]
    assert messages == [*texts[len(texts) - len(messages) + 1 :], "Go."]
    assert sum(map(len, messages)) <= max_tokens
    if len(messages) <= len(texts):
        assert sum(map(len, messages)) + len(texts[-len(messages)]) > max_tokens


def test_sources_do_not_repeat_each_other_and_one_that_fails_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        check(
            ["user: a", "user: a", "user: b", "user: Go."],
            Memory("a", "a"),
            Memory(fails=True),
            Memory("a", "b"),
        )
    assert caplog.messages == ["The source test failed: The disk failed."]


class Silent:
    """A source and a knowledge base that raises anything, or never answers."""

    name = "silent"

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self._end = threading.Event()

    def messages(self, task: Task) -> list[Message]:
        if self._error is not None:
            raise self._error
        self._end.wait()
        return []

    def direct_messages(self, task: Task) -> list[DirectMessage]:
        return []

    async def query(self, text: str) -> list[str]:
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()
        return []

    def end(self) -> None:
        """Let the threads end that wait."""
        self._end.set()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no vectors"), "failed: no vectors"),
        (ZeroDivisionError(), "failed: ZeroDivisionError"),
        (TimeoutError("the socket"), "failed: the socket"),
        (None, "did not answer within 0.01 seconds."),
    ],
)
def test_a_source_that_fails_or_hangs_costs_its_own_part(error: Exception | None, said: str) -> None:
    silent = Silent(error)
    manager = TaskContextManager(
        token_counter=Letters(),
        sources=[silent, Memory("a")],
        knowledge_base=silent,
        source_seconds=10 if error else 0.01,
    )
    messages = asyncio.run(manager.build_context(GO))
    silent.end()
    assert [message["content"] for message in messages] == ["a", "Go."]
    assert manager.problems == (f"The source silent {said}", f"The knowledge base {said}")


def test_passages_that_are_computed_while_they_are_read_do_not_stop_the_loop() -> None:
    end = threading.Event()

    class Lazy:
        def query(self, text: str) -> Iterator[str]:
            end.wait()
            yield "late"

    async def story() -> list[dict[str, Any]]:
        manager = TaskContextManager(token_counter=Letters(), knowledge_base=Lazy(), source_seconds=0.01)
        messages = await manager.build_context(GO)
        assert manager.problems == ("The knowledge base did not answer within 0.01 seconds.",)
        return messages

    messages = asyncio.run(story())
    end.set()
    assert len(messages) == 1


def test_a_source_that_ends_the_program_does_not() -> None:
    class Leaves(Memory):
        def messages(self, task: Task) -> list[Message]:
            raise SystemExit("bye")

    manager = TaskContextManager(token_counter=Letters(), sources=[Leaves()])
    assert len(asyncio.run(manager.build_context(GO))) == 1
    assert manager.problems == ("The source test failed: SystemExit: bye",)


def test_a_result_that_is_no_list_of_passages_is_a_failure() -> None:
    class Odd:
        def query(self, text: str) -> Any:
            return 5

    manager = TaskContextManager(token_counter=Letters(), knowledge_base=Odd())
    assert len(asyncio.run(manager.build_context(GO))) == 1
    assert manager.problems == ("The knowledge base failed: 'int' object is not iterable",)


def test_a_text_alone_is_one_passage() -> None:
    class Plain:
        def query(self, text: str) -> str:
            return "Use tabs."

    manager = TaskContextManager(token_counter=Letters(), knowledge_base=Plain())
    known, _ = asyncio.run(manager.build_context(GO))
    assert "Use tabs." in known["content"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_passage_that_is_none_is_a_failure(is_async: bool) -> None:
    class Odd:
        def query(self, text: str) -> Any:
            return asyncio.sleep(0, [5]) if is_async else [5]

    manager = TaskContextManager(token_counter=Letters(), knowledge_base=Odd())
    assert len(asyncio.run(manager.build_context(GO))) == 1
    assert [problem[:26] for problem in manager.problems] == ["The knowledge base failed:"]


def test_an_index_is_a_knowledge_base(tmp_path: Path) -> None:
    (tmp_path / "data.md").write_text("# Prices\n\nThe file data.txt has one price per line.\n")
    index = knowledge.KnowledgeIndex(str(tmp_path / "knowledge.db"))
    knowledge.refresh(index, knowledge.settings_for(str(tmp_path / "data.md")))
    task = Task(parameters={"content": "Read file data.txt"})
    for counter in (Letters(), get_token_counter()):
        manager = TaskContextManager(token_counter=counter, knowledge_base=index)
        system, _ = asyncio.run(manager.build_context(task))
        assert "one price per line" in system["content"]
    assert manager.problems == ()
    index.close()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task(action="node.thinking", parameters={"content": "Hm."}), Message("assistant", "Hm.")),
        (Task(parameters={"content": "Read X"}), Message("user", "Read X")),
        (
            Task(action="node.tool_call", parameters={"tool_name": "read", "arguments": {"path": "x"}}),
            Message("assistant", '[Calling read({"path":"x"})]'),
        ),
        (Task(action="node.tool_result", parameters={"content": "long"}), None),
        (Task(action="node.error", parameters={"content": "long"}), None),
    ],
)
def test_a_task_as_a_message(task: Task, message: Message | None) -> None:
    assert message_of_task(task) == message
    if message is None:
        with pytest.raises(RequestError) as refusal:
            check([], task=task)
        assert refusal.value.code == "bad-task"


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "content"),
        ({"content": "x", "priority": 2}, "priority"),
        ({"content": "x", "ttl_seconds": 0}, "ttl"),
    ],
)
def test_a_direct_message_that_is_not_valid_names_the_field(parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as refusal:
        message_of_task(
            Task(action="node.message", source_agent="a", target_agent="b", parameters=parameters)
        )
    assert (refusal.value.code, str(refusal.value).split()[0]) == ("bad-message", field)


def test_memory_and_events_of_the_session(ledger: Ledger) -> None:
    for session in ("main", "other"):
        for number in range(8):
            turn = Message("user", f"Never push page {number} of {session}."), Message("assistant", "Yes.")
            ledger.append(FOLDER, session, turn_of(*turn, tokens=5))
    ledger.messages.send(
        node_messages.make(workspace=FOLDER, source="a", target="me", content="Hurry.", now=2e9)
    )
    bus = EventBus()
    bus.publish(FOLDER, [Event(action="thinking", text=text, session=text) for text in ("main", "other")])
    bus.publish(FOLDER, [Event(action="thinking", text="hidden", session="main", agent="another")])
    important = [f"user: Never push page {number} of main." for number in range(5)]
    check(
        [
            "user: From a:\nHurry.",
            "system: ## From this workspace's conversations\n\n" + "\n\n".join(important),
            *(
                text
                for number in range(5, 8)
                for text in (f"user: Never push page {number} of main.", "assistant: Yes.")
            ),
            "assistant: main",
            "user: Go.",
        ],
        MemoryContextSource(Levels(ledger), workspace=FOLDER),
        EventBusContextSource(bus, workspace=FOLDER),
    )
