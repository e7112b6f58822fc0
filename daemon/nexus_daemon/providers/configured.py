"""Find the provider that the settings name, with its key."""

from collections.abc import Mapping
from contextlib import suppress

from nexus_context.config.scope import in_workspace
from nexus_context.disk.user_state import NoStateDirectoryError
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.redact import printable_setting
from nexus_context.turn.endpoint import ADDRESSES, endpoint_of
from nexus_daemon.providers import Target
from nexus_daemon.servers.token_store import load_tokens

KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
"""Provider → the environment variable of its key, unless `provider.api_key_env` names one."""

HOW = (
    'Set "provider" in the global config.json, for example {"name": "anthropic", '
    '"model": "claude-sonnet-4-6"}, and put the key into the environment variable {variable}.'
)


async def find_target(snapshot: Snapshot, environ: Mapping[str, str]) -> Target:
    """Return the provider that answers a folder's chats, with its key.

    The key is that of the environment, else the one that the user has stored. RequestError with the code
    no-provider if there is no provider.

    The global file must name the provider: a file of the workspace comes with the code, so it must not choose
    who gets the conversation, with which key, and who is paid.
    """
    get = snapshot.effective.get
    name = get("/provider/name")
    if endpoint_of(snapshot) is None:
        reason = "leave the model to the editor" if name == "editor" else "name no provider"
        example = HOW.replace("{variable}", KEY_VARIABLES["anthropic"])
        raise RequestError(f"The settings {reason} (provider.name is {name}). {example}", code="no-provider")
    url, variable, headers = get("/provider/base_url"), get("/provider/api_key_env"), get("/provider/headers")
    chain = snapshot.effective.provenance.get("/provider/name", ())
    of_workspace = any(entry.wins and in_workspace(entry.layer) for entry in chain)
    names = {entry.value for entry in chain if not in_workspace(entry.layer)}
    if of_workspace and names != {name}:
        raise RequestError(
            f"A file of the workspace sets provider.name to {name}, but the global config.json names "
            f"{' and '.join(sorted(names)) or 'no provider'}. To send conversations to {name}, set "
            "provider.name there, too.",
            code="no-provider",
        )
    if url is None and ADDRESSES[name] is None:
        raise RequestError(
            f"provider.name is {name}, so provider.base_url must say where the server is, for example "
            "http://127.0.0.1:11434/v1. Set it in the global config.json.",
            code="no-provider",
        )
    variable = variable or KEY_VARIABLES.get(name)
    key = environ.get(variable) if variable else None
    if not key:
        with suppress(NoStateDirectoryError):
            key = await load_tokens(environ, key_name(name))
    if not key and name in KEY_VARIABLES:
        raise RequestError(
            f"There is no key for {name}: the environment variable {variable} is not set, and none is "
            "stored. Set it where the editor starts, or store a key with nexus chat --key.",
            code="no-provider",
        )
    return Target(provider=name, url=url, key=key or None, headers=dict(headers or {}))


def key_name(provider: str) -> str:
    """Return the name under which the user's key of a provider is stored (`token_store`)."""
    return f"provider-{provider}"


def describe_target(target: Target) -> str:
    """Name for people who gets a conversation: the provider, and its address if the settings name one."""
    if target.url is None:
        return target.provider
    return f"{target.provider} at {printable_setting(target.url, ('provider', 'base_url'))}"
