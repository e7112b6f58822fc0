"""Session files of Claude Code: branches, compactions, answers in several records, parallel calls."""

import itertools
import json
import time
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.importing import Answer, Transcript, read_transcript
from nexus_context.conversation.agent_result import ProviderUsage, TurnOutcome
from nexus_context.conversation.message import Message, text_of
from support.json_lines import json_lines

Record = dict[str, Any]
SAID = "The file has no messages."
ATTACHED = "Left out: 1 record attached by Claude Code itself: reminders, changed files and the like."


def check(
    records: list[Record],
    *shown: str,
    entire: bool = False,
    left_out: tuple[str, ...] = (),
    agents: dict[str, list[str]] | None = None,
) -> Transcript:
    """The messages as `role text`, calls as `!id`, results as `=id text`; sub-agents; what is left out."""
    transcript = read_transcript(json_lines(records), "/s.jsonl", entire=entire)
    conversation, *others = transcript.conversations
    assert [show(message) for message in conversation.messages] == list(shown)
    assert {str(each.agent): list(map(show, each.messages)) for each in others} == (agents or {})
    assert tuple(problem.message for problem in transcript.problems) == left_out
    assert all(problem.severity.name == "INFORMATION" for problem in transcript.problems)
    assert transcript.format == "claude-code"
    return transcript


def show(message: Message) -> str:
    if message.role == "tool":
        return f"={message.tool_call_id} {text_of(message)}"
    words = [
        message.role,
        text_of(message).replace("\n", "/"),
        *(f"!{call.id}" for call in message.tool_calls),
    ]
    return " ".join(word for word in words if word)


def record(kind: str, uuid: str, parent: str | None, **fields: Any) -> Record:
    envelope = {
        "isSidechain": False,
        "userType": "external",
        "cwd": "/a",
        "sessionId": "s",
        "version": "2.1.0",
    }
    stamp = {"timestamp": "2026-01-01T10:00:00.000Z"}
    return {"parentUuid": parent, **envelope, "type": kind, **fields, "uuid": uuid, **stamp}


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> Record:
    return record("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def assistant(uuid: str, parent: str | None, block: Any, *, message: str = "", **fields: Any) -> Record:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block]
    answer = {
        "id": message or f"msg-{uuid}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
    }
    return record("assistant", uuid, parent, message={**answer, "content": content}, requestId="r", **fields)


def call(name: str) -> Record:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}}


def result(uuid: str, parent: str, *calls: str) -> Record:
    blocks = [{"tool_use_id": one, "type": "tool_result", "content": f"did {one}"} for one in calls]
    return user(uuid, parent, blocks, toolUseResult={"stdout": "shown to the user only"})


def boundary(uuid: str, logical: str, **about: Any) -> Record:
    return record(
        "system",
        uuid,
        None,
        subtype="compact_boundary",
        logicalParentUuid=logical,
        content="Conversation compacted",
        compactMetadata={"trigger": "auto", "preTokens": 155_000, **about},
    )


def test_a_session() -> None:
    transcript = check(
        [
            {"type": "summary", "summary": "A title", "leafUuid": "zz"},
            {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
            user("u1", None, "Fix it."),
            assistant("a1", "u1", {"type": "thinking", "thinking": "Hm.", "signature": "s"}, message="m1"),
            assistant("a2", "a1", "I look.", message="m1"),
            assistant("a3", "a2", call("t1"), message="m1"),
            result("u2", "a3", "t1"),
            record("system", "s1", "u2", subtype="turn_duration", durationMs=5),
            assistant("a4", "s1", "Done."),
            {"type": "custom-title", "customTitle": "x", "sessionId": "s"},
        ],
        "user Fix it.",
        "assistant I look. !t1",
        "=t1 did t1",
        "assistant Done.",
    )
    (conversation,) = transcript.conversations
    assert conversation.messages[1].content == [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "I look."},
    ]
    assert conversation.messages[1].tool_calls[0].arguments == {"command": "t1"}
    assert (conversation.model, conversation.messages[0].timestamp) == (
        "claude-opus-4-5",
        "2026-01-01T10:00:00.000Z",
    )


