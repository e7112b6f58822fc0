"""Places that name a skill."""

from pathlib import Path

import pytest

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.skill_uses import find_skill_uses

SETTINGS = ".claude/settings.json"


@pytest.mark.parametrize(
    ("manifest", "path", "text", "marked"),
    [
        ("---\nname: x\n---\n", SETTINGS, '{"permissions": {"ask": ["Skill(x)"]}}', ["x", "x"]),
        (
            '---\nname: "x"\n---\n',
            SETTINGS,
            '{"permissions": {"ask": ["Skill(x:*)", "Skill(xy)"]}}',
            ["x", "x"],
        ),
        ("No front matter, name: x", SETTINGS, '{"skillOverrides": {"x": "off", "xx": "off"}}', ["x"]),
        ("---\nname: y\n---\nname: x\n", "opencode.json", '{"permission": {"skill": {"x": "ask"}}}', []),
        ("---\nname: x\n---\n", "opencode.json", '{"permission": {"skill": {"\\u0078": "ask"}}}', ["x"]),
        ("---\nname: x\n", SETTINGS, '{"skillOverrides": ["x"]}', []),
    ],
)
def test_places(tmp_path: Path, manifest: str, path: str, text: str, marked: list[str]) -> None:
    skill = tmp_path / "a/.claude/skills/x"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(manifest)
    (tmp_path / "a" / path).write_text(text)
    disk, surroundings = Disk(), Surroundings(str(tmp_path / "a"), str(tmp_path / "home"), {})
    uses = find_skill_uses(str(skill), disk, surroundings)
    assert [(disk.text(use.path) or "")[use.span.start : use.span.end] for use in uses] == marked
    assert find_skill_uses(str(tmp_path / "a/.claude"), disk, surroundings) == []
