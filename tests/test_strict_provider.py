"""The strict provider of the tests refuses, caches and charges as the documentation says."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strict_cache import AUTOMATIC_LIFETIME_S, LOOKBACK, MOST_READ, STEP
from support.strict_provider import Answer, Pricing, Refused, Reply, StrictProvider, Usage
from support.strict_request import Body

OPUS = "claude-opus-5-5"
OLDER = "claude-opus-4-6"
GPT = "gpt-5.6"
OLDER_GPT = "gpt-4o"
PRICES = Pricing(input=4, output=20, cache_read=0.4, cache_write=5, cache_write_1h=8)
MARK: Body = {"cache_control": {"type": "ephemeral"}}
HOUR: Body = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
EXPLICIT: Body = {"prompt_cache_breakpoint": {"mode": "explicit"}}
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}


class Desk:
    """A provider with a clock that stands still; a word is a token."""

    def __init__(self, vendor: Any = "anthropic", minimum: int = 0) -> None:
        self.now = 0.0
        self.provider = StrictProvider(
            vendor,
            clock=lambda: self.now,
            count=lambda text: len(text.split()),
            pricing=PRICES,
            minimum=minimum,
        )

    def send(self, *messages: Body, answer: Answer = Answer("ok"), **fields: Any) -> Reply:  # noqa: B008
        return self.provider.send(request(*messages, **fields), answer)


def request(*messages: Body, model: str = OPUS, **fields: Any) -> Body:
    return {"model": model, "max_tokens": 100, "messages": list(messages), **fields}


def user(*content: Any) -> Body:
    return {"role": "user", "content": blocks(content)}


def assistant(*content: Any) -> Body:
    return {"role": "assistant", "content": blocks(content)}


def system(*content: Any) -> Body:
    return {"role": "system", "content": blocks(content)}


def blocks(content: Sequence[Any]) -> list[Body]:
    return [text(one) if isinstance(one, str) else one for one in content]


def text(words: str, **more: Any) -> Body:
    return {"type": "text", "text": words} | more


def words(number: int, word: str = "word") -> str:
    return " ".join([word] * number)


def call(name: str = "1", **more: Any) -> Body:
    return {"type": "tool_use", "id": name, "name": "look", "input": {}} | more


def result(name: str = "1", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": name, "content": "found"} | more


HI = user("hi")


# ---------------------------------------------------------------- what Anthropic refuses


def check_refused(body: Body, message: str, vendor: Any = "anthropic") -> None:
    with pytest.raises(Refused) as refused:
        Desk(vendor).provider.send(body)
    assert refused.value.message == message
    assert str(refused.value) == f"400 invalid_request_error: {message}"


CALLS_FIRST = (
    "`tool_use` ids were found without `tool_result` blocks immediately after: 1. Each `tool_use` block must "
    "have a corresponding `tool_result` block in the next message."
)
RESULT_ALONE = (
    "unexpected `tool_use_id` found in `tool_result` blocks: 2. Each `tool_result` block must have a "
    "corresponding `tool_use` block in the previous message."
)
TTL_ORDER = (
    "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
    "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
    "`messages`."
)
PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user message."
)
NO_CONTENT = "all messages must have non-empty content except for the optional final assistant message"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "messages: at least one message is required"),
        ([{"role": "tool", "content": "x"}], "messages.0.role: Input should be 'user' or 'assistant'"),
        ([assistant("hi"), HI], 'messages: first message must use the "user" role'),
        ([HI, assistant("hi")], PREFILL),
        ([user()], f"messages.0: {NO_CONTENT}"),
        ([{"role": "user", "content": ""}], f"messages.0: {NO_CONTENT}"),
        ([user("")], "messages: text content blocks must be non-empty"),
        ([user(" \n")], "messages: text content blocks must contain non-whitespace text"),
        ([user(call())], "messages.0.content.0: `tool_use` blocks are not allowed in `user` messages"),
        (
            [HI, assistant(result()), HI],
            "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
        ),
        ([system("x"), HI], "messages.0: use the top-level 'system' parameter for the initial system prompt"),
        ([user("\ud83d")], "The request body is not valid JSON: no low surrogate in string"),
        (
            [HI, assistant("x"), system("y")],
            "messages.2: a system message must follow a user message",
        ),
        (
            [HI, system("x"), system("y")],
            "messages.1: a system message must be last or be followed by an assistant message",
        ),
        ([HI, assistant(call()), user("hm")], f"messages.1: {CALLS_FIRST}"),
        ([HI, assistant(call()), user("hm", result())], f"messages.1: {CALLS_FIRST}"),
        ([HI, assistant(call(), call("3")), user(result("3"))], f"messages.1: {CALLS_FIRST}"),
        ([HI, assistant(call()), user(result()), user(result("2"))], f"messages.3.content.0: {RESULT_ALONE}"),
        ([HI, assistant(call(), call())], "messages.1.content.1: `tool_use` ids must be unique"),
        (
            [HI, assistant(call()), user(result(), "and", result("1"))],
            "messages.2.content.2: " + RESULT_ALONE.replace("2", "1"),
        ),
        (
            [HI, assistant(call("a b")), user(result("a b"))],
            "messages.1.content.0.tool_use.id: String should match pattern '[a-zA-Z0-9_-]+'",
        ),
    ],
)
def test_anthropic_refuses_messages(messages: list[Body], message: str) -> None:
    if messages and messages[-1]["role"] == "assistant" and "support" not in message:
        messages = [*messages, HI]
    check_refused(request(*messages), message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": ""}, "model: Field required"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"system": " "}, "system: text content blocks must be non-empty"),
        ({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
        (
            {"tools": [TOOL | {"name": "a b"}]},
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        ({"tools": [TOOL | {"input_schema": {}}]}, "tools.0.custom.input_schema.type: Field required"),
        (
            {"system": [text("x", cache_control={"type": "ephemeral", "ttl": "2h"})]},
            "cache_control.ttl: Input should be '5m' or '1h'",
        ),
        (
            {"system": [text("x", **MARK)], "messages": [user(text("x", **HOUR))]},
            TTL_ORDER,
        ),
        (
            {"messages": [user(*[text("x", **MARK)] * 5)]},
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (
            {"messages": [user(*[text("x", **MARK)] * 4)], **MARK},
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (
            {"model": "claude-opus-4-7", "messages": [HI, system("x")]},
            "messages.1: role 'system' is not supported on this model",
        ),
    ],
)
def test_anthropic_refuses_requests(fields: Body, message: str) -> None:
    check_refused(request(HI) | fields, message)


ENABLED = {"type": "enabled", "budget_tokens": 1_024}
THINKING_FIRST = (
    "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final "
    "`assistant` message must start with a thinking block."
)
UNSUPPORTED = '"thinking.type.{}" is not supported for this model.'


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        (
            OLDER,
            {"thinking": ENABLED | {"budget_tokens": 1_023}},
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        (
            OLDER,
            {"thinking": ENABLED, "max_tokens": 1_024},
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        ),
        (
            OLDER,
            {"thinking": ENABLED, "temperature": 0},
            "`temperature` may only be set to 1 when thinking is enabled.",
        ),
        (
            OLDER,
            {"thinking": ENABLED, "tool_choice": {"type": "any"}},
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        (
            OPUS,
            {"thinking": ENABLED},
            UNSUPPORTED.format("enabled")
            + ' Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
        ),
        (OPUS, {"thinking": {"type": "disabled"}}, UNSUPPORTED.format("disabled")),
        (OPUS, {"thinking": {"type": "between_tools"}}, UNSUPPORTED.format("between_tools")),
        (
            OPUS,
            {"tool_choice": {"type": "tool", "name": "look"}},
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        (OPUS, {"temperature": 1, "top_k": 2}, "`temperature`, `top_k` is not supported for this model."),
        (
            "claude-haiku-4-5",
            {"thinking": {"type": "adaptive"}},
            "adaptive thinking is not supported on this model",
        ),
        (
            OLDER,
            {"thinking": ENABLED, "messages": [HI, assistant(call()), user(result())]},
            f"messages.1.content.0.type: {THINKING_FIRST}",
        ),
        (
            "claude-opus-4-5",
            {"messages": [HI, assistant("so ")]},
            "messages: final assistant content cannot end with trailing whitespace",
        ),
    ],
)
def test_anthropic_refuses_thinking(model: str, fields: Body, message: str) -> None:
    check_refused(request(HI, model=model) | {"max_tokens": 5_000} | fields, message)


@pytest.mark.parametrize(
    "body",
    [
        request({"role": "user", "content": "a string"}),
        request(HI, user("again")),
        request(HI, assistant(call()), user(result(), "and")),
        request(HI, assistant(call()), assistant(call("2")), user(result("2")), user(result())),
        request(HI, system("news")),
        request(HI, system("news"), assistant("ok"), HI),
        request(HI, assistant("so"), model="claude-opus-4-5"),
        request(HI, thinking={"type": "between_tools"}, model="claude-sonnet-5-5"),
        request(HI, thinking={"type": "disabled"}, model="claude-haiku-5-5"),
        request(HI, thinking=ENABLED, model=OLDER, max_tokens=1_025),
        request(user(text("x", **MARK)), system=[text("x", **HOUR)], tools=[TOOL | HOUR], **MARK),
        request(HI, model="a-gateway's-own-name"),
    ],
)
def test_anthropic_accepts(body: Body) -> None:
    assert Desk().provider.send(body).message == {"role": "assistant", "content": [text("Done.")]}


# ---------------------------------------------------------------- thinking


THINK = Answer("Sure.", thinking=("hm",))
INVALID = "messages.{}: Invalid `signature` in `thinking` block"
ELSEWHERE = (
    " The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def first_turns(desk: Desk, number: int = 2, **fields: Any) -> list[Body]:
    """A conversation of some turns, each answered with a thinking block."""
    messages: list[Body] = []
    for turn in range(number):
        messages.append(user(f"question {turn}"))
        messages.append(desk.send(*messages, answer=THINK, **fields).message)
    return messages


def test_thinking_is_taken_back_behind_the_prefix_it_was_given_behind() -> None:
    desk = Desk()
    before: Body = {"system": "rules", "tools": [TOOL]}
    messages = first_turns(desk, **before)
    assert [block["type"] for block in messages[1]["content"]] == ["thinking", "text"]
    assert desk.send(*messages, HI, **before).dropped == ()


def edit(messages: list[Body], path: tuple[Any, ...], value: Any) -> list[Body]:
    """A copy with something else at the path; None: without it."""
    copy = json.loads(json.dumps(messages))
    *parents, last = path
    place: Any = copy
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return list(copy)


@pytest.mark.parametrize(
    ("path", "value", "refused"),
    [
        ((0, "content", 0, "text"), "another", "1.content.0"),
        ((1, "content", 1, "text"), "another", "3.content.0"),
        ((2, "content", 0, "text"), "another", "3.content.0"),
        ((3, "content", 1, "text"), "another", None),  # nothing that thinks comes after it
        ((0, "content", 0, "cache_control"), {"type": "ephemeral"}, None),  # breakpoints move
        ((0, "content"), "question 0", None),  # a string is a text block
        ((1, "content", 0), None, None),  # what came first may be left out
    ],
)
def test_a_change_before_a_thinking_block_is_refused(
    path: tuple[Any, ...], value: Any, refused: str | None
) -> None:
    desk = Desk()
    messages = edit(first_turns(desk), path, value)
    check_prefix(desk, request(*messages, HI), refused)


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"system": "other rules"}, "1.content.0"),
        ({"tools": []}, "1.content.0"),
        ({"tools": [TOOL | {"description": "d"}]}, "1.content.0"),
        ({"max_tokens": 7}, None),
        ({"system": [text("rules", **MARK)]}, None),
    ],
)
def test_a_change_of_system_prompt_or_tools_is_refused(fields: Body, refused: str | None) -> None:
    desk = Desk()
    before: Body = {"system": "rules", "tools": [TOOL]}
    messages = first_turns(desk, **before)
    check_prefix(desk, request(*messages, HI) | before | fields, refused)


def check_prefix(desk: Desk, body: Body, refused: str | None) -> None:
    if refused is None:
        assert desk.provider.send(body).dropped == ()
        return
    with pytest.raises(Refused) as error:
        desk.provider.send(body)
    assert error.value.message == INVALID.format(refused) + "." + ELSEWHERE


def test_a_thinking_block_between_others_is_not_left_out_or_moved() -> None:
    desk = Desk()
    messages = first_turns(desk, 3)
    check_prefix(desk, request(*edit(messages, (3, "content", 0), None), HI), "5.content.0")
    moved = json.loads(json.dumps(messages))
    moved[1]["content"][0], moved[3]["content"][0] = moved[3]["content"][0], moved[1]["content"][0]
    check_prefix(desk, request(*moved, HI), "1.content.0")


def test_dropping_is_per_block() -> None:
    desk = Desk()
    messages = first_turns(desk)
    changed = edit(messages, (2, "content", 0, "text"), "another")
    reply = desk.send(*changed, HI, thinking=DROP, answer=THINK)
    assert reply.dropped == (("messages.3.content.0", "prefix_binding_mismatch"),)
    # the answer to the changed conversation stays valid behind it, and the changed block stays invalid
    longer = [*changed, HI, reply.message, user("go on")]
    assert desk.send(*longer, thinking=DROP).dropped == reply.dropped
    check_prefix(desk, request(*longer), "3.content.0")


def test_dropped_thinking_is_no_part_of_the_prefix() -> None:
    desk = Desk()
    messages = first_turns(desk)
    changed = edit(messages, (0, "content", 0, "text"), "another")
    dropped = desk.send(*changed, HI, thinking=DROP)
    without = edit(edit(changed, (1, "content", 0), None), (3, "content", 0), None)
    assert len(dropped.dropped) == 2
    assert dropped.usage.sent == desk.send(*without, HI).usage.sent


def test_a_signature_of_nobody_is_invalid() -> None:
    desk = Desk()
    messages = first_turns(desk, 2)
    forged = edit(messages, (1, "content", 0, "signature"), "x")
    with pytest.raises(Refused) as error:
        desk.send(*forged, HI)
    assert error.value.message == INVALID.format("1.content.0")
    with pytest.raises(Refused) as error:
        desk.send(*edit(messages, (1, "content", 0, "thinking"), "hmm"), HI)
    assert error.value.message == INVALID.format("1.content.0")


def test_thinking_of_the_latest_answer_is_complete_and_unchanged() -> None:
    desk = Desk()
    reply = desk.send(
        HI, answer=Answer("", ("one", "two"), [("look", {})]), model=OLDER, thinking={"type": "adaptive"}
    )
    loop = [HI, reply.message, user(result(reply.message["content"][-1]["id"]))]
    assert desk.send(*loop, model=OLDER).dropped == ()
    without = edit(edit(loop, (1, "content", 0), None), (1, "content", 0), None)
    assert desk.send(*without, model=OLDER).dropped == ()
    expected = (
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
        "cannot be modified. These blocks must remain as they were in the original response."
    )
    for changed in (
        edit(loop, (1, "content", 0), None),
        edit(loop, (1, "content", 1, "thinking"), "three"),
    ):
        with pytest.raises(Refused) as error:
            desk.send(*changed, model=OLDER)
        assert error.value.message == expected


def test_older_models_take_thinking_behind_anything() -> None:
    desk = Desk()
    messages = first_turns(desk, model=OLDER, thinking={"type": "adaptive"})
    assert desk.send(*edit(messages, (0, "content", 0, "text"), "another"), HI, model=OLDER).dropped == ()


def test_another_model_is_not_shown_the_thinking() -> None:
    desk = Desk()
    messages = first_turns(desk, 1)
    reply = desk.send(*messages, HI, model="claude-sonnet-5-5", system="anything")
    assert reply.dropped == (("messages.1.content.0", "model_binding_mismatch"),)


def test_a_breakpoint_on_thinking_is_refused() -> None:
    desk = Desk()
    messages = edit(first_turns(desk, 1), (1, "content", 0, "cache_control"), {"type": "ephemeral"})
    with pytest.raises(Refused) as error:
        desk.send(*messages, HI)
    assert (
        error.value.message == "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"
    )


def test_a_model_thinks_only_where_it_may() -> None:
    for fields, thinks in (
        ({"model": OLDER}, False),
        ({"model": OLDER, "thinking": {"type": "adaptive"}}, True),
        ({"model": "claude-opus-5"}, True),
        ({"model": "claude-opus-5", "thinking": {"type": "disabled"}}, False),
    ):
        content = Desk().send(HI, answer=THINK, **fields).message["content"]
        assert [block["type"] for block in content] == (["thinking", "text"] if thinks else ["text"])


@given(st.lists(st.sampled_from(["ask", "call", "note", "tighten"]), min_size=1, max_size=12), st.data())
def test_an_append_only_client_is_never_refused_and_an_edit_before_thinking_always(
    steps: list[str], data: st.DataObject
) -> None:
    desk = Desk()
    messages: list[Body] = []
    for step in steps:
        messages.append(user(f"question {len(messages)}"))
        if step == "note":
            messages.append(system("news"))
        calls = [("look", {"at": len(messages)})] if step == "call" else []
        reply = desk.send(*messages, answer=Answer("ok", () if step == "tighten" else ("hm",), calls))
        messages.append(reply.message)
        if calls:
            messages.append(user(result(reply.message["content"][-1]["id"])))
            messages.append(desk.send(*messages, answer=THINK).message)
    thinking = [at for at, message in enumerate(messages) if message["content"][0]["type"] == "thinking"]
    assert desk.send(*messages, HI).dropped == ()
    if thinking:
        at = data.draw(st.integers(0, max(thinking) - 1))
        changed = edit(messages, (at, "content", len(messages[at]["content"]) - 1), text("changed"))
        if messages[at]["content"][-1]["type"] == "text":
            with pytest.raises(Refused):
                desk.send(*changed, HI)


# ---------------------------------------------------------------- Anthropic's cache


def tokens(reply: Reply) -> tuple[int, int, int, int]:
    """Plain, read, written for 5 minutes and for an hour."""
    return reply.usage[:4]


def marked(*sizes: int, marks: dict[int, Body]) -> Body:
    """A user message of blocks of so many tokens (4 of them are the message's), some with a breakpoint."""
    parts = [text(words(size - 4 * (at == 0), f"w{at}")) | marks.get(at, {}) for at, size in enumerate(sizes)]
    return {"role": "user", "content": parts}


def check_cache(*steps: tuple[float, Body, tuple[int, int, int, int]], minimum: int = 0) -> None:
    """Each step: the time in seconds, a message, and what of it is plain, read and written."""
    desk = Desk(minimum=minimum)
    outcomes = []
    for now, message, _ in steps:
        desk.now = now
        outcomes.append(tokens(desk.send(message)))
    assert outcomes == [expected for _, _, expected in steps]


def test_only_what_ends_at_a_breakpoint_is_cached() -> None:
    check_cache(
        (0, marked(100, 10, marks={}), (110, 0, 0, 0)),
        (0, marked(100, 10, marks={0: MARK}), (10, 0, 100, 0)),
        (0, marked(100, 10, marks={0: MARK}), (10, 100, 0, 0)),
        (0, marked(100, 10, marks={1: MARK}), (0, 100, 10, 0)),
        (0, marked(100, 11, marks={1: MARK}), (0, 100, 11, 0)),
        (0, marked(101, 11, marks={1: MARK}), (0, 0, 112, 0)),
        (0, marked(100, 10, marks={}), (110, 0, 0, 0)),
    )


def test_an_entry_lives_five_minutes_from_its_last_use() -> None:
    both = {0: MARK}
    check_cache(
        (0, marked(100, marks=both), (0, 0, 100, 0)),
        (299, marked(100, marks=both), (0, 100, 0, 0)),
        (598, marked(100, marks=both), (0, 100, 0, 0)),
        (898, marked(100, marks=both), (0, 0, 100, 0)),
        (500, marked(100, marks=both), (0, 100, 0, 0)),  # a clock that goes back
    )


def test_an_hour_is_written_as_far_as_its_last_breakpoint() -> None:
    marks = {0: HOUR, 2: MARK}
    check_cache(
        (0, marked(100, 20, 30, 4, marks=marks), (4, 0, 50, 100)),
        (400, marked(100, 20, 30, 4, marks=marks), (4, 100, 50, 0)),
        (3_999, marked(100, 20, 30, 4, marks=marks), (4, 100, 50, 0)),
        (7_600, marked(100, 20, 30, 4, marks=marks), (4, 0, 50, 100)),
    )


def test_short_prefixes_are_not_cached() -> None:
    check_cache(
        (0, marked(1_023, 1, marks={0: MARK}), (1_024, 0, 0, 0)),
        (0, marked(1_023, 1, marks={0: MARK, 1: MARK}), (0, 0, 1_024, 0)),
        (0, marked(1_023, 1, marks={0: MARK}), (1_024, 0, 0, 0)),
        (0, marked(1_023, 1, marks={1: MARK}), (0, 1_024, 0, 0)),
        minimum=1_024,
    )


@pytest.mark.parametrize(("more", "read"), [(LOOKBACK - 1, 100), (LOOKBACK, 0)])
def test_the_look_back_is_of_twenty_blocks(more: int, read: int) -> None:
    sizes = [100, *[1] * more]
    check_cache(
        (0, marked(100, marks={0: MARK}), (0, 0, 100, 0)),
        (0, marked(*sizes, marks={more: MARK}), (0, read, 100 + more - read, 0)),
    )


def test_tools_come_before_the_system_prompt_and_that_before_messages() -> None:
    desk = Desk()
    sized = 1  # JSON without spaces
    fields: Body = {"tools": [TOOL | MARK], "system": [text("four words of rules", **MARK)]}
    message = user(text("hi", **MARK))
    assert tokens(desk.send(message, **fields)) == (0, 0, sized + 4 + 5, 0)
    assert tokens(desk.send(user(text("ho", **MARK)), **fields)) == (0, sized + 4, 5, 0)
    assert tokens(desk.send(message, **fields | {"system": [text("other", **MARK)]})) == (0, sized, 6, 0)
    assert tokens(desk.send(message, **fields | {"tools": [TOOL | {"description": "d"} | MARK]}))[1] == 0
    # a change of thinking or of the tool choice keeps tools and system prompt
    changed: Body = fields | {"tool_choice": {"type": "none"}}
    assert tokens(desk.send(message, **changed)) == (0, sized + 4, 5, 0)
    for unchanged in ({"type": "adaptive"}, DROP):
        assert tokens(desk.send(message, **fields, thinking=unchanged)) == (0, sized + 9, 0, 0)
    switched: Body = fields | {"model": OLDER, "thinking": {"type": "adaptive"}}
    assert tokens(desk.send(message, **fields, model=OLDER)) == (0, 0, sized + 9, 0)
    assert tokens(desk.send(message, **switched)) == (0, sized + 4, 5, 0)
    # each model has its own
    assert tokens(desk.send(message, **fields, model="claude-opus-5"))[1] == 0


def test_the_automatic_breakpoint_is_at_the_last_block() -> None:
    desk = Desk()
    assert tokens(desk.send(user("one two"), **MARK)) == (0, 0, 6, 0)
    assert tokens(desk.send(user("one two"), assistant("x"), user("y"), **MARK)) == (0, 6, 10, 0)
    assert (
        desk.send(user("one two"), assistant("x"), user("y"), **MARK).read_through == "messages.2.content.0"
    )


def test_usage_and_cost_are_the_vendors() -> None:
    desk = Desk()
    message = marked(1_000, 100, 10, marks={0: HOUR, 1: MARK})
    reply = desk.send(message, answer=Answer("three more words", calls=[("look", {"a": 1})]))
    assert reply.usage == Usage(10, 0, 100, 1_000, 3 + 1 + 2)
    assert reply.usage.sent == 1_110
    assert reply.cost == pytest.approx((10 * 4 + 100 * 5 + 1_000 * 8 + 6 * 20) / 1_000_000)
    assert reply.usage.cost_of_input(PRICES) == pytest.approx((10 * 4 + 100 * 5 + 1_000 * 8) / 1_000_000)
    assert reply.body == {
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 1_100,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 1_000},
            "output_tokens": 6,
        },
        "stop_reason": "tool_use",
    }
    assert reply.message["content"] == [
        text("three more words"),
        {"type": "tool_use", "id": "call_1_0", "name": "look", "input": {"a": 1}},
    ]
    assert desk.send(message).cost == pytest.approx((10 * 4 + 1_100 * 0.4 + 1 * 20) / 1_000_000)


