"""Tools and examples of skills: what the model sees, what needs no confirmation, what the settings forbid."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nexus_context.folder.skills.skill import MAX_EXAMPLES, read_skill
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.fixture import write_fixture
from support.folders import load_folder, relative
from support.source_map import skill_texts, source_at

FOLDER = "/home/a"
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
MINE, THEIRS = "/home/.nexus3/skills/mine/SKILL.md", "/home/a/.nexus3/skills/theirs/SKILL.md"
TEXT = f"""
//- {MINE}
---
name: mine
description: d
allowed-tools: Bash(git:*) Read
metadata:
  examples: |
    - Add 2 and 2

      Solve   an equation
---
Mine.
//- {THEIRS}
---
name: theirs
description: d
allowed-tools: Write
---
Theirs.
"""
TOLD = f"""\
## Skill: mine
Source: {MINE}

Mine.

Tools of this skill: Bash(git:*), Read

Examples:
- Add 2 and 2
- Solve an equation

## Skill: theirs
Source: {THEIRS}

Theirs.

Tools of this skill: Write"""


def test_tools_and_examples_follow_the_text(tmp_path: Path) -> None:
    fixture = write_fixture(TEXT, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    prompt = skill_texts(snapshot, "mine", "theirs")
    assert relative(fixture, prompt.text) == TOLD
    texts = snapshot.layers.texts
    path = fixture.path(MINE)
    for shown, written in (("Tools of this", "Bash(git:*)"), ("Examples:", "|\n")):
        assert source_at(prompt, prompt.text.index(shown), texts) == (path, texts[path].index(written))
    assert snapshot.problems == ()
    assert "Examples:" not in snapshot.prompt.text  # the index is short


def test_examples_are_bounded_lines() -> None:
    lines = "".join(f"    Example {number}\n" for number in range(50))
    text = f"---\nname: x\ndescription: d\nmetadata:\n  examples: |\n{lines}---\nText.\n"
    skill = read_skill(os.path.join(os.sep, "x", "SKILL.md"), text).skill
    assert skill is not None
    assert skill.examples == tuple(f"Example {number}" for number in range(MAX_EXAMPLES))


@pytest.mark.parametrize(
    ("config", "options", "approved"),
    [
        ("{}", Options(), None),
        ("{}", Options(skills=["mine"]), ["Bash(git:*)", "Read"]),
        ("{}", Options(skills=["theirs"]), None),  # a workspace widens nothing
        ("{}", Options(skills=["theirs", "mine"]), ["Bash(git:*)", "Read"]),
        ("{}", Options(skills=["mine"], skip_skills=True), None),
        ("{}", Options(skills=["mine"], disabled_tools=["B*"]), ["Read"]),
        ("{}", Options(skills=["mine"], sandbox=True), None),
        ("{}", Options(skills=["mine"], permissions=["fs.*"]), None),
        ('{"tools": {"disabled": ["Read"]}}', Options(skills=["mine"]), ["Bash(git:*)"]),
        ('{"permissions": {"deny": ["*"]}}', Options(skills=["mine"]), None),
        ('{"permissions": {"level": "sandboxed"}}', Options(skills=["mine"]), None),
        (
            '{"permissions": {"deny": ["fs.read"]}}',
            Options(skills=["mine"], additional_tools=[{"name": "Read", "permissions": ["fs.read"]}]),
            ["Bash(git:*)"],
        ),
    ],
)
def test_what_the_users_own_skills_need_no_question_for(
    tmp_path: Path, config: str, options: Options, approved: list[str] | None
) -> None:
    fixture = write_fixture(f"{TEXT}//- /home/a/.nexus3/config.json\n{config}\n", tmp_path)
    made = assemble(load_folder(fixture, FOLDER), ContextManager(), Request(options=options), now=NOW)
    assert made.permissions.get("preapproved") == approved
    assert {"level", "allow", "deny"} <= set(made.permissions)


def test_a_tool_that_the_settings_switch_off_is_told(tmp_path: Path) -> None:
    config = '{"tools": {"disabled": ["Ba*"]}, "permissions": {"deny": ["Write", "fs.*"]}}'
    fixture = write_fixture(f"{TEXT}//- /home/a/.nexus3/config.json\n{config}\n", tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    said = {relative(fixture, one.path): (one.code, one.message) for one in snapshot.problems}
    assert sorted(said) == [MINE, THEIRS]
    assert {code for code, _ in said.values()} == {"skill.allowed-tools"}
    assert '`tools.disabled` switches "Bash(git:*)" off' in said[MINE][1]
    assert '`permissions.deny` switches "Write" off' in said[THEIRS][1]
    for one in snapshot.problems:
        text = snapshot.layers.texts[one.path]
        assert text[one.span.start : one.span.end] in ("Bash(git:*) Read", "Write")
    assert len(snapshot.layers.skills) == 2  # they are used


def test_thousands_of_skills_and_files_stay_quick(tmp_path: Path) -> None:
    """Of 5,001 directories the first are read, which is reported; 5,000 files beside one are not examined."""
    fixture = write_fixture(TEXT, tmp_path)
    many = Path(fixture.path("/home/a/.agents/skills"))
    for number in range(5_001):
        (many / f"s{number:04}").mkdir(parents=True)
    for number in range(20):
        text = f"---\nname: s{number:04}\ndescription: d\n---\nText.\n"
        (many / f"s{number:04}" / "SKILL.md").write_text(text)
    beside = Path(fixture.path(MINE)).parent
    for number in range(5_000):
        (beside / f"{number}.txt").touch()
    seconds = []
    for _ in range(3):
        began = time.thread_time()
        snapshot = load_folder(fixture, FOLDER)
        seconds.append(time.thread_time() - began)
    assert len(snapshot.layers.skills) == 22
    assert [problem.code for problem in snapshot.problems] == ["skill.too-many"]
    assert min(seconds) < 1.0
