"""Who shares a running server, what ends it from outside, and how often its changes are told."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from nexus_daemon.cli import main
from nexus_daemon.process.client_process import ClientProcess
from nexus_daemon.servers import running_server
from nexus_daemon.servers.folder_servers import FolderServers
from nexus_daemon.workspace.trusted_folders import set_trust
from support.server_story import Servers, check
from support.waiting import wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.desk.TIMEOUT_S", 30.0)  # for a server to start on a busy machine
    monkeypatch.setattr(running_server, "RESTART_S", 0.05)


def test_windows_whose_variables_differ_have_servers_of_their_own(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        await servers.approve()
        environ = servers.desk.daemon.load_inputs.environ
        for token in ("one", "two", "two"):
            process = ClientProcess({**environ, "TOKEN": token})
            window = Servers(servers.desk, await servers.desk.client(process=process))
            assert (await window.ask("mcp/start", name="test"))["state"] == "ready"
        assert await servers.state() == "stopped"  # of this window, which has no variable of this name
        values = sorted(_variable(pid, "KEY") for pid in servers.processes())
        assert values == ["one", "two"]
        await servers.ask("mcp/revoke", name="test")
        assert await wait_until(lambda: servers.processes() == [])

    check(tmp_path, story, env={"KEY": "${TOKEN:-none}"})


def _variable(pid: int, name: str) -> str:
    pairs = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(pair.partition("=")[2] for pair in pairs if pair.startswith(f"{name}="))


@pytest.mark.parametrize(
    ("command", "state"),
    [(("trust", "--revoke", "{}"), "untrusted"), (("mcp", "revoke", "test", "--in", "{}"), "unapproved")],
    ids=["trust", "approval"],
)
def test_what_another_process_takes_back_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], state: str
) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path / "state"))

    async def story(servers: Servers) -> None:
        await servers.approve()
        assert (await servers.ask("mcp/start", name="test"))["state"] == "ready"
        words = [word.format(servers.directory) for word in command]
        assert await asyncio.to_thread(main, words) == 0
        assert await wait_until(lambda: servers.processes() == [])
        assert await servers.state() == state
        assert await wait_until(lambda: state in servers.told())

    check(tmp_path, story)


def test_what_another_process_approves_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path / "state"))

    async def story(servers: Servers) -> None:
        assert await servers.state() == "unapproved"
        words = ["mcp", "approve", "test", "--yes", "--in", str(servers.directory)]
        assert await asyncio.to_thread(main, words) == 0
        assert await wait_until(lambda: "stopped" in servers.told())

    check(tmp_path, story)


def test_a_server_is_not_started_again_in_a_folder_that_is_trusted_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def follow(*_: object) -> None:
        """Else the server would be ended before it crashes."""

    monkeypatch.setattr(FolderServers, "follow", follow)

    async def story(servers: Servers) -> None:
        await servers.approve()
        await servers.ask("mcp/start", name="test")
        set_trust(servers.desk.daemon.load_inputs.environ, str(servers.directory), trusted=False)
        for pid in servers.processes():
            os.kill(pid, signal.SIGKILL)

        async def has_failed() -> bool:
            return "no longer approved or trusted" in ((await servers.server()).get("error") or "")

        assert await wait_until(has_failed)
        assert servers.processes() == []

    check(tmp_path, story)


def test_a_server_that_says_often_that_its_tools_changed_is_listed_seldom(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        servers.write_tools(chatty="Says that its tools changed.")
        await servers.approve()
        await servers.call("chatty")
        for number in range(20):
            servers.write_tools(chatty=f"Says that its tools changed, {number}.")
            await asyncio.sleep(0.05)
        servers.write_tools(chatty="Says that its tools changed, in the end.")

        async def is_last() -> bool:
            return str((await servers.server())["tools"][0]["description"]).endswith("in the end.")

        assert await wait_until(is_last)
        await asyncio.sleep(1.5)  # until the last list is told
        lists = len((servers.directory / "lists").read_text().splitlines())
        assert 3 <= lists <= 7  # of 400 that were asked for
        assert servers.told()[-1] == "changed"
        assert len(servers.told()) <= 7

    check(tmp_path, story)
