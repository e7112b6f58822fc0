"""Sign in to servers with OAuth: the SDK's flow with PKCE, and the tokens that it brings.

1. The flow runs only if the user starts it (`sign_in`). A server that is only used is sent its tokens, which
   are refreshed when they expire. If it refuses them, the user has to sign in again.
2. Metadata, registration, tokens and the page for the browser are requested only by https. Only a server on
   this machine may name http addresses, on this machine.
3. A client is registered anew for each sign-in, since its port is another one.
4. Tokens are kept by launch (`token_store`), together with what is needed to refresh them.
"""

import asyncio
import base64
import ipaddress
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from nexus_context.servers.launch import Launch
from nexus_context.text.decoding import decode_as
from nexus_daemon.servers.http_client import http_client
from nexus_daemon.servers.redirect_listener import RedirectListener, SignInError, redirect_listener
from nexus_daemon.servers.server_log import ServerLog
from nexus_daemon.servers.token_store import load_tokens, save_tokens

SIGN_IN_S = 300.0  # that a person may take
MOST_REDIRECTS = 3
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class SavedSignIn(msgspec.Struct, frozen=True):
    """The stored result of a sign-in, in the form of the SDK's models. `expires` is by `time.time()`."""

    tokens: dict[str, Any]
    client: dict[str, Any] | None
    metadata: dict[str, Any] | None
    resource: dict[str, Any] | None
    expires: float | None


class _Storage:
    """The SDK's storage of one launch. What `is_new` knows nothing of earlier sign-ins."""

    def __init__(self, launch_hash: str, environ: Mapping[str, str], *, is_new: bool) -> None:
        self.has_saved = False
        self.provider: OAuthClientProvider
        self._hash, self._environ, self._is_new = launch_hash, environ, is_new
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        text = None if self._is_new else await load_tokens(self._environ, self._hash)
        if text is None:
            return None
        try:
            saved = decode_as(text.encode(), SavedSignIn)
            tokens = OAuthToken.model_validate(saved.tokens)
            self._client = _model(OAuthClientInformationFull, saved.client)
            context = self.provider.context
            context.oauth_metadata = _model(OAuthMetadata, saved.metadata)
            context.protected_resource_metadata = _model(ProtectedResourceMetadata, saved.resource)
            context.token_expiry_time = saved.expires
        except ValueError:  # somebody has written something else there
            return None
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.provider.context
        saved = SavedSignIn(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            client=_dump(context.client_info),
            metadata=_dump(context.oauth_metadata),
            resource=_dump(context.protected_resource_metadata),
            expires=context.token_expiry_time,
        )
        await save_tokens(self._environ, self._hash, msgspec.json.encode(saved).decode())
        self.has_saved = True

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """It is saved with the tokens."""


class SavedTokens(httpx2.Auth):
    """Sends the stored tokens of a launch, refreshed if needed.

    It sets `refused` if the server still answers 401.

    The `log` covers the tokens from their first use on.
    """

    def __init__(
        self, launch: Launch, environ: Mapping[str, str], *, log: ServerLog, refused: asyncio.Event
    ) -> None:
        self._log = log
        self._launch, self._refused = launch, refused
        self._signs_in = launch.signs_in and _is_safe(httpx2.URL(launch.url), launch)
        storage = _Storage(launch.hash, environ, is_new=False)
        self._provider = storage.provider = OAuthClientProvider(launch.url, _client_metadata(""), storage)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        context = self._provider.context
        if request.url.userinfo and "authorization" not in request.headers:
            words = f"{request.url.username}:{request.url.password}".encode()
            request.headers["authorization"] = f"Basic {base64.b64encode(words).decode()}"
        for _ in range(2):
            if self._signs_in:
                # the flow is left before the request, so that it neither asks anybody nor holds its lock
                async with aclosing(self._provider.async_auth_flow(request)) as flow:
                    outgoing = await anext(flow)
                    while outgoing is not request:
                        _check_address(outgoing.url, self._launch)
                        outgoing = await flow.asend((yield outgoing))
                if (tokens := context.current_tokens) is not None:
                    self._log.add_secrets(filter(None, (tokens.access_token, tokens.refresh_token)))
            sent_authorization = request.headers.get("authorization")
            response = yield request
            if response.status_code != 401:
                return
            tokens = context.current_tokens
            if tokens is None or not self._signs_in:
                break
            if sent_authorization == f"Bearer {tokens.access_token}":  # nobody has refreshed them meanwhile
                context.token_expiry_time = time.time() - 1
        self._refused.set()