def test_a_refused_request_leaves_no_trace() -> None:
    desk = Desk()
    with pytest.raises(Refused):
        desk.send(user(text("hi", **MARK), result("2")))
    assert tokens(desk.send(user(text("hi", **MARK)))) == (0, 0, 5, 0)


# ---------------------------------------------------------------- OpenAI


def gpt(*messages: Body, model: str = GPT, **fields: Any) -> Body:
    return {"model": model, "messages": list(messages), **fields}


def said(role: str, content: Any, **more: Any) -> Body:
    return {"role": role, "content": content} | more


def function(name: str = "1") -> Body:
    return {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}


ASK = said("user", "hi")
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
)
TOO_LONG = "string too long. Expected a string with maximum length 40."
NOT_A_RESPONSE = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (gpt(), "[] is too short - 'messages'"),
        (gpt(ASK, model=""), "you must provide a model parameter"),
        (
            gpt(said("model", "x")),
            "Invalid value: 'model'. Supported values are: developer, system, user, assistant, tool.",
        ),
        (gpt(said("user", None)), "Invalid value for 'content': expected a string, got null."),
        (gpt(said("user", [])), "Invalid 'messages[0].content': empty array."),
        (gpt(said("assistant", None)), "Invalid value for 'content': expected a string, got null."),
        (gpt(said("assistant", "x", tool_calls=[])), "[] is too short - 'messages.0.tool_calls'"),
        (gpt(said("user", "x", tool_calls=[function()])), "Unknown parameter: 'messages[0].tool_calls'."),
        (
            gpt(said("assistant", None, tool_calls=[function("a" * 41)])),
            f"Invalid 'messages[0].tool_calls[0].id': {TOO_LONG}",
        ),
        (gpt(ASK, said("assistant", None, tool_calls=[function()])), UNANSWERED.format("1")),
        (
            gpt(
                said("assistant", None, tool_calls=[function(), function("2")]),
                said("tool", "x", tool_call_id="2"),
                ASK,
            ),
            UNANSWERED.format("1"),
        ),
        (gpt(said("tool", "x", tool_call_id="1")), NOT_A_RESPONSE),
        (
            gpt(said("assistant", None, tool_calls=[function()]), *[said("tool", "x", tool_call_id="1")] * 2),
            NOT_A_RESPONSE,
        ),
        (
            gpt(ASK, tools=[{"type": "function", "function": {"name": "a b"}}]),
            "Invalid 'tools[0].function.name': string does not match pattern.",
        ),
        (
            gpt(ASK, model=OLDER_GPT, prompt_cache_options={}),
            "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
        ),
        (
            gpt(said("user", [text("x", **EXPLICIT)]), model="gpt-5.5"),
            "Unsupported parameter: 'prompt_cache_breakpoint' is not supported with this model.",
        ),
        (gpt(said("assistant", [text("x", **EXPLICIT)])), "Unknown parameter: 'prompt_cache_breakpoint'."),
        (
            gpt(ASK, prompt_cache_options={"ttl": "1h"}),
            "Invalid value: 'prompt_cache_options.ttl'. Supported values are: '30m'.",
        ),
    ],
)
def test_openai_refuses(body: Body, message: str) -> None:
    check_refused(body, message, "openai")


