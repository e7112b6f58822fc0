"""Requests of OpenAI's Responses, refused where the public documentation says that the API refuses them.

Each check has the rule in its docstring; the sources are the guides "Reasoning models", "Conversation state"
and "Prompt caching" of developers.openai.com, the types of the Python package (openai 3.54), and errors that
the API's users quote.
"""

import re
from collections.abc import Iterator, Sequence

from support.strict_openai import LIFETIME_S, has_breakpoints
from support.strict_request import Block, Body, Sizes, require, said_by

LONGEST_ID = 64
ROLES = ("user", "assistant", "system", "developer")
OPAQUE = ("reasoning", "compaction")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OF_ASSISTANT = ("output_text", "refusal")


def read_responses(body: Body, sizes: Sizes) -> list[Block]:
    """The blocks in the order in which the API reads them: tools, instructions, input. Refused if invalid."""
    require(isinstance(body.get("model"), str) and body["model"], "Missing required parameter: 'model'.")
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not items:
        require(False, "Missing required parameter: 'input'.")
        return []
    for index, item in enumerate(items):
        _check_item(item, index)
    _check_calls(items)
    _check_reasoning(items)
    _check_breakpoints(body, items)
    return list(_blocks(body, items, sizes))


def _check_item(item: Body, index: int) -> None:
    """A message has a role and content of its role; a call an id, a name and arguments; a result its call."""
    kind = item.get("type", "message")
    path = f"input[{index}]"
    if kind == "message":
        role, content = item.get("role"), item.get("content")
        require(role in ROLES, f"Invalid value: '{role}'. Supported values are: {', '.join(ROLES)}.")
        require(content, f"Missing required parameter: '{path}.content'.")
        for at, part in enumerate([] if isinstance(content, str) else content or []):
            fits = (part["type"] in _OF_ASSISTANT) == (role == "assistant")
            require(fits, f"Invalid value: '{part['type']}'. In '{path}.content[{at}].type'.")
        return
    known = ("function_call", "function_call_output", *OPAQUE)
    require(kind in known, f"Invalid value: '{kind}'. Supported values are: {', '.join(known)}.")
    if kind in OPAQUE:
        require(item.get("encrypted_content"), f"Missing required parameter: '{path}.encrypted_content'.")
        return
    too_long = (
        f"Invalid '{path}.call_id': string too long. Expected a string with maximum length {LONGEST_ID}."
    )
    require(0 < len(item.get("call_id", "")) <= LONGEST_ID, too_long)
    if kind == "function_call":
        named = _NAME.fullmatch(item.get("name", ""))
        require(named, f"Invalid '{path}.name': string does not match pattern.")
        require(isinstance(item.get("arguments"), str), f"Missing required parameter: '{path}.arguments'.")
    else:
        require(item.get("output"), f"Missing required parameter: '{path}.output'.")


def _check_calls(items: Sequence[Body]) -> None:
    """Each call has its output somewhere behind it, and each output its call before it."""
    waiting: dict[str, None] = {}
    for item in items:
        if item.get("type") == "function_call":
            waiting[item["call_id"]] = None
        elif item.get("type") == "function_call_output":
            name = item["call_id"]
            require(name in waiting, f"No tool call found for function call output with call_id {name}.")
            del waiting[name]
    require(not waiting, f"No tool output found for function call {next(iter(waiting), '')}.")


def _check_reasoning(items: Sequence[Body]) -> None:
    """Reasoning is followed by what the assistant said or called after it."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[index + 1] if index + 1 < len(items) else {}
        follows = after.get("role") == "assistant" or after.get("type") in ("reasoning", "function_call")
        name = item.get("id", "")
        rule = f"Item '{name}' of type 'reasoning' was provided without its required following item."
        require(follows, rule)


def _check_breakpoints(body: Body, items: Sequence[Body]) -> None:
    """Explicit breakpoints and `prompt_cache_options` are for GPT-5.6 and later models; none in an answer."""
    marked = [
        item.get("role", item.get("type"))
        for item in items
        for part in parts_of(item)
        if "prompt_cache_breakpoint" in part
    ]
    if not has_breakpoints(body["model"]):
        allowed = "prompt_cache_options" not in body and not marked
        require(allowed, "Unsupported parameter: 'prompt_cache_options' is not supported with this model.")
    require(
        not {"assistant", "function_call", *OPAQUE} & {*marked},
        "Unknown parameter: 'prompt_cache_breakpoint'.",
    )


def parts_of(item: Body) -> list[Body]:
    """The parts of an item; the item itself where it has none."""
    content = item.get("content", item.get("output"))
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return content if isinstance(content, list) and item.get("type") not in OPAQUE else [item]


def _blocks(body: Body, items: Sequence[Body], sizes: Sizes) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or []):
        size = sizes.of_tool(tool)
        yield Block("tools", f"tools[{index}]", said_by("tools", tool), size, None, False, tool)
    if body.get("instructions"):
        part = {"type": "input_text", "text": body["instructions"]}
        size = sizes.of_prompt(part, begins=True)
        yield Block("system", "instructions", said_by("instructions", part), size, None, False, part)
    in_answer = False  # whether an item of the same answer precedes
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        parts = parts_of(item)
        is_prompt = index == 0 and item.get("role") in ("system", "developer")
        for at, part in enumerate(parts):
            lifetime = LIFETIME_S if "prompt_cache_breakpoint" in part else None
            role = f"{kind} {item.get('role', item.get('call_id', ''))} {at}"
            holds = item.get("role") not in (None, "assistant") or kind == "function_call_output"
            begins = not in_answer if kind == "function_call" else at == 0
            size = sizes.of_prompt(part, begins=begins) if is_prompt else _size(item, part, sizes, begins)
            ends = holds and at == len(parts) - 1
            yield Block("messages", f"input[{index}]", said_by(role, part), size, lifetime, ends, part)
        if kind not in OPAQUE:
            in_answer = item.get("role") == "assistant" or kind == "function_call"


def _size(item: Body, part: Body, sizes: Sizes, begins: bool) -> int:
    """Tokens as in chat completions. What is encrypted has the size of its data."""
    if item.get("type") == "function_call":
        return sizes.of_block({"type": "function", "function": item}, begins=begins and sizes.by_message)
    if item.get("type") in OPAQUE:
        return sizes.data(item["encrypted_content"])
    return sizes.of_block(part, begins=begins)
