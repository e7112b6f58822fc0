"""A conversation used from Python: input, what is sent, its cost, and compactions."""

from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.compaction.run import CompactionResult, select_messages_for_compaction
from nexus_context.conversation.compaction.summarizer import build_summarize_prompt
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import create_summary_message
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.conversation.window import Budget, Policy
from nexus_context.errors import ContextOverflowError, RequestError
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.turn.manager import ContextManager
from support.histories import BROKEN, Letters, conversation, histories, pairing_errors, shown

NOW = datetime(2026, 11, 20, 9, 5)
TOOLS = [{"name": "read", "description": "Reads a file."}, {"name": "grep"}]


def manager(text: str = "", *, room: int = 6_000, **config: Any) -> ContextManager:
    """A conversation with `room` tokens and without a note of what is cut."""
    made = ContextManager(
        ContextConfig(max_tokens=room, reserve_tokens=0, identifier_tokens=0, **config), counter=Letters()
    )
    made.add(conversation(text))
    return made


def check(made: ContextManager, sent: str, *, over: bool = False) -> None:
    """What is sent, whether it takes a cut, and the figures of the request and after it."""
    assert made.is_over_budget() is over
    messages = made.build_messages()
    assert shown(messages) == sent
    usage = made.get_token_usage()
    told = [one for one in messages if one.role != "system"]
    assert usage["messages"] == Letters().count_messages(told)
    assert usage["total"] == sum(row.tokens for row in usage.rows) <= usage["available"]
    assert not made.is_over_budget()


def test_what_a_program_adds_is_what_is_sent() -> None:
    made = ContextManager()
    made.set_system_prompt("Be brief.")
    made.set_tool_definitions(TOOLS)
    parts = [{"type": "text", "text": "What is in a.py?"}]
    made.add_user_message(parts)
    made.add_assistant_message(None, [{"id": "c1", "name": "read", "arguments": {"path": "a.py"}}])
    made.add_tool_result("c1", "read", "x = 1")
    made.add_assistant_message("One line.")
    assert made.build_messages() == [
        Message("system", "Be brief."),
        Message("user", parts),
        Message("assistant", None, (ToolCall("c1", "read", {"path": "a.py"}),)),
        Message("tool", "x = 1", tool_call_id="c1", name="read"),
        Message("assistant", "One line."),
    ]
    assert made.system_prompt == "Be brief."
    assert made.get_tool_definitions() == TOOLS
    assert [(row.category, row.label) for row in made.get_token_usage().rows] == [
        ("system", "system prompt"),
        ("tools", "read"),
        ("tools", "grep"),
        ("history", "4 messages"),
    ]


def test_a_new_session_says_when_it_began() -> None:
    made = ContextManager(started=NOW)
    assert made.messages == [Message("user", "[Session started: 2026-11-20 09:05 (local)]")]


def test_messages_and_tools_are_copies() -> None:
    made = manager("u1 a1")
    made.set_tool_definitions(TOOLS)
    made.messages.clear()
    made.build_messages().clear()
    made.get_tool_definitions().clear()
    check(made, "u1 a1")
    assert made.get_tool_definitions() == TOOLS


def test_what_a_program_changes_afterwards_changes_nothing() -> None:
    made = ContextManager()
    parts: list[Any] = [{"type": "image", "source": {"data": "x"}}]
    arguments = {"paths": ["a.py"]}
    tools: list[dict[str, Any]] = [{"name": "read", "inputSchema": {"type": "object"}}]
    made.add_user_message(parts)
    made.add_assistant_message(parts, [{"id": "c1", "name": "read", "arguments": arguments}])
    made.add_assistant_message(None, [ToolCall("c2", "read", arguments)])
    made.add_tool_result("c1", "read", parts)
    made.set_tool_definitions(tools)
    before = repr((made.messages, made.get_tool_definitions()))
    parts[0]["source"]["data"] = "y"
    arguments["paths"].append("b.py")
    tools[0]["inputSchema"]["type"] = "array"
    made.get_tool_definitions()[0]["inputSchema"].clear()
    assert repr((made.messages, made.get_tool_definitions())) == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (5, "content is of the type int; it must be text or a list of parts"),
        (None, "content is None"),
        (b"text", "content is of the type bytes"),
        ({"type": "text", "text": "Hi"}, "content is a single part; put it in a list"),
        ([{"type": "text", "text": "Hi"}, 5], r"content\[1\] is of the type int"),
        ([{"type": "image", "data": (one for one in "x")}], "content holds a value that is not JSON"),
    ],
)
def test_content_that_cannot_be_sent_is_refused(content: Any, said: str) -> None:
    made = ContextManager()
    with pytest.raises(RequestError, match=said) as failed:
        made.add_user_message(content)
    assert (failed.value.code, len(made)) == ("bad-message", 0)