def test_openai_answers_in_its_form() -> None:
    desk = Desk("openai")
    reply = desk.provider.send(gpt(ASK), Answer("", calls=[("look", {"at": 1})]))
    assert reply.message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1_0", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
        ],
    }
    assert reply.body == {
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 5},
        },
        "stop_reason": "tool_use",
    }


def check_openai(*steps: tuple[float, Body, tuple[int, int, int]], minimum: int = 1_024) -> None:
    """Each step: the time in seconds, a body, and what of it is plain, read and written."""
    desk = Desk("openai", minimum)
    outcomes = []
    for now, body, _ in steps:
        desk.now = now
        outcomes.append(desk.provider.send(body).usage[:3])
    assert outcomes == [expected for _, _, expected in steps]


RULES = said("system", words(2_000 - 4))
SHORT = said("system", words(1_019 - 4))


def older(*messages: Body, **fields: Any) -> Body:
    return gpt(*messages, **{"model": OLDER_GPT} | fields)


def test_any_common_prefix_is_read_in_steps_of_128_tokens() -> None:
    steps = 2_000 // STEP * STEP
    longer = (2_000 + 4 + 100) // STEP * STEP
    check_openai(
        (0, older(RULES, said("user", words(100))), (2_104, 0, 0)),
        (0, older(RULES, said("user", words(100))), (2_104 - longer, longer, 0)),
        (0, older(RULES, said("user", words(100, "x"))), (2_104 - steps, steps, 0)),
        # within a message, too: of 1,996 words the first 1,300 are the same
        (0, older(said("system", words(1_300) + " " + words(696, "x"))), (2_000 - 1_280, 1_280, 0)),
        (0, older(ASK, RULES), (2_005, 0, 0)),
        (0, older(RULES, model="gpt-5"), (2_000, 0, 0)),
        (0, older(RULES, prompt_cache_key="k"), (2_000, 0, 0)),
    )