def test_what_was_left_by_going_back() -> None:
    check(
        [
            user("u1", None, "One."),
            assistant("a1", "u1", "1"),
            user("u2", "a1", "Two."),
            assistant("a2", "u2", "2"),
            user("u3", "a1", "Two, again."),
            assistant("a3", "u3", "II"),
        ],
        "user One.",
        "assistant 1",
        "user Two, again.",
        "assistant II",
        left_out=("Left out: 2 records of abandoned branches of the conversation.",),
    )


PARALLEL = [
    user("u1", None, "Both."),
    assistant("a0", "u1", "I do.", message="m"),
    assistant("a1", "a0", call("t1"), message="m"),
    assistant("a2", "a1", call("t2"), message="m"),
    result("r1", "a1", "t1"),
    result("r2", "a2", "t2"),
    assistant("a3", "r2", "Done."),
]


def test_parallel_calls() -> None:
    """The branch passes through one of the results only, whichever was written last."""
    shown = ("user Both.", "assistant I do. !t1 !t2", "=t1 did t1", "=t2 did t2", "assistant Done.")
    check(PARALLEL, *shown)
    other = [*PARALLEL[:4], PARALLEL[5], PARALLEL[4], assistant("a3", "r1", "Done.")]
    check(other, "user Both.", "assistant I do. !t1 !t2", "=t2 did t2", "=t1 did t1", "assistant Done.")
    interleaved = [*PARALLEL[:3], PARALLEL[4], assistant("a2", "r1", call("t2"), message="m"), *PARALLEL[5:]]
    check(interleaved, *shown)
    together = [*PARALLEL[:4], result("r2", "a2", "t1", "t2"), PARALLEL[6]]
    check(together, *shown)


def test_an_answer_that_is_written_again_as_it_grows() -> None:
    check(
        [
            user("u1", None, "Go."),
            assistant("a1", "u1", "I lo", message="m"),
            assistant("a2", "a1", "I look.", message="m"),
            assistant("a3", "a2", {**call("t1"), "input": {}}, message="m"),
            assistant("a4", "a3", call("t1"), message="m"),
            assistant("a5", "a4", "I look.", message="m"),
            result("r1", "a4", "t1"),
        ],
        "user Go.",
        "assistant I look. !t1",
        "=t1 did t1",
    )


def test_a_record_that_is_written_twice() -> None:
    check(
        [
            user("u1", None, "Old."),
            user("u1", None, "Go."),
            assistant("a1", "u1", "1"),
            assistant("a1", "u1", "I"),
        ],
        "user Go.",
        "assistant I",
    )


