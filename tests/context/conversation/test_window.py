"""The history to send: within the budget, groups whole, a user message first, stable for many turns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.conversation.truncation import STRATEGIES, Strategy
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Budget, Policy, Window
from support.histories import BROKEN, SOUND, Letters, conversation, histories, pairing_errors, shown
from support.views import check

POLICIES = st.builds(
    Policy,
    strategy=st.sampled_from(STRATEGIES),
    target=st.sampled_from([0.1, 0.3, 0.6, 0.9, 1.0]),
    keep_recent_turns=st.integers(0, 4),
    pin_first=st.booleans(),
    identifier_tokens=st.sampled_from([0, 60, 600]),
)
BUDGETS = st.builds(Budget, st.sampled_from([60, 200, 500, 1_200, 5_000]), st.sampled_from([0, 20, 150]))
PLAIN = Policy(identifier_tokens=0)


def walked(messages: Iterable[Message], policy: Policy, budgets: Sequence[Budget]) -> Iterator[View]:
    """The view after each message; one of several budgets after the other is asked for at each length."""
    counter, history = Letters(), History()
    window = Window(history, counter, policy)
    for message in messages:
        history.append(message)
        made = [window.fit(budget) for budget in (*budgets, budgets[0])]
        assert made[0] == made[-1], "a request changed what the next one gets"
        for view in made:
            check(view, counter)
        yield made[0]


@given(histories(SOUND), POLICIES, BUDGETS)
def test_sound_histories(messages: list[Message], policy: Policy, budget: Budget) -> None:
    last: list[Message] = []
    for view in walked(messages, policy, [budget]):
        now = view.messages()
        if not view.history.grouping.unanswered:
            assert view.sound_messages()[:2] == (now, [])
        if view.uncut_tokens <= view.room:
            assert now[: len(last)] == last, "what is sent began otherwise, without need"
        last = now


def test_the_newest_message_stays_if_it_is_the_whole_first_group() -> None:
    """Behind rules that are larger than the window."""
    policy = Policy("middle_out", target=0.1, keep_recent_turns=0, pin_first=False, identifier_tokens=0)
    for view in walked(conversation("s1:2000 u2"), policy, [Budget(60, 0)]):
        assert view.over
    assert shown(view.messages()) == "s1 u2"


@given(histories(BROKEN), POLICIES, BUDGETS, BUDGETS)
def test_broken_histories(messages: list[Message], policy: Policy, budget: Budget, other: Budget) -> None:
    for _ in walked(messages, policy, [budget, other]):
        pass


@given(histories(SOUND), POLICIES, BUDGETS)
def test_a_cut_goes_down_to_the_target(messages: list[Message], policy: Policy, budget: Budget) -> None:
    aim = max(int(policy.target * budget.available) - budget.fixed, int(policy.target * budget.room) // 2)
    start = 0
    for view in walked(messages, policy, [budget]):
        grouping = view.history.grouping
        if (
            view.start != start and view.tokens - view.repair_tokens > aim
        ):  # for recent turns or the newest group only
            recent = grouping.turns[-policy.keep_recent_turns :][: policy.keep_recent_turns]
            question = view.history.messages[view.start].role == "user"
            assert view.start in recent or view.start >= grouping.groups[-1 - question]
        start = view.start


# ---------------------------------------------------------------- examples


@pytest.mark.parametrize(
    ("strategy", "text", "room", "expected"),
    [
        ("oldest_first", "u1 a1 u2 a2 u3 a3", 60, "u1 a1 u2 a2 u3 a3"),
        # the user's first message stays; the last three turns do while they fit
        ("oldest_first", "u1 a1 u2 a2 u3 a3", 50, "u1 u2 a2 u3 a3"),
        ("oldest_first", "u1 u2 a1 u3 a3 u4 a4 u5 a5", 80, "u1 u2 u3 a3 u4 a4 u5 a5"),
        ("oldest_first", "u1:30 a1 u2 a2 u3 a3", 60, "u2 a2 u3 a3"),
        # a long turn keeps the message that it began with, once
        ("oldest_first", "u1 a1 u2:20 c3 r3 c4 r4 c5 r5", 110, "u1 u2 c5 r5"),
        ("oldest_first", "u1:20 c3 r3 c4 r4 c5 r5", 90, "u1 c5 r5"),
        ("sliding", "u1 c3 r3 c4 r4 c5 r5", 90, "u1 c5 r5"),
        ("recency", "u1 a1 u2 a2 u3 a3 u4 a4", 70, "u2 a2 u3 a3 u4 a4"),
        ("middle_out", "u1 a1 u2 a2 u3 a3 u4 a4", 70, "u1 u2 a2 u3 a3 u4 a4"),
        ("simple", "u1 a1 u2 a2 u3 a3", 50, "u3 a3"),
        # a large result is shortened rather than that all else is cut for it
        ("oldest_first", "u1 a1 u2 a2 u3 c4 r4:900", 200, "u1 a1 u2 a2 u3 c4 r4~"),
        ("oldest_first", "u1 a1 u2 a2 u3 c4+5 r4:900 r5:900", 200, "u1 u3 c4+5 r4~ r5~"),
        # what people and the assistant wrote is shortened last
        ("oldest_first", "u1 a1 u2:900", 200, "u2~"),
        ("oldest_first", "u1:900", 200, "u1~"),
        ("oldest_first", "u1 a1 u2:150 a2 a3:900", 300, "u2 a3~"),
        ("oldest_first", "u1 a1 u2:500 c3 r3:900", 300, "u2~ c3 r3~"),
        # after many parallel calls a few words stand for the oldest results
        ("oldest_first", "u1 c2+3+4+5 r2:90 r3:90 r4:90 r5:90", 205, "u1 c2+3+4+5 [left r3~ r4~ r5~"),
        # what cannot be shortened that far is sent nowhere, but it is there
        ("oldest_first", "u1 a1 u2:60", 30, "u2~"),
        ("oldest_first", "u1 a1 c2 r2:900", 40, "u1 c2 [left"),
    ],
)
def test_what_is_sent(strategy: Strategy, text: str, room: int, expected: str) -> None:
    policy = Policy(strategy, 0.6, 3, True, 0)
    counter, history = Letters(), History(conversation(text))
    view = Window(history, counter, policy).fit(Budget(room, 0))
    check(view, counter)
    assert shown(view.messages()) == expected
    assert view.over == (view.tokens > room)


def test_names_of_what_is_cut_stand_behind_what_is_pinned() -> None:
    said = [Message("user", "Look at src/app.py"), Message("assistant", "It calls load_settings() " * 40)]
    history = History([*said, *conversation("u2:60 a2:60 u3:60 a3:60")])
    view = Window(history, Letters(), Policy(keep_recent_turns=1)).fit(Budget(500, 0))
    assert shown(view.messages()) == "Look … u2 a2 u3 a3"
    assert view.note is not None
    assert str(view.note.content) == snapshot("""\
