"""Transcripts: every message format, bodies and benchmarks; unreadable parts do not hide the rest."""

import gzip
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.assistants.importing import LIMIT, Conversation, Transcript, joined, read_transcript
from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.errors import Severity

Shown = tuple[str, Any] | tuple[str, Any, Any]


def check(records: list[Any] | str, form: str, *shown: Shown) -> Conversation:
    """The one conversation of records, as JSONL and as a list, without any problem."""
    lines = records if isinstance(records, str) else jsonl(records)
    texts = (
        [lines] if isinstance(records, str) else [lines, json.dumps(records), json.dumps(records, indent=1)]
    )
    for text in texts:
        transcript = read_transcript(text.encode(), "/t.jsonl")
        assert (transcript.problems, transcript.format) == ((), form)
        (conversation,) = transcript.conversations
        assert [show(message) for message in conversation.messages] == list(shown)
    return conversation


def jsonl(records: list[Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def show(message: Message) -> Shown:
    """Role, content and what calls are made or answered."""
    linked: Any = [
        (call.id, call.name, call.arguments) for call in message.tool_calls
    ] or message.tool_call_id
    return (message.role, message.content, linked) if linked else (message.role, message.content)


def told(transcript: Transcript) -> list[tuple[str, str, str]]:
    return [(one.severity.name, one.code, one.message) for one in transcript.problems]


CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "a b"}'}}


def test_openai() -> None:
    check(
        [
            {"role": "user", "content": "List."},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "a"},
            {"role": "assistant", "content": "Done."},
        ],
        "openai",
        ("user", "List."),
        ("assistant", None, [("c1", "ls", {"path": "a b"})]),
        ("tool", "a", "c1"),
        ("assistant", "Done."),
    )


def test_openai_of_other_times() -> None:
    conversation = check(
        [
            {"role": "developer", "content": "Be kind."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "function_call": {"name": "f", "arguments": "not JSON"}},
            {"role": "function", "name": "f", "content": "1"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
            {"role": "function", "name": "f", "content": "2"},
            {"role": "assistant", "content": None, "refusal": "No."},
            {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]},
        ],
        "openai",
        ("user", [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]),
        ("assistant", msgspec.UNSET, [("function-3", "f", "not JSON")]),
        ("tool", "1", "function-3"),
        ("assistant", None, [("function-5", "f", {})]),
        ("tool", "2", "function-5"),
        ("assistant", "No."),
        ("assistant", "Yes."),
    )
    assert conversation.system == "Be kind."


def test_anthropic() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    text = {"type": "text", "text": "I look.", "citations": None}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
    conversation = check(
        [
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": [
                    thinking,
                    text,
                    {"type": "tool_use", "id": "t1", "name": "a", "input": {"x": [1.5, None]}},
                    {"type": "tool_use", "id": "t2", "name": "b", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "1", "is_error": True},
                    {"type": "text", "text": "Go on."},
                    {"type": "tool_result", "tool_use_id": "t2", "content": [image]},
                    image,
                ],
            },
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t3", "name": "c", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3"}]},
        ],
        "anthropic",
        ("user", "Look."),
        ("assistant", [thinking, text], [("t1", "a", {"x": [1.5, None]}), ("t2", "b", {})]),
        ("tool", "1", "t1"),
        ("tool", [image], "t2"),
        ("user", [{"type": "text", "text": "Go on."}, image]),
        ("assistant", None, [("t3", "c", {})]),
        ("tool", msgspec.UNSET, "t3"),
    )
    assert conversation.messages[2].meta == {"is_error": True}


def test_our_own_messages_come_back_as_they_were() -> None:
    messages = [
        Message("user", "a", meta={"k": [1, None]}, timestamp=1.5, tokens=3, name="Ann"),
        Message("assistant", None, (ToolCall("1", "t", [1]), ToolCall("2", "t", '{"a": 1}'))),
        Message("tool", [{"type": "text", "text": "x", "odd": {}}], tool_call_id="1", meta=None),
        Message("tool", "", tool_call_id="2"),
        Message("system", "later"),
    ]
    lines = b"\n".join(msgspec.json.encode(message) for message in messages)
    transcript = read_transcript(lines, "/t")
    assert transcript == Transcript("neutral", (Conversation(tuple(messages)),))