def test_less_than_1024_tokens_is_not_read() -> None:
    check_openai(
        (0, older(SHORT, said("user", "a")), (1_024, 0, 0)),
        (0, older(SHORT, said("user", "b")), (1_024, 0, 0)),
        (0, older(SHORT, said("user", "a")), (0, 1_024, 0)),
    )


def test_the_automatic_cache_forgets() -> None:
    read = 2_000 // STEP * STEP
    check_openai(
        (0, older(RULES), (2_000, 0, 0)),
        (AUTOMATIC_LIFETIME_S - 1, older(RULES), (2_000 - read, read, 0)),
        (2 * AUTOMATIC_LIFETIME_S - 1, older(RULES), (2_000, 0, 0)),
        (2 * AUTOMATIC_LIFETIME_S, older(RULES, prompt_cache_retention="24h"), (2_000 - read, read, 0)),
        (80_000, older(RULES), (2_000 - read, read, 0)),
    )


def test_the_implicit_breakpoint_is_at_the_newest_message() -> None:
    first = [RULES, said("user", words(96))]
    answered = [*first, said("assistant", words(6)), said("user", words(16))]
    check_openai(
        (0, gpt(*first), (0, 0, 2_100)),
        # appended to: all of it is read, and only what is new is written
        (0, gpt(*answered), (0, 2_100, 30)),
        # the same beginning and another end: nothing is read, all is written
        (0, gpt(RULES, said("user", words(96, "x"))), (0, 0, 2_100)),
        (1_799, gpt(*first), (0, 2_100, 0)),
        (1_801, gpt(*answered), (0, 2_100, 30)),
    )


