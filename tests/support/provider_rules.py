"""What the providers' servers refuse beyond the types of their requests, as assertions.

Each rule is one that a server has been seen to answer with an error for.
"""

import base64
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

IMAGE_DATA = re.compile(r"data:image/(jpeg|png|gif|webp);base64,.+", re.DOTALL)
NAME = re.compile(r"[a-zA-Z0-9_-]+")
CHOICES = {"oneOf", "anyOf", "allOf", "enum", "not"}
REASONING = ("thinking", "redacted_thinking")
SERVER_RESULT = re.compile(r".+_tool_result")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
CLIENT_OUTPUTS = {
    **{f"{name}_output": name for name in ("apply_patch_call", "computer_call", "custom_tool_call")},
    **{f"{name}_output": name for name in ("local_shell_call", "shell_call")},
    "mcp_approval_response": "mcp_approval_request",
    "tool_search_output": "tool_search_call",
}
BLOCKS = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {
        *("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"),
        *("mcp_tool_use", "fallback"),
    },
    "system": {"text"},
    "result": {"text", "image", "document", "search_result", "tool_reference"},
}


def check_openai(body: Any) -> None:
    """Chat completions."""
    json.dumps(body).encode()
    messages = body["messages"]
    assert messages
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            content = message["content"]
            assert isinstance(content, str) or {part["type"] for part in content} == {"text"}
            _check_openai_content(content, "tool")
            continue
        assert not waiting, "a call is not answered right behind its message"
        calls = message.get("tool_calls", [])
        assert "tool_calls" not in message or (calls and message["role"] == "assistant")
        for call in calls:
            _check_openai_call(call)
            assert call["id"] not in seen
            seen.add(call["id"])
            waiting.add(call["id"])
        assert message["content"] is not None or calls
        if message["content"] is not None:
            _check_openai_content(message["content"], message["role"])
    assert not waiting
    roles = [message["role"] for message in messages]
    assert all(one != other or one in ("tool", "system") for one, other in itertools.pairwise(roles))
    _check_openai_tools(body, [tool["function"] for tool in body.get("tools", []) if "function" in tool])


def _check_openai_call(call: Any) -> None:
    if call["type"] == "custom":
        assert isinstance(call["custom"]["input"], str)
        return
    assert 0 < len(call["id"]) <= 40
    assert NAME.fullmatch(call["function"]["name"])
    assert len(call["function"]["name"]) <= 64
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


def _check_openai_content(content: Any, role: str) -> None:
    if isinstance(content, str):
        assert content.strip()
        return
    assert content
    allowed = {
        "user": {"text", "image_url", "input_audio", "file"},
        "assistant": {"text", "refusal"},
        "system": {"text"},
        "tool": {"text"},
    }
    for part in content:
        assert part["type"] in allowed[role]
        if part["type"] == "text":
            assert part["text"].strip()
        if part["type"] == "image_url":
            url = part["image_url"]["url"]
            assert IMAGE_DATA.fullmatch(url) or url.startswith(("http://", "https://"))


def _item_key(item: Any) -> str:
    return str(item.get("call_id") or item.get("approval_request_id") or item.get("id"))


def _check_client_items(items: list[Any]) -> None:
    """What the client ran, save functions, is answered before the next message of the user."""
    waiting: set[tuple[str, str]] = set()
    for item in items:
        kind = item["type"]
        if kind in CLIENT_OUTPUTS:
            waiting.remove((CLIENT_OUTPUTS[kind], _item_key(item)))
        elif kind in CLIENT_OUTPUTS.values() and item.get("execution", "client") == "client":
            assert (kind, _item_key(item)) not in waiting
            waiting.add((kind, _item_key(item)))
        assert not waiting or kind != "message" or item["role"] == "assistant"
    assert not waiting


