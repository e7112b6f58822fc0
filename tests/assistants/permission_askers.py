"""What Codex, opencode and Gemini CLI let a model do: calls of tools, asked of the real programs.

1. `codex_permissions.jsonl` and its siblings have a row for each call: the settings by the paths of their
   files, the call in the words of `nexus explain`, and the outcome. The files beside them are those of the
   rows of Claude Code, and there is an MCP server `notes` with the tools `read` and `write`. A program that
   does not start with the settings has the outcome `not started`.
2. Each program runs in the form that its editors speak with, so that an approval is seen: the app server of
   Codex, the server of opencode, the Agent Client Protocol of Gemini CLI. Every question is answered with no.
3. Calls of rows with equal settings are made in one run, each in a turn of its own.
4. A command that is allowed is run, in directories that are removed.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from assistants import programs
from assistants.permission_runs import FILES, LINKS, filled
from assistants.provider_stand_in import CALL_ID, ProviderStandIn, answer, answer_call, offered_tool
from assistants.server_cases import REPOSITORY
from support.fixture import write_fixture

LONGEST_S = 240
CODEX_MODEL = "gpt-5.5"  # one with a tool for patches, and with a search for those of servers
SERVER = [sys.executable, str(Path(__file__).parents[1] / "support" / "mcp_old_server.py"), "{mcp}"]
Row = dict[str, Any]
Send = Callable[..., None]


class ToolCall(NamedTuple):
    """A call in the words of a program: the name of its tool, and its arguments, or their text."""

    tool: str
    arguments: dict[str, Any] | str


class Asked(NamedTuple):
    """How a program is asked.

    `command` are the words that start it. `translate` puts a call in its words. `talk` makes each call in a
    turn: it gets the process, the number of calls and what marks a call as asked about. `denied` matches what
    a model is told of a call that is denied.
    """

    arguments: Callable[[str, "Run"], tuple[str, ...]]
    translate: Callable[[dict[str, Any]], ToolCall | None]
    talk: Callable[["Run"], None]
    denied: re.Pattern[str]


class Run:
    """A run of a program with calls in folders, of which `works` has one for each call.

    `results` are what the model was told of each call.
    """

    def __init__(self, calls: list[ToolCall | None], works: list[str]) -> None:
        self.calls = calls
        self.works = works
        self.asked: set[int] = set()
        self.reached: set[int] = set()
        self.missing: set[int] = {index for index, call in enumerate(calls) if call is None}
        self.results: dict[int, str] = {}
        self.current = 0
        self.process: subprocess.Popen[str]

    def __iter__(self) -> Iterator[int]:
        """The calls that the program may have a tool for; the next request makes each."""
        for index in range(len(self.calls)):
            if index not in self.missing:
                self.current = index
                yield index

    def answers(self, path: str, body: dict[str, Any]) -> bytes:
        """The provider's answer."""
        index = self.current
        call = self.calls[index]
        text = json.dumps(body, ensure_ascii=False)
        if call is None or f"Call {index}." not in text:
            return answer(path, body)
        self.reached.add(index)
        if not body.get("tools"):  # a title, or all of them are denied
            return answer(path, body)
        call_id = f"{CALL_ID}_{index}"
        if call_id in text or index in self.results:
            self.results.setdefault(index, _result(body, call_id))
            return answer(path, body)
        tool = offered_tool(body, call.tool)
        if tool is None or tool.name != call.tool:
            self.missing.add(index)
            return answer(path, body)
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        return answer_call(path, body, tool, arguments, call_id=call_id)

    def outcome(self, index: int, denied: re.Pattern[str]) -> str:
        if index in self.missing:
            return "not offered"
        if index in self.asked:
            return "asks"
        if index not in self.results:
            return "not offered" if index in self.reached else "not started"
        return "denied" if denied.search(self.results[index]) else "allowed"

    def say(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def messages(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                yield json.loads(line)


def rows(program: str) -> list[Row]:
    """The recorded rows of a program."""
    path = Path(__file__).with_name(f"{program.replace('-', '_')}_permissions.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_rows(program: str, rows: Iterable[Row]) -> Iterator[tuple[Row, str]]:
    """Each row with its outcome in the real program."""
    for _, group in groupby(rows, lambda row: json.dumps(_of_user(row))):
        listed = list(group)
        yield from zip(listed, _run(program, listed), strict=True)


def _of_user(row: Row) -> dict[str, Any]:
    """What a process has one of: the user's settings, and the folder that they name."""
    own = {path: value for path, value in row["settings"].items() if not path.startswith("work/")}
    return row["settings"] if "{work}" in json.dumps(own) else own


def write_folder(root: Path, row: Row, *, home: Path | None = None) -> dict[str, str]:
    """Write the files and settings of a row below `root`; what its placeholders stand for."""
    places = {name: str(root / name) for name in ("work", "out", "home", "mcp")}
    if home is not None:
        places["home"] = str(home)
    server = [each.replace("{mcp}", places["mcp"]) for each in SERVER]
    places |= {
        "server": json.dumps(server)[1:-1],
        "python": json.dumps(server[0]),
        "arguments": json.dumps(server[1:]),
    }
    places = {f"{{{name}}}": text for name, text in places.items()}
    tools = {"mcp/tools.json": '{"read": "Reads.", "write": "Writes."}'}
    for path, text in {**FILES, **tools, **row["settings"]}.items():
        directory, _, rest = path.partition("/")
        file = Path(places[f"{{{directory}}}"]) / rest
        file.parent.mkdir(parents=True, exist_ok=True)
        written = text if isinstance(text, str) else json.dumps(text)
        file.write_text(filled(written, places), encoding="utf-8")
    for path, target in LINKS.items():
        (root / path).symlink_to(target)
    if row.get("git", True):
        write_fixture(REPOSITORY, root / "work")
    return places


def _run(name: str, rows: list[Row]) -> list[str]:
    program, asked = programs.PROGRAMS[name], ASKED[name]
    command = programs.install(program)
    place = Path.home()  # Codex and Gemini CLI refuse settings below /tmp
    with tempfile.TemporaryDirectory(
        prefix=".permissions-", dir=place, ignore_cleanup_errors=True
    ) as directory:
        root = Path(directory).resolve()
        calls, works = list[ToolCall | None](), list[str]()
        for index, (_, group) in enumerate(groupby(rows, lambda row: [row["settings"], row.get("git")])):
            listed = list(group)
            places = write_folder(root / str(index), listed[0], home=root / "home")
            for row in listed:
                calls.append(asked.translate(json.loads(filled(json.dumps(row["call"]), places))))
                works.append(places["{work}"])
        run = Run(calls, works)
        environ = {"PATH": programs.search_path(), "HOME": str(root / "home"), "TMPDIR": "/tmp"}
        with ProviderStandIn(answers=run.answers) as provider:
            environ |= program.environ(provider.address)
            if program.settings is not None:
                settings = root / "system-settings.json"
                settings.write_text(program.settings[1])
                environ[program.settings[0]] = str(settings)
            run.process = subprocess.Popen(
                [str(command), *asked.arguments(provider.address, run)],
                cwd=works[0],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
                preexec_fn=lambda: os.nice(10),
            )
            watch = threading.Timer(LONGEST_S + 10 * len(rows), os.killpg, (run.process.pid, signal.SIGKILL))
            watch.start()
            try:
                asked.talk(run)
            finally:
                watch.cancel()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.process.pid, signal.SIGKILL)
                run.process.wait()
    return [run.outcome(index, asked.denied) for index in range(len(rows))]


def _result(body: dict[str, Any], call_id: str) -> str:
    """What the model is told of a call."""
    results = [
        item.get("output", item.get("content"))
        for item in (*(body.get("messages") or []), *(body.get("input") or []))
        if call_id in (item.get("call_id"), item.get("tool_call_id")) and item.get("role") != "assistant"
    ]
    results += [
        part["functionResponse"]
        for content in body.get("contents") or []
        for part in content.get("parts", ())
        if part.get("functionResponse", {}).get("id") == call_id
    ]
    return json.dumps([each for each in results if each is not None], ensure_ascii=False)


# Codex ------------------------------------------------------------------------------------------------------


def _codex_arguments(address: str, run: "Run") -> tuple[str, ...]:
    words = programs.PROGRAMS["codex"].arguments(address)
    options = words[words.index("-c") : -1]
    patches = any(call is not None and call.tool == "apply_patch" for call in run.calls)
    return ("app-server", *options, *(("-c", f'model="{CODEX_MODEL}"') if patches else ()))


def _codex_call(call: dict[str, Any]) -> ToolCall | None:
    tool = call["tool"]
    if tool in ("Bash", "Read"):
        command = call["command"] if tool == "Bash" else f"cat {call['file_path']}"
        return ToolCall("exec_command", {"cmd": command, "yield_time_ms": 1000})
    if tool in ("Write", "Edit"):
        path = call["file_path"]
        change = (
            f"Add File: {path}\n+x" if tool == "Write" else f"Update File: {path}\n@@\n-{call['old']}\n+x"
        )
        return ToolCall("apply_patch", f"*** Begin Patch\n*** {change}\n*** End Patch")
    return ToolCall(tool.rpartition("__")[2], {"text": "x"}) if tool.startswith("mcp__") else None


def _talk_with_codex(run: Run) -> None:
    client = {"clientInfo": {"name": "test", "version": "1"}}
    run.say(id="init", method="initialize", params=client)
    left = iter(run)
    for message in run.messages():
        method, number = message.get("method", ""), message.get("id")
        if number == "thread" and "result" in message:
            text = {"type": "text", "text": f"Call {run.current}."}
            thread = message["result"]["thread"]["id"]
            run.say(id="turn", method="turn/start", params={"threadId": thread, "input": [text]})
        elif method == "turn/completed" or number in ("init", "thread"):
            if number == "init":
                run.say(method="initialized")
            if next(left, None) is None:
                return
            run.say(id="thread", method="thread/start", params={"cwd": run.works[run.current]})
        elif number is not None and method:
            run.asked.add(run.current)
            answer = {"action" if method.startswith("mcpServer") else "decision": "decline"}
            run.say(id=number, result=answer)


# opencode ---------------------------------------------------------------------------------------------------


def _opencode_call(call: dict[str, Any]) -> ToolCall | None:
    path = call.get("file_path", "")
    match call["tool"]:
        case "Bash":
            return ToolCall("bash", {"command": call["command"], "description": "Runs it"})
        case "Read":
            return ToolCall("read", {"filePath": path})
        case "Edit":
            return ToolCall("edit", {"filePath": path, "oldString": call["old"], "newString": "x"})
        case "Write":
            return ToolCall("write", {"filePath": path, "content": "x"})
        case "WebFetch":
            return ToolCall("webfetch", {"url": call["url"], "format": "text", "timeout": 1})
        case "Skill":
            return ToolCall("skill", {"name": call["skill"]})
        case tool if tool.startswith("mcp__"):
            return ToolCall(tool.removeprefix("mcp__").replace("__", "_"), {"text": "x"})
    return None


def _talk_with_opencode(run: Run) -> None:
    assert run.process.stdout is not None
    address = next((line.split()[-1] for line in run.process.stdout if "listening on" in line), None)
    if address is None:
        return

    def post(path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(  # noqa: S310 - on loopback
            address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=LONGEST_S) as response:  # noqa: S310 - as above
            text = response.read()
            return json.loads(text) if text else None

    def refuse(query: str) -> None:
        events_address = f"{address}/event{query}"
        with contextlib.suppress(OSError), urllib.request.urlopen(events_address) as events:  # noqa: S310 - as above
            for line in events:
                event = json.loads(line[5:]) if line.startswith(b"data:") else {}
                if event.get("type") == "permission.asked":
                    run.asked.add(run.current)
                    post(f"/permission/{event['properties']['id']}/reply{query}", {"reply": "reject"})

    watched = set[str]()
    for index in run:
        query = f"?directory={urllib.parse.quote(run.works[index])}"
        if query not in watched:
            watched.add(query)
            threading.Thread(target=refuse, args=(query,), daemon=True).start()
        session = post(f"/session{query}", {})
        message = f"/session/{session['id']}/message{query}"
        part = {"type": "text", "text": f"Call {index}."}
        post(message, {"parts": [part]})
        if index not in run.results:  # a denial may end the turn: the next message has it
            post(message, {"parts": [part]})


# Gemini CLI -------------------------------------------------------------------------------------------------


def _gemini_call(call: dict[str, Any]) -> ToolCall | None:
    path = call.get("file_path", "")
    match call["tool"]:
        case "Bash":
            return ToolCall("run_shell_command", {"command": call["command"]})
        case "Read":
            return ToolCall("read_file", {"file_path": path})
        case "Edit":
            change = {"instruction": "Change it", "old_string": call["old"], "new_string": "x"}
            return ToolCall("replace", {"file_path": path, **change})
        case "Write":
            return ToolCall("write_file", {"file_path": path, "content": "x"})
        case "WebFetch":
            return ToolCall("web_fetch", {"prompt": f"Read {call['url']}"})
        case "Skill":
            return ToolCall("activate_skill", {"name": call["skill"]})
        case tool if tool.startswith("mcp__"):
            return ToolCall(f"mcp_{tool.removeprefix('mcp__').replace('__', '_')}", {"text": "x"})
    return None


def _talk_with_gemini(run: Run) -> None:
    run.say(id="init", method="initialize", params={"protocolVersion": 1, "clientCapabilities": {}})
    left = iter(run)
    for message in run.messages():
        number = message.get("id")
        if number == "session" and "result" in message:
            prompt = [{"type": "text", "text": f"Call {run.current}."}]
            params = {"sessionId": message["result"]["sessionId"], "prompt": prompt}
            run.say(id="turn", method="session/prompt", params=params)
        elif message.get("method") == "session/request_permission":
            run.asked.add(run.current)
            options = message["params"]["options"]
            refusal = next(each["optionId"] for each in options if each["kind"] == "reject_once")
            run.say(id=number, result={"outcome": {"outcome": "selected", "optionId": refusal}})
        elif number in ("init", "session", "turn"):
            if next(left, None) is None:
                return
            params = {"cwd": run.works[run.current], "mcpServers": []}
            run.say(id="session", method="session/new", params=params)


ASKED = {
    "codex": Asked(
        _codex_arguments,
        _codex_call,
        _talk_with_codex,
        re.compile(r"rejected|forbidden|approval required by policy|requires approval, but"),
    ),
    "opencode": Asked(
        lambda *_: ("serve", "--port", "0"),
        _opencode_call,
        _talk_with_opencode,
        re.compile("specified a rule which prevents"),
    ),
    "gemini": Asked(
        lambda *_: ("--acp", "-m", programs.GEMINI_MODEL),
        _gemini_call,
        _talk_with_gemini,
        re.compile("denied by policy|Path not in workspace|Access denied|is ignored by configured"),
    ),
}
