"""How quick the panel of the VS Code extension is in a real VS Code, beside a bare web view."""

import shutil
import subprocess
from collections.abc import Iterator

import msgspec
from benchmarks.promises import ROOT, Measured, Promise, Run, Series, UnavailableError, promises

SCRIPT = ROOT / "vscode-extension" / "scripts" / "e2e.mjs"
BARE = "a bare web view"
MARKDOWN = "VS Code's Markdown extension"


class _View(msgspec.Struct):
    """Milliseconds from the command to the first figures, and from a key to another figure."""

    first: list[float]
    edits: list[float]


class _Activation(msgspec.Struct):
    ours: list[float]
    markdown: list[float]


class _Figures(msgspec.Struct):
    bare: _View
    panel: _View
    many: _View
    activation: _Activation


@promises(
    Promise("command to the first painted figures", 3.0, BARE),
    Promise("edit to the panel's figure", 3.0, BARE),
    Promise("edit to the panel's figure, 5,000 rows", 8.0, BARE),
    Promise("activation", 0.25, MARKDOWN),
)
def panel(run: Run) -> Iterator[Measured]:
    """Windows of the tests' VS Code, one after the other; the first figures and typed words in each."""
    figures = _measure(run)
    yield "command to the first painted figures", Series(figures.panel.first), Series(figures.bare.first)
    yield "edit to the panel's figure", Series(figures.panel.edits), Series(figures.bare.edits)
    yield "edit to the panel's figure, 5,000 rows", Series(figures.many.edits), Series(figures.bare.edits)
    yield "activation", Series(figures.activation.ours), Series(figures.activation.markdown)


def _measure(run: Run) -> _Figures:
    """What vscode-extension/test/bench/panel.ts writes.

    UnavailableError without node; CalledProcessError if it fails.
    """
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise UnavailableError("needs Node.js 20 or later with npm")
    file = run.root / "panel.json"
    rounds, edits = run.pick(full=4, quick=2), run.pick(full=12, quick=5)
    # the script makes a home of its own, and needs this user's to fetch a code-server once
    subprocess.run([node, SCRIPT, "--bench", file, str(rounds), str(edits)], capture_output=True, check=True)
    return msgspec.json.decode(file.read_bytes(), type=_Figures)