def test_content_that_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RequestError, match="content is nested too deeply"):
        ContextManager().add_user_message([{"type": "text", "text": deep}])


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"path": "a.py"}', {"path": "a.py"}),
        ("", {}),
        ("[1]", "[1]"),
        ('{"path', '{"path'),
        ({"path": "a.py"}, {"path": "a.py"}),
    ],
)
def test_a_call_in_the_form_of_openai_is_taken(arguments: Any, read: Any) -> None:
    made = ContextManager()
    function = {"name": "read", "arguments": arguments}
    made.add_assistant_message(None, [{"id": "c1", "type": "function", "function": function}])
    assert made.messages == [Message("assistant", None, (ToolCall("c1", "read", read),))]


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ({"id": "c1", "name": "read"}, "tool_calls is of the type dict; put the call in a list"),
        (5, "tool_calls is of the type int; it must be a list"),
        (["read"], r"tool_calls\[0\] is of the type str; it must be"),
        ([{"name": "read"}], r"id of tool_calls\[0\] is None, not text"),
        ([{"id": "c1", "function": {"name": 5}}], r"name of tool_calls\[0\] is of the type int"),
        ([{"type": "tool_use", "id": "c1", "name": "read", "input": {}}], "has unknown keys: input"),
    ],
)
def test_a_call_that_is_none_is_refused(calls: Any, said: str) -> None:
    made = ContextManager()
    with pytest.raises(RequestError, match=said) as failed:
        made.add_assistant_message(None, calls)
    assert (failed.value.code, len(made)) == ("bad-message", 0)


def test_a_result_belongs_to_a_call_and_a_tool() -> None:
    made = ContextManager()
    for call, name, named in ((None, "read", "tool_call_id is None"), ("c1", 5, "name is of the type int")):
        with pytest.raises(RequestError, match=named):
            made.add_tool_result(call, name, "x")  # type: ignore[arg-type]
    assert len(made) == 0


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([{"name": "a"}, "b"], r"tools\[1\] is of type str; a tool definition is a JSON object"),
        ([{"description": "a"}], r"tools\[0\] has no name"),
    ],
)
def test_a_tool_that_cannot_be_called_is_refused(tools: list[Any], said: str) -> None:
    made = ContextManager()
    made.set_tool_definitions(TOOLS)
    with pytest.raises(RequestError, match=said) as failed:
        made.set_tool_definitions(tools)
    assert (failed.value.code, made.get_tool_definitions()) == ("bad-tool", TOOLS)


def test_clearing_keeps_prompt_and_tools() -> None:
    made = manager("u1 a1")
    made.set_system_prompt("s1 prompt")
    made.set_tool_definitions(TOOLS)
    made.apply_compaction(conversation("u9")[0], [])
    before = made.revision
    made.clear_messages()
    check(made, "s1")
    assert (len(made), made.compactions, made.history.tokens(Letters()), made.history.encoded()) == (
        0,
        [],
        0,
        [],
    )
    assert (made.get_tool_definitions(), made.revision != before) == (TOOLS, True)


def test_what_does_not_fit_is_cut() -> None:
    made = manager("u1 a1 u2 a2 u3 a3", room=50)
    check(made, "u1 u2 a2 u3 a3", over=True)
    assert len(made) == 6
    made = manager("u1 a1 u2 a2 u3 a3", room=70)
    check(made, "u1 a1 u2 a2 u3 a3")
    made.set_system_prompt("s1 " + "x" * 80)  # 21 tokens, and 4 around
    check(made, "s1 u1 u3 a3", over=True)
    made.set_system_prompt("")
    check(made, "u1 a1 u2 a2 u3 a3")  # nothing was sent since, so nothing is settled


def test_broken_pairs_are_mended() -> None:
    made = manager("u1 c2+3 r3 a4")
    assert [one.role for one in made.build_messages()] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [one.role for one in made.messages] == ["user", "assistant", "tool", "assistant"]