def test_bodies() -> None:
    tool = {"name": "t", "input_schema": {}}
    anthropic = {
        "model": "claude-sonnet-4-5",
        "system": [{"type": "text", "text": "A."}, {"type": "text", "text": "B."}],
        "messages": [{"role": "user", "content": "x"}],
        "tools": [tool],
    }
    openai = {
        "messages": [{"role": "system", "content": "S."}, {"role": "user", "content": "y"}],
        "model": "m",
    }
    one = check(json.dumps(anthropic, indent=2), "anthropic", ("user", "x"))
    assert (one.system, one.tools, one.model) == ("A.\n\nB.", (tool,), "claude-sonnet-4-5")
    log = read_transcript(
        jsonl([openai, {"custom_id": "n7", "method": "POST", "body": openai}, anthropic]), "/t"
    )
    assert [(each.name, each.system) for each in log.conversations] == [
        ("1", "S."),
        ("n7", "S."),
        ("3", "A.\n\nB."),
    ]
    whole = joined(log.conversations)
    assert [message.content for message in whole.messages] == ["y", "y", "x"]
    assert (whole.system, whole.tools, whole.model) == ("S.", (tool,), "m")


def test_tau_bench() -> None:
    traj = [{"role": "system", "content": "Policy."}, {"role": "user", "content": "Hi."}]
    records = [
        {"task_id": 3, "reward": 0.0, "info": {}, "traj": traj, "trial": 1},
        {"task_id": 4, "traj": traj},
    ]
    for data in (
        json.dumps(records).encode(),
        jsonl(records).encode(),
        gzip.compress(jsonl(records).encode()),
    ):
        transcript = read_transcript(data, "/t")
        assert (transcript.format, transcript.problems) == ("tau-bench", ())
        assert [(one.name, one.system, len(one.messages)) for one in transcript.conversations] == [
            ("task 3, trial 1", "Policy.", 1),
            ("task 4", "Policy.", 1),
        ]


def test_lines_of_all_systems() -> None:
    lines = ['{"role": "user", "content": "a\u2028b"}', "", " \t", '{"role": "user", "content": "c"}']
    for end in ("\n", "\r\n", "\r"):
        for start in (b"", b"\xef\xbb\xbf"):
            found = read_transcript(start + end.join(lines).encode(), "/t")
            assert found.problems == ()
            assert [message.content for message in found.conversations[0].messages] == ["a\u2028b", "c"]


def test_half_a_surrogate_pair() -> None:
    text = r'{"role": "user", "content": "\ud83d\ude00 \ud83d \\ud83d \udc00", "tokens": 1}'
    check(text, "neutral", ("user", "\U0001f600 \ufffd \\ud83d \ufffd"))


def test_broken_lines_are_told_and_the_others_read() -> None:
    text = (
        '{"role": "user", "content": "a"}\n{"role": "user" "content": "b"}\n[1\n'
        '{"role": "user", "content": "c"}\n'
    )
    found = read_transcript(text, "/t")
    assert [message.content for message in found.conversations[0].messages] == ["a", "c"]
    assert [(one.severity, one.code.partition(".")[0]) for one in found.problems] == [
        (Severity.ERROR, "json")
    ] * 2
    assert [text.count("\n", 0, one.span.start) + 1 for one in found.problems] == [2, 3]
    assert all(one.message.endswith("The line is left out.") for one in found.problems)
    assert "," in found.problems[0].message


def test_a_file_that_is_being_written() -> None:
    found = read_transcript('{"role": "user", "content": "a"}\n{"role": "assistant", "cont', "/t")
    assert len(found.conversations[0].messages) == 1
    assert told(found) == [
        (
            "INFORMATION",
            "transcript.unfinished",
            "The last line is unfinished: something still writes to the file. The line is left out.",
        )
    ]


