"""A language client that records everything it receives, for tests with real server processes."""

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.waiting import PAUSE_S, block_until

Message = dict[str, Any]
TIMEOUT_S = 15.0


class Client:
    """One server process and all that it said.

    A reader thread puts every message into `received` and keeps it there; `wait_for` takes messages out
    of `unread`. What is still unread at the end and not expected fails the test: `stop` returns it.
    `waited` are the seconds of all waits, counted in pauses (`support/waiting.py`).
    """

    def __init__(
        self, command: Sequence[str], *, cwd: str | Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.received: list[Message] = []
        self.unread: list[Message] = []
        self.stderr = ""
        self.started = time.perf_counter()
        self.waited = 0.0
        self._queue: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._closed = False
        self._last_id = 0
        self.process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # ------------------------------------------------------------ sending

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are; a server that has gone is no error."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.send_bytes(frame(message))

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def send_request(self, method: str, params: object = None) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self._last_id

    def respond(self, message_id: object, result: object) -> None:
        self.send({"jsonrpc": "2.0", "id": message_id, "result": result})

    def close_input(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    # ------------------------------------------------------------ waiting

    def wait_for(self, wanted: Callable[[Message], bool], timeout: float = TIMEOUT_S) -> Message:
        """Take the first unread message that is wanted; messages before it stay unread."""
        deadline = self.waited + timeout
        while True:
            for index, message in enumerate(self.unread):
                if wanted(message):
                    return self.unread.pop(index)
            self._receive(deadline)

    def wait_reply(self, message_id: object, timeout: float = TIMEOUT_S) -> Message:
        return self.wait_for(lambda m: "method" not in m and m.get("id") == message_id, timeout)

    def wait_method(self, method: str, timeout: float = TIMEOUT_S) -> Message:
        return self.wait_for(lambda m: m.get("method") == method, timeout)

    def wait_exit(self, timeout: float = TIMEOUT_S) -> int:
        """Wait for the process's end, and for all that it said."""
        block_until(lambda: self.process.poll() is not None, timeout)
        for thread in self._threads:
            thread.join(timeout)
        self._drain()
        return self.process.wait()

    def request(self, method: str, params: object = None, timeout: float = TIMEOUT_S) -> Any:
        """Send a request and return its result; an error reply raises `ReplyError`."""
        reply = self.wait_reply(self.send_request(method, params), timeout)
        if "error" in reply:
            raise ReplyError(reply["error"])
        return reply["result"]

    # ------------------------------------------------------------ life

    def initialize(self, folder: str | None = None, **params: object) -> Any:
        """Say hello with one workspace folder, or none; return the server's reply."""
        folders = None if folder is None else [{"uri": folder, "name": folder.rsplit("/", 1)[-1]}]
        hello: Message = {
            "processId": os.getpid(),
            "rootUri": folder,
            "workspaceFolders": folders,
            "capabilities": {},
        }
        result = self.request("initialize", {**hello, **params})
        self.notify("initialized", {})
        return result

    def stop(self) -> list[Message]:
        """Shut the server down as LSP says; return what it said that nobody waited for."""
        self.request("shutdown")
        self.notify("exit")
        assert self.wait_exit() == 0, self.stderr
        return self.unread

    def kill(self) -> None:
        """End the process if it still runs, and free its pipes."""
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self.close_input()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    # ------------------------------------------------------------ reading

    def _receive(self, deadline: float) -> None:
        while True:
            try:
                message = self._queue.get(timeout=PAUSE_S)
                break
            except queue.Empty:
                self.waited += PAUSE_S
            if self.waited > deadline:
                raise TimeoutError(f"the server did not say it; unread: {self.unread}; stderr: {self.stderr}")
        if message is None:
            self._queue.put(None)
            raise EOFError(f"the server ended; unread: {self.unread}; stderr: {self.stderr}")
        self.unread.append(message)

    def _drain(self) -> None:
        while not self._queue.empty():
            message = self._queue.get()
            if message is None:
                return
            self.unread.append(message)

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while (length := _read_header(self.process.stdout)) is not None:
                message = json.loads(self.process.stdout.read(length))
                self.received.append(message)
                self._queue.put(message)
        finally:
            self._queue.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line.decode(errors="replace")


class ReplyError(Exception):
    """The server answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.error = error


def frame(message: object) -> bytes:
    """Return a message with its header."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _read_header(stream: Any) -> int | None:
    length = None
    while line := stream.readline():
        if line == b"\r\n":
            assert length is not None, "a frame without Content-Length"
            return length
        name, _, value = line.partition(b":")
        assert name == b"Content-Length", f"not a frame: {line!r}"
        length = int(value)
    return None