@given(histories(BROKEN), st.sampled_from(STRATEGIES))
def test_what_is_sent_is_sound_and_fits_or_is_refused(messages: list[Message], strategy: Any) -> None:
    made = manager(room=400, truncation_strategy=strategy)
    for message in messages:
        made.add([message])
        usage = made.get_token_usage()
        assert usage.total == sum(row.tokens for row in usage.rows)
        try:
            assert pairing_errors(made.build_messages()) == []
            assert not usage.over
        except ContextOverflowError:
            assert usage.over


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("text", "prompt", "said"),
    [
        ("u1:45", "", "the newest message takes 45 tokens, and 40 of 40 are left for the conversation"),
        ("u1 a1 u2:90", "", "the newest message takes 48 tokens even when shortened"),
        ("c1 r1 c2:45 r2:45", "", "the newest 2 messages, which belong together, take "),
        ("u1:30 a1 a2:30", "", "what cannot be left out of the conversation takes 60 tokens, and 40 of 40"),
        (
            "",
            "x" * 400,
            "conversation is empty, and system prompt, tools and current message take 104 of 40",
        ),
        ("u1", "x" * 400, "the newest message takes 10 tokens, and system prompt, tools"),
    ],
)
def test_what_cannot_fit_is_refused_in_words(text: str, prompt: str, said: str) -> None:
    made = manager(text, room=40)
    made.set_system_prompt(prompt)
    with pytest.raises(ContextOverflowError) as failed:
        made.build_messages()
    assert said in str(failed.value)
    assert failed.value.code == "context-overflow"
    assert made.get_token_usage().over


def test_the_number_shown_is_the_number_that_cuts() -> None:
    """A model's own window narrows what the configuration allows."""
    config = ContextConfig(max_tokens=500_000, reserve_tokens=0)
    made = ContextManager(config, model="gpt-4", counter=Letters())
    made.add(conversation("u1:5000 a1:2000 u2:1000 a2:500"))
    usage = made.get_token_usage()
    assert (usage.limit, usage.available, usage.over) == (8_192, 8_192, False)
    assert made.is_over_budget()
    assert usage.total < 8_500


@pytest.mark.parametrize(
    ("result", "sent"),
    [
        ("a wall", "a wall"),
        ({"at": [1, None]}, '{"at":[1,null]}'),
        ([1, 2], "[1,2]"),
        (None, "null"),
        ({"name": "\ud800"}, '{"name": "\\ud800"}'),
        (datetime(2026, 1, 2, 3, 4), "2026-01-02T03:04:00"),
    ],
)
def test_a_result_is_text_or_sent_as_json(result: Any, sent: str) -> None:
    made = manager("c1")
    made.add_tool_result("1", "look", result)
    assert made.messages[-1].content == sent


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        (object(), "of the type object"),
        ({"a": [object()]}, "of the type object"),
        (ValueError("x"), "of the type ValueError"),
        (PurePosixPath("/x"), "of the type PurePosixPath"),
        (print, "of the type builtin_function_or_method"),
        (float("nan"), "the number nan"),
    ],
)
def test_a_result_that_is_no_json_is_refused_with_its_type(odd: Any, kind: str) -> None:
    made = manager("c1")
    with pytest.raises(RequestError, match=f"^result holds a value that is not JSON: .*{kind}") as refused:
        made.add_tool_result("1", "look", odd)
    assert (refused.value.code, len(made)) == ("bad-message", 1)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (
            {"truncation_strategy": "newest"},
            "'newest'.*: oldest_first, smart, middle_out",
        ),
        ({"truncation_target": 0.05}, "truncation_target is 0.05"),
        ({"truncation_target": 1.5}, "truncation_target"),
        ({"truncation_target": float("nan")}, "truncation_target"),
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"reserve_tokens": -1}, "reserve_tokens"),
        ({"keep_recent_turns": -1}, "keep_recent_turns"),
        ({"identifier_tokens": -1}, "identifier_tokens"),
    ],
)
def test_settings_that_cannot_be_are_named(config: dict[str, Any], named: str) -> None:
    with pytest.raises(RequestError, match=named) as failed:
        ContextConfig(**config)
    assert failed.value.code == "bad-option"


# ---------------------------------------------------------------- compaction


def test_a_summary_of_ones_own_sees_what_is_cut() -> None:
    """The seed's three calls, with what a summarizing model would do between them."""
    context = ContextManager(ContextConfig(max_tokens=1_000, reserve_tokens=200))
    for number in range(1, 41):
        context.add_user_message(f"Fact {number}: the {'long ' * 10}wind turns at {number}.")
    assert context.is_over_budget()
    assert len(context.build_messages()) < 20
    to_summarize, to_preserve = select_messages_for_compaction(
        messages=context.messages,
        token_counter=context.counter,
        available_budget=800,
        recent_preserve_ratio=0.25,
    )
    asked = build_summarize_prompt(to_summarize, limit=100)
    assert all(f"Fact {number}:" in asked for number in range(1, 41 - len(to_preserve)))
    result = CompactionResult(
        summary_message=create_summary_message("The wind turned forty times."),
        preserved_messages=to_preserve,
        original_token_count=context.counter.count_messages(context.messages),
        new_token_count=100,
    )
    context.apply_compaction(
        summary_message=result.summary_message, preserved_messages=result.preserved_messages
    )
    assert context.messages == [result.summary_message, *to_preserve] == list(result.messages)
    assert (context.is_over_budget(), len(to_preserve) > 4) == (False, True)


