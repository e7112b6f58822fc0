"""What is looked at for agents: how often it is read, and that what is shown of one is as its files are."""

import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexus_context import agents
from nexus_context.folder import loading
from nexus_daemon.workspace import watcher
from support.asking import Asking, check
from support.desk import Desk, tell_story, write
from support.waiting import wait_until

DIRECTORIES = 12
MOST_LOADS = 3
"""Of one directory: it is read when it is first asked for, and once more when it comes to be watched."""
RULES = "/a/new/AGENTS.md"


def is_watched(desk: Desk, directory: str) -> bool:
    return any(directory in each for each in desk.daemon.watcher.watched[-1:])


def test_a_directory_is_not_read_again_for_each_that_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: Counter[str] = Counter()
    real = loading.load

    def load(path: str, *args: Any, **more: Any) -> Any:
        loads[path] += 1
        return real(path, *args, **more)

    monkeypatch.setattr(agents.directory_snapshots, "load", load)

    async def story(desk: Desk) -> None:
        places = [desk.tree.path(f"/a/service{number}") for number in range(DIRECTORIES)]
        for number in range(DIRECTORIES):
            write(desk, f"/a/service{number}/AGENTS.md", f"Rules of {number}.\n")
        ask = Asking(desk, await desk.client())
        for number, place in enumerate(places):
            await ask("agent/spawn", agentId=f"agent{number}", cwd=place)
            await wait_until(partial(is_watched, desk, place))
            await ask("agent/list")  # what the watcher told by then is done
        await wait_until(lambda: len(desk.daemon.watcher.watched) == 1)
        assert await ask.ids() == [f"agent{number}" for number in range(DIRECTORIES)]
        assert set(loads) == set(places)
        assert max(loads.values()) <= MOST_LOADS, loads
        write(desk, "/a/service0/AGENTS.md", "Other rules.\n")
        await wait_until(lambda: ("agent0", "changed") in ask.told())
        assert max(loads[place] for place in places[1:]) <= MOST_LOADS, loads

    tell_story(tmp_path, story)


def test_who_is_only_looked_at_is_as_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "CHECK_MS", 60_000)  # nothing is noticed by a look now and then

    async def story(desk: Desk, ask: Asking) -> None:
        new = Path(desk.tree.path("/a/new"))
        new.mkdir()
        looked: dict[str, Any] = {"viewAs": {"agentId": "new", "cwd": "new", "task": "Fix it."}}

        async def shows(*words: str) -> bool:
            text = (await ask("context/preview", **looked))["text"]
            return [word for word in ("First.", "Second.", "Typed.", "Third.") if word in text] == [*words]

        async def is_gone() -> bool:
            reply = await ask.reply("context/preview", **looked)
            return bool(reply.get("error", {}).get("data", {}).get("code") == "agent-cwd")

        assert await shows()
        await wait_until(lambda: is_watched(desk, str(new)))
        write(desk, RULES, "First.\n")  # which was not there when it was looked at
        await wait_until(lambda: shows("First."))
        write(desk, RULES, "Second.\n")
        await wait_until(lambda: shows("Second."))
        desk.open(ask.talk, RULES, "Typed.\n")
        assert await shows("Typed.")  # without waiting
        desk.close(ask.talk, RULES)
        assert await shows("Second.")
        shutil.rmtree(new)
        await wait_until(is_gone)
        write(desk, RULES, "Third.\n")
        await wait_until(lambda: shows("Third."))
        assert await ask.ids() == []

    check(tmp_path, story)
