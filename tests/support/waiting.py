"""Wait for what happens elsewhere: in another task, another thread or another process.

How long is counted in pauses: where the machine is busy each takes longer, as does what is waited for.
"""

import asyncio
import inspect
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import pytest

T = TypeVar("T")
TIMEOUT_S = 10.0
"""Far longer than anything that a test waits for takes on a machine that has time."""
PAUSE_S = 0.005


@overload
async def wait_until(probe: Callable[[], Awaitable[T]], timeout_s: float = ...) -> T: ...
@overload
async def wait_until(probe: Callable[[], T], timeout_s: float = ...) -> T: ...
async def wait_until(probe: Callable[[], Any], timeout_s: float = TIMEOUT_S) -> Any:
    """Return the first true value of a probe, which may be a coroutine function."""
    for _ in pauses(timeout_s):
        value = probe()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await asyncio.sleep(PAUSE_S)
    raise TimeoutError(f"still {value!r} after {timeout_s} s")


def block_until(probe: Callable[[], T], timeout_s: float = TIMEOUT_S) -> T:
    """Return the first true value of a probe; outside an event loop."""
    for _ in pauses(timeout_s):
        if value := probe():
            return value
        time.sleep(PAUSE_S)
    raise TimeoutError(f"still {value!r} after {timeout_s} s")


def pauses(timeout_s: float) -> range:
    """A number for each pause that a wait of this length has."""
    return range(round(timeout_s / PAUSE_S) + 1)


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the wall clock of this process forward."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)


async def yield_to_loop(turns: int = 1) -> None:
    """Let the event loop run everything that is ready, once or several times."""
    for _ in range(turns):
        await asyncio.sleep(0)


def free_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Whether somebody listens at a port of 127.0.0.1."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
