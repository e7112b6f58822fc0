"""The measures of `benchmarks/conversation`: a wrong measure would be a lie about others and about us."""

import sys
from pathlib import Path
from typing import Any

import pytest

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import itertools

from benchmarks.conversation import prompt_cache, traces, validity
from benchmarks.conversation.adapters.plain import Everything
from benchmarks.conversation.facts import facts_of, tokens_of
from benchmarks.conversation.identifiers import identifiers, values
from benchmarks.conversation.prompt_cache import PromptCache
from benchmarks.conversation.walk import walk

Message = dict[str, Any]


def say(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def call(*ids: str) -> Message:
    function = {"name": "get", "arguments": '{"code": "HAT136"}'}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(answers: str, content: str = "done") -> Message:
    return {"role": "tool", "tool_call_id": answers, "content": content}


USER, ANSWER = say("user", "hello"), say("assistant", "hi")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Flight HAT136 of mia_li_3668, booked as ZFA04Y.", ["hat136", "mia_li_3668", "zfa04y"]),
        ("2024-05-20 at 07:00:00 or 7:00 AM, not May 20th at 10am", ["2024-05-20", "07:00", "07:00"]),
        ("$1,250.00 or 1250 or 99 or 455.50", ["1250", "1250", "455.5"]),
        ("write to a.b@example.com, see src/app.py.", ["a.b@example.com", "src/app.py"]),
        ("and/or yes/no, /etc/hosts, https://x.org/a", ["/etc/hosts", "https://x.org/a"]),
        ("basic_economy, OBUTXV, YES, JFK and well-known words", ["basic_economy", "obutxv"]),
        ("gift_card_8887175 call-2a B2", ["gift_card_8887175", "call-2a"]),
        ("", []),
    ],
)
def test_identifiers(text: str, found: list[str]) -> None:
    assert list(identifiers(text)) == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"user_id": "mia", "flights": [{"number": 12}], "ok": true, "none": null}', ["mia", "12"]),
        ("not json", ["not json"]),
    ],
)
def test_values_of_arguments(arguments: str, found: list[str]) -> None:
    assert list(values(arguments)) == found


@pytest.mark.parametrize(
    ("messages", "broken"),
    [
        ([USER, call("a"), result("a"), ANSWER], False),
        ([USER, call("a", "b"), result("b"), result("a")], False),
        ([USER, call("a")], True),
        ([USER, call("a", "b"), result("a"), USER], True),
        ([result("a"), USER], True),
        ([USER, call("a"), USER, result("a")], True),
        ([USER, call("a"), result("a"), result("a")], True),
        ([], False),
    ],
)
def test_broken_pairs(messages: list[Message], broken: bool) -> None:
    assert validity.has_broken_pair(messages) is broken


@pytest.mark.parametrize(
    ("messages", "wrong"),
    [
        ([say("system", "s"), USER, ANSWER], False),
        ([say("system", "s"), ANSWER, USER], True),
        ([result("a"), USER], True),
        ([say("system", "s")], True),
        ([], True),
    ],
)
def test_start(messages: list[Message], wrong: bool) -> None:
    assert validity.has_wrong_start(messages) is wrong


LONG = "0123456789" * 100


@pytest.mark.parametrize(
    ("messages", "newest", "there"),
    [
        ([ANSWER, USER], USER, True),
        ([ANSWER, say("user", "before\n\nhello")], USER, True),
        ([USER, ANSWER], USER, False),
        ([say("user", "other")], USER, False),
        ([call("a"), result("a", LONG[:300] + " […]")], result("a", LONG), True),
        ([call("a"), result("a", LONG[:3])], result("a", LONG), False),
        ([call("a"), result("a", "[cleared: this was far too long]")], result("a", LONG), False),
        ([call("a", "b"), result("a", "one"), result("b", "two")], result("a", "one"), True),
        ([], USER, False),
    ],
)
def test_newest_message(messages: list[Message], newest: Message, there: bool) -> None:
    assert validity.has_newest(messages, newest) is there


@pytest.mark.parametrize(
    ("messages", "lacks"),
    [
        ([say("system", "rules"), USER], False),
        ([say("system", "rules and more"), USER], False),
        ([USER], True),
        ([], True),
    ],
)
def test_system_prompt(messages: list[Message], lacks: bool) -> None:
    assert validity.lacks_system(messages, say("system", "rules")) is lacks


def test_tokens_are_four_a_message_and_five_a_call() -> None:
    # "hello", "get": one token each; the arguments: 8
    assert tokens_of([USER]) == 5
    assert [block[1] for block in facts_of(call("a", "b")).blocks] == [4 + 1 + 8 + 5, 1 + 8 + 5]
    assert facts_of(call("a")).tokens == sum(tokens for _, tokens in facts_of(call("a")).blocks)


SYSTEM = (0, 2_000)


def blocks(*numbers: int, tokens: int = 100) -> list[tuple[int, int]]:
    return [SYSTEM, *((number, tokens) for number in numbers)]


@pytest.mark.parametrize(
    ("requests", "read"),
    [
        ([blocks(1), blocks(1, 2, 3)], [0, 2_100]),
        # another beginning after the system prompt: only that is read
        ([blocks(1, 2), blocks(2, 3)], [0, 2_000]),
        # the last entry is 19 blocks before the end, then 20: too far back
        ([blocks(1), blocks(*range(1, 21))], [0, 2_100]),
        ([blocks(1), blocks(*range(1, 22))], [0, 2_000]),
        # the same block in another place is another prefix
        ([blocks(1, 2), blocks(3, 1, 2)], [0, 2_000]),
        # an old entry is still there
        ([blocks(1), blocks(2), blocks(1, 3)], [0, 2_000, 2_100]),
    ],
)
def test_cache_reads(requests: list[list[tuple[int, int]]], read: list[int]) -> None:
    cache = PromptCache()
    assert [cache.send(request, 1)[1] for request in requests] == read


