"""A server of MCP before 2026-07-28, of Python's own modules alone: `python mcp_old_server.py DIRECTORY`.

`DIRECTORY/tools.json` has the descriptions of tools by name. A tool answers with its arguments, and the
server writes each call to `DIRECTORY/calls`. Special names: `crash` ends the process, `hang` never answers,
`flood` answers with 8 MiB, `environment` with the names of the variables, `relist` says that the tools are
others now, `chatty` says so every 5 ms for 2 s, `noise` prints 2,000 lines that are no messages, `long` one
line of 40 MiB, `child` starts a process that stays, `endless` has a schema that an answer cannot be held
against in a lifetime. Each list of its tools is a line of `DIRECTORY/lists`. It has a prompt, `review`, and a
resource, `memo://gate`.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

DIRECTORY = Path(sys.argv[1])
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


WRITING = threading.Lock()


def say(**message: Any) -> None:
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def chatter() -> None:
    for _ in range(400):
        say(method="notifications/tools/list_changed")
        time.sleep(0.005)


def note(file: str, text: str) -> None:
    with (DIRECTORY / file).open("a", encoding="utf-8") as lines:
        lines.write(f"{text}\n")


def call(name: str, arguments: Any) -> str:
    note("calls", name)
    match name:
        case "crash":
            os._exit(7)
        case "hang":
            time.sleep(600)
        case "flood":
            return "x" * (8 << 20)
        case "environment":
            return "\n".join(sorted(os.environ))
        case "relist":
            say(method="notifications/tools/list_changed")
        case "chatty":
            threading.Thread(target=chatter).start()
        case "noise":
            sys.stdout.write("noise\n" * 2_000)
        case "long":
            sys.stdout.write("x" * (40 << 20) + "\n")
        case "child":
            subprocess.Popen(["/bin/sleep", "600"], stdin=subprocess.DEVNULL)
    return json.dumps(arguments)


def answer(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "resources": {}},
                "serverInfo": {"name": "old", "version": "1.0"},
                "instructions": "Be brief.",
            }
        case "tools/list":
            note("lists", "")
            described = json.loads((DIRECTORY / "tools.json").read_text(encoding="utf-8"))
            tools: list[dict[str, Any]] = [
                {"name": name, "description": text, "inputSchema": SCHEMA} for name, text in described.items()
            ]
            for tool in tools:
                if tool["name"] == "endless":
                    tool["outputSchema"] = {"type": "object", "properties": {"text": {"pattern": "^(a+)+$"}}}
            return {"tools": tools}
        case "tools/call":
            text = call(params["name"], params.get("arguments"))
            answered: dict[str, Any] = {
                "content": [{"type": "text", "text": text}],
                "isError": params["name"] == "fails",
            }
            if params["name"] == "endless":
                answered["structuredContent"] = {"text": "a" * 60 + "!"}
            return answered
        case "prompts/list":
            prompt_arguments = [{"name": "focus"}, {"name": "file", "required": True}]
            return {"prompts": [{"name": "review", "arguments": prompt_arguments}]}
        case "prompts/get":
            call(params["name"], {})
            content = {"type": "text", "text": f"Review {json.dumps(params.get('arguments'))}."}
            return {"messages": [{"role": "user", "content": content}], "description": "Reviews a file."}
        case "resources/list":
            return {"resources": [{"uri": "memo://gate", "name": "gate"}]}
        case "resources/read":
            if params["uri"] == "memo://hang":
                call("hang", {})
            return {"contents": [{"uri": params["uri"], "text": "It opens at six."}]}
    return None


sys.stderr.write(f"started {os.environ.get('CANARY', '')}\n")
sys.stderr.flush()
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params") or {})
        if result is None:
            say(id=request["id"], error={"code": -32601, "message": "Method not found"})
        else:
            say(id=request["id"], result=result)