def check_responses(body: Any) -> None:
    """Responses."""
    json.dumps(body).encode()
    items = body["input"]
    assert items
    assert body["store"] is False
    called: set[str] = set()
    waiting: set[str] = set()
    for at, item in enumerate(items):
        kind = item["type"]
        following = items[at + 1 : at + 2]
        if kind in ("function_call_output", "custom_tool_call_output"):
            if kind == "function_call_output":
                waiting.remove(item["call_id"])
            assert item["output"]
            if isinstance(item["output"], str):
                assert item["output"].strip()
            continue
        if item.get("role") in ("user", "developer"):
            assert not waiting, "a call is not answered before the next message"
        if kind == "function_call":
            assert 0 < len(item["call_id"]) <= 64
            assert NAME.fullmatch(item["name"])
            assert len(item["name"]) <= 64
            assert isinstance(json.loads(item["arguments"]), dict)
            assert item["call_id"] not in called
            called.add(item["call_id"])
            waiting.add(item["call_id"])
        elif kind == "reasoning":
            assert item["encrypted_content"]
            assert following, "reasoning is followed by what it led to"
            assert following[0]["type"] in ("reasoning", "message") or following[0]["type"].endswith("_call")
            assert following[0].get("role", "assistant") == "assistant"
        elif kind == "compaction":
            assert at <= sum(one.get("role") == "developer" for one in items[:at]), "compactions come first"
        elif kind == "message":
            assert item["content"]
            if item["role"] == "assistant":
                assert item["content"].strip()
            for part in item["content"] if isinstance(item["content"], list) else ():
                assert part["type"] != "input_text" or part["text"].strip()
    assert not waiting
    _check_client_items(items)
    customs = {tool["name"] for tool in body.get("tools", []) if tool["type"] == "custom"}
    assert not any(item["type"] == "function_call" and item["name"] in customs for item in items)
    assert sum(item["type"] == "compaction" for item in items) <= 1
    assert json.dumps(body).count('"prompt_cache_breakpoint"') <= 3
    _check_openai_tools(body, [tool for tool in body.get("tools", []) if tool["type"] == "function"])


def check_gemini(body: Any, *, is_strict: bool = False) -> None:
    """`generateContent`. `is_strict`: Gemini 3 or later, which wants the first call of a content signed."""
    json.dumps(body).encode()
    contents = body["contents"]
    roles = [content["role"] for content in contents]
    assert roles == [("user", "model")[index % 2] for index in range(len(roles))]
    assert roles[-1:] == ["user"]
    waiting: list[tuple[str, str]] = []
    for content in contents:
        sent = content["parts"]
        assert sent
        results = [part["functionResponse"] for part in sent if "functionResponse" in part]
        assert all("functionResponse" in part for part in sent[: len(results)]), "results come first"
        answered = sorted((one.get("id", ""), one["name"]) for one in results)
        assert answered == sorted(waiting), "each call is answered"
        for result in results:
            assert isinstance(result["response"], dict)
        calls = [part for part in sent if "functionCall" in part]
        assert not calls or content["role"] == "model"
        waiting = [(part["functionCall"].get("id", ""), part["functionCall"]["name"]) for part in calls]
        ids = [call_id for call_id, _ in waiting if call_id]  # models before Gemini 3 give none
        assert len(set(ids)) == len(ids)
        if is_strict and calls:
            assert calls[0]["thoughtSignature"]
        for part in sent:
            _check_gemini_part(part, content["role"])
    assert not waiting
    for part in body.get("systemInstruction", {}).get("parts", []):
        assert part["text"].strip()
    declared = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", ())]
    assert len(declared) <= 512
    _check_tools(declared, "parametersJsonSchema", 64)
    assert all(re.match("[a-zA-Z_]", one["name"]) for one in declared)


def _check_gemini_part(part: Any, role: str) -> None:
    kinds = part.keys() & {
        *("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode"),
    }
    assert len(kinds) == 1
    if "text" in part:
        assert part["text"].strip() or part.get("thoughtSignature")
    if role == "user":
        assert part.keys().isdisjoint(("thought", "thoughtSignature"))
    else:
        assert kinds <= {"text", "functionCall", "executableCode"}
    if "functionCall" in part:
        assert isinstance(part["functionCall"]["args"], dict)
        assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_-]{0,63}", part["functionCall"]["name"])
    if "inlineData" in part:
        kind = part["inlineData"]["mimeType"]
        assert kind in ("image/png", "image/jpeg", "image/webp", "application/pdf", "audio/wav", "audio/mp3")


