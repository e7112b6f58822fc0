"""A client that asks a daemon about the agents of the folder /a; its api and web have rules of their own."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support.desk import TIMEOUT_S, Desk, tell_story
from support.talk import Message, Talk

API = "/a/api/.nexus3/config.json"
FILES = {
    "/a/.nexus3/config.json": (
        '{"provider": {"model": "gpt-4o"}, "permissions": {"level": "trusted"},'
        ' "tools": {"disabled": ["rm"]}}'
    ),
    "/a/api/AGENTS.md": "Rules of the api.\n",
    API: '{"permissions": {"level": "sandboxed"}, "parameters": {"top_p": 0.5}}',
    "/a/web/AGENTS.md": "Rules of the web.\n",
    "/outside/AGENTS.md": "Rules of others.\n",
}


class Asking:
    """A client with a counter of its requests; `folder` is /a unless a request says so."""

    def __init__(self, desk: Desk, talk: Talk, first: int = 100) -> None:
        self.desk, self.talk, self.last = desk, talk, first

    async def __call__(self, method: str, **params: object) -> Any:
        reply = await self.reply(method, **params)
        assert "error" not in reply, reply
        return reply["result"]

    async def reply(self, method: str, **params: object) -> Message:
        self.last += 1
        await self.desk.ask(self.talk, self.last, f"nexus/{method}", **params)
        return await self.desk.reply(self.talk, self.last)

    async def refused(self, method: str, **params: object) -> tuple[str, str]:
        error = (await self.reply(method, **params))["error"]
        return error["data"]["code"], error["message"]

    async def ids(self) -> list[str]:
        return [one["agentId"] for one in (await self("agent/list"))["agents"]]

    def told(self) -> list[tuple[str, str]]:
        said = (one for one in self.talk.writer.messages() if one.get("method") == "nexus/agent/didChange")
        return [(one["params"]["agentId"], one["params"]["reason"]) for one in said]


def check(tmp_path: Path, story: Callable[[Desk, Asking], Any], files: Mapping[str, str] = FILES) -> None:
    """Tell a story about a daemon with a client in the folder /a."""

    async def told(desk: Desk) -> None:
        await story(desk, Asking(desk, await desk.client()))

    tell_story(tmp_path, told, files)


async def again(desk: Desk) -> tuple[Desk, Asking]:
    """Another daemon on the same home and ledger, with a client in the same folder."""
    other = Desk(desk.tree)
    return other, Asking(other, await other.client())


async def ended(desk: Desk) -> None:
    await asyncio.wait_for(desk.daemon.close(), TIMEOUT_S)
