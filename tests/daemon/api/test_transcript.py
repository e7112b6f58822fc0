"""`nexus/session/transcript`: what people read of a conversation, what it costs, and what is still sent."""

import re
from pathlib import Path
from typing import Any

import pytest

from nexus_context import tokens as tokens_package
from nexus_context.tokens import counter_for
from nexus_daemon.api import transcript
from support.desk import Desk, tell_story
from support.talk import Talk, user

CONFIG = "/a/.nexus3/config.json"
SMALL = '{"provider": {"model": "gpt-4o"}, "context": {"max_tokens": 1200, "reserve_tokens": 200}}'
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")


async def configured(desk: Desk, talk: Talk, text: str = SMALL) -> None:
    desk.open(talk, CONFIG, text)


async def say(desk: Desk, talk: Talk, *messages: dict[str, Any], **params: object) -> Any:
    return await desk.ask(talk, desk_id(), "nexus/session/append", messages=list(messages), **params)


async def check(desk: Desk, talk: Talk, **params: object) -> list[str]:
    """A page in lines: what is shown and sent, then each turn, then its messages with tokens and text."""
    page = await desk.ask(talk, desk_id(), "nexus/session/transcript", **params)
    lines = [f"[{page['first']}, {page['end']}) of {page['messages']}, sent {page.get('sent', [])}"]
    lines += [f"{name} {page[name]}" for name in ("shortened", "summary", "cleared") if name in page]
    for turn in page["turns"]:
        lines.append(f"{turn['seq']} {turn['type']}")
        for one in turn["messages"]:
            about = "" if one.get("exact", True) else "≈"
            lines.append(f"  {one['position']} {one['role']} {about}{one['tokens']}: {one['text']}")
    return lines


def desk_id(numbers: Any = iter(range(100, 100_000))) -> int:  # noqa: B008 - one sequence for all requests
    return int(next(numbers))


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def tokens(model: str, text: str) -> int:
    return 4 + counter_for(model).count(text)


