"""A client that sends requests and reads no replies, then reads them all.

1. A real daemon is asked to export a long conversation again and again, and nobody reads its output.
   Meanwhile another daemon appends to the same folder, and a settings file is broken and fixed, so that the
   daemon has notifications for the client that does not read.
2. The daemon's memory stays bounded: it stops reading instead of piling up replies.
3. The other daemon answers as if nothing were.
4. Then everything is read: there is one reply to each request, and the connection goes on.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.client import frame
from support.editor import Editor, environ, uri_of
from support.talk import user
from torture.figures import Figure, Outcome, Watch, nothing_wrong

MIB = 1 << 20
MESSAGE_BYTES = 256 * 1024
MESSAGES = 4
MOST_MEMORY = 256  # MiB; the replies together are far more
STALLED_S = 3.0
READ_S = 300.0
MOST_NEWS = 100  # the newest of each key, and what was written before it stalled
SLOW_S = 5.0
TURNS = 40  # of the other window


def run(requests: int) -> Outcome:
    """So many requests, each with a reply of a mebibyte."""
    if sys.platform != "linux":
        return Outcome("unread client", skipped="only Linux tells how much memory another process has had")
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="nexus-unread-") as root:
        home, folder = Path(root) / "home", Path(root) / "work"
        (folder / ".nexus3").mkdir(parents=True)
        (folder / "NEXUS.md").write_text("Answer.\n", encoding="utf-8")
        with Editor(home) as other, _silent(home) as daemon:
            other.hello(folder)
            for _ in range(MESSAGES):
                _append(other, folder, "x" * MESSAGE_BYTES)
            figures, wrong = _attack(daemon, other, folder, requests)
            other.goodbye()
    return Outcome("unread client", (*figures, nothing_wrong(wrong)), tuple(wrong), seconds=watch.seconds)


def _attack(
    daemon: "subprocess.Popen[bytes]", other: Editor, folder: Path, requests: int
) -> tuple[list[Figure], list[str]]:
    asked = [_hello(folder), _initialized()]
    asked += [
        _request(n, "nexus/session/export", {"workspaceFolder": uri_of(folder)})
        for n in range(1, requests + 1)
    ]
    writer = threading.Thread(target=_write, args=(daemon, asked), daemon=True)
    writer.start()
    slowest = _make_news(other, folder)
    stalled = _memory(daemon.pid)
    received: Counter[str] = Counter()
    replies: Counter[object] = Counter()
    size, wrong = 0, []
    for message, length in _messages(daemon):
        size += length
        if "method" in message:
            received[message["method"]] += 1
        else:
            replies[message["id"]] += 1
            if "error" in message:
                wrong.append(f"request {message['id']} failed: {message['error']['message']}")
        if len(replies) == requests + 1:
            break
    writer.join(READ_S)
    _write(daemon, [_request("after", "nexus/status", {})])
    after = next(message for message, _ in _messages(daemon) if message.get("id") == "after")
    if "result" not in after:
        wrong.append(f"afterwards it answered {after}")
    lost = [number for number in range(requests + 1) if replies[number] != 1]
    figures = [
        Figure("requests, nobody reads for a while", requests),
        Figure("replies together", size / MIB, "MiB"),
        Figure("replies lost or doubled", len(lost), at_most=0),
        Figure("memory of the daemon while nobody reads, at most", stalled / MIB, "MiB", at_most=MOST_MEMORY),
        Figure("until all is read, at most", _memory(daemon.pid) / MIB, "MiB", at_most=MOST_MEMORY),
        Figure("notifications for who did not read", sum(received.values()), at_most=MOST_NEWS),
        Figure("slowest append in another window meanwhile", slowest, "s", at_most=SLOW_S),
    ]
    return figures, wrong


def _make_news(other: Editor, folder: Path) -> float:
    """Turns of another window, and a file that is broken and fixed; the longest wait for one of them."""
    settings, slowest, end = folder / ".nexus3" / "config.json", 0.0, time.monotonic() + STALLED_S
    for number in range(TURNS):
        settings.write_text("{" if number % 2 else "{}", encoding="utf-8")
        began = time.perf_counter()
        other.ask("session/append", folder, session="other", messages=[user(f"turn {number}")])
        slowest = max(slowest, time.perf_counter() - began)
        time.sleep(max(0.0, (end - time.monotonic()) / (TURNS - number)))
    settings.write_text("{}", encoding="utf-8")
    return slowest


@contextlib.contextmanager
def _silent(home: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """A daemon whose output nobody reads yet."""
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "nexus_daemon", "serve"]
    with subprocess.Popen(
        command,
        cwd=home,
        env=environ(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as daemon:
        try:
            yield daemon
        finally:
            daemon.kill()


def _append(editor: Editor, folder: Path, text: str) -> None:
    editor.ask("session/append", folder, messages=[user(text)])


def _hello(folder: Path) -> dict[str, Any]:
    folders = [{"uri": uri_of(folder), "name": "work"}]
    return _request(0, "initialize", {"processId": None, "capabilities": {}, "workspaceFolders": folders})


def _initialized() -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "initialized", "params": {}}


def _request(message_id: object, method: str, params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}


def _write(daemon: "subprocess.Popen[bytes]", messages: list[dict[str, Any]]) -> None:
    assert daemon.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        daemon.stdin.write(b"".join(map(frame, messages)))
        daemon.stdin.flush()


def _messages(daemon: "subprocess.Popen[bytes]") -> Iterator[tuple[dict[str, Any], int]]:
    """Everything that the daemon says, with its size in bytes."""
    assert daemon.stdout is not None
    while header := daemon.stdout.readline():
        length = int(header.split(b":")[1])
        yield json.loads(daemon.stdout.read(2 + length)), length


def _memory(process_id: int) -> int:
    """The most memory that a process has had, in bytes."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
