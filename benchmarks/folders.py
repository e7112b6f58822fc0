"""One window with 200 folders beside one with a single folder."""

import operator
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from benchmarks.documents import Document, config, edit, error_column
from benchmarks.lsp_client import Client
from benchmarks.processes import resident_mb
from benchmarks.promises import Measured, Promise, Run, Series, promises
from benchmarks.servers import CONFIG, NEXUS, Lane, changed, initialize_params, opened

FOLDERS = 200
LINES = 60
EDITS = 400
EDITED = 20
"""Folders whose settings are open and edited, one after the other."""
SETTLE_S = 5  # after the last edit or load: announcements, watches and vocabularies are ready
ONE = "one folder"


class Figures(msgspec.Struct, frozen=True):
    """What one daemon costs with so many folders; times in ms."""

    ready: float
    resident_mb: float
    idle_percent: float
    disk: Series
    edits: Series
    inotify_instances: int


@promises(
    Promise(f"{FOLDERS} folders are ready", 15.0, ONE),
    Promise(f"memory with {FOLDERS} folders", 2.5, ONE, unit="MB"),
    Promise(f"edit with {FOLDERS} folders", 4.0, ONE, "p95"),
    Promise(f"change on the disk with {FOLDERS} folders", 2.0, ONE),
    Promise("idle, share of a core", 0.5, unit="%"),
    Promise("inotify instances", 1, unit=""),
)
def folders(run: Run) -> Iterator[Measured]:
    """Every folder has settings with one error, instructions and a directory for skills."""
    one, many = (_measure(run, count) for count in (1, FOLDERS))
    yield f"{FOLDERS} folders are ready", many.ready, one.ready
    yield f"memory with {FOLDERS} folders", many.resident_mb, one.resident_mb
    yield f"edit with {FOLDERS} folders", many.edits, one.edits
    yield f"change on the disk with {FOLDERS} folders", many.disk, one.disk
    yield "idle, share of a core", many.idle_percent
    yield "inotify instances", many.inotify_instances


def _measure(run: Run, count: int) -> Figures:
    document = config(LINES, "schema")
    rules = "Use the style of this folder.\n" * 5
    files = {CONFIG: document.text, "NEXUS.md": rules, ".nexus3/skills/README": ""}
    paths = [run.folder(f"{count}-{number:03}", files) for number in range(count)]
    client = Client(Lane(NEXUS).command(run), cwd=run.root, env=run.environ)
    try:
        client.request("initialize", initialize_params(*paths))
        client.notify("initialized", {})
        ready_s = _wait_until_ready(client, paths) - client.started
        time.sleep(run.pick(full=SETTLE_S, quick=2))
        process = client.process.pid
        edits = Series(_edit(client, paths, document, run.pick(full=EDITS, quick=EDITS // 4)))
        disk = Series(_change_disk(client, paths, document, run.pick(full=10, quick=3)))
        time.sleep(run.pick(full=SETTLE_S, quick=2))
        return Figures(
            ready=ready_s * 1e3,
            resident_mb=resident_mb(process),
            idle_percent=_idle_percent(process, run.pick(full=10, quick=4)),
            disk=disk,
            edits=edits,
            inotify_instances=_inotify_instances(process),
        )
    finally:
        client.close()


def _inotify_instances(process: int) -> int:
    paths = Path("/proc", str(process), "fd").iterdir()
    return sum(os.readlink(path) == "anon_inode:inotify" for path in paths if path.is_symlink())


def _wait_until_ready(client: Client, paths: list[Path]) -> float:
    """Wait until every folder has its diagnostics; the perf_counter of the last ones."""
    waiting = {(path / CONFIG).as_uri() for path in paths}
    at = 0.0
    while waiting:
        at, message = client.received()
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["diagnostics"]:
            waiting.discard(message["params"]["uri"])
    return at


def _edit(client: Client, paths: list[Path], document: Document, count: int) -> list[float]:
    """Type in the settings of some folders, one after the other; milliseconds until their diagnostics."""
    edited = [(path / CONFIG).as_uri() for path in paths[:: max(1, len(paths) // EDITED)]]
    values: list[float] = []
    for uri in edited:
        client.send(opened(uri, document.text))
        client.published(uri, bool)
    for uri in edited:
        for number in range(count // len(edited) + 1):
            typed = 1 - number % 2
            data = changed(uri, number + 2, edit(document, insert=bool(typed)))
            sent = client.send(data)
            published = client.published(uri, partial(_is_right, document=document, typed=typed))
            if number:  # the first one of a folder makes what the next ones reuse
                values.append((published.at - sent) * 1e3)
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return values


def _is_right(items: list[Any], document: Document, typed: int) -> bool:
    return error_column(items, document, typed=typed) is not None


def _change_disk(client: Client, paths: list[Path], document: Document, count: int) -> list[float]:
    """Replace settings that no editor has open, and back; milliseconds until their diagnostics."""
    values = []
    target = paths[-1] / CONFIG
    temporary = target.with_name("config.json.tmp")
    for number in range(2 * count):
        text = document.text if number % 2 else "{}"
        temporary.write_text(text, encoding="utf-8")
        sent = time.perf_counter()
        temporary.replace(target)
        published = client.published(target.as_uri(), bool if number % 2 else operator.not_)
        values.append((published.at - sent) * 1e3)
        time.sleep(0.2)
    return values


def _idle_percent(process: int, seconds: int) -> float:
    """The share of one core that a process uses while nobody asks for anything."""
    ticks, began = _ticks(process), time.monotonic()
    time.sleep(seconds)
    return (_ticks(process) - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began) * 100


def _ticks(process: int) -> int:
    fields = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
