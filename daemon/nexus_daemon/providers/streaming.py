"""Stream one request to a provider, with its retries, and turn every failure into a ProviderError.

1. The SDK is imported in a worker thread when its provider is first used.
2. If an error that may pass comes before the answer begins, up to RETRIES more attempts follow. Each waits
   for the provider's delay, or for FIRST_DELAY_S, doubled each time. If the wait would exceed LONGEST_WAIT_S
   in all, an error says how long the provider's delay is.
3. Once an answer has begun, nothing is sent again.
4. A cancelled task or a closed iterator closes the connection at once. After a whole answer, the connection
   stays open for the next request of the turn.
"""

import asyncio
import importlib
import logging
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from random import random
from typing import Any, NamedTuple, Protocol, Self, cast

from nexus_daemon.providers.answer import AnswerItem, ModelAnswer
from nexus_daemon.providers.provider_error import ProviderError
from nexus_daemon.providers.target import Target

logger = logging.getLogger(__name__)

RETRIES = 2
FIRST_DELAY_S = 0.5
LONGEST_WAIT_S = 60.0
LONGEST_END_S = 0.5
"""Seconds that a server may take to end an answer that is whole."""


class ProviderApi(Protocol):
    """A module for one API, which is imported with its SDK. `ERRORS` are the exceptions of the SDK."""

    ERRORS: tuple[type[Exception], ...]

    def connect(self, target: Target, http: Any) -> Any:
        """Build the SDK's client on top of an HTTP client."""
        ...

    async def send(self, client: Any, body: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Send a request, and return the answer's events once the answer has begun."""
        ...

    def read(self, events: AsyncIterator[Any]) -> AsyncIterator[AnswerItem]:
        """Turn the events into deltas and a ModelAnswer. There is no ModelAnswer if the events end early."""
        ...


class _Package(NamedTuple):
    module: str
    sdk: str  # its name for pip
    extra: str
    key_header: str  # of those that may stand in for a key


_PACKAGES: Mapping[str, _Package] = {
    "anthropic": _Package("nexus_daemon.providers.anthropic_messages", "anthropic", "anthropic", "x-api-key"),
    "openai": _Package("nexus_daemon.providers.openai_responses", "openai", "openai", "api-key"),
    "openai-compatible": _Package("nexus_daemon.providers.openai_chat", "openai", "openai", "api-key"),
    "google": _Package("nexus_daemon.providers.gemini", "google-genai", "google", "x-goog-api-key"),
}
# what an answer in another form makes of the code that reads it
_FORM_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class Provider:
    """A provider for the requests of one turn, on one connection. Use it on the event loop."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._http: Any = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. The next request opens another one."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[AnswerItem]:
        """Send a body in the format FORMATS[target.provider]. Yield deltas, and at last a ModelAnswer.

        Gemini's format has no model, so the caller adds it to the body as `model`. Raise ProviderError if the
        request fails, ValueError if the body has no model.
        """
        target = self.target
        package = _PACKAGES.get(target.provider)
        if package is None:
            raise ProviderError(f"{target.provider!r} is not a provider that answers.", kind="refused")
        if "model" not in body:
            raise ValueError("the body has no model")
        _check_headers(target, package.key_header)
        is_imported = hasattr(sys.modules.get(package.module), "connect")
        api = _import_api(package) if is_imported else await asyncio.to_thread(_import_api, package)
        sdk = importlib.import_module("nexus_daemon.providers.sdk")
        if self._http is None:
            self._http = sdk.open_http(target)
        errors = (*api.ERRORS, *sdk.HTTP_ERRORS)
        events, answer = _Events(), None
        try:
            client = api.connect(target, self._http)
            events.source = await _send(api, client, target=target, body=body)
            async with aclosing(cast("Any", api.read(events))) as items:
                async for item in items:
                    if isinstance(item, ModelAnswer):
                        answer = item
                    yield item
        except ProviderError:
            raise
        except errors as error:
            raise sdk.provider_error(error, target) from None
        except _FORM_ERRORS:
            logger.info("An answer of %s is not in the form of its API.", target.provider, exc_info=True)
            raise sdk.broken_answer(target) from None
        finally:
            if answer is None or not await events.have_ended(*errors):
                await self.close()
                with suppress(*errors, *_FORM_ERRORS):
                    await events.run_out()
        if answer is None:
            raise sdk.early_end(target) if events.have_begun else sdk.broken_answer(target)


class _Events:
    """The events of an answer from its source, the SDK, and whether there was one."""

    def __init__(self) -> None:
        self.source: AsyncIterator[Any] | None = None
        self.have_begun = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self.source is None:
            raise StopAsyncIteration
        event = await anext(self.source)
        self.have_begun = True
        return event

    async def have_ended(self, *errors: type[Exception]) -> bool:
        """Whether nothing follows a whole answer: then its connection serves the next request, too."""
        with suppress(TimeoutError, *errors, *_FORM_ERRORS):
            async with asyncio.timeout(LONGEST_END_S):
                await self.run_out()
                return True
        return False

    async def run_out(self) -> None:
        """End the SDK's generators, once its connection is closed: else they outlive the request."""
        async for _ in self:
            pass


def _check_headers(target: Target, key_header: str) -> None:
    """Raise ProviderError unless there is a key, or a header in its place, and all of them can be sent."""
    names = {name.lower() for name in target.headers}
    is_needed = target.provider != "openai-compatible" and names.isdisjoint(("authorization", key_header))
    if is_needed and not (target.key or "").strip():
        raise ProviderError(
            f"There is no key for {target.name}. Set `provider.api_key_env` in the global config.json to the "
            "name of an environment variable that holds it.",
            kind="authentication",
        )
    for name, value in target.headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not _is_sendable(value):
            raise ProviderError(
                "A name or a value in `provider.headers` holds characters that no header can have.",
                kind="refused",
            )
    if target.key and not _is_sendable(target.key.strip()):
        raise ProviderError(
            "The key holds characters that no key has, such as a line end. Check the environment variable "
            "that `provider.api_key_env` names.",
            kind="authentication",
        )


def _is_sendable(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _import_api(package: _Package) -> ProviderApi:
    """Import the module of an API with its SDK, for seconds the first time."""
    try:
        module = importlib.import_module(package.module)
        sdk = importlib.import_module("nexus_daemon.providers.sdk")
    except ImportError as error:
        raise ProviderError(
            f"The package {error.name or package.sdk} is not installed. "
            f'Run: pip install "nexusd[{package.extra}]"',
            kind="not-installed",
        ) from None
    api = cast("ProviderApi", module)
    target = Target("", key="none")
    api.connect(target, sdk.open_http(target))  # which imports more, and reads the certificates
    return api


async def _send(
    api: ProviderApi, client: Any, *, target: Target, body: Mapping[str, Any]
) -> AsyncIterator[Any]:
    """Send a request until an answer begins (rule 2)."""
    sdk = importlib.import_module("nexus_daemon.providers.sdk")
    attempt, waited_s = 0, 0.0
    while True:
        try:
            return await api.send(client, body)
        except (*api.ERRORS, *sdk.HTTP_ERRORS) as error:
            failure: ProviderError = sdk.provider_error(error, target)
        wait_s = failure.retry_after_s
        if wait_s is None:
            wait_s = FIRST_DELAY_S * 2**attempt * (1 - random() / 4)  # noqa: S311 - no secret
        if attempt == RETRIES or not failure.is_transient or waited_s + wait_s > LONGEST_WAIT_S:
            raise failure
        logger.info("%s: %s; another attempt in %.1f s", target.provider, failure.kind, wait_s)
        await asyncio.sleep(wait_s)
        attempt, waited_s = attempt + 1, waited_s + wait_s