def test_a_compaction_of_ones_own() -> None:
    made = manager("u1 a1 u2 a2")
    made.set_system_prompt("s1 old")
    made.apply_compaction(conversation("u9:30")[0], made.messages[2:], new_system_prompt="s2 new")
    check(made, "s2 u9 u2 a2")
    made.add(conversation("u3"))
    made.undo_compaction()
    check(made, "s1 u1 a1 u2 a2 u3")


def test_a_system_prompt_that_was_set_since_stays() -> None:
    made = manager("u1 a1")
    made.set_system_prompt("s1 old")
    made.apply_compaction(conversation("u8")[0], [], new_system_prompt="s2 new")
    made.apply_compaction(conversation("u9")[0], [], new_system_prompt="")
    first, second = made.compactions
    assert (len(first), len(second), first != second) == (12, 12, True)
    made.undo_compaction(first)
    check(made, "s1 u1 a1")
    made.apply_compaction(conversation("u8")[0], [], new_system_prompt="s2 new")
    made.set_system_prompt("s3 newest")
    made.undo_compaction()
    check(made, "s3 u1 a1")


def compacted(made: ContextManager) -> str:
    """Compact; returns the id."""
    return made.compact(made_at=NOW).id


def long_talk(number: int) -> str:
    return " ".join(f"u{number}{turn}:200 a{number}{turn}:200" for turn in range(6))


def test_a_compaction_is_taken_back_whole_and_what_came_after_stays() -> None:
    made = manager(long_talk(1))
    first = made.messages
    one = compacted(made)
    after = made.messages
    made.add(conversation(long_talk(2)))
    before_two = made.messages
    two = compacted(made)
    made.add(conversation("u3 a3"))
    assert made.compactions == [one, two]
    assert len(made) < len(before_two)

    made.undo_compaction(two)
    assert made.messages == [*before_two, *conversation("u3 a3")]
    two = compacted(made)
    made.add(conversation("u4"))
    made.undo_compaction(one)  # with the later one
    assert made.messages == [*first, *conversation(long_talk(2)), *conversation("u3 a3 u4")]
    assert made.compactions == []
    assert after[-1] in first


def test_the_messages_of_before_and_after_are_not_counted_again() -> None:
    counter = Letters()
    made = ContextManager(ContextConfig(max_tokens=6_000, reserve_tokens=0), counter=counter)
    made.add(conversation(long_talk(1)))
    made.get_token_usage()
    compacted(made)
    made.add(conversation(long_talk(2)))
    made.get_token_usage()
    counter.counted.clear()
    made.undo_compaction()
    made.get_token_usage()
    assert counter.counted == []


def test_only_what_is_there_can_be_taken_back() -> None:
    made = manager(long_talk(1))
    with pytest.raises(RequestError, match="There is no compaction to undo") as failed:
        made.undo_compaction()
    assert failed.value.code == "unknown-compaction"
    one = compacted(made)
    before = made.messages
    with pytest.raises(RequestError, match=f"no compaction 'x' to undo. There are: {one}"):
        made.undo_compaction("x")
    assert (made.messages, made.compactions) == (before, [one])
    made.clear_messages()
    with pytest.raises(RequestError, match="no compaction"):
        made.undo_compaction(one)


def test_where_there_is_nothing_to_gain_nothing_changes() -> None:
    made = manager("u1 a1")
    with pytest.raises(CompactionError) as failed:
        compacted(made)
    assert failed.value.code in ("nothing-to-compact", "no-gain")
    check(made, "u1 a1")
    assert made.compactions == []


def test_what_is_pinned_stays() -> None:
    made = manager(long_talk(1))
    made.add_user_message("Never push to main.")
    made.add(conversation(long_talk(2)))
    kept = made.messages[1]
    receipt = made.compact(made_at=NOW, pins=["Never push to main.", 1])
    assert kept in made.messages
    assert "Never push to main." in str(made.messages[0].content)
    assert receipt.tokens_after == made.history.tokens(Letters()) < receipt.tokens_before


def test_each_model_window_has_its_own_cut() -> None:
    made = manager("u1 a1 u2 a2 u3 a3 u4 a4 u5 a5", room=60)
    small = "u1 u4 a4 u5 a5"
    check(made, small, over=True)
    large = made.view(SimpleTokenCounter(), Policy(), Budget(10_000, 0), limit=10_000)
    assert len(large.messages()) == 10
    check(made, small, over=True)
