"""Runs a program as people do, in a terminal: what its own prompt and tools cost there.

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
from pathlib import Path
from typing import Any

from assistants import agreement, programs
from assistants.cases import Case
from assistants.provider_stand_in import ProviderStandIn
from nexus_context.assistants.programs import PROGRAMS

LONGEST_S = 60.0
KEY_EVERY_S = 5.0
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
        shown = _run(program, command, folder, root / "home", provider)
        requests = [each.body for each in provider.requests if each.body.get("tools")]
        if not requests:
            raise RuntimeError(f"{program.name} sent nothing from a terminal, which shows: {shown[-400:]}")
        return agreement.count_request(
            _largest(requests), PROGRAMS[program.name].instructions.assistant.model
        )


def _largest(requests: list[dict[str, Any]]) -> dict[str, Any]:
    return max(requests, key=lambda body: len(str(body)))  # beside it, one for a title


def _run(
    program: programs.Program, command: Path, folder: Path, home: Path, provider: ProviderStandIn
) -> str:
    """Type Enter from time to time until the program has asked its model; what the terminal showed."""
    environ = programs.environment(program, command, home=home, address=provider.address)
    arguments = program.terminal.arguments(provider.address)
    process, terminal = pty.fork()
    if process == 0:
        try:
            os.chdir(folder)
            os.execve(command, [str(command), *arguments], {**environ, "TERM": "xterm-256color"})  # noqa: S606
        finally:
            os._exit(127)  # the rest of the tests is not the child's
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shown, started, keys = b"", time.monotonic(), 0
    try:
        while time.monotonic() < started + LONGEST_S and not any(
            each.body.get("tools") for each in provider.requests
        ):
            if select.select([terminal], [], [], 0.2)[0]:
                written = os.read(terminal, 1 << 16)
                shown += written
                for question, answer in ANSWERS.items():
                    if question in written:
                        os.write(terminal, answer)
            if time.monotonic() > started + (keys + 1) * KEY_EVERY_S:
                keys += 1
                os.write(terminal, b"\r")
    except OSError:
        pass  # it has ended
    finally:
        os.killpg(process, signal.SIGKILL)  # with the servers that it has started
        os.waitpid(process, 0)
        os.close(terminal)
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown).decode(errors="replace")
