"""What the daemon says of how changes are noticed: to its clients once, and of each folder when asked."""

import itertools
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.workspace import watch_limits, watched_places, watcher
from support.desk import TIMEOUT_S, Desk, tell_story
from support.talk import Talk
from support.waiting import wait_until, yield_to_loop
from support.watches import ObservedWatches

KEY = "fs.inotify.max_user_watches"
SHOWN = (
    f"Nexus: no file watches are left for this user ({KEY} is 8192). Until there is room, files are polled, "
    f"and their changes are noticed a second or more later. Raise the limit: `sudo sysctl {KEY}=524288`."
)


class System(ObservedWatches):
    """A system that has no more watches while `full`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.full = True
        self.before_open = self._refuse
        monkeypatch.setattr(watcher, "RETRY_AT_MOST_S", 0.1)
        monkeypatch.setattr(watcher, "CHECK_MS", 100)
        monkeypatch.setattr("nexus_daemon.workspace.polling.POLL_S", 0.05)
        monkeypatch.setattr("nexus_daemon.workspace.inotify.IDLE_S", 0.1)
        monkeypatch.setattr("nexus_daemon.workspace.portable_watches.IDLE_MS", 100)
        monkeypatch.setattr(watch_limits, "read_sysctl", {KEY: 8192}.get)

    def _refuse(self) -> None:
        if self.full:
            raise OSError("OS file watch limit reached.")


def messages(talk: Talk, method: str) -> list[str]:
    return [one["params"]["message"] for one in talk.writer.messages() if one.get("method") == method]


async def states(desk: Desk, talk: Talk, number: int) -> list[dict[str, Any]]:
    """The freshness of /a by both requests that say it."""
    layers = await desk.ask(talk, number, "nexus/context/layers")
    status = await desk.ask(talk, number + 1, "nexus/status")
    return [layers["freshness"], status["folders"][0]["freshness"]]


async def until_states(desk: Desk, talk: Talk, number: int, state: str) -> list[dict[str, Any]]:
    numbers = itertools.count(number, 2)

    async def reported() -> list[dict[str, Any]] | None:
        both = await states(desk, talk, next(numbers))
        return both if {one["state"] for one in both} == {state} else None

    return await wait_until(reported) or []


def test_a_limit_is_said_once_and_so_is_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch)

    async def story(desk: Desk) -> None:
        first = await desk.client()
        await wait_until(lambda: messages(first, "window/showMessage"))
        polled = await until_states(desk, first, 10, "polled")
        for one in polled:
            assert one["reasons"] == [f"no file watches are left for this user ({KEY} is 8192)"]
            assert one["everySeconds"] >= 0.05
        tries = system.tries
        await wait_until(lambda: system.tries >= tries + 3)
        second = await desk.client()  # who comes while it is so is told, too
        assert [messages(one, "window/showMessage") for one in (first, second)] == [[SHOWN]] * 2
        system.full = False
        await wait_until(lambda: messages(second, "window/logMessage"))
        assert await until_states(desk, second, 1000, "watched") == [{"state": "watched"}] * 2
        third = await desk.client()
        assert messages(third, "window/showMessage") == []
        assert [messages(one, "window/logMessage") for one in (first, second, third)] == [
            ["Files are watched again."],
            ["Files are watched again."],
            [],
        ]

    tell_story(tmp_path, story)


def test_without_watches_every_change_reaches_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    System(monkeypatch)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await until_states(desk, talk, 10, "polled")
        path = Path(desk.tree.path("/a/NEXUS.md"))
        for number in range(3):
            path.write_text(f"Rule {number}.")
            await wait_until(partial(is_in_prompt, desk, f"Rule {number}."))

    tell_story(tmp_path, story)


def is_in_prompt(desk: Desk, text: str) -> bool:
    snapshot = next(iter(desk.daemon.windows.folders)).snapshot
    return snapshot is not None and text in snapshot.prompt.text


def test_a_folder_that_was_just_added_is_unknown_until_its_watch_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its `since` is a moment, and the other folder is watched meanwhile."""
    go_on, real = threading.Event(), watched_places.covering

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for folder in tuple(desk.daemon.windows.folders):
            await folder.programs.settled()  # which may change what is watched
        await until_states(desk, talk, 10, "watched")

        def slow(paths: Any) -> Any:
            assert go_on.wait(TIMEOUT_S)
            return real(paths)

        monkeypatch.setattr(watched_places, "covering", slow)
        Path(desk.tree.path("/b")).mkdir()
        event = {"added": [{"uri": desk.uri("/b"), "name": "b"}], "removed": []}
        talk.send(
            {"jsonrpc": "2.0", "method": "workspace/didChangeWorkspaceFolders", "params": {"event": event}}
        )
        await yield_to_loop()
        status = await desk.ask(talk, 1000, "nexus/status")
        first, second = (one["freshness"] for one in status["folders"])
        assert first == {"state": "watched"}
        assert (second["state"], second.keys()) == ("unknown", {"state", "since"})
        assert second["since"].endswith("Z")
        go_on.set()
        numbers = itertools.count(2000)

        async def is_watched() -> bool:
            status = await desk.ask(talk, next(numbers), "nexus/status")
            return bool(status["folders"][1]["freshness"]["state"] == "watched")

        await wait_until(is_watched)

    tell_story(tmp_path, story)
