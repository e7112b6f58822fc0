"""What depends on a client's environment comes from the client, in whichever process the daemon runs."""

import os
import re
import stat
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from nexus_context.folder.prompt.environment import detect
from nexus_daemon.process.client_process import ClientProcess, zone
from nexus_daemon.workspace.inputs import load_inputs
from support.asking import Asking
from support.desk import CONFIG, Desk, tell_story, write
from support.fixture import write_file
from support.talk import HELLO
from support.waiting import wait_until

MCP = "/a/.nexus3/mcp.json"
SERVER = '{"mcpServers": {"t": {"command": "own-tool", "args": ["${OWN_KEY}"]}}}'
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


def check(
    tmp_path: Path, story: Callable[..., Any], *processes: ClientProcess, trusted: bool = False
) -> None:
    """Tell a story about a daemon with one client in /a for each of these processes."""

    async def told(desk: Desk) -> None:
        params = HELLO["params"]
        params["initializationOptions"] = {"trusted": trusted}
        try:
            clients = [Asking(desk, await desk.client(process=process)) for process in processes]
        finally:
            del params["initializationOptions"]
        await story(desk, *clients)

    tell_story(tmp_path, told)


def process(tmp_path: Path, umask: int | None = None, **environ: str) -> ClientProcess:
    return ClientProcess({"HOME": str(tmp_path / "home"), **environ}, umask)