def check_anthropic(body: Any, *, prefill: bool = True, is_paused: bool = False, window: int = 0) -> None:
    """Messages. `prefill`: the model goes on with an assistant's words; `is_paused`: with its paused answer.

    `window` are the tokens of the model's.
    """
    json.dumps(body).encode()
    messages = body["messages"]
    assert messages
    compacted = _check_compaction(messages)
    _check_systems(messages)
    messages = [message for message in messages if message["role"] != "system"]
    roles = [message["role"] for message in messages]
    speakers = ("assistant", "user") if compacted and roles[0] == "assistant" else ("user", "assistant")
    assert roles == [speakers[index % 2] for index in range(len(roles))]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        kinds = [block["type"] for block in blocks]
        assert kinds
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert kinds[: len(results)] == ["tool_result"] * len(results), "results come first"
        assert sorted(results) == sorted(waiting), "each call is answered in the next message, once"
        for block in blocks:
            _check_block(block, message["role"])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        first_call = kinds.index("tool_use") if waiting else len(kinds)
        if set(REASONING).isdisjoint(kinds[first_call:]):
            assert kinds[first_call:] == ["tool_use"] * len(waiting), "calls come last"
        assert seen.isdisjoint(waiting)
        assert len(set(waiting)) == len(waiting)
        seen.update(waiting)
        if message["role"] == "assistant":
            assert kinds[-1] not in REASONING or (is_paused and message is messages[-1])
    assert not waiting
    _check_server_tools(messages)
    if is_paused:
        assert body["messages"][-1]["role"] == "assistant"
    elif body["messages"][-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        assert prefill or SERVER_RESULT.fullmatch(last["type"]) or last["type"] in SERVER_CALLS
        assert last["type"] != "text" or last["text"] == last["text"].rstrip()
    if body.get("thinking", {}).get("type") == "enabled":
        last = [message["content"] for message in messages if message["role"] == "assistant"][-1:]
        for blocks in last:
            kinds = [block["type"] for block in blocks]
            assert "tool_use" not in kinds or kinds[0] in REASONING
    for block in body.get("system", []):
        assert block["type"] == "text"
        assert block["text"].strip()
    assert json.dumps(body).count('"cache_control"') <= 4
    _check_pictures(messages, 600 if window > 200_000 else 100)
    _check_deferred(body.get("tools", []))
    _check_tools([tool for tool in body.get("tools", []) if "input_schema" in tool], "input_schema", 128)


def _check_compaction(messages: list[Any]) -> bool:
    """Whether there is a compaction: the first block of all, and the only one."""
    kinds = [block["type"] for message in messages for block in message["content"]]
    assert "compaction" not in kinds[1:], "the compaction comes first"
    if kinds[:1] != ["compaction"]:
        return False
    block = messages[0]["content"][0]
    assert messages[0]["role"] in ("user", "assistant")
    assert block.get("content") or block.get("encrypted_content")
    return True


def _check_systems(messages: list[Any]) -> None:
    """A system message follows a user's and precedes an assistant's, or ends the conversation."""
    roles = [message["role"] for message in messages]
    for at, message in enumerate(messages):
        if message["role"] == "system":
            assert at > 0
            assert roles[at - 1] == "user"
            assert roles[at + 1 : at + 2] in ([], ["assistant"])
            for block in message["content"]:
                _check_block(block, "system")


def _check_block(block: Any, role: str) -> None:
    kind = block["type"]
    if kind == "compaction":
        return
    assert kind in BLOCKS[role] or (role == "assistant" and SERVER_RESULT.fullmatch(kind))
    if kind == "text":
        assert block["text"].strip()
    elif kind in REASONING:
        assert "cache_control" not in block
        assert block.get("signature") or block.get("data")
    elif kind == "tool_use":
        assert NAME.fullmatch(block["id"])
        assert NAME.fullmatch(block["name"])
        assert len(block["name"]) <= 128
        assert isinstance(block["input"], dict)
    elif kind == "tool_result":
        assert NAME.fullmatch(block["tool_use_id"])
        assert block.get("content") != []
        if block.get("is_error"):
            assert block["content"]
            assert {part["type"] for part in block["content"]} == {"text"}
        for part in block.get("content", []):
            _check_block(part, "result")
    elif kind in ("image", "document"):
        source = block["source"]
        assert source["type"] != "url" or source["url"].startswith("https://")


def _check_server_tools(messages: list[Any]) -> None:
    """A server tool's result is in its message, or beside a client's call in the next answer.

    Only the client's results stand between. A paused answer is the last message, maybe without a result.
    """
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        blocks = message["content"]
        if message["role"] == "user":
            assert not waiting or {block["type"] for block in blocks} == {"tool_result"}
            continue
        called: set[str] = set(waiting)
        answered: set[str] = set()
        for block in blocks:
            if block["type"] in ("server_tool_use", "mcp_tool_use"):
                assert block["id"] not in called
                called.add(block["id"])
            elif SERVER_RESULT.fullmatch(block["type"]):
                assert block["tool_use_id"] in called - answered, "a result stands behind its call"
                answered.add(block["tool_use_id"])
        callers = {block.get("caller", {}).get("tool_id") for block in blocks if block["type"] == "tool_use"}
        assert waiting - callers <= answered, "the next answer has the results"
        waiting = called - answered
        has_calls = any(block["type"] == "tool_use" for block in blocks)
        assert not waiting or has_calls or at == len(messages) - 1


def _check_pictures(messages: list[Any], most: int) -> None:
    """Sizes and number of images; citations are enabled for all documents and search results, or for none."""
    parts = [
        part for message in messages if isinstance(message["content"], list) for part in message["content"]
    ]
    parts += [part for block in parts if block["type"] == "tool_result" for part in block.get("content", [])]
    images = [part for part in parts if part["type"] == "image"]
    assert len(images) <= most
    for image in images:
        data = image["source"].get("data", "")
        assert len(data) <= 5 << 20
        if data.startswith("iVBORw0KGg") and len(data) > 32:
            head = base64.b64decode(data[:64])
            edge = max(int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))
            assert edge <= (2_000 if len(images) > 20 else 8_000)
    cited = [part for part in parts if part["type"] in ("document", "search_result")]
    assert len({bool(part.get("citations", {}).get("enabled")) for part in cited}) <= 1


