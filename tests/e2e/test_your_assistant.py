"""README.md and docs/your-assistant.md: their commands, run in the example, print what the pages say."""

import re
from pathlib import Path

import pytest

from example_outputs import BLOCK, PAGES, renew, without_figures

README, PAGE = (page.read_text(encoding="utf-8") for page in PAGES)
ASSISTANTS = ("Claude Code", "Codex", "GitHub Copilot", "Cursor", "Gemini CLI", "opencode")
SECTIONS = re.split(rf"^## ({'|'.join(ASSISTANTS)}|And all of them)$", PAGE, flags=re.MULTILINE)
SECTION_OF = dict(zip(SECTIONS[1::2], SECTIONS[2::2], strict=True))


@pytest.mark.parametrize("assistant", ASSISTANTS)
def test_the_commands_print_what_the_page_says(assistant: str, tmp_path: Path) -> None:
    section = SECTION_OF[assistant]
    assert BLOCK.search(section)
    assert without_figures(renew(section, tmp_path)) == without_figures(section), "run `make generate`"


def test_the_commands_print_what_the_readme_says(tmp_path: Path) -> None:
    assert len(BLOCK.findall(README)) == 2
    assert without_figures(renew(README, tmp_path)) == without_figures(README), "run `make generate`"


def test_each_assistant_has_its_three_commands() -> None:
    commands = {
        title: re.findall(r"(?:^\$ |`)(nexus \w[^`\n]*)", section, re.MULTILINE)
        for title, section in SECTION_OF.items()
    }
    assert [title for title in ASSISTANTS if len(commands[title]) < 3] == []
