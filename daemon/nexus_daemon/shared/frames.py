"""Filter the daemon's frames on their way to the editor, and read what they tell the forwarder.

1. A frame of up to HOLD bytes passes once it is complete, so that the editor never gets half of a frame when
   the daemon dies. A longer frame passes in pieces.
2. The fields of a message come in the order in which the daemon writes them: `jsonrpc`, `id`, `method`, …
3. Replies to the forwarder's own requests and the goodbye do not pass.
4. A frame that cannot be read passes as it is.
5. Nothing slow is imported before it is needed: the reply to `initialize` passes through here.
"""

from nexus_daemon.shared.goodbye import METHOD, OWN_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOLD = 1024 * 1024  # bytes
_HEAD = 4 * 1024  # bytes of a long frame that are looked at
_HEADER = b"Content-Length: "
_REPLY = b'{"jsonrpc":"2.0","id":'
_OWN_REPLY = b'{"jsonrpc":"2.0","id":"%s' % OWN_ID.encode()
_GOODBYE = b'{"jsonrpc":"2.0","method":"%s"' % METHOD.encode()
_PUBLISHED = b'{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":'


class FrameFilter:
    """Filters the bytes of one daemon. `goodbye` is the reason that the daemon gave for its end."""

    def __init__(self) -> None:
        self.goodbye: str | None = None
        self.running: list[str] | None = None
        """Ids, as JSON, of the requests that the daemon had begun and not answered. None means not known."""
        self.replied: list[str] = []
        """Ids of requests, as JSON, whose replies passed since this list was cleared."""
        self.published: dict[str, bool] = {}
        """URI → whether the file has diagnostics, of those that passed since this was cleared."""
        self._held = b""
        self._rest = 0  # bytes of a long frame that are still to come

    @property
    def is_inside_frame(self) -> bool:
        """Whether only a part of a frame has passed."""
        return self._rest > 0

    def feed(self, data: bytes) -> list[memoryview]:
        """Take bytes of the daemon, and return those that may pass now."""
        if self._held:
            data, self._held = self._held + data, b""
        passing: list[memoryview] = []
        view = memoryview(data)
        position = begin = min(self._rest, len(data))
        self._rest -= position
        begin = 0
        while position < len(data):
            size = self._frame_size(data, position)
            if size is None:
                self._held = data[position:]
                break
            if not self._passes(data, position):
                passing.append(view[begin:position])
                begin = position + size
            self._rest = max(position + size - len(data), 0)
            position = min(position + size, len(data))
        if position > begin:
            passing.append(view[begin:position])
        return [piece for piece in passing if piece]

    def _frame_size(self, data: bytes, position: int) -> int | None:
        """The size of the frame that begins here, None: too little of it is there."""
        end = data.find(b"\r\n\r\n", position)
        if end < 0:
            return None
        length = self._size_of_body(data, position)
        size = end + 4 - position + length
        least = size if length <= HOLD else end + 4 - position + _HEAD
        return size if len(data) - position >= least else None

    def _size_of_body(self, data: bytes, position: int) -> int:
        return int(data[position + len(_HEADER) : data.index(b"\r\n\r\n", position)])

    def _passes(self, data: bytes, position: int) -> bool:
        if self.goodbye is not None:
            return False  # what fails now is sent to the next daemon
        start = data.index(b"\r\n\r\n", position) + 4
        head = data[start : start + _HEAD]
        if head.startswith(_OWN_REPLY):
            return False
        try:
            return self._look(head)
        except (ValueError, IndexError, RecursionError):  # its id or URI may be longer
            body = data[start : start + self._size_of_body(data, position)]
        try:
            return self._look(body)
        except (ValueError, IndexError, RecursionError):
            return True

    def _look(self, body: bytes) -> bool:
        """Take in what the beginning of a message says; whether it passes."""
        if body.startswith(_GOODBYE):
            self._take_goodbye(body)
            return False
        if body.startswith(_REPLY):
            message_id, remainder = _first_value(body[len(_REPLY) :])
            if not remainder.startswith(b',"method"'):
                self.replied.append(_as_json(message_id))
        elif body.startswith(_PUBLISHED):
            uri, remainder = _first_value(body[len(_PUBLISHED) :])
            self.published[str(uri)] = not remainder.startswith(b',"diagnostics":[]')
        return True

    def _take_goodbye(self, body: bytes) -> None:
        import json

        params = json.loads(body)["params"]
        self.goodbye = params["reason"]
        self.running = [json.dumps(message_id) for message_id in params["running"]]


def _first_value(text: bytes) -> "tuple[Any, bytes]":
    """The text or number at the beginning of JSON, and what follows it."""
    if text[:1] != b'"':
        end = text.index(b",")
        digits = text[:end]
        if digits == b"null":
            return None, text[end:]
        return int(digits) if digits.lstrip(b"-").isdigit() else float(digits), text[end:]
    end = text.index(b'"', 1)
    while (end - len(text[:end].rstrip(b"\\"))) % 2:  # the quote is escaped
        end = text.index(b'"', end + 1)
    value = text[1:end]
    if b"\\" in value:
        import json

        return json.loads(text[: end + 1]), text[end + 1 :]
    return value.decode(), text[end + 1 :]


def _as_json(message_id: "Any") -> str:
    """As `json.dumps`."""
    if isinstance(message_id, int):
        return str(message_id)
    import json

    return json.dumps(message_id)


def without_diagnostics(uri: str) -> bytes:
    """Build the frame that removes the diagnostics of a file."""
    from nexus_daemon.shared.tracker import frame

    params = {"uri": uri, "diagnostics": []}
    return frame({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})
