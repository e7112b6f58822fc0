"""Servers of MCP that do what none should, of Python's own modules: `python mcp_hostile_server.py MODE`.

The modes are the functions and cases below. Each has a tool `alpha`, if it comes to that.
"""

import itertools
import json
import sys
import time
from typing import Any

MODE = sys.argv[1]
ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\b"
NAMES = [
    "alpha",
    "a b",
    "a/b",
    "a.b",
    "ü",
    "🙂",
    "x" * 300,
    ESCAPES,
    "\0",
    "mcp__x__y",
    '"',
    "$(id)",
    "\u2028",
]


def say(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    schema: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
    names = ["alpha"]
    match MODE:
        case "5,000 tools":
            names = [f"tool-{number}" for number in range(5_000)]
        case "names":
            names = NAMES
        case "one name twice":
            names = ["alpha", "alpha"]
        case "schema of 2 MB":
            schema["properties"] = {f"field-{number}": {"description": "x" * 200} for number in range(9_000)}
        case "schema of 10 MB":
            schema["properties"] = {"text": {"description": "x" * (10 << 20)}}
        case "schema of itself":
            schema |= {
                "$ref": "#",
                "properties": {"text": {"$ref": "#/properties/text"}, "self": {"$ref": "#"}},
            }
        case "deep schema":
            for _ in range(3_000):
                schema = {"type": "object", "properties": {"x": schema}}
    text = ESCAPES if MODE == "escapes" else "Adds."
    return [{"name": name, "title": text, "description": text, "inputSchema": schema} for name in names]


def call(number: Any) -> None:  # noqa: C901 - a case for each mode
    result = {"content": [{"type": "text", "text": "done"}]}
    match MODE:
        case "dies in a call":
            sys.exit(3)
        case "hangs in a call":
            time.sleep(600)
        case "result of 100 MB":
            result["content"][0]["text"] = "x" * (100 << 20)
        case "another id":
            return say(id=9_999, result=result)
        case "another id first":
            say(id=9_999, result={"content": [{"type": "text", "text": "of another"}]})
        case "twice":
            say(id=number, result=result)
            result["content"][0]["text"] = "again"
        case "no JSON-RPC":
            for line in (
                "[]",
                "7",
                "null",
                '{"foo": 1}',
                '{"jsonrpc": "1.0", "id": 1, "result": {}}',
                "{",
                "\0",
            ):
                write(line)
        case "no result":
            return say(id=number, result={"content": 7, "isError": "maybe"})
        case "result of nothing":
            return say(id=number)
        case "escapes":
            return say(id=number, error={"code": -32000, "message": ESCAPES, "data": ESCAPES})
        case "asks":
            return say(id=number, result={"content": [{"type": "text", "text": json.dumps(ask())}]})
    return say(id=number, result=result)


def ask() -> list[str]:
    """What the client answers to requests that it did not offer to answer."""
    requests: dict[str, Any] = {
        "sampling/createMessage": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 9,
        },
        "elicitation/create": {"message": "Your password?", "requestedSchema": {"type": "object"}},
        "roots/list": {},
        "none/such": {},
    }
    for number, (method, params) in enumerate(requests.items()):
        say(id=f"ask-{number}", method=method, params=params)
    answers = [json.loads(sys.stdin.readline()) for _ in requests]
    return ["refused" if "error" in each else json.dumps(each) for each in answers]


match MODE:
    case "hangs at start":
        time.sleep(600)
    case "floods its output":
        for _ in itertools.repeat(None):
            sys.stdout.write("noise\n" * 1_000)
    case "endless line":
        for _ in itertools.repeat(None):
            sys.stdout.write("x" * 100_000)
    case "floods its errors":
        for _ in range(500):
            sys.stderr.write(("noise" * 20 + "\n") * 1_000)
    case "escapes":
        sys.stderr.write(f"{ESCAPES}\n")
        sys.stderr.flush()

for text in sys.stdin:
    request = json.loads(text)
    if "id" not in request:
        continue
    match request["method"]:
        case "initialize":
            about = {"serverInfo": {"name": "hostile", "version": "1"}, "capabilities": {"tools": {}}}
            told = ESCAPES if MODE == "escapes" else ""
            say(id=request["id"], result={"protocolVersion": "2025-06-18", "instructions": told, **about})
        case "tools/list":
            say(id=request["id"], result={"tools": tools()})
        case "tools/call":
            call(request["id"])
        case _:
            say(id=request["id"], error={"code": -32601, "message": "Method not found"})
