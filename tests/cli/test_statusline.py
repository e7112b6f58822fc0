"""`nexus statusline`: one line, whatever Claude Code sends."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from nexus_daemon.cli import statusline

# as 2.1.330 sent it after its second answer, without fields that are not read
STATUS: dict[str, Any] = {
    "model": {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"},
    "cost": {"total_cost_usd": 0.150276, "total_duration_ms": 25_746},
    "context_window": {
        "total_input_tokens": 20_011,
        "context_window_size": 200_000,
        "current_usage": {
            "input_tokens": 11,
            "output_tokens": 7,
            "cache_creation_input_tokens": 1_000,
            "cache_read_input_tokens": 19_000,
        },
        "used_percentage": 10,
    },
    "prompt_cache": {
        "warm": True,
        "ttl": "5m",
        "expires_at": 1_795_458_388,
        "last_miss_cause": None,
        "recache_tokens_if_cold": 20_011,
    },
}
NOW = 1_795_458_088.0
USED = "20,011 of 200,000 (10%) · 95% cached"
NOTHING = ""


def with_changes(**changes: Any) -> dict[str, Any]:
    return {name: {**STATUS[name], **changes.get(name, {})} for name in STATUS}


@pytest.mark.parametrize(
    ("status", "now", "line"),
    [
        (STATUS, NOW, "20,011 of 200,000 (10%) · 95% cached, cold at 18:26 · $0.15"),
        (
            STATUS,
            NOW + 300,
            f"{USED}, now cold: the next turn writes 20,011 · $0.15",
        ),
        (
            with_changes(prompt_cache={"warm": False, "recache_tokens_if_cold": 9_000}),
            NOW,
            "20,011 of 200,000 (10%) · 95% cached, now cold: the next turn writes 9,000 · $0.15",
        ),
        (
            with_changes(prompt_cache={"expires_at": None}, cost={"total_cost_usd": 1_234.5}),
            NOW,
            "20,011 of 200,000 (10%) · 95% cached · $1,234.50",
        ),
        ({"context_window": STATUS["context_window"]}, NOW, USED),
        (
            with_changes(context_window={"context_window_size": None}),
            NOW,
            "20,011 tokens · 95% cached, cold at 18:26 · $0.15",
        ),
        ({"cost": {"total_cost_usd": 2}}, NOW, "$2.00"),
        ({"cost": {"total_cost_usd": True}}, NOW, ""),
        ({"context_window": {"context_window_size": 10_000, "used_percentage": 131}}, NOW, ""),
        (
            with_changes(context_window={"current_usage": None, "used_percentage": 2}, cost={}),
            NOW,
            "2% of 200,000 · $0.15",
        ),
        (
            {"context_window": {"context_window_size": 1_000_000, "current_usage": None}},
            NOW,
            "0 of 1,000,000",
        ),
        (
            {"context_window": STATUS["context_window"] | {"context_window_size": 10_000}},
            NOW,
            "20,011 tokens · 95% cached",
        ),
        (
            {"context_window": STATUS["context_window"], "model": {"id": "claude-opus-4-6[1m]"}},
            NOW,
            "20,011 of 1,000,000 (2%) · 95% cached",
        ),
        ({}, NOW, NOTHING),
        ([], NOW, NOTHING),
        (None, NOW, NOTHING),
        (
            with_changes(cost={"total_cost_usd": "much"}, prompt_cache={"expires_at": []}),
            NOW,
            "20,011 of 200,000 (10%) · 95% cached",
        ),
        ({"cost": {"total_cost_usd": float("nan")}}, NOW, NOTHING),
        ({"cost": {"total_cost_usd": -1}}, NOW, NOTHING),
        ({"prompt_cache": 5, "context_window": "x", "cost": [1]}, NOW, NOTHING),
    ],
)
def test_the_line(status: object, now: float, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)
    assert statusline.describe(status, now=now) == line


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (json.dumps({"cost": {"total_cost_usd": 3}}).encode(), "$3.00"),
        (b"", NOTHING),
        (b"{", NOTHING),
        (b"\xff\xfe\0", NOTHING),
        (b"[" * 100_000, NOTHING),
    ],
)
def test_the_command_never_fails(data: bytes, line: str) -> None:
    command = [sys.executable, "-P", "-m", "nexus_daemon", "statusline"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    expected = f"{line}\n" if line else ""
    assert (done.stdout.decode(), done.stderr, done.returncode) == (expected, b"", 0)
