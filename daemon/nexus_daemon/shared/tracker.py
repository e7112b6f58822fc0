"""Track what the editor has told the daemon, so that the next daemon can be told the same.

1. It keeps `initialize`, `initialized`, changes of the workspace folders, the open documents, the trace
   level, the session that each folder shows, and the requests that have no reply yet.
2. An open document is stored as its `didOpen` and the edits since. Once the edits are much larger than the
   text, they are merged into it, with the daemon's own rules.
3. The next daemon gets a request again if it is in `REPEATABLE`, which means that it changes nothing, or the
   same when it comes twice. It also gets again an append with an idempotency key, and requests that the
   daemon said it had not begun. All other requests fail, since it is not known whether they were carried out.
4. A request that two daemons had and did not answer fails, since it may be what ends them.
5. Messages that the tracker cannot parse, such as parameters 1,500 levels deep, are left out of the replay.
   If such a message is a request, it fails with its daemon.
6. Bytes that are not frames end the tracking. The daemon ends such a connection anyway.
"""

import json
import re

from nexus_daemon.shared.goodbye import OWN_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

MOST_EDITS = 256 * 1024  # bytes of edits of a document that are kept beside a smaller text
MOST_DELIVERIES = 2
_LENGTH = re.compile(rb"(?:\A|\r\n)content-length[ \t]*:[ \t]*(\d{1,9})[ \t]*\r\n", re.IGNORECASE)
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,19}|"(?:[^"\\]|\\.)*")')
_METHOD = re.compile(rb'"method"\s*:\s*"([^"\\]*)"')
_HEAD = 4 * 1024  # bytes of a body that cannot be read, in which its id is looked for
_HEADER_END = b"\r\n\r\n"
_LONGEST_HEADER = 8 * 1024

REPEATABLE = frozenset(
    {
        "textDocument/codeAction",
        "textDocument/codeLens",
        "textDocument/completion",
        "textDocument/definition",
        "textDocument/diagnostic",
        "textDocument/documentHighlight",
        "textDocument/documentLink",
        "textDocument/documentSymbol",
        "textDocument/foldingRange",
        "textDocument/hover",
        "textDocument/implementation",
        "textDocument/inlayHint",
        "textDocument/prepareRename",
        "textDocument/references",
        "textDocument/rename",
        "textDocument/selectionRange",
        "textDocument/semanticTokens/full",
        "workspace/diagnostic",
        "workspace/symbol",
        "workspace/textDocumentContent",
        "workspace/willRenameFiles",
        "nexus/context/assemble",
        "nexus/context/preview",
        "nexus/context/usage",
        "nexus/context/layers",
        "nexus/config/effective",
        "nexus/session/list",
        "nexus/session/find",
        "nexus/session/turns",
        "nexus/session/setParameters",
        "nexus/session/messages",
        "nexus/session/transcript",
        "nexus/session/receipt",
        "nexus/session/export",
        "nexus/session/search",
        "nexus/session/focus",
        "nexus/model/pick",
        "nexus/mcp/servers",
        "nexus/mcp/approve",
        "nexus/mcp/revoke",
        "nexus/mcp/start",
        "nexus/mcp/stop",
        "nexus/mcp/refresh",
        "nexus/mcp/logout",
        "nexus/mcp/search",
        "nexus/mcp/prompt",
        "nexus/mcp/resource",
        "nexus/memory/query",
        "nexus/memory/list",
        "nexus/knowledge/query",
        "nexus/knowledge/status",
        "nexus/skill/read",
        "nexus/agent/list",
        "nexus/assistant/context",
        "nexus/explain",
        "nexus/assistant/list",
        "nexus/view/list",
        "nexus/assistant/readers",
        "nexus/assistant/session",
        "nexus/assistant/sessions",
        "nexus/conversation/list",
        "nexus/conversation/search",
        "nexus/conversation/transcript",
        "nexus/agent/get",
        "nexus/agent/messages",
        "nexus/event/list",
        "nexus/tokens/count",
        "nexus/debug/trace",
        "nexus/status",
    }
)
_REPEATABLE_WITH_KEY = frozenset({"nexus/session/append"})
RESTARTED = "daemon-restarted"


