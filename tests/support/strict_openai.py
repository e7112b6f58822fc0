"""Requests of OpenAI's Chat Completions, refused where the public documentation says that it refuses them.

Each check has the rule in its docstring; the sources are the guide "Prompt caching" of developers.openai.com,
the reference in the types of the Python package (openai 3.54), and errors that the API's users quote.
"""

import re
from collections.abc import Iterator, Sequence

from support.strict_request import Block, Body, Sizes, require, said_by

LONGEST_ID = 40
LIFETIME_S = 1_800
ROLES = ("developer", "system", "user", "assistant", "tool")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
)
_RESULT_ALONE = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)


def has_breakpoints(model: str) -> bool:
    """Whether caching works by breakpoints: GPT-5.6 and later models."""
    match = re.search(r"gpt-(\d+)(?:\.(\d+))?", model)
    return match is not None and (int(match[1]), int(match[2] or 0)) >= (5, 6)


def read_openai(body: Body, sizes: Sizes) -> list[Block]:
    """The blocks in the order in which the API reads them: tools, messages. Refused if invalid."""
    require(isinstance(body.get("model"), str) and body["model"], "you must provide a model parameter")
    messages = body.get("messages")
    require(isinstance(messages, list) and messages, "[] is too short - 'messages'")
    for index, message in enumerate(messages or ()):
        _check_message(message, index)
    _check_tool_pairs(messages or ())
    _check_tools(body.get("tools") or [])
    _check_cache_options(body)
    return list(_blocks(body, sizes))


def _check_message(message: Body, index: int) -> None:
    """Only an assistant that calls tools or refuses has no content. Calls are never []."""
    role, content = message.get("role"), message.get("content")
    require(role in ROLES, f"Invalid value: '{role}'. Supported values are: {', '.join(ROLES)}.")
    calls = message.get("tool_calls")
    require(calls is None or role == "assistant", f"Unknown parameter: 'messages[{index}].tool_calls'.")
    require(calls is None or calls, f"[] is too short - 'messages.{index}.tool_calls'")
    silent = role == "assistant" and (calls or message.get("refusal"))
    require(content is not None or silent, "Invalid value for 'content': expected a string, got null.")
    require(content != [], f"Invalid 'messages[{index}].content': empty array.")
    for at, call in enumerate(calls or ()):
        path = f"messages[{index}].tool_calls[{at}]"
        require(
            0 < len(call["id"]) <= LONGEST_ID,
            f"Invalid '{path}.id': string too long. Expected a string with maximum length {LONGEST_ID}.",
        )
        name = call["function"]["name"]
        require(_NAME.fullmatch(name), f"Invalid '{path}.function.name': string does not match pattern.")
        require(
            isinstance(call["function"]["arguments"], str), f"Invalid type for '{path}.function.arguments'."
        )


def _check_tool_pairs(messages: Sequence[Body]) -> None:
    """Each call is answered before the next message of another role; no result without its call."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            require(message.get("tool_call_id") in waiting, _RESULT_ALONE)
            waiting.remove(message["tool_call_id"])
            continue
        require(not waiting, _UNANSWERED.format(", ".join(waiting)))
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    require(not waiting, _UNANSWERED.format(", ".join(waiting)))


def _check_tools(tools: Sequence[Body]) -> None:
    """Names of functions match the pattern."""
    for index, tool in enumerate(tools):
        name = tool.get("function", {}).get("name", "")
        require(
            tool.get("type") != "function" or _NAME.fullmatch(name),
            f"Invalid 'tools[{index}].function.name': string does not match pattern.",
        )


def _check_cache_options(body: Body) -> None:
    """Explicit breakpoints and `prompt_cache_options` are for GPT-5.6 and later; none in an answer."""
    options = body.get("prompt_cache_options")
    marked = [
        message["role"]
        for message in body["messages"]
        if isinstance(message.get("content"), list)
        for part in message["content"]
        if "prompt_cache_breakpoint" in part
    ]
    if not has_breakpoints(body["model"]):
        require(
            options is None, "Unsupported parameter: 'prompt_cache_options' is not supported with this model."
        )
        require(
            not marked, "Unsupported parameter: 'prompt_cache_breakpoint' is not supported with this model."
        )
    require("assistant" not in marked, "Unknown parameter: 'prompt_cache_breakpoint'.")
    if options is not None:
        require(
            options.get("mode", "implicit") in ("implicit", "explicit"),
            "Invalid value: 'prompt_cache_options.mode'.",
        )
        require(
            options.get("ttl", "30m") == "30m",
            "Invalid value: 'prompt_cache_options.ttl'. Supported values are: '30m'.",
        )


def _blocks(body: Body, sizes: Sizes) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or []):
        size = sizes.of_tool(tool)
        yield Block("tools", f"tools[{index}]", said_by("tools", tool), size, None, False, tool)
    for index, message in enumerate(body["messages"]):
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
        if message.get("refusal"):
            parts.append({"type": "refusal", "refusal": message["refusal"]})
        parts += list(message.get("tool_calls") or ())
        for at, part in enumerate(parts):
            lifetime = LIFETIME_S if "prompt_cache_breakpoint" in part else None
            ends = at == len(parts) - 1 and message["role"] != "assistant"
            of = sizes.of_prompt if index == 0 and message["role"] == "system" else sizes.of_block
            size = of(part, begins=at == 0)
            path = f"messages[{index}].content[{at}]"
            role = f"{message['role']} {message.get('tool_call_id', '')} {at}"
            yield Block("messages", path, said_by(role, part), size, lifetime, ends, part)