def test_a_page_is_turns_with_their_messages_and_what_they_cost(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        call = {"id": "call_1", "name": "read", "arguments": {"path": "a.py"}}
        said = await say(
            desk,
            talk,
            {**user("Read it."), "timestamp": 1_700_000_000},
            assistant("", toolCalls=[call]),
            {"role": "tool", "toolCallId": "call_1", "name": "read", "content": "x = 1"},
            assistant("It is 1.", timestamp="2023-11-14T22:13:20Z"),
            model="gpt-4o",
        )
        page = await desk.ask(talk, 2, "nexus/session/transcript", first=1)
        assert TIME.fullmatch(page["turns"][0].pop("created"))
        arguments = '{\n  "path": "a.py"\n}'
        assert page == {
            "session": "main",
            "thread": said["turn"].rpartition("-")[0],
            "messages": 5,
            "first": 1,
            "end": 5,
            "counter": {"name": "o200k_base", "exact": True},
            "sent": [[0, 5]],
            "turns": [
                {
                    "turn": said["turn"],
                    "seq": 1,
                    "type": "query",
                    "first": 0,
                    "count": 5,
                    "model": "gpt-4o",
                    "messages": [
                        {
                            "position": 1,
                            "role": "user",
                            "text": "Read it.",
                            "tokens": tokens("gpt-4o", "Read it."),
                            "time": "2023-11-14T22:13:20+00:00",
                        },
                        {
                            "position": 2,
                            "role": "assistant",
                            "text": "",
                            "tokens": 4 + 1 + counter_for("gpt-4o").count('{"path":"a.py"}') + 5,
                            "calls": [{"name": "read", "arguments": arguments, "id": "call_1"}],
                        },
                        {
                            "position": 3,
                            "role": "tool",
                            "text": "x = 1",
                            "tokens": tokens("gpt-4o", "x = 1"),
                            "name": "read",
                            "toolCallId": "call_1",
                        },
                        {
                            "position": 4,
                            "role": "assistant",
                            "text": "It is 1.",
                            "tokens": tokens("gpt-4o", "It is 1."),
                            "time": "2023-11-14T22:13:20Z",
                        },
                    ],
                }
            ],
        }

    tell_story(tmp_path, story)


def test_messages_are_counted_for_the_model_of_the_folder_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[object] = []
    count = tokens_package.count_message

    def counting(*arguments: Any) -> int:
        counted.append(arguments[1])
        return count(*arguments)

    monkeypatch.setattr(transcript, "count_message", counting)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        await say(desk, talk, user("one two three"), assistant("four"))
        first = await check(desk, talk, first=1)
        assert first[2:] == [
            f"  1 user {tokens('gpt-4o', 'one two three')}: one two three",
            f"  2 assistant {tokens('gpt-4o', 'four')}: four",
        ]
        assert counted == []  # the ledger knows
        claude = "claude-sonnet-4-5"
        talk.send(desk_change(desk, SMALL.replace("gpt-4o", claude)))
        for _ in range(2):
            shown = await check(desk, talk, first=1)
            assert shown[2:] == [
                f"  1 user ≈{tokens(claude, 'one two three')}: one two three",
                f"  2 assistant ≈{tokens(claude, 'four')}: four",
            ]
        assert counted == ["one two three", "four"]
        monkeypatch.setattr(transcript, "MOST_COUNTED", 3)
        await say(desk, talk, user("five"))
        talk.send(desk_change(desk, SMALL, 3))
        assert (await check(desk, talk, first=3))[-1] == f"  3 user ≈{tokens(claude, 'five')}: five"

    tell_story(tmp_path, story)


def desk_change(desk: Desk, text: str, version: int = 2) -> Any:
    document = {"uri": desk.uri(CONFIG), "version": version}
    return {
        "jsonrpc": "2.0",
        "method": "textDocument/didChange",
        "params": {"textDocument": document, "contentChanges": [{"text": text}]},
    }


def test_what_is_cut_and_what_is_shortened_is_said(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        for number in range(8):
            question = f"What is in src/module_{number}.py? " * 12
            await say(desk, talk, user(question), assistant(f"answer {number} " * 25))
        page = await desk.ask(talk, 2, "nexus/session/transcript", limit=2)
        usage = await desk.ask(talk, 3, "nexus/context/usage")
        sent = [at for first, end in page["sent"] for at in range(first, end)]
        assert page["messages"] - len(sent) == usage["removedMessages"]
        assert (page["first"], page["end"], sent[-1]) == (15, 17, 16)
        rows = {row["label"]: row.get("message") for row in usage["rows"] if row["category"] == "history"}
        (kept, (first, end)) = page["sent"]
        assert rows == {
            "2 messages from the beginning": kept[0],
            f"names and values of {usage['removedMessages']} messages not sent": kept[1],
            f"{end - first} messages": first,
        }
        call = {"id": "call_1", "name": "read", "arguments": {}}
        result = {"role": "tool", "toolCallId": "call_1", "content": "word " * 3_000}
        await say(desk, talk, user("go"), assistant("", toolCalls=[call]), result)
        lines = await check(desk, talk, limit=1)
        assert lines[1] == "shortened [19]"
        assert lines[0].endswith("20]]")

    tell_story(tmp_path, story)


def test_a_compaction_and_its_undo_say_what_is_sent(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        for number in range(6):
            await say(desk, talk, user(f"question {number} " * 12), assistant(f"answer {number} " * 12))
        done = await desk.ask(talk, 2, "nexus/session/compact")
        page = await desk.ask(talk, 3, "nexus/session/transcript", limit=1)
        (turn,) = page["turns"]
        kept, folded = turn.get("kept", []), turn["folded"]
        assert turn["receipt"] == done["receipt"]
        assert turn["compaction"] == done["compaction"]
        assert sum(end - first for first, end in folded) == done["receipt"]["replacedMessages"]
        assert (page["summary"], page["sent"], page["kept"]) == (13, [[kept[0][0], 14]], kept)
        assert folded == [[0, kept[0][0]]]
        await desk.ask(talk, 4, "nexus/session/undoCompaction")
        page = await desk.ask(talk, 5, "nexus/session/transcript", limit=1)
        assert [turn["type"] for turn in page["turns"]] == ["compaction", "undo"]
        assert page["turns"][1]["compaction"] == done["compaction"]
        assert "summary" not in page
        assert page["sent"][-1][1] == 13

    tell_story(tmp_path, story)


def test_a_hit_of_a_cleared_conversation_leads_to_its_thread(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await say(desk, talk, user("the needle"))
        await desk.ask(talk, 2, "nexus/session/clear")
        await say(desk, talk, user("hay"))
        (hit,) = (await desk.ask(talk, 3, "nexus/session/search", query="needle"))["hits"]
        lines = await check(desk, talk, thread=hit["thread"], first=hit["position"])
        assert lines == ["[1, 2) of 2, sent []", "cleared True", "1 query", lines[3]]
        assert lines[3].endswith(": the needle")
        assert "hay" in (await check(desk, talk))[-1]
        assert (await check(desk, talk, session="none")) == ["[0, 0) of 0, sent []"]

    tell_story(tmp_path, story)


def test_a_fork_says_of_what_and_which_turns_are_shared(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await say(desk, talk, user("one"))
        await desk.ask(talk, 2, "nexus/session/fork", session="main", to="idea")
        await say(desk, talk, user("two"), session="idea")
        page = await desk.ask(talk, 3, "nexus/session/transcript", session="idea")
        assert page["forkedFrom"] == "main"
        own = [turn["turn"].startswith(f"{page['thread']}-") for turn in page["turns"]]
        assert own == [False, True]
        assert "forkedFrom" not in await desk.ask(talk, 4, "nexus/session/transcript", session="main")
        await desk.ask(talk, 5, "nexus/session/delete", session="main")
        assert "forkedFrom" not in await desk.ask(talk, 6, "nexus/session/transcript", session="idea")

    tell_story(tmp_path, story)


def test_texts_steer_nothing_and_give_no_secret_away(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        call = {"id": "c\x1b", "name": "set\n", "arguments": {"apiKey": "hunter2hunter2", "to": key}}
        await say(
            desk,
            talk,
            user(f"\x1b[2J key {key}\r\n\u202eend"),
            assistant("", toolCalls=[call]),
            {
                "role": "tool",
                "toolCallId": "c\x1b",
                "name": "a\nb",
                "content": f'{{"password": "{"p" * 9}"}}',
            },
        )
        page = await desk.ask(talk, 2, "nexus/session/transcript", first=1)
        first, second, third = page["turns"][0]["messages"]
        assert first["text"] == f"␛[2J key {'*' * len(key)}\r\n\ufffdend"
        arguments = f'{{\n  "apiKey": "{"*" * 14}",\n  "to": "{"*" * len(key)}"\n}}'
        assert second["calls"] == [{"name": "set␊", "id": "c␛", "arguments": arguments}]
        assert (third["name"], third["toolCallId"]) == ("a␊b", "c␛")
        assert third["text"] == f'{{"password": "{"*" * 9}"}}'

    tell_story(tmp_path, story)


def test_of_what_is_very_long_the_middle_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MOST_TEXT", 30)
    monkeypatch.setattr(transcript, "MOST_ARGUMENTS", 3)
    monkeypatch.setattr(transcript, "MOST_CALLS", 1)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        calls = [{"id": "1", "name": "f", "arguments": "abcdef"}, {"id": "2", "name": "g", "arguments": ""}]
        await say(desk, talk, user("x" * 40 + "y" * 60), assistant("", toolCalls=calls))
        page = await desk.ask(talk, 2, "nexus/session/transcript", first=1)
        first, second = page["turns"][0]["messages"]
        assert first["text"] == "x" * 20 + "\n[… 70 characters are not shown …]\n" + "y" * 10
        assert first["omitted"] == 70
        arguments = "ab\n[… 3 characters are not shown …]\nf"
        assert second["calls"] == [{"name": "f", "id": "1", "arguments": arguments}]
        assert second["omitted"] == 3

    tell_story(tmp_path, story)


def test_what_is_no_text_is_named_and_makes_the_count_an_estimate(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        image = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
        linked = {"type": "image_url", "image_url": {"url": "https://h.example/a.png"}}
        odd = {"type": "hologram", "of": 1}
        await say(
            desk, talk, {"role": "user", "content": [{"type": "text", "text": "See."}, image, linked, odd]}
        )
        page = await desk.ask(talk, 2, "nexus/session/transcript", first=1)
        (message,) = page["turns"][0]["messages"]
        assert message["text"] == "See."
        assert message["attachments"] == ["image image/png", "image https://h.example/a.png", "hologram"]
        assert message["exact"] is False

    tell_story(tmp_path, story)


def test_what_a_turn_was_sent_besides_is_listed(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        Path(desk.tree.path("/a/EXTRA.md")).write_text("Be brief.")
        attached = [{"uri": desk.uri("/a/EXTRA.md")}]
        assembled = await desk.assemble(talk, 2, message="Hi.", attachments=attached)
        included = assembled["metadata"]["memory"]["included"]
        await say(desk, talk, user("Hi."), assistant("Hello."))
        page = await desk.ask(talk, 3, "nexus/session/transcript")
        assert included
        assert page["turns"][0]["beside"] == included

    tell_story(tmp_path, story)


def test_messages_and_turns_have_what_they_were_made_of(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await configured(desk, talk)
        Path(desk.tree.path("/a/EXTRA.md")).write_text("Be brief.")
        event = {"id": "e", "platform": "slack\x1b[2J", "hookData": ["a", "b"]}
        assembled = await desk.assemble(
            talk,
            2,
            message="Hi.",
            event=event,
            attachments=[{"uri": desk.uri("/a/EXTRA.md")}],
        )
        await say(desk, talk, user("Hi."), assistant("Hello."), user("Go on."))
        record = assembled["metadata"]["contextJson"]
        page = await desk.ask(talk, 3, "nexus/session/transcript")
        (turn,) = page["turns"]
        assert turn["context"] == record["system"]
        assert {file["path"] for file in turn["context"]["files"]} >= {desk.tree.path("/a/NEXUS.md")}
        contexts = {message["text"]: message.get("context") for message in turn["messages"]}
        made = contexts.pop("Hi.")
        assert made["event"] == {"platform": "slack␛[2J", "hookCount": 2}
        assert made["attachments"] == record["user"]["attachments"]
        assert made["memory"]["included"] == record["memory"]["included"]
        assert set(contexts.values()) == {None}
        page = await desk.ask(talk, 4, "nexus/session/transcript", first=page["messages"] - 1)
        assert [message.get("context") for message in page["turns"][0]["messages"]] == [None]

    tell_story(tmp_path, story)


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_limit_out_of_range_is_refused(tmp_path: Path, limit: int) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 2, "nexus/session/transcript", limit=limit)
        error = (await desk.reply(talk, 2))["error"]
        assert error["data"]["code"] == "bad-option"
        assert error["message"] == f"`limit` is {limit}: it must be from 1 to 1,000."

    tell_story(tmp_path, story)