def test_cache_holds_nothing_that_is_short() -> None:
    cache = PromptCache()
    short = [(0, 500), (1, 523)]
    assert [cache.send(short, 1), cache.send(short, 1)] == [(1_023, 0), (1_023, 0)]
    long = [(0, 500), (1, 524)]
    assert [cache.send(long, 1), cache.send(long, 1)] == [(1_024, 0), (1_024, 1_024)]


def test_cost() -> None:
    assert prompt_cache.cost(1_000, 0) == 1_250
    assert prompt_cache.cost(1_000, 1_000) == pytest.approx(100)
    assert prompt_cache.cost(1_000, 900) == pytest.approx(125 + 90)


class Newest(Everything):
    """Sends the newest message only."""

    def build(self) -> list[Message]:
        return super().build()[-1:]


CHAT = [
    say("system", "rules " * 2_000),
    say("user", "I am mia_li_3668, flight HAT136"),
    call("a"),
    result("a", "costs 455"),
    say("assistant", "mia_li_3668 pays 455 for HAT136 by card_9"),
]


def test_walk_of_everything() -> None:
    quality = walk(Everything(0), CHAT, 1_000)
    assert (quality.requests, quality.full, quality.over_budget) == (2, 2, 2)
    assert (quality.broken, quality.wrong_start, quality.lost, quality.no_system) == (0, 0, 0, 0)
    # the call needs HAT136, the answer mia_li_3668, 455 and HAT136; card_9 was never seen
    assert (quality.needed, quality.kept, quality.recall) == (4, 4, 1.0)
    first, second = tokens_of(CHAT[:2]), tokens_of(CHAT[:4])
    assert (quality.sent_tokens, quality.read_tokens) == (first + second, first)
    assert quality.paid == pytest.approx(1.25 * second + 0.1 * first)


def test_walk_of_the_newest_message_only() -> None:
    quality = walk(Newest(0), CHAT, 1_000)
    assert (quality.broken, quality.wrong_start, quality.over_budget) == (1, 1, 0)
    assert (quality.lost, quality.no_system, quality.failed) == (0, 2, 0)
    assert (quality.needed, quality.kept) == (4, 2)  # HAT136 in the user's message, 455 in the result
    assert (quality.read_tokens, quality.hit, quality.cost) == (0, 0.0, 1.25)


def test_a_history_that_fits_is_walked_but_not_measured() -> None:
    quality = walk(Newest(0), CHAT, 100_000)
    assert (quality.requests, quality.full, quality.no_system) == (2, 0, 2)
    assert (quality.sent_tokens, quality.needed, quality.recall) == (0, 0, 1.0)


class Refusing(Everything):
    def build(self) -> list[Message]:
        raise ValueError("does not fit")


def test_a_refusal_is_counted() -> None:
    quality = walk(Refusing(0), CHAT, 1_000)
    assert (quality.requests, quality.failed, quality.failure) == (2, 2, "ValueError: does not fit")
    assert (quality.full, quality.needed, quality.recall) == (2, 4, 0.0)


def test_made_chat_is_valid_and_the_same_each_time() -> None:
    chat = traces.synthetic(600)
    assert chat == traces.synthetic(600)
    assert len(chat) == 600
    ends = [number for number, message in enumerate(chat) if message["role"] == "user"]
    assert not any(validity.has_broken_pair(chat[:end]) for end in ends)
    assert max(facts_of(message).tokens for message in chat) > 16_000
    assert any(len(message.get("tool_calls") or ()) > 1 for message in chat)


def test_even_messages_have_about_sixty_tokens() -> None:
    chat = list(traces.even(401))
    assert not validity.has_broken_pair(chat)
    assert all(45 <= facts_of(message).tokens <= 75 for message in chat[1:])
    assert len({str(message) for message in chat}) == len(chat)


if traces.tau_file().is_file():

    def test_joined_chat_is_valid() -> None:
        chat = traces.tau()
        assert len(chat) == traces.TAU_MESSAGES
        assert [message["role"] for message in chat].count("system") == 1
        ends = [number for number, message in enumerate(chat) if message["role"] == "user"]
        assert not validity.has_broken_pair(chat[: ends[-1]])


def test_an_identifier_is_far_after_twenty_messages() -> None:
    filler = [say("user" if number % 2 else "assistant", "go on") for number in range(24)]
    answer = say("assistant", "HAT136 costs 455")
    chat = [say("system", "rules " * 2_000), say("user", "HAT136"), *filler, say("user", "455?"), answer]
    quality = walk(Newest(0), chat, 1_000)
    assert (quality.needed, quality.kept) == (2, 1)  # the newest message has 455
    assert (quality.far_needed, quality.far_kept, quality.far) == (1, 0, 0.0)
    assert walk(Everything(0), chat, 1_000, into=quality) is quality
    assert (quality.far_needed, quality.far_kept, quality.needed) == (2, 1, 4)


def test_sessions_of_coding_are_valid_in_both_forms() -> None:
    for session in traces.coding():
        ends = [number for number, message in enumerate(session) if message["role"] == "user"]
        assert not any(validity.has_broken_pair(session[:end]) for end in ends)
        turned = traces.observed(session)
        assert {message["role"] for message in turned} == {"system", "user", "assistant"}
        roles = [message["role"] for message in turned]
        assert all(one != other for one, other in itertools.pairwise(roles))
        assert tokens_of(turned) > 0.9 * tokens_of(session)
