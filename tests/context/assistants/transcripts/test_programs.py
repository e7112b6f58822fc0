"""Files of other programs: what is read of each format, what is left out, and what a cut file still gives."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.importing import Conversation, Transcript, read_transcript
from nexus_context.conversation.message import Message, text_of
from support import program_files as files
from support.program_files import PROGRAMS

CONTEXT = "user <environment_context>/  <cwd>/a</cwd>/</environment_context> {'isMeta': True}"
ANSWER = "assistant [reasoning] I look. !c1 shell {'command': ['ls']} !c2 local_shell {'command': ['pwd']}"
ITEMS = [CONTEXT, "user List.", ANSWER, "=c1 a.py", "=c2 /a {'is_error': True}", "assistant One file."]
PLAIN_ITEMS = [CONTEXT.removesuffix(" {'isMeta': True}"), *ITEMS[1:]]
OWN = "Left out: {} that Codex wrote for itself: settings, state and events that repeat the messages."
LS = "{'command': 'ls'}"


def check(
    data: bytes | str,
    form: str,
    *conversations: list[str],
    left_out: tuple[str, ...] = (),
    entire: bool = True,
) -> Transcript:
    """The messages of each conversation as `role [kinds] text !calls meta`, and what is left out."""
    transcript = read_transcript(data, "/x/file", entire=entire)
    assert [list(map(show, each.messages)) for each in transcript.conversations] == list(conversations)
    assert tuple(problem.message for problem in transcript.problems) == left_out
    assert tuple(map(str, transcript.left_out)) == left_out
    assert transcript.format == form
    return transcript


def show(message: Message) -> str:
    content = message.content if isinstance(message.content, list) else []
    kinds = [part.get("type", next(iter(part))) for part in content]
    calls = [f"!{call.id} {call.name} {call.arguments}" for call in message.tool_calls]
    first = f"={message.tool_call_id}" if message.role == "tool" else message.role
    texts = ("text", "input_text")
    shown = [f"[{kind}]" for kind in kinds if kind not in texts]
    meta = [str(message.meta)] if isinstance(message.meta, dict) else []
    return " ".join(filter(None, [first, *shown, text_of(message).replace("\n", "/"), *calls, *meta]))


def answers(conversation: Conversation) -> list[tuple[Any, ...]]:
    """For each answer: its message, and what the provider counted."""
    rows = []
    for answer in conversation.answers:
        usage = answer.outcome.usage
        assert conversation.messages[answer.message].role == "assistant"
        counts = usage and (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        )
        rows.append((answer.message, counts, answer.outcome.stop_reason))
    return rows


# ---------------------------------------------------------------- Codex


def test_a_rollout_of_codex() -> None:
    (conversation,) = check(
        PROGRAMS["codex"], "codex", ITEMS, left_out=(OWN.format("3 records"),)
    ).conversations
    assert (conversation.id, conversation.model, conversation.system) == ("s2", "gpt-5", "Be brief.")
    assert answers(conversation) == [(2, (300, 20, 600, 40), None), (5, (300, 5, 600, 40), None)]
    assert conversation.messages[2].timestamp == files.STAMP


def test_older_rollouts_of_codex() -> None:
    (flat,) = check(PROGRAMS["codex flat"], "codex", ITEMS, left_out=(OWN.format("2 records"),)).conversations
    (oldest,) = check(PROGRAMS["codex oldest"], "codex", ITEMS).conversations
    assert (flat.id, oldest.id) == ("s1", "s0")


COMPACTED = [
    *files.ROLLOUT[2:4],
    files.enveloped(
        "compacted",
        {
            "message": "We listed.",
            "replacement_history": [files.said("user", "List."), files.said("user", "S.")],
        },
    ),
    files.enveloped("response_item", files.said("user", "And now?")),
]


def test_a_compaction_of_codex() -> None:
    data = files.jsonl(COMPACTED)
    summary = "user We listed. {'isCompactSummary': True}"
    check(data, "codex", [*ITEMS[:2], summary, "user And now?"])
    check(
        data,
        "codex",
        ["user List.", "user S.", "user And now?"],
        entire=False,
        left_out=("Left out: 2 messages before the last compaction: its summary replaces them.",),
    )
    plain = files.jsonl(
        [*COMPACTED[:2], files.enveloped("compacted", {"message": "We listed."}), COMPACTED[3]]
    )
    check(
        plain,
        "codex",
        [summary, "user And now?"],
        entire=False,
        left_out=("Left out: 2 messages before the last compaction: its summary replaces them.",),
    )


def test_a_turn_that_was_taken_back() -> None:
    back = files.enveloped("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    data = files.jsonl([*files.ROLLOUT, back, files.enveloped("response_item", files.said("user", "Again."))])
    left_out = (OWN.format("3 records"), "Left out: 5 messages of turns that were taken back.")
    (conversation,) = check(data, "codex", [CONTEXT, "user Again."], left_out=left_out).conversations
    assert conversation.answers == ()


# ---------------------------------------------------------------- the APIs of OpenAI and Google


def test_items_of_responses() -> None:
    check(PROGRAMS["responses items"], "responses", PLAIN_ITEMS)
    (conversation,) = check(PROGRAMS["responses"], "responses", PLAIN_ITEMS).conversations
    assert (conversation.system, conversation.model) == ("Be brief.", "gpt-5")
    logged = json.dumps({"custom_id": "job 7", "body": json.loads(PROGRAMS["responses"])})
    (conversation,) = check(logged, "responses", PLAIN_ITEMS).conversations
    assert conversation.name == "job 7"


def test_tools_without_a_name_are_left_out() -> None:
    search = {"type": "web_search"}
    body = {"model": "gpt-5", "input": "Hi", "tools": [search, {"type": "function"}, 5, {"name": "ls"}]}
    left_out = ("Left out: 2 tools without a name.",)
    (conversation,) = check(json.dumps(body), "responses", ["user Hi"], left_out=left_out).conversations
    assert conversation.tools == (search, {"name": "ls"})


def test_a_response() -> None:
    data = (files.FILES / "responses.json").read_bytes()
    shown = "assistant [reasoning] I look. !c1 ls {'path': 'a b'} !c2 apply_patch *** Begin Patch"
    (conversation,) = check(data, "responses", [shown]).conversations
    assert answers(conversation) == [(0, (40, 20, 60, 0), "completed")]


def test_the_order_of_items_and_their_phases() -> None:
    call = files.ITEMS[4]
    items = [
        {**files.said("assistant", "First."), "phase": "commentary"},
        call,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {**files.said("assistant", "Last."), "phase": "final_answer"},
        {"role": "user", "content": "Thanks."},
        {"type": "item_reference", "id": "x"},
    ]
    first = (
        "assistant [tool_call] [web_search_call] First. !c1 shell {'command': ['ls']} {'phase': 'commentary'}"
    )
    check(
        files.jsonl(items),
        "responses",
        [first, "assistant Last. {'phase': 'final_answer'}", "user Thanks."],
        left_out=("Left out: 1 record outside of the conversation, such as references to stored items.",),
    )


GEMINI = [
    "user [image] List.",
    "assistant [text] [tool_call] Hm./I look. !c1 ls {'path': 'a b'} !function-2 ls {'path': 'c'}",
    "=c1 a",
    "=function-2 No such folder. {'is_error': True}",
    "assistant [executableCode] [codeExecutionResult] One file.",
]


def test_contents_of_gemini() -> None:
    for name in ("gemini.json", "gemini_snake.json"):
        (conversation,) = read_transcript((files.FILES / name).read_bytes(), "/x/f").conversations
        shown = [
            show(message).replace("[text] [tool_call]", "[tool_call]") for message in conversation.messages
        ]
        assert shown == [line.replace("[text] [tool_call]", "[tool_call]") for line in GEMINI]
        assert conversation.messages[1].content == [
            {"text": "Hm.", "thought": True},
            {"type": "text", "text": "I look."},
            {"type": "tool_call", "id": "c1", "thoughtSignature": "c2ln"},
        ]
    body = {
        "model": "gemini-2.5-pro",
        "contents": json.loads(PROGRAMS["gemini"]),
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "ls"}]}],
    }
    (conversation,) = read_transcript(json.dumps({"key": "k1", "request": body}), "/x/f").conversations
    assert (conversation.system, conversation.tools) == ("Be brief.", ({"name": "ls"},))
    assert (conversation.name, conversation.model, len(conversation.messages)) == ("k1", "gemini-2.5-pro", 5)


def test_an_answer_of_gemini() -> None:
    data = (files.FILES / "gemini_answer.json").read_bytes()
    (conversation,) = check(data, "gemini", ["assistant Bye."]).conversations
    assert answers(conversation) == [(0, (40, 10, 60, None), "STOP")]
    assert conversation.model == "gemini-2.5-pro"


# ---------------------------------------------------------------- pydantic-ai, OpenHands, SWE-agent


def test_messages_of_pydantic_ai() -> None:
    (conversation,) = check(
        PROGRAMS["pydantic-ai"],
        "pydantic-ai",
        [
            "user List.",
            "assistant [thinking] I look. !c1 ls {'path': 'a b'} !c2 ls {'path': 'c'}",
            '=c1 {"files":["a"]}',
            "=c2 No such folder. {'is_error': True}",
            "assistant One file.",
            "user [image] [image] [document] What is this?",
            "user Answer with JSON.",
            "assistant [server_tool_use] [web_search_tool_result] A gate.",
        ],
    ).conversations
    assert (conversation.system, conversation.model) == ("Be brief.\n\nUse tools.", "claude-sonnet-4-5")
    assert answers(conversation) == [
        (1, (300, 20, 600, 100), "tool_call"),
        (4, (1_100, 5, 0, 0), None),
        (7, (1_200, 7, 0, 0), None),
    ]


def test_events_of_openhands() -> None:
    shown = [
        "user List.",
        f"assistant I look. !c1 execute_bash {LS} !c2 execute_bash {LS}",
        "=c1 a.py",
        "=c2 No such folder. {'is_error': True}",
        "assistant One file.",
    ]
    left_out = ("Left out: 2 events of OpenHands itself: states, recalls and the like.",)
    (conversation,) = check(PROGRAMS["openhands"], "openhands", shown, left_out=left_out).conversations
    assert (conversation.system, conversation.tools) == ("Be brief.", (files.BASH,))
    assert (conversation.model, answers(conversation)) == (
        "claude-sonnet-4-5",
        [(1, (200, 20, 600, 100), "tool_calls")],
    )
    pairs = [[files.EVENTS[0], files.EVENTS[1]], *([event] for event in files.EVENTS[2:])]
    for history in (files.EVENTS, pairs):
        record = json.dumps({"instance_id": "django-1", "history": history})
        (conversation,) = check(record, "openhands", shown, left_out=left_out).conversations
        assert conversation.name == "django-1"


def test_events_without_function_calls() -> None:
    check(
        json.dumps(files.UNNAMED_EVENTS),
        "openhands",
        [
            "user List.",
            f"assistant I look. !event-1 run {LS}",
            "=event-1 a.py",
            "user User executed the command:/pwd",
            "user /a",
        ],
    )


def test_events_of_the_newer_sdk() -> None:
    check(
        PROGRAMS["openhands sdk"],
        "openhands",
        [
            "user [image_url] List.",
            f"assistant [thinking] I look. !c1 terminal {LS} !c2 terminal {LS}",
            "=c1 a.py",
            "=c2 No such folder. {'is_error': True}",
            "assistant One file.",
        ],
        left_out=("Left out: 1 event of OpenHands itself: states, recalls and the like.",),
    )


@pytest.mark.parametrize(
    "forgotten",
    [
        {"forgotten_event_ids": [1, 2], "forgotten_events_start_id": None},
        {"forgotten_events_start_id": 1, "forgotten_events_end_id": 2},
    ],
)
def test_a_condensation(forgotten: dict[str, Any]) -> None:
    condensation = files.openhands(
        9, "agent", action="condensation", args={**forgotten, "summary": "Listed."}
    )
    data = json.dumps([*files.UNNAMED_EVENTS, condensation])
    summary = "user Listed. {'isCompactSummary': True}"
    rest = ["user User executed the command:/pwd", "user /a"]
    check(
        data,
        "openhands",
        ["user List.", summary, *rest],
        entire=False,
        left_out=(
            "Left out: 2 events before the last compaction: its summary replaces them.",
            "Left out: 1 event of OpenHands itself: states, recalls and the like.",
        ),
    )
    check(
        data,
        "openhands",
        ["user List.", f"assistant I look. !event-1 run {LS}", "=event-1 a.py", *rest, summary],
    )


RUN = ["user Fix it.", f"assistant I look. !c1 bash {LS}", "=c1 a.py", "assistant Done."]


def test_a_trajectory_of_swe_agent() -> None:
    (conversation,) = check(PROGRAMS["swe-agent"], "swe-agent", RUN).conversations
    assert conversation.system == "Be brief."
    attempts = json.dumps({"instance_id": "django-1", "attempts": [files.TRAJECTORY, files.TRAJECTORY]})
    first, second = check(attempts, "swe-agent", RUN, RUN).conversations
    assert (first.name, second.name) == ("django-1 attempt 1", "django-1 attempt 2")


def test_a_trajectory_without_history() -> None:
    steps = files.TRAJECTORY["trajectory"]
    check(
        json.dumps({"trajectory": steps}),
        "swe-agent",
        RUN[:3],
        left_out=("Left out: 1 step at the end, incomplete because the file was cut.",),
    )
    newer = ("query", "execution_time")
    plain = [{key: value for key, value in step.items() if key not in newer} for step in steps]
    check(
        json.dumps({"trajectory": plain}),
        "swe-agent",
        ["assistant I look.", "user a.py", "assistant Done.", "user"],
    )


# ---------------------------------------------------------------- opencode, Claude's export, aider


INLINED = "Left out: 1 part that opencode keeps for itself: ignored texts, inlined files and the like."
FAILED = "Left out: 1 message of answers that failed before the model said anything."
OPENCODE = [
    "user [image] List./Read a.py",
    f"assistant [thinking] I look. !c1 bash {LS} !c2 bash {LS}",
    "=c1 a.py",
    "=c2 No such folder. {'is_error': True}",
    f"assistant !c3 bash {LS}",
    "=c3 [Tool execution was interrupted] {'is_error': True}",
    "user And now?",
    "assistant One file.",
]


def test_an_export_of_opencode() -> None:
    (conversation,) = check(
        PROGRAMS["opencode"], "opencode", OPENCODE, left_out=(INLINED, FAILED)
    ).conversations
    assert (conversation.name, conversation.id, conversation.agent) == ("Files", "ses_1", None)
    assert conversation.messages[0].timestamp == "2026-03-01T08:00:00.000+00:00"
    assert answers(conversation) == [
        (1, (300, 20, 600, 0), "tool-calls"),
        (4, (10, 5, 900, 100), "tool-calls"),
        (7, None, "stop"),
    ]
    check(json.dumps(files.OPENCODE["messages"]), "opencode", OPENCODE, left_out=(INLINED, FAILED))


def test_a_session_of_a_sub_agent_of_opencode() -> None:
    info = {**files.OPENCODE["info"], "parentID": "ses_0"}
    (conversation,) = read_transcript(json.dumps({**files.OPENCODE, "info": info}), "/x/f").conversations
    assert conversation.agent == "ses_1"


def test_what_opencode_took_back_and_compacted() -> None:
    messages = [
        *files.OPENCODE["messages"][:2],
        files.opencode("msg_6", "user", [{"type": "compaction", "auto": True}]),
        files.opencode("msg_7", "assistant", [{"type": "text", "text": "We listed."}], summary=True),
        files.opencode("msg_8", "user", [{"type": "text", "text": "More."}]),
        files.opencode("msg_9", "user", [{"type": "text", "text": "No."}]),
    ]
    info = {"id": "ses_1", "revert": {"messageID": "msg_9"}}
    data = json.dumps({"info": info, "messages": messages})
    after = [
        "user What did we do so far?",
        "assistant We listed. {'isCompactSummary': True}",
        "user More.",
    ]
    reverted = "Left out: 1 message of turns that were taken back."
    check(data, "opencode", [*OPENCODE[:6], *after], left_out=(reverted, INLINED))
    check(
        data,
        "opencode",
        after,
        entire=False,
        left_out=(
            reverted,
            "Left out: 2 messages before the last compaction: its summary replaces them.",
        ),
    )


def test_a_data_export_of_claude() -> None:
    files_chat, plain_chat = check(
        json.dumps(files.EXPORT),
        "claude-web",
        [
            "user a.txt:/one/List.",
            "assistant [thinking] I look. !c1 repl {'code': 'ls()'}",
            "=c1 a.py {'is_error': True}",
            "assistant One file.",
        ],
        ["user Hello", "assistant Hi"],
        left_out=(
            "Left out: 1 message of abandoned branches of the conversation.",
            "Left out: 1 file of which the export has only the name.",
            "Left out: 1 block of answers that no model reads, such as notes of the web page.",
        ),
    ).conversations
    assert files_chat.messages[0].timestamp == files.STAMP
    assert (files_chat.name, files_chat.id, plain_chat.id) == ("Files", "chat-1", "chat-2")
    chat = {**files.EXPORT[0], "current_leaf_message_uuid": "m2"}
    (other,) = read_transcript(json.dumps([chat]), "/x/f").conversations
    assert show(other.messages[-1]) == "assistant An answer that was made again."


def test_a_history_of_aider() -> None:
    first, second = check(
        PROGRAMS["aider"],
        "aider",
        [
            "user Fix it.//In a.py.",
            "assistant #### Heading of an answer/> a quotation in it//Fixed.",
            "user /ask why?",
            "assistant Because.",
        ],
        ["user Hello", "assistant Hi."],
        left_out=("Left out: 5 lines that aider said itself.", "Left out: 1 message with commands to aider."),
    ).conversations
    assert (first.name, first.model) == ("2026-03-01 08:00:00", "claude-sonnet-4-5")
    assert (second.name, second.model) == ("2026-03-02 08:00:00", None)
    trimmed = "".join(line.rstrip() + "\n" for line in files.AIDER.decode().splitlines())
    assert show(read_transcript(trimmed, "/x/f").conversations[1].messages[0]) == "user Hello"


# ---------------------------------------------------------------- broken and large files


ROLLED_BACK = files.enveloped("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
UNNAMED_CALL = {"role": "model", "parts": [{"functionCall": {"name": "ls"}}]}
UNNAMED_RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {}}}]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (files.enveloped("response_item", files.said("user", "List.")), ROLLED_BACK),
        (files.enveloped("response_item", files.said("user", "List.")), files.counted(files.USAGE)),
        (files.queued("enqueue", "Go."), files.queued("dequeue")),
        (files.queued("enqueue", "Go."), files.queued("remove", "Go.")),
        (UNNAMED_CALL, UNNAMED_RESULT),
        (
            files.UNNAMED_EVENTS[0],
            {**files.sdk("Condensation", "x", summary="S."), "forgotten_event_ids": [0]},
        ),
    ],
)
def test_the_time_is_linear(first: Any, second: Any) -> None:
    """Ten times the records take less than sixty times the time: hundredfold would be quadratic."""
    seconds = []
    for count in (2_000, 20_000):
        data = files.jsonl([*files.CLAUDE[:1], *[first] * count, *[second] * count])
        start = time.process_time()
        read_transcript(data, "/x/f")
        seconds.append(time.process_time() - start)
    assert seconds[1] < 60 * seconds[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_cut_file_gives_the_beginning(name: str) -> None:
    """At any byte: what was read is what the whole file begins with, and the cut is reported."""
    whole = {key(each): each for each in read_transcript(PROGRAMS[name], "/x/f", entire=True).conversations}
    data = PROGRAMS[name]
    for end in range(0, len(data), 1 if len(data) < 1_500 else 3):
        transcript = read_transcript(data[:end], "/x/f", entire=True)
        assert all(problem.code != "internal" for problem in transcript.problems), end
        for conversation in transcript.conversations:
            check_is_beginning(conversation, whole[key(conversation)], end)


def check_is_beginning(cut: Conversation, whole: Conversation, end: int) -> None:
    """All but the last answer, with the results of its tools, or the last message."""
    messages = list(cut.messages)
    assert len(messages) <= len(whole.messages), end
    while messages and messages[-1].role == "tool":
        messages.pop()
    if not messages:
        return
    assert tuple(messages[:-1]) == whole.messages[: len(messages) - 1], end
    last, same = messages[-1], whole.messages[len(messages) - 1]
    if last.role == "user" != same.role:  # said while a call was open: queued, and not sent yet
        assert text_of(last) in map(text_of, whole.messages)
        return
    assert last.role == same.role, end
    text, _, _ = text_of(last).partition("\\")  # an escape may be cut, too
    assert text_of(same).startswith(text), end
    assert last.tool_calls == same.tool_calls[: len(last.tool_calls)], end


def key(conversation: Conversation) -> tuple[str | None, ...]:
    return (conversation.agent,) if conversation.agent else (conversation.id, conversation.name)


@pytest.mark.parametrize("name", PROGRAMS)
@given(data=st.data())
def test_whatever_replaces_a_byte_nothing_raises(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(PROGRAMS[name]) - 1))
    piece = data.draw(st.sampled_from([b"", b"\xff", b"\x00", b'"', b"[", b"{}", b"null", b"1e999", b"\n"]))
    broken = PROGRAMS[name][:at] + piece + PROGRAMS[name][at + 1 :]
    transcript = read_transcript(broken, "/x/f", entire=True)
    assert all(problem.code != "internal" for problem in transcript.problems)
