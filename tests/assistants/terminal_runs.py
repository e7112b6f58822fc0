"""Runs a program as people do, at a terminal: what its own prompt and tools cost there.

A run without a terminal (`claude -p`, `codex exec`) sends other tools: no question to the user, and with
Gemini CLI no command and no write. People sit at a terminal, so what Nexus says is of that.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from assistants import agreement, programs
from assistants.cases import Case
from assistants.provider_stand_in import ProviderStandIn
from nexus_context.assistants.programs import PROGRAMS

LONGEST_S = 60.0
KEY_EVERY_S = 5.0
QUIET_S = 4.0
ROWS, COLUMNS = 40, 120
ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}
"""What a terminal answers when a program asks for the place of the cursor, and for what it is."""


def own_tokens(program: programs.Program, command: Path, case: Case) -> int:
    """The tokens of the program's first request from a terminal; RuntimeError where it sends none."""
    with tempfile.TemporaryDirectory(prefix="terminal-") as directory, ProviderStandIn() as provider:
        root = Path(directory).resolve()
        agreement.write_folder(program.name, case, root)
        folder = root / case.directory.lstrip("/")
        for name, text in program.terminal.files.items():
            file = root / "home" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{folder}", str(folder)))
        environ = programs.environment(program, command, home=root / "home", address=provider.address)
        arguments = program.terminal.arguments(provider.address)
        with Terminal(command, arguments, folder=folder, environ=environ) as terminal:
            requests = _first_requests(terminal, provider)
        return agreement.count_request(
            _largest(requests), PROGRAMS[program.name].instructions.assistant.model
        )


def _first_requests(terminal: "Terminal", provider: ProviderStandIn) -> list[dict[str, Any]]:
    """Type Enter from time to time until the program has asked its model."""
    started, keys = time.monotonic(), 0
    while time.monotonic() < started + LONGEST_S:
        requests = [each.body for each in provider.requests if each.body.get("tools")]
        if requests:
            return requests
        terminal.read()
        if time.monotonic() > started + (keys + 1) * KEY_EVERY_S:
            keys += 1
            terminal.type("\r")
    raise RuntimeError(f"the program asked no model; its terminal shows: {terminal.shown[-400:]}")


def _largest(requests: list[dict[str, Any]]) -> dict[str, Any]:
    return max(requests, key=lambda body: len(str(body)))  # beside it, one for a title


class Terminal:
    """A program at a terminal. What it started ends with it."""

    def __init__(
        self, command: Path, arguments: Sequence[str], *, folder: Path, environ: Mapping[str, str]
    ) -> None:
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            try:
                os.chdir(folder)
                os.execve(command, [str(command), *arguments], {**environ, "TERM": "xterm-256color"})  # noqa: S606
            finally:
                os._exit(127)  # the rest of the tests is not the child's
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._output = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process, signal.SIGKILL)  # with the servers that it has started
        os.waitpid(self._process, 0)
        os.close(self._terminal)

    @property
    def shown(self) -> str:
        """What the terminal showed, without its control sequences."""
        return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", self._output).decode(errors="replace")

    def read(self) -> bool:
        """Read what the program writes now, and answer what it asks its terminal; whether it wrote."""
        if not select.select([self._terminal], [], [], 0.2)[0]:
            return False
        try:
            written = os.read(self._terminal, 1 << 16)
        except OSError:
            raise RuntimeError(f"the program has ended; its terminal shows: {self.shown[-400:]}") from None
        self._output += written
        for question, answer in ANSWERS.items():
            if question in written:
                os.write(self._terminal, answer)
        return True

    def type(self, keys: str) -> None:
        """Type at the terminal; Enter is a key of its own: `\\r`."""
        os.write(self._terminal, keys.encode())

    def wait_until_quiet(self) -> None:
        """Read until the program writes no more: it waits for its user."""
        started = quiet_since = time.monotonic()
        while time.monotonic() < quiet_since + QUIET_S:
            if time.monotonic() > started + LONGEST_S:
                raise RuntimeError(f"the program does not come to rest, and shows: {self.shown[-400:]}")
            if self.read():
                quiet_since = time.monotonic()