def test_explicit_breakpoints_hold_the_stable_prefix() -> None:
    rules = said("system", [text(words(2_000 - 4), **EXPLICIT)])
    only: Body = {"prompt_cache_options": {"mode": "explicit"}}
    check_openai(
        (0, gpt(rules, said("user", words(96))), (0, 0, 2_100)),
        (0, gpt(rules, said("user", words(96, "x"))), (0, 2_000, 100)),
        (0, gpt(rules, said("user", words(96, "y")), **only), (100, 2_000, 0)),
        (0, gpt(RULES, said("user", words(96, "z")), **only), (2_100, 0, 0)),
        (0, gpt(ASK, rules, said("user", words(96, "z")), **only), (100, 0, 2_005)),
    )


def test_a_request_writes_at_most_four_breakpoints() -> None:
    parts = [text(words(200 - 4 * (at == 0), f"w{at}"), **EXPLICIT) for at in range(5)]
    desk = Desk("openai", 0)
    desk.provider.send(gpt(said("user", [*parts, text("end")])))
    only: Body = {"prompt_cache_options": {"mode": "explicit"}}
    read = [
        desk.provider.send(gpt(said("user", [*parts[: at + 1], text("other")]), **only)).usage.cache_read
        for at in range(1, 5)
    ]
    assert read == [0, 600, 800, 1_000]


