"""A history with only its beginning and end loaded sends what the whole history would send."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.compaction.detection import CompactionSettings
from nexus_context.conversation.compaction.run import CompactionRequest, plan
from nexus_context.conversation.history import Gap, History
from nexus_context.conversation.message import Message
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.conversation.view import View
from nexus_context.conversation.window import LARGEST_NEW, Budget, Policy, Window
from nexus_context.errors import RequestError
from nexus_context.turn.manager import ContextManager
from support.histories import BROKEN, SOUND, Letters, conversation, histories, pairing_errors, shown
from support.views import check as check_view

FRONT_CUTTING = tuple(name for name in STRATEGIES if name != "middle_out")
POLICIES = st.builds(
    Policy,
    strategy=st.sampled_from(FRONT_CUTTING),
    target=st.sampled_from([0.1, 0.3, 0.6, 0.9, 1.0]),
    keep_recent_turns=st.integers(0, 4),
    pin_first=st.booleans(),
    identifier_tokens=st.sampled_from([0, 60, 600]),
)
BUDGETS = st.builds(Budget, st.sampled_from([60, 200, 500]), st.sampled_from([0, 20, 50]))


def sizes(messages: Sequence[Message]) -> list[int]:
    """The tokens of each message."""
    return [Letters().count_messages([message]) for message in messages]


def restored(messages: Sequence[Message], lead: int, tail: int) -> History:
    """The history of which `messages[lead:tail]` are not loaded."""
    tokens = sizes(messages)
    return History.restored(
        [*messages[:lead], *messages[tail:]],
        [*tokens[:lead], *tokens[tail:]],
        "letters",
        Gap(lead, tail - lead, sum(tokens[lead:tail])),
    )


def lead_of(messages: Sequence[Message]) -> int:
    """How many messages the user said before any answer."""
    return next((at for at, message in enumerate(messages) if message.role != "user"), len(messages))


def tail_of(messages: Sequence[Message], budget: Budget) -> int:
    """The last turn from which on there are more tokens than fit; of a result, what is kept of it."""
    most = int(budget.room * LARGEST_NEW)
    kept = [
        min(tokens, most) if message.role == "tool" else tokens
        for message, tokens in zip(messages, sizes(messages), strict=True)
    ]
    behind = [*accumulate(reversed(kept))][::-1]
    return max((at for at in History(messages).grouping.turns if behind[at] > budget.available), default=0)


def check(view: View) -> None:
    """What is sent of a history with a gap: as of any other, and from behind the gap."""
    check_view(view, Letters())
    gap = view.history.gap
    assert view.start >= gap.lead >= view.head
    assert view.removed >= gap.messages
    assert view.original_tokens == sum(sizes(view.history.messages)) + gap.tokens
    assert [at for at in view.history.grouping.groups if at == gap.lead] or gap.lead == len(view.history)


@given(histories(SOUND, most=40), histories(SOUND, most=6), POLICIES, BUDGETS)
def test_the_same_is_sent_as_of_the_whole(
    before: list[Message], after: list[Message], policy: Policy, budget: Budget
) -> None:
    lead, tail = lead_of(before), tail_of(before, budget)
    assume(lead < tail and budget.room > 0)
    counter, whole, part = Letters(), History(before), restored(before, lead, tail)
    windows = [Window(history, counter, policy) for history in (whole, part)]
    for message in (None, *after):
        if message is not None:
            for history in (whole, part):
                history.append(_other(message))
        all_of_it, view = (window.fit(budget) for window in windows)
        check(view)
        if policy.identifier_tokens:  # a note says less, and is smaller
            assert view.start - lead + tail == all_of_it.start or view.shortened or all_of_it.shortened
            continue
        assert view.messages() == all_of_it.messages()
        assert (view.tokens, view.uncut_tokens, view.original_tokens, view.removed) == (
            all_of_it.tokens,
            all_of_it.uncut_tokens,
            all_of_it.original_tokens,
            all_of_it.removed,
        )


def _other(message: Message) -> Message:
    """The message with ids of calls that the history before it does not have."""
    calls = tuple(msgspec.structs.replace(call, id=f"after-{call.id}") for call in message.tool_calls)
    answers = message.tool_call_id and f"after-{message.tool_call_id}"
    return msgspec.structs.replace(message, tool_calls=calls, tool_call_id=answers)


@given(histories(SOUND), st.data(), POLICIES, BUDGETS)
def test_a_tail_that_begins_anywhere(
    messages: list[Message], data: st.DataObject, policy: Policy, budget: Budget
) -> None:
    tail = data.draw(st.integers(0, len(messages)))
    lead = data.draw(st.integers(0, min(lead_of(messages), tail)))
    assume(lead < tail < len(messages))
    view = Window(restored(messages, lead, tail), Letters(), policy).fit(budget)
    assert view.over == (view.tokens > budget.room)
    assert not view.messages() or view.messages()[0].role != "tool"
    if any(message.role != "tool" for message in messages[tail:]):
        check(view)


@given(histories(BROKEN), histories(BROKEN, most=6), st.data(), POLICIES, BUDGETS)
def test_whatever_is_loaded_and_broken(
    before: list[Message], after: list[Message], data: st.DataObject, policy: Policy, budget: Budget
) -> None:
    assume(before)
    lead = data.draw(st.integers(0, lead_of(before)))
    tail = data.draw(st.integers(lead, len(before)))
    assume(lead < tail)
    history = restored(before, lead, tail)
    window = Window(history, Letters(), policy)
    for message in (None, *after):
        if message is not None:
            history.append(message)
        view = window.fit(budget)
        assert view.over == (view.tokens > budget.room)
        assert view.start >= history.gap.lead >= view.head
        assert pairing_errors(view.sound_messages().messages) == []


# ---------------------------------------------------------------- the manager


def manager(text: str, *, lead: int = 1, gap: int = 3, room: int = 100, **config: Any) -> ContextManager:
    """A conversation with a gap of `gap` messages of 10 tokens each behind the first."""
    counter = Letters()
    made = ContextManager(
        ContextConfig(max_tokens=room, reserve_tokens=0, **{"identifier_tokens": 0} | config), counter=counter
    )
    made.add(conversation("u1 a1 u2"))
    messages = conversation(text)
    made.restore(
        messages, tokens=sizes(messages), counter="letters", lead=lead, gap_messages=gap, gap_tokens=10 * gap
    )
    made.build_messages()
    assert not {text for text in counter.counted if text[:1] in "ucar"} - {""}
    return made


@pytest.mark.parametrize(
    ("text", "lead", "sent"),
    [
        ("u1 u5 a5", 1, "u1 u5 a5"),
        ("u1 u5 a5", 0, "u1 u5 a5"),
        ("u1 a5 u6 a6", 1, "u1 a5 u6 a6"),
        ("u1 r4 r5 u6 a6", 1, "u1 u6 a6"),  # their calls are in the gap
        ("u1 u5 a5 u6 a6 u7 a7 u8 a8 u9 a9", 1, "u1 u7 a7 u8 a8 u9 a9"),
    ],
)
def test_what_is_sent(text: str, lead: int, sent: str) -> None:
    made = manager(text, lead=lead)
    assert shown(made.build_messages()) == sent
    assert shown(made.messages) == text  # as far as it is loaded
    assert made.history.gap[1:] == (3, 30)
    assert len(made) == len(text.split()) + 3
    assert made.history.tokens(Letters()) == 10 * len(made)
    assert not made.is_over_budget()  # after the cut
    assert made.get_token_usage().total == 10 * len(made.build_messages())


def test_the_figures_include_the_gap_and_the_names_are_of_what_is_loaded() -> None:
    made = manager("u1 u5 a5", identifier_tokens=600, room=2_000, gap=97)
    policy = ContextConfig(identifier_tokens=600).policy
    view = made.view(Letters(), policy, Budget(2_000, 0), limit=2_000)
    assert (view.uncut_tokens, view.original_tokens, view.removed, view.tokens) == (1_000, 1_000, 97, 30)
    made.add(conversation("u6"))
    view = made.view(Letters(), policy, Budget(2_000, 0), limit=2_000)
    assert (view.uncut_tokens, view.original_tokens, view.removed, view.tokens) == (40, 1_010, 97, 40)
    said = [Message("user", "Hello"), Message("user", "See src/app.py " * 20), *conversation("u7:90 a7:90")]
    made.restore(said, tokens=sizes(said), counter="letters", lead=2, gap_messages=97, gap_tokens=10)
    view = made.view(Letters(), Policy(pin_first=False), Budget(600, 0), limit=600)
    assert view.note is not None
    assert str(view.note.content) == snapshot("""\
