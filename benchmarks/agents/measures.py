"""How quickly an agent starts, what a thousand agents cost, and how quickly a preview shows one.

The folders are a company's services, each with three layers, 20 skills and 5 imports; their files are at rest
and in the system's cache. A preview counts the tokens of each part of the prompt.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any

import msgspec
from benchmarks.agents import workspace
from benchmarks.agents.worker import DIRECTORIES, FOLDERS, Many
from benchmarks.agents.workspace import Workspace
from benchmarks.lsp_client import Client
from benchmarks.promises import (
    ROOT,
    Measured,
    Promise,
    Run,
    Step,
    milliseconds,
    processor_ms,
    promises,
    take_turns,
)
from benchmarks.servers import NEXUS, Echo, Lane, started

from nexus_context.agents import AgentPool
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import count_spans
from nexus_context.tokens.vocabulary import load_encoding
from nexus_context.turn.models import model_of

READ = "reading its files"
READ_AND_SYNC = "reading its files and an fdatasync"
COUNT = "tiktoken on its prompt"
ECHO = "an echo of the same reply on pygls"
LAYOUTS = {FOLDERS: ("a pool each", 4.1, 2.8), DIRECTORIES: ("directories of one folder", 9.0, 7.0)}
"""A name and the limits of time and memory."""


@promises(
    Promise("spawn in the workspace folder", 2.0, READ),
    Promise("spawn in another directory", 6.0, READ),
    Promise("preview of a folder", 0.4, COUNT),
    Promise("preview as an agent", 6.0, COUNT),
    Promise("first preview as an agent, which builds it", 8.0, READ),
)
def library(run: Run) -> Iterator[Measured]:
    """Spawns and previews in Python, of a folder that has been read before."""
    company = workspace.write(run.root, 1)
    service = company.services[0]
    near, far = company.pool(service), company.pool(company.company)
    encoding, text = load_encoding("o200k_base"), far.view_as("agent", service.name).prompt.text
    tasks = count()

    def preview(cwd: str | None, task: str) -> None:
        snapshot = far.main.snapshot if cwd is None else far.view_as("agent", cwd, task=task).snapshot
        _count_parts(snapshot)

    steps: dict[str, Step] = {
        READ: partial(processor_ms, partial(company.read_files, service)),
        COUNT: partial(processor_ms, partial(encoding.encode, text)),
        "spawn": partial(_spawn, near, None),
        "spawn far": partial(_spawn, far, service.name),
        "folder": partial(processor_ms, partial(preview, None, "")),
        "agent": partial(processor_ms, partial(preview, service.name, "Look.")),
        "first": lambda: processor_ms(lambda: preview(service.name, f"Look {next(tasks)}.")),
    }
    turns = take_turns(steps, run.pick(full=300, quick=40), warm=5)
    yield "spawn in the workspace folder", turns["spawn"], turns[READ]
    yield "spawn in another directory", turns["spawn far"], turns[READ]
    yield "preview of a folder", turns["folder"], turns[COUNT]
    yield "preview as an agent", turns["agent"], turns[COUNT]
    yield "first preview as an agent, which builds it", turns["first"], turns[READ]
    run.note_turns("Agents in Python, ms", turns)


@promises(
    Promise("spawn in another directory, durable", 12.0, READ_AND_SYNC),
    Promise("preview of the workspace folder", 1.5, ECHO),
    Promise("preview of a live agent", 1.7, ECHO),
    Promise("preview of an agent that is not started", 2.7, ECHO),
)
def daemon(run: Run) -> Iterator[Measured]:
    """Requests of a daemon, from the first byte sent to the last one received; a spawn is durable by then."""
    company = workspace.write(run.root, 1)
    service, names = company.services[0], count()
    folder = {"workspaceFolder": company.company.as_uri()}
    params_of: dict[str, dict[str, Any]] = {
        "preview of the workspace folder": folder,
        "preview of a live agent": {**folder, "agent": "stays"},
        "preview of an agent that is not started": {**folder, "viewAs": {"cwd": service.name}},
    }
    with ExitStack() as stack:
        client, _ = stack.enter_context(started(Lane(NEXUS), run, company.company))
        echo = Echo(stack, run)
        client.request("nexus/agent/spawn", {**folder, "agentId": "stays", "cwd": service.name})

        def spawn() -> float:
            agent = {**folder, "agentId": f"agent-{next(names)}"}
            elapsed = client.request("nexus/agent/spawn", {**agent, "cwd": service.name}).seconds
            client.request("nexus/agent/dispose", agent)
            return elapsed * 1e3

        steps: dict[str, Step] = {READ_AND_SYNC: partial(milliseconds, partial(_read_and_sync, run, company))}
        turns = take_turns(steps | {"spawn": spawn}, run.pick(full=100, quick=15), warm=5)
        run.note_turns("Agents of a daemon: spawn, ms", turns)
        yield "spawn in another directory, durable", turns["spawn"], turns[READ_AND_SYNC]
        for what, params in params_of.items():
            reply = bytes(client.request("nexus/context/preview", params).body)

            steps = {
                "nexus": partial(_preview, client, params),
                ECHO: partial(echo.milliseconds, reply),
            }
            turns = take_turns(steps, run.pick(full=200, quick=30), warm=5)
            yield what, turns["nexus"], turns[ECHO]
            run.note_turns(f"Agents of a daemon: {what}, ms", turns)


@promises(
    *(
        Promise(f"load and spawn 200 × 5, {name}", limit, "reading the files of each", unit="s")
        for name, limit, _ in LAYOUTS.values()
    ),
    *(
        Promise(f"memory of each of 200 × 5, {name}", limit, "its prompt", unit="KB")
        for name, _, limit in LAYOUTS.values()
    ),
)
def many(run: Run) -> Iterator[Measured]:
    """All agents of 200 folders alive at once, in a new process: a pool for each folder, or one folder.

    The memory is what is added after the workspace folders are loaded, and includes what agents share.
    """
    folders, agents = run.pick(full=200, quick=24), 5
    company = workspace.write(run.root, folders)
    reading = agents * sum(processor_ms(partial(company.read_files, service)) for service in company.services)
    for layout, (name, *_) in LAYOUTS.items():
        command = [sys.executable, "-m", "benchmarks.agents.worker", layout, str(company.home)]
        output = run.execute([*command, str(folders), str(agents)], cwd=ROOT)
        result = msgspec.json.decode(output, type=Many)
        yield f"load and spawn 200 × 5, {name}", result.seconds, reading / 1e3
        yield f"memory of each of 200 × 5, {name}", result.kilobytes, result.text / result.agents / 1e3


def _read_and_sync(run: Run, company: Workspace) -> None:
    company.read_files(company.services[0])
    with (run.root / "floor").open("wb") as file:
        file.write(b"agent")
        file.flush()
        os.fdatasync(file.fileno())


def _preview(client: Client, params: dict[str, Any]) -> float:
    return client.request("nexus/context/preview", params).seconds * 1e3


def _spawn(pool: AgentPool, cwd: str | None) -> float:
    elapsed = processor_ms(lambda: pool.spawn("agent", cwd))
    pool.dispose("agent")
    return elapsed


def _count_parts(snapshot: Snapshot) -> tuple[int, ...]:
    """The tokens of each fragment, as a preview shows them."""
    _, counter = model_of(snapshot, None)
    prompt = snapshot.prompt
    return count_spans(counter, prompt.text, [0, *(fragment.span.end for fragment in prompt.fragments)])
