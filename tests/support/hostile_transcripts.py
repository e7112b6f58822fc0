"""Transcripts in which one record holds anything that JSON can say, or cannot: for the imports.

A record is the record of a program with some of its values replaced, made from dice: the same dice make the
same record.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from support import program_files

FORMS = (
    *("openai", "anthropic", "claude-code", "tau-bench", "neutral", "nexus"),
    *("codex", "responses", "gemini", "pydantic-ai", "openhands", "opencode", "claude-web", "swe-agent"),
)
GOOD = ("The first is whole.", "The last is whole.")
"""What the sound records around the hostile one say."""

_HOSTILE_KEYS = (r'"\ud800"', r'"\udc00x"', '""', r'"\u0000"', '"type"', '"__proto__"', '"content"')
_LEAVES = (
    *("null", "true", "false", "0", "-1", "1.5", "-0.0", "1e400", "NaN", "Infinity", str(2**64), "9" * 400),
    *('""', '" "', '"text"', '"user"', r'"\ud800"', r'"\ud83d\ude00"', r'"\udc00\ud800"', r'"\u0000"'),
    *(r'"<|endoftext|>"', r'"\u001b]52;c;eA==\u0007"', '"2026-01-01T00:00:00Z"', '"9999-99-99"', '"{}"'),
    *(
        "[]",
        "{}",
        '["tool_use"]',
        '[{"type":["text"]}]',
        '{"type":{}}',
        '{"type":["tool_result"],"content":7}',
    ),
    *('{"type":"text","text":["a"]}', '{"type":"image","source":[]}', '{"type":"tool_use","input":"[1"}'),
    *('{"a":1,"a":2}', '{"type":"document","source":{"type":["base64"]}}', '{"type":[["image"]]}'),
    *('{"type":"input_audio","input_audio":{"data":"x","format":[]}}', '{"mimeType":{},"type":"audio"}'),
    *('{"type":"image_url","image_url":{"url":"https://x.example/a","detail":[]}}', "[" * 60 + "]" * 60),
    *("[" * 900 + "]" * 900, '{"a":' * 400 + "1" + "}" * 400, "[" * 5000),
)


def any_json(dice: Random, depth: int = 0) -> str:
    """A JSON text, now and then one that is not valid."""
    kind = dice.random()
    if kind < 0.7 or depth > 3:
        return dice.choice(_LEAVES)
    inner = [any_json(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind < 0.85:
        return f"[{','.join(inner)}]"
    return "{" + ",".join(f"{_key(dice)}:{each}" for each in inner) + "}"


def line(dice: Random, form: str) -> str:
    """A record of that form, of which a few values or keys are something else."""
    if dice.random() < 0.05:
        return any_json(dice)
    record = json.loads(json.dumps(dice.choice(_RECORDS[form])))
    holes: list[str] = []
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        _replace(dice, record, holes)
    text = json.dumps(record)
    for number, hole in enumerate(holes):
        text = text.replace(json.dumps(f"\x01{number}\x02"), hole)
    return text


def file(dice: Random, form: str, lines: int = 1) -> bytes:
    """A file of that form: a sound record, hostile ones, a sound record."""
    first, last = (json.dumps(_sound(form, text, number)) for number, text in enumerate(GOOD))
    header = (
        [json.dumps({"format": "nexus-session", "version": 1, "session": "s"})] if form == "nexus" else []
    )
    middle = [line(dice, form) for _ in range(lines)]
    return "\n".join([*header, first, *middle, last, ""]).encode("utf-8", "surrogatepass")


def _key(dice: Random) -> str:
    return dice.choice(_HOSTILE_KEYS) if dice.random() < 0.5 else json.dumps(dice.choice(_KEYS))


def _replace(dice: Random, record: Any, holes: list[str]) -> None:
    """Put a hole in the place of one value, or beside others."""
    places: list[tuple[Any, Any]] = []
    waiting = [record]
    while waiting:
        value = waiting.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            places.append((value, key))
            if isinstance(inner, dict | list):
                waiting.append(inner)
    holder, key = dice.choice(places)
    hole = f"\x01{len(holes)}\x02"
    if isinstance(holder, dict) and dice.random() < 0.2:
        holes.append(_key(dice))
        holder[hole] = "x"
        return
    holes.append(any_json(dice))
    if isinstance(holder, dict) and dice.random() < 0.2:
        key = dice.choice(_KEYS)
    holder[key] = hole


def _sound(form: str, text: str, number: int) -> Any:
    if form == "claude-code":
        return {
            "type": "user",
            "uuid": f"good-{number}",
            "parentUuid": None,
            "isMeta": bool(number),
            "sessionId": "s",
            "message": {"role": "user", "content": text},
        }
    program = _PROGRAM_SOUND.get(form)
    if program is not None:
        return program(text, number)
    if form == "tau-bench":
        return {"task_id": f"good-{number}", "traj": [{"role": "user", "content": text}]}
    if form == "nexus":
        message = {"role": "user", "content": text}
        return {"seq": number, "type": "query", "created": "2026-01-01T00:00:00.000Z", "messages": [message]}
    return {"role": "user", "content": text}


COMPACTED = program_files.enveloped(
    "compacted", {"message": "So far.", "replacement_history": [program_files.said("user", "So far.")]}
)
_PROGRAM_SOUND: dict[str, Callable[[str, int], Any]] = {
    "codex": lambda text, _: program_files.enveloped("response_item", program_files.said("user", text)),
    "responses": lambda text, _: program_files.said("user", text),
    "gemini": lambda text, _: {"role": "user", "parts": [{"text": text}]},
    "pydantic-ai": lambda text, _: {
        "kind": "request",
        "parts": [{"part_kind": "user-prompt", "content": text}],
    },
    "openhands": lambda text, number: {
        "id": 1_000 + number,
        "source": "user",
        "action": "message",
        "args": {"content": text},
    },
    "opencode": lambda text, number: program_files.opencode(
        f"good-{number}", "user", [{"type": "text", "text": text}]
    ),
    "claude-web": lambda text, number: {
        "uuid": f"good-{number}",
        "chat_messages": [{"sender": "human", "text": text}],
    },
    "swe-agent": lambda text, _: {"history": [{"role": "user", "content": text, "message_type": "x"}]},
}

_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
_PART = {"type": "text", "text": "said"}
_IMAGE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png", "detail": "low"}}
_USE = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}
_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [_PART], "is_error": False}
_THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
_TURN = {
    "created": "2026-01-01T00:00:00.000Z",
    "model": "m",
    "role": "r",
    "permissions": "p",
    "toolset": ["a"],
}
_OWN = {
    "role": "assistant",
    "content": [_PART],
    "toolCalls": [{"id": "c1", "name": "look", "arguments": {"at": [1]}}],
    "name": "n",
    "meta": {"a": 1},
    "timestamp": "2026-01-01T00:00:00Z",
    "tokens": 3,
}
_RECORDS: dict[str, tuple[Any, ...]] = {
    "openai": (
        {"role": "user", "content": [_PART, _IMAGE]},
        {"role": "assistant", "content": None, "tool_calls": [_CALL], "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": "Found."},
        {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "x"},
        {"choices": [{"message": {"role": "assistant", "content": "x"}}]},
        {"body": {"model": "m", "messages": [{"role": "system", "content": "x"}], "tools": [{"name": "t"}]}},
    ),
    "anthropic": (
        {"role": "user", "content": [_RESULT, _PART]},
        {"role": "assistant", "content": [_THINKING, _PART, _USE]},
        {"system": [_PART], "messages": [{"role": "user", "content": [_PART]}], "model": "m", "id": "i"},
    ),
    "claude-code": (
        {
            "type": "user",
            "uuid": "u",
            "parentUuid": "good-0",
            "message": {"role": "user", "content": [_RESULT]},
        },
        {
            "type": "assistant",
            "uuid": "a",
            "parentUuid": "good-0",
            "timestamp": "2026-03-01T10:00:05+02:00",
            "message": {"id": "m1", "role": "assistant", "model": "m", "content": [_THINKING, _USE, _PART]},
        },
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "b",
            "parentUuid": None,
            "logicalParentUuid": "good-0",
            "compactMetadata": {
                "preservedMessages": {"uuids": ["good-0"], "anchorUuid": "a"},
                "preservedSegment": {"headUuid": "good-0", "tailUuid": "good-0", "anchorUuid": "a"},
            },
        },
        {"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": [_PART]}},
        {"type": "system", "subtype": "local_command", "uuid": "l", "content": "x"},
        {
            "type": "user",
            "uuid": "s",
            "isSidechain": True,
            "agentId": "x",
            "message": {"role": "user", "content": "x"},
        },
    ),
    "tau-bench": (
        {
            "task_id": 1,
            "trial": 0,
            "traj": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [_CALL]}],
        },
    ),
    "neutral": (_OWN, {"role": "tool", "toolCallId": "c1", "content": [_PART]}),
    "codex": (*program_files.ROLLOUT, COMPACTED),
    "responses": (*program_files.ITEMS, json.loads((program_files.FILES / "responses.json").read_bytes())),
    "gemini": tuple(json.loads((program_files.FILES / "gemini.json").read_bytes())),
    "pydantic-ai": tuple(json.loads((program_files.FILES / "pydantic_ai.json").read_bytes())),
    "openhands": (*program_files.EVENTS, *program_files.UNNAMED_EVENTS, *program_files.SDK_EVENTS),
    "opencode": tuple(program_files.OPENCODE["messages"]),
    "claude-web": tuple(program_files.EXPORT),
    "swe-agent": (program_files.TRAJECTORY,),
    "nexus": (
        {"seq": 1, "type": "query", "messages": [_OWN], "event": {"a": 1}, "context": {"system": "x"}}
        | _TURN,
        {"seq": 1, "type": "query", "messages": [_OWN], "counter": "cl100k_base", "counts": [7]} | _TURN,
        {
            "seq": 2,
            "type": "compaction",
            "messages": [{"role": "user", "content": "[CONTEXT SUMMARY]"}],
            "compaction": "c",
            "receipt": {"a": 1},
            "kept": [[0, 1]],
        }
        | _TURN,
        {"seq": 3, "type": "undo", "compaction": "c"} | _TURN,
        {"format": "nexus-session", "version": 1, "session": "t"},
    ),
}
_KEYS = sorted(
    {
        "role",
        "content",
        "type",
        "tool_calls",
        "toolCallId",
        "tool_call_id",
        "function",
        "name",
        "messages",
        "counts",
    }
    | {
        "traj",
        "system",
        "tools",
        "text",
        "source",
        "kept",
        "counter",
        "seq",
        "parentUuid",
        "uuid",
        "isSidechain",
    }
)
