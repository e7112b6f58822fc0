"""What a forwarder keeps of an editor's messages, and what the next daemon is told."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.api.methods import METHODS, OFFER
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.shared import tracker
from nexus_daemon.shared.goodbye import OWN_ID
from nexus_daemon.shared.tracker import REPEATABLE, Tracker
from support.client import frame

URI = "file:///a.json"
INITIALIZE = {"id": 1, "method": "initialize", "params": {"capabilities": {}, "workspaceFolders": []}}


def message(method: str, message_id: object = None, /, **params: object) -> dict[str, Any]:
    about = {} if message_id is None else {"id": message_id}
    return {"jsonrpc": "2.0", **about, "method": method, "params": params}


def opened(text: str, version: int = 1, uri: str = URI) -> dict[str, Any]:
    item = {"uri": uri, "languageId": "json", "version": version, "text": text}
    return message("textDocument/didOpen", textDocument=item)


def edited(version: int, *changes: dict[str, Any], uri: str = URI) -> dict[str, Any]:
    return message(
        "textDocument/didChange",
        textDocument={"uri": uri, "version": version},
        contentChanges=list(changes),
    )


def bodies(data: bytes) -> Iterator[dict[str, Any]]:
    while data:
        header, _, rest = data.partition(b"\r\n\r\n")
        length = int(header.removeprefix(b"Content-Length: "))
        yield json.loads(rest[:length])
        data = rest[length:]


def fed(*messages: dict[str, Any]) -> Tracker:
    tracked = Tracker()
    tracked.feed(b"".join(map(frame, messages)))
    return tracked


def check(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """What the next daemon is told after these messages; all requests but these have had their replies."""
    tracked = fed({"jsonrpc": "2.0", **INITIALIZE}, *messages)
    tracked.replied("1")
    first, *rest = bodies(b"".join(tracked.replay()))
    assert first == {"jsonrpc": "2.0", **INITIALIZE, "id": f"{OWN_ID}initialize"}
    return rest


def test_the_replay() -> None:
    initialized, trace = message("initialized"), message("$/setTrace", value="verbose")
    first, second = opened("{}"), edited(2, {"text": "[]"})
    other = opened("x", uri="file:///b.md")
    closed = message("textDocument/didClose", textDocument={"uri": "file:///b.md"})
    assert check(initialized, trace, first, other, second, closed) == [initialized, trace, first, second]


def test_the_folders_keep_their_own_trust() -> None:
    a, b = ({"uri": f"file:///{name}", "name": name, "trusted": name == "a"} for name in "ab")
    changes = [
        message("workspace/didChangeWorkspaceFolders", event={"added": [a, b], "removed": []}),
        message("workspace/didChangeWorkspaceFolders", event={"added": [], "removed": [b]}),
    ]
    assert check(*changes) == [
        message(
            "workspace/didChangeWorkspaceFolders",
            event={"added": [a], "removed": [{"uri": "file:///b", "name": ""}]},
        )
    ]


def test_the_session_that_a_folder_shows() -> None:
    asked = [message("nexus/session/focus", n, workspaceFolder="file:///a", session=f"s{n}") for n in (5, 6)]
    command = {"command": "nexus.session.focus", "arguments": [{"workspaceFolder": "file:///b"}]}
    assert check(*asked, message("workspace/executeCommand", 7, **command)) == [
        {**asked[1], "id": f"{OWN_ID}focus-0"},
        message("nexus/session/focus", f"{OWN_ID}focus-1", workspaceFolder="file:///b"),
    ]


def test_an_initialize_without_a_reply_is_sent_as_it_was() -> None:
    tracked = fed({"jsonrpc": "2.0", **INITIALIZE})
    assert list(bodies(b"".join(tracked.replay()))) == [{"jsonrpc": "2.0", **INITIALIZE}]
    assert (tracked.take_failures(None), tracked.pending_again()) == ([], [])


@pytest.mark.parametrize(
    ("method", "params", "running", "again"),
    [
        ("nexus/context/usage", {}, None, True),
        ("nexus/session/append", {}, None, False),
        ("nexus/session/append", {"idempotencyKey": ""}, None, False),
        ("nexus/session/append", {"idempotencyKey": "k"}, None, True),
        ("nexus/session/append", {}, [], True),
        ("nexus/session/append", {}, ["7"], False),
        ("nexus/session/append", {}, ['"7"'], True),
        ("nexus/agent/spawn", {}, None, False),
        ("workspace/executeCommand", {"command": "nexus.tokens.count", "arguments": [{}]}, None, True),
        ("workspace/executeCommand", {"command": "nexus.agent.spawn", "arguments": [{}]}, None, False),
        ("shutdown", {}, None, True),
        ("unknown/method", {}, None, False),
    ],
)
def test_which_requests_the_next_daemon_gets_again(
    method: str, params: dict[str, Any], running: list[str] | None, again: bool
) -> None:
    tracked = fed(message(method, 7, **params))
    failures = [body for data in tracked.take_failures(running) for body in bodies(data)]
    assert [body["id"] for body in failures] == ([] if again else [7])
    assert [body["error"]["data"]["code"] for body in failures] == ([] if again else ["daemon-restarted"])
    assert tracked.pending_again() == ([frame(message(method, 7, **params))] if again else [])


def test_a_cancelled_request_is_not_sent_again() -> None:
    tracked = fed(message("nexus/context/usage", 7), message("$/cancelRequest", id=7))
    assert [body["id"] for data in tracked.take_failures(None) for body in bodies(data)] == [7]


def test_what_the_editor_registered_is_not_registered_again() -> None:
    content = {"workspace": {"textDocumentContent": {"dynamicRegistration": True}}}
    tracked = fed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": content}})
    tracked.replied("1")
    (again,) = bodies(b"".join(tracked.replay()))
    assert again["params"]["capabilities"] == content  # nothing is registered yet
    tracked.feed(frame(message("initialized")))
    again, _ = bodies(b"".join(tracked.replay()))
    assert again["params"]["capabilities"]["workspace"] == {
        "textDocumentContent": {"dynamicRegistration": False}
    }


def test_every_request_is_known_to_be_repeatable_or_not() -> None:
    """A new method is looked at here: does it change nothing, or the same when it comes twice?"""
    changing = {
        "nexus/chat/send",
        "nexus/session/create",
        "nexus/session/append",
        "nexus/session/fork",
        "nexus/session/rename",
        "nexus/session/clear",
        "nexus/session/delete",
        "nexus/session/compact",
        "nexus/session/undoCompaction",
        "nexus/session/rebase",
        "nexus/agent/spawn",
        "nexus/agent/dispose",
        "nexus/agent/message",
        "nexus/agent/call",
        "nexus/event/publish",
        "nexus/mcp/call",
        "nexus/mcp/login",
        "nexus/workspace/init",
    }
    documents = {name for name in OFFER.features if name.startswith(("textDocument/", "workspace/"))}
    requests = {name for name in documents if not name.partition("/")[2].startswith("did")}
    assert METHODS.keys() | requests == changing | REPEATABLE
    assert changing & REPEATABLE == set()


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: x\r\n\r\n", b"x" * 9000], ids=["http", "no", "long"]
)
def test_bytes_that_are_no_frames_end_the_tracking(data: bytes) -> None:
    tracked = Tracker()
    tracked.feed(data)
    tracked.feed(frame(opened("{}")))
    assert (tracked.is_lost, list(tracked.replay())) == (True, [])


@given(st.integers(1, 60))
def test_the_bytes_may_come_in_any_pieces(size: int) -> None:
    data = b"".join(map(frame, ({"jsonrpc": "2.0", **INITIALIZE}, opened("{}"), message("a/b", 2))))
    data += b"Content-Length: 9\r\n\r\n{"
    tracked = Tracker()
    for start in range(0, len(data), size):
        tracked.feed(data[start : start + size])
    assert [body["method"] for body in bodies(b"".join(tracked.replay()))] == ["initialize", OPEN]
    assert (list(tracked.pending), tracked.incomplete) == (["1", "2"], b"Content-Length: 9\r\n\r\n{")


OPEN = "textDocument/didOpen"
_positions = st.fixed_dictionaries({"line": st.integers(0, 4), "character": st.integers(0, 12)})
_changes = st.fixed_dictionaries(
    {"text": st.text("a😀é\n\r ", max_size=5)},
    optional={"range": st.fixed_dictionaries({"start": _positions, "end": _positions})},
)


@given(
    st.lists(st.lists(_changes, min_size=1, max_size=3), min_size=1, max_size=8),
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
)
def test_edits_that_are_merged_give_the_daemons_text(edits: list[list[Any]], encoding: str) -> None:
    capabilities = {"general": {"positionEncodings": [encoding]}}
    initialize = {**INITIALIZE, "params": {"capabilities": capabilities}}
    messages = [opened("ab😀c\r\ndef\nx\n")]
    messages += [edited(number + 2, *changes) for number, changes in enumerate(edits)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracker, "MOST_EDITS", 0)
        tracked = fed({"jsonrpc": "2.0", **initialize}, *messages)
    replayed = [body for body in bodies(b"".join(tracked.replay())) if "textDocument" in body["method"]]
    assert _text(replayed, encoding) == _text(messages, encoding)
    assert len(replayed) <= len(messages)


def _text(messages: list[dict[str, Any]], encoding: str) -> tuple[str, int | None]:
    """The text and version that a daemon has after these messages."""
    import msgspec

    from nexus_daemon.lsp.envelope import params_of, params_type

    server = NexusServer()
    server.documents.encoding = encoding
    for each in messages:
        raw = msgspec.Raw(json.dumps(each["params"]).encode())
        params = params_of(raw, params_type(each["method"]))
        if each["method"] == OPEN:
            server.documents.open(params.text_document)
        else:
            document = params.text_document
            server.documents.change(document.uri, document.version, params.content_changes)
    document = server.documents.get(URI)
    assert document is not None
    return document.text, document.version
