"""The promises about agents, and whether they are kept."""

from collections.abc import Iterator

from benchmarks.agents.runner import Outcome
from benchmarks.agents.worker import DIRECTORIES, FOLDERS
from benchmarks.conversation.targets import Verdict

SPAWN_MS = 20.0
ALL_S = 10.0
AGENT_KB = 150.0
PREVIEW_MS = 5.0

WAYS = {FOLDERS: "a pool each", DIRECTORIES: "directories of one folder"}


def verdicts(outcome: Outcome) -> Iterator[Verdict]:
    """All promises, in the order in which they are printed."""
    spawning, previewing, asking = outcome.spawning, outcome.previewing, outcome.asking
    yield _ms("spawn in the workspace folder, p95", spawning.own.p95 if spawning else None, SPAWN_MS)
    yield _ms("spawn in another directory, p95", spawning.other.p95 if spawning else None, SPAWN_MS)
    yield _ms("spawn by a daemon, durable, p95", asking.spawn.p95 if asking else None, SPAWN_MS)
    for way, said in WAYS.items():
        many = outcome.many.get(way)
        size = f"{many.folders} × {many.agents // many.folders}" if many else "many"
        yield Verdict(f"load and spawn {size}, {said}", many.seconds if many else None, "s", ALL_S)
        kilobytes = many.kilobytes if many else None
        yield Verdict(f"memory of each of {size}, {said}", kilobytes, "KB", AGENT_KB)
    yield _ms("preview of a folder, p95", previewing.folder.p95 if previewing else None, PREVIEW_MS)
    yield _ms("preview as an agent, p95", previewing.view.p95 if previewing else None, PREVIEW_MS)
    yield _ms("the first time, which makes it, p95", previewing.first.p95 if previewing else None, SPAWN_MS)
    yield _ms("preview by a daemon, a folder, p95", asking.folder.p95 if asking else None, PREVIEW_MS)
    yield _ms("preview by a daemon, an agent, p95", asking.agent.p95 if asking else None, PREVIEW_MS)
    yield _ms("preview by a daemon, not started, p95", asking.view.p95 if asking else None, PREVIEW_MS)
    yield _ms("the first time by a daemon, p95", asking.first.p95 if asking else None, SPAWN_MS)


def _ms(promise: str, microseconds: float | None, limit: float) -> Verdict:
    return Verdict(promise, None if microseconds is None else microseconds / 1e3, "ms", limit)
