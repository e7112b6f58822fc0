"""Loads beside a snapshot of the same folder in another window: the same result, from shared objects."""

import gc
import os
import tempfile
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.picked_model import ModelChoice
from nexus_context.folder.loading import load
from nexus_context.folder.snapshot import Snapshot
from support.fixture import write_fixture
from support.folders import load_inputs

CONFIG = "/home/a/.nexus3/config.json"
MCP = "/home/a/.nexus3/mcp.json"
GLOBAL = "/home/.nexus3/config.json"
TEXTS: dict[str, tuple[str, ...]] = {
    CONFIG: (
        "{}",
        '{"provider": {"model": "gpt-4o"}, "context": {"sections": [{"name": "S", "content": "Say."}]}}',
        '{"provider": {"name": "openai", "api_key_env": "KEY"}, "agents": {"zoe": {"role": "worker"}}}',
        '{"provider": {"model": "gpt-4o"',
        '{"colour": 1}',
    ),
    MCP: (
        '{"mcpServers": {"t": {"command": "tool", "args": ["${KEY}"]}}}',
        '{"mcpServers": {"t": {"command": "absent"}, "u": {"url": "https://x.test/${OTHER}"}}}',
        '{"mcpServers": ',
    ),
    GLOBAL: (
        "{}",
        '{"context": {"ancestor_depth": 0}}',
        '{"context": {"datetime": {"placement": "system"}}}',
    ),
    "/home/a/NEXUS.md": ("Rules.\n", "See @more.md and @absent.md\n", "Key: sk-" + "a1B2" * 12 + "\n"),
    "/home/a/more.md": ("More.\n", "More, and @NEXUS.md\n"),
    "/home/NEXUS.md": ("Above.\n", "\u200bHidden.\n"),
    "/home/a/.nexus3/AGENT.md": ("You are.\n", ""),
    "/home/a/.nexus3/skills/s/SKILL.md": ("---\nname: s\ndescription: Does.\n---\nDo.\n", "---\nname: 1\n"),
}
ENVIRONS: tuple[dict[str, str], ...] = ({}, {"KEY": "x"}, {"OTHER": "y"}, {"KEY": "", "PATH": "BIN"})
CHOICES = (None, ModelChoice("gpt-4o-mini"), ModelChoice("claude-sonnet-4-5", 50_000))


class Window:
    """One window of the folder, and the same window without any other beside it."""

    def __init__(self) -> None:
        self.overlays: dict[str, str] = {}
        self.environ: Mapping[str, str] = {}
        self.choice: ModelChoice | None = None
        self.snapshot: Snapshot | None = None
        self.alone: Snapshot | None = None

    def load(self, root: str, beside: Snapshot | None) -> None:
        environ = {name: value.replace("BIN", f"{root}/bin") for name, value in self.environ.items()}
        overlays = {root + path: text for path, text in self.overlays.items()}
        inputs = load_inputs(f"{root}/home", overlays=overlays, environ=environ, choice=self.choice)
        self.snapshot = load(f"{root}/home/a", inputs, previous=self.snapshot, beside=beside)
        self.alone = load(f"{root}/home/a", inputs, previous=self.alone)


def check(steps: list[tuple[Any, ...]]) -> None:
    """Take these steps with two windows; the second one is loaded beside the first."""
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.realpath(directory)
        tree = "".join(f"//- {path}\n{texts[0]}\n" for path, texts in TEXTS.items())
        write_fixture(tree, Path(root))
        program = Path(root, "bin", "tool")
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        first, second = Window(), Window()
        for what, *values in steps:
            if what == "disk":
                path, text = values
                Path(root + path).unlink(missing_ok=True)
                if text is not None:
                    Path(root + path).write_text(text, encoding="utf-8")
            elif what == "load":
                window = first if values[0] else second
                window.load(root, None if window is first else first.snapshot)
                assert window.snapshot is not None and window.alone is not None
                assert visible(window.snapshot) == visible(window.alone)
            else:
                window, value = (first if values[0] else second), values[1]
                if what == "type":
                    path, text = value
                    if text is None:
                        window.overlays.pop(path, None)
                    else:
                        window.overlays[path] = text
                else:
                    setattr(window, what, value)


