"""Measures one daemon with many workspace folders: `python -m benchmarks.folders`.

Every folder has settings with one error, an instruction file and a directory for skills. One window lists all
of them. The same figures with one folder stand beside, from a process of its own: an edit must not get slower
because other folders are open.
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from benchmarks.documents import Document, config, edit, error_column
from benchmarks.figures import Series
from benchmarks.lsp_client import Client, ServerError, request
from benchmarks.processes import resident_mb
from benchmarks.servers import CONFIG, Lane, Sandbox, changed, initialize_params, opened

FOLDERS = 200
LINES = 60
EDITS = 400
EDITED = 20
"""Folders whose settings are open and edited, one after the other."""
IDLE_S = 10.0
SETTLE_S = 5.0  # after the last edit or load: announcements, watches and vocabularies are ready

READY_MOST_S = 10.0
RESIDENT_MOST_MB = 250.0
IDLE_MOST_PERCENT = 0.5
EDIT_MOST_RATIO = 2.0


class Figures(msgspec.Struct, frozen=True):
    """What one daemon costs with so many folders."""

    folders: int
    ready_s: float
    resident_mb: float
    idle_percent: float
    disk_ms: tuple[float, ...]
    edits_ms: tuple[float, ...]
    inotify_instances: int

    @property
    def edit(self) -> Series:
        return Series("edit", "nexus", "ms", self.edits_ms)

    @property
    def disk(self) -> Series:
        return Series("disk", "nexus", "ms", self.disk_ms)


def main() -> int:
    """Print the figures; 1 if one of them misses its target."""
    options = _options()
    command = tuple(shlex.split(options.nexus))
    one, many = (measure(command, count) for count in (1, options.folders))
    ratio = many.edit.p95 / one.edit.p95
    rows = [
        (f"{many.folders} folders ready (s)", one.ready_s, many.ready_s, many.ready_s <= READY_MOST_S),
        ("resident (MB)", one.resident_mb, many.resident_mb, many.resident_mb <= RESIDENT_MOST_MB),
        ("idle CPU (%)", one.idle_percent, many.idle_percent, many.idle_percent < IDLE_MOST_PERCENT),
        ("edit → diagnostics p50 (ms)", one.edit.p50, many.edit.p50, True),
        ("edit → diagnostics p95 (ms)", one.edit.p95, many.edit.p95, ratio <= EDIT_MOST_RATIO),
        ("change on disk → diagnostics p50 (ms)", one.disk.p50, many.disk.p50, True),
        ("inotify instances", one.inotify_instances, many.inotify_instances, many.inotify_instances <= 1),
    ]
    print(f"| | 1 folder | {many.folders} folders | |\n|---|---|---|---|")
    for name, first, second, passed in rows:
        print(f"| {name} | {first:.2f} | {second:.2f} | {'pass' if passed else 'MISS'} |")
    return 0 if all(passed for *_, passed in rows) else 1


def measure(command: tuple[str, ...], folders: int) -> Figures:
    """The figures of a new daemon with so many folders."""
    document = config(LINES, "schema")
    with tempfile.TemporaryDirectory(prefix="nexus-bench-") as root:
        sandbox = Sandbox(Path(root), os.environ["PATH"])
        paths = [_folder(sandbox, number, document) for number in range(folders)]
        with _window(command, sandbox, paths) as client:
            ready_s = _until_ready(client, paths) - client.started
            time.sleep(SETTLE_S)
            pid = client.process.pid
            edits_ms = _edit(client, paths, document)
            disk_ms = _change_disk(client, paths)
            _drain(client)
            idle = _idle_percent(pid)
            return Figures(
                folders=folders,
                ready_s=ready_s,
                resident_mb=resident_mb(pid),
                idle_percent=idle,
                disk_ms=disk_ms,
                edits_ms=edits_ms,
                inotify_instances=inotify_instances(pid),
            )


def inotify_instances(pid: int) -> int:
    """How many inotify instances a process has; Linux only."""
    directory = Path("/proc", str(pid), "fd")
    names = [os.readlink(path) for path in directory.iterdir() if path.is_symlink()]
    return sum(name == "anon_inode:inotify" for name in names)


def _folder(sandbox: Sandbox, number: int, document: Document) -> Path:
    path = sandbox.root / "folders" / f"folder-{number:03}"
    (path / ".nexus3" / "skills").mkdir(parents=True)
    (path / CONFIG).write_text(document.text, encoding="utf-8")
    (path / "NEXUS.md").write_text(f"# Folder {number}\n\nUse the style of this folder.\n" * 5)
    return path


@contextmanager
def _window(command: tuple[str, ...], sandbox: Sandbox, paths: list[Path]) -> Iterator[Client]:
    client = Client(command, cwd=sandbox.root, env=sandbox.environment)
    try:
        params = initialize_params(Lane("nexus", "push", command), paths[0])
        params["workspaceFolders"] = [{"uri": path.as_uri(), "name": path.name} for path in paths]
        number = client.next_id()
        client.exchange(request(number, "initialize", params), number)
        client.notify("initialized", {})
        yield client
        client.close()
    finally:
        client.kill()


def _until_ready(client: Client, paths: list[Path]) -> float:
    """Wait until every folder has its diagnostics; the perf_counter of the last ones."""
    waiting = {(path / CONFIG).as_uri() for path in paths}
    at = 0.0
    while waiting:
        at, message = client.received()
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["diagnostics"]:
            waiting.discard(message["params"]["uri"])
    return at


def _edit(client: Client, paths: list[Path], document: Document) -> tuple[float, ...]:
    """Type in the settings of some folders, one after the other; milliseconds until their diagnostics."""
    edited = [(path / CONFIG).as_uri() for path in paths[:: max(1, len(paths) // EDITED)]]
    values: list[float] = []
    for uri in edited:
        client.send(opened(uri, document.text))
        client.published(uri, bool)
    for uri in edited:
        for number in range(EDITS // len(edited) + 1):
            typed = 1 - number % 2
            data = changed(uri, number + 2, edit(document, insert=bool(typed)))
            accept = partial(_is_right, document=document, typed=typed)
            sent = client.send(data)
            published = client.published(uri, accept)
            if number:  # the first one of a folder makes what the next ones reuse
                values.append((published.at - sent) * 1e3)
    return tuple(values)


def _is_right(items: list[Any], document: Document, typed: int) -> bool:
    return error_column(items, document, typed=typed) is not None


def _change_disk(client: Client, paths: list[Path]) -> tuple[float, ...]:
    """Replace settings that no editor has open; milliseconds until their diagnostics are empty."""
    values = []
    for path in paths[1 : 200 : max(2, len(paths) // 10)] or ():
        target = path / CONFIG
        temporary = target.with_name("config.json.tmp")
        temporary.write_text("{}")
        sent = time.perf_counter()
        temporary.replace(target)
        try:
            published = client.published(target.as_uri(), lambda items: not items)
        except ServerError:
            continue
        values.append((published.at - sent) * 1e3)
    return tuple(values) or (0.0,)


def _drain(client: Client) -> None:
    client.request("nexus/status", {})
    time.sleep(SETTLE_S)
    client.request("nexus/status", {})


def _idle_percent(pid: int) -> float:
    """The share of one core that a process uses while nobody asks for anything."""
    ticks, began = _ticks(pid), time.monotonic()
    time.sleep(IDLE_S)
    return (_ticks(pid) - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began) * 100


def _ticks(pid: int) -> int:
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=FOLDERS, help="how many folders [200]")
    parser.add_argument(
        "--nexus", default=f"{Path(sys.executable).with_name('nexus')} serve", help="the daemon's command"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