def _check_deferred(tools: list[Any]) -> None:
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    assert not tools or len(deferred) < len(tools)
    assert not any("cache_control" in tool for tool in deferred)


def _schemas(schema: Any) -> Iterator[Any]:
    """All schemas within a schema."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key, value in schema.items():
        if key in ("properties", "$defs", "patternProperties"):
            for inner in value.values():
                yield from _schemas(inner)
        elif key in ("items", "additionalProperties", "not"):
            yield from _schemas(value)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            for inner in value:
                yield from _schemas(inner)


def _check_openai_tools(body: Any, functions: list[Any]) -> None:
    """At most 128 tools; an array has items; a strict schema is closed and requires all."""
    assert len(body.get("tools", [])) <= 128
    for function in functions:
        for schema in _schemas(function["parameters"]):
            assert "array" not in str(schema.get("type")) or "items" in schema
            if function.get("strict") and schema.get("type") == "object":
                assert schema["additionalProperties"] is False
                assert set(schema["required"]) == set(schema["properties"])
    _check_tools(functions, "parameters", 64)


def _check_tools(tools: list[Any], schema: str, longest: int) -> None:
    names = [tool["name"] for tool in tools]
    assert len(set(names)) == len(names)
    for tool in tools:
        assert NAME.fullmatch(tool["name"])
        assert len(tool["name"]) <= longest
        assert tool[schema]["type"] == "object"
        assert isinstance(tool[schema]["properties"], dict)
        assert CHOICES.isdisjoint(tool[schema])
        if schema == "input_schema":
            assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in tool[schema]["properties"])


CHECKS = {
    "openai": check_openai,
    "openai-responses": check_responses,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
}
"""The rules of each format of a body."""