[EARLIER CONTEXT] 1 earlier messages are not shown. Names and values from them, word for word:
Symbols: load_settings\
""")


def test_few_cuts_in_a_long_chat() -> None:
    messages = [
        message for turn in range(300) for message in conversation(f"u{turn} c{turn} r{turn} a{turn}")
    ]
    views = list(walked(messages, PLAIN, [Budget(1_000, 0)]))
    assert len({view.start for view in views}) <= 2 + (views[-1].original_tokens - 1_000) // 400
    assert not any(view.over for view in views)


LOOPS = st.lists(st.tuples(st.integers(1, 4), st.sampled_from([10, 25, 60, 150, 900])), max_size=60)
"""The calls of each step, and the tokens of their results."""


@given(LOOPS, st.sampled_from([0.3, 0.6, 1.0]), st.sampled_from([300, 600, 2_000]))
def test_a_long_turn_is_cut_between_its_steps(steps: list[tuple[int, int]], target: float, room: int) -> None:
    """The question stays, results stand behind their calls, and few steps move the cut."""
    words = ["u0:20"]
    for step, (calls, tokens) in enumerate(steps):
        ids = [f"{step}.{call}" for call in range(calls)]
        words += [f"c{'+'.join(ids)}", *(f"r{each}:{tokens}" for each in ids)]
    sent: list[Message] = []
    start = 0
    for view in walked(conversation(" ".join(words)), Policy(target=target), [Budget(room, 0)]):
        before, sent = sent, view.messages()
        assert shown(sent[:1]) == "u0"
        assert view.start in view.history.grouping.groups
        if not view.history.grouping.unanswered:
            assert pairing_errors(sent) == []
        if not view.moved:
            assert sent[: len(before)] == before
        elif start < view.start < view.history.grouping.groups[-1]:
            aim = int(target * room)
            assert view.tokens - view.repair_tokens <= max(aim - (room - aim) // 2, aim // 2)
        start = view.start


@given(st.lists(st.sampled_from([10, 60, 300, 2_000, 20_000]), min_size=1, max_size=60))
def test_a_window_of_2500_tokens_refuses_no_answer_with_parallel_calls(sizes: list[int]) -> None:
    calls = [str(number) for number in range(len(sizes))]
    results = (f"r{call}:{tokens}" for call, tokens in zip(calls, sizes, strict=True))
    for view in walked(
        conversation(f"u0 a0 u1 c{'+'.join(calls)} {' '.join(results)}"), Policy(), [Budget(2_500, 0)]
    ):
        assert not view.over


def test_500_parallel_calls_are_refused_only_where_the_calls_alone_do_not_fit() -> None:
    calls = [str(number) for number in range(500)]
    messages = conversation(f"u1 c{'+'.join(calls)} {' '.join(f'r{call}:40' for call in calls)}")
    alone = Letters().count_messages(messages[:2])
    for room in (alone, alone + 500 * 9 + 20):
        view = Window(History(messages), Letters(), PLAIN).fit(Budget(room, 0))
        check(view, Letters())
        assert view.over == (room == alone)


def test_a_turn_of_3000_steps_is_cut_rarely_and_keeps_its_question() -> None:
    counter, history = Letters(), History([Message("user", "Look at src/first.py")])
    window, starts = Window(history, counter, Policy()), set[int]()
    for step in range(3_000):
        for message in conversation(f"c{step} r{step}:40"):
            history.append(message)
        view = window.fit(Budget(2_000, 0))
        starts.add(view.start)
        assert not view.over
    assert len(starts) <= 2 + (history.tokens(counter) - 2_000) // 1_000
    assert text_of(view.messages()[0]) == "Look at src/first.py"


def test_a_long_draft_changes_nothing_for_the_turns_after_it() -> None:
    text = "u1 a1 u2 a2 u3 a3"
    history, counter = History(conversation(text)), Letters()
    window, room, draft = Window(history, counter, PLAIN), Budget(80, 0), Budget(80, 40)
    assert shown(window.fit(room).messages()) == text
    assert shown(window.fit(draft).messages()) == "u1 u3 a3"
    assert shown(window.fit(room).messages()) == text
    history.append(conversation("u4")[0])
    assert shown(window.fit(room).messages()) == f"{text} u4"
    # but a request that the conversation goes on from does
    assert shown(window.fit(draft).messages()) == "u1 u3 a3 u4"
    history.append(conversation("a4")[0])
    assert shown(window.fit(room).messages()) == "u1 u3 a3 u4 a4"


@given(histories(BROKEN), POLICIES, BUDGETS, st.data())
def test_who_only_looks_changes_nothing(
    messages: list[Message], policy: Policy, budget: Budget, data: st.DataObject
) -> None:
    counter = Letters()
    looked, alone = History(), History()
    watched, window = Window(looked, counter, policy), Window(alone, counter, policy)
    for message in messages:
        looked.append(message)
        alone.append(message)
        seen = watched.look(budget)
        if data.draw(st.booleans()):
            sent, same = watched.fit(budget), window.fit(budget)
            assert sent.messages() == same.messages() == seen.messages()
            assert sent.uncut_tokens == same.uncut_tokens


@pytest.mark.parametrize("policy", [Policy(strategy=strategy) for strategy in STRATEGIES])
def test_an_id_used_twice_has_the_same_new_name_after_every_cut(policy: Policy) -> None:
    history, counter = History(), Letters()
    window = Window(history, counter, policy)
    names: dict[int, str] = {}
    for turn in range(12):
        for message in conversation("u1 c1 r1 a1"):
            history.append(message)
            sent = window.fit(Budget(300, 0)).sound_messages().messages
        ids = [call.id for one in sent for call in one.tool_calls]
        numbers = range(turn + 1 - len(ids), turn + 1)
        for number, name in zip(numbers, ids, strict=True):
            assert names.setdefault(number, name) == name
    assert len(set(names.values())) == 12


def test_what_stands_in_front_of_a_cut_is_repaired_too() -> None:
    front = [Message("assistant", None, (ToolCall("x", "run"), ToolCall("x", "run")))]
    history = History([*front, *conversation("r1 u2 a2 u3 a3 u4 a4:60 u5 a5")])
    for strategy in STRATEGIES:
        view = Window(history, Letters(), Policy(strategy, identifier_tokens=0)).fit(Budget(130, 0))
        assert pairing_errors(view.sound_messages()[0]) == []


def test_a_result_that_comes_after_its_call_was_cut() -> None:
    counter, history = Letters(), History(conversation("u1 c2 u3:40 a3:40 u4:40 a4"))
    window = Window(history, counter, Policy(pin_first=False, keep_recent_turns=1, identifier_tokens=0))
    assert shown(window.fit(Budget(100, 0)).messages()) == "u4 a4"
    history.append(conversation("r2")[0])
    small = window.fit(Budget(100, 0))  # no room for the call and all since: the result is a marked text
    assert shown(small.sound_messages()[0]) == "u4 a4 <late_tool_result"
    assert [repair.kind for repair in small.sound_messages()[1]] == ["result-orphan"]
    assert shown(window.fit(Budget(300, 0)).sound_messages()[0]) == "u1 c2 r2 u3 a3 u4 a4"


def test_a_late_result_is_a_text_rather_than_everything_refused() -> None:
    history = History(conversation("u1 c2 u3 a3 u4 a4 u5 a5 r2"))
    view = Window(history, Letters(), PLAIN).fit(Budget(85, 0))
    check(view, Letters())
    assert not view.over
    assert shown(view.sound_messages()[0]).split()[-3:] == ["u5", "a5", "<late_tool_result"]


# ---------------------------------------------------------------- work


class Watched(list[Any]):
    """A list that counts how many of its elements were read."""

    read = 0

    def __getitem__(self, at: Any) -> Any:
        self.read += len(range(*at.indices(len(self)))) if isinstance(at, slice) else 1
        return super().__getitem__(at)

    def __iter__(self) -> Any:
        for one in super().__iter__():
            self.read += 1
            yield one


def test_a_turn_reads_as_much_of_a_long_history_as_of_a_short_one() -> None:
    reads = []
    for turns in (100, 4_000):
        history = History(
            message for turn in range(turns) for message in conversation(f"u{turn} c{turn} r{turn} a{turn}")
        )
        counter = Letters()
        window = Window(history, counter, PLAIN)
        window.fit(Budget(1_000, 0))
        watched = history.messages = Watched(history.messages)
        counted = len(counter.counted)
        for turn in range(100):  # about ten cuts
            for message in conversation(f"u{turn} c-{turn} r-{turn} a{turn}"):
                history.append(message)
            window.fit(Budget(1_000, 0)).sound_messages()
        reads.append((watched.read, len(counter.counted) - counted))
    (few, counts), (many, more) = reads
    assert more == counts
    assert many <= 1.2 * few


@given(histories(SOUND), POLICIES)
def test_each_message_is_counted_once(messages: list[Message], policy: Policy) -> None:
    counter, history = Letters(), History()
    window = Window(history, counter, policy)
    for message in messages:
        history.append(message)
        for room in (5_000, 2_000, 5_000):
            window.fit(Budget(room, 0))
    texts = [text_of(message) for message in messages if isinstance(message.content, str)]
    own = {text for text in texts if text[:1].isdigit()}  # text whose image is left out is counted without it
    assert max(Counter(text for text in counter.counted if text in own).values(), default=1) == 1


# ---------------------------------------------------------------- the names of what is cut


@pytest.mark.parametrize(
    ("policy", "room", "expected"),
    [
        (Policy(), 2_000, 250),
        (Policy(), 8_000, 1_600),
        (Policy(), 40_000, 9_523),
        (Policy(), 1_000, 100),
        (Policy(), 1_000_000, 16_000),
        (Policy(identifier_tokens=600), 40_000, 600),
        (Policy(identifier_tokens=600), 1_000, 100),
        (Policy(identifier_tokens=0), 40_000, 0),
        (Policy(), -5, 0),
    ],
)
def test_the_room_of_the_note(policy: Policy, room: int, expected: int) -> None:
    assert policy.note_room(room) == expected


@given(st.integers(0, 2_000_000), st.integers(0, 2_000_000))
def test_a_larger_room_never_has_a_smaller_note(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert Policy().note_room(small) <= Policy().note_room(large) <= large / 4


@pytest.mark.parametrize(
    "cut",
    [
        [Message("assistant", " ".join(f"handle_{number}_event()" for number in range(10_000)))],
        [Message("assistant", f"see src/{'x' * 10_000}.py and `{'y' * 10_000}`") for _ in range(20)],
        conversation(" ".join(f"c{number} r{number}:300" for number in range(40))),
    ],
    ids=["10,000 names", "names of 10 KB", "results only"],
)
def test_the_note_of_hostile_messages_keeps_to_its_room(cut: list[Message]) -> None:
    counter, history = Letters(), History([*cut, *conversation("u1 a1 u2 a2")])
    view = Window(history, counter, Policy(keep_recent_turns=1)).fit(Budget(4_000, 0))
    check(view, counter)
    assert view.removed
    assert view.note_tokens <= Policy().note_room(4_000)
    assert not view.over
