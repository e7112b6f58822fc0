"""Editors that know LSP and nothing of Nexus, where they are installed: Emacs with eglot, Vim with ALE.

Their users open a repository of somebody else, and the daemon is killed meanwhile.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.fixture import write_fixture
from support.shared import SharedHome

SCRIPTS = Path(__file__).parent / "editors"
TREE = """
//- /.nexus3/config.json
{"tools": {"summery": true}}
//- /AGENTS.md
# Rules

@missing.md
//- /packages/api/AGENTS.md
@gone.md
//- /.mcp.json
{"mcpServers": {"docs": {"command": "docs-server"}}}
//- /.github/copilot-instructions.md
Use tabs.
"""
PROGRAM_FILES = """
//- /.claude/settings.json
{ "model": "opus", "permissions": { "allow": ["mcp__tickets__find"] } }
//- /.mcp.json
{"mcpServers": {"tickets": {"command": "t"}}}
//- /CLAUDE.md
Read @docs/style.md first.
//- /docs/style.md
Be brief.
"""
WRONG = 'Unknown key "summery" in "tools": did you mean "summary"?'


def repository(home: SharedHome) -> Path:
    root = home.home / "work"
    write_fixture(TREE, root)
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


KILL = (
    "import os; from nexus_daemon.shared import client, identity; "
    "os.kill(client.lock_owner(identity.find_place(os.environ)), 9)"
)


def run(home: SharedHome, root: Path, *command: str) -> dict[str, Any]:
    """What an editor's script tells, by name."""
    variables = {
        "NEXUS_ROOT": str(root),
        "NEXUS_COMMAND": f"{sys.executable} -m nexus_daemon serve --remote=auto",
        "NEXUS_KILL": f'{sys.executable} -c "{KILL}"',
        "NEXUS_OUT": str(root / "out"),
        "TERM": "dumb",
    }
    done = subprocess.run(
        command, cwd=root, env={**home.environ, **variables}, capture_output=True, text=True, timeout=120
    )
    out = root / "out"
    text = out.read_text("utf-8") if out.exists() else done.stdout
    lines = [line for line in text.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    told: dict[str, Any] = {}
    for line in lines:
        told |= json.loads(line)
    return {**told, "exit": done.returncode, "errors": done.stderr if done.returncode else ""}


@pytest.mark.skipif(shutil.which("emacs") is None, reason="Emacs is not installed")
def test_emacs_with_eglot(home: SharedHome) -> None:
    root = repository(home)
    told = run(home, root, "emacs", "-Q", "--batch", "-l", str(SCRIPTS / "emacs.el"))
    if "no eglot" in told:
        pytest.skip("Emacs has no eglot")
    problem = [f"nexus [config.unknown-key]: {WRONG}"]
    assert told["exit"] == 0, told
    assert told["opened"] == told["after the daemon was killed"] == told["reloaded"] == problem
    assert told["actions"] == ['Rename to "summary"']
    assert told["fixed"] == ['{"tools": {"summary": false}}\n', "none"]
    assert "prompt.import-missing" in told["a link"][0]
    assert "prompt.import-missing" in told["nested"][0]
    assert told["message"] == "shown"


@pytest.mark.skipif(shutil.which("emacs") is None, reason="Emacs is not installed")
def test_features_in_emacs(home: SharedHome) -> None:
    root = home.home / "work"
    write_fixture(PROGRAM_FILES, root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    told = run(home, root, "emacs", "-Q", "--batch", "-l", str(SCRIPTS / "features.el"))
    if "no eglot" in told:
        pytest.skip("Emacs has no eglot")
    assert told["exit"] == 0, told
    assert "In force from one file: " in told["hover"]
    assert told["definition"] == ["settings.json", 1]
    assert any("defaultShell" in each for each in told["completion"])
    servers, rules = told["renamed"]
    assert servers == '{"mcpServers": {"issues": {"command": "t"}}}\n'
    assert "mcp__issues__find" in rules
    assert told["import"] == "style.md"


@pytest.mark.skipif(shutil.which("vim") is None, reason="Vim is not installed")
def test_vim_with_ale(home: SharedHome) -> None:
    root = repository(home)
    told = run(home, root, "vim", "-u", "NONE", "-es", "-S", str(SCRIPTS / "ale.vim"))
    if "no ALE" in told:
        pytest.skip("Vim has no ALE")
    assert "exception" not in told, told
    assert told["opened"] == told["after the daemon was killed"] == told["reloaded"] == [WRONG]
    assert told["fixed"] == []
    assert "missing.md" in told["a link"][0]