class _Flow(httpx2.Auth):
    """The SDK's whole flow, each of whose addresses is checked."""

    def __init__(self, launch: Launch, provider: OAuthClientProvider) -> None:
        self._launch, self._provider = launch, provider

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with aclosing(self._provider.async_auth_flow(request)) as flow:
            with suppress(StopAsyncIteration):
                outgoing = await anext(flow)
                while True:
                    if outgoing is not request:
                        _check_address(outgoing.url, self._launch)
                    outgoing = await flow.asend((yield outgoing))


async def sign_in(launch: Launch, environ: Mapping[str, str], *, show_page: Callable[[str], Any]) -> None:
    """Have the user sign in on a page of the server, and store the tokens.

    `show_page` gets the page's address.

    SignInError if signing in fails, httpx2.HTTPError or OSError if something cannot be reached or written.
    """
    _check_address(httpx2.URL(launch.url), launch)
    storage = _Storage(launch.hash, environ, is_new=True)
    try:
        async with asyncio.timeout(SIGN_IN_S), redirect_listener() as listener:
            provider = storage.provider = _interactive_provider(launch, storage, listener, show_page)
            headers = launch.sent_headers(environ)
            async with http_client(headers, auth=_Flow(launch, provider)) as client:
                status = await _ask(client, launch.url)
    except TimeoutError:
        raise SignInError(
            f"Nobody signed in within {SIGN_IN_S / 60:g} minutes.", code="mcp-sign-in-refused"
        ) from None
    except (OAuthFlowError, ValueError, httpx2.InvalidURL) as error:  # its text may quote an answer
        raise SignInError(
            f"The server's sign-in gave an answer that cannot be used ({type(error).__name__}).",
            code="mcp-sign-in-failed",
        ) from None
    if not storage.has_saved:
        raise SignInError(
            f"The server {launch.name!r} asks nobody to sign in (it answers {status}).",
            code="mcp-sign-in-failed",
        )


def _interactive_provider(
    launch: Launch, storage: _Storage, listener: RedirectListener, show_page: Callable[[str], Any]
) -> OAuthClientProvider:
    async def redirect(page: str) -> None:
        _check_address(httpx2.URL(page), launch)
        listener.expect(page)
        show_page(page)

    async def wait() -> AuthorizationCodeResult:
        return await listener.answer

    metadata = _client_metadata(listener.uri)
    return OAuthClientProvider(
        launch.url, metadata, storage, redirect_handler=redirect, callback_handler=wait
    )


async def _ask(client: httpx2.AsyncClient, url: str) -> int:
    """Send the server a message, so that it asks for a sign-in; the status of its last answer."""
    headers = {"accept": "application/json, text/event-stream"}
    request = client.build_request("POST", url, json=_PING, headers=headers)
    for _ in range(MOST_REDIRECTS):
        response = await client.send(request, stream=True, follow_redirects=False)
        await response.aclose()
        next_request = response.next_request
        if next_request is None or next_request.method != "POST" or _origin(next_request) != _origin(request):
            break
        request = next_request
    return response.status_code


def _origin(request: httpx2.Request) -> tuple[Any, ...]:
    return request.url.scheme, request.url.host, request.url.port


def _is_safe(url: httpx2.URL, launch: Launch) -> bool:
    """Whether rule 2 allows an address."""
    is_local, is_local_server = _is_local(url.host), _is_local(httpx2.URL(launch.url).host)
    return (is_local and is_local_server) or (url.scheme == "https" and not is_local)


def _check_address(url: httpx2.URL, launch: Launch) -> None:
    """SignInError for an address that rule 2 excludes."""
    if _is_safe(url, launch):
        return
    raise SignInError(
        f"The server {launch.name!r} wants its sign-in at {url.scheme}://{url.host}, which is not safe: only "
        "https is, or this machine for a server on this machine.",
        code="mcp-sign-in-failed",
    )


def _is_local(host: str) -> bool:
    name = host.rstrip(".").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _client_metadata(redirect_uri: str) -> OAuthClientMetadata:
    return OAuthClientMetadata.model_validate(
        {
            "client_name": "Nexus",
            "redirect_uris": [redirect_uri or "http://127.0.0.1/"],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        }
    )


def _model(kind: Any, value: dict[str, Any] | None) -> Any:
    return None if value is None else kind.model_validate(value)


def _dump(model: Any) -> dict[str, Any] | None:
    dumped: dict[str, Any] | None = (
        None if model is None else model.model_dump(mode="json", exclude_none=True)
    )
    return dumped