def test_a_request_reads_at_the_latest_80_breakpoints() -> None:
    first = [RULES, said("user", "start")]
    for more, read in ((MOST_READ - 2, 2_000), (MOST_READ - 1, 2_000), (MOST_READ, 0)):
        desk = Desk("openai", 1_024)
        desk.provider.send(gpt(*first[:1]))
        turns = [said("user", f"turn {number}") for number in range(more)]
        assert desk.provider.send(gpt(first[0], *turns)).usage.cache_read == read, more


def test_a_write_costs_a_quarter_more() -> None:
    desk = Desk("openai")
    assert desk.provider.send(gpt(RULES), Answer("ok")).cost == pytest.approx((2_000 * 5 + 20) / 1_000_000)
    assert desk.provider.send(gpt(RULES), Answer("ok")).cost == pytest.approx((2_000 * 0.4 + 20) / 1_000_000)


# ---------------------------------------------------------------- OpenAI's Responses


def items(*given: Body, model: str = GPT, **fields: Any) -> Body:
    return {"model": model, "input": list(given), "store": False, **fields}


def message(role: str, *parts: Any) -> Body:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [part if isinstance(part, dict) else {"type": kind, "text": part} for part in parts]
    return {"type": "message", "role": role, "content": content}


def calling(number: str = "1", **more: Any) -> Body:
    return {"type": "function_call", "call_id": number, "name": "look", "arguments": "{}"} | more


