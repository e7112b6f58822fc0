"""Names and texts that try to steer the terminal or the workflow that shows them, and a terminal."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.json_lines import json_lines

CLIPBOARD = "\x1b]52;c;aGFja2Vk\x07"
CLEAR = "\x1b[2J\x1b[H"
HIDDEN = "\x1b[8m"
C1 = "\x9b31m\x9d0;title\x9c"
BIDI = "\u202e\u2066"
COMMAND = "\n::error file=x::hacked\n  ::set-output name=a::b\n##[error]hacked\n"
PAYLOAD = f"{CLIPBOARD}{CLEAR}{HIDDEN}{C1}{BIDI}\x08\x7f\rx{COMMAND}"
NAME = f"n{CLIPBOARD}{CLEAR}{C1}{BIDI}\n::error::x\n##[error]"
"""For files and sessions, whose names are at most 255 bytes long, without `/` and NUL."""

STEERING = re.compile(
    "[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)
COMMANDS = re.compile(r"(?m)^[^\S\n]*::|##\[")
RICH = re.compile(r"\x1b\[[0-9;]*m")
"""The colours of tables, where they are wanted."""


def folder(root: Path) -> Path:
    """A folder that is hostile wherever it can be: names of files, skills, agents, servers; their texts."""
    work = root / f"w{NAME}" / "work"
    config = work / ".nexus3"
    (config / "skills" / NAME).mkdir(parents=True)
    (config / "skills" / "two").mkdir()
    (work / "AGENTS.md").write_text(f"# Rules\n{PAYLOAD}\n@no-such{CLIPBOARD}.md\n", newline="")
    front = f"---\nname: two\ndescription: 'd {BIDI}'\nteam: x\n---\n{PAYLOAD}\n"
    for name in (NAME, "two"):
        (config / "skills" / name / "SKILL.md").write_text(front, newline="")
    settings = {
        "agents": {NAME: {"role": PAYLOAD}, "a": {"role": "worker", "tools": [PAYLOAD], "cwd": NAME}},
        "tools": {PAYLOAD: 1, "disabled": [PAYLOAD]},
        "context": {"datetime": {"timezone": PAYLOAD}, "instruction_files": [NAME, "AGENTS.md"]},
        "provider": {"model": f"m{NAME}"},
        "skills": {"paths": [NAME], "include": [PAYLOAD]},
    }
    servers = {"mcpServers": {PAYLOAD: {"command": NAME, PAYLOAD: 1}, "b": {"url": PAYLOAD, "type": PAYLOAD}}}
    (config / "config.json").write_text(json.dumps(settings, ensure_ascii=False))
    (config / "mcp.json").write_text(json.dumps(servers, ensure_ascii=False) + PAYLOAD)
    (config / f"AGENT.{NAME}.md").write_text(PAYLOAD, newline="")
    chat = [{"role": "user", "content": f"Why {PAYLOAD}?"}, {"role": "assistant", "content": PAYLOAD}]
    (work / f"{NAME}.jsonl").write_text(json_lines(chat))
    (work / "bad.jsonl").write_text(f'{{"role": "user"}}\n{PAYLOAD}\n')
    return work


def commands(work: Path, root: Path) -> list[tuple[str, ...]]:
    """Every command and form of output that tells of the folder, hostile arguments among them."""
    at, chat = str(work), str(work / f"{NAME}.jsonl")
    here = ("--folder", at)
    return [
        *(("check", at, "--format", form, "--level", "hint") for form in ("text", "json", "sarif", "github")),
        ("check", at, "--agent", NAME),
        ("check", str(root / NAME)),
        ("check", str(work / f"{NAME}.jsonl")),
        ("show", at),
        ("show", at, "--source"),
        ("show", at, "--layers"),
        ("show", at, "--tokens"),
        ("show", at, "--tokens", "--model", NAME),
        ("show", at, "--message", PAYLOAD),
        ("show", at, "--format", "json"),
        *(("show", at, "--for", "claude-code", form) for form in ("--source", "--tokens", "--layers")),
        ("show", at, "--for", "opencode", "--format", "json"),
        ("show", at, "--for", "all", "--source"),
        *(("check", at, "--for", "all", "--format", form, "--level", "hint") for form in ("text", "github")),
        ("show", at, "--agent", "a", "--diff", "main"),
        ("show", at, "--agent", NAME),
        ("show", at, "--skill", "two"),
        ("show", at, "--messages", chat),
        ("show", at, "--messages", str(work / "bad.jsonl")),
        ("show", at, "--messages", str(work / NAME)),
        ("tokens", str(work / "AGENTS.md"), chat, str(work / NAME)),
        ("init", str(root / f"fresh{NAME}")),
        ("sessions", "import", chat, str(work / "bad.jsonl"), str(work / NAME), *here),
        ("sessions", "list", *here),
        ("sessions", "list", "--all", *here),
        ("sessions", "list", "--json", *here),
        ("sessions", "show", NAME, *here),
        ("sessions", "search", "why", "--all", *here),
        ("sessions", "search", NAME, *here),
        ("sessions", "export", NAME, *here),
        ("sessions", "export", NAME, "--format", "markdown", *here),
        ("sessions", "fork", NAME, f"{NAME}2", *here),
        ("sessions", "rename", f"{NAME}2", f"{NAME}3", *here),
        ("sessions", "delete", f"{NAME}3", "--yes", *here),
        ("sessions", "delete", NAME, *here),
        ("sessions", "show", f"x{NAME}", *here),
        ("sessions", "salvage", str(work / f"{NAME}.jsonl"), *here),
        ("schema", NAME),
        (NAME,),
        ("show", at, f"--{NAME}"),
        ("show", at, "--budget", PAYLOAD),
    ]


def environ(root: Path, **more: str) -> dict[str, str]:
    """The variables of a user whose terminal has no colours."""
    home = {"HOME": str(root / "home"), "NEXUS_HOME": str(root / "home"), "NEXUS_STATE": str(root / "state")}
    plain = {"NO_COLOR": "1", "TERM": "dumb", "LANG": "C.UTF-8", "COLUMNS": "200"}
    return {**os.environ, **home, **plain, **more}


def on_a_terminal(arguments: Sequence[str], env: Mapping[str, str], code: str | None = None) -> str:
    """What a terminal receives of a command, or of a program's text, on both streams."""
    import pty  # not on Windows

    ours, theirs = pty.openpty()
    program = ("-m", "nexus_daemon") if code is None else ("-c", code)
    with subprocess.Popen(
        [sys.executable, *program, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=dict(env)
    ) as process:
        os.close(theirs)
        os.write(ours, b"n\n")
        received = b""
        while part := _read(ours):
            received += part
        process.wait(60)
    os.close(ours)
    return re.sub(r"\r+\n", "\n", received.decode("utf-8", "replace"))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""


def steered(text: str, *, coloured: bool = False) -> list[str]:
    """The characters of an output that steer a terminal."""
    return STEERING.findall(RICH.sub("", text) if coloured else text)