def test_no_messages() -> None:
    text = jsonl(
        [
            {"role": "user", "content": "a"},
            {"role": "king", "content": "a"},
            {"a": 1},
            [],
            5,
            {"role": "user", "content": 5},
        ]
    )
    found = read_transcript(text + '{"role": "assistant", "tool_calls": [{"id": "x"}]}\n', "/t")
    known = "use one of system, developer, user, human, assistant, model, tool, function"
    assert [message for _, _, message in told(found)] == [
        f"The line is not a valid message: its role is 'king'; {known}",
        f"The line is not a valid message: it has no role; {known}",
        "The line is not a valid message: expected an object with a role, got a number",
        "The line is not a valid message: its content is a number, not text or a list of parts",
        "The line is not a valid message: a tool call has no name",
    ]


def test_only_so_much_is_told() -> None:
    found = read_transcript('{"role": "user", "content": ""}\n' + "oh no\n" * 500, "/t")
    assert len(found.problems) == 21
    assert found.problems[-1].message == "And 480 more like these."


EMPTY = "Expected JSON lines or a list of messages"


@pytest.mark.parametrize(
    "text", ["", "\n \n", "[]", "{}", "null", "5", '"x"', "# A title\n\nText.\n", "[[], []]"]
)
def test_nothing_to_read(text: str) -> None:
    found = read_transcript(text, "/t")
    assert (found.format, found.conversations) == (None, ())
    assert any(one.severity is Severity.ERROR for one in found.problems)
    if not text.strip():
        assert found.problems[0].message.startswith(f"The file is empty. {EMPTY}")


def test_another_programs_file_is_refused_in_one_sentence() -> None:
    records = [{"type": "session_meta", "payload": {}}, {"type": "response_item", "payload": {}}] * 40
    found = read_transcript(jsonl(records), "/t")
    assert [(one.code, one.message[:25]) for one in found.problems] == [
        ("transcript.empty", "The file has no messages.")
    ]


def test_a_broken_list_is_read_as_far_as_it_goes() -> None:
    text = json.dumps([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], indent=2)
    found = read_transcript(text[:-40], "/t")
    assert [message.content for message in found.conversations[0].messages][:1] == ["a"]
    assert any(one.code.startswith("json.") for one in found.problems)


def test_other_encodings() -> None:
    found = read_transcript('{"role": "user", "content": "ä"}'.encode("utf-16"), "/t")
    assert [message.content for message in found.conversations[0].messages] == ["ä"]
    assert told(found)[0][1] == "layer.encoding"
    found = read_transcript(b'{"role": "user", "content": "\xff"}\n', "/t")
    assert [message.content for message in found.conversations[0].messages] == ["\ufffd"]
    assert told(found)[0][1] == "layer.encoding"


def test_a_line_of_nuls_after_a_crash() -> None:
    found = read_transcript('{"role": "user", "content": "a"}\n' + "\0" * 100, "/t")
    assert len(found.conversations[0].messages) == 1
    assert [one.severity for one in found.problems] == [Severity.ERROR]


def test_packed_files() -> None:
    line = b'{"role": "user", "content": "a"}\n'
    two = gzip.compress(line) + gzip.compress(line)
    assert len(read_transcript(two, "/t").conversations[0].messages) == 2
    cut = read_transcript(gzip.compress(line * 1000)[:-9], "/t")
    assert told(cut)[0][:2] == ("ERROR", "transcript.gzip")
    assert cut.conversations
    assert told(read_transcript(b"\x1f\x8bnonsense", "/t"))[0][1] == "transcript.gzip"


def test_a_bomb_is_not_unpacked() -> None:
    found = read_transcript(gzip.compress(b" " * (LIMIT + 1), 1), "/t")
    assert (found.conversations, told(found)[0][1]) == ((), "transcript.too-large")
    assert found.problems[0].message == snapshot(
        "The file is too large: it unpacks to more than 67,108,864 bytes."
    )


