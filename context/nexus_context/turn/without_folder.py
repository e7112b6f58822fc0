"""Makes a snapshot for a conversation without a folder, from its own prompt, tools and limits."""

import functools
import os
from typing import Any

import msgspec

from nexus_context.conversation.budget import ContextConfig, DefaultLimit
from nexus_context.errors import Span
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.environment import detect
from nexus_context.folder.prompt.render import Fragment, Prompt
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Request

_NOWHERE = os.path.join(os.path.abspath(os.devnull), "nowhere")  # nothing can be there
_SEPARATOR = "\n\n"


def without_folder(conversation: ContextManager, request: Request) -> tuple[Snapshot, Request]:
    """Return a snapshot that stands in for a folder's, and the request with the conversation's tools
    added.
    """
    prompt, tools = conversation.prompt_and_tools
    options = request.options
    text = _SEPARATOR.join(filter(None, (prompt, options.additional_system_prompt)))
    fragment = Fragment("custom", None, "system prompt", Span(0, len(text)), path=None, source=Span(0, 0))
    snapshot = _snapshot(conversation.config, options.model or conversation.model)
    conversation_snapshot = msgspec.structs.replace(
        snapshot, prompt=Prompt(text, (fragment,) if text else ()), is_fixed=True
    )
    options = msgspec.structs.replace(options, additional_tools=[*tools, *options.additional_tools])
    return conversation_snapshot, msgspec.structs.replace(request, options=options)


@functools.lru_cache(maxsize=16)
def _snapshot(config: ContextConfig, model: str | None) -> Snapshot:
    names = ("reserve_tokens", "truncation_strategy", "truncation_target", "keep_recent_turns", "pin_first")
    context: dict[str, Any] = {name: getattr(config, name) for name in names}
    limits = {"max_tokens": int(config.max_tokens), "identifier_tokens": config.identifier_tokens}
    if model and isinstance(config.max_tokens, DefaultLimit):
        del limits["max_tokens"]  # the model's window holds
    context |= {name: value for name, value in limits.items() if value is not None} | {"ancestor_depth": 0}
    settings = {"context": context} | ({"provider": {"model": model}} if model else {})
    inputs = LoadInputs(
        home=_NOWHERE,
        user_home=_NOWHERE,
        environ={},
        environment=detect("repl", environ={}),
        overlays={os.path.join(_NOWHERE, "config.json"): msgspec.json.encode(settings).decode()},
    )
    return load(os.path.join(_NOWHERE, "folder"), inputs)
