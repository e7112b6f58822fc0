"""Explain why a request failed, to the user and to the program that decides what comes next.

1. The kind of the error follows from the provider's words for it, then from its sentence (an overflow has no
   status of its own), then from the HTTP status.
2. The provider's sentence is quoted on one line, at most LONGEST_QUOTE characters. The key, the header values
   and everything that looks like a secret are covered.
"""

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit

from nexus_context.errors import NexusError
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_daemon.providers.target import Target, address_of

Kind = Literal[
    "overflow",
    "rate-limit",
    "overloaded",
    "network",
    "authentication",
    "refused",
    "bad-answer",
    "not-installed",
]

LONGEST_QUOTE = 300
"""The most characters of a provider's text that an error quotes."""

OVERFLOW: Mapping[str, str] = {
    r"prompt is too long|exceed context limit": "Anthropic, docs 'Errors' and 'Context windows'",
    r"maximum context length|exceeds the (context window|limit of)": "OpenAI, vLLM, OpenRouter",
    r"exceeds the maximum number of tokens": "Gemini, INVALID_ARGUMENT",
    r"context length is only|longer than the model's context length": "vLLM, Together",
    r"exceeds the available context size|context size has been exceeded": "llama.cpp, tools/server",
    r"prompt too long; exceeded|exceeds? (the )?context length": "Ollama",
    r"when context the overflows|greater than the context length": "LM Studio",
    r"too large for model with \d+ maximum context|exceeded model token limit": "Mistral, Moonshot",
}
"""Text by which providers say that a request is too long (a pattern) → which providers use it."""

_TOO_LONG = re.compile("|".join(f"(?:{pattern})" for pattern in OVERFLOW), re.IGNORECASE)
_KINDS: Mapping[Kind, str] = {
    "refused": "insufficient_quota billing_error billing_not_active",
    "rate-limit": "rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED",
    "overflow": "context_length_exceeded exceed_context_size_error request_too_large",
    "authentication": "authentication_error permission_error invalid_api_key API_KEY_INVALID UNAUTHENTICATED "
    "PERMISSION_DENIED",
    "overloaded": "overloaded_error api_error timeout_error server_error server_is_overloaded UNAVAILABLE "
    "INTERNAL DEADLINE_EXCEEDED",
}
"""The words of providers' APIs for kinds of errors, in the order in which they decide."""
_STATUSES: Mapping[int, Kind] = {
    401: "authentication",
    403: "authentication",
    408: "overloaded",
    429: "rate-limit",
}
_STATUSES = {**_STATUSES, 409: "overloaded", 413: "overflow"}
_LEADS: Mapping[Kind, str] = {
    "overflow": "The request is too long for the model",
    "rate-limit": "{name} takes no more requests for now",
    "overloaded": "{name} is overloaded or failed",
    "authentication": "{name} rejects the key",
    "refused": "{name} refuses the request",
    "bad-answer": "{name} does not answer as its API should",
}
_ADVICE: Mapping[Kind, str] = {
    "overflow": "Compact the conversation or attach less, then send the message again.",
    "rate-limit": "Try again {when}.",
    "overloaded": "Try again {when}.",
    "authentication": "Check the environment variable that `provider.api_key_env` names.",
    "refused": "Change the message, the model or its parameters.",
    "bad-answer": "Check `provider.name` and `provider.base_url`.",
}
_LEAST_SECRET = 4  # characters; a shorter header value is a number or a word that stands everywhere


