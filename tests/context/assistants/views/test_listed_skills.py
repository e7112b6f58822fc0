"""Skills that Copilot and Cursor list, by documentation."""

import os
from pathlib import Path

import pytest

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_fixture

SKILLS = """
//- /work/.claude/skills/release/SKILL.md
---
name: release
description: Use it to release.
---
Tag it.
//- /work/.agents/skills/release/SKILL.md
---
name: release
description: Another one.
---
//- /work/.github/skills/review/SKILL.md
---
description: Use it to review.
---
//- /work/.cursor/skills/lint/SKILL.md
---
name: lint
description: Use it to lint.
---
//- /work/.claude/skills/empty/SKILL.md
Nothing.
//- /work/.claude/skills/broken/SKILL.md
---
description: [
---
//- /work/.claude/skills/README.md
No skill.
//- /home/.copilot/skills/mine/SKILL.md
---
name: mine
description: My own.
---
"""


def listed(assistant: str, root: Path, settings: str = "{}") -> tuple[list[str], list[str], list[str]]:
    """The entries of the list, and the files that are read later and never."""
    tree = write_fixture(f"{SKILLS}//- /work/.vscode/settings.json\n{settings}\n", root)
    profile = read_profile(assistant, Surroundings(tree.path("/work"), tree.path("/home"), {}))
    later, ignored = (
        sorted(os.path.relpath(file.path, root) for file in files if file.path.endswith("SKILL.md"))
        for files in (profile.later, profile.ignored)
    )
    return [part.text for part in profile.parts if part.scope == "skill"], later, ignored


@pytest.mark.parametrize(
    ("assistant", "entries", "files"),
    [
        (
            "copilot",
            ["review: Use it to review.\n", "release: Use it to release.\n", "mine: My own.\n"],
            [
                "home/.copilot/skills/mine/SKILL.md",
                "work/.claude/skills/release/SKILL.md",
                "work/.github/skills/review/SKILL.md",
            ],
        ),
        (
            "cursor",
            ["lint: Use it to lint.\n", "release: Another one.\n"],
            ["work/.agents/skills/release/SKILL.md", "work/.cursor/skills/lint/SKILL.md"],
        ),
    ],
)
def test_each_name_is_listed_once(
    assistant: str, entries: list[str], files: list[str], tmp_path: Path
) -> None:
    assert listed(assistant, tmp_path)[:2] == (entries, files)


def test_a_setting_of_vs_code_switches_skills_off(tmp_path: Path) -> None:
    entries, later, ignored = listed("copilot", tmp_path, '{"chat.useAgentSkills": false}')
    assert (entries, later) == ([], [])
    assert "work/.github/skills/review/SKILL.md" in ignored
