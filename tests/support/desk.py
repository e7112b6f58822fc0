"""A daemon over a fixture with clients in memory: what it shares between them, step by step."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from nexus_daemon.api.methods import METHODS
from nexus_daemon.lsp.client_capabilities import ClientCapabilities
from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.process.client_process import ClientProcess
from nexus_daemon.server import build
from nexus_daemon.windows.connection import Connection
from nexus_daemon.windows.daemon import Daemon
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.workspace.folders import FolderTable
from support.fixture import Fixture, write_file, write_fixture
from support.folders import load_inputs
from support.talk import HELLO, Message, Talk, call, tell
from support.waiting import wait_until, yield_to_loop

GOOD = "{}"
WRONG = '{"tools": {"summery": 1}}'
CONFIG = "/a/.nexus3/config.json"
FIXTURE = f"//- {CONFIG}\n{GOOD}\n//- /a/NEXUS.md\nA.\n//- /lone/.nexus3/config.json\n{GOOD}\n//- /home/x\n"
TIMEOUT_S = 10.0

Story = Callable[["Desk"], Awaitable[None]]


class NoDocuments:
    def adopt(self) -> None:
        pass


class Nobody:
    """A client that listens to nothing."""

    name = "nobody"
    capabilities = ClientCapabilities()
    documents = NoDocuments()
    listens = True
    running = unread = 0

    def now(self) -> datetime:
        return datetime.now().astimezone()

    def swap(self, *_: object) -> None:
        pass

    swap_agent = notify = refresh_lenses = refresh_contexts = swap

    def show_work(self, _: str) -> Any:
        return nullcontext()


class Desk:
    """A daemon over a fixture; each client that comes in has said hello with the folder /a."""

    def __init__(self, tree: Fixture) -> None:
        self.tree = tree
        state = {"NEXUS_STATE": tree.path("/state")}
        self.daemon = Daemon(load_inputs(tree.path("/home"), environ=state))
        self._clients: list[Talk] = []
        self._nobody: FolderTable[LiveFolder] | None = None

    @property
    def folders(self) -> FolderTable[LiveFolder]:
        """The folders of the client that came first; without a client, of one that listens to nothing."""
        for client in self._clients:
            return self.connection(client).folders
        if self._nobody is None:
            self._nobody = self.daemon.join(Nobody())
        return self._nobody

    def connection(self, talk: Talk) -> Connection:
        """The daemon's side of a client."""
        connection = getattr(talk.server.ended, "__self__", None)
        assert isinstance(connection, Connection)
        return connection

    def uri(self, path: str) -> str:
        return path_to_uri(self.tree.path(path))

    async def client(
        self, *folders: str, process: ClientProcess | None = None, capabilities: Any = None, root: bool = True
    ) -> Talk:
        """A client with these folders, by default /a; without `root`, with none."""
        talk = Talk(partial(build, lambda: self.daemon, process=process))
        self._clients.append(talk)
        paths = folders or (("/a",) if root else ())
        listed = [{"uri": self.uri(folder), "name": folder} for folder in paths]
        params = {**HELLO["params"], "workspaceFolders": listed}
        params |= {} if capabilities is None else {"capabilities": capabilities}
        talk.send({**HELLO, "params": params})
        await yield_to_loop()
        for folder in tuple(self.daemon.windows.folders):
            await asyncio.wait_for(folder.current(), TIMEOUT_S)
        return talk

    async def ask(self, talk: Talk, message_id: int, method: str, **params: object) -> Any:
        if method not in METHODS or "workspace_folder" in METHODS[method].params.__struct_fields__:
            params = {"workspaceFolder": self.uri("/a"), **params}
        talk.send(call(message_id, method, params))
        return (await self.reply(talk, message_id)).get("result")

    async def assemble(self, talk: Talk, message_id: int, **params: object) -> Any:
        """The context of a turn; its rows sum to the total."""
        context = await self.ask(talk, message_id, "nexus/context/assemble", **params)
        usage = context["usage"]
        assert sum(row["tokens"] for row in usage["rows"]) == usage["total"]
        return context

    async def refusal(self, talk: Talk, message_id: int, method: str, **params: object) -> tuple[str, str]:
        """The code and the message of the error that answers a request."""
        assert await self.ask(talk, message_id, method, **params) is None
        error = (await self.reply(talk, message_id))["error"]
        return error["data"]["code"], error["message"]

    async def reply(self, talk: Talk, message_id: int) -> Message:
        return (await wait_until(partial(replies, talk, message_id)))[-1]

    def open(self, talk: Talk, path: str, text: str) -> None:
        item = {"uri": self.uri(path), "languageId": "json", "version": 1, "text": text}
        talk.send(tell("textDocument/didOpen", {"textDocument": item}))

    def close(self, talk: Talk, path: str) -> None:
        talk.send(tell("textDocument/didClose", {"textDocument": {"uri": self.uri(path)}}))

    def shown(self, talk: Talk, path: str) -> list[str] | None:
        """The codes that a client shows for a file; None where it was told nothing."""
        uri = self.uri(path)
        found = [one["params"]["diagnostics"] for one in published(talk) if one["params"]["uri"] == uri]
        return [one["code"] for one in found[-1]] if found else None


def replies(talk: Talk, message_id: int) -> list[Message]:
    return [one for one in talk.writer.messages() if one.get("id") == message_id]


def published(talk: Talk) -> list[Message]:
    return [one for one in talk.writer.messages() if one.get("method", "").endswith("publishDiagnostics")]


def write(desk: Desk, path: str, text: str) -> None:
    """Write a file that the desk's fixture need not have."""
    write_file(Path(desk.tree.path(path)), text)


def tell_story(root: Path, story: Story, files: Mapping[str, str] | None = None) -> None:
    """Tell a story about a daemon, with these files before it begins.

    Nothing may be left to asyncio to complain about.
    """
    complaints: list[Any] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        desk = Desk(write_fixture(FIXTURE, root))
        for path, text in (files or {}).items():
            write(desk, path, text)
        try:
            await story(desk)
        finally:
            await asyncio.wait_for(desk.daemon.close(), TIMEOUT_S)

    asyncio.run(run())
    assert complaints == []
