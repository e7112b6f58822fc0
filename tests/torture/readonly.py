"""A state directory that cannot be written: everything works, nothing is kept, and the user is told.

1. The directory is on a file system mounted for reading only, where that may be done; root may write
   anything else. Others take away their own right to write.
2. As a library: what is there can be read, a turn can be appended and is found, `persists` is False and
   `notice` says why.
3. As a daemon, with `NEXUS_STATE`: the same through `nexus serve`, which shows the notice and answers
   `nexus/status` with it.
4. Afterwards no file has changed, and none is there that was not.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw

from support.client import Client
from support.editor import Editor, environ
from torture.figures import Figure, Outcome, Watch, nothing_wrong
from torture.ledgers import MAIN, NAME, opened, turn
from torture.mounts import memory, read_only, why_not

BEFORE = 3  # turns
SHOWN = "window/showMessage"


class Reader(Editor):
    """An editor whose daemon has a state directory of its own."""

    def __init__(self, home: Path, state: Path) -> None:
        variables = environ(home) | {"NEXUS_STATE": str(state)}
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        Client.__init__(self, [sys.executable, "-m", "nexus_daemon", "serve"], cwd=home, env=variables)


def run(_: int = 1) -> Outcome:
    """One directory, through the library and through a daemon."""
    watch = Watch()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nexus-readonly-") as root:
        folder = Path(root) / "work"
        folder.mkdir()
        workspace = os.path.realpath(folder)
        with _unwritable(Path(root) / "state", workspace) as state:
            before = {file.name: file.read_bytes() for file in state.iterdir()}
            wrong += [f"library: {line}" for line in _wrong_in_library(state, workspace)]
            wrong += [f"daemon: {line}" for line in _wrong_in_daemon(Path(root) / "home", state, folder)]
            after = {file.name: file.read_bytes() for file in state.iterdir()}
    figures = (
        Figure("asked of the library and of a daemon", 2),
        Figure(
            "files changed or made",
            sum(before.get(name) != after.get(name) for name in before | after),
            at_most=0,
        ),
        nothing_wrong(wrong),
    )
    return Outcome("read-only directory", figures, tuple(wrong), seconds=watch.seconds)


@contextlib.contextmanager
def _unwritable(folder: Path, workspace: str) -> Iterator[Path]:
    """A directory with a ledger in it that nobody may write."""
    with contextlib.ExitStack() as stack:
        mounted = why_not() is None
        if mounted:
            stack.enter_context(memory(folder, "16m"))
        else:
            folder.mkdir()
        with opened(folder / NAME) as ledger:
            for number in range(BEFORE):
                ledger.append(workspace, MAIN, turn(f"before-{number}"))
        if mounted:
            read_only(folder)
        else:
            (folder / NAME).chmod(0o400)
            folder.chmod(0o500)
            stack.callback(folder.chmod, 0o700)
        yield folder


def _wrong_in_library(state: Path, workspace: str) -> Iterator[str]:
    with opened(state / NAME) as ledger:
        if ledger.persists or not ledger.notice or str(state) not in ledger.notice:
            yield f"it says persists={ledger.persists}, and {ledger.notice!r}"
        ledger.append(workspace, MAIN, turn("now"))
        history = ledger.history(workspace, MAIN)
        texts = [str(held.message.content).partition(" ")[0] for held in history.messages] if history else []
        if texts != [*(f"before-{number}" for number in range(BEFORE)), "now"]:
            yield f"the history is {texts}"
        if [hit.seq for hit in ledger.pages.search("now")] != [BEFORE + 1]:
            yield "what was appended is not found"
    left = [each for each in apsw.connections() if each.filename.startswith(str(state))]
    if left:
        yield f"{len(left)} connections to the file were left open"


def _wrong_in_daemon(home: Path, state: Path, folder: Path) -> Iterator[str]:
    with Reader(home, state) as editor:
        editor.hello(folder)
        message = {"role": "user", "content": "said to a daemon"}
        editor.ask("session/append", folder, messages=[message])
        held = editor.ask("session/messages", folder)["messages"]
        if len(held) != BEFORE + 1:
            yield f"it has {len(held)} messages instead of {BEFORE + 1}"
        status = editor.request("nexus/status")["ledger"]
        if status["persists"] or str(state) not in str(status["notice"]):
            yield f"its status is {status}"
        shown = [one["params"]["message"] for one in editor.said(SHOWN)]
        if not any(str(state) in text for text in shown):
            yield f"it did not tell the user that nothing is kept, but {shown}"
        editor.goodbye()
