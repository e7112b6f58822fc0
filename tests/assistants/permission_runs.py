"""What Claude Code lets a model do: calls of tools under settings, asked of the real program.

1. `claude_permissions.jsonl` has a row for each call: the settings of each layer, the call, and the outcome:
   `allowed`, `asks`, `denied`, or `not offered` (the tool is not in the request). `{work}`, `{out}` and
   `{home}` stand for the folder, a directory beside it and the user's home; they have the files of `FILES`.
2. The program runs without a terminal and asks over the control protocol of its SDK, so an approval is seen.
   Each question is answered with no. The calls of rows with equal settings are made in one run.
3. What is allowed is run, in directories that are removed.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from assistants import programs
from assistants.provider_stand_in import ProviderStandIn, answer_text, answer_tool_use

DENIED = re.compile(
    r"Permission to \w+ .*has been denied|(?:denied|blocked) by (?:your )?permission"
    r"|covered by a \w+ deny rule|blocked by a deny rule|denied access to"
)
ROWS = Path(__file__).with_name("claude_permissions.jsonl")
FILES = {
    "work/README.md": "# Gate\n",
    "work/.env": "SECRET=1\n",
    "work/sub/.env": "SECRET=2\n",
    "work/sub/.env.local": "SECRET=3\n",
    "work/sub/secrets/k": "KEY\n",
    "work/secrets/k": "KEY\n",
    "work/secrets/deep/k": "KEY\n",
    "work/docs/d.md": "a\n",
    "out/o.txt": "out\n",
    "home/h.txt": "home\n",
    "home/.claude/.env": "SECRET=4\n",
    "work/.claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n",
    "work/.claude/skills/tools/SKILL.md": "---\ndescription: T.\nallowed-tools: Bash(rm *)\n---\nRemove.\n",
    "work/.claude/skills/barred/SKILL.md": "---\ndescription: T.\ndisallowed-tools: Bash\n---\nRead.\n",
    "work/.claude/skills/hooked/SKILL.md": (
        "---\ndescription: H.\nhooks:\n  Stop:\n    - hooks:\n"
        "        - type: command\n          command: 'true'\n---\nHook.\n"
    ),
    "work/.claude/skills/forked/SKILL.md": (
        "---\ndescription: F.\ncontext: fork\nagent: helper\nmodel: haiku\n"
        "paths: a/**\nunknown: 1\n---\nFork.\n"
    ),
    "work/.claude/commands/com.md": "---\ndescription: C.\nallowed-tools: Bash(rm *)\n---\nRemove.\n",
    "work/.claude/agents/helper.md": "---\nname: helper\ndescription: Helps.\n---\nHelp.\n",
}
LINKS = {
    "work/link-env": ".env",
    "work/link-secrets": "secrets",
    "work/link-k": "secrets/k",
    "work/link-out": "../out",
}
LAYERS = {
    "user": "home/.claude/settings.json",
    "project": "work/.claude/settings.json",
    "local": "work/.claude/settings.local.json",
    "parent": ".claude/settings.json",
}
ARGUMENTS = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--permission-prompt-tool", "stdio"),
)
LONGEST_S = 100
DEFAULTS = {
    "Write": {"content": "x"},
    "WebFetch": {"prompt": "What is it?"},
    "Agent": {"description": "Help", "prompt": "Help."},
}
"""Arguments that a tool needs, and that no rule looks at."""


def rows() -> list[dict[str, Any]]:
    """The recorded rows."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


