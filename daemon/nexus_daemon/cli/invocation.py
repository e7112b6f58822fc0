"""Holds what a command gets from the process that it was called in: environment, directory, terminal.

1. Commands take these from `current()`, and from nowhere else. So a command may run in a thread of a daemon
   on behalf of another process, with the same output as in that process, beside others.
2. In the process of the command it is what Python says: `os.environ`, `sys.stdout`.
3. Threads that a command starts get the invocation of their process: only the thread of the command prints.
"""

import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from nexus_context.disk.deadline import Deadline, Turns
    from nexus_daemon.cli.guard import Guard


class LocalOnlyError(Exception):
    """Raised if only the process that a command was called in can run it."""


class Invocation:
    """A command in its own process."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables."""
        return os.environ

    @property
    def cwd(self) -> str:
        """The working directory."""
        return os.getcwd()

    def absolute(self, path: str) -> str:
        """Return the path as an absolute one without `..`, from the working directory."""
        return os.path.abspath(path)

    @property
    def stdout(self) -> "TextIO | Guard":
        """Standard output."""
        return sys.stdout

    @property
    def stderr(self) -> "TextIO | Guard":
        """Standard error."""
        return sys.stderr

    @property
    def terminal_size(self) -> tuple[int, int] | None:
        """Columns and lines of a terminal that this process cannot measure; None if it can."""
        return None

    def deadline(self) -> "AbstractContextManager[Deadline | None]":
        """Return the context manager for a load.

        It may give a deadline, which takes turns with other loads and never ends the load.
        """
        return nullcontext()


class RemoteInvocation(Invocation):
    """A command that runs for another process. `terminal_size` is 0 by 0 if that one has no terminal."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        cwd: str,
        stdout: "TextIO | Guard",
        stderr: "TextIO | Guard",
        terminal_size: tuple[int, int],
        turns: "Turns",
    ) -> None:
        self._environ = environ
        self._cwd = cwd
        self._stdout = stdout
        self._stderr = stderr
        self._terminal_size = terminal_size
        self._turns = turns

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    @property
    def cwd(self) -> str:
        return self._cwd

    def absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path))

    @property
    def stdout(self) -> "TextIO | Guard":
        return self._stdout

    @property
    def stderr(self) -> "TextIO | Guard":
        return self._stderr

    @property
    def terminal_size(self) -> tuple[int, int] | None:
        return self._terminal_size

    def deadline(self) -> "AbstractContextManager[Deadline | None]":
        from nexus_context.disk.deadline import Deadline

        return Deadline(math.inf, self._turns)


_PROCESS = Invocation()
_CURRENT: ContextVar[Invocation] = ContextVar("invocation", default=_PROCESS)


def current() -> Invocation:
    """Return the invocation that the running command belongs to."""
    return _CURRENT.get()


@contextmanager
def running(invocation: Invocation) -> Iterator[None]:
    """Run the code in this `with` block, in this thread, for an invocation."""
    token = _CURRENT.set(invocation)
    try:
        yield
    finally:
        _CURRENT.reset(token)
