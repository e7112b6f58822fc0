"""The server of one connection: features are registered on it, and handlers send through it."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from pygls.lsp.server import LanguageServer

from nexus_context.errors import Problem
from nexus_daemon.lsp.convert import DEFAULT_ENCODING
from nexus_daemon.lsp.dispatch import NexusProtocol
from nexus_daemon.lsp.documents import OpenDocuments
from nexus_daemon.lsp.failures import describe_problem
from nexus_daemon.lsp.lsp_types import InitializeParams

Handler = TypeVar("Handler", bound=Callable[..., Any])


class NexusServer(LanguageServer):
    """One client's server.

    `client` is None until `initialize`;
    `describe_problem` makes the JSON of each problem in the data of a failed request; `ended` is called
    once, when the connection is over.
    """

    protocol: NexusProtocol  # pyright: ignore[reportIncompatibleVariableOverride] - nobody sets it

    def __init__(self, name: str = "nexus", version: str = "") -> None:
        super().__init__(name, version, protocol_cls=NexusProtocol, converter_factory=_options_check)
        self.client: InitializeParams | None = None
        self.position_encoding: str = DEFAULT_ENCODING
        self.documents = OpenDocuments()
        self.describe_problem: Callable[[Problem], Any] = describe_problem
        self.ended: Callable[[], None] = _nothing

    def custom(self, method: str, params_type: Any) -> Callable[[Handler], Handler]:
        """Register a handler for a `nexus/*` request, and for the command of its name with `/` → `.`.

        The handler gets the parameters as one `params_type`, decoded from the raw bytes, and returns
        anything that msgspec encodes. It may be async.
        """

        def register(handler: Handler) -> Handler:
            command = method.replace("/", ".")
            if method in self.protocol.fm.features:
                raise ValueError(f"{method} is already registered")
            self.protocol.fm.features[method] = handler
            self.protocol.fm.commands[command] = handler
            self.protocol.custom_types[method] = self.protocol.custom_types[command] = params_type
            return handler

        return register

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification: params are a struct, JSON values or an lsprotocol object. From any thread."""
        self.protocol.notify(method, params)

    async def request(
        self, method: str, params: Any = None, result_type: Any = Any, *, timeout_s: float | None = None
    ) -> Any:
        """Send a request to the client and return its result as a `result_type`.

        After a cancellation or a timeout, the request is cancelled at the client, too.

        Raises
        ------
        ClientError
            The client answered with an error, or with something that is not a `result_type`.
        DisconnectedError
            The client left first.
        TimeoutError
            After `timeout_s` seconds.

        """
        return await self.protocol.request(method, params, result_type, timeout_s)


def _nothing() -> None:
    """The default of `ended`."""


class _OptionsCheck:
    """The converter of pygls's feature table, which uses it only to check the class of options."""

    def unstructure(self, options: Any, expected: Any = None) -> Any:
        if isinstance(options, (dict, bool, *(get_args(expected) or (expected,)))):
            return options
        raise TypeError(f"{type(options).__name__} are not options of this feature")


def _options_check() -> Any:
    return _OptionsCheck()
