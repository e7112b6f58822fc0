"""Clients of the shared daemon that misbehave, beside a window that must not notice.

1. Frames with flipped, cut, doubled and invented bytes, before and after `hello`, and without one.
2. Requests of a browser, headers without an end, lengths of gigabytes, clients of which nothing is heard.
3. Clients that ask for much and never read; that send requests and die; that end in the middle of a frame.
4. After each of them a window gets the reply to its own request, in bounded time, and its folder and unsaved
   text are as before. In the end the daemon has as many connections as there are windows, and its memory and
   descriptors are what they were.
"""

import contextlib
import os
import random
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from nexus_daemon.shared import client, hello
from support.client import frame
from support.editor import Editor
from support.shared import SharedHome, shared_home
from support.waiting import block_until
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong, p95

NAME = "clients that misbehave"
CHECK_EVERY = 20  # clients
REPLY_MS = 2_000.0
MORE_MB = 60  # that the daemon may have grown by: buffers of clients that never read, and caches
MORE_DESCRIPTORS = 12
WARM_UP = 30  # clients before memory is measured
BROWSER = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.invalid\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 60\r\n\r\n"
    b'{"jsonrpc":"2.0","id":1,"method":"nexus/status","params":{}}'
)

Attack = Callable[[SharedHome, Path, random.Random], None]


def run(clients: int, seed: int = 1) -> Outcome:
    """So many clients, one after another; those that hang stay for a while."""
    watch, dice, wrong, waits = Watch(), dice_of(seed), list[str](), list[float]()
    with tempfile.TemporaryDirectory() as directory, shared_home(Path(directory, "home")) as home:
        root = Path(directory, "work")
        root.mkdir()
        with home.window() as window:
            window.hello(root)
            config = root / ".nexus3" / "config.json"
            window.open(config, '{"provider": 1}')
            block_until(lambda: window.codes(config))
            pid = home.pid()
            assert pid is not None
            before = _resources(pid)
            hanging: list[socket.socket] = []
            for number in range(clients):
                if number == min(WARM_UP, clients // 2):
                    before = _resources(pid)
                attack = ATTACKS[number % len(ATTACKS)]
                try:
                    attack(home, root, dice)
                    if number % 7 == 0:
                        hanging.append(_never_reads(home, root))
                except (OSError, TimeoutError) as error:
                    wrong.append(f"{attack.__name__}: {error!r}")
                if number % CHECK_EVERY == 0:
                    waits.append(_check(window, config, wrong, number))
                while len(hanging) > 8:
                    hanging.pop(0).close()
            for connected in hanging:
                connected.close()
            waits.append(_check(window, config, wrong, clients))
            block_until(lambda: window.request("nexus/status", {})["connections"] == 1)
            survived = home.pid() == pid
            after = _resources(pid)
            window.stop()
    figures = (
        Figure("clients", clients),
        Figure("the daemon lives", int(survived), at_least=1),
        Figure("slowest reply to the window", max(waits), "ms", at_most=REPLY_MS),
        Figure("95 % of replies", p95(waits), "ms"),
        Figure("more memory", (after[0] - before[0]) / 1e6, "MB", at_most=MORE_MB),
        Figure("more descriptors", after[1] - before[1], at_most=MORE_DESCRIPTORS),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong), seconds=watch.seconds)


def _check(window: Editor, config: Path, wrong: list[str], number: int) -> float:
    """The milliseconds that a window's request takes; what is not as before is added to `wrong`."""
    started = time.perf_counter()
    window.layers(config.parent.parent)
    took = (time.perf_counter() - started) * 1000
    if window.codes(config) != ["config.type"]:
        wrong.append(f"after client {number} the window shows {window.codes(config)}")
    return took


