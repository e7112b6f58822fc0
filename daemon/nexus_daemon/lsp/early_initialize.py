"""The first message, answered before pygls is imported.

1. What a server can do is known from its table of features; the reply to `initialize` needs nothing else.
2. pygls and lsprotocol take longer to import than all before them: the client gets its reply first, and
   reads it while we import.
3. Any other first message goes to the real protocol at once, which knows what to say.
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


class Greeting:
    """Stands in for the protocol of a connection until its first message is answered."""

    state: Literal["new", "ended"] = "new"
    in_flight = 0

    def __init__(self, offer: Offer, grow: "Callable[[], NexusProtocol]", link: "StreamLink") -> None:
        self._offer = offer
        self._grow = grow
        self._link = link
        self._client: lsp_types.InitializeParams | None = None
        self._grown: NexusProtocol | None = None

    def receive(self, body: framing.Body) -> bool:
        """Answer `initialize`; True, so that the import runs before the next message is looked at."""
        hello = _hello(body)
        if hello is None:
            return self.become().receive(body)
        message_id, self._client = hello
        result = initialize_result(self._offer, self._client)
        self._link.send(framing.encode(Reply("2.0", message_id, result)))
        asyncio.get_running_loop().call_soon(self._become_unless_ended)
        return True

    def _become_unless_ended(self) -> None:
        if self.state != "ended":
            self.become()

    def become(self) -> "NexusProtocol":
        """Put the real protocol in this one's place, once, and tell it what the client said."""
        if self._grown is None:
            self._grown = self._grow()
            self._link.use_protocol(self._grown)
            if self._client is not None:
                self._grown.adopt(self._client)
        return self._grown

    def is_urgent(self, _: framing.Body) -> bool:
        """Nothing is under way that a message could end."""
        return False

    def drained(self) -> None:
        """Nothing waits for the client."""

    def close(self, waiting: Iterable[framing.Body] = ()) -> None:  # noqa: ARG002 - none wait yet
        """Nothing is open yet, and nothing need begin."""
        self.state = "ended"


def _hello(body: framing.Body) -> tuple[framing.Id, lsp_types.InitializeParams] | None:
    """Id and parameters of a well-formed `initialize` request; None for anything else."""
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