def test_deep_nesting() -> None:
    deep = '{"role": "user", "content": ' + "[" * 100_000 + "]" * 100_000 + "}"
    found = read_transcript('{"role": "user", "content": "a"}\n' + deep + "\n", "/t")
    assert len(found.conversations[0].messages) == 1
    assert len(found.problems) == 1


JSON_OBJECTS = st.dictionaries(
    st.text(max_size=3), st.integers() | st.text(max_size=4) | st.none(), max_size=3
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Turns of alternating roles, some with calls, whose results stand right after them."""
    messages = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(Message("user", draw(TEXTS)))
        count = draw(st.integers(0, 3))
        calls = tuple(ToolCall(f"c{turn}-{at}", "f", draw(JSON_OBJECTS)) for at in range(count))
        content = draw(TEXTS | st.none()) if calls else draw(TEXTS)
        messages.append(Message("assistant", content, calls))
        messages += [Message("tool", draw(TEXTS), tool_call_id=call.id) for call in calls]
        interrupted = draw(st.booleans())
        if calls and interrupted:
            messages.append(Message("user", draw(TEXTS)))  # in Anthropic's form one message with the results
        if calls:
            messages.append(Message("assistant", draw(TEXTS)))
    return messages


def essence(messages: Any) -> list[Any]:
    return [
        (
            one.role,
            text_of(one),
            [(call.id, call.name, call.arguments) for call in one.tool_calls],
            one.tool_call_id,
        )
        for one in messages
    ]


def as_openai(message: Message) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in message.tool_calls
    ]
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    written |= {"tool_calls": calls} if calls else {}
    return written | ({"tool_call_id": message.tool_call_id} if message.tool_call_id else {})


def as_anthropic(messages: list[Message]) -> list[dict[str, Any]]:
    """Neighbours that are the user's, results among them, are one message, as Anthropic wants it."""
    written: list[dict[str, Any]] = []
    for message in messages:
        blocks: list[Any] = [{"type": "text", "text": message.content}] if message.content else []
        if message.role == "tool":
            blocks = [
                {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
            ]
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in message.tool_calls
        ]
        role = "assistant" if message.role == "assistant" else "user"
        if written and written[-1]["role"] == role == "user":
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    return written


@given(conversations())
def test_what_is_written_in_the_providers_forms_is_read_back(messages: list[Message]) -> None:
    openai = [as_openai(message) for message in messages]
    anthropic = as_anthropic(messages)
    bodies = (
        {"messages": [{"role": "system", "content": "S."}, *openai]},
        {"system": "S.", "messages": anthropic},
    )
    for body, lines in zip(bodies, (openai, anthropic), strict=True):
        whole, listed = read_transcript(json.dumps(body), "/t"), read_transcript(jsonl(lines), "/t")
        assert (whole.problems, listed.problems) == ((), ())
        assert whole.conversations[0].system == "S."
        for found in (whole, listed):
            assert essence(found.conversations[0].messages) == essence(messages)


@given(conversations())
def test_our_own_form_is_read_back_exactly(messages: list[Message]) -> None:
    found = read_transcript(b"\n".join(map(msgspec.json.encode, messages)), "/t")
    assert (list(found.conversations[0].messages), found.problems) == (messages, ())


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    check_is_sound(read_transcript(data, "/t"))


def check_is_sound(transcript: Transcript) -> None:
    """Each problem has its line and a message; whatever was read is a message."""
    assert len(transcript.lines) == len(transcript.problems)
    assert all(line is None or line > 0 for line in transcript.lines)
    assert all(problem.message for problem in transcript.problems)
    for conversation in transcript.conversations:
        assert all(isinstance(message, Message) for message in conversation.messages)


KEYS = (
    *(
        "role",
        "content",
        "type",
        "message",
        "uuid",
        "parentUuid",
        "id",
        "tool_calls",
        "toolCalls",
        "function",
    ),
    *(
        "name",
        "arguments",
        "messages",
        "traj",
        "system",
        "tools",
        "body",
        "isSidechain",
        "subtype",
        "choices",
    ),
    *("compactMetadata", "attachment", "tool_use_id"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["user", "assistant", "tool_use", "x", "u1", "u2"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=4), st.booleans())
def test_any_records_are_read_without_an_exception(values: list[Any], entire: bool) -> None:
    check_is_sound(read_transcript(jsonl(values), "/t", entire=entire))


def test_any_session_marks_are_read_without_an_exception() -> None:
    for kind in ("user", "assistant", "system", "attachment", "summary"):
        extras: list[dict[str, Any]] = [
            {},
            {"message": None},
            {"message": {}},
            {"message": {"content": 5}},
            {"attachment": 5},
        ]
        for extra in extras:
            marks = {"type": kind, "uuid": 5, "sessionId": "s", "parentUuid": ["x"], **extra}
            check_is_sound(read_transcript(jsonl([marks]), "/t"))


# ---------------------------------------------------------------- chats of other programs that look alike

CORE_CALL = {"type": "tool-call", "toolCallId": "c", "toolName": "look", "input": {"at": "x"}}


@pytest.mark.parametrize(
    ("record", "place"),
    [
        pytest.param(
            {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}, "parts.text", id="AI SDK"
        ),
        pytest.param(
            {"role": "user", "content": "", "parts": [{"type": "text", "text": "Hi"}]},
            "parts.text",
            id="AI SDK 4",
        ),
        pytest.param(
            {"content_type": "message", "role": "user", "items": [{"content_type": "text", "text": "Hi"}]},
            "items.text",
            id="Semantic Kernel",
        ),
        pytest.param(
            {"role": "assistant", "content": [{"tool_call": {"tool_name": "look", "arguments": {}}}]},
            "content.tool_call.tool_name",
            id="Haystack",
        ),
        pytest.param(
            {"role": "user", "message": {"content": [{"type": "text", "text": "Hi"}]}},
            "message.content.text",
            id="Cursor",
        ),
        pytest.param(
            {
                "uuid": "a",
                "sessionId": "s",
                "type": "user",
                "message": {"role": "user", "parts": [{"text": "Hi"}]},
            },
            "message.parts.text",
            id="Qwen",
        ),
        pytest.param({"role": "user", "utterance": "Hi"}, "utterance", id="unknown"),
        pytest.param(
            {"role": "user", "data": {"value": [{"markdown": "Hi"}]}}, "data.value.markdown", id="nested"
        ),
    ],
)
def test_text_under_an_unknown_key_is_a_problem_and_never_an_empty_message(record: Any, place: str) -> None:
    transcript = read_transcript(json.dumps([record, {"role": "user", "content": "Bye"}]), "/t.json")
    problem = f"has its text under '{place}', where no known format has it; it is left out."
    assert [(name, code, text.split(" ", 2)[2]) for name, code, text in told(transcript)] == [
        ("ERROR", "transcript.text", problem)
    ]
    assert [text_of(message) for each in transcript.conversations for message in each.messages] == ["Bye"]
    alone = read_transcript(json.dumps([record]), "/t.json")
    assert (alone.conversations, [problem.code for problem in alone.problems]) == ((), ["transcript.text"])


def test_a_part_that_nobody_reads_is_a_problem_beside_those_that_are_read() -> None:
    content = [{"type": "text", "text": "I look."}, CORE_CALL]
    transcript = read_transcript(json.dumps([{"role": "assistant", "content": content}]), "/t.json")
    text = "Item 1 has a part of the type 'tool-call', which is not read; it is kept."
    assert told(transcript) == [("ERROR", "transcript.text", text)]
    assert transcript.conversations[0].messages[0].content == content


@pytest.mark.parametrize(
    "record",
    [
        {"role": "assistant", "content": None, "refusal": None, "provider": "x"},
        {"role": "assistant", "content": "", "id": "1", "served_by": "x"},
        {"role": "assistant", "content": []},
        {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
    ],
)
def test_a_message_that_says_that_it_is_empty_is_read(record: Any) -> None:
    transcript = read_transcript(json.dumps([{"role": "user", "content": "Hi"}, record]), "/t.json")
    assert (told(transcript), len(transcript.conversations[0].messages)) == ([], 2)
