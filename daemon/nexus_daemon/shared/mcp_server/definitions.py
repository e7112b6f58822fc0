"""Define the tools of `nexus mcp`, as clients send them to a model in every request.

1. There are at most six tools, of less than 1,500 tokens together (a test counts them).
2. Only `add_memory` writes; it is listed with `--write` only.
3. The sentences are in `folder/prompt/texts/nexus_mcp_tools.md`. They are read here without the library,
   since an assistant waits for its servers when it starts.
"""

import functools
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

READING = (
    "show_context",
    "check_configuration",
    "search_conversations",
    "query_memory",
    "search_knowledge",
)
WRITING = ("add_memory",)
NAMES = (*READING, *WRITING)
NEXUS, ALL = "nexus", "all"
"""Values of `assistant` beside the names of assistants."""
ASSISTANTS = ("claude-code", "codex", "opencode", "gemini", "copilot", "cursor", NEXUS, ALL)
KINDS = ("important", "summaries", "notes")
"""Values of `kind` of `query_memory`; the first is the default."""
LONGEST_TEXT = 10_000
"""The most characters of a text in a model's call."""
MOST_NUMBER = 1_000_000
"""The largest `page` or `turn`."""

_TITLES = {
    "show_context": "What assistants read here",
    "check_configuration": "Check the configuration",
    "search_conversations": "Search earlier conversations",
    "query_memory": "Recall what mattered",
    "search_knowledge": "Search the knowledge base",
    "add_memory": "Keep a note",
}
_TEXT: "Mapping[str, Any]" = {"type": "string"}
_NUMBER: "Mapping[str, Any]" = {"type": "integer"}
_ARGUMENTS: "Mapping[str, Mapping[str, Mapping[str, Any]]]" = {
    "show_context": {
        "assistant": {"type": "string", "enum": list(ASSISTANTS)},
        "path": _TEXT,
        "page": _NUMBER,
    },
    "check_configuration": {"assistant": _TEXT, "path": _TEXT, "explain": _TEXT, "page": _NUMBER},
    "search_conversations": {"query": _TEXT, "session": _TEXT, "turn": _NUMBER, "page": _NUMBER},
    "query_memory": {"kind": {"type": "string", "enum": list(KINDS)}, "session": _TEXT, "page": _NUMBER},
    "search_knowledge": {"query": _TEXT, "page": _NUMBER},
    "add_memory": {"text": _TEXT},
}
_REQUIRED = {"search_knowledge": ["query"], "add_memory": ["text"]}
_FILE = os.path.join("folder", "prompt", "texts", "nexus_mcp_tools.md")


def definitions(*, writes: bool) -> "list[dict[str, Any]]":
    """Return the tools in the form of `tools/list`. With `writes`, include the tools that write."""
    return [_definition(name) for name in (NAMES if writes else READING)]


def instructions() -> str:
    """Return the instructions of this server, which a client may pass to its model."""
    return _sentences()["instructions"]


def argument_schemas(name: str) -> "Mapping[str, Mapping[str, Any]]":
    """Return the JSON Schema of each argument of a tool, by name, without its description."""
    return _ARGUMENTS[name]


def required_arguments(name: str) -> "list[str]":
    """Return the names of the arguments that a call of a tool must have."""
    return _REQUIRED.get(name, [])


def _definition(name: str) -> "dict[str, Any]":
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            argument: {**values, **_described(name, argument)}
            for argument, values in _ARGUMENTS[name].items()
        },
    }
    if name in _REQUIRED:
        schema["required"] = _REQUIRED[name]
    annotations: dict[str, Any] = {"readOnlyHint": name in READING, "openWorldHint": False}
    if name in WRITING:
        annotations |= {"destructiveHint": False, "idempotentHint": False}
    return {
        "name": name,
        "title": _TITLES[name],
        "description": _sentences()[name],
        "inputSchema": schema,
        "annotations": annotations,
    }


def _described(name: str, argument: str) -> "dict[str, str]":
    sentences = _sentences()
    text = sentences.get(f"{argument} of {name}", sentences.get(argument))
    return {} if text is None else {"description": text}


@functools.cache
def _sentences() -> "Mapping[str, str]":
    import nexus_context

    path = os.path.join(os.path.dirname(os.path.abspath(nexus_context.__file__)), _FILE)
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file)
