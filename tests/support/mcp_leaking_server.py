"""A server of MCP that tells all that it was started with, wherever a server can: `python …py ARGUMENTS`.

It says its arguments and variables on standard error and between its messages, in the error of the tool
`fail`, and again when the tool `crash` ends it. With DIE=1 it ends at once.
"""

import base64
import json
import os
import sys
import urllib.parse
from typing import Any


def secrets() -> str:
    """Its arguments and variables as they are, and in the forms that programs print."""
    told = [*sys.argv[1:], *(f"{name}={value}" for name, value in os.environ.items())]
    values = [*sys.argv[1:], *os.environ.values()]
    quoted = [urllib.parse.quote(value, safe="") for value in values]
    basic = [base64.b64encode(value.encode()).decode() for value in values]
    return "\n".join((*told, json.dumps(told), repr(told), *quoted, *basic))


def leak() -> None:
    for stream in (sys.stderr, sys.stdout):
        stream.write(f"{secrets()}\n")
        stream.flush()


def answer(method: str, name: str) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"serverInfo": {"name": "leaks", "version": "1"}, "capabilities": {"tools": {}}}
            return {"result": {"protocolVersion": "2025-06-18", **about}}
        case "tools/list":
            schema = {"type": "object"}
            tools = [{"name": each, "inputSchema": schema} for each in ("fail", "crash", "quiet")]
            return {"result": {"tools": tools}}
        case "tools/call" if name == "fail":
            return {"error": {"code": -32000, "message": secrets(), "data": secrets()}}
        case "tools/call" if name == "crash":
            leak()
            os._exit(3)
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "done"}]}}
    return {"error": {"code": -32601, "message": secrets()}}


leak()
if os.environ.get("DIE"):
    sys.exit(f"cannot start: {secrets()}")
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answered = answer(request["method"], (request.get("params") or {}).get("name", ""))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answered}) + "\n")
        sys.stdout.flush()
