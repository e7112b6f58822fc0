"""Mutated frames on each transport: standard input, the Unix socket, and a port with a token.

1. The messages are recorded examples of the protocol, with values of other types, sizes and depths, or with
   flipped, cut, doubled and invented bytes. Most keep a correct length, so that the frames behind them are
   read; the last one of a client is mutated anywhere, also in its header.
2. After BATCH frames the client's own request is answered, whatever became of the frames.
3. A client that closes its side after a broken header is let go: the process of standard input ends with an
   exit code and without a traceback, the shared daemon lives and serves its window as before.
4. A header of a gigabyte ends the connection after a few kilobytes of it.
5. The log has no error but those about frames that are broken or cut off.
"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nexus_daemon.shared import client
from protocol_docs.examples import load
from support.client import frame
from support.editor import Editor
from support.shared import SharedHome, shared_home
from support.waiting import block_until
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong

NAME = "mutated frames"
TRANSPORTS = {"standard input": None, "Unix socket": "", "port with token": "tcp"}
BATCH = 50  # frames of one client
REPLY_S = 20.0
END_S = 10.0
HEADER_READ = 4 * 1024 * 1024  # bytes of an endless header that may be taken: what the kernel buffers
EXPECTED = " nexus_daemon.lsp.link: "  # reports broken frames
EXAMPLES_HOME = "/home/ana/company/backend/auth-service"
CALLS = ("nexus/debug/trace",)  # one at a time
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    -(2**70),
    1e308,
    0.1,
    "",
    "\0",
    "x" * 5_000,
    "\ud800",
    "../../..",
    "file:///",
    "file://host/share",
    "untitled:1",
    [],
    {},
    [[[[[[]]]]]],
    {"": {"": {"": None}}},
    [None] * 300,
)


class Line(Protocol):
    """A client's side of a connection."""

    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes: ...

    def end(self) -> str: ...