def run_rows(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each row with its outcome in the real program.

    One that changes the directory has a run of its own; so have loops, which are asked about only as long as
    no command has run.
    """
    for _, group in groupby(enumerate(rows), lambda row: _run_key(*row)):
        listed = [row for _, row in group]
        yield from zip(listed, _run(listed), strict=True)


def _run_key(index: int, row: dict[str, Any]) -> tuple[str, int]:
    is_alone = re.search(r"\b(?:cd|pushd|for)\b", row["call"].get("command", ""))
    return json.dumps([row["settings"], row.get("options")]), index if is_alone else -1


def write_folder(root: Path, row: dict[str, Any]) -> dict[str, str]:
    """Write the files and settings of a row below `root`; what its placeholders stand for."""
    for path, text in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for path, target in LINKS.items():
        (root / path).symlink_to(target)
    places = {"{work}": str(root / "work"), "{out}": str(root / "out"), "{home}": str(root / "home")}
    trusted = row.get("options", {}).get("trusted", True)
    project = {"hasTrustDialogAccepted": trusted, "hasCompletedProjectOnboarding": True}
    (root / "home" / ".claude.json").write_text(json.dumps({"projects": {places["{work}"]: project}}))
    for layer, settings in row["settings"].items():
        file = root / LAYERS[layer]
        file.parent.mkdir(parents=True, exist_ok=True)
        text = settings if isinstance(settings, str) else json.dumps(settings)
        file.write_text(filled(text, places))
    return places


def filled(text: str, places: dict[str, str]) -> str:
    """The text with its placeholders filled in."""
    for placeholder, path in places.items():
        text = text.replace(placeholder, path)
    return text


def _run(rows: list[dict[str, Any]]) -> list[str]:
    program = programs.PROGRAMS["claude-code"]
    command = programs.install(program)
    with tempfile.TemporaryDirectory(prefix="permissions-", ignore_cleanup_errors=True) as directory:
        root = Path(directory).resolve()
        places = write_folder(root, rows[0])
        calls = [json.loads(filled(json.dumps(row["call"]), places)) for row in rows]
        outcomes: dict[int, str] = {}
        waiting, searched = list(range(len(calls))), set[str]()

        def answers(path: str, body: dict[str, Any]) -> bytes:
            if '"Go."' not in json.dumps(body.get("messages")):
                return answer_text(body)
            _note_results(body, outcomes)
            offered = {tool["name"] for tool in body.get("tools") or ()}
            while waiting:
                name = calls[waiting[0]]["tool"]
                if name in offered:
                    index = waiting.pop(0)
                    arguments = {**DEFAULTS.get(name, {}), **calls[index]}
                    del arguments["tool"]
                    return answer_tool_use(body, f"toolu_{index}", name, arguments)
                if "ToolSearch" in offered and name not in searched:
                    searched.add(name)
                    query = {"query": f"select:{name}", "max_results": 1}
                    return answer_tool_use(body, f"search_{len(searched)}", "ToolSearch", query)
                outcomes[waiting.pop(0)] = "not offered"
            return answer_text(body)

        with ProviderStandIn(answers=answers) as provider:
            process = subprocess.Popen(
                [str(command), *ARGUMENTS, *rows[0].get("options", {}).get("args", ())],
                cwd=root / "work",
                env={
                    "PATH": programs.search_path(),
                    "HOME": places["{home}"],
                    **program.environ(provider.address),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                preexec_fn=lambda: os.nice(15),
            )
            watch = threading.Timer(LONGEST_S, os.killpg, (process.pid, signal.SIGKILL))
            watch.start()
            try:
                _talk(process, outcomes)
            finally:
                watch.cancel()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return [outcomes.get(index, "no outcome") for index in range(len(rows))]


def _talk(process: "subprocess.Popen[str]", outcomes: dict[int, str]) -> None:
    """Have one turn, and answer its questions with no."""
    assert process.stdin is not None and process.stdout is not None

    def say(message: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    say(
        {"type": "control_request", "request_id": "init", "request": {"subtype": "initialize", "hooks": None}}
    )
    say({"type": "user", "message": {"role": "user", "content": "Go."}})
    for line in process.stdout:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("type") == "result":
            return
        if message.get("type") == "control_request":
            request = message["request"]
            if request["subtype"] == "can_use_tool":
                outcomes[int(request["tool_use_id"].removeprefix("toolu_"))] = "asks"
            answer = {"behavior": "deny", "message": "No."}
            response = {"subtype": "success", "request_id": message["request_id"], "response": answer}
            say({"type": "control_response", "response": response})


def _note_results(body: dict[str, Any], outcomes: dict[int, str]) -> None:
    for message in body["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "tool_result" and part["tool_use_id"].startswith("toolu_"):
                index = int(part["tool_use_id"].removeprefix("toolu_"))
                text = json.dumps(part["content"])
                is_denied = part.get("is_error") is True and DENIED.search(text) is not None
                outcomes.setdefault(index, "denied" if is_denied else "allowed")
