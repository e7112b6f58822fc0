"""Where each strategy cuts: turns and groups stay whole, the newest stay, the target is reached."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message
from nexus_context.conversation.truncation import STRATEGIES, Need, SentRange, Strategy, cut, first_group_end
from support.histories import SOUND, Letters, conversation, histories, shown

CHAT = "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5"  # 100 tokens
TOOLS = "u1 a1 u2 c3+4 r3 r4 a2 u5 c6 r6 c7 r7 c8 r8"  # 175 tokens
LOOP = "u1 c2 r2 c3 r3 c4 r4 c5 r5"  # 118 tokens, one turn


def kept_of(
    history: History, strategy: Strategy, target: int, room: int, keep: int, after: int = 0
) -> SentRange:
    sums = history.sums(Letters())
    need = Need(lambda start: sums[-1] - sums[start], target, room, after, keep)
    return cut(strategy, history, need, first_group=sums[first_group_end(history)])


@pytest.mark.parametrize(
    ("strategy", "text", "target", "room", "keep", "expected"),
    [
        # at a turn's start, where the target is reached
        ("oldest_first", CHAT, 60, 90, 0, "| u3 a3 u4 a4 u5 a5"),
        ("oldest_first", CHAT, 59, 90, 0, "| u4 a4 u5 a5"),
        ("oldest_first", CHAT, 50, 90, 0, "| u4 a4 u5 a5"),
        ("smart", CHAT, 50, 90, 0, "| u4 a4 u5 a5"),
        # the last turns are kept above the target, while there is room
        ("oldest_first", CHAT, 30, 90, 3, "| u3 a3 u4 a4 u5 a5"),
        ("oldest_first", CHAT, 30, 50, 3, "| u4 a4 u5 a5"),
        ("oldest_first", CHAT, 12, 15, 3, "| a5"),
        ("oldest_first", CHAT, 80, 90, 1, "| u2 a2 u3 a3 u4 a4 u5 a5"),
        # within a turn only where the last one is too long
        ("oldest_first", TOOLS, 90, 120, 3, "| u5 c6 r6 c7 r7 c8 r8"),
        ("oldest_first", LOOP, 60, 100, 3, "| c5 r5"),
        ("oldest_first", LOOP, 80, 100, 3, "| c4 r4 c5 r5"),
        ("oldest_first", LOOP, 100, 100, 3, "| c3 r3 c4 r4 c5 r5"),
        ("oldest_first", TOOLS, 160, 170, 0, "| u2 c3+4 r3 r4 a2 u5 c6 r6 c7 r7 c8 r8"),
        # the first group is kept, if it is small
        ("middle_out", CHAT, 60, 90, 0, "u1 | u4 a4 u5 a5"),
        ("middle_out", "u1:40 a1 u2 a2 u3 a3", 40, 80, 0, "| u2 a2 u3 a3"),
        ("middle_out", "c1 r1 u2:30 a2 u3 a3 u4 a4 u5 a5", 70, 110, 0, "c1 r1 | u4 a4 u5 a5"),
        # the most recent groups, wherever they begin
        ("sliding", CHAT, 50, 90, 3, "| a3 u4 a4 u5 a5"),
        ("sliding", TOOLS, 101, 150, 0, "| a2 u5 c6 r6 c7 r7 c8 r8"),
        ("sliding", TOOLS, 130, 150, 0, "| a2 u5 c6 r6 c7 r7 c8 r8"),
        # message by message; what that tears is dropped
        ("simple", CHAT, 50, 90, 3, "| a3 u4 a4 u5 a5"),
        ("simple", TOOLS, 120, 150, 0, "| a2 u5 c6 r6 c7 r7 c8 r8"),
        # the last turns, fewer where they do not fit
        ("recency", CHAT, 90, 90, 2, "| u4 a4 u5 a5"),
        ("recency", CHAT, 10, 30, 3, "| u5 a5"),
        ("recency", CHAT, 40, 90, 0, "| u4 a4 u5 a5"),
        ("recency", LOOP, 60, 100, 2, "| c4 r4 c5 r5"),
    ],
)
def test_where_it_cuts(
    strategy: Strategy, text: str, target: int, room: int, keep: int, expected: str
) -> None:
    """What is left of a conversation; `|` stands where it is cut."""
    history = History(conversation(text))
    head, start = kept_of(history, strategy, target, room, keep)
    front, rest = shown(history.messages[:head]), shown(history.messages[start:])
    assert f"{front} | {rest}".strip() == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("text", ["u1:500", "u1 a1:500", "u1 c2 r2:500", "u1 c2+3 r2:90 r3:500"])
def test_the_newest_group_is_always_kept(strategy: Strategy, text: str) -> None:
    history = History(conversation(text))
    head, start = kept_of(history, strategy, 10, 20, 3)
    assert max(start, head) <= history.grouping.groups[-1]


@given(
    histories(SOUND).filter(bool),
    st.sampled_from(STRATEGIES),
    st.integers(0, 800),
    st.integers(0, 400),
    st.integers(0, 4),
    st.data(),
)
def test_a_cut_goes_on_from_the_last_and_between_groups(
    messages: list[Message], strategy: Strategy, target: int, more: int, keep: int, data: st.DataObject
) -> None:
    history = History(messages)
    sums, grouping = history.sums(Letters()), history.grouping
    assume(sums[-1] > target + more)  # else nothing is cut
    after = data.draw(st.sampled_from(grouping.groups), label="after")
    head, start = kept_of(history, strategy, target, target + more, keep, after)
    assert start in grouping.groups
    assert start > after or start == grouping.groups[-1]
    size = sums[head] + sums[-1] - sums[start]
    if size > target:  # only for the newest group, or for the last turns
        assert start == grouping.groups[-1] or start in grouping.turns[-keep:][:keep]
    if strategy in ("oldest_first", "smart") and start not in grouping.turns:
        assert not grouping.turns or start > grouping.turns[-1], "cut within a turn that is not the last"
    if keep and start not in grouping.turns[-keep:] and strategy in ("oldest_first", "smart", "recency"):
        fit = [
            turn for turn in grouping.turns[-keep:] if turn > after and sums[-1] - sums[turn] <= target + more
        ]
        assert not fit or start < fit[0], "a turn that fits was not kept"