[EARLIER CONTEXT] 99 earlier messages are not shown. Names and values from them, word for word:
Files: src/app.py\
""")


@pytest.mark.parametrize(
    "use",
    [
        lambda made: made.history.encoded(),
        lambda made: made.history.encoded_in_pieces(),
        lambda made: made.plan_compaction(Letters(), Budget(50, 0), settings=CompactionSettings(), pins=[2]),
        lambda made: made.view(Letters(), Policy("middle_out"), Budget(50, 0), limit=50),
    ],
)
def test_what_needs_the_whole_says_so(use: Any) -> None:
    made = manager("u1 u5 a5")
    assert not made.history.all_encoded
    with pytest.raises(RequestError, match="not loaded") as failed:
        use(made)
    assert failed.value.code == "history-not-loaded"


def test_a_compaction_replaces_what_is_not_loaded_and_says_so() -> None:
    made = manager("u1 u5 a5 u6 a6 u7 a7")
    plan = made.plan_compaction(
        Letters(), Budget(2_000, 0), settings=CompactionSettings(), reason="token_limit", pins=[5]
    )
    assert (plan.start, plan.pinned, plan.missing, plan.unread) == (1, (), 3, 3)
    plan = made.plan_compaction(Letters(), Budget(100, 0), settings=CompactionSettings(), pins=[5])
    assert plan.messages[plan.pinned[0]] == made.history.messages[2]
    replaced = plan.start - len(plan.pinned)
    assert (plan.replaced_count, plan.unread, len(plan.replaced)) == (replaced + 3, 3, replaced)
    assert plan.tokens_before == made.history.tokens(Letters())


@given(histories(SOUND, most=40), st.integers(0, 60), BUDGETS)
def test_a_compaction_with_a_gap_keeps_what_one_of_the_whole_keeps(
    messages: list[Message], gap: int, budget: Budget
) -> None:
    lead = lead_of(messages)
    turns = [at for at in History(messages).grouping.turns if lead <= at <= lead + gap]
    assume(turns)
    history = restored(messages, lead, turns[-1])
    settings, whole_window = CompactionSettings(), Budget(budget.available, 0)
    request = CompactionRequest("token_limit")
    whole, parted = (
        plan(each, Letters(), whole_window, settings=settings, request=request)
        for each in (History(messages), history)
    )
    assume(whole is not None and parted is not None)
    assert whole is not None and parted is not None
    assert parted.tokens_before == whole.tokens_before
    if whole.start >= turns[-1]:
        assert parted.preserved == whole.preserved
        assert parted.replaced_count == whole.replaced_count
    assert parted.missing + len(parted.replaced) == parted.replaced_count


def test_a_whole_history_is_restored() -> None:
    made = manager("u1 a1 u2 a2", lead=0, gap=0)
    assert shown(made.build_messages()) == "u1 a1 u2 a2"
    assert (made.history.gap[1:], len(made), made.compactions, made.is_over_budget()) == (
        (0, 0),
        4,
        [],
        False,
    )
    assert list(map(bytes, made.history.encoded())) == [msgspec.json.encode(each) for each in made.messages]
    made.restore([], tokens=[], counter="letters")
    assert made.build_messages() == []


def test_what_does_not_match_is_refused() -> None:
    made = ContextManager(counter=Letters())
    with pytest.raises(ValueError, match="2 messages, 1 counted"):
        made.restore(conversation("u1 a1"), tokens=[10], counter="letters")
    with pytest.raises(ValueError, match="3 before a gap"):
        made.restore(conversation("u1"), tokens=[10], counter="letters", lead=3, gap_messages=1)
    assert len(made) == 0