class Tracker:
    """The state of one editor's connection, built from the bytes that the editor sends (`feed`)."""

    def __init__(self) -> None:
        self.is_lost = False
        """Whether the bytes were not frames, so that nothing can be replayed."""
        self.is_shut_down = False
        self.has_exited = False
        self.pending: dict[str, _Request] = {}
        """The requests without a reply, by their ids as JSON."""
        self._data = bytearray()
        self._initialize: bytes | None = None
        self._initialized: bytes | None = None
        self._trace: bytes | None = None
        self._folders: dict[str, Any] = {}  # changes since `initialize`: URI → the folder, None: removed
        self._focus: dict[str, Any] = {}
        self._documents: dict[str, _Document] = {}

    @property
    def incomplete(self) -> bytes:
        """Return the beginning of a frame whose rest the editor has not sent yet."""
        return bytes(self._data)

    def feed(self, data: bytes) -> None:
        """Take bytes that the editor sent."""
        if self.is_lost:
            return
        self._data += data
        while (body := self._next()) is not None:
            try:
                self._take(body)
            except Exception:  # noqa: BLE001 - whatever the editor says, it goes on
                self._take_unreadable(body)

    def replied(self, message_id: str) -> bool:
        """Forget a request that has its reply. Return whether it was waiting for one."""
        return self.pending.pop(message_id, None) is not None

    def replay(self) -> "Iterator[bytes]":
        """Yield the frames that bring a new daemon to this state."""
        if self._initialize is not None:
            yield self._initialize_again()
        if self._initialized is not None:
            yield self._initialized
        if self._trace is not None:
            yield self._trace
        if self._folders:
            added = [folder for folder in self._folders.values() if folder is not None]
            removed = [{"uri": uri, "name": ""} for uri, folder in self._folders.items() if folder is None]
            event = {"added": added, "removed": removed}
            changes = {"method": "workspace/didChangeWorkspaceFolders", "params": {"event": event}}
            yield frame({"jsonrpc": "2.0", **changes})
        for document in self._documents.values():
            yield document.opened
            yield from document.edits
        for number, params in enumerate(self._focus.values()):
            request = {"id": f"{OWN_ID}focus-{number}", "method": "nexus/session/focus", "params": params}
            yield frame({"jsonrpc": "2.0", **request})

    def take_all_failures(self) -> "list[bytes]":
        """Return failure replies to all pending requests, since their daemon hangs."""
        pending, self.pending = self.pending, {}
        return [_failure(json.loads(key), request.method) for key, request in pending.items()]

    def take_failures(self, running: "Collection[str] | None") -> "list[bytes]":
        """Return failure replies to the requests that the next daemon must not get, and remove these from
        `pending`.

        `running` are the ids, as JSON, of the requests that were begun. None means that any of them may have
        been.
        """
        begun_keys = self.pending.keys() if running is None else self.pending.keys() & set(running)
        lost = [
            key
            for key, request in self.pending.items()
            if (key in begun_keys and not request.is_repeatable) or request.deliveries >= MOST_DELIVERIES
        ]
        return [_failure(json.loads(key), self.pending.pop(key).method) for key in lost]

    def pending_again(self) -> "list[bytes]":
        """Return the requests that the next daemon gets again. Call it after `take_failures`.

        `initialize` is left out, since the replay has it.
        """
        for request in self.pending.values():
            request.deliveries += 1
        return [request.data for request in self.pending.values() if request.method != "initialize"]

    def _initialize_again(self) -> bytes:
        """`initialize` as the editor sent it if it has no reply yet, else with an id of the forwarder's."""
        assert self._initialize is not None  # noqa: S101 - the caller has looked
        message = json.loads(_body(self._initialize))
        if json.dumps(message["id"]) in self.pending:
            return self._initialize
        if self._initialized is not None:
            _forbid_registration(message)
        return frame({**message, "id": f"{OWN_ID}initialize"})

    # ------------------------------------------------------------ frames

    def _next(self) -> bytes | None:
        end = self._data.find(_HEADER_END, 0, _LONGEST_HEADER)
        if end < 0:
            self.is_lost = len(self._data) > _LONGEST_HEADER
            return None
        length = _LENGTH.search(self._data, 0, end + 2)
        if length is None:
            self.is_lost = True
            return None
        start = end + len(_HEADER_END)
        stop = start + int(length[1])
        if len(self._data) < stop:
            return None
        body = bytes(self._data[start:stop])
        del self._data[:stop]
        return body

    def _take(self, body: bytes) -> None:
        try:
            message = json.loads(body)
        except ValueError:  # the daemon says so
            return
        method = message.get("method") if isinstance(message, dict) else None
        if not isinstance(method, str):
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self._take_request(message, method, params, body)
        else:
            self._take_notification(method, params, body)

    def _take_unreadable(self, body: bytes) -> None:
        """A message that cannot be followed; of a request the id, so that it fails if nobody answers it."""
        message_id, method = _ID.search(body, 0, _HEAD), _METHOD.search(body, 0, _HEAD)
        if message_id is not None and method is not None:
            name = method[1].decode(errors="replace")
            self.pending[json.dumps(json.loads(message_id[1]))] = _Request(name, b"", is_repeatable=False)

    def _take_request(
        self, message: "dict[str, Any]", method: str, params: "dict[str, Any]", body: bytes
    ) -> None:
        if method == "workspace/executeCommand" and isinstance(params.get("command"), str):
            method = params["command"].replace(".", "/")
            arguments = params.get("arguments")
            params = arguments[0] if isinstance(arguments, list) and arguments else {}
            params = params if isinstance(params, dict) else {}
        if method == "initialize":
            self._initialize = self._initialize or _framed(body)
        elif method == "shutdown":
            self.is_shut_down = True
        elif method == "nexus/session/focus":
            self._focus[str(params.get("workspaceFolder"))] = params
        has_key = method in _REPEATABLE_WITH_KEY and bool(params.get("idempotencyKey"))
        is_repeatable = method in REPEATABLE or has_key or method in ("initialize", "shutdown")
        self.pending[json.dumps(message["id"])] = _Request(method, _framed(body), is_repeatable)

    def _take_notification(self, method: str, params: "dict[str, Any]", body: bytes) -> None:
        if method == "initialized":
            self._initialized = _framed(body)
        elif method == "$/setTrace":
            self._trace = _framed(body)
        elif method == "exit":
            self.has_exited = True
        elif method == "$/cancelRequest":
            request = self.pending.get(json.dumps(params.get("id")))
            if request is not None:
                request.is_repeatable = False  # its failure is the reply
        elif method == "workspace/didChangeWorkspaceFolders":
            event = params.get("event")
            self._change_folders(event if isinstance(event, dict) else {})
        elif method.startswith("textDocument/did"):
            document = params.get("textDocument")
            uri = document.get("uri") if isinstance(document, dict) else None
            if isinstance(uri, str):
                self._change_document(method, uri, body)

    def _change_folders(self, event: "dict[str, Any]") -> None:
        for kind in ("removed", "added"):  # one that is in both stays
            for folder in event.get(kind) or ():
                if isinstance(folder, dict) and isinstance(folder.get("uri"), str):
                    self._folders[folder["uri"]] = folder if kind == "added" else None

    def _change_document(self, method: str, uri: str, body: bytes) -> None:
        if method == "textDocument/didOpen":
            self._documents[uri] = _Document(_framed(body))
        elif method == "textDocument/didClose":
            self._documents.pop(uri, None)
        elif method == "textDocument/didChange" and (document := self._documents.get(uri)) is not None:
            is_followed = document.edit(_framed(body), self._initialize)
            if not is_followed:
                del self._documents[uri]


