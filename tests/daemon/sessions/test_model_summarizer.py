"""Who writes the summary of a compaction: the client's model where it has one and can, else Nexus itself."""

import re
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from nexus_daemon.server import build
from nexus_daemon.sessions import compaction
from support.desk import Desk, replies, tell_story
from support.talk import HELLO, Message, Talk, call, result, tell
from support.waiting import wait_until, yield_to_loop

ASK = "nexus/model/complete"
SUMMARY = "## Goal\nLog the wind.\n## State\nForty days are logged."
SETTINGS = (
    '{"provider": {"model": "gpt-4o"PROVIDER}, "context": {"max_tokens": 1500, "reserve_tokens": 300}MORE}'
)
DAYS = [
    {"role": role, "content": text}
    for day in range(24)
    for role, text in (
        (
            "user",
            f"Day {day}: the wind is from the {'north' if day % 2 else 'west'}, force {day % 9}. Log it.",
        ),
        ("assistant", f"Logged day {day}."),
    )
]


async def window(desk: Desk, *, model: bool = True, provider: str = "", more: str = "") -> Talk:
    """A client of the folder /a, with a model or without, and a conversation there."""
    text = SETTINGS.replace("PROVIDER", provider).replace("MORE", more)
    Path(desk.tree.path("/a/.nexus3/config.json")).write_text(text, encoding="utf-8")
    talk = Talk(partial(build, lambda: desk.daemon))
    said = {"experimental": {"nexus": {"modelComplete": model}}}
    listed = [{"uri": desk.uri("/a"), "name": "a"}]
    hello = {**HELLO["params"], "workspaceFolders": listed, "capabilities": said}
    talk.send({**HELLO, "params": hello})
    await yield_to_loop()
    await desk.ask(talk, 1, "nexus/session/append", messages=DAYS[:32])
    return talk


def asked(talk: Talk) -> list[Message]:
    return [one for one in talk.writer.messages() if one.get("method") == ASK]


async def question(talk: Talk, number: int = 1) -> Message:
    """The question with this number, from 1."""
    return (await wait_until(lambda: asked(talk)[number - 1 :]))[-1]


def begin(desk: Desk, talk: Talk, message_id: int, method: str, **params: object) -> None:
    talk.send(call(message_id, method, {"workspaceFolder": desk.uri("/a"), **params}))


async def held(desk: Desk, talk: Talk, message_id: int) -> list[Any]:
    messages = (await desk.ask(talk, message_id, "nexus/session/messages"))["messages"]
    return [message["content"] for message in messages]


