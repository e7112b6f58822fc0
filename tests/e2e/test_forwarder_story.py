"""What the shared daemon's windows are promised, whatever happens: each request is answered once, in time.

Hypothesis writes the story of two windows on one daemon: requests, edits, frames of any kind, deaths and
hangs of the daemon, windows that leave or are killed. `make fuzz TESTS=tests/e2e/test_forwarder_story.py`
tells more of them.
"""

import contextlib
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from nexus_daemon.shared import client
from support.editor import Editor, uri_of
from support.shared import SharedHome, shared_home
from support.waiting import block_until

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"),
    pytest.mark.timeout(600),
]

REPLY_S = 45.0  # a daemon that hangs is given up after 10 s; then another one starts, on a busy machine
LEAVE_S = 10.0  # that a process may outlive its editor
WINDOWS = (0, 1)
TRANSPORTS = ("", "tcp")  # of this system, and that of Windows

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(
    [
        "nexus/status",
        "nexus/context/layers",
        "nexus/context/usage",
        "nexus/context/preview",
        "nexus/session/append",
        "nexus/session/messages",
        "nexus/tokens/count",
        "textDocument/hover",
        "textDocument/codeLens",
        "workspace/executeCommand",
        "no/such/method",
        "$/noSuchMethod",
    ]
)
PARAMS: st.SearchStrategy[Any] = st.sampled_from(["right", "folder", "absent"]) | JSON
NOTIFICATIONS = st.sampled_from(
    [
        "initialized",
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
        "workspace/didChangeWatchedFiles",
        "workspace/didChangeWorkspaceFolders",
        "$/cancelRequest",
        "$/progress",
        "no/such/notification",
    ]
)
WINDOW = st.sampled_from(WINDOWS)


class Request(msgspec.Struct, frozen=True):
    """A request; `width` lengthens its id."""

    window: int
    method: str
    params: Any
    width: int


class Notification(msgspec.Struct, frozen=True):
    window: int
    method: str
    params: Any


class Odd(msgspec.Struct, frozen=True):
    """The body of a frame that is no request."""

    window: int
    body: str


class Typing(msgspec.Struct, frozen=True):
    window: int
    text: str


class Daemon(msgspec.Struct, frozen=True):
    """What becomes of the daemon."""

    event: Literal["killed", "stopped", "hangs", "goes on"]


class Leave(msgspec.Struct, frozen=True):
    """How a window ends; another one takes its place."""

    window: int
    how: Literal["killed", "pipe closed", "exit"]


class Pause(msgspec.Struct, frozen=True):
    seconds: float