def output(name: str = "1", text: str = "found") -> Body:
    return {"type": "function_call_output", "call_id": name, "output": text}


ALONE = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
KINDS = "function_call, function_call_output, reasoning, compaction"
UNREADABLE = "Reason: Encrypted content could not be decrypted or parsed."
REASONING: Body = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []}


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (items(), "Missing required parameter: 'input'."),
        (items(message("user", "hi"), model=""), "Missing required parameter: 'model'."),
        (
            items(message("tool", "x")),
            "Invalid value: 'tool'. Supported values are: user, assistant, system, developer.",
        ),
        (items({"role": "user", "content": ""}), "Missing required parameter: 'input[0].content'."),
        (
            items(message("user", {"type": "output_text", "text": "x"})),
            "Invalid value: 'output_text'. In 'input[0].content[0].type'.",
        ),
        (
            items({"type": "magic"}),
            f"Invalid value: 'magic'. Supported values are: {KINDS}.",
        ),
        (items(calling()), "No tool output found for function call 1."),
        (items(output()), "No tool call found for function call output with call_id 1."),
        (items(calling(), output(), output()), "No tool call found for function call output with call_id 1."),
        (
            items(calling("a" * 65), output("a" * 65)),
            "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64.",
        ),
        (
            items(calling(name="a b"), output()),
            "Invalid 'input[0].name': string does not match pattern.",
        ),
        (items(calling(), output(text="")), "Missing required parameter: 'input[1].output'."),
        (items(message("user", "hi"), REASONING), ALONE),
        (items(REASONING, message("user", "hi")), ALONE),
        (
            items(REASONING | {"encrypted_content": ""}),
            "Missing required parameter: 'input[0].encrypted_content'.",
        ),
        (
            items(REASONING, calling(), output()),
            f"The encrypted content x could not be verified. {UNREADABLE}",
        ),
        (
            items(message("user", {"type": "input_text", "text": "x"} | EXPLICIT), model="gpt-5.5"),
            "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
        ),
        (
            items(message("assistant", {"type": "output_text", "text": "x"} | EXPLICIT)),
            "Unknown parameter: 'prompt_cache_breakpoint'.",
        ),
    ],
)
def test_responses_refuse(body: Body, refusal: str) -> None:
    check_refused(body, refusal, "openai")


