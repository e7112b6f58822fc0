"""A chat turn of a real daemon that is killed at its steps: the history stays valid, nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.editor import Editor, editor_in, uri_of
from support.loopback_provider import Call, Cut, Events, Gate, LoopbackProvider, loopback_provider
from support.waiting import block_until

KEY = "sk-ant-canary-5d20"
LIST = Call("toolu_1", "list_agents")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def configure(home: Path, provider: LoopbackProvider) -> None:
    named = {"name": "anthropic", "model": "claude-sonnet-4-6", "base_url": provider.url}
    (home / ".nexus3").mkdir(parents=True, exist_ok=True)
    config = {"provider": {**named, "api_key_env": "TEST_KEY"}}
    (home / ".nexus3" / "config.json").write_text(json.dumps(config))


def send(editor: Editor, folder: str, message: str) -> int:
    return editor.send_request("nexus/chat/send", {"workspaceFolder": uri_of(folder), "message": message})


def said(editor: Editor, folder: str) -> list[tuple[str, str]]:
    """Role and text of each message, without the one that opens the session."""
    messages = editor.ask("session/messages", folder)["messages"]
    return [(message["role"], text_of(message)) for message in messages[1:]]


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content)


FIRST, SECOND, SLOW = Gate(), Gate(), Gate()
KILLS: list[tuple[str, list[Events], Gate, list[str]]] = [
    ("before the first byte", [[FIRST, "Never."]], FIRST, []),
    ("in the middle of the answer", [["Half", SLOW, "."]], SLOW, []),
    (
        "in the answer after a tool",
        [["Look.", LIST], ["Half", SECOND, "."]],
        SECOND,
        ["user", "assistant", "tool"],
    ),
]


@pytest.mark.parametrize(
    ("script", "gate", "roles"), [kill[1:] for kill in KILLS], ids=[kill[0] for kill in KILLS]
)
def test_a_daemon_that_is_killed(tmp_path: Path, script: list[Events], gate: Gate, roles: list[str]) -> None:
    home = tmp_path / "home"
    with loopback_provider(*script, ["It is done."]) as provider:
        configure(home, provider)
        with Editor(home) as editor:
            folder = editor.tree("//- /a/NEXUS.md\nA.\n").path("/a")
            editor.hello(folder)
            send(editor, folder, "Go.")
            block_until(gate.reached.is_set, 30.0)
            editor.kill()
        gate.opened.set()
        with editor_in(home, folder) as again:
            assert [role for role, _ in said(again, folder)] == roles
            sent = len(provider.requests)
            answer = again.wait_reply(send(again, folder, "Go on."), 30.0)["result"]
            assert answer["stopReason"] == "end_turn"
            assert len(provider.requests) == sent + 1  # nothing was sent twice
            messages = provider.requests[-1]["messages"]
            assert [message["role"] for message in messages] == alternating(len(messages))
            assert said(again, folder)[-2:] == [("user", "Go on."), ("assistant", "It is done.")]


def alternating(count: int) -> list[str]:
    return ["user" if index % 2 == 0 else "assistant" for index in range(count)]


def test_a_provider_that_dies_leaves_what_was_said(tmp_path: Path) -> None:
    gate = Gate()
    home = tmp_path / "home"
    with Editor(home) as editor:
        folder = editor.tree("//- /a/NEXUS.md\nA.\n").path("/a")
        with loopback_provider(["Half", gate, Cut()]) as provider:
            configure(home, provider)
            editor.hello(folder)
            sent = send(editor, folder, "Go.")
            block_until(gate.reached.is_set, 30.0)
            gate.opened.set()
            error = editor.wait_reply(sent, 30.0)["error"]
        assert error["data"]["code"] == "chat-failed"
        assert KEY not in json.dumps(error)
        assert said(editor, folder) == [("user", "Go."), ("assistant", "Half")]
        editor.goodbye()


def test_a_client_that_leaves_ends_the_turn(tmp_path: Path) -> None:
    gate = Gate()
    home = tmp_path / "home"
    with loopback_provider(["Half", gate, "."], ["It is done."]) as provider:
        configure(home, provider)
        with Editor(home) as editor:
            folder = editor.tree("//- /a/NEXUS.md\nA.\n").path("/a")
            editor.hello(folder)
            send(editor, folder, "Go.")
            block_until(gate.reached.is_set, 30.0)
            editor.goodbye()
        gate.opened.set()
        with editor_in(home, folder) as again:
            assert said(again, folder) in ([], [("user", "Go."), ("assistant", "Half")])
            assert again.wait_reply(send(again, folder, "Go on."), 30.0)["result"]["steps"] == 1
