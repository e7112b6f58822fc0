"""A raw LSP client for timing: frames encoded beforehand, one clock stamp at each frame's last byte."""

import itertools
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

HEADER_END = b"\r\n\r\n"
CHUNK_BYTES = 65_536  # a Linux pipe holds this much
TIMEOUT_S = 30.0
EXIT_S = 5.0

Json = Any


class ServerError(Exception):
    """A measured server died, stayed silent, or answered something else than expected."""


class Frame(NamedTuple):
    """One received message and the `time.perf_counter()` of its last byte."""

    body: memoryview  # overwritten by the next message where the reader uses its memory again
    at: float


class Reply(NamedTuple):
    """A result; `sent` is the perf_counter before the request's first byte, `at` that after its last."""

    result: Json
    sent: float
    at: float
    body: memoryview  # until the next message comes

    @property
    def seconds(self) -> float:
        return self.at - self.sent


class Published(NamedTuple):
    """Diagnostics that a server sent by itself, and the perf_counter of their last byte."""

    at: float
    items: list[Json]


def frame(body: bytes) -> bytes:
    """`body` behind its Content-Length header."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def notification(method: str, params: Json) -> bytes:
    """A framed notification."""
    return frame(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))


def request(number: int, method: str, params: Json) -> bytes:
    """A framed request."""
    return frame(msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))


class FrameReader:
    """Cuts the bytes of one file descriptor into frames. Long bodies are read into place, not appended.

    With `reuse` all bodies are read into the same memory. Fresh memory has to be fetched page by page, which
    takes as long as the pipe: whose turn that falls on would be luck.
    """

    def __init__(self, descriptor: int, *, reuse: bool = False) -> None:
        self._descriptor = descriptor
        self._reuse = reuse
        self._memory = bytearray()
        self._rest = bytearray()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def read(self, deadline: float | None = None) -> Frame:
        """The next frame. EOFError at the end of the stream, TimeoutError past `deadline` (perf_counter)."""
        while (end := self._rest.find(HEADER_END)) < 0:
            self._wait(deadline)
            self.fill()
        length = _content_length(bytes(self._rest[:end]))
        start = end + len(HEADER_END)
        body = self._room(length)
        have = min(len(self._rest) - start, length)
        body[:have] = self._rest[start : start + have]
        del self._rest[: start + have]
        while have < length:
            self._wait(deadline)
            count = os.readv(self._descriptor, [body[have:]])
            if not count:
                raise EOFError
            have += count
        return Frame(body, time.perf_counter())

    def _room(self, length: int) -> memoryview:
        if len(self._memory) < length or not self._reuse:
            self._memory = bytearray(length)
        return memoryview(self._memory)[:length]

    def fill(self) -> None:
        """Takes what the pipe holds now, so that a peer blocked on writing can go on."""
        data = os.read(self._descriptor, CHUNK_BYTES)
        if not data:
            raise EOFError
        self._rest += data

    def _wait(self, deadline: float | None) -> None:
        if deadline is None:
            return  # the read itself blocks
        left = deadline - time.perf_counter()
        if left <= 0 or not self._poll.poll(left * 1000):
            raise TimeoutError


def _content_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise ServerError(f"frame without Content-Length: {header[:200]!r}")


class Client:
    """One server process, spoken to from one thread. `started` is the perf_counter just before the spawn."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.command = tuple(command)
        self.started = time.perf_counter()
        try:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
            )
        except OSError as error:
            raise ServerError(f"cannot start {command[0]}: {error}") from error
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin = self.process.stdin.fileno()
        self._stdout = self.process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        self._reader = FrameReader(self._stdout, reuse=True)
        self._numbers = itertools.count(1)

    def next_id(self) -> int:
        """A fresh request id, for frames that are encoded before the clock starts."""
        return next(self._numbers)

    def send(self, data: bytes) -> float:
        """Writes all of `data`, reading if both pipes are full; returns the perf_counter at the start."""
        start = time.perf_counter()
        view = memoryview(data)
        try:
            while view:
                try:
                    view = view[os.write(self._stdin, view) :]
                except BlockingIOError:
                    self._wait_writable()
        except (BrokenPipeError, EOFError) as error:
            raise ServerError(f"the server closed its pipe: {self._last_words()}") from error
        return start

    def notify(self, method: str, params: Json) -> None:
        """Sends a notification."""
        self.send(notification(method, params))

    def request(self, method: str, params: Json) -> Reply:
        """Sends a request and waits for its reply. ServerError if that is an error."""
        number = self.next_id()
        return self.exchange(request(number, method, params), number)

    def exchange(self, data: bytes, number: int) -> Reply:
        """Sends frames that end with request `number`; the reply's decoding is not in its time."""
        start = self.send(data)
        while True:
            received, message = self._next()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise ServerError(f"request {number} failed: {message['error']}")
                return Reply(message.get("result"), start, received.at, received.body)

    def exchange_frame(self, data: bytes) -> float:
        """Sends `data` and takes the next frame, whatever it says, undecoded: for the bare pipe. Seconds."""
        start = self.send(data)
        return self._frame().at - start

    def published(self, uri: str, accept: Callable[[list[Json]], bool]) -> Published:
        """The next diagnostics of `uri` that `accept` likes. Others are passed over."""
        last: list[Json] | None = None
        while True:
            try:
                received, message = self._next()
            except TimeoutError:
                raise ServerError(f"no such diagnostics within {TIMEOUT_S} s; the last were {last}") from None
            if message.get("method") != "textDocument/publishDiagnostics" or message["params"]["uri"] != uri:
                continue
            last = message["params"]["diagnostics"]
            if accept(last):
                return Published(received.at, last)

    def received(self) -> tuple[float, dict[str, Json]]:
        """The next message that the server sends, and the perf_counter of its last byte."""
        received, message = self._next()
        return received.at, message

    def close(self) -> None:
        """Shuts the server down politely, else kills it. Never raises."""
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self.process.wait(EXIT_S)
        except (ServerError, TimeoutError, OSError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self) -> None:
        """Ends the process at once and closes its pipes."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            if stream is not None:
                stream.close()

    def _next(self) -> tuple[Frame, dict[str, Json]]:
        """The next message, its own requests to the client answered with null."""
        while True:
            received = self._frame()
            message = msgspec.json.decode(received.body)
            if "id" not in message or "method" not in message:
                return received, message
            items = (
                message.get("params", {}).get("items", ())
                if message["method"] == "workspace/configuration"
                else None
            )
            answer = None if items is None else [None for _ in items]
            self.send(frame(msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "result": answer})))

    def _frame(self) -> Frame:
        try:
            return self._reader.read(time.perf_counter() + TIMEOUT_S)
        except EOFError:
            raise ServerError(f"the server ended: {self._last_words()}") from None

    def _wait_writable(self) -> None:
        poll = select.poll()
        poll.register(self._stdin, select.POLLOUT)
        poll.register(self._stdout, select.POLLIN)
        events = poll.poll(TIMEOUT_S * 1000)
        if not events:
            raise ServerError(f"the server did not read its input for {TIMEOUT_S} s")
        if any(descriptor == self._stdout for descriptor, _ in events):
            self._reader.fill()

    def _last_words(self) -> str:
        self._stderr.seek(0)
        text = self._stderr.read().decode(errors="replace").strip()
        return text[-600:] or f"nothing on stderr, exit status {self.process.poll()}"
