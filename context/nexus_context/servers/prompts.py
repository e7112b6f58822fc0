"""Reads how a person calls a prompt of an MCP server, and turns the result into a message of that person.

1. The words after its name are its arguments, in their order; the last argument takes what is left.
2. Its messages are sent as one. Texts stand as they came, and those of an assistant are marked. A part that
   is not text is replaced by a note that says what it is.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from nexus_context.errors import RequestError
from nexus_context.servers.definitions import ServerDefinitions
from nexus_context.servers.result_text import part_text, result_text
from nexus_context.text.visible import visible_line


def prompt_usage(prompt: Mapping[str, Any]) -> str:
    """Return how a prompt is called: its name and arguments, as in `fix FILE [LINE]`.

    An argument in `[…]` may be left out.
    """
    names = [
        (str(argument.get("name")).upper(), argument.get("required") is True)
        for argument in _arguments(prompt)
    ]
    words = [name if is_required else f"[{name}]" for name, is_required in names]
    return visible_line(" ".join((str(prompt.get("name")), *words)))


def find_prompt(server: str, definitions: ServerDefinitions | None, name: str) -> Mapping[str, Any]:
    """Return the prompt of this name as it was listed. RequestError if there is none."""
    prompts = () if definitions is None else definitions.prompts
    prompt = next((candidate for candidate in prompts if candidate.get("name") == name), None)
    if prompt is None:
        names = ", ".join(str(candidate.get("name")) for candidate in prompts) or "none"
        raise RequestError(
            f"The server {server!r} has no prompt {name!r}. It has: {names}.", code="mcp-unknown-prompt"
        )
    return prompt


def read_arguments(server: str, prompt: Mapping[str, Any], words: str) -> dict[str, str]:
    """Split `words` into the arguments of a prompt.

    RequestError if there are fewer words than required arguments.
    """
    arguments = _arguments(prompt)
    values = words.split(maxsplit=max(0, len(arguments) - 1))
    if len(values) < sum(argument.get("required") is True for argument in arguments):
        name, usage = prompt.get("name"), prompt_usage(prompt)
        raise RequestError(
            f"The prompt {name!r} of the server {server!r} is called with: {usage}.",
            code="mcp-missing-argument",
        )
    return {
        str(argument.get("name")): value.strip() for argument, value in zip(arguments, values, strict=False)
    }


def prompt_text(server: str, messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a prompt's messages, which have the form of MCP."""
    texts = []
    for message in messages:
        content = message.get("content")
        text = _content_text(server, content) if isinstance(content, dict) else ""
        texts.append(f"Assistant: {text}" if message.get("role") == "assistant" else text)
    return "\n\n".join(texts)


def _content_text(server: str, content: dict[str, Any]) -> str:
    resource = content.get("resource")
    if not isinstance(resource, dict):
        return part_text(content)
    return result_text(server, str(resource.get("uri")), [content], kind="resource")


def _arguments(prompt: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The described arguments, those that must be given first: only so do words suffice for them."""
    described = prompt.get("arguments")
    arguments = (
        [argument for argument in described if isinstance(argument, dict)]
        if isinstance(described, list)
        else []
    )
    return sorted(arguments, key=lambda argument: argument.get("required") is not True)
