"""What the providers' servers refuse beyond the types of their requests, as assertions.

Each rule is one that a server has been seen to answer with an error for.
"""

import itertools
import json
import re
from typing import Any

IMAGE_DATA = re.compile(r"data:image/(jpeg|png|gif|webp);base64,.+", re.DOTALL)
NAME = re.compile(r"[a-zA-Z0-9_-]+")
CHOICES = {"oneOf", "anyOf", "allOf", "enum", "not"}
REASONING = ("thinking", "redacted_thinking")
SERVER_RESULT = re.compile(r".*_tool_result")
BLOCKS = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"},
    "result": {"text", "image", "document", "search_result"},
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
            assert isinstance(message["content"], str)
            assert message["content"].strip()
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
    _check_tools([tool["function"] for tool in body.get("tools", []) if "function" in tool], "parameters", 64)


def _check_openai_call(call: Any) -> None:
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
    }
    for part in content:
        assert part["type"] in allowed[role]
        if part["type"] == "text":
            assert part["text"].strip()
        if part["type"] == "image_url":
            url = part["image_url"]["url"]
            assert IMAGE_DATA.fullmatch(url) or url.startswith(("http://", "https://"))


def check_anthropic(body: Any, *, prefill: bool = True) -> None:
    """Messages. `prefill`: the model goes on with an assistant's words."""
    json.dumps(body).encode()
    messages = body["messages"]
    assert messages
    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[index % 2] for index in range(len(roles))]
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
        assert kinds[len(kinds) - len(waiting) :] == ["tool_use"] * len(waiting), "calls come last"
        assert seen.isdisjoint(waiting)
        assert len(set(waiting)) == len(waiting)
        seen.update(waiting)
        if message["role"] == "assistant":
            assert kinds[-1] not in REASONING
            _check_server_tools(blocks)
    assert not waiting
    if roles[-1] == "assistant":
        assert prefill
        last = messages[-1]["content"][-1]
        assert last["type"] != "text" or last["text"] == last["text"].rstrip()
    for block in body.get("system", []):
        assert block["type"] == "text"
        assert block["text"].strip()
    assert json.dumps(body).count('"cache_control"') <= 4
    _check_tools([tool for tool in body.get("tools", []) if "input_schema" in tool], "input_schema", 128)


def _check_block(block: Any, role: str) -> None:
    kind = block["type"]
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


def _check_server_tools(blocks: Any) -> None:
    called = {block["id"] for block in blocks if block["type"] == "server_tool_use"}
    answered = {block["tool_use_id"] for block in blocks if SERVER_RESULT.fullmatch(block["type"])}
    assert called == answered


def _check_tools(tools: list[Any], schema: str, longest: int) -> None:
    names = [tool["name"] for tool in tools]
    assert len(set(names)) == len(names)
    for tool in tools:
        assert NAME.fullmatch(tool["name"])
        assert len(tool["name"]) <= longest
        assert tool[schema]["type"] == "object"
        assert isinstance(tool[schema]["properties"], dict)
        assert CHOICES.isdisjoint(tool[schema])