COMPACTED = [
    user("u1", None, "One."),
    assistant("a1", "u1", "1"),
    user("u2", "a1", "Two."),
    assistant("a2", "u2", "2"),
    boundary("b", "a2"),
    user("s", "b", "Summary.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    user("u3", "s", "Three."),
    assistant("a3", "u3", "3"),
]


def test_after_a_compaction() -> None:
    transcript = check(
        COMPACTED,
        "user Summary.",
        "user Three.",
        "assistant 3",
        left_out=("Left out: 4 records before the last compaction: its summary replaces them.",),
    )
    assert transcript.conversations[0].messages[0].meta == {"isCompactSummary": True}
    everything = ["user One.", "assistant 1", "user Two.", "assistant 2", "user Summary.", "user Three."]
    check(COMPACTED, *everything, "assistant 3", entire=True)
    lost = [*COMPACTED[:4], boundary("b", "not there"), *COMPACTED[5:]]
    check(lost, *everything, "assistant 3", entire=True)


def test_what_a_compaction_kept() -> None:
    left_out = ("Left out: 2 records before the last compaction: its summary replaces them.",)
    segment = {"headUuid": "u2", "anchorUuid": "s", "tailUuid": "a2"}
    shown = ("user Summary.", "user Two.", "assistant 2", "user Three.", "assistant 3")
    kept = [*COMPACTED[:4], boundary("b", "a2", preservedSegment=segment), *COMPACTED[5:]]
    check(kept, *shown, left_out=left_out)
    listed = {"anchorUuid": "s", "uuids": ["u2", "a2"]}
    kept[4] = boundary("b", "a2", preservedMessages=listed)
    check(kept, *shown, left_out=left_out)
    both = [
        *COMPACTED[:3],
        boundary("b", "a2", preservedMessages=listed, preservedSegment=segment),
        COMPACTED[5],
        assistant("a2", "s", "2"),  # what was kept may be written, or written again, after the summary
        user("u3", "a2", "Three."),
        COMPACTED[7],
    ]
    check(both, *shown, left_out=left_out)
    kept[6] = user("u3", "a2", "Three.")  # the next record may name the last that was kept
    check(kept, *shown, left_out=left_out)
    broken = [
        *COMPACTED[:4],
        boundary("b", "a2", preservedSegment={**segment, "headUuid": "x"}),
        *COMPACTED[5:],
    ]
    check(
        broken,
        "user Summary.",
        *shown[3:],
        left_out=("Left out: 4 records before the last compaction: its summary replaces them.",),
    )


def test_sub_agents() -> None:
    side = [
        user("x1", None, "Search.", isSidechain=True, agentId="a"),
        assistant("x2", "x1", "Found.", isSidechain=True),
    ]
    check(
        [user("u1", None, "Go."), *side, assistant("a1", "u1", "1")],
        "user Go.",
        "assistant 1",
        agents={"a": ["user Search.", "assistant Found."]},
    )
    alone = check(side, "user Search.", "assistant Found.").conversations[0]
    assert (alone.name, alone.agent, alone.id) == ("", "a", "s/a")


def test_several_sub_agents_of_older_versions() -> None:
    """Without ids, chains of parents keep them apart."""
    side = [
        user("x1", None, "Search.", isSidechain=True),
        user("y1", None, "Count.", isSidechain=True),
        assistant("x2", "x1", "Found.", isSidechain=True),
        assistant("y2", "y1", "Two.", isSidechain=True),
    ]
    transcript = check(
        [user("u1", None, "Go."), *side, assistant("a1", "u1", "1")],
        "user Go.",
        "assistant 1",
        agents={"x1": ["user Search.", "assistant Found."], "y1": ["user Count.", "assistant Two."]},
    )
    assert [each.name for each in transcript.conversations] == ["", "agent x1", "agent y1"]


def test_what_claude_code_adds() -> None:
    queued = {"type": "queued_command", "prompt": "And test.", "commandMode": "prompt"}
    check(
        [
            user("u0", None, "<local-command-caveat>Caveat</local-command-caveat>", isMeta=True),
            record("system", "l1", "u0", subtype="local_command", content="<command-name>/x</command-name>"),
            user("u1", "l1", "Go."),
            record("attachment", "n1", "u1", attachment={"type": "todo_reminder", "content": []}),
            assistant("a1", "n1", call("t1")),
            result("r1", "a1", "t1"),
            record("attachment", "n2", "r1", attachment=queued),
            assistant("a2", "n2", "API Error: 529", isApiErrorMessage=True),
            user("h1", "a2", "Only seen.", isVisibleInTranscriptOnly=True),
            assistant("a3", "h1", "Done."),
        ],
        "user <local-command-caveat>Caveat</local-command-caveat>",
        "user <command-name>/x</command-name>",
        "user Go.",
        "assistant !t1",
        "=t1 did t1",
        "user And test.",
        "assistant Done.",
        left_out=(
            ATTACHED,
            "Left out: 1 record with errors that Claude Code wrote in the model's name.",
            "Left out: 1 record shown to the user only.",
        ),
    )


def test_a_stream_of_records_without_parents() -> None:
    stream: list[Record] = [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]},
        {"type": "user", "message": {"role": "user", "content": "Go."}, "session_id": "s"},
        {"type": "assistant", "message": {"id": "m", "content": [call("t1")]}, "parent_tool_use_id": None},
        {"type": "assistant", "message": {"content": [call("t9")]}, "parent_tool_use_id": "t1"},
        {
            "type": "user",
            "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}]},
        },
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}},
        {"type": "result", "subtype": "success", "session_id": "s"},
    ]
    check(
        stream,
        "user Go.",
        "assistant !t1",
        "=t1 1",
        "assistant Done.",
        agents={"t1": ["assistant !t9"]},
    )


def queue(operation: str, content: str | None = None, **fields: Any) -> Record:
    stamp = {"timestamp": "2026-01-01T10:00:00.000Z", "sessionId": "s"}
    text = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, **stamp, **text, **fields}


def steered(*operations: Record) -> list[Record]:
    """A session in which the queue is used while a tool runs."""
    return [
        user("u1", None, "Go."),
        assistant("a1", "u1", call("t1")),
        *operations,
        result("r1", "a1", "t1"),
        assistant("a2", "r1", "Done."),
    ]


