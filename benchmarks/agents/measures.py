"""What is measured: spawning, many agents at once, previews. Every `Times` is in microseconds.

Garbage collection is off while the clock runs. What fills memory is measured in a process of its own.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from benchmarks.agents.worker import Many
from benchmarks.agents.workspace import Workspace
from benchmarks.conversation.speed import Times, quiet, timed
from benchmarks.conversation.traces import ROOT
from benchmarks.lsp_client import Client, notification

from nexus_context.agents import AgentPool
from nexus_context.assembly import model_of
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import count_spans

WARM = 5  # first values that are thrown away
DAEMON = (sys.executable, "-P", "-m", "nexus_daemon", "serve")


class Rounds(msgspec.Struct, frozen=True):
    """How much is measured."""

    spawns: int
    previews: int
    folders: int  # of the company, each with agents
    agents: int  # of each folder


FULL = Rounds(spawns=400, previews=400, folders=200, agents=5)
QUICK = Rounds(spawns=40, previews=40, folders=12, agents=5)


class Spawning(msgspec.Struct, frozen=True):
    """`AgentPool.spawn` in a folder of three layers that has been read before."""

    own: Times  # in the workspace folder itself
    other: Times  # in another directory of it, whose files are looked at again
    below: Times  # there, below an agent that has that directory's files already


class Previewing(msgspec.Struct, frozen=True):
    """From the question to the prompt with the tokens of each fragment."""

    characters: int  # of the prompt
    folder: Times  # in Python, of a folder that is loaded
    first: Times  # in Python, as an agent in another directory, which is made for it
    view: Times  # the same again, as who looks at one does while nothing changes


class Asking(msgspec.Struct, frozen=True):
    """Requests of a daemon, from the first byte sent to the last one received."""

    spawn: Times  # of an agent in another directory; it is in the ledger then
    folder: Times  # `nexus/context/preview` of the workspace folder
    agent: Times  # of a live agent
    first: Times  # of one that is not started, another one each time
    view: Times  # of one that is not started, the same one


def spawning(workspace: Workspace, rounds: Rounds) -> Spawning:
    """Spawns and disposes, so that there is always room for one more."""
    service = workspace.services[0]
    own, other = workspace.pool(service), workspace.pool(workspace.company)
    other.spawn("stays", service.name, role="manager")
    return Spawning(
        own=_spawned(own, rounds.spawns),
        other=_spawned(other, rounds.spawns, cwd=service.name),
        below=_spawned(other, rounds.spawns, cwd=service.name, parent="stays"),
    )


def previewing(workspace: Workspace, rounds: Rounds) -> Previewing:
    """The library's previews."""
    service = workspace.services[0]
    pool = workspace.pool(workspace.company)
    folder, tasks = pool.main.snapshot, count()
    return Previewing(
        characters=len(pool.view_as("agent", service.name).prompt.text),
        folder=_repeated(rounds.previews, lambda: _counted(folder)),
        first=_repeated(
            rounds.previews,
            lambda: _counted(pool.view_as("agent", service.name, task=f"Look {next(tasks)}.").snapshot),
        ),
        view=_repeated(rounds.previews, lambda: _counted(pool.view_as("agent", service.name).snapshot)),
    )


def asking(workspace: Workspace, rounds: Rounds, state: Path) -> Asking:
    """What a daemon says, whose state is in the folder `state`."""
    folder = {"workspaceFolder": workspace.company.as_uri()}
    cwd = workspace.services[0].name
    spawned: list[float] = []
    with _daemon(workspace, state) as client:
        client.request("nexus/agent/spawn", {**folder, "agentId": "stays", "cwd": cwd})
        for number in range(-(-rounds.spawns // 4) + WARM):  # on the disk before it is answered
            one = {**folder, "agentId": f"agent-{number}"}
            spawned.append(client.request("nexus/agent/spawn", {**one, "cwd": cwd}).seconds)
            client.request("nexus/agent/dispose", one)
        return Asking(
            spawn=_times(spawned),
            folder=_answered(client, rounds.previews, lambda _: folder),
            agent=_answered(client, rounds.previews, lambda _: {**folder, "agent": "stays"}),
            first=_answered(
                client, rounds.previews, lambda n: {**folder, "viewAs": {"cwd": cwd, "task": f"Look {n}."}}
            ),
            view=_answered(client, rounds.previews, lambda _: {**folder, "viewAs": {"cwd": cwd}}),
        )


def many(workspace: Workspace, rounds: Rounds, way: str) -> Many:
    """All agents of all folders, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.agents.worker", way, str(workspace.home)]
    command += [str(rounds.folders), str(rounds.agents)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'context'}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Many)


# ------------------------------------------------------------ inside


def _spawned(pool: AgentPool, number_of: int, **asked: Any) -> Times:
    times: list[int] = []
    with quiet():
        for number in range(number_of + WARM):
            with timed(times):
                pool.spawn(f"agent-{number}", **asked)
            pool.dispose(f"agent-{number}")
    return Times.of(times[WARM:])


def _repeated(number: int, ask: Callable[[], object]) -> Times:
    times: list[int] = []
    with quiet():
        for _ in range(number + WARM):
            with timed(times):
                ask()
    return Times.of(times[WARM:])


def _counted(snapshot: Snapshot) -> tuple[int, ...]:
    """The tokens of each fragment, as a preview shows them."""
    _, counter = model_of(snapshot, None)
    prompt = snapshot.prompt
    return count_spans(counter, prompt.text, [0, *(fragment.span.end for fragment in prompt.fragments)])


def _answered(client: Client, number: int, params: Callable[[int], dict[str, Any]]) -> Times:
    return _times(
        [client.request("nexus/context/preview", params(one)).seconds for one in range(number + WARM)]
    )


def _times(seconds: list[float]) -> Times:
    return Times.of([int(each * 1e9) for each in seconds[WARM:]])


@contextmanager
def _daemon(workspace: Workspace, state: Path) -> Iterator[Client]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(workspace.home),
        "NEXUS_HOME": str(workspace.home / ".nexus3"),
        "NEXUS_STATE": str(state),
    }
    client = Client(DAEMON, cwd=workspace.company, env=environment)
    try:
        uri = workspace.company.as_uri()
        folders = [{"uri": uri, "name": workspace.company.name}]
        params = {"processId": os.getpid(), "capabilities": {}, "workspaceFolders": folders}
        client.request("initialize", params)
        client.send(notification("initialized", {}))
        yield client
        client.close()
    finally:
        client.kill()
