"""Determines the address to which requests go by the settings of `provider`, with its headers and key, but no
secret value.

Nexus sends its chats there, and clients may send their assembled requests there. The providers `editor` and
`none` have no address: the editor's own model answers, or no model does.
"""

import msgspec

from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.redact import printable_setting

ADDRESSES: dict[str, str | None] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
    "openai-compatible": None,
}
"""The API's address of each provider, where `provider.base_url` names none."""


class Endpoint(msgspec.Struct, frozen=True):
    """The address to which requests go. `headers` are the names of the headers that the settings add.

    A password or a query in `url` is covered. `url` is None if the settings still have to name one.
    `key_variable` is the environment variable with the key, and `has_key` says whether it is set in this
    process.
    """

    url: str | None
    headers: tuple[str, ...]
    key_variable: str | None
    has_key: bool


def endpoint_of(snapshot: Snapshot) -> Endpoint | None:
    """Return the address to which the requests of a folder go. Return None if its provider has no address."""
    get = snapshot.effective.get
    provider = get("/provider/name")
    if provider not in ADDRESSES:
        return None
    url, variable = get("/provider/base_url"), get("/provider/api_key_env")
    credentials = {credential.variable: credential.configured for credential in snapshot.contents.credentials}
    return Endpoint(
        url=ADDRESSES[provider] if url is None else printable_setting(url, ("provider", "base_url")),
        headers=tuple(get("/provider/headers") or ()),
        key_variable=variable,
        has_key=credentials.get(variable, False),
    )
