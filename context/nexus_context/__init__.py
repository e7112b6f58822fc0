"""What an AI assistant sees in a folder, what it costs and why: the library, without an editor.

The names below are the public ones. Each is imported on its first use: `import nexus_context` costs nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_context.assembly import AssembledContext, Options, Request, assemble, usage_of
    from nexus_context.budget import TokenUsage, UsageRow
    from nexus_context.conversation.message import Message, ToolCall
    from nexus_context.errors import NexusError, Problem, RequestError, Severity, Span
    from nexus_context.frames import ConfigError, format_frame
    from nexus_context.layers.walk import global_directory, user_home
    from nexus_context.loader import ContextLoader, LoadedContext, LoadedPrompt, PromptLoader, PromptSource
    from nexus_context.manager import ContextManager
    from nexus_context.prompt.environment import Environment, detect
    from nexus_context.prompt.render import Fragment, Prompt
    from nexus_context.snapshot import Snapshot, load, prompt_for
    from nexus_context.tokens import (
        ModelLimits,
        SimpleTokenCounter,
        TiktokenCounter,
        TokenCounter,
        counter_for,
        get_token_counter,
    )

__all__ = [  # noqa: RUF022 (by module, in reading order)
    "NexusError",
    "Problem",
    "RequestError",
    "Severity",
    "Span",
    "ConfigError",
    "format_frame",
    "ModelLimits",
    "SimpleTokenCounter",
    "TiktokenCounter",
    "TokenCounter",
    "counter_for",
    "get_token_counter",
    "global_directory",
    "user_home",
    "Environment",
    "detect",
    "Fragment",
    "Prompt",
    "Snapshot",
    "load",
    "prompt_for",
    "Message",
    "ToolCall",
    "TokenUsage",
    "UsageRow",
    "ContextManager",
    "AssembledContext",
    "Options",
    "Request",
    "assemble",
    "usage_of",
    "ContextLoader",
    "LoadedContext",
    "LoadedPrompt",
    "PromptLoader",
    "PromptSource",
]

_MODULES = {
    "errors": "NexusError Problem RequestError Severity Span",
    "frames": "ConfigError format_frame",
    "tokens": "ModelLimits SimpleTokenCounter TiktokenCounter TokenCounter counter_for get_token_counter",
    "layers.walk": "global_directory user_home",
    "prompt.environment": "Environment detect",
    "prompt.render": "Fragment Prompt",
    "snapshot": "Snapshot load prompt_for",
    "conversation.message": "Message ToolCall",
    "budget": "TokenUsage UsageRow",
    "manager": "ContextManager",
    "assembly": "AssembledContext Options Request assemble usage_of",
    "loader": "ContextLoader LoadedContext LoadedPrompt PromptLoader PromptSource",
}


def __getattr__(name: str) -> object:
    """The public name, from the module that owns it."""
    for module, names in _MODULES.items():
        if name in names.split():
            import importlib

            value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