class ProcessLine:
    """A `nexus serve` of its own."""

    def __init__(self, home: SharedHome) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nexus_daemon", "serve"],
            env=home.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
        )

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def receive(self) -> bytes:
        assert self.process.stdout is not None
        return os.read(self.process.stdout.fileno(), 1 << 16)

    def end(self) -> str:
        """Close our side; what is wrong with the end of the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            with self._stderr, self.process.stdout:
                code = self.process.wait(END_S)
                self._stderr.seek(0)
                stderr = self._stderr.read().decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "the process does not end"
        if code not in (0, 1) or "Traceback" in stderr:
            return f"exit code {code}: {stderr[-400:]}"
        return ""


class SocketLine:
    """A connection to the shared daemon."""

    def __init__(self, home: SharedHome) -> None:
        fields = client.fields_for("editor", home.place, home.variables)
        greeted = block_until(lambda: client.connect(home.place, fields))
        assert greeted is not None
        self._socket = socket.socket(fileno=greeted.socket.detach())
        self._socket.settimeout(REPLY_S)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        return self._socket.recv(1 << 16)

    def end(self) -> str:
        """Close our side; what is wrong with the end of the connection."""
        with self._socket, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(END_S)
            try:
                while self._socket.recv(1 << 16):
                    pass
            except TimeoutError:
                return "the connection does not end"
        return ""


def run(frames: int, seed: int = 1) -> Outcome:
    """So many mutated frames on each transport."""
    watch, wrong, figures = Watch(), list[str](), list[Figure]()
    for name, transport in TRANSPORTS.items():
        dice = dice_of(seed)
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory, "work")
            root.mkdir()
            with _served(Path(directory, "home"), root, transport, wrong) as home:
                bodies = _bodies(root)
                for number in range(-(-frames // BATCH)):
                    failure = _one_client(home, root, bodies, dice, is_stdio=transport is None)
                    if failure:
                        wrong.append(f"{name}, client {number}: {failure}")
                failure = _endless_header(home, is_stdio=transport is None)
                if failure:
                    wrong.append(f"{name}: {failure}")
            errors = home.logged_errors()
            wrong += [f"{name}: {line}" for line in errors if EXPECTED not in line]
        figures.append(Figure(f"frames on {name}", -(-frames // BATCH) * BATCH, at_least=frames))
    return Outcome(NAME, (*figures, nothing_wrong(wrong)), tuple(wrong), seconds=watch.seconds)


@contextmanager
def _served(home: Path, root: Path, transport: str | None, wrong: list[str]) -> Iterator[SharedHome]:
    """A home, with a window of its shared daemon that must notice nothing, if the clients share one."""
    with shared_home(home, transport or "", has_own_log=True) as shared:
        if transport is None:
            yield shared
            return
        with shared.window() as window:
            window.hello(root)
            config = root / ".nexus3" / "config.json"
            window.open(config, '{"provider": 1}')
            block_until(lambda: window.codes(config))
            pid = shared.pid()
            yield shared
            _check_window(window, root, config, wrong)
            if shared.pid() != pid:
                wrong.append("the shared daemon ended")
            block_until(lambda: window.request("nexus/status", {})["connections"] == 1)
            window.stop()


def _check_window(window: Editor, root: Path, config: Path, wrong: list[str]) -> None:
    window.layers(root)
    if window.codes(config) != ["config.type"]:
        wrong.append(f"the window shows {window.codes(config)}")


def _one_client(
    home: SharedHome, root: Path, bodies: list[dict[str, Any]], dice: random.Random, *, is_stdio: bool
) -> str:
    """Send frames; what is wrong with the replies or the end."""
    line: Line = ProcessLine(home) if is_stdio else SocketLine(home)
    failure = ""
    try:
        line.send(_initialize(root))
        for _ in range(BATCH - 1):
            line.send(_framed(_mutated_body(dice.choice(bodies), dice)))
        line.send(frame({"jsonrpc": "2.0", "id": "own", "method": "nexus/status", "params": {}}))
        failure = _wait_reply(line)
        line.send(mutated_bytes(frame(dice.choice(bodies)), dice))
    except OSError as error:  # a timeout, too
        failure = failure or f"{error!r}"
    return failure or line.end()


def _wait_reply(line: Line) -> str:
    """Read until the reply to our own request."""
    deadline, data = time.monotonic() + REPLY_S, b""
    while b'"id":"own"' not in data:
        if time.monotonic() > deadline:
            return "no reply to a valid request"
        piece = line.receive()
        if not piece:
            return f"the connection ended before the reply to a valid request: {data[-300:]!r}"
        data = data[-100:] + piece
    return ""


def _endless_header(home: SharedHome, *, is_stdio: bool) -> str:
    """Send a header of a gigabyte; what is wrong if much of it is read."""
    line: Line = ProcessLine(home) if is_stdio else SocketLine(home)
    count, piece = 0, b"X: " + b"y" * 64 * 1024 + b"\r\n"
    line.send(b"Content-Length: 1\r\n")
    with contextlib.suppress(OSError):
        while count < 1 << 30:
            line.send(piece)
            count += len(piece)
    failure = line.end()
    return failure or (f"{count:,} bytes of a header were read" if count > HEADER_READ else "")


# ---------------------------------------------------------------- frames


def _initialize(root: Path) -> bytes:
    folder = {"uri": root.as_uri(), "name": ""}
    params: dict[str, Any] = {"processId": None, "capabilities": {}, "workspaceFolders": [folder]}
    hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}
    return frame(hello) + frame({"jsonrpc": "2.0", "method": "initialized", "params": {}})


def _bodies(root: Path) -> list[dict[str, Any]]:
    """A message of every kind, about files of this folder."""
    text = msgspec.json.encode(load()).decode().replace(EXAMPLES_HOME, str(root))
    requests = msgspec.json.decode(text)["requests"]
    uri = f"{root.as_uri()}/.nexus3/config.json"
    item = {"uri": uri, "languageId": "json", "version": 1, "text": '{"provider": {"model": 1}}'}
    here, document = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}, {"uri": uri}
    folders = {"added": [{"uri": f"{root.as_uri()}/sub", "name": "sub"}], "removed": []}
    change = {"contentChanges": [{"range": here, "text": "[1"}], "textDocument": {**document, "version": 2}}
    own: list[tuple[str, dict[str, Any]]] = [
        ("textDocument/didOpen", {"textDocument": item}),
        ("textDocument/didChange", change),
        ("textDocument/didSave", {"textDocument": document}),
        ("textDocument/didClose", {"textDocument": document}),
        ("workspace/didChangeWorkspaceFolders", {"event": folders}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]}),
        ("$/cancelRequest", {"id": 7}),
        ("$/setTrace", {"value": "verbose"}),
    ]
    context = {"diagnostics": [], "only": ["quickfix"]}
    asked = [
        ("textDocument/codeAction", {"textDocument": document, "range": here, "context": context}),
        ("textDocument/codeLens", {"textDocument": document}),
        *((method, example["params"]) for method, example in requests.items() if method not in CALLS),
    ]
    notifications = [{"jsonrpc": "2.0", "method": method, "params": params} for method, params in own]
    questions = [{"jsonrpc": "2.0", "id": 7, "method": method, "params": params} for method, params in asked]
    return notifications * 3 + questions


def _framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _mutated_body(body: dict[str, Any], dice: random.Random) -> bytes:
    if dice.random() < 0.5:
        return mutated_bytes(_encoded(body), dice)
    return _encoded(_odd(body, dice))


def _encoded(value: Any) -> bytes:
    """JSON as `json` writes it: also lone surrogates."""
    return frame(value).partition(b"\r\n\r\n")[2]


def _odd(value: Any, dice: random.Random) -> Any:
    """The value with another one at one or two of its places."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.15:
        return dice.choice(ODD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    changed = value.copy()
    key = dice.choice(keys[3:] or keys) if dice.random() < 0.7 else dice.choice(keys)
    kind = dice.randrange(8)
    if kind == 0:
        del changed[key]
    elif kind == 1 and isinstance(changed, dict):
        changed[f"{key}x"] = changed[key]
    else:
        changed[key] = _odd(changed[key], dice)
    return changed


def mutated_bytes(data: bytes, dice: random.Random) -> bytes:
    """With flipped, cut, doubled or invented bytes."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
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
