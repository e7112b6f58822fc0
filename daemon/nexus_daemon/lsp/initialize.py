"""The reply to `initialize`, derived from a table of features and sent before pygls is imported.

1. The reply needs only the table. A test compares it with what pygls derives from the same table.
2. Importing pygls and lsprotocol takes longer than everything before it. The client gets its reply first and
   reads it during the import.
3. Any other first message goes to the real protocol at once.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.convert import DEFAULT_ENCODING, ENCODINGS
from nexus_daemon.lsp.lsp_types import InitializeParams, initialize_params
from nexus_daemon.version import PROTOCOL

if TYPE_CHECKING:
    from nexus_daemon.lsp.dispatch import NexusProtocol
    from nexus_daemon.lsp.link import StreamLink

_PROVIDERS = {
    "textDocument/codeAction": "codeActionProvider",
    "textDocument/codeLens": "codeLensProvider",
}
"""Feature → its key in `ServerCapabilities`; the value is the feature's options."""
_INCREMENTAL = 2  # of `TextDocumentSyncKind`


class Offer(msgspec.Struct, frozen=True):
    """A server's name, version, features (method → options or None) and commands."""

    name: str
    version: str
    features: Mapping[str, Any]
    commands: tuple[str, ...]


def initialize_result(offer: Offer, client: InitializeParams) -> dict[str, Any]:
    """Return the result of `initialize` as JSON values."""
    return {
        "capabilities": {
            "positionEncoding": choose_encoding(client),
            "textDocumentSync": {"openClose": True, "change": _INCREMENTAL},
            **{
                key: offer.features[feature]
                for feature, key in _PROVIDERS.items()
                if feature in offer.features
            },
            "executeCommandProvider": {"commands": sorted(offer.commands)},
            "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
            "experimental": {"nexus": {"protocol": PROTOCOL}},
        },
        "serverInfo": {"name": offer.name, "version": offer.version},
    }


def choose_encoding(client: InitializeParams) -> str:
    """Return the first position encoding of the client's list that Nexus supports, else utf-16."""
    encodings = client.capability("general.positionEncodings")
    if not isinstance(encodings, list):
        return DEFAULT_ENCODING
    return next((encoding for encoding in encodings if encoding in ENCODINGS), DEFAULT_ENCODING)


# ---------------------------------------------------------------- before pygls is imported


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
        self._client: InitializeParams | None = None
        self._protocol: NexusProtocol | None = None

    @property
    def running(self) -> list[framing.Id]:
        """None: `initialize` is answered at once."""
        return []

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


def _read_initialize(body: framing.Body) -> tuple[framing.Id, InitializeParams] | None:
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
        return message.id, initialize_params(message.params)
    except msgspec.DecodeError:
        return None
