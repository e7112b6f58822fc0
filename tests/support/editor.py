"""An editor for tests: a recording client of `nexus serve`, with a home directory of its own.

1. What the daemon said is looked at as a state: `shown(path)` are the diagnostics that an editor shows.
2. A request that follows an edit sees it, and its diagnostics arrive before the reply: no waiting is needed.
3. For what happens by itself (files on disk, notifications) `until` and `eventually` wait, bounded.
"""

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from nexus_daemon.lsp.convert import path_to_uri
from support.client import TIMEOUT_S, Client, Message
from support.fixture import Fixture, write_fixture

PUBLISH = "textDocument/publishDiagnostics"
DID_CHANGE = "nexus/context/didChange"
PROBE_S = 0.25
SERVE = "from nexus_daemon.cli import main; raise SystemExit(main(['serve']))"

T = TypeVar("T")


def environ(home: Path) -> dict[str, str]:
    """The variables of a process whose user lives in `home`."""
    return {
        "HOME": str(home),
        "NEXUS_HOME": str(home / ".nexus3"),
        "NEXUS_STATE": str(home / "state"),
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
    }


class Editor(Client):
    """One editor and its daemon. Paths are given as Path or str and sent as URIs."""

    def __init__(
        self,
        home: Path,
        *,
        before: str = "",
        arguments: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`before` is Python that the daemon's process runs before it serves; `arguments` are of `serve`."""
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.versions: dict[str, int] = {}
        self._numbers = itertools.count(1)
        serve = ["-c", f"{before}\n{SERVE}"] if before else ["-m", "nexus_daemon", "serve", *arguments]
        super().__init__([sys.executable, *serve], cwd=home, env={**environ(home), **(variables or {})})

    # ------------------------------------------------------------ life

    def hello(self, *folders: str | Path, encodings: list[str] | None = None, **params: object) -> Any:
        """Introduce the editor with its workspace folders."""
        listed = [named(folder) for folder in folders]
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        hello: Message = {"processId": os.getpid(), "rootUri": None, "capabilities": general}
        result = self.request("initialize", {**hello, "workspaceFolders": listed, **params})
        self.notify("initialized", {})
        return result

    def tree(self, fixture: str) -> Fixture:
        """Write the files of a fixture into a new directory of the home."""
        root = self.home / f"work{next(self._numbers)}"
        root.mkdir()
        return write_fixture(fixture, root)

    def open_folder(self, fixture: str, path: str = "/a") -> str:
        """Write the files of a fixture and add a folder of them; return the folder's path."""
        folder = self.tree(fixture).path(path)
        self.add(folder)
        return folder

    def add(self, *folders: str | Path) -> None:
        self._fold(folders, ())

    def remove(self, *folders: str | Path) -> None:
        self._fold((), folders)

    def _fold(self, added: tuple[str | Path, ...], removed: tuple[str | Path, ...]) -> None:
        event = {"added": [named(one) for one in added], "removed": [named(one) for one in removed]}
        self.notify("workspace/didChangeWorkspaceFolders", {"event": event})

    def goodbye(self) -> None:
        """End as LSP says; the daemon must have logged no error."""
        self.stop()
        errors = self.errors()
        assert errors == [], f"{errors}\n{self.stderr}"
        assert "Traceback" not in self.stderr

    def errors(self) -> list[str]:
        """What the daemon logged as an error."""
        logged = [one["params"] for one in self.said("window/logMessage")]
        return [one["message"] for one in logged if one["type"] == 1]

    # ------------------------------------------------------------ documents

    def open(self, path: str | Path, text: str) -> None:
        uri = uri_of(path)
        self.versions[uri] = 1
        item = {"uri": uri, "languageId": "json", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def type(self, path: str | Path, text: str) -> int:
        """Replace the text of an open document; return the new version."""
        uri = uri_of(path)
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self.versions[uri]

    def close(self, path: str | Path) -> None:
        del self.versions[uri_of(path)]
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri_of(path)}})

    # ------------------------------------------------------------ what is known

    def ask(self, method: str, folder: str | Path, **params: object) -> Any:
        """A `nexus/*` request about a folder."""
        return self.request(f"nexus/{method}", {"workspaceFolder": uri_of(folder), **params})

    def layers(self, folder: str | Path) -> Any:
        """A folder's layers. When the reply is there, the diagnostics of every earlier edit are, too."""
        return self.ask("context/layers", folder)

    def said(self, method: str) -> list[Message]:
        return [message for message in list(self.received) if message.get("method") == method]

    def published(self, path: str | Path) -> list[Message]:
        """Everything that was published about a file, oldest first."""
        uri = uri_of(path)
        return [one["params"] for one in self.said(PUBLISH) if one["params"]["uri"] == uri]

    def shown(self, path: str | Path) -> list[Message]:
        """The diagnostics of a file that an editor shows now."""
        published = self.published(path)
        found: list[Message] = published[-1]["diagnostics"] if published else []
        return found

    def codes(self, path: str | Path) -> list[str]:
        return [one["code"] for one in self.shown(path)]

    def changes(self, folder: str | Path) -> list[Message]:
        """Every `nexus/context/didChange` of a folder, oldest first."""
        uri = uri_of(folder)
        return [one["params"] for one in self.said(DID_CHANGE) if one["params"]["workspaceFolder"] == uri]

    # ------------------------------------------------------------ waiting

    def _receive(self, deadline: float) -> None:
        try:
            super()._receive(deadline)
        except (TimeoutError, EOFError) as error:
            last = [str(message)[:300] for message in self.received[-5:]]
            raise type(error)("\n".join(["the last messages were", *last, "stderr:", self.stderr])) from None

    def until(self, condition: Callable[[], T], timeout: float = TIMEOUT_S) -> T:
        """Wait for messages until a condition on what was received holds; return what it returned."""
        deadline = self.waited + timeout
        while not (found := condition()):
            self._receive(deadline)
        return found

    def eventually(
        self, probe: Callable[[], T], wanted: Callable[[T], object], timeout: float = TIMEOUT_S
    ) -> T:
        """Ask again after each message, and now and then, until the answer is the wanted one."""
        deadline = self.waited + timeout
        while not wanted(found := probe()):
            assert self.waited < deadline, f"still {found!r}; stderr: {self.stderr}"
            try:
                self._receive(min(deadline, self.waited + PROBE_S))
            except TimeoutError:
                continue
        return found


@contextmanager
def editor_in(home: Path, *folders: str | Path, **hello: Any) -> Iterator[Editor]:
    """An editor that has said hello, and says goodbye unless the test failed."""
    with Editor(home) as editor:
        editor.hello(*folders, **hello)
        yield editor
        editor.goodbye()


def uri_of(path: str | Path) -> str:
    """The URI of a path, which has no colon; a URI stays as it is."""
    text = str(path)
    return text if ":" in text else path_to_uri(text)


def named(folder: str | Path) -> dict[str, str]:
    return {"uri": uri_of(folder), "name": str(folder).rstrip("/").rsplit("/", 1)[-1]}


def apply(text: str, edits: list[Mapping[str, Any]]) -> str:
    """The text after LSP text edits, in UTF-16 positions."""
    lines = text.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(len(line) for line in lines)]

    def offset(position: Mapping[str, int]) -> int:
        line = "".join(lines[position["line"] : position["line"] + 1])
        before = line.encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
        return int(starts[position["line"]]) + len(before)

    for edit in sorted(edits, key=lambda edit: offset(edit["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text
