"""Wait for what happens elsewhere: in another task, another thread or another process."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import pytest

T = TypeVar("T")
TIMEOUT_S = 10.0
"""Far longer than anything that a test waits for takes on a busy machine."""
PAUSE_S = 0.005


@overload
async def wait_until(probe: Callable[[], Awaitable[T]], timeout_s: float = ...) -> T: ...
@overload
async def wait_until(probe: Callable[[], T], timeout_s: float = ...) -> T: ...
async def wait_until(probe: Callable[[], Any], timeout_s: float = TIMEOUT_S) -> Any:
    """Return the first true value of a probe, which may be a coroutine function."""
    async with asyncio.timeout(timeout_s):
        while True:
            value = probe()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(PAUSE_S)


def block_until(probe: Callable[[], T], timeout_s: float = TIMEOUT_S) -> T:
    """Return the first true value of a probe; outside an event loop."""
    deadline = time.monotonic() + timeout_s
    while not (value := probe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still {value!r} after {timeout_s} s")
        time.sleep(PAUSE_S)
    return value


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the wall clock of this process forward."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)


async def yield_to_loop(turns: int = 1) -> None:
    """Let the event loop run everything that is ready, once or several times."""
    for _ in range(turns):
        await asyncio.sleep(0)
