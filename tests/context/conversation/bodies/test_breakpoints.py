"""Cache breakpoints: where they are, and that the next request hits what this one cached."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.bodies.breakpoints import MOST, REACH, Cache
from nexus_context.conversation.message import Message
from support.conversations import PARTS, assistant, result, user
from support.provider_rules import check_anthropic

TOOLS = [{"name": "search", "description": "Finds."}]
ANY = Cache(minimum=0)


def rendered(messages: list[Message], cache: Cache | None, *, system: str = "prompt", tools: Any = ()) -> Any:
    body, _ = formats.anthropic("claude-sonnet-4-5", system, messages, tools, {"max_tokens": 1}, cache=cache)
    check_anthropic(body)
    return body


def check(
    messages: list[Message],
    cache: Cache | None,
    expected: list[str],
    *,
    system: str = "prompt",
    tools: Any = (),
) -> None:
    """The places with a breakpoint, first to last: `system 0`, `0.1` for a block of a message."""
    assert places(rendered(messages, cache, system=system, tools=tools)) == expected


def places(body: Any) -> list[str]:
    found = [
        f"{section} {index}"
        for section in ("tools", "system")
        for index, item in enumerate(body.get(section, ()))
        if "cache_control" in item
    ]
    return found + [
        f"{index}.{number}"
        for index, message in enumerate(body["messages"])
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


CHAT = [user("a"), assistant("b"), user("c"), assistant("d"), user("now")]


def test_system_frontier_and_last_block() -> None:
    check(CHAT, ANY, ["system 0", "3.0", "4.0"])
    check(CHAT[:1], ANY, ["system 0", "0.0"])
    check(CHAT, ANY, ["system 0", "3.0", "4.0"], tools=TOOLS)
    check(CHAT, None, [])
    check([], ANY, ["system 0", "0.0"])


def test_without_a_system_prompt() -> None:
    check(CHAT, ANY, ["tools 0", "3.0", "4.0"], system="", tools=TOOLS)
    check(CHAT, ANY, ["3.0", "4.0"], system="")


def test_the_stable_messages_are_the_callers_to_know() -> None:
    check(CHAT, Cache(stable=5, minimum=0), ["system 0", "4.0"])
    check(CHAT, Cache(stable=3, minimum=0), ["system 0", "2.0", "4.0"])
    check(CHAT, Cache(stable=0, minimum=0), ["system 0", "4.0"])
    merged = [user("a"), assistant("", "1"), result("1"), user("now")]
    check(merged, ANY, ["system 0", "2.0", "2.1"])


def test_only_where_the_prefix_is_long_enough() -> None:
    sizes = [100, 200, 300, 400, 500]
    for fixed, expected in ((0, ["4.0"]), (200, ["3.0", "4.0"]), (1024, ["system 0", "3.0", "4.0"])):
        check(CHAT, Cache(tools=0, system=fixed, messages=sizes), expected)
    check(CHAT, Cache(minimum=2000, tools=0, system=600, messages=sizes), ["4.0"])
    check(CHAT, Cache(minimum=4000, tools=0, system=600, messages=sizes), [])
    check(CHAT, Cache(), [])
    check(CHAT, Cache(messages=[2000]), ["3.0", "4.0"])
    check([*CHAT[:-1], user("word " * 1000)], Cache(), ["4.0"])


def test_never_on_reasoning() -> None:
    messages = [user("a"), assistant([PARTS["text"], PARTS["thinking"]]), assistant("b"), user("now")]
    check(messages, Cache(stable=2, minimum=0), ["system 0", "1.0", "2.0"])
    trailing = [user("a"), assistant([PARTS["text"], PARTS["thinking"]]), user("now")]
    check(trailing, ANY, ["system 0", "1.0", "2.0"])


def test_a_turn_of_many_parallel_calls() -> None:
    ids = [str(number) for number in range(30)]
    messages = [user("a"), assistant("b"), user("c"), assistant("", *ids), *map(result, ids)]
    check(messages, Cache(stable=34, minimum=0), ["system 0", "2.0", "4.29"])
    check([*messages, user("now")], ANY, ["system 0", "2.0", "4.29", "4.30"])


def test_a_turn_of_many_steps() -> None:
    steps = [message for call in map(str, range(20)) for message in (assistant("", call), result(call))]
    messages = [user("a"), assistant("b"), user("c"), *steps, assistant("d"), user("now")]
    check(messages, ANY, ["system 0", "2.0", "43.0", "44.0"])


def test_breakpoints_that_came_with_the_parts_are_left_out() -> None:
    check([user([PARTS["cached text"]] * 6)], Cache(minimum=10_000), [])


def test_the_body_is_the_same_but_for_the_breakpoints() -> None:
    marked, plain = rendered(CHAT, ANY, tools=TOOLS), rendered(CHAT, None, tools=TOOLS)
    mark = ', "cache_control": {"type": "ephemeral"}'
    assert json.dumps(marked).replace(mark, "") == json.dumps(plain)


# ---------------------------------------------------------------- what the next request finds


class Provider:
    """What is cached after some requests, by the rules of the provider: numbers of blocks."""

    def __init__(self) -> None:
        self._cached: set[int] = set()

    def read(self, body: Any) -> tuple[int, int]:
        """Blocks that are found, and blocks in all. Then caches what the body asks for."""
        blocks = [*body.get("tools", ()), *body.get("system", ())]
        blocks += [block for message in body["messages"] for block in message["content"]]
        prefixes: list[int] = []
        for block in blocks:
            said = json.dumps({key: value for key, value in block.items() if key != "cache_control"})
            prefixes.append(hash((prefixes[-1] if prefixes else 0, said)))
        ends = [at for at, block in enumerate(blocks) if "cache_control" in block]
        found = [
            at + 1
            for end in ends
            for at in range(end, max(end - REACH, 0) - 1, -1)
            if prefixes[at] in self._cached
        ]
        self._cached.update(prefixes[end] for end in ends)
        return max(found, default=0), len(blocks)


STEPS = st.lists(st.lists(st.integers(0, 40), max_size=4), min_size=1, max_size=8)


@settings(deadline=None)  # of many requests each
@given(STEPS)
def test_each_request_finds_what_the_one_before_had_cached(turns: list[list[int]]) -> None:
    """Turns of a user, each with some steps of that many parallel calls."""
    provider = Provider()
    messages: list[Message] = []
    before = 0
    for number, steps in enumerate(turns):
        messages.append(user(f"turn {number}"))
        for step, count in enumerate(steps):
            before = request(provider, messages, before)
            add_step(messages, f"{number}-{step}", count)
        before = request(provider, messages, before)
        messages.append(assistant("done"))


def request(provider: Provider, messages: list[Message], before: int) -> int:
    """Send what a user and the tools said last; all of it comes again."""
    body = rendered(messages, Cache(stable=len(messages), minimum=0), tools=TOOLS)
    found, blocks = provider.read(body)
    assert found >= before
    assert len(places(body)) <= MOST
    return blocks


@settings(deadline=None)  # of many requests each
@given(STEPS)
def test_a_current_message_that_does_not_come_again(turns: list[list[int]]) -> None:
    """Requests at the beginning of turns only: what stood before is found, however long the turn was."""
    provider = Provider()
    history: list[Message] = []
    before = 0
    for number, steps in enumerate(turns):
        body = rendered([*history, user(f"at {number} o'clock: turn {number}")], ANY, tools=TOOLS)
        found, blocks = provider.read(body)
        assert found >= before
        assert len(places(body)) <= MOST
        before = blocks - 1
        history.append(user(f"turn {number}"))
        for step, count in enumerate(steps):
            add_step(history, f"{number}-{step}", count)
        history.append(assistant("done"))


def add_step(messages: list[Message], name: str, count: int) -> None:
    """An assistant's message with that many calls, and their results; nothing without calls."""
    ids = [f"{name}-{call}" for call in range(count)]
    if ids:
        messages.append(assistant("x", *ids))
        messages += map(result, ids)
