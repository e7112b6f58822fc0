"""What README.md and docs/your-assistant.md show of commands: `make generate` renews it.

Each `$ nexus …` in a console block is run in `examples/shop`, whose user has `examples` as a home directory.
What assistants are sent names that directory, so figures differ a little between clones: `without_figures`.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGES = (ROOT / "README.md", ROOT / "docs" / "your-assistant.md")
WIDTH = 104
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
COMMAND = re.compile(r"^\$ nexus (.+)$", re.MULTILINE)


def without_figures(text: str) -> str:
    """The text with every figure and bar as `#`, and one space between words."""
    return re.sub(r"\s+", " ", re.sub(r"≈?\d[\d,.]*%?(?:\s*[█▏]+)?", "#", text))


def renew(text: str, state: Path) -> str:
    """The text with the present output of each command; `state` is an empty state directory."""
    return BLOCK.sub(lambda block: _run_all(block[0], state), text)


def _run_all(block: str, state: Path) -> str:
    commands = COMMAND.findall(block)
    return "\n\n".join(f"$ nexus {command}\n{_run(command, state)}" for command in commands) + "\n"


def _run(command: str, state: Path) -> str:
    home = {"HOME": str(EXAMPLES), "USERPROFILE": str(EXAMPLES), "NEXUS_HOME": str(EXAMPLES / "home/.nexus3")}
    private = {"NEXUS_STATE": str(state), "NEXUS_DAEMON": "off", "COLUMNS": str(WIDTH)}
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


def main() -> None:
    """Write what differs."""
    for page in PAGES:
        committed = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as state:
            text = renew(committed, Path(state))
        if without_figures(text) != without_figures(committed):
            page.write_text(text, encoding="utf-8", newline="\n")
