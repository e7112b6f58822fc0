"""Describe where requests to a provider go."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

FORMATS: dict[str, str] = {
    "anthropic": "anthropic",
    "openai": "openai-responses",
    "google": "gemini",
    "openai-compatible": "openai",
}
"""The format of the body for each provider, as `nexus/context/assemble` names it."""

_NAMES = {"anthropic": "Anthropic", "openai": "OpenAI", "google": "Google"}


class Target(msgspec.Struct, frozen=True):
    """Where a request goes: the provider, its address, key and headers.

    `url` is the API's base address, or None for the provider's own. The repr has neither key nor header
    values.
    """

    provider: str
    url: str | None = None
    key: str | None = None
    headers: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """Return the provider's name for people, or the host and port of an address that the settings
        name.
        """
        if self.url is None:
            return _NAMES.get(self.provider, "The provider")
        return f"The server at {address_of(self.url)}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the key and the header values, each as a whole and as single words."""
        values = [value for value in (self.key, *self.headers.values()) if value]
        return tuple({*values, *(word for value in values for word in value.split())})

    def __repr__(self) -> str:
        return f"Target({self.provider!r}, {self.name!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("provider", self.provider), ("name", self.name)]


def address_of(url: str) -> str:
    """Return the host and port of an address, without user, password, path and query."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "an address without a host"
    except ValueError:
        return "an address that is not valid"
