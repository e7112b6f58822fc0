"""Replies to `initialize` before pygls is imported.

1. The reply needs only the table of features.
2. Importing pygls and lsprotocol takes longer than everything before it. The client gets its reply first and
   reads it during the import.
3. Any other first message goes to the real protocol at once.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from nexus_daemon.lsp import framing, lsp_types
from nexus_daemon.lsp.capabilities import Offer, initialize_result

if TYPE_CHECKING:
    from nexus_daemon.lsp.dispatch import NexusProtocol
    from nexus_daemon.lsp.link import StreamLink


class Reply(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    id: framing.Id
    result: dict[str, Any]


class EarlyInitialize:
    """The protocol of a connection until its first message is answered."""

    state: Literal["new", "ended"] = "new"
    in_flight = 0

    def __init__(
        self, offer: Offer, create_protocol: "Callable[[], NexusProtocol]", link: "StreamLink"
    ) -> None:
        self._offer = offer
        self._create_protocol = create_protocol
        self._link = link
        self._client: lsp_types.InitializeParams | None = None
        self._protocol: NexusProtocol | None = None

    def receive(self, body: framing.Body) -> bool:
        """Reply to `initialize`; True, so that the import runs before the next message is handled."""
        initialize = _read_initialize(body)
        if initialize is None:
            return self.hand_over().receive(body)
        message_id, self._client = initialize
        result = initialize_result(self._offer, self._client)
        self._link.send(framing.encode(Reply("2.0", message_id, result)))
        asyncio.get_running_loop().call_soon(self._hand_over_unless_ended)
        return True

    def _hand_over_unless_ended(self) -> None:
        if self.state != "ended":
            self.hand_over()

    def hand_over(self) -> "NexusProtocol":
        """Replace this by the real protocol, once, and pass it the parameters of `initialize`."""
        if self._protocol is None:
            self._protocol = self._create_protocol()
            self._link.use_protocol(self._protocol)
            if self._client is not None:
                self._protocol.adopt(self._client)
        return self._protocol

    def is_urgent(self, _: framing.Body) -> bool:
        """No request runs that a message could end."""
        return False

    def drained(self) -> None:
        """No notification waits for the client."""

    def close(self, waiting: Iterable[framing.Body] = ()) -> None:  # noqa: ARG002 - none wait yet
        """End before anything has started."""
        self.state = "ended"


def _read_initialize(body: framing.Body) -> tuple[framing.Id, lsp_types.InitializeParams] | None:
    """Return id and parameters of a valid `initialize` request; None for anything else."""
    try:
        message: framing.Envelope = framing.decode(body, framing.Envelope)
        if (
            message.jsonrpc != "2.0"
            or message.method != "initialize"
            or isinstance(message.params, msgspec.UnsetType)
        ):
            return None
        if message.id is None or isinstance(message.id, msgspec.UnsetType):
            return None
        return message.id, lsp_types.initialize_params(message.params)
    except msgspec.DecodeError:
        return None
