"""A daemon that logs everything: whatever is typed, no secret is in what it sends or logs."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.canaries import FOLDER, STATES, Canary, canaries
from support.client import Client
from support.editor import Editor, environ, uri_of

VERBOSE = (
    "import logging, sys; logging.getLogger().setLevel(logging.DEBUG); "
    "logging.Logger.setLevel = lambda *_: None; "
    "from nexus_daemon.process.logs import process_log; "
    "process_log.DEFAULT_LEVEL = process_log.STDERR_LEVEL = logging.DEBUG; "
    "from nexus_daemon.cli import main; sys.exit(main(['serve']))"
)
REQUESTS = (
    "config/effective",
    "context/preview",
    "context/usage",
    "context/assemble",
    "agent/list",
    "session/list",
)
"""What carries settings or problems, beside `context/layers`."""


class Verbose(Editor):
    """An editor whose daemon logs at level DEBUG."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.kill()
        env = {**environ(home), "NEXUS_LOG": str(home / "log")}
        Client.__init__(self, [sys.executable, "-c", VERBOSE], cwd=home, env=env)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def editor(root: Path) -> Iterator[Verbose]:
    (root / FOLDER).mkdir()
    with Verbose(root / "home") as editor:
        editor.hello(root / FOLDER)
        yield editor
        editor.goodbye()
        assert "DEBUG" in editor.stderr
    log = (root / "home" / "log" / "nexus.log").read_text(encoding="utf-8")
    assert " DEBUG " in log
    assert {piece for canary in canaries() for piece in canary.pieces if piece in log} == set()


def check(editor: Verbose, root: Path, canary: Canary, state: str) -> None:
    """Type a canary's file in a state, ask for all that tells of it, and look at everything that came."""
    path, begun = root / canary.path, len(editor.received)
    editor.open(path, "{}" if path.suffix == ".json" else "Text.\n")
    editor.type(path, canary.written(STATES[state] if path.suffix == ".json" else None))
    editor.layers(root / FOLDER)
    for shown in editor.shown(path):
        document = {"textDocument": {"uri": uri_of(path)}, "range": shown["range"]}
        editor.request("textDocument/codeAction", {**document, "context": {"diagnostics": [shown]}})
    for method in REQUESTS if path.suffix == ".json" else ():
        editor.ask(method, root / FOLDER)
    editor.close(path)
    editor.layers(root / FOLDER)
    came = json.dumps(editor.received[begun:], ensure_ascii=False)
    assert not any(piece in came for piece in canary.pieces), (canary.name, state)
    assert not any(piece in editor.stderr for piece in canary.pieces), (canary.name, state)


@pytest.mark.parametrize("state", ["as it is", "comma missing before", "no quotes"])
def test_nothing_sends_or_logs_a_secret(editor: Verbose, root: Path, state: str) -> None:
    for canary in canaries():
        if canary.path.endswith(".json") or state == "as it is":
            check(editor, root, canary, state)
