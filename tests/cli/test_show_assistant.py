"""`nexus show --for` and `nexus check --for`: what another assistant reads in a folder."""

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

from nexus_daemon.assistants.hooks.loaded_files import LoadedFile, LoadedSession, add_files
from support.commands import run_nexus, use_home
from support.fixture import write_fixture

FOLDER = """
//- /home/.codex/AGENTS.md
Mine.
//- /home/.codex/config.toml
project_doc_max_bytes = 40
//- /home/a/.git/HEAD
ref: refs/heads/main
//- /home/a/AGENTS.md
The gate is green.
The second line is cut.
The third, too.
//- /home/a/CLAUDE.md
The gate is red. @docs/style.md @docs/none.md
//- /home/a/docs/style.md
Tabs.
//- /home/a/src/AGENTS.md
Below.
"""
# tokens of texts with paths depend on where the tests run; the width of columns, too
FIGURE = re.compile(
    r"(?<=[ (])≈?\d[\d,]*(?= tokens| with)|(?:(?<=  )|(?<=cut ))≈?\d[\d,]*(?=  |$| \+ )|\d+%(?: +█*)?",
    re.MULTILINE,
)
BLANKS = re.compile(r"(?<=\S) {2,}|─{5,}")


def check(
    root: Path, capsys: pytest.CaptureFixture[str], *arguments: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    """Exit code, output and errors of a command about `/home/a`, the root's path and its tokens left out."""
    tree = write_fixture(FOLDER, root.resolve())
    use_home(monkeypatch, root.resolve())
    monkeypatch.setenv("COLUMNS", "120")
    command = (arguments[0], tree.path("/home/a"), *arguments[1:])
    code, out, errors = run_nexus(capsys, *command, root=tree.root)
    lines = "".join(line.rstrip() + "\n" for line in FIGURE.sub("N", out).splitlines())
    return code, BLANKS.sub("  ", lines), errors


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *arguments: check(tmp_path, capsys, *arguments, monkeypatch=monkeypatch)


def test_a_session_s_files_are_compared_without_what_is_only_listed(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path / "state"))
    folder = tmp_path.resolve() / "home" / "a"
    skill = folder / ".claude" / "skills" / "rotate" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: rotate\ndescription: Rotate a key.\n---\nRotate it.\n")
    loaded = [LoadedFile(str(folder / name), "session_start") for name in ("CLAUDE.md", "docs/style.md")]
    now = time.time() + 60
    session = LoadedSession("claude-code", str(folder), "s1", now, tuple(loaded))
    add_files(os.environ, [session])
    code, out, errors = run("show", "--for", "claude-code", "--layers")
    assert (code, "Confirmed by a session of Claude Code" in out) == (0, True), errors
    add_files(os.environ, [msgspec.structs.replace(session, session="s2", files=(loaded[0],))])
    _, out, errors = run("show", "--for", "claude-code", "--layers")
    assert "did not load /home/a/docs/style.md, although its profile lists it." in errors
    assert "SKILL.md" not in errors


