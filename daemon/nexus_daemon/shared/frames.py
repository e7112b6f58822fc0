"""The daemon's frames on their way to the editor: which of them pass, and what they tell the forwarder.

1. A frame of up to HOLD bytes passes once it is complete, so that the editor never gets half of one when the
   daemon dies. A longer one passes in pieces.
2. The fields of a message come in the order in which the daemon writes them: `jsonrpc`, `id`, `method`, …
3. Replies to the forwarder's own requests and the goodbye do not pass.
"""

import json
import re

from nexus_daemon.shared.goodbye import METHOD
from nexus_daemon.shared.tracker import OWN_ID, frame

HOLD = 1024 * 1024  # bytes
_HEAD = 4 * 1024  # bytes of a long frame that are looked at
_HEADER = b"Content-Length: "
_ID = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|[^,"]+),"(result|error|method)"')
_METHOD = re.compile(rb'\{"jsonrpc":"2\.0","method":"([^"]*)"')
_PUBLISHED = re.compile(rb'"params":\{"uri":("(?:[^"\\]|\\.)*"),"diagnostics":\[(\]?)')


class FrameFilter:
    """Fed with the bytes of one daemon. `goodbye` is the reason that it gave for its end."""

    def __init__(self) -> None:
        self.goodbye: str | None = None
        self.running: list[str] | None = None
        """Ids, as JSON, of the requests that it had begun and did not answer; None: nobody knows."""
        self.replied: list[str] = []
        """Ids of requests, as JSON, whose replies passed since this list was cleared."""
        self.published: dict[str, bool] = {}
        """URI → whether the file has diagnostics, of those that passed since this was cleared."""
        self._held = b""
        self._rest = 0  # bytes of a long frame that are still to come

    @property
    def is_inside_frame(self) -> bool:
        """Whether a part of a frame has passed."""
        return self._rest > 0

    def feed(self, data: bytes) -> list[memoryview]:
        """What of the bytes so far may pass now."""
        if self._held:
            data, self._held = self._held + data, b""
        passing: list[memoryview] = []
        view = memoryview(data)
        at = begin = min(self._rest, len(data))
        self._rest -= at
        begin = 0
        while at < len(data):
            size = self._frame_size(data, at)
            if size is None:
                self._held = data[at:]
                break
            if not self._passes(data, at):
                passing.append(view[begin:at])
                begin = at + size
            self._rest = max(at + size - len(data), 0)
            at = min(at + size, len(data))
        if at > begin:
            passing.append(view[begin:at])
        return [piece for piece in passing if piece]

    def _frame_size(self, data: bytes, at: int) -> int | None:
        """The size of the frame that begins here, None: too little of it is there."""
        end = data.find(b"\r\n\r\n", at)
        if end < 0:
            return None
        length = self._size_of_body(data, at)
        size = end + 4 - at + length
        least = size if length <= HOLD else end + 4 - at + _HEAD
        return size if len(data) - at >= least else None

    def _size_of_body(self, data: bytes, at: int) -> int:
        return int(data[at + len(_HEADER) : data.index(b"\r\n\r\n", at)])

    def _passes(self, data: bytes, at: int) -> bool:
        if self.goodbye is not None:
            return False  # what fails now is sent to the next daemon
        start = data.index(b"\r\n\r\n", at) + 4
        head = data[start : start + _HEAD]
        matched = _ID.match(head)
        if matched is not None:
            if matched[2] == b"method":
                return True
            if matched[1].startswith(b'"' + OWN_ID.encode()):
                return False
            self.replied.append(json.dumps(json.loads(matched[1])))
            return True
        named = _METHOD.match(head)
        if named is not None and named[1] == METHOD.encode():
            params = json.loads(data[start : start + self._size_of_body(data, at)])["params"]
            self.goodbye = params["reason"]
            self.running = [json.dumps(message_id) for message_id in params["running"]]
            return False
        if named is not None and named[1] == b"textDocument/publishDiagnostics":
            published = _PUBLISHED.search(head)
            if published is not None:
                self.published[json.loads(published[1])] = not published[2]
        return True


def without_diagnostics(uri: str) -> bytes:
    """The frame that takes back the diagnostics of a file."""
    params = {"uri": uri, "diagnostics": []}
    return frame({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})
