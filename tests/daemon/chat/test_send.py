"""`nexus/chat/send` against a loopback provider: a turn, its tools, its failures, and what is recorded."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_context.folder.trust import trust_file
from nexus_context.memory.queries import NAMES as MEMORY_TOOLS
from nexus_daemon import api
from nexus_daemon.api.chat import tools
from nexus_daemon.workspace.trusted_folders import set_trust
from support.desk import Desk, replies, tell_story
from support.loopback_provider import (
    Call,
    Cut,
    Events,
    Gate,
    LoopbackProvider,
    Refusal,
    Thinking,
    loopback_provider,
)
from support.server_story import TOOLS, Servers, configure
from support.talk import result, tell
from support.waiting import wait_until

KEY = "sk-ant-canary-4f1c9e77"
ADD = Call("toolu_1", "mcp__test__alpha", {"a": 1, "b": 2})
LONG = Refusal(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")

DAY = "The wind is from the west, force five, and the barometer falls. " * 12
DAYS = [
    {"role": role, "content": f"{number}: {DAY}"} for number in range(20) for role in ("user", "assistant")
]
SUMMARY = "## Goal\nLog the wind.\n## State\nTwenty days are logged."

Story = Callable[["Chat"], Awaitable[None]]


class Chat(Servers):
    """A client in the trusted folder /a with a server and a provider."""

    provider: LoopbackProvider

    async def send(self, message: object = "Hello.", **params: object) -> Any:
        return await self.ask("chat/send", message=message, **params)

    def begin(self, message: str = "Hello.", **params: object) -> int:
        """Send a message; its reply comes later."""
        self.last += 1
        params = {"workspaceFolder": self.desk.uri("/a"), "message": message, **params}
        self.talk.send({"jsonrpc": "2.0", "id": self.last, "method": "nexus/chat/send", "params": params})
        return self.last

    async def outcome(self, message_id: int) -> Any:
        return await self.desk.reply(self.talk, message_id)

    async def messages(self, session: str = "main") -> list[Any]:
        """What was said, without the message that opens a session."""
        stored = (await self.ask("session/messages", session=session))["messages"]
        return [message for message in stored if not str(message["content"]).startswith("[Session started")]

    async def roles(self, session: str = "main") -> list[str]:
        return [message["role"] for message in await self.messages(session)]

    def items(self, token: str) -> list[Any]:
        """What was streamed under a token."""
        told = [each["params"] for each in self.talk.writer.messages() if each.get("method") == "$/progress"]
        return [item for each in told if each["token"] == token for item in each["value"]]

    async def question(self, count: int = 1) -> Any:
        """The question with this number, from 1."""

        def asked() -> list[Any]:
            said = self.talk.writer.messages()
            return [each for each in said if each.get("method") == "nexus/tool/approve"][count - 1 :]

        return (await wait_until(asked))[0]

    async def allow(self, count: int = 1, **answer: object) -> Any:
        question = await self.question(count)
        self.talk.send(result(question["id"], {"approved": True, **answer}))
        return question["params"]


def check(
    tmp_path: Path,
    story: Story,
    *script: Events | Refusal,
    files: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Tell a story about a provider with this script."""
    with loopback_provider(*script) as provider:

        async def told(desk: Desk) -> None:
            configure(desk)
            inputs = desk.daemon.load_inputs
            environ = {**inputs.environ, "TEST_KEY": KEY}
            desk.daemon.load_inputs = msgspec.structs.replace(
                inputs, environ=environ, trust_file=trust_file(environ)
            )
            set_trust(environ, desk.tree.path("/a"), trusted=True)
            chosen = {"name": "anthropic", "model": "claude-sonnet-4-6", "base_url": provider.url}
            config = {"provider": {**chosen, "api_key_env": "TEST_KEY"}, **(settings or {})}
            home = Path(desk.tree.path("/home")) / ".nexus3"
            home.mkdir(parents=True, exist_ok=True)
            (home / "config.json").write_text(json.dumps(config))
            chat = Chat(desk, await desk.client())
            chat.provider = provider
            chat.write_tools(**TOOLS)
            await story(chat)

        tell_story(tmp_path, told, files)