def test_reasoning_comes_back_as_it_was_given_behind_anything() -> None:
    desk = Desk("openai")
    first = [message("user", "hi")]
    reply = desk.provider.send(items(*first), Answer("", ("hm", "so"), [("look", {})]))
    given_items = reply.message["output"]
    assert [item["type"] for item in given_items] == ["reasoning", "reasoning", "function_call"]
    more = [*given_items, output(given_items[-1]["call_id"])]
    assert desk.provider.send(items(*first, *more)).usage.sent > 0
    assert desk.provider.send(items(message("user", "changed"), *more)).usage.sent > 0
    for changed in (
        edit(given_items, (0, "encrypted_content"), "forged"),
        edit(given_items, (0, "summary"), [{"type": "summary_text", "text": "x"}]),
    ):
        with pytest.raises(Refused, match="could not be verified"):
            desk.provider.send(items(*first, *changed, more[-1]))


def test_a_compaction_stands_for_what_was_before() -> None:
    desk = Desk("openai")
    reply = desk.provider.send(items(message("user", "hi")), Answer("ok", compaction="all of it"))
    compaction, text_item = reply.message["output"]
    assert compaction["type"] == "compaction"
    assert desk.provider.send(items(compaction, text_item, message("user", "go on"))).usage.sent > 0
    with pytest.raises(Refused, match="could not be verified"):
        desk.provider.send(items(compaction | {"encrypted_content": "x"}, message("user", "go on")))


def test_responses_cache_as_chat_completions_do() -> None:
    rules = message("developer", words(1_996))
    first = [rules, message("user", words(96))]
    answered = [*first, message("assistant", words(6)), message("user", words(16))]
    changed = [rules, message("user", words(96, "x"))]
    explicit = [message("developer", {"type": "input_text", "text": words(1_996)} | EXPLICIT)]
    check_openai(
        (0, items(*first), (0, 0, 2_100)),
        (0, items(*answered), (0, 2_100, 30)),
        (0, items(*changed), (0, 0, 2_100)),
        (0, items(*explicit, first[1]), (0, 2_100, 0)),
        (0, items(*explicit, message("user", words(96, "y"))), (0, 2_000, 100)),
        (1_799, items(*answered), (0, 2_130, 0)),
        (3_599, items(*answered), (0, 0, 2_130)),
    )
    older_steps = 2_000 // STEP * STEP
    check_openai(
        (0, items(*first, model="gpt-5.4"), (2_100, 0, 0)),
        (0, items(*changed, model="gpt-5.4"), (2_100 - older_steps, older_steps, 0)),
    )
    check_openai(
        (0, items(message("user", "a"), instructions=words(1_996)), (0, 0, 2_005)),
        (0, items(message("user", "a"), message("user", "b"), instructions=words(1_996)), (0, 2_005, 5)),
    )


def test_usage_of_responses() -> None:
    reply = Desk("openai", 0).provider.send(items(message("user", "hi")), Answer("ok", ("hm",)))
    assert reply.body == {
        "usage": {
            "input_tokens": 5,
            "output_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 5},
            "total_tokens": 7,
        },
        "stop_reason": "end_turn",
    }
