"""Broken histories: how they are repaired and reported, and that sound ones stay unchanged."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.conversation.repair import MOST_DEPTH, Repair, repaired
from support.conversations import DEEP, MESSAGES, PARTS, assistant, nested, result, shown, user

MISSING = "[No result of this call was recorded.]"


def late(text: str, *label: str) -> str:
    """The marked text of a result without its call."""
    names = ' {}="{}"'.format(*label) if label else ""
    return f"<late_tool_result{names}>\n{text}\n</late_tool_result>"


def check(messages: list[Message], expected: list[str], repairs: list[str]) -> list[Repair]:
    """The messages after repair, a line each, and the repairs: kind, index, call."""
    made, said = repaired(messages)
    assert [shown(message) for message in made] == expected
    assert [f"{one.kind} {one.index} {one.tool_call_id or ''}".strip() for one in said] == repairs
    assert repaired(made) == (made, [])
    return said


def test_a_sound_history_is_returned_itself() -> None:
    messages = [
        Message("system", "s"),
        user("a"),
        user([PARTS["image"]]),
        assistant(None, "1", "2"),
        result("2", ""),
        result("1"),
        assistant("b", "é"),
        result("é", [PARTS["text"]]),
        assistant("c"),
    ]
    made, said = repaired(messages)
    assert made is messages
    assert said == []
    assert repaired(tuple(messages)) == (messages, [])
    assert repaired([]) == ([], [])


@pytest.mark.parametrize(
    ("messages", "expected", "repairs"),
    [
        pytest.param(
            [user("a"), assistant("b", "1", "2"), result("1"), user("c")],
            ["user: a", "assistant: b [1] [2]", "tool 1: found", f"tool 2: {MISSING}", "user: c"],
            ["result-missing 1 2"],
            id="missing",
        ),
        pytest.param(
            [user("a"), assistant("b", "1"), user("c"), assistant("d"), result("1")],
            ["user: a", "assistant: b [1]", "tool 1: found", "user: c", "assistant: d"],
            ["result-moved 4 1"],
            id="a user came between",
        ),
        pytest.param(
            [user("a"), result("1"), assistant("b", "1"), user("c")],
            ["user: a", "assistant: b [1]", "tool 1: found", "user: c"],
            ["result-moved 1 1"],
            id="result before its call",
        ),
        pytest.param(
            [user("a"), result("0"), assistant("b"), result(None), result("9", "")],
            ["user: a", f"user: {late('found', 'call', '0')}", "assistant: b", f"user: {late('found')}"],
            ["result-orphan 1 0", "result-orphan 3", "result-orphan 4 9"],
            id="orphans",
        ),
        pytest.param(
            [user("a"), assistant("", "1"), result("1", "running"), result("1", "done"), assistant("b")],
            ["user: a", "assistant:  [1]", "tool 1: running", "assistant: b"],
            ["result-repeated 3 1"],
            id="the first result counts",
        ),
        pytest.param(
            [user("a"), assistant("", "1"), result("1", "running"), user("b"), result("1", "done")],
            ["user: a", "assistant:  [1]", "tool 1: running", "user: b"],
            ["result-repeated 4 1"],
            id="a later result changes nothing that was sent",
        ),
        pytest.param(
            [
                assistant("", "1"),
                result("1", "x"),
                assistant("", "1"),
                result("1", "y"),
                assistant("", "1-2"),
            ],
            [
                *("assistant:  [1]", "tool 1: x", "assistant:  [1-3]", "tool 1-3: y"),
                *("assistant:  [1-2]", f"tool 1-2: {MISSING}"),
            ],
            ["call-renamed 2 1-3", "result-missing 4 1-2"],
            id="an id again",
        ),
        pytest.param(
            [assistant("", "1", "1"), result("1", "x"), result("1", "y"), assistant("a", "1")],
            [
                "assistant:  [1] [1-2]",
                "tool 1: x",
                "tool 1-2: y",
                "assistant: a [1-3]",
                f"tool 1-3: {MISSING}",
            ],
            ["call-renamed 0 1-2", "call-renamed 3 1-3", "result-missing 3 1-3"],
            id="an id twice in a message",
        ),
        pytest.param(
            [assistant("", "1"), assistant("", "1"), result("1", "x")],
            ["assistant:  [1]", f"tool 1: {MISSING}", "assistant:  [1-2]", "tool 1-2: x"],
            ["result-missing 0 1", "call-renamed 1 1-2"],
            id="too few results go to the newest calls",
        ),
        pytest.param(
            [assistant("", "1"), assistant("", "1"), result("1", "x"), result("1", "y")],
            ["assistant:  [1]", "tool 1: x", "assistant:  [1-2]", "tool 1-2: y"],
            ["call-renamed 1 1-2", "result-moved 2 1"],
            id="enough results go in order",
        ),
        pytest.param(
            [assistant("", "1", "2"), result("2", "x"), result(None, "y"), result(None, "z")],
            ["assistant:  [1] [2]", "tool 2: x", "tool 1: y", f"user: {late('z')}"],
            ["result-unnamed 2 1", "result-orphan 3"],
            id="a result without an id",
        ),
        pytest.param(
            [assistant("", "", ""), result("", "x")],
            ["assistant:  [call-1] [call-2]", "tool call-1: x", f"tool call-2: {MISSING}"],
            [
                "call-renamed 0 call-1",
                "call-renamed 0 call-2",
                "result-missing 0 call-2",
                "result-unnamed 1 call-1",
            ],
            id="a call without an id",
        ),
        pytest.param(
            [Message("user", "a", (ToolCall("1", "search"),)), result("1")],
            ["user: a", "assistant:  [1]", "tool 1: found"],
            ["call-misplaced 0 1"],
            id="calls of a user",
        ),
        pytest.param(
            [
                user("a"),
                user(""),
                assistant(None),
                assistant([PARTS["blank"]]),
                Message("system", " "),
                user([]),
            ],
            ["user: a"],
            [f"message-empty {index}" for index in range(1, 6)],
            id="empty",
        ),
        pytest.param(
            [assistant([PARTS["text"], PARTS["call"]]), user([PARTS["text"], PARTS["result"]])],
            [f"assistant: {[PARTS['text']]} [1]", "tool 1: found", f"user: {[PARTS['text']]}"],
            [],
            id="calls and results in the content",
        ),
        pytest.param(
            [assistant([PARTS["text"], PARTS["call"], PARTS["result"]])],
            [f"assistant: {[PARTS['text']]} [1]", "tool 1: found"],
            ["block-lifted 0", "result-moved 0 1"],
            id="a result in an answer",
        ),
        pytest.param(
            [Message("nobody", "a")],  # type: ignore[arg-type]
            ["user: a"],
            ["role-unknown 0"],
            id="role",
        ),
        pytest.param(
            [Message("user", {"type": "text", "text": "a"})],  # type: ignore[arg-type]
            [f"user: {[{'type': 'text', 'text': 'a'}]}"],
            ["not-json 0"],
            id="an object for a content",
        ),
        pytest.param(
            [user("half \ud83d"), Message("assistant", [{"type": "text", "text": "\ude00"}])],
            ["user: half \ufffd", f"assistant: {[{'type': 'text', 'text': chr(0xFFFD)}]}"],
            ["not-json 0", "not-json 1"],
            id="half a surrogate pair",
        ),
    ],
)
def test_repairs(messages: list[Message], expected: list[str], repairs: list[str]) -> None:
    check(messages, expected, repairs)


def test_a_result_without_an_id_prefers_the_call_of_its_tool() -> None:
    calls = (ToolCall("1", "read"), ToolCall("2", "search"))
    messages = [Message("assistant", None, calls), result(None, "x", "search"), result(None, "y", "search")]
    check(
        messages,
        ["assistant:  [1] [2]", "tool 2: x", "tool 1: y"],
        ["result-unnamed 1 2", "result-unnamed 2 1"],
    )


def test_a_missing_result_is_marked_as_a_failure() -> None:
    made, _ = repaired([assistant("", "1")])
    assert made[1] == Message("tool", MISSING, tool_call_id="1", name="search", meta={"is_error": True})
    made, _ = repaired([assistant([PARTS["call"]]), user([{**PARTS["result"], "is_error": True}])])
    assert made[1].meta == {"is_error": True}


def test_a_repair_says_what_is_wrong_and_what_was_done() -> None:
    said = check(
        [user("a"), assistant("", "1"), assistant("", "1")],
        ["user: a", "assistant:  [1]", f"tool 1: {MISSING}", "assistant:  [1-2]", f"tool 1-2: {MISSING}"],
        ["result-missing 1 1", "call-renamed 2 1-2", "result-missing 2 1-2"],
    )
    assert said[1] == Repair(
        "call-renamed",
        "An earlier call also has the id 1; the one in message 3 is sent as 1-2.",
        2,
        "1-2",
        given="1",
        sent="1-2",
    )
    assert said[0].text == "The call 1 of search has no result; a text says so."


@pytest.mark.parametrize("arguments", [{"a": "\ud800"}, nested(DEEP), {"a": object()}])
def test_arguments_become_json(arguments: Any) -> None:
    messages = [Message("assistant", None, (ToolCall("1", "search", arguments),)), result("1")]
    made, said = repaired(messages)
    assert [one.kind for one in said] == ["not-json"]
    msgspec.json.encode(made)
    sound = [Message("assistant", None, (ToolCall("1", "search", nested(MOST_DEPTH)),)), result("1")]
    assert repaired(sound)[0] is sound


def test_a_repair_at_the_end_leaves_what_is_before_it() -> None:
    messages = [
        user("a"),
        assistant("b", "1", "2"),
        result("2"),
        result("1"),
        assistant("c", "1"),
        result("9"),
    ]
    made, said = repaired(messages)
    assert made[:4] == messages[:4]
    assert [one.kind for one in said] == ["call-renamed", "result-missing", "result-orphan"]


@given(MESSAGES)
def test_repaired_once_is_repaired(messages: list[Message]) -> None:
    made, said = repaired(messages)
    assert repaired(made) == (made, [])
    assert (made is messages) == (said == [])
    msgspec.json.encode(made)


@given(MESSAGES)
def test_what_comes_later_changes_nothing(messages: list[Message]) -> None:
    made, said = repaired(messages)
    later, more = repaired([*messages, user("later")])
    assert (later, more) == ([*made, user("later")], said)
    later, more = repaired([*messages, result("of another call")])
    assert (later[:-1], more[:-1], more[-1].kind) == (made, said, "result-orphan")
    assert (later[-1].role, "found" in text_of(later[-1])) == ("user", True)


@given(MESSAGES)
def test_nothing_is_left_out_silently(messages: list[Message]) -> None:
    numbered = [
        msgspec.structs.replace(message, content=f"text {index}.") for index, message in enumerate(messages)
    ]
    made, said = repaired(numbered)
    left_out = {one.index for one in said if one.kind == "result-repeated"}
    texts = "\n".join(map(text_of, made))
    for index, message in enumerate(numbered):
        assert (text_of(message) in texts) != (index in left_out)
    assert all(one.text.endswith(".") and one.kind for one in said)