def program(path: Path, text: str = "exit 0") -> Path:
    write_file(path, f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_commands_and_variables_are_those_of_the_client(tmp_path: Path) -> None:
    own = program(tmp_path / "bin" / "own-tool").parent

    async def story(desk: Desk, one: Asking, two: Asking) -> None:
        write(desk, MCP, SERVER)
        for ask in (one, two):
            desk.open(ask.talk, MCP, SERVER)
        await wait_until(lambda: desk.shown(two.talk, MCP))
        assert desk.shown(two.talk, MCP) == ["mcp.command-not-found", "mcp.unset-variable"]
        await one("context/preview")
        assert desk.shown(one.talk, MCP) == []

    check(tmp_path, story, process(tmp_path, PATH=str(own), OWN_KEY="x"), process(tmp_path, PATH="/none"))


def test_a_key_is_configured_where_the_client_has_it(tmp_path: Path) -> None:
    settings = '{"provider": {"name": "openai", "model": "gpt-4o", "api_key_env": "OWN_KEY"}}'

    async def story(desk: Desk, one: Asking, two: Asking) -> None:
        has_key = []
        for ask in (one, two):
            desk.open(ask.talk, "/home/.nexus3/config.json", settings)
            assembled = await ask("context/assemble", message="Hi", format="openai")
            has_key.append(assembled["endpoint"]["hasKey"])
        assert has_key == [True, False]

    check(tmp_path, story, process(tmp_path, OWN_KEY="secret"), process(tmp_path))


def test_git_is_found_and_run_as_the_client_would(tmp_path: Path) -> None:
    """Each in its own environment, though both ask about one folder within a second."""
    identity = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "n@x.test")
    names = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "n")
    environ = {**identity, **names, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    async def story(desk: Desk, one: Asking, two: Asking) -> None:
        for arguments in (["init", "-b", "main"], ["add", "-A"], ["commit", "-m", "first"]):
            subprocess.run(
                ["git", *arguments], cwd=desk.tree.path("/a"), env=environ, check=True, capture_output=True
            )
        write(desk, "/a/new.md", "new\n")
        texts = []
        for ask in (one, two):
            assembled = await ask("context/assemble", message="Hi", session=str(ask))
            texts.append(str(assembled["currentMessage"]))
        assert ["new.md" in text for text in texts] == [True, False]
        assert all("main" in text for text in texts)

    clients = process(tmp_path, PATH=os.environ["PATH"]), process(tmp_path, PATH="/none")
    check(tmp_path, story, *clients, trusted=True)


def test_a_model_is_told_the_time_of_the_client(tmp_path: Path) -> None:
    async def story(desk: Desk, east: Asking, west: Asking, mine: Asking) -> None:
        moments = []
        for ask, session in ((east, "e"), (west, "w"), (mine, "m")):
            assembled = await ask("context/assemble", session=session, message="Hi")
            found = {
                datetime.fromisoformat(text)
                for message in (*assembled["history"], assembled["currentMessage"])
                for text in MOMENT.findall(str(message))
            }
            assert len(found) <= 2  # the minute may change meanwhile
            moments.append(max(found))
        hours = [round((moment - moments[1]) / timedelta(hours=1), 1) for moment in moments]
        here = datetime.now().astimezone().utcoffset()
        assert here is not None
        assert hours == [26.0, 0.0, round(12 + here / timedelta(hours=1), 1)]

    zones = ("Pacific/Kiritimati", "Etc/GMT+12", "No/Zone")
    check(tmp_path, story, *(process(tmp_path, TZ=zone) for zone in zones))


@pytest.mark.parametrize(
    ("environ", "own", "expected"),
    [
        ({}, {}, None),
        ({"TZ": "CET-1CEST"}, {"TZ": "CET-1CEST"}, None),
        ({"TZ": "CET-1CEST"}, {}, None),
        ({"TZ": "Europe/Berlin"}, {"TZ": "UTC"}, ZoneInfo("Europe/Berlin")),
        ({"TZ": ":Europe/Berlin"}, {}, ZoneInfo("Europe/Berlin")),
        ({"TZ": "/usr/share/zoneinfo/Europe/Berlin"}, {}, ZoneInfo("Europe/Berlin")),
        ({"TZ": ""}, {}, UTC),
        ({"TZ": "../../etc/passwd"}, {}, None),
        ({"TZ": "Europe"}, {}, None),
        ({"TZ": "\0"}, {}, None),
    ],
)
def test_zones(environ: Mapping[str, str], own: Mapping[str, str], expected: tzinfo | None) -> None:
    assert zone(environ, own) == expected


def test_without_a_zone_of_its_own_a_client_has_the_system_s() -> None:
    system = zone({}, {"TZ": "Europe/Berlin"})
    assert system is None or system == ZoneInfo("localtime")


def test_facts_about_the_host_are_those_of_the_client() -> None:
    names = [load_inputs(environ).environment for environ in ({"WSL_DISTRO_NAME": "Ubuntu"}, {})]
    assert names == [detect("editor", environ={"WSL_DISTRO_NAME": "Ubuntu"}), detect("editor", environ={})]
    assert "WSL2 on Windows" in names[0].os


@pytest.mark.parametrize("umask", [0o077, 0o002, 0o027, None])
def test_new_files_have_the_permissions_that_the_client_gives(tmp_path: Path, umask: int | None) -> None:
    before = os.umask(0o022)
    os.umask(before)

    async def story(desk: Desk, ask: Asking) -> None:
        created = (await ask("workspace/init", workspaceFolder=desk.uri("/home")))["created"]
        assert len(created) > 1
        directory = Path(desk.tree.path("/home/.nexus3"))
        effective = before if umask is None else umask
        modes = {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir() if path.is_file()}
        assert modes == {0o644 & ~effective}
        assert stat.S_IMODE(directory.stat().st_mode) == 0o777 & ~effective

    async def added(desk: Desk, ask: Asking) -> None:
        desk.connection(ask.talk).daemon.add_folder(
            desk.connection(ask.talk), desk.uri("/home"), name="", listed=True
        )
        await story(desk, ask)

    check(tmp_path, added, process(tmp_path, umask))


def test_nothing_depends_on_the_locale(tmp_path: Path) -> None:
    """The texts that a model is sent are the same in all locales, but for the variables' own values."""

    async def story(desk: Desk, *clients: Asking) -> None:
        texts = {(await ask("context/preview"))["text"] for ask in clients}
        assert len(texts) == 1
        problems = []
        for ask in clients:
            desk.open(ask.talk, CONFIG, '{"colour": "grün", "context": {"max_tokens": 1.5e300}}')
            problems.append((await ask("context/layers"))["problems"])
        assert problems[0]
        assert all(each == problems[0] for each in problems)

    locales: tuple[dict[str, str], ...] = ({}, {"LC_ALL": "de_DE.ISO-8859-1"}, {"LANG": "tr_TR.UTF-8"})
    check(tmp_path, story, *(process(tmp_path, None, **locale) for locale in locales))