def test_mcp_servers_are_listed_and_not_started(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("show", "--for", "codex")
    servers = {"mcpServers": {"gate": {"command": "secret-command"}, "wall\x1b[2J": {"command": "x"}}}
    path = tmp_path.resolve() / "home" / "a" / ".mcp.json"
    path.write_text(json.dumps(servers))
    code, out, _ = run("show", "--for", "claude-code", "--layers")
    assert (code, "secret" in out, "\x1b" in out) == (0, False, False)
    lines = [
        line.partition(": ")[0] for line in out.splitlines() if "MCP server" in line or "of their" in line
    ]
    assert lines == [
        "MCP server gate (project, .mcp.json) waits for approval",
        "MCP server wall␛[2J (project, .mcp.json) waits for approval",
        "The cost of their tools is not known without starting them, and Nexus never starts them.",
    ]
    code, out, _ = run("show", "--for", "claude-code", "--format", "json")
    assert json.loads(out)["servers"][0] == snapshot(
        {
            "name": "gate",
            "uri": "file:///home/a/.mcp.json",
            "scope": "project",
            "start": "asks",
            "reason": "Claude Code asks the user first; `claude -p` starts it without asking.",
        }
    )


def test_the_exact_text(run: Any) -> None:
    assert run("show", "--for", "codex") == snapshot(
        (
            0,
            """\
── instructions, in the first user message (N tokens)
# AGENTS.md instructions for /home/a

<INSTRUCTIONS>
Mine.

--- project-doc ---

The gate is green.
The second line is cu
</INSTRUCTIONS>
""",
            "nexus show: /home/a/AGENTS.md: cut at 40 bytes: lines 2–3 are never read\n",
        )
    )


def test_the_source_of_each_part(run: Any) -> None:
    assert run("show", "--for", "codex", "--source") == snapshot(
        (
            0,
            """\
── Codex (0.169.0, by its own requests): N tokens of files in every request, N with its prompt and tools
── instructions, in the first user message (N tokens)
── text of Codex (N tokens)
# AGENTS.md instructions for /home/a

<INSTRUCTIONS>
── /home/.codex/AGENTS.md:1-1 (user) (N tokens)
Mine.
── text of Codex (N tokens)


--- project-doc ---

── /home/a/AGENTS.md:1-3 (project, cut at line 2) (N tokens)
The gate is green.
The second line is cu
── text of Codex (N tokens)

</INSTRUCTIONS>
── not read: /home/a/CLAUDE.md: Codex reads AGENTS.md, not CLAUDE.md.
── not read: /home/a/src/AGENTS.md: Codex reads AGENTS.md of the folder where it runs, not of those below.
""",
            "nexus show: /home/a/AGENTS.md: cut at 40 bytes: lines 2–3 are never read\n",
        )
    )


def test_the_tokens(run: Any) -> None:
    assert run("show", "--for", "codex", "--tokens") == snapshot(
        (
            0,
            """\
Codex (0.169.0, by its own requests): N tokens of files in every request, N with its prompt and tools

  scope  file  tokens  share
   \n\
  program  around the instructions  N  N
  user  ~/.codex/AGENTS.md  N  N
  program  around the instructions  N  N
  project  AGENTS.md  N  N
  program  around the instructions  N  N

  total  counted with o200k_base (gpt-5)  N

""",
            "nexus show: /home/a/AGENTS.md: cut at 40 bytes: lines 2–3 are never read\n",
        )
    )


def test_the_layers(run: Any) -> None:
    assert run("show", "--for", "claude-code", "--layers") == snapshot(
        (
            0,
            """\
Claude Code (2.1.330, by its own requests): N tokens of files in every request, N with its prompt and tools

  scope  file  status  tokens
   \n\
  project  CLAUDE.md  sent  N
  import  @docs/style.md  sent  N

not read ~/.codex/AGENTS.md: Claude Code reads CLAUDE.md, not files of Codex.
not read AGENTS.md: CLAUDE.md is read instead. Import this file there: `@AGENTS.md`.
not read src/AGENTS.md: CLAUDE.md is read instead. Put a CLAUDE.md with `@AGENTS.md` beside this file.
""",
            "nexus show: 1 problem: run nexus check --for claude-code /home/a\n",
        )
    )


def test_who_reads_what(run: Any) -> None:
    assert run("show", "--for", "all") == snapshot(
        (
            0,
            """\

  file  Claude Code  Codex  opencode  Gemini CLI  GitHub Copilot  Cursor
   \n\
  ~/.codex/AGENTS.md  –  N  –  –  –  –
  AGENTS.md  –  cut N  N  –  N  N
  CLAUDE.md  N  –  –  –  N  later
  docs/style.md  N  –  –  –  –  –
  src/AGENTS.md  –  –  later  –  –  later
  around the files  N  N  –  –  –  –
  own prompt, tools  N  N  N  ?  ?  ?

  every request  N  N  N  N + ?  N + ?  N + ?

–: not read · later: sent when something happens · +: part of it later · cut: only in part · ?: not known
By documentation, not by their own requests: GitHub Copilot, Cursor.
""",
            "",
        )
    )


def test_json_is_the_result_of_the_request(run: Any) -> None:
    code, out, _ = run("show", "--for", "codex", "--format", "json")
    files = [(each["uri"].rpartition("/home/")[2], each["loaded"]) for each in json.loads(out)["files"]]
    cut = next(each["cutAt"] for each in json.loads(out)["files"] if "cutAt" in each)
    assert (code, files, cut) == snapshot(
        (
            0,
            [
                (".codex/AGENTS.md", True),
                ("a/AGENTS.md", True),
                ("a/CLAUDE.md", False),
                ("a/src/AGENTS.md", False),
            ],
            {"line": 1, "character": 21},
        )
    )


@pytest.mark.parametrize("arguments", [("--message", "x"), ("--agent", "b"), ("--format", "anthropic")])
def test_options_about_requests_of_nexus_are_wrong_usage(arguments: tuple[str, str], run: Any) -> None:
    code, out, errors = run("show", "--for", "codex", *arguments)
    assert (code, out, "nexus show: --f" in errors) == (2, "", True)


def test_a_check(run: Any) -> None:
    assert run("check", "--for", "codex") == snapshot(
        (
            1,
            """\
Configuration Error: Problem in /home/a/AGENTS.md

  Line 2, Column 22: Cut at 40 bytes: lines 2–3 are never read. Shorten it, or raise `project_doc_max_bytes`.

  1 | The gate is green.
  2 | The second line is cut.
    |  ^
  3 | The third, too.

Fix the file and try again.

~/a/AGENTS.md:2:22 error [assistant.cut] (Codex)

1 error and 0 warnings in 2 files read by Codex 0.169.0.
""",
            "",
        )
    )


def test_a_check_of_claude_code(run: Any) -> None:
    assert run("check", "--for", "claude-code", "--strict") == snapshot(
        (
            1,
            """\
Configuration Warning: Problem in /home/a/CLAUDE.md

  Line 1, Column 33: docs/none.md does not exist. Correct the path, or add the file.

  1 | The gate is red. @docs/style.md @docs/none.md
    |  ^

~/a/CLAUDE.md:1:33 warning [assistant.import] (Claude Code)

0 errors and 1 warning in 2 files read by Claude Code 2.1.330.
""",
            "",
        )
    )


def test_a_check_for_github(run: Any) -> None:
    code, out, _ = run("check", "--for", "codex", "--format", "github")
    assert (code, out.partition("::Cut")[0]) == snapshot(
        (1, "::error file=/home/a/AGENTS.md,line=2,col=22,endLine=4,endColumn=1,title=assistant.cut")
    )


def test_an_unknown_assistant_is_wrong_usage(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("show", "--for", "clippy")
    assert ended.value.code == 2
