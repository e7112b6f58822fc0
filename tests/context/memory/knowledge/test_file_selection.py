"""The patterns of the knowledge base's paths: what they match, and that no `**` restarts."""

import time

import pytest

from nexus_context.errors import Span
from nexus_context.folder.layers.layer_types import GLOBAL
from nexus_context.memory.knowledge.file_selection import KnowledgePath


def check(path: str, pattern: str, *, fits: bool) -> None:
    """Whether a path of the global settings, with this pattern beneath /k, selects a file there."""
    parts = tuple(pattern.split("/"))
    place = KnowledgePath("/k", parts, None, GLOBAL, "/home/.nexus3", "/home/.nexus3/config.json", Span(0, 1))
    assert place.covers(f"/k/{path}") is fits


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.md", "*.md", True),
        ("x/a.md", "*.md", False),
        ("x/a.md", "**", True),
        ("a.md", "**/a.md", True),
        ("x/y/a.md", "**/a.md", True),
        ("x/y/a.md", "**/x/**/a.md", True),
        ("y/x/a.md", "**/x/**/*.md", True),
        ("y/a.md", "**/x/**/a.md", False),
        ("x/a.md/b", "**/a.md", False),
        ("x", "x/**", True),
        ("x", "x/y", False),
    ],
)
def test_what_a_pattern_means(path: str, pattern: str, *, fits: bool) -> None:
    check(path, pattern, fits=fits)


def test_no_path_and_pattern_take_long() -> None:
    """Usually 0.1 s; restarting each `**` would not end."""
    started = time.thread_time()
    check("a/" * 1_000 + "b", "**/a/" * 300 + "c", fits=False)
    assert time.thread_time() - started < 10