def is_no_request(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not (isinstance(value, dict) and "method" in value)


BODIES = (
    JSON.map(json.dumps)
    | st.text(max_size=40)
    | st.builds(
        lambda value: json.dumps({"jsonrpc": "2.0", "id": value, "result": None}),
        st.none() | st.integers() | st.text(max_size=5),
    )
    | st.integers(1, 3_000).map(lambda depth: "[" * depth + "]" * depth)
).filter(is_no_request)
REQUESTS = st.builds(Request, WINDOW, METHODS, PARAMS, st.sampled_from([0, 0, 0, 5_000]))
EVENTS = st.builds(Daemon, st.sampled_from(["killed", "stopped", "hangs", "hangs", "goes on"]))
STEPS = st.one_of(
    REQUESTS,
    REQUESTS,
    EVENTS,
    EVENTS,
    st.builds(Notification, WINDOW, NOTIFICATIONS, PARAMS),
    st.builds(Odd, WINDOW, BODIES),
    st.builds(Typing, WINDOW, st.text(max_size=50) | st.just("{}") | st.just("x" * 70_000)),
    st.builds(Leave, WINDOW, st.sampled_from(["killed", "pipe closed", "exit"])),
    st.builds(Pause, st.sampled_from([0.0, 0.05, 0.3])),
)
ASKED = [Request(window, "nexus/status", "absent", 0) for window in WINDOWS]
KILLED, HANGS = Daemon("killed"), Daemon("hangs")


class Window:
    """An editor, its open document, and the requests whose replies it is promised."""

    def __init__(self, home: SharedHome) -> None:
        self.editor = editor = home.window()
        self.root = Path(tempfile.mkdtemp(dir=home.home))
        self.config = self.root / ".nexus3" / "config.json"
        self.ids: list[str] = []
        editor.hello(self.root)
        editor.open(self.config, "{}")

    def params(self, wanted: Any) -> dict[str, Any]:
        """The field of the parameters that a step wants, if any."""
        if wanted == "absent":
            return {}
        document = {"uri": uri_of(self.config)}
        place = {"position": {"line": 0, "character": 0}}
        right = {"workspaceFolder": uri_of(self.root), "textDocument": document, **place, "texts": ["a"]}
        known = {"right": right, "folder": {"workspaceFolder": uri_of(self.root)}}
        return {"params": known.get(wanted, wanted) if isinstance(wanted, str) else wanted}

    def ask(self, step: Request) -> None:
        name = f"{len(self.ids)}-{'x' * step.width}"
        self.ids.append(name)
        self.send({"id": name, "method": step.method, **self.params(step.params)})

    def send(self, message: dict[str, Any]) -> None:
        self.editor.send({"jsonrpc": "2.0", **message})

    def replies(self) -> Counter[str]:
        """How often each request was answered."""
        return Counter(
            message["id"]
            for message in list(self.editor.received)
            if "method" not in message and isinstance(message.get("id"), str)
        )

    def is_answered(self) -> bool:
        return set(self.ids) <= set(self.replies())


def wait_ended(editor: Editor) -> None:
    """Wait until the process that the editor started has ended."""
    block_until(lambda: editor.process.poll() is not None, LEAVE_S)


class Story:
    """Two windows and their daemon."""

    def __init__(self, home: SharedHome) -> None:
        self.home = home
        self.hanging: int | None = None  # the process of a daemon that hangs
        self.windows = [Window(home) for _ in WINDOWS]

    def tell(self, step: Any) -> None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, Daemon):
            self.befall(step.event)
        elif isinstance(step, Leave):
            self.leave(step)
        else:
            window = self.windows[step.window]
            if isinstance(step, Request):
                window.ask(step)
            elif isinstance(step, Notification):
                window.send({"method": step.method, **window.params(step.params)})
            elif isinstance(step, Odd):
                body = step.body.encode("utf-8", "surrogatepass")
                window.editor.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            else:
                window.editor.type(window.config, step.text)

    def befall(self, event: str) -> None:
        pid = client.lock_owner(self.home.place)
        if event == "goes on" and self.hanging is not None:
            self.go_on()
        elif event == "stopped" and self.hanging is None and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        elif event == "killed" and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.hanging = None
        elif event == "hangs" and self.hanging is None and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self.hanging = pid

    def go_on(self) -> None:
        if self.hanging is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.hanging, signal.SIGCONT)
            self.hanging = None

    def leave(self, step: Leave) -> None:
        """End a window: what it was promised is promised no more, but its process has to end."""
        editor = self.windows[step.window].editor
        if step.how == "killed":
            editor.process.kill()
        elif step.how == "exit":
            editor.send({"jsonrpc": "2.0", "id": "bye", "method": "shutdown"})
            editor.send({"jsonrpc": "2.0", "method": "exit"})
        editor.close_input()
        wait_ended(editor)
        editor.kill()
        self.go_on()  # the next window waits for a daemon that greets it
        self.windows[step.window] = Window(self.home)

    def end(self) -> None:
        """Each request has its one reply, the windows go on, and all leave with their editors."""
        for window in self.windows:
            block_until(window.is_answered, REPLY_S)
        self.go_on()
        for window in self.windows:
            window.ask(Request(0, "nexus/status", "absent", 0))
            block_until(window.is_answered, REPLY_S)
            assert set(window.replies().values()) == {1}
            editor = window.editor
            assert editor.process.poll() is None, editor.stderr
            assert "Traceback" not in editor.stderr, editor.stderr
            editor.close_input()
            wait_ended(editor)

    def close(self) -> None:
        self.go_on()
        for window in self.windows:
            window.editor.kill()


@contextlib.contextmanager
def story(transport: str) -> Iterator[Story]:
    with (
        tempfile.TemporaryDirectory() as directory,
        shared_home(Path(directory, "home"), transport) as home,
    ):
        told = Story(home)
        try:
            yield told
        finally:
            told.close()


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a step takes seconds: nothing is made smaller
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(st.sampled_from(TRANSPORTS), st.lists(STEPS, min_size=6, max_size=20))
@example("", [HANGS, *ASKED])
@example("tcp", [*ASKED, KILLED, *ASKED, KILLED, *ASKED])
@example("tcp", [*ASKED, HANGS, *ASKED])
@example("", [HANGS, Typing(0, "x" * 70_000), Leave(0, "pipe closed"), HANGS, *ASKED, Leave(1, "killed")])
def test_every_request_has_one_reply_and_no_process_outlives_its_editor(
    transport: str, steps: list[Any]
) -> None:
    with story(transport) as told:
        for step in steps:
            told.tell(step)
        told.end()
