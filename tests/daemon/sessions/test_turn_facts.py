"""What the ledger stores of a turn besides its messages: what it was made with, and how it ended."""

import hashlib
import json
from pathlib import Path
from typing import Any

from inline_snapshot import snapshot

from support.desk import Desk, tell_story
from support.talk import Talk

EVENT = {"id": "e1", "platform": "imessage", "hookData": {"calendar": "free", "queue": 2}}
USAGE = {"inputTokens": 12, "outputTokens": 3, "cacheReadTokens": 900, "stopReason": "end_turn"}
SAID = [{"role": "user", "content": "Where is the gate?"}, {"role": "assistant", "content": "There."}]
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}


async def exported(desk: Desk, talk: Talk, session: str) -> list[dict[str, Any]]:
    text = (await desk.ask(talk, 90, "nexus/session/export", session=session))["text"]
    return [json.loads(line) for line in text.splitlines()[1:]]


async def turn(desk: Desk, talk: Talk, number: int, whose: dict[str, str], **appended: Any) -> dict[str, Any]:
    """Assemble a turn and append it; returns what its context was."""
    options = {"model": "gpt-4o", "additionalTools": [TOOL]}
    context = await desk.assemble(
        talk,
        number,
        message="Where is the gate?",
        event=EVENT,
        options=options,
        **whose,
    )
    key = {"idempotencyKey": f"k{number}"}
    session = {name: value for name, value in whose.items() if name == "session"}
    await desk.ask(talk, number + 1, "nexus/session/append", messages=SAID, **session, **key, **appended)
    return dict(context)


def test_the_first_turn_of_an_agent_has_all_facts(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/agent/spawn", agentId="scout", cwd=desk.uri("/a"), task="Look.")
        whose = {"agent": "scout", "session": "agent:scout"}
        context = await turn(desk, talk, 2, whose, providerUsage=USAGE)
        (line,) = await exported(desk, talk, "agent:scout")
        assert line["model"] == "gpt-4o"
        assert line["role"] == "worker"
        assert line["toolset"] == ["read"]
        assert line["permissions"] == context["permissions"]
        assert line["event"] == EVENT
        assert line["context"] == context["metadata"]["contextJson"]
        assert line["outcome"] == snapshot(
            {
                "usage": {"inputTokens": 12, "outputTokens": 3, "cacheReadTokens": 900},
                "stopReason": "end_turn",
            }
        )

    tell_story(tmp_path, story)


def test_the_record_names_the_files_by_their_hashes(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await turn(desk, talk, 1, {})
        (line,) = await exported(desk, talk, "main")
        path = desk.tree.path("/a/NEXUS.md")
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        shipped, mine = line["context"]["system"]["files"]
        assert mine == {"path": path, "hash": f"sha256:{digest[:16]}"}
        assert shipped["path"].endswith("defaults/NEXUS.md")
        user = line["context"]["user"]
        assert user.pop("injectedAt")
        assert user == snapshot({"event": {"platform": "imessage", "hookCount": 2}})

    tell_story(tmp_path, story)


def test_a_failed_turn_says_why(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await turn(desk, talk, 1, {}, error="overloaded")
        (line,) = await exported(desk, talk, "main")
        assert line["outcome"] == {"error": "overloaded"}

    tell_story(tmp_path, story)


def test_a_turn_without_a_request_has_role_and_permissions(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", messages=SAID, event={"id": "mine"})
        (line,) = await exported(desk, talk, "main")
        assert {
            name: line.get(name) for name in ("role", "permissions", "event", "outcome", "context")
        } == snapshot(
            {
                "role": "unified",
                "permissions": {"level": "trusted", "allow": [], "deny": []},
                "event": {"id": "mine"},
                "outcome": None,
                "context": None,
            }
        )

    tell_story(tmp_path, story)


def test_usage_below_zero_is_refused(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        usage = {**USAGE, "cacheReadTokens": -1}
        await desk.ask(talk, 1, "nexus/session/append", messages=SAID, providerUsage=usage)
        error = (await desk.reply(talk, 1))["error"]
        assert (error["data"]["code"], error["message"]) == snapshot(
            ("bad-usage", "providerUsage.cacheReadTokens is -1; it must not be negative.")
        )
        assert (await desk.ask(talk, 2, "nexus/session/list"))["sessions"] == []

    tell_story(tmp_path, story)
