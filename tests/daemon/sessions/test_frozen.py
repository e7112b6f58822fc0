"""Requests begin with the same prompt and tools, also after a restart; notes tell changes."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from support.desk import Desk, tell_story
from support.talk import Talk
from support.waiting import yield_to_loop

LONG = "Behind the wall, where it has always been. " * 200
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
RULES = "Use tabs.\nTest first.\n" + "Keep it short and simple.\n" * 40


class Window:
    """A client, and the number of its last request."""

    def __init__(self, desk: Desk, talk: Talk) -> None:
        self.desk, self.talk, self.number = desk, talk, 0

    async def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        return await self.desk.ask(self.talk, self.number, method, **params)

    async def write(self, text: str) -> None:
        """Change the folder's instructions."""
        self.desk.close(self.talk, "/a/NEXUS.md")
        self.desk.open(self.talk, "/a/NEXUS.md", text)
        await yield_to_loop()
        for folder in tuple(self.desk.daemon.windows.folders):
            await folder.current()

    async def turn(self, text: str = "Where?", **params: Any) -> Any:
        context = await self.ask("nexus/context/assemble", message=text, **params)
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": LONG}]
        await self.ask("nexus/session/append", messages=messages)
        return context


def beginning(context: Any) -> list[Any]:
    return [context["tools"], context["systemPrompt"], *context["history"], context["currentMessage"]]


def check(*contexts: Any) -> None:
    """Each request begins with the one before."""
    for before, now in pairwise(contexts):
        assert beginning(now)[: len(beginning(before))] == beginning(before)


def test_an_edit_is_told_and_applied_on_request(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        window = Window(desk, await desk.client())
        await window.write(RULES)
        first = await window.turn()
        await window.write(RULES + "Ask first.\n")
        usage = await window.ask("nexus/context/usage")
        (change,) = usage["pending"]["changes"]
        assert (change["kind"], change["label"], change["told"]) == (
            "changed",
            "Project Configuration",
            False,
        )
        assert "broke" not in usage["cache"]  # nothing is lost, since a note tells it
        second = await window.turn()
        assert "Ask first." in str(second["currentMessage"])
        assert second["usage"]["pending"]["changes"][0]["told"] is False
        usage = await window.ask("nexus/context/usage")
        assert [one["told"] for one in usage["pending"]["changes"]] == [True]
        third = await window.turn()
        check(first, second, third)
        other = Window(desk, await desk.client())  # another client of the daemon
        fourth = await other.turn()
        check(third, fourth)
        rebased = await window.ask("nexus/session/rebase", session="main")
        assert "pending" not in rebased["usage"]
        assert rebased["usage"]["cache"]["broke"]["category"] == "system"
        await window.ask("nexus/session/messages")
        fifth = await window.turn()
        assert "Ask first." in fifth["systemPrompt"]
        assert "<changes>" not in str(fifth["history"])
        check(fifth, await window.turn())

    tell_story(tmp_path, story)


def test_a_restart_and_a_compaction(tmp_path: Path) -> None:
    last: list[Any] = []

    async def before(desk: Desk) -> None:
        window = Window(desk, await desk.client())
        await window.write(RULES)
        options = {"additionalTools": [LOOK]}
        await window.turn(options=options)
        await window.write(RULES + "Ask first.\n")
        last.append(await window.turn(options=options))

    async def after(desk: Desk) -> None:
        window = Window(desk, await desk.client())
        await window.write(RULES + "Ask first.\n")
        usage = await window.ask("nexus/context/usage")
        assert [(one["label"], one["told"]) for one in usage["pending"]["changes"]] == [
            ("Project Configuration", True)
        ]
        now = await window.turn(options={"additionalTools": [LOOK]})
        check(last[0], now)
        await window.turn(options={"additionalTools": [LOOK]})
        await window.ask("nexus/session/compact")
        compacted = await window.turn(options={"additionalTools": [LOOK]})
        assert "Ask first." in compacted["systemPrompt"]
        assert "<changes>" not in str(compacted["history"])
        assert "pending" not in compacted["usage"]

    tell_story(tmp_path, before)
    tell_story(tmp_path, after)
