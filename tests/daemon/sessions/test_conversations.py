"""The conversations in memory: one user at a time, the ones that were used last, and what only they know."""

import asyncio

import pytest

from nexus_context.errors import RequestError
from nexus_context.ledger.records import Head
from nexus_daemon import protocol
from nexus_daemon.sessions import conversations
from nexus_daemon.sessions.budget_warning import budget_warning
from nexus_daemon.sessions.conversations import MOST_KEYS, Answer, Conversation, Conversations, SessionState
from support.waiting import yield_to_loop


class Window:
    """A client of the conversations."""


WINDOW = Window()


@pytest.mark.parametrize(
    ("uses", "kept"),
    [
        ([], []),
        ([("a", True)], ["a"]),
        ([("a", False)], []),
        ([("a", True), ("b", True), ("a", True)], ["b", "a"]),
        ([("a", True), ("a", False)], []),
        ([("a", True), ("b", True), ("c", True), ("d", True)], ["b", "c", "d"]),
        ([("a", True), ("b", True), ("c", True), ("a", True), ("d", True)], ["c", "a", "d"]),
    ],
)
def test_the_ones_that_were_used_last_are_kept(
    uses: list[tuple[str, bool]], kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions are used one after the other, each there in the ledger or not."""
    monkeypatch.setattr(conversations, "MOST_IN_MEMORY", 3)
    folder = Conversations()

    async def run() -> None:
        for session, there in uses:
            async with folder.using(session, by=WINDOW) as conversation:
                conversation.state = SessionState(head=Head("t", "t1", 1, 2) if there else None)

    asyncio.run(run())
    assert list(folder) == kept


def test_one_that_is_used_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_IN_MEMORY", 1)

    async def run() -> None:
        folder = Conversations()
        async with (
            folder.using("a", by=WINDOW) as first,
            folder.using("b", by=WINDOW),
            folder.using("c", by=WINDOW),
        ):
            assert folder.peek("a") is first
            assert len(folder) == 3
        assert len(folder) == 0

    asyncio.run(run())


def test_who_waits_has_it_in_the_order_in_which_he_asked() -> None:
    async def run() -> None:
        folder = Conversations()
        order: list[int] = []

        async def use(number: int) -> None:
            async with folder.using("x", by=WINDOW) as conversation:
                order.append(number)
                await yield_to_loop()
                conversation.state = SessionState(head=None if number % 2 else Head("t"))
                assert order[-1] == number

        await asyncio.gather(*map(use, range(6)))
        assert order == list(range(6))
        with pytest.raises(ZeroDivisionError):
            async with folder.using("x", by=WINDOW):
                raise ZeroDivisionError
        assert len(folder) == 0

    asyncio.run(run())


def test_reading_does_not_begin_a_conversation() -> None:
    folder = Conversations()
    assert folder.peek("x").manager.messages == []
    assert len(folder) == 0


def test_old_keys_are_forgotten() -> None:
    conversation = Conversation("x")
    conversation.add_answer("first", Answer("x", "t1"), 1)
    conversation.add_answer(None, Answer("x", "t2"), 1)
    assert conversation.answer_for("first", 1) == Answer("x", "t1")
    assert conversation.answer_for(None, 1) is None
    with pytest.raises(RequestError) as refused:
        conversation.answer_for("first", 2)
    assert refused.value.code == "key-reused"
    for number in range(MOST_KEYS):
        conversation.add_answer(str(number), Answer("x", "t3"), 1)
    assert conversation.answer_for("first", 1) is None
    assert conversation.answer_for("0", 1) is not None


@pytest.mark.parametrize(
    ("percents", "told"),
    [
        ([10, 74.9], []),
        ([75, 80, 89.9], [75]),
        ([76, 91, 90, 96, 120], [76, 91, 96]),
        ([99], [99]),
    ],
)
def test_each_threshold_is_told_once(percents: list[float], told: list[float]) -> None:
    conversation = Conversation("x")
    warnings = [budget_warning(conversation, "a", USAGE, percent=percent) for percent in percents]
    assert [float(one.message.split(" fills ")[1].split(" %")[0]) for one in warnings if one] == told
    conversation.changed()
    assert budget_warning(conversation, "a", USAGE, percent=99) is not None


def test_who_lends_a_conversation_has_it_back_before_he_goes_on_cancelled_or_not() -> None:
    steps: list[str] = []

    async def lender(folder: Conversations) -> None:
        async with folder.using("a", by=WINDOW) as conversation:
            try:
                async with conversation.unlocked():
                    steps.append("lent")
                    await asyncio.Event().wait()
            finally:
                steps.append(f"back, {'locked' if conversation.lock.locked() else 'not locked'}")

    async def borrower(folder: Conversations, done: asyncio.Event) -> None:
        async with folder.using("a", by=WINDOW):
            steps.append("borrowed")
            await done.wait()
            steps.append("returned")

    async def run() -> None:
        folder, done = Conversations(), asyncio.Event()
        first = asyncio.create_task(lender(folder))
        await yield_to_loop()
        second = asyncio.create_task(borrower(folder, done))
        await yield_to_loop(5)
        for _ in range(2):
            first.cancel()
            await yield_to_loop(5)
        done.set()
        await asyncio.wait([first, second])
        assert (first.cancelled(), second.exception(), list(folder)) == (True, None, [])

    asyncio.run(run())
    assert steps == ["lent", "borrowed", "returned", "back, locked"]


USAGE = protocol.TokenUsage(
    model="m",
    limit=10,
    limit_known=True,
    reserved=0,
    available=10,
    total=9,
    remaining=1,
    percent=90,
    over=False,
    counter=protocol.Counter("c", exact=True),
    rows=[],
)


def test_a_turn_under_way_belongs_to_the_window_that_requested_it() -> None:
    async def run() -> None:
        folder, other = Conversations(), Window()
        async with folder.using("a", by=WINDOW) as conversation:
            conversation.state = SessionState(head=Head("t", "t1", 1, 2))
            mine = conversation.turn
            mine.handed_out = {"main": ("m",)}
        async with folder.using("a", by=other) as conversation:
            yours = conversation.turn
            assert yours is not mine
            async with conversation.unlocked(), folder.using("a", by=WINDOW) as same:
                assert same.turn is mine
            assert conversation.turn is yours
            assert conversation.has_messages_out
            folder.drop_turns(other)  # it left: its request goes on with what it began with
            assert conversation.turn is yours
        async with folder.using("a", by=other) as conversation:
            assert conversation.turn is not yours
            folder.drop_turns(WINDOW)
            assert not conversation.has_messages_out
        async with folder.using("a", by=WINDOW) as conversation:
            assert conversation.turn is not mine

    asyncio.run(run())
