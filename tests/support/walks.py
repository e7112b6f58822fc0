"""What an edit, a turn, a file, a hook and a transcript walk through.

`PYTHONPATH=tests python -m support.walks` prints a table. A stop is a function that is entered from another
module, counted once. A stop in a module that the walk has left before is a return. The shortest of TIMES
walks counts: no other thread has joined it. `--modules` prints the modules of each walk in order.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

from support.desk import Desk
from support.fixture import write_fixture

FIXTURE = """
//- /a/NEXUS.md
Use tabs.
//- /a/.nexus3/config.json
{"context": {"git": false}}
"""
TIMES = 5
ASKED = {"role": "user", "content": "Where is the gate?"}
SESSION: list[dict[str, Any]] = [
    {"type": "user", "uuid": "1", "parentUuid": None, "message": ASKED},
    {
        "type": "assistant",
        "uuid": "2",
        "parentUuid": "1",
        "message": {"id": "m", "role": "assistant", "content": "In the north.", "model": "claude-sonnet-5"},
    },
]


class Recorder:
    """The stops of the walk that is recorded, in all threads that began after it was made."""

    def __init__(self) -> None:
        self.stops: dict[tuple[str, str], str] = {}  # module and function → the module before
        self.is_on = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_on:
            return
        module = frame.f_globals.get("__name__", "")
        caller = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
        if module.startswith("nexus_") and module != caller:
            self.stops.setdefault((module, frame.f_code.co_qualname), caller)

    async def walk(self, work: Callable[[], Awaitable[object]]) -> list[str]:
        """The modules of the stops of some work, in order."""
        self.stops.clear()
        self.is_on = True
        await work()
        self.is_on = False
        return [module for module, _ in self.stops]


def returns_of(modules: list[str]) -> int:
    """How many stops are in a module that was left before."""
    visited: set[str] = set()
    count = 0
    before = ""
    for module in modules:
        count += module in visited and module != before
        visited.add(module)
        before = module
    return count


async def walks(recorder: Recorder, root: Path) -> dict[str, list[str]]:
    """The five walks, each taken once before so that nothing is imported meanwhile."""
    from nexus_context.assistants.sessions.session_types import AssistantSession
    from nexus_daemon.assistants.hooks.handler import HookHandler
    from nexus_daemon.assistants.hooks.hook_event import HookCall
    from nexus_daemon.assistants.hooks.hook_folders import HookFolders

    desk = Desk(write_fixture(FIXTURE, root))
    talk = await desk.client("/a")
    path, number = "/a/NEXUS.md", [10]
    desk.open(talk, path, "Use tabs.\n")
    (folder,) = desk.daemon.windows.folders

    async def edit() -> None:
        number[0] += 1
        params = {"textDocument": {"uri": desk.uri(path), "version": number[0]}}
        change = {"contentChanges": [{"text": f"Use {number[0]} spaces.\n"}]}
        talk.send({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {**params, **change}})
        await folder.current()

    async def chat() -> None:
        number[0] += 2
        await desk.ask(talk, number[0], "nexus/context/assemble", message="Where is the gate?")
        turn = [ASKED, {"role": "assistant", "content": "North."}]
        await desk.ask(talk, number[0] + 1, "nexus/session/append", session="main", messages=turn)

    async def disk() -> None:
        number[0] += 1
        Path(desk.tree.path("/a/AGENTS.md")).write_text(f"Rule {number[0]}.\n")
        desk.folders.changed([desk.tree.path("/a/AGENTS.md")])
        await folder.current()

    transcript = root / "s.jsonl"
    environ = {"NEXUS_STATE": desk.tree.path("/state"), "HOME": desk.tree.path("/home")}
    handler = HookHandler(HookFolders(lambda: desk.daemon, asyncio.get_running_loop()))

    def grow() -> None:
        with transcript.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({**one, "sessionId": "s", "cwd": str(root)}) + "\n" for one in SESSION)

    async def hook() -> None:
        grow()
        payload = {"session_id": "s", "transcript_path": str(transcript), "cwd": desk.tree.path("/a")}
        for event in ("PreCompact", "UserPromptSubmit"):
            body = json.dumps({**payload, "hook_event_name": event, "prompt": "Where is the north gate now?"})
            call = HookCall("claude-code", event, ("--memory",), body.encode(), environ)
            answer = handler.take(call)
            if answer is not None:
                await asyncio.to_thread(answer)
        await asyncio.to_thread(handler.flush)

    follower: list[Any] = []

    async def transcript_grows() -> None:
        from nexus_context.assistants.tracking.follow import SessionFollower

        if not follower:
            session = AssistantSession(
                assistant="claude-code", id="s", path=str(transcript), folder=str(root), changed=""
            )
            follower.append(SessionFollower(session))
        grow()
        await asyncio.to_thread(lambda: (follower[0].advance(), follower[0].report()))

    taken: dict[str, list[str]] = {}
    for name, work in {
        "edit": edit,
        "chat": chat,
        "disk": disk,
        "hook": hook,
        "a transcript grows": transcript_grows,
    }.items():
        await work()
        taken[name] = min([await recorder.walk(work) for _ in range(TIMES)], key=len)
    handler.close()
    return taken


def main() -> None:
    """Print a table, and the modules on request."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as directory:
        taken = asyncio.run(walks(recorder, Path(directory)))
    sys.stdout.write("| walk | stops | returns | modules |\n|---|--:|--:|--:|\n")
    for name, modules in taken.items():
        sys.stdout.write(f"| {name} | {len(modules)} | {returns_of(modules)} | {len(set(modules))} |\n")
    if "--modules" in sys.argv:
        for name, modules in taken.items():
            sys.stdout.write(f"\n{name}: {' → '.join(dict.fromkeys(modules))}\n")
    sys.stdout.flush()
    os._exit(0)  # the daemon's threads


if __name__ == "__main__":
    main()
