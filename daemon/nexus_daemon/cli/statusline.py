"""Print the status line of Claude Code: how full its window is, and whether its cache is warm.

Claude Code runs this after each answer and waits for it, so that little is imported. A field that a version
does not send is left out, and without any the line is empty; whatever it sends, the exit code is 0.
"""

import contextlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

MOST_BYTES = 1024 * 1024  # bytes of its JSON; 2,000 are usual
MILLION = 1_000_000  # tokens of a window that the model's name states

EPILOG = """\
In ~/.claude/settings.json:

  "statusLine": {"type": "command", "command": "nexus statusline"}

The line shows the tokens of the last request and their part of the window; how much of it came from the
provider's cache; when the cache goes cold, or how many tokens the next turn writes to a cold one; and the
cost of the session.
"""


def arguments(_: "argparse.ArgumentParser") -> None:
    """Add no arguments: there are none."""


def run(_: "argparse.Namespace | None" = None) -> int:
    """Read the JSON of Claude Code from standard input, and print the line. Always returns 0."""
    try:
        data = sys.stdin.buffer.read(MOST_BYTES)
        line = describe(json.loads(data), now=time.time())
    except (OSError, ValueError, RecursionError):
        line = ""
    if line:
        with contextlib.suppress(OSError):  # Claude Code no longer waits
            os.write(1, f"{line}\n".encode())
    return 0


def describe(status: object, *, now: float) -> str:
    """Return the line for a status of Claude Code. `now` is in seconds since 1970."""
    window, cache = _table(status, "context_window"), _table(status, "prompt_cache")
    usage = _table(window, "current_usage")
    cache_read, cache_written = (
        _number(usage, "cache_read_input_tokens"),
        _number(usage, "cache_creation_input_tokens"),
    )
    sent_tokens = _number(usage, "input_tokens") + cache_read + cache_written
    size = max(_number(window, "context_window_size"), MILLION if "[1m]" in _model(status) else 0)
    parts = []
    if not sent_tokens and size:  # nothing was sent yet, or not since a compaction
        share = _number(window, "used_percentage")
        if share <= 100:  # else the size cannot be
            parts.append(f"{share:.0f}% of {size:,.0f}" if share else f"0 of {size:,.0f}")
    if sent_tokens:
        parts.append(_window(sent_tokens, size))
        share = (
            round(100 * cache_read / sent_tokens)
            if cache_read == sent_tokens
            else min(round(100 * cache_read / sent_tokens), 99)
        )
        parts.append(f"{share}% cached{_warmth(cache, sent_tokens, now)}")
    cost = _number(_table(status, "cost"), "total_cost_usd")
    if cost:
        parts.append(f"${cost:,.2f}")
    return " · ".join(parts)


def _window(sent_tokens: float, size: float) -> str:
    if not size or sent_tokens > size:  # a size that cannot be is not shown
        return f"{sent_tokens:,.0f} tokens"
    return f"{sent_tokens:,.0f} of {size:,.0f} ({sent_tokens / size:.0%})"


def _warmth(cache: "dict[str, Any]", sent_tokens: float, now: float) -> str:
    """When the cache goes cold, or what that costs already."""
    expires = _number(cache, "expires_at")
    if not expires:
        return ""
    if expires > now and cache.get("warm") is not False:
        return f", cold at {time.strftime('%H:%M', time.localtime(expires))}"
    again = _number(cache, "recache_tokens_if_cold") or sent_tokens
    return f", now cold: the next turn writes {again:,.0f}"


def _model(status: object) -> str:
    name = _table(status, "model").get("id")
    return name.lower() if isinstance(name, str) else ""


def _table(value: object, name: str) -> "dict[str, Any]":
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _number(values: "dict[str, Any]", name: str) -> float:
    """A finite number that is not negative; 0 for anything else."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return value if 0 <= value < 1e15 else 0
