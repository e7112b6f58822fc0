"""Where a request goes by the settings of `provider`: address, headers and key, never a value that is secret.

Nexus sends its chats there, and clients may send what they assembled. With the providers `editor` and `none`
there is no address: the editor's own model answers, or nobody.
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
    """Where requests go. `headers` are the names of those that the settings add.

    `url` is covered where it holds a password or a query; None: the settings have to name one.
    `key_variable` is the environment variable with the key, and `has_key` whether this process has it.
    """

    url: str | None
    headers: tuple[str, ...]
    key_variable: str | None
    has_key: bool


def endpoint_of(snapshot: Snapshot) -> Endpoint | None:
    """Where the requests of a folder go; None: to no address."""
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