ABSORBED = {"reason": "absorbed_mid_turn"}
STEERED = ("user Go.", "assistant !t1", "=t1 did t1", "user And test.", "assistant Done.")
UNSTEERED = (*STEERED[:3], STEERED[4])
TAKEN_BACK = "Left out: {} that the user took back before it was sent."
NOTIFIED = "Left out: 1 record with notifications of tasks that waited in the queue."


def test_what_the_user_said_while_the_model_worked() -> None:
    queued = queue("enqueue", "And test.")
    check(steered(queued, queue("remove", "And test.", **ABSORBED)), *STEERED)
    check(steered(queued, queue("remove", "And test.")), *STEERED)  # versions without reasons
    check(steered(queued, queue("remove")), *STEERED)
    check([*steered(queued), queue("dequeue")], *UNSTEERED, "user And test.")
    check(steered(queued), *STEERED)  # the file ends before it was sent


def test_what_another_record_has_is_not_said_twice() -> None:
    attachment = {"type": "queued_command", "prompt": "And test.", "commandMode": "prompt"}
    absorbed = [queue("enqueue", "And test."), queue("remove", "And test.", **ABSORBED)]
    records = steered(*absorbed)
    attached = [*records[:-1], record("attachment", "n", "r1", attachment=attachment)]
    check([*attached, assistant("a2", "n", "Done.")], *STEERED)
    waited = [*steered(queue("enqueue", "And test.")), queue("dequeue"), user("u2", "a2", "And test.")]
    check(waited, *UNSTEERED, "user And test.")
    two = [queue("enqueue", "And test."), queue("enqueue", "Then rest.")]
    joined = [*steered(*two), queue("dequeue"), queue("dequeue"), user("u2", "a2", "And test.\nThen rest.")]
    check(joined, *UNSTEERED, "user And test./Then rest.")
    again = [*waited, queue("enqueue", "And test."), queue("remove", "And test.", **ABSORBED)]
    check(again, *UNSTEERED, "user And test.", "user And test.")


def test_what_the_user_took_back_was_not_said() -> None:
    queued = queue("enqueue", "And test.")
    check(steered(queued, queue("popAll")), *UNSTEERED, left_out=(TAKEN_BACK.format("1 record"),))
    check(
        steered(queued, queue("remove", "And test.", reason="user_removed")),
        *UNSTEERED,
        left_out=(TAKEN_BACK.format("1 record"),),
    )
    other = [queue("enqueue", "More."), queue("remove", "More.", **ABSORBED)]
    check(
        steered(queued, queue("remove", "And test."), *other),
        *(line.replace("And test.", "More.") for line in STEERED),
        left_out=(TAKEN_BACK.format("1 record"),),
    )


def test_notifications_are_not_what_the_user_said() -> None:
    text = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    operations = [queue("enqueue", text), queue("remove", text, **ABSORBED)]
    check(steered(*operations), *UNSTEERED, left_out=(NOTIFIED,))
    attachment = {"type": "queued_command", "prompt": text, "commandMode": "task-notification"}
    records = [*steered(*operations)[:-1], record("attachment", "n", "r1", attachment=attachment)]
    shown = "user <task-notification>/<task-id>b1</task-id>/</task-notification>"
    transcript = check([*records, assistant("a2", "n", "Done.")], *UNSTEERED[:3], shown, UNSTEERED[3])
    assert transcript.conversations[0].messages[3].meta == {"isMeta": True}
    waited = [*steered(queue("enqueue", text)), queue("dequeue")]
    for fields in ({}, {"origin": {"kind": "task-notification"}}):
        transcript = check([*waited, user("u2", "a2", text, **fields)], *UNSTEERED, shown)
        assert transcript.conversations[0].messages[4].meta == {"isMeta": True}
    transcript = check(
        [*waited, user("u2", "a2", "Go on.", origin={"kind": "human"})],
        *UNSTEERED,
        "user Go on.",
        left_out=(NOTIFIED,),
    )
    assert transcript.conversations[0].messages[4].meta is msgspec.UNSET


