"""Converts the keys of Gemini's parts: its API has camel case, and Python programs have snake case."""

from typing import Any

TOOL_KEYS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
"""Keys of what Gemini's own tools did: their values come back as they were."""

_CAMEL: dict[str, str] = {
    "inline_data": "inlineData",
    "file_data": "fileData",
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "thought_signature": "thoughtSignature",
    "tool_call": "toolCall",
    "tool_response": "toolResponse",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "display_name": "displayName",
    "tool_type": "toolType",
}
# their values are objects of the API
_HOLDERS = frozenset((*TOOL_KEYS, "inlineData", "fileData", "functionCall", "functionResponse"))
GEMINI_KEYS = frozenset(("text", *_CAMEL, *_CAMEL.values()))
"""Keys of Gemini's parts, in camel case and in the snake case of Python programs."""


def gemini_form(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of Gemini in the form of its API: keys in camel case, and no key whose value is None.

    Python programs write snake case, and a dump of the SDK has every key. A part that is already in the API's
    form is returned itself.
    """
    camel: dict[str, Any] = {}
    for key, value in part.items():
        if value is not None:
            name = _CAMEL.get(key, key)
            camel[name] = gemini_form(value) if value.__class__ is dict and name in _HOLDERS else value
    return part if camel == part else camel
