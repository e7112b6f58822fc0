"""`make run`: the tour of the example, and of a monorepo that has nothing of Nexus."""

import subprocess
import sys
from pathlib import Path

from support.fixture import write_fixture

ROOT = Path(__file__).parents[2]
MONOREPO = """
//- /AGENTS.md
# Monorepo

Use pnpm, never npm.
//- /CLAUDE.md
@AGENTS.md
//- /.mcp.json
{"mcpServers": {"docs": {"type": "http", "url": "https://docs.example.com/mcp"}}}
//- /.github/copilot-instructions.md
Prefer small diffs.
//- /packages/api/AGENTS.md
The API speaks JSON.
"""


def tour(*arguments: str) -> str:
    command = [sys.executable, str(ROOT / "examples/tour.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=50).stdout


def test_the_example_is_toured_to_its_end_in_eighty_lines() -> None:
    output = tour()
    assert len(output.splitlines()) <= 80
    assert output.startswith("$ nexus show --for all\n")
    assert "denied   `Bash(git push:*)` denies `git push`." in output
    assert "You type in CLAUDE.md: 1 problem" in output
    assert "Quick fixes: Import docs/style.md instead" in output
    assert "You fix it: 0 problems left" in output
    assert "Its agents: 3 of company" in output
    _, _, ending = output.partition("Now try this in your project: ")
    assert "    nexus explain 'npm test'" in ending


def test_a_monorepo_is_toured_without_a_change(tmp_path: Path) -> None:
    root = Path(write_fixture(MONOREPO, tmp_path).root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    output = tour(str(root))
    assert output.startswith("$ nexus\n")
    assert "$ nexus explain CLAUDE.md\n" in output
    assert "packages/api/AGENTS.md" in output
    assert ".mcp.json:1:" in output
    assert "[assistant.void]" in output
    assert "0 problems left" in output
    assert "Assembled in" in output
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_folder_without_any_file_is_toured(tmp_path: Path) -> None:
    assert "[prompt.import" in tour(str(tmp_path))


def test_the_readme_is_a_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