def test_usage_of_answers() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 40}
    first = assistant("a1", "u1", "I look.", message="m1")
    last = assistant("a2", "a1", call("t1"), message="m1")
    first["message"]["usage"] = {**usage, "output_tokens": 1}
    last["message"] |= {"usage": {**usage, "output_tokens": 20}, "stop_reason": "tool_use"}
    lying = assistant("a3", "r1", "Done.")
    lying["message"]["usage"] = {"input_tokens": -1, "output_tokens": "many"}
    records = [user("u1", None, "Go."), first, last, result("r1", "a2", "t1"), lying]
    (conversation,) = check(
        records, "user Go.", "assistant I look. !t1", "=t1 did t1", "assistant Done."
    ).conversations
    assert conversation.answers == (Answer(1, TurnOutcome(ProviderUsage(3, 20, 900, 40), "tool_use")),)


def test_a_parent_that_is_not_in_the_file() -> None:
    check(
        [
            user("u1", "gone", "Go."),
            assistant("a1", "u1", "1"),
            user("u2", "gone", "On."),
            assistant("a2", "u2", "2"),
        ],
        "user Go.",
        "assistant 1",
        "user On.",
        "assistant 2",
    )


def test_records_that_nothing_links_are_read_in_order() -> None:
    check([user("u1", None, "Go."), assistant("a1", None, "1")], "user Go.", "assistant 1")


def test_a_circle_of_parents_ends() -> None:
    check([user("u1", "a1", "Go."), assistant("a1", "u1", "1")], "user Go.", "assistant 1")


def test_a_record_without_a_message_that_can_be_read() -> None:
    text = json.dumps(user("u1", None, "Go.")) + "\n" + json.dumps(user("u2", "u1", 5)) + "\n"
    found = read_transcript(text, "/s")
    assert [show(message) for message in found.conversations[0].messages] == ["user Go."]
    assert [problem.message for problem in found.problems] == [
        "The line is not a valid message: its content is a number, not text or a list of parts"
    ]
    assert found.problems[0].span.start == text.index("\n") + 1


def test_titles_alone_are_no_conversation() -> None:
    found = read_transcript(json.dumps({"type": "summary", "summary": "x", "leafUuid": "y"}), "/s")
    assert found.conversations == ()
    assert found.problems[0].message.startswith(SAID)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_every_order_of_parallel_results_gives_whole_pairs(counts: list[int], random: Any) -> None:
    """Calls of one answer, each a record of its own, whose results come in any order."""
    ids = (f"n{number}" for number in itertools.count())
    records = [user("start", None, "Go.")]
    last = "start"
    for turn, count in enumerate(counts):
        calls = []
        for number in range(count):
            uuid = next(ids)
            records.append(assistant(uuid, last, call(f"t{turn}-{number}"), message=f"m{turn}"))
            calls.append((uuid, f"t{turn}-{number}"))
            last = uuid
        random.shuffle(calls)
        for parent, name in calls:
            last = next(ids)
            records.append(result(last, parent, name))
    found = read_transcript(json_lines(records), "/s")
    assert found.problems == ()
    messages = list(found.conversations[0].messages)
    assert messages.pop(0).role == "user"
    for count in counts:
        answer = messages.pop(0)
        assert len(answer.tool_calls) == count
        results = [messages.pop(0) for _ in range(count)]
        assert {one.tool_call_id for one in results} == {one.id for one in answer.tool_calls}
    assert messages == []


def test_however_records_are_linked_the_time_is_linear() -> None:
    count = 20_000
    jumping = [user(f"l{at}", f"h{at}", "Low.") for at in range(count)]
    jumping += [user(f"h{at}", "gone", "High.") for at in range(count)]
    blocks = [{"type": "text", "text": f"{at}"} for at in range(count)]
    growing = [user("u", None, "Go.")]
    growing += [
        {
            "type": "assistant",
            "uuid": f"a{at}",
            "parentUuid": f"a{at - 1}" if at else "u",
            "message": {"id": "m", "role": "assistant", "content": [block]},
        }
        for at, block in enumerate(blocks)
    ]
    kept: list[dict[str, Any]] = [user("k0", None, "Kept.")]
    kept += [user(f"k{at}", f"k{at - 1}", "Kept.") for at in range(1, count)]
    segment = {"headUuid": "k0", "tailUuid": f"k{count - 1}", "anchorUuid": "s"}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    kept += [boundary | {"compactMetadata": {"preservedSegment": segment}}, user("s", "b", "Summary.")]
    began = time.thread_time()
    for records in (jumping, growing, kept):
        found = read_transcript(json_lines(records), "/s")
        assert found.conversations
    assert time.thread_time() - began < 30  # two seconds; each took minutes