class _Request:
    """A request without a reply; `data` is its frame."""

    __slots__ = ("data", "deliveries", "is_repeatable", "method")

    def __init__(self, method: str, data: bytes, is_repeatable: bool) -> None:
        self.method = method
        self.data = data
        self.is_repeatable = is_repeatable
        self.deliveries = 1  # to a daemon


class _Document:
    """An open document: the frame that opened it, and those that edited it since."""

    __slots__ = ("_size", "edits", "opened")

    def __init__(self, opened: bytes) -> None:
        self.opened = opened
        self.edits: list[bytes] = []
        self._size = 0

    def edit(self, data: bytes, initialize: bytes | None) -> bool:
        """Take in an edit; False if the document cannot be followed."""
        self.edits.append(data)
        self._size += len(data)
        if self._size <= max(MOST_EDITS, 2 * len(self.opened)):
            return True
        from nexus_daemon.shared.merge_edits import merge_edits

        bodies = [
            _body(message_frame) for message_frame in (initialize or frame({}), self.opened, *self.edits)
        ]
        try:
            message, failed = merge_edits(bodies[0], bodies[1], bodies[2:])
        except Exception:  # noqa: BLE001 - what opened it was no document
            return False
        self.opened = frame(message)
        self.edits = [] if failed is None else [_framed(failed)]
        self._size = 0
        return True


def frame(message: "dict[str, Any]") -> bytes:
    """Encode a message as a frame."""
    return _framed(json.dumps(message).encode())


def _framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def _body(data: bytes) -> bytes:
    return data[data.index(_HEADER_END) + len(_HEADER_END) :]


def _forbid_registration(initialize: "dict[str, Any]") -> None:
    """Leave out that virtual documents may be registered: the editor has the registration already."""
    value: Any = initialize
    for key in ("params", "capabilities", "workspace", "textDocumentContent"):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value["dynamicRegistration"] = False


def _failure(message_id: object, method: str) -> bytes:
    text = (
        f"The Nexus daemon ended while it worked on {method}. It runs again, and nothing that it confirmed "
        "is lost. Check whether this request was carried out before you repeat it."
    )
    data = {"code": RESTARTED, "problems": []}
    return frame(
        {"jsonrpc": "2.0", "id": message_id, "error": {"code": -32803, "message": text, "data": data}}
    )