class ProviderError(NexusError):
    """Why a request failed, in a sentence or two for the user: what is wrong and what to do.

    `retry_after_s` is the number of seconds that the provider wants to pass before the next request, or None
    if it did not say. `is_transient` says that the same request may succeed if it is sent again; None leaves
    that to the kind.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Kind,
        retry_after_s: float | None = None,
        is_transient: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.is_transient = kind in ("rate-limit", "overloaded") if is_transient is None else is_transient


class StatedError(Exception):
    """An error that a provider states within a stream, if its SDK does not raise it."""

    def __init__(self, body: Any) -> None:
        super().__init__("an error within a stream")
        self.body = body


class _Failure(NamedTuple):
    """What a provider says of an error: its words for the kind, a sentence, when to try again (seconds)."""

    words: frozenset[str]
    text: str
    delay_s: float | None = None


def error_from_body(
    body: Any, target: Target, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """Build the error that a provider states, from the body of an answer or from an event of a stream.

    `status` is the HTTP status, or None within a stream.
    """
    failure, headers = _failure_of(body), headers or {}
    if status is not None and 300 <= status < 400:
        return _redirect(headers.get("location", ""), target)
    delay_s = _delay_s(headers)
    delay_s = failure.delay_s if delay_s is None else delay_s
    kind = _kind(failure, status)
    lead = _LEADS[kind].format(name=target.name)
    advice = _ADVICE[kind].format(when=_when(delay_s))
    stated = quoted(failure.text, target) or (f"HTTP {status}." if status else "")
    return ProviderError(
        f"{lead}: {stated} {advice}" if stated else f"{lead}. {advice}",
        kind=kind,
        retry_after_s=delay_s,
        is_transient=False if headers.get("x-should-retry") == "false" else None,
    )


def _failure_of(body: Any) -> _Failure:
    """What an error's body says, in the forms of the four APIs and of servers that resemble them."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict | str):
        body = body["error"]
    if not isinstance(body, dict):
        return _Failure(frozenset(), _shown_text(body if isinstance(body, str) else ""))
    words, delay_s = {str(body[key]) for key in ("type", "code", "status") if body.get(key)}, None
    details = body.get("details")
    for detail in details if isinstance(details, list) else ():  # Google's
        if isinstance(detail, dict):
            words.add(str(detail.get("reason")))
            match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay")))
            delay_s = float(match[1]) if match else delay_s
    text = next((value for key in ("message", "detail") if (value := body.get(key))), "")
    return _Failure(frozenset(words), _shown_text(text), delay_s)


def _shown_text(value: Any) -> str:
    """What an error says as a text; nothing if that is a page of HTML."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "" if text.lstrip().startswith("<") else text


def quoted(text: str, target: Target) -> str:
    """Return a provider's words as a sentence on one line, without secrets. "" if it says nothing."""
    for secret in sorted(target.secrets, key=len, reverse=True):
        if len(secret) >= _LEAST_SECRET:
            for form in {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}:
                text = text.replace(form, "…")
    line = visible_line(redact(" ".join(text.split())))
    line = re.sub(r"\?[^\s\"'<>]*=[^\s\"'<>]*", "?…", line)  # a query
    if len(line) > LONGEST_QUOTE:
        return line[:LONGEST_QUOTE].rstrip() + "…"
    return line if not line or line[-1] in ".!?…" else f"{line}."


def _kind(failure: _Failure, status: int | None) -> Kind:
    for kind, words in _KINDS.items():
        if not failure.words.isdisjoint(words.split()):
            return kind
        if kind == "rate-limit" and status == 429:
            return kind
        if kind == "overflow" and _TOO_LONG.search(failure.text):
            return kind
    if status is None or status < 400 or status >= 500:
        return "refused" if "invalid_request_error" in failure.words else "overloaded"
    return _STATUSES.get(status, "refused")


def _redirect(location: str, target: Target) -> ProviderError:
    """The error for a redirect. It is not followed: the key would go to another place."""
    try:
        parts = urlsplit(location)
        address = f"{address_of(location)}{parts.path}" if parts.netloc else parts.path
    except ValueError:
        address = ""
    address = quoted(address, target).rstrip(".") or "another address"
    return ProviderError(
        f"{target.name} redirects to {address}, and the key is not sent there. "
        "Set `provider.base_url` to the address that answers.",
        kind="bad-answer",
    )


def _delay_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that `retry-after-ms` or `retry-after` (seconds, or a date) ask for."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        return max(parsedate_to_datetime(headers["retry-after"]).timestamp() - time(), 0.0)
    except (KeyError, ValueError, OverflowError):
        return None


def _when(delay_s: float | None) -> str:
    if delay_s is None:
        return "later"
    seconds = max(math.ceil(delay_s), 1)
    if seconds < 120:
        return f"in {seconds} s"
    return f"in {math.ceil(seconds / 60)} min" if seconds < 7_200 else f"in {math.ceil(seconds / 3_600)} h"
