"""Share what the modules of all APIs need: the HTTP client below an SDK, and what its exceptions mean.

1. A client lives for one turn: closing it closes its connections at once. TLS settings are read once.
2. No redirect is followed, and an answer has at most LARGEST_ANSWER bytes.
3. Timeouts are the client's own; an SDK that sends a request without a timeout cannot lift them.
4. Log records of SDKs and HTTP clients quote addresses, headers and answers, so only their place is logged.
"""

import ssl
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx2

from nexus_daemon.process.logs.place_log import log_places
from nexus_daemon.providers.provider_error import ProviderError, error_from_body
from nexus_daemon.providers.target import Target
from nexus_daemon.servers.http_client import AnswerTooLargeError, BoundedStream

CONNECT_S = 10.0
IDLE_S = 60.0
"""Seconds that a connection stays open between two requests, while tools run."""
SILENCE_S = 120.0
"""The most seconds between two chunks of an answer."""
LOADING_S = 600.0
"""SILENCE_S of an OpenAI-compatible server: it may load its model first, or read a long prompt on a CPU."""

HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL)

for _package in ("anthropic", "openai", "google_genai", "httpx2", "httpcore2"):
    log_places(_package)


def open_http(target: Target) -> httpx2.AsyncClient:
    """Open an HTTP client for the requests of one turn."""
    silence_s = LOADING_S if target.provider == "openai-compatible" else SILENCE_S
    timeout = httpx2.Timeout(silence_s, connect=CONNECT_S)

    async def set_timeout(request: httpx2.Request) -> None:
        request.extensions["timeout"] = timeout.as_dict()

    return httpx2.AsyncClient(
        verify=tls_settings(),
        timeout=timeout,
        limits=httpx2.Limits(keepalive_expiry=IDLE_S),
        follow_redirects=False,
        event_hooks={"request": [set_timeout], "response": [_bound]},
    )


@cache
def tls_settings() -> ssl.SSLContext:
    """Read the certificates of this machine and of the environment, which takes 50 ms."""
    return httpx2.create_ssl_context()


def provider_error(error: Exception, target: Target) -> ProviderError:
    """Convert an exception of an SDK or of its HTTP client to a ProviderError."""
    if isinstance(error, ProviderError):
        return error
    response: Any = getattr(error, "response", None)
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if response is not None or body is not None:
        status, headers = getattr(response, "status_code", None), getattr(response, "headers", None)
        return error_from_body(body, target, status=status, headers=headers)
    transport_error = next((cause for cause in _causes(error) if isinstance(cause, HTTP_ERRORS)), None)
    return broken_answer(target) if transport_error is None else _network_error(transport_error, target)


def broken_answer(target: Target) -> ProviderError:
    """Build the error for an answer that is not in the form of its API."""
    return ProviderError(
        f"{target.name} answers, but not as its API should. Check `provider.name` and `provider.base_url`.",
        kind="bad-answer",
    )


def early_end(target: Target) -> ProviderError:
    """Build the error for an answer that stops before it is whole."""
    return ProviderError(
        f"{target.name} ended its answer before it was whole. Send the message again.", kind="network"
    )


def _network_error(error: BaseException, target: Target) -> ProviderError:
    """The text of the exception is not quoted: it may hold a header."""
    name = target.name
    if isinstance(error, AnswerTooLargeError):
        return broken_answer(target)
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        text = f"{name} was not reached within {CONNECT_S:.0f} s. Check the network and `provider.base_url`."
    elif isinstance(error, httpx2.TimeoutException):
        silence_s = LOADING_S if target.provider == "openai-compatible" else SILENCE_S
        text = f"{name} was silent for {silence_s:.0f} s. Send the message again."
        return ProviderError(text, kind="network", is_transient=False)
    elif isinstance(error, httpx2.ProxyError):
        text = f"The proxy of the environment does not connect to {name}. Check HTTPS_PROXY and NO_PROXY."
    elif any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
        text = f"{name} has no certificate that this machine trusts. Check the address, or set SSL_CERT_FILE."
        return ProviderError(text, kind="network", is_transient=False)
    elif isinstance(error, httpx2.ConnectError):
        text = f"{name} cannot be reached. Check that it runs, the network and `provider.base_url`."
    elif isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.InvalidURL):
        text = "The request cannot be sent. Check `provider.base_url` and `provider.headers`."
        return ProviderError(text, kind="refused")
    else:
        text = f"{name} broke the connection. Send the message again."
    return ProviderError(text, kind="network", is_transient=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it."""
    current: BaseException | None = error
    for _ in range(10):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


async def _bound(response: httpx2.Response) -> None:
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream):
        response.stream = BoundedStream(stream)