def test_a_turn_is_streamed_answered_and_recorded(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        answer = await chat.send("When is low tide?", partialResultToken="t")
        assert answer["message"]["role"] == "assistant"
        assert (answer["stopReason"], answer["steps"], answer["session"]) == ("end_turn", 1, "main")
        assert answer["spending"]["tokens"] == 120
        assert answer["spending"]["usd"] == pytest.approx((100 * 3 + 20 * 15) / 1e6)
        counted = {name: value for name, value in answer["providerUsage"].items() if value is not None}
        assert counted == {"inputTokens": 100, "outputTokens": 20, "stopReason": "end_turn"}
        kinds = [(item["kind"], item.get("text")) for item in chat.items("t")]
        assert kinds[0][0] == "notice"
        assert "anthropic" in kinds[0][1]
        assert kinds[1:3] == [("thinking", "The moon."), ("text", "At noon.")]
        assert kinds[-1][0] == "usage"
        user, assistant = (await chat.messages())[-2:]
        assert user["content"] == "When is low tide?"
        assert {"thinking", "text"} <= {part["type"] for part in assistant["content"]}
        body = chat.provider.requests[0]
        assert body["stream"] is True
        assert body["messages"][-1]["role"] == "user"
        assert KEY in str(chat.provider.headers[0])
        await chat.send("And high tide?", partialResultToken="u")
        assert [item["kind"] for item in chat.items("u")] == ["text", "usage"]  # says only once where it goes
        sent = json.dumps(chat.provider.requests[1]["messages"])
        assert "c2lnbmVk" in sent  # thinking goes back as it was signed
        assert "At noon." in sent

    check(tmp_path, story, [Thinking("The moon."), "At noon."], ["At six."])


def test_a_tool_of_a_server_runs_once_the_user_allows_it(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin(partialResultToken="t")
        asked = await chat.allow()
        assert (asked["tool"], asked["server"], asked["arguments"]) == (ADD.name, "test", ADD.arguments)
        answer = (await chat.outcome(sent))["result"]
        assert answer["steps"] == 2
        assert chat.calls() == ["alpha"]
        assert await chat.roles() == ["user", "assistant", "tool", "assistant"]
        kinds = [item["kind"] for item in chat.items("t")]
        assert kinds == ["notice", "text", "usage", "toolCall", "toolResult", "text", "usage"]
        results = chat.provider.requests[1]["messages"][-1]["content"]
        assert results[0]["type"] == "tool_result"
        assert results[0]["tool_use_id"] == "toolu_1"

    check(tmp_path, story, ["Adding.", ADD], ["3."])


def test_a_remembered_answer_is_not_asked_for_again(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin()
        await chat.allow(remember=True)
        await chat.outcome(sent)
        assert chat.calls() == ["alpha", "alpha"]
        sent = chat.begin(session="other")
        await chat.allow(2)  # another conversation asks again
        assert (await chat.outcome(sent))["result"]["steps"] == 2

    again = msgspec.structs.replace(ADD, id="toolu_2")
    check(tmp_path, story, [ADD], [again], ["3."], [ADD], ["3."])


def test_what_an_editor_knows_of_a_turn_is_part_of_it(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.send(
            message={"role": "user", "content": "Hello.", "meta": {"client": "vscode"}},
            attachments=[{"uri": "file:///b/rules.md", "text": "Speak of the tide."}],
            options={"disabledTools": ["spawn_agent", "query_l?_memory"]},
        )
        body = chat.provider.requests[0]
        assert "Speak of the tide." in json.dumps(body["messages"])
        names = {tool["name"] for tool in body["tools"]}
        assert "list_agents" in names
        assert not {"spawn_agent", "query_l2_memory"} & names
        user = (await chat.messages())[0]
        assert (user["content"], user["meta"]["client"]) == ("Hello.", "vscode")

    check(tmp_path, story, ["At noon."])


@pytest.mark.parametrize(
    "answer", [{"approved": False}, {}, None, "yes", {"error": -32601}, {"silence": True}]
)
def test_any_other_answer_means_no(tmp_path: Path, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "APPROVE_S", 0.3)

    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin()
        question = await chat.question()
        if isinstance(answer, dict) and "error" in answer:
            error = {"code": answer["error"], "message": "no such method"}
            chat.talk.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        elif answer != {"silence": True}:
            chat.talk.send(result(question["id"], answer))
        assert (await chat.outcome(sent))["result"]["steps"] == 2
        assert chat.calls() == []
        refused = (await chat.messages())[2]
        assert refused["content"] == tools.REFUSED
        assert refused["meta"] == {"isError": True}

    check(tmp_path, story, [ADD], ["Then not."])


def test_a_silent_user_is_asked_once_for_all_calls_of_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "APPROVE_S", 0.3)
    calls = [msgspec.structs.replace(ADD, id=f"c{number}") for number in range(20)]

    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin()
        assert (await chat.outcome(sent))["result"]["steps"] == 2
        asked = [each for each in chat.talk.writer.messages() if each.get("method") == "nexus/tool/approve"]
        assert len(asked) == 1
        assert [message["content"] for message in (await chat.messages())[2:-1]] == [tools.REFUSED] * 20

    check(tmp_path, story, calls, ["Then not."])


@pytest.mark.parametrize(("named", "asked"), [(ADD.name, 0), (f"{ADD.name}(a:1)", 1)])
def test_a_skill_of_the_user_says_yes_to_whole_tools_only(tmp_path: Path, named: str, asked: int) -> None:
    skill = f"---\nname: add\ndescription: Adds.\nalways: true\nallowed-tools: {named}\n---\nAdd.\n"

    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin(options={"skills": ["add"]})
        if asked:
            await chat.allow()
        assert (await chat.outcome(sent))["result"]["steps"] == 2
        assert chat.calls() == ["alpha"]
        said = chat.talk.writer.messages()
        assert sum(each.get("method") == "nexus/tool/approve" for each in said) == asked

    check(tmp_path, story, [ADD], ["3."], files={"/home/.nexus3/skills/add/SKILL.md": skill})


def test_a_tool_that_raises_leaves_a_result_for_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(api.memory, "query", fail)
    calls = [Call("c1", "list_agents"), Call("c2", min(MEMORY_TOOLS)), Call("c3", "list_agents")]

    async def story(chat: Chat) -> None:
        assert (await chat.send())["steps"] == 2
        first, second, third = (await chat.messages())[2:5]
        assert "meta" not in first
        assert "meta" not in third
        assert second["meta"] == {"isError": True}
        assert second["content"].startswith("The call failed: ")
        assert "disk" not in second["content"]

    check(tmp_path, story, calls, ["Done."])


def test_yolo_asks_nothing(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.approve()
        await chat.send()
        assert chat.calls() == ["alpha"]

    check(tmp_path, story, [ADD], ["3."], settings={"permissions": {"level": "yolo"}})


def test_many_calls_of_one_answer_all_get_a_result(tmp_path: Path) -> None:
    calls = [Call(f"c{number}", "list_agents") for number in range(199)]

    async def story(chat: Chat) -> None:
        answer = await chat.send()
        assert answer["steps"] == 2
        ids = [part["tool_use_id"] for part in chat.provider.requests[1]["messages"][-1]["content"]]
        assert ids == [call.id for call in calls]

    check(tmp_path, story, calls, ["Done."])


@pytest.mark.parametrize(
    ("limit", "reason", "steps"),
    [
        ({"maxSteps": 2}, "chat.max_steps", 2),
        ({"maxTokens": 100}, "chat.max_tokens", 1),
        ({"maxUsd": 0.0001}, "chat.max_usd", 1),
    ],
)
def test_a_limit_ends_the_turn_with_results_for_its_calls(
    tmp_path: Path, limit: Any, reason: str, steps: int
) -> None:
    async def story(chat: Chat) -> None:
        answer = await chat.send(options=limit)
        assert (answer["stopReason"], answer["steps"]) == (reason, steps)
        last = (await chat.messages())[-1]
        assert last["role"] == "tool"
        assert reason in last["content"]
        assert len(chat.provider.requests) == steps

    call = Call("c1", "read_skill", {"name": "x"})
    check(tmp_path, story, *[[call]] * 5)


def test_an_empty_answer_after_a_tool_ends_the_turn(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        answer = await chat.send()
        assert (answer["stopReason"], answer["steps"]) == ("end_turn", 2)
        assert await chat.roles() == ["user", "assistant", "tool"]
        assert (await chat.send("Go on."))["steps"] == 1

    check(tmp_path, story, ["I do it.", Call("c1", "list_agents")], [], ["Done."])


def test_a_limit_above_the_setting_is_refused(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        assert await chat.refused("chat/send", message="Go.", options={"maxSteps": 9}) == "bad-option"
        assert chat.provider.requests == []

    check(tmp_path, story, settings={"chat": {"max_steps": 3}})


def test_a_context_that_is_too_long_is_compacted_and_sent_once_more(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.ask("session/append", messages=DAYS)
        answer = await chat.send("Go on.", partialResultToken="t")
        assert answer["steps"] == 1
        assert len(chat.provider.requests) == 3  # the second one asks for the summary
        assert answer["spending"]["lacks"] == ["the request for a summary"]
        first, _, second = (json.dumps(body["messages"]) for body in chat.provider.requests)
        assert len(second) < len(first)
        notices = [item["text"] for item in chat.items("t") if item["kind"] == "notice"]
        assert any("too long" in text for text in notices)
        assert (await chat.messages())[-2]["content"] == "Go on."

    check(tmp_path, story, LONG, [SUMMARY], ["On."])


def test_a_second_overflow_is_an_error_and_nothing_is_lost(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.ask("session/append", messages=[{"role": "user", "content": "A."}])
        assert await chat.refused("chat/send", message="Go on.") == "chat-failed"
        assert [message["content"] for message in await chat.messages()] == ["A."]

    check(tmp_path, story, LONG, LONG)


def test_what_was_said_before_a_failure_is_recorded_as_partial(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        assert await chat.refused("chat/send", message="Go.") == "chat-failed"
        user, partial = await chat.messages()
        assert (user["content"], partial["content"]) == ("Go.", "Half an")
        assert partial["meta"]["partial"] is True
        assert (await chat.send("Again."))["message"]["role"] == "assistant"

    check(tmp_path, story, ["Half an", Cut()], ["Whole."])


def test_a_cancelled_answer_is_recorded_and_the_conversation_goes_on(tmp_path: Path) -> None:
    gate = Gate()

    async def story(chat: Chat) -> None:
        sent = chat.begin(partialResultToken="t")
        await wait_until(lambda: any(item.get("text") == "Half an" for item in chat.items("t")))
        chat.talk.send(tell("$/cancelRequest", {"id": sent}))
        assert (await chat.outcome(sent))["error"]["code"] == -32800
        gate.opened.set()
        assert (await chat.send("Again."))["steps"] == 1  # after what was said has been recorded
        partial = (await chat.messages())[1]
        assert partial["content"] == "Half an"
        assert partial["meta"] == {"partial": True, "reason": "cancelled"}

    check(tmp_path, story, ["Half an", gate, " answer."], ["Whole."])


def test_a_turn_cancelled_at_a_question_leaves_a_result_for_each_call(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin()
        await chat.question()
        chat.talk.send(tell("$/cancelRequest", {"id": sent}))
        assert (await chat.outcome(sent))["error"]["code"] == -32800
        assert (await chat.send("Again."))["steps"] == 1  # after the result has been recorded
        assert await chat.roles() == ["user", "assistant", "tool", "user", "assistant"]
        assert (await chat.messages())[2]["content"] == tools.CANCELLED

    check(tmp_path, story, [ADD], ["Whole."])


def test_an_answer_that_waits_to_be_recorded_is_not_lost_by_a_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, waits = api.session.append, asyncio.Event()

    async def append_later(client: Any, params: Any) -> Any:
        waits.set()
        await asyncio.sleep(0.3)  # as while another window compacts the conversation
        return await append(client, params)

    monkeypatch.setattr(api.session, "append", append_later)

    async def story(chat: Chat) -> None:
        sent = chat.begin()
        await waits.wait()
        chat.talk.send(tell("$/cancelRequest", {"id": sent}))
        assert (await chat.outcome(sent))["error"]["code"] == -32800
        await chat.send("Again.")
        assert await chat.roles() == ["user", "assistant"] * 2

    check(tmp_path, story, ["Whole."], ["Whole, too."])


def test_a_call_that_is_cancelled_while_it_runs_may_have_been_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def hang(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("nexus_daemon.api.mcp.call", hang)

    async def story(chat: Chat) -> None:
        await chat.approve()
        sent = chat.begin()
        await chat.allow()
        await chat.allow(2)
        await asyncio.wait_for(begun.wait(), 10.0)
        chat.talk.send(tell("$/cancelRequest", {"id": sent}))
        await chat.outcome(sent)
        assert (await chat.send("Again."))["steps"] == 1
        told = [message["content"] for message in await chat.messages() if message["role"] == "tool"]
        assert told == [tools.INTERRUPTED, tools.CANCELLED]

    check(tmp_path, story, [ADD, msgspec.structs.replace(ADD, id="toolu_2")], ["Whole."])


def test_one_turn_of_a_conversation_runs_at_a_time(tmp_path: Path) -> None:
    gate = Gate()

    async def story(chat: Chat) -> None:
        sent = chat.begin(partialResultToken="t")
        await wait_until(gate.reached.is_set)
        assert await chat.refused("chat/send", message="Me, too.") == "chat-busy"
        await chat.ask("session/append", messages=[{"role": "user", "content": "From elsewhere."}])
        gate.opened.set()
        answer = (await chat.outcome(sent))["result"]
        assert answer["forked"] is True
        assert answer["session"] != "main"
        notices = [item["text"] for item in chat.items("t") if item["kind"] == "notice"]
        said = "Another window has continued the session main, so this turn is saved in a new one"
        assert notices[-1] == f"{said}, {answer['session']}."
        assert (await chat.messages(answer["session"]))[-1]["role"] == "assistant"
        assert [message["content"] for message in await chat.messages()] == ["From elsewhere."]

    check(tmp_path, story, ["Half", gate, " done."])


def test_a_turn_that_goes_on_in_a_fork_holds_the_fork(tmp_path: Path) -> None:
    first, second = Gate(), Gate()

    async def story(chat: Chat) -> None:
        sent = chat.begin()
        await wait_until(first.reached.is_set)
        await chat.ask("session/append", messages=[{"role": "user", "content": "From elsewhere."}])
        first.opened.set()
        await wait_until(second.reached.is_set)
        listed = (await chat.ask("session/list"))["sessions"]
        fork = next(info["session"] for info in listed if info["session"] != "main")
        assert await chat.refused("chat/send", message="Me, too.", session=fork) == "chat-busy"
        second.opened.set()
        assert (await chat.outcome(sent))["result"]["session"] == fork
        assert (await chat.send("Again.", session=fork))["session"] == fork

    check(tmp_path, story, ["Half", first, Call("c1", "list_agents")], ["No", second, "body."], ["Here."])


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"provider": {"name": "editor"}}, "leave the model to the editor"),
        ({"provider": {"name": "none"}}, "name no provider"),
        ({"provider": {"name": "openai-compatible", "model": "m"}}, "provider.base_url"),
        ({"provider": {"name": "openai", "model": "m"}}, "OPENAI_API_KEY"),
    ],
)
def test_without_a_provider_the_error_says_what_to_set(tmp_path: Path, settings: Any, word: str) -> None:
    async def story(chat: Chat) -> None:
        reply = await chat.reply("chat/send", message="Hello.")
        assert reply["error"]["data"]["code"] == "no-provider"
        assert word in reply["error"]["message"]

    check(tmp_path, story, settings=settings)


@pytest.mark.parametrize("settings", [None, {"provider": {}}, {"provider": {"name": "google", "model": "m"}}])
def test_a_file_of_the_workspace_does_not_choose_who_is_sent_a_conversation(
    tmp_path: Path, settings: Any
) -> None:
    async def story(chat: Chat) -> None:
        reply = await chat.reply("chat/send", message="Hello.")
        assert reply["error"]["data"]["code"] == "no-provider"
        assert "workspace" in reply["error"]["message"]

    own = '{"provider": {"name": "openai", "model": "gpt-5"}}'
    check(tmp_path, story, files={"/a/.nexus3/config.json": own}, settings=settings)


def test_an_agent_works_on_its_task_and_reports(tmp_path: Path) -> None:
    spawn = Call("c1", "spawn_agent", {"agent_id": "auth", "task": "Find the bug."})

    async def story(chat: Chat) -> None:
        answer = await chat.send("Have someone find the bug.", partialResultToken="t")
        assert answer["steps"] == 2
        assert answer["spending"]["tokens"] == 4 * 120  # the agent's steps, too
        calls = [(item["name"], item.get("agent")) for item in chat.items("t") if item["kind"] == "toolCall"]
        assert calls == [("spawn_agent", None), ("list_agents", "auth")]
        said = "".join(item["text"] for item in chat.items("t") if item["kind"] == "text")
        assert said == "Found."
        assert await chat.roles("agent:auth") == ["user", "assistant", "tool", "assistant"]
        report = (await chat.messages())[2]
        assert "It is done, and reports:\nIt is in pool.close." in report["content"]

    looks = [Call("c2", "list_agents")]
    check(tmp_path, story, [spawn], looks, ["It is in pool.close."], ["Found."])


@pytest.mark.parametrize("limit", [{"maxTokens": 300}, {"maxUsd": 0.0015}])
def test_agents_spend_what_is_left_of_the_turn_that_starts_them(tmp_path: Path, limit: Any) -> None:
    spawn = [
        Call(f"c{number}", "spawn_agent", {"agent_id": f"a{number}", "task": "Go."}) for number in range(9)
    ]
    looks = [Call("c1", "list_agents")]

    async def story(chat: Chat) -> None:
        answer = await chat.send("Have nine look.", options=limit)
        assert (answer["steps"], answer["stopReason"]) == (
            1,
            "chat.max_tokens" if "maxTokens" in limit else "chat.max_usd",
        )
        assert len(chat.provider.requests) <= 1 + tools.MOST_AT_ONCE
        assert answer["spending"]["tokens"] == 120 * len(chat.provider.requests)
        assert await chat.roles() == ["user", "assistant", *["tool"] * 9]

    check(tmp_path, story, spawn, *[looks] * 40)


def test_what_a_failed_agent_has_spent_counts(tmp_path: Path) -> None:
    spawn = Call("c1", "spawn_agent", {"agent_id": "auth", "task": "Find the bug."})

    async def story(chat: Chat) -> None:
        answer = await chat.send("Have someone find the bug.")
        assert answer["spending"]["tokens"] == 3 * 120  # one step of the agent was answered

    broken = Refusal(400, "invalid_request_error", "no")
    check(tmp_path, story, [spawn], [Call("c2", "list_agents")], broken, ["It failed."])


def test_the_key_is_nowhere_but_in_the_header(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(chat: Chat) -> None:
        await chat.reply("chat/send", message="Hello.", partialResultToken="t")
        said = json.dumps(chat.talk.writer.messages())
        assert KEY not in said
        assert KEY not in caplog.text
        assert KEY not in json.dumps(chat.provider.requests)

    check(tmp_path, story, Refusal(401, "authentication_error", f"invalid x-api-key {KEY}"))


def test_a_reply_comes_once(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.send()
        assert len(replies(chat.talk, chat.last)) == 1

    check(tmp_path, story, ["Hello."])


def test_the_provider_writes_summaries_for_any_client(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.ask("session/append", messages=DAYS)
        receipt = (await chat.ask("session/compact", session="main"))["receipt"]
        assert (receipt["summarizer"], receipt["model"]) == ("anthropic", "claude-sonnet-4-6")
        assert SUMMARY in (await chat.messages())[0]["content"]
        body = chat.provider.requests[0]
        assert "tools" not in body
        assert body["messages"][-1]["role"] == "user"

    check(tmp_path, story, [SUMMARY])


def test_a_summary_that_fails_is_extracted(tmp_path: Path) -> None:
    async def story(chat: Chat) -> None:
        await chat.ask("session/append", messages=DAYS)
        receipt = (await chat.ask("session/compact", session="main"))["receipt"]
        assert receipt["summarizer"] == "extractive"
        assert receipt["failures"][0].startswith("anthropic: ")

    check(tmp_path, story, Refusal(400, "invalid_request_error", "no"))
