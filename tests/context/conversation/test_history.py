"""Messages are counted and encoded once, even if a compaction keeps some of them and is undone."""

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.history import COUNTERS, PIECE, Encoded, History
from nexus_context.conversation.message import Message
from support.histories import BROKEN, Letters, conversation, histories, shown

TEXT = "u1 a1 c2 r2 a3"


def check(history: History, counter: Letters, text: str, *, counted: int) -> None:
    """Messages, tokens and JSON of a history; `counted` texts were counted since the last time."""
    counter.counted.clear()
    assert shown(history.messages) == text
    sums = history.sums(counter)
    assert len(counter.counted) == counted
    assert (sums[0], len(sums)) == (0, len(history) + 1)
    assert sums[-1] == history.tokens(counter) == Letters().count_messages(history.messages)
    assert list(map(bytes, history.encoded())) == [
        msgspec.json.encode(message) for message in history.messages
    ]


def test_each_is_counted_once() -> None:
    counter, history = Letters(), History(conversation(TEXT))
    check(history, counter, TEXT, counted=7)  # a call has a name and arguments
    check(history, counter, TEXT, counted=0)
    history.extend(conversation("u4 a4"))
    check(history, counter, f"{TEXT} u4 a4", counted=2)
    assert history.tool_calls == 1


def test_what_a_compaction_keeps_is_not_counted_again() -> None:
    counter, history = Letters(), History(conversation(f"{TEXT} u4 a4"))
    history.sums(counter)
    counter.counted.clear()
    made = history.remade([*conversation("u9:40"), *history.messages[5:]], counter)
    assert len(counter.counted) == 1
    check(made, counter, "u9 u4 a4", counted=0)
    check(history, counter, f"{TEXT} u4 a4", counted=0)


def test_what_came_after_a_compaction_is_not_counted_again() -> None:
    counter, history = Letters(), History(conversation(TEXT))
    made = history.remade(history.messages[4:], counter)
    made.extend(conversation("u4 a4"))
    made.sums(counter)
    counter.counted.clear()
    history.take_over(made, 1)
    assert not counter.counted
    check(history, counter, f"{TEXT} u4 a4", counted=0)


def test_one_sum_for_each_counter_and_the_oldest_forgotten() -> None:
    history, counters = History(conversation(TEXT)), [Letters(str(number)) for number in range(COUNTERS + 1)]
    for counter in counters:
        check(history, counter, TEXT, counted=7)
    check(history, counters[-1], TEXT, counted=0)
    check(history, counters[0], TEXT, counted=7)


def test_a_slice_of_the_json_is_that_of_the_messages() -> None:
    history = History(conversation(TEXT))
    assert not history.all_encoded
    assert list(map(bytes, history.encoded_slice(1, 3))) == [
        msgspec.json.encode(one) for one in history.messages[1:3]
    ]
    assert history.all_encoded


@given(histories(BROKEN), st.data())
def test_sums_are_those_of_each_message(messages: list[Message], data: st.DataObject) -> None:
    counter, history = Letters(), History()
    at = 0
    while at < len(messages):
        end = data.draw(st.integers(at + 1, len(messages)))
        history.extend(messages[at:end])
        at = end
        history.sums(counter)
    sums = history.sums(counter)
    assert [after - before for before, after in pairwise(sums)] == [
        counter.count_messages([message]) for message in messages
    ]
    again = History(messages)
    assert (again.grouping.groups, again.grouping.broken, again.tool_calls) == (
        history.grouping.groups,
        history.grouping.broken,
        history.tool_calls,
    )


# ---------------------------------------------------------------- pieces


def check_pieces(lengths: list[int]) -> list[int]:
    """Encode messages of such lengths, asking in between; return the lengths of the pieces."""
    messages = [Message("user", f"{number} ".ljust(length, "é")) for number, length in enumerate(lengths)]
    encoded = Encoded()
    for number, message in enumerate(messages, 1):
        encoded.extend([message])
        if number % 7 == 0:
            assert len(encoded.each) == number
            assert (
                msgspec.json.decode(msgspec.json.encode(encoded.pieces()), type=list[Message])[-1] == message
            )
    assert [msgspec.json.decode(each, type=Message) for each in encoded.each] == messages
    assert msgspec.json.encode(encoded.pieces()) == msgspec.json.encode(messages)
    return [len(memoryview(piece)) for piece in encoded.pieces()]


@given(st.lists(st.sampled_from([1, 50, 5_000, PIECE]), max_size=30))
def test_pieces_are_the_messages(lengths: list[int]) -> None:
    assert all(size >= PIECE for size in check_pieces(lengths)[:-1])


def test_many_short_messages_are_few_pieces() -> None:
    assert len(check_pieces([100] * 3000)) == 6
    assert check_pieces([]) == []