def visible(snapshot: Snapshot) -> dict[str, Any]:
    """Everything in a snapshot but what saves work later; documents are known by their texts."""
    layers = msgspec.structs.asdict(snapshot.layers)
    del layers["memory"], layers["effective"]
    for name in ("documents", "good"):
        layers[name] = {path: document.text for path, document in layers[name].items()}
    provenance = {
        pointer: [(one.layer, one.path, one.span, one.value, one.wins, one.ignored) for one in chain]
        for pointer, chain in snapshot.effective.provenance.items()
    }
    settings = {"values": snapshot.effective.values, "provenance": provenance}
    return {**msgspec.structs.asdict(snapshot), "layers": layers, **settings}


def files() -> st.SearchStrategy[tuple[str, str | None]]:
    return st.sampled_from([(path, text) for path, texts in TEXTS.items() for text in (*texts, None)])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.booleans()),
        st.tuples(st.just("type"), st.booleans(), files()),
        files().map(lambda file: ("disk", *file)),
        st.tuples(st.just("environ"), st.booleans(), st.sampled_from(ENVIRONS)),
        st.tuples(st.just("choice"), st.booleans(), st.sampled_from(CHOICES)),
    ),
    max_size=25,
)


@given(STEPS)
def test_the_result_is_the_same_as_without_another_window(steps: list[tuple[Any, ...]]) -> None:
    check([*steps, ("load", True), ("load", False), ("load", False)])


def test_a_second_window_shares_what_is_equal(tmp_path: Path) -> None:
    """Also after a file has changed, and with another environment."""
    large = {path: texts[0] + "Words of a rule. " * 20_000 for path, texts in TEXTS.items() if ".md" in path}
    texts = {path: large.get(path, texts[0]) for path, texts in TEXTS.items()}
    tree = write_fixture("".join(f"//- {path}\n{text}\n" for path, text in texts.items()), tmp_path)
    folder = tree.path("/home/a")

    def window(previous: Snapshot | None = None, beside: Snapshot | None = None, **environ: str) -> Snapshot:
        inputs = load_inputs(tree.path("/home"), environ=environ)
        return load(folder, inputs, previous=previous, beside=beside)

    first = window()
    second = window(beside=first)
    assert second.prompt is first.prompt
    assert {name for name in LAYER_PARTS if not is_shared(first, second, name)} == set()
    Path(tree.path("/home/a/NEXUS.md")).write_text("New. " * 1_000, encoding="utf-8")
    first, second = window(previous=first), window(previous=second)
    assert second.prompt is not first.prompt
    second = window(previous=second, beside=first)
    assert second.prompt is first.prompt
    assert {name for name in LAYER_PARTS if not is_shared(first, second, name)} == set()
    third = window(beside=first, KEY="x")
    assert third.contents.credentials != first.contents.credentials
    assert third.contents.blocks is first.contents.blocks
    assert third.layers.texts is first.layers.texts
    assert third.effective is first.effective


LAYER_PARTS = ("layers", "effective", "servers", "problems", "documents", "texts", "good", "watch", "skills")


def is_shared(first: Snapshot, second: Snapshot, part: str) -> bool:
    return getattr(first.layers, part) is getattr(second.layers, part)


def test_a_second_window_costs_little_memory(tmp_path: Path) -> None:
    texts = {path: texts[0] + "Words of a rule. " * 20_000 for path, texts in TEXTS.items() if ".md" in path}
    tree = write_fixture("".join(f"//- {path}\n{text}\n" for path, text in texts.items()), tmp_path)
    for path in texts:
        os.utime(tree.path(path), (0, 0))  # a file that has just changed is read again
    inputs = load_inputs(tree.path("/home"))
    first = load(tree.path("/home/a"), inputs)

    def measure(beside: Snapshot | None) -> int:
        tracemalloc.start()
        second = load(tree.path("/home/a"), inputs, beside=beside)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del second
        return size

    alone = measure(None)
    assert min(measure(first) for _ in range(3)) < alone / 10  # other threads of the process allocate, too
