"""A conversation that two threads use at once says so; threads that take turns do not notice."""

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Request
from support.fixture import write_fixture
from support.folders import load_folder
from support.histories import Letters

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Slow(Letters):
    """A counter that waits in the middle of a count."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.go_on = threading.Event(), threading.Event()

    def count(self, text: str) -> int:
        self.began.set()
        assert self.go_on.wait(10)
        return super().count(text)


USES: list[Callable[[ContextManager], Any]] = [
    lambda chat: chat.add_user_message("b"),
    lambda chat: chat.add([Message("user", "b")]),
    lambda chat: chat.build_messages(),
    lambda chat: chat.get_token_usage(),
    lambda chat: chat.is_over_budget(),
    lambda chat: chat.compact(made_at=NOW),
    lambda chat: chat.undo_compaction(),
    lambda chat: chat.clear_messages(),
    lambda chat: chat.set_system_prompt("Be brief."),
    lambda chat: chat.set_tool_definitions([{"name": "look"}]),
    lambda chat: chat.apply_compaction(Message("user", "sum"), []),
]


@pytest.mark.parametrize("use", USES)
def test_a_second_thread_is_told(use: Callable[[ContextManager], Any]) -> None:
    counter = Slow()
    chat = ContextManager(counter=counter)
    chat.add_user_message("a")
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(chat.get_token_usage)
        assert counter.began.wait(10)
        with pytest.raises(RequestError, match="Another thread is using this conversation") as refused:
            use(chat)
        counter.go_on.set()
        assert counting.result()["messages"] == Letters().count_messages([Message("user", "a")])
    assert refused.value.code == "concurrent-use"
    chat.add_user_message("b")
    assert [message.content for message in chat.messages] == ["a", "b"]


def test_an_assembly_is_one_use(tmp_path: Path) -> None:
    snapshot = load_folder(write_fixture("//- /home/a/NEXUS.md\nBe brief.\n", tmp_path), "/home/a")
    counter, chat = Slow(), ContextManager()
    chat.add_user_message("a")
    with ThreadPoolExecutor(1) as pool:
        request = Request(message=Message("user", "b"))
        assembling = pool.submit(assemble, snapshot, chat, request, now=NOW, counter=counter)
        assert counter.began.wait(10)
        with pytest.raises(RequestError, match="Another thread"):
            assemble(snapshot, chat, request, now=NOW)
        counter.go_on.set()
        assert assembling.result().usage.total > 0


def test_six_threads_lose_no_token_in_silence() -> None:
    chat = ContextManager(counter=Letters())
    added = []

    def add(number: int) -> None:
        for at in range(200):
            try:
                chat.add_user_message(f"message {number} {at}")
                added.append(1)
            except RequestError as error:
                assert error.code == "concurrent-use"

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(chat) == len(added)
    assert chat.history.tokens(chat.counter) == Letters().count_messages(chat.messages)


def test_threads_that_take_turns_do_not_notice() -> None:
    chat, lock = ContextManager(counter=Letters()), threading.Lock()

    def add(number: int) -> None:
        for at in range(50):
            with lock:
                chat.add_user_message(f"message {number} {at}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(6)))
    assert len(chat) == 300


def test_an_error_leaves_it_to_the_next_thread() -> None:
    chat = ContextManager()
    with pytest.raises(RequestError, match="of the type int"):
        chat.add([Message("user", 5)])  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(chat.add_user_message, "a").result()
    assert len(chat) == 1


def test_a_copy_is_used_by_itself() -> None:
    chat = ContextManager(counter=Letters())
    chat.add_user_message("a")
    with chat.in_use:
        other = copy.deepcopy(chat)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other.add_user_message, "b").result()
    assert [message.content for message in other.messages] == ["a", "b"]
    assert [message.content for message in chat.messages] == ["a"]