def _resources(pid: int) -> tuple[int, int]:
    """Resident bytes and open descriptors of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{pid}/fd"))


# ---------------------------------------------------------------- clients


def _connect(home: SharedHome) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX)
    connected.settimeout(10)
    connected.connect(home.place.socket)
    return connected


def _greeted(home: SharedHome) -> socket.socket:
    greeted = client.connect(home.place, client.fields_for("editor", home.place, {}))
    assert greeted is not None
    greeted.socket.settimeout(10)
    return greeted.socket


def _messages(root: Path) -> bytes:
    folder = {"uri": root.as_uri(), "name": ""}
    params: dict[str, object] = {"capabilities": {}, "processId": None, "workspaceFolders": [folder]}
    about = {"workspaceFolder": root.as_uri()}
    item = {"uri": f"{root.as_uri()}/.nexus3/config.json", "languageId": "json", "version": 1, "text": "[1"}
    messages = (
        {"id": 1, "method": "initialize", "params": params},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": item}},
        {"id": 2, "method": "nexus/context/usage", "params": about},
        {"id": 3, "method": "nexus/session/list", "params": about},
    )
    return b"".join(frame({"jsonrpc": "2.0", **message}) for message in messages)


def _mutated(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(changed))
        kind = dice.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del changed[at : at + dice.randint(1, 40)]
        elif kind == 2:
            changed[at:at] = changed[at : at + dice.randint(1, 40)]
        elif kind == 3:
            changed[at:at] = dice.randbytes(dice.randint(1, 40))
        else:
            del changed[at:]
        if not changed:
            return b""
    return bytes(changed)


def _send_and_leave(connected: socket.socket, data: bytes, dice: random.Random) -> None:
    """Send bytes, read what comes for a moment, and close: in order, or with a reset of what is unread."""
    with connected, contextlib.suppress(OSError):
        connected.sendall(data)
        if dice.random() < 0.5:
            connected.shutdown(socket.SHUT_WR)
        connected.settimeout(0.05)
        while dice.random() < 0.9 and connected.recv(65536):
            pass


def mutated_hello(home: SharedHome, root: Path, dice: random.Random) -> None:
    fields = client.fields_for("editor", home.place, {"PATH": "/bin", "TERM": "xterm"})
    data = hello.encode(fields)
    _send_and_leave(_connect(home), _mutated(data, dice) + _messages(root), dice)


def mutated_frames(home: SharedHome, root: Path, dice: random.Random) -> None:
    _send_and_leave(_greeted(home), _mutated(_messages(root), dice), dice)


def mutated_direct_frames(home: SharedHome, root: Path, dice: random.Random) -> None:
    _send_and_leave(_connect(home), _mutated(_messages(root), dice), dice)


def browser(home: SharedHome, root: Path, dice: random.Random) -> None:
    with _connect(home) as connected:
        connected.sendall(BROWSER)
        if connected.recv(100):
            raise OSError("a browser got a reply")


def header_without_end(home: SharedHome, root: Path, dice: random.Random) -> None:
    with _greeted(home) if dice.random() < 0.5 else _connect(home) as connected:
        connected.sendall(b"Content-Length: 1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(1024):  # up to a gigabyte; the daemon takes 8 KiB of it
                connected.sendall(b"X: " + b"y" * 1024 * 1024 + b"\r\n")
            raise TimeoutError("a header of a gigabyte was read")


def length_of_gigabytes(home: SharedHome, root: Path, dice: random.Random) -> None:
    with _greeted(home) as connected:
        length = dice.choice((1 << 30, 10**12, 32 * 1024 * 1024 + 1))
        connected.sendall(b"Content-Length: %d\r\n\r\n{" % length)
        while connected.recv(65536):  # the goodbye, and the end
            pass


def silent(home: SharedHome, root: Path, dice: random.Random) -> None:
    connected = _connect(home)
    connected.sendall(dice.choice((b"", b"N", b"NEXUS/1 ", b"NEXUS/1 100\nabc", b"Content-Len")))
    connected.close()


def sends_and_dies(home: SharedHome, root: Path, dice: random.Random) -> None:
    connected = _greeted(home)
    about = {"workspaceFolder": root.as_uri()}
    requests = [
        frame({"jsonrpc": "2.0", "id": number, "method": "nexus/context/preview", "params": about})
        for number in range(10, 60)
    ]
    data = _messages(root) + b"".join(requests)
    with contextlib.suppress(OSError):
        connected.sendall(data[: dice.randrange(len(data))])
    connected.close()


def _never_reads(home: SharedHome, root: Path) -> socket.socket:
    """A client that asks for long replies for as long as the daemon reads them."""
    connected = _greeted(home)
    connected.settimeout(0.05)
    about = {"workspaceFolder": root.as_uri()}
    request = {"jsonrpc": "2.0", "method": "nexus/config/effective", "params": about}
    data = _messages(root) + b"".join(frame({**request, "id": number}) for number in range(10, 2000))
    with contextlib.suppress(OSError):
        connected.sendall(data)
    return connected


ATTACKS: tuple[Attack, ...] = (
    mutated_frames,
    mutated_direct_frames,
    mutated_hello,
    sends_and_dies,
    browser,
    silent,
    length_of_gigabytes,
    mutated_frames,
    mutated_direct_frames,
    header_without_end,
)