NAME = "pytest-0-popen-gw0-test_a_model_is_asked_on_the_prefix_of_the_conversation"
PATH_LENGTH = 59  # characters: the prompt holds paths, and the window is small


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory whose path always costs the same number of tokens: of nine digits, each three are one."""
    directory = Path(gettempdir(), f"nexus-{time.time_ns() % 10**9:09}")
    root = directory / NAME[: PATH_LENGTH - len(str(directory)) - 1]
    root.mkdir(parents=True)
    yield root
    shutil.rmtree(directory)


def check(root: Path, story: Callable[[Desk, Talk], Awaitable[None]], **settings: Any) -> None:
    async def told(desk: Desk) -> None:
        await story(desk, await window(desk, **settings))

    tell_story(root, told)


def test_a_model_is_asked_on_the_prefix_of_the_conversation_with_the_instruction_last(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        turn = await desk.assemble(talk, 2)
        begin(desk, talk, 3, "nexus/session/compact", instructions="Keep the wind.", pins=["Day 3"])
        params = (await question(talk))["params"]
        messages = params.pop("messages")
        assert params == {
            "workspaceFolder": desk.uri("/a"),
            "session": "main",
            "purpose": "compaction",
            "maxTokens": params["maxTokens"],
            "model": "small",
        }
        assert messages[:-1] == [{"role": "system", "content": turn["systemPrompt"]}, *turn["history"]]
        assert messages[-1]["role"] == "user"
        asked_for = int(params["maxTokens"] * 0.78)  # the rest is for the names that the model leaves out
        for part in (f"at most {asked_for} tokens", "Keep the wind.", "<pin>\nDay 3\n</pin>"):
            assert part in messages[-1]["content"]
        talk.send(result(asked(talk)[0]["id"], {"content": SUMMARY, "model": "small-1"}))
        receipt = (await desk.reply(talk, 3))["result"]["receipt"]
        assert (receipt["summarizer"], receipt["model"], receipt["failures"]) == ("editor", "small-1", [])
        first, *rest = await held(desk, talk, 4)
        assert first.startswith("[CONTEXT SUMMARY]")
        assert SUMMARY in first
        assert "Day 3" in first
        assert rest == [one["content"] for one in DAYS[:32]][-len(rest) :]

    check(
        tmp_path,
        story,
        more=', "compaction": {"model": "small", "instructions": "Unused.", "enabled": false}',
    )


ANSWERS: dict[str, tuple[Any, str]] = {
    "an error": ({"error": {"code": 1, "message": "No model\nis picked."}}, "editor: No model is picked."),
    "cancelled there": ({"error": {"code": -32800, "message": ""}}, "editor: an error without a message"),
    "nothing": ({"result": {"content": " \n"}}, "editor: an empty summary"),
    "no text": ({"result": {"content": [1]}}, "editor: The client's reply: Expected `str`"),
    "no result": ({"result": None}, "editor: The client's reply: Expected `object`"),
    "an apology": ({"result": {"content": "I am sorry, I cannot."}}, "editor: the answer is not a summary"),
    "too much": ({"result": {"content": "## Goal\n" + "wind " * 2000}}, "editor: the summary takes 2,00"),
    "silence": (None, "editor: no answer within 0.2 seconds"),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("method", ["nexus/session/compact", "nexus/context/assemble"])
def test_what_is_no_summary_is_said_and_replaced(
    tmp_path: Path, name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, reason = ANSWERS[name]
    if answer is None:
        monkeypatch.setattr(compaction, "EXPLICIT_S", 0.2)
        monkeypatch.setattr(compaction, "IN_A_TURN_S", 0.2)

    async def story(desk: Desk, talk: Talk) -> None:
        begin(desk, talk, 3, method, **({"message": "And today?"} if "assemble" in method else {}))
        asking = await question(talk)
        if answer is not None:
            talk.send({"jsonrpc": "2.0", "id": asking["id"], **answer})
        given = (await desk.reply(talk, 3))["result"]
        receipt = given.get("receipt") or given["metadata"]["compaction"]["receipt"]
        assert receipt["summarizer"] == "extractive"
        assert "model" not in receipt
        (failure,) = receipt["failures"]
        assert failure.startswith(reason)
        assert (await held(desk, talk, 4))[0].startswith("[CONTEXT SUMMARY]")
        told_off = [one for one in talk.writer.messages() if one.get("method") == "$/cancelRequest"]
        assert [one["params"]["id"] for one in told_off] == ([asking["id"]] if answer is None else [])
        talk.send(result(asking["id"], {"content": SUMMARY}))  # too late
        assert await desk.ask(talk, 5, "nexus/context/usage")

    check(tmp_path, story)


def test_a_turn_that_is_due_is_compacted_by_the_model(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        begin(desk, talk, 3, "nexus/context/assemble", message="And today?")
        asking = await question(talk)
        assert asking["params"]["purpose"] == "compaction"
        talk.send(result(asking["id"], {"content": SUMMARY}))
        turn = (await desk.reply(talk, 3))["result"]
        made = turn["metadata"]["compaction"]
        assert (made["reached"], made["receipt"]["summarizer"]) == (True, "editor")
        assert SUMMARY in turn["history"][0]["content"]
        assert len(asked(talk)) == 1

    check(tmp_path, story)


@pytest.mark.parametrize(
    "settings", [{"model": False}, {"provider": ', "name": "openai"'}], ids=["no model", "another provider"]
)
def test_who_has_no_model_is_not_asked(tmp_path: Path, settings: dict[str, Any]) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        receipt = (await desk.ask(talk, 3, "nexus/session/compact"))["receipt"]
        assert (receipt["summarizer"], receipt["failures"], asked(talk)) == ("extractive", [], [])

    check(tmp_path, story, **settings)


def test_nothing_waits_for_the_model_and_what_is_said_meanwhile_stays(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        begin(desk, talk, 3, "nexus/session/compact")
        asking = await question(talk)
        more = await desk.ask(talk, 4, "nexus/session/append", messages=DAYS[32:34])
        assert (await desk.ask(talk, 5, "nexus/context/usage"))["total"] == more["usage"]["total"]
        assert replies(talk, 3) == []
        talk.send(result(asking["id"], {"content": SUMMARY}))
        made = (await desk.reply(talk, 3))["result"]
        now = await held(desk, talk, 6)
        assert SUMMARY in now[0]
        assert now[-2:] == [one["content"] for one in DAYS[32:34]]
        usage = await desk.ask(talk, 7, "nexus/context/usage")
        assert usage["total"] == made["usage"]["total"]
        spent = sum(row["tokens"] for row in usage["rows"] if row["category"] == "history")
        assert made["receipt"]["tokensAfter"] == spent
        await desk.ask(talk, 8, "nexus/session/undoCompaction")
        assert (await held(desk, talk, 9))[1:] == [one["content"] for one in DAYS[:34]]

    check(tmp_path, story)


@pytest.mark.parametrize("method", ["nexus/session/clear", "nexus/session/delete"])
def test_what_is_gone_is_not_compacted(tmp_path: Path, method: str) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        begin(desk, talk, 3, "nexus/session/compact")
        asking = await question(talk)
        await desk.ask(talk, 4, method)
        talk.send(result(asking["id"], {"content": SUMMARY}))
        assert (await desk.reply(talk, 3))["error"]["data"]["code"] == "head-moved"
        assert await held(desk, talk, 5) == []

    check(tmp_path, story)


def test_a_turn_of_a_cleared_conversation_has_nothing_of_it(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        begin(desk, talk, 3, "nexus/context/assemble", message="And today?")
        asking = await question(talk)
        await desk.ask(talk, 4, "nexus/session/clear")
        talk.send(result(asking["id"], {"content": SUMMARY}))
        turn = (await desk.reply(talk, 3))["result"]
        assert [one["content"][:17] for one in turn["history"]] == ["[Session started:"]
        assert turn["metadata"]["compaction"]["reached"] is False

    check(tmp_path, story)


def test_two_at_once_ask_once_and_compact_once(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        other = await window(desk)
        begin(desk, talk, 3, "nexus/session/compact")
        asking = await question(talk)
        begin(desk, other, 3, "nexus/context/assemble", message="And today?")
        begin(desk, other, 4, "nexus/session/compact")
        assert await desk.ask(other, 5, "nexus/context/usage")
        summarizing = next(iter(desk.daemon.windows.folders)).conversations.peek("main").summarizing
        await wait_until(lambda: len(summarizing._waiters or ()) == 2)  # noqa: SLF001 - else one comes too late
        assert asked(other) == []
        talk.send(result(asking["id"], {"content": SUMMARY}))
        assert (await desk.reply(talk, 3))["result"]["receipt"]["summarizer"] == "editor"
        turn = (await desk.reply(other, 3))["result"]
        assert (turn["metadata"]["compaction"], asked(other)) == ({"reached": True}, [])
        assert SUMMARY in turn["history"][0]["content"]
        assert (await desk.reply(other, 4))["error"]["data"]["code"] == "head-moved"
        assert len(asked(talk)) == 1

    check(tmp_path, story)


def test_a_cancelled_compaction_takes_its_question_back_and_changes_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        before = await held(desk, talk, 2)
        begin(desk, talk, 3, "nexus/session/compact")
        asking = await question(talk)
        talk.send(tell("$/cancelRequest", {"id": 3}))
        assert (await desk.reply(talk, 3))["error"]["code"] == -32800
        notices = await wait_until(
            lambda: [one for one in talk.writer.messages() if "cancel" in one.get("method", "")]
        )
        assert notices[-1]["params"] == {"id": asking["id"]}
        assert await held(desk, talk, 4) == before
        begin(desk, talk, 5, "nexus/session/compact")
        talk.send(result((await question(talk, 2))["id"], {"content": SUMMARY}))
        assert (await desk.reply(talk, 5))["result"]["receipt"]["summarizer"] == "editor"

    check(tmp_path, story)


def test_a_client_that_leaves_takes_its_compaction_along(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        other = await window(desk)
        before = await held(desk, other, 2)
        begin(desk, talk, 3, "nexus/session/compact")
        await question(talk)
        talk.link.end(1, "gone")
        assert await held(desk, other, 3) == before
        begin(desk, other, 4, "nexus/session/compact")
        talk_to = await question(other)
        other.send(result(talk_to["id"], {"content": SUMMARY}))
        assert (await desk.reply(other, 4))["result"]["receipt"]["summarizer"] == "editor"

    check(tmp_path, story)


def test_a_summary_that_saves_nothing_is_replaced(tmp_path: Path) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        short = {"session": "short"}
        words = {"role": "assistant", "content": "and so it goes on " * 12}
        await desk.ask(talk, 2, "nexus/session/append", **short, messages=[DAYS[0], words] * 4)
        begin(desk, talk, 3, "nexus/session/compact", **short)
        asking = await question(talk)
        long = "## Goal\n" + "wind " * int(1.4 * asking["params"]["maxTokens"])
        talk.send(result(asking["id"], {"content": long}))
        reply = await desk.reply(talk, 3)
        receipt = reply["result"]["receipt"]
        assert receipt["summarizer"] == "extractive"
        (failure,) = receipt["failures"]
        assert re.fullmatch(
            r"editor: with its summary the history would take [\d,]+ tokens instead of [\d,]+", failure
        )

    check(tmp_path, story)


def test_what_does_not_fit_the_model_is_not_sent(tmp_path: Path) -> None:
    off = ', "compaction": {"enabled": false}'

    async def story(desk: Desk, talk: Talk) -> None:
        await desk.ask(talk, 2, "nexus/session/append", messages=[*DAYS, *DAYS, *DAYS])
        begin(desk, talk, 3, "nexus/session/compact")
        receipt = (await desk.reply(talk, 3))["result"]["receipt"]
        assert receipt["summarizer"] == "extractive"
        assert receipt["failures"][0].startswith("editor: what is to be summarized takes ")
        assert asked(talk) == []

    check(tmp_path, story, more=off)


def test_of_a_conversation_that_is_cut_all_that_is_summarized_is_sent(tmp_path: Path) -> None:
    """The system prompt is left out where it does not fit beside; what was cut off is not."""

    async def story(desk: Desk, talk: Talk) -> None:
        await desk.ask(talk, 2, "nexus/session/append", messages=DAYS[:22])
        turn = await desk.assemble(talk, 3)
        assert turn["metadata"]["truncation"]["removedMessages"]
        begin(desk, talk, 4, "nexus/session/compact")
        *sent, instruction = (await question(talk))["params"]["messages"]
        said = [one["content"] for one in (*DAYS[:32], *DAYS[:22])]
        assert [one["content"] for one in sent[1:]] == said[: len(sent) - 1]
        assert "stay in the conversation as they are" not in instruction["content"]
        talk.send(result(asked(talk)[0]["id"], {"content": SUMMARY}))
        receipt = (await desk.reply(talk, 4))["result"]["receipt"]
        assert (receipt["summarizer"], receipt["replacedMessages"]) == ("editor", len(sent))

    check(tmp_path, story, more=', "compaction": {"enabled": false}')


@pytest.mark.parametrize("reads_again", [True, False])
def test_a_compaction_reads_the_instruction_files_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads_again: bool
) -> None:
    async def story(desk: Desk, talk: Talk) -> None:
        requests: list[str] = []
        (folder,) = desk.daemon.windows.folders
        monkeypatch.setattr(folder.reload, "request", requests.append)
        begin(desk, talk, 3, "nexus/session/compact")
        assert (await desk.reply(talk, 3))["result"]["receipt"]["summarizer"] == "extractive"
        asked_for = [
            reason for reason in requests if reason != "disk"
        ]  # the watcher's: files were just written
        assert asked_for == (["instructions"] if reads_again else [])

    more = "" if reads_again else ', "compaction": {"reload_prompt": false}'
    check(tmp_path, story, model=False, more=more)
