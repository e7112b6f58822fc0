"""docs/your-assistant.md: its commands are run in the example, and print what the page says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "your-assistant.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n.*?```console\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
ASSISTANTS = ("Claude Code", "Codex", "GitHub Copilot", "Cursor", "Gemini CLI", "opencode")


def run(command: str, state: Path) -> str:
    """The command's output in the example, whose user has `examples` as a home directory."""
    home = {"HOME": str(EXAMPLES), "USERPROFILE": str(EXAMPLES), "NEXUS_HOME": str(EXAMPLES / "home/.nexus3")}
    private = {"NEXUS_STATE": str(state), "NEXUS_DAEMON": "off", "COLUMNS": "100"}
    process = subprocess.run(
        [sys.executable, "-m", "nexus_daemon", *shlex.split(command)],
        cwd=EXAMPLES / "shop",
        env={**os.environ, **home, **private},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    output = process.stdout.replace(str(EXAMPLES), "~")
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n")


@pytest.mark.parametrize("assistant", ASSISTANTS)
def test_the_commands_print_what_the_page_says(assistant: str, tmp_path: Path) -> None:
    section = SECTIONS[assistant]
    commands = re.findall(r"^\$ nexus (.+)$", section, re.MULTILINE)
    assert commands
    printed = "\n\n".join(f"$ nexus {command}\n{run(command, tmp_path)}" for command in commands)
    assert printed + "\n" == section


def test_each_assistant_has_its_three_commands() -> None:
    titles = "|".join(ASSISTANTS)
    _, *parts = re.split(rf"^## ({titles}|And all of them)$", PAGE, flags=re.MULTILINE)
    commands = {
        title: re.findall(r"(?:^\$ |`)(nexus \w[^`\n]*)", section, re.MULTILINE)
        for title, section in zip(parts[::2], parts[1::2], strict=True)
    }
    assert [title for title in ASSISTANTS if len(commands[title]) < 3] == []
