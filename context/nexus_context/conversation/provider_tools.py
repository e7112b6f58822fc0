"""Identifies tools that only one provider knows: which provider, and the tool's name.

Anthropic's tools have a dated type (`web_search_20250305`), OpenAI's have a type of OPENAI_TYPES, and
Gemini's have a key of GEMINI_KEYS in place of a type. Sources: the tool types of the packages anthropic 2.12,
openai 3.54 and google-genai 3.4.
"""

from collections.abc import Mapping
from typing import Any, Literal

Owner = Literal["anthropic", "openai", "openai-responses", "gemini"]
OWNER_NAMES: dict[Owner, str] = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "openai-responses": "the Responses API of OpenAI",
    "gemini": "Gemini",
}
OPENAI_TYPES = frozenset(
    (
        *(
            "apply_patch",
            "code_interpreter",
            "computer",
            "computer_use_preview",
            "file_search",
            "local_shell",
        ),
        *("image_generation", "mcp", "namespace", "programmatic_tool_calling", "shell", "tool_search"),
        *("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"),
    )
)
GEMINI_KEYS = frozenset(
    (
        *("retrieval", "computerUse", "fileSearch", "googleSearch", "googleMaps", "codeExecution"),
        *("enterpriseWebSearch", "functionDeclarations", "googleSearchRetrieval", "parallelAiSearch"),
        *("urlContext", "mcpServers", "exaAiSearch"),
        *("computer_use", "file_search", "google_search", "google_maps", "code_execution", "mcp_servers"),
        *("enterprise_web_search", "function_declarations", "google_search_retrieval", "exa_ai_search"),
        *("parallel_ai_search", "url_context"),
    )
)
SCHEMAS = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema")
"""The keys of a tool's schema in all forms."""


def owner_of(tool: Mapping[str, Any]) -> Owner | None:
    """Return the provider that alone knows a tool. Return None for a function, which all providers know."""
    kind = tool.get("type")
    if not isinstance(kind, str):
        return "gemini" if "name" not in tool and not GEMINI_KEYS.isdisjoint(tool) else None
    if kind == "function":
        return None
    if kind == "custom":
        return None if any(key in tool for key in SCHEMAS) else "openai"
    return "openai-responses" if kind in OPENAI_TYPES else "anthropic"


def hosted_name(tool: Mapping[str, Any]) -> str:
    """Return a name for a provider's own tool that has none: the name of its server, else its type, else its
    key of GEMINI_KEYS.
    """
    for key in ("server_label", "mcp_server_name", "type"):
        if isinstance(tool.get(key), str):
            return str(tool[key])
    return next((key for key in tool if key in GEMINI_KEYS), "")
