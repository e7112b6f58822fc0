"""Places that name a skill or an agent."""

import os
from pathlib import Path

import pytest

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.definition_uses import DefinitionKind, find_definition

SETTINGS = ".claude/settings.json"
AGENT = "---\nname: x\ndescription: Reads.\n---\n"


def places(tmp_path: Path, kind: DefinitionKind, files: dict[str, str]) -> list[str] | None:
    """The file of each place that names `x`; None if it means nothing."""
    for path, text in files.items():
        (tmp_path / "a" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / path).write_text(text)
    disk = Disk()
    definition = find_definition(
        kind, "x", disk, Surroundings(str(tmp_path / "a"), str(tmp_path / "home"), {})
    )
    if definition is None:
        return None
    texts = ((disk.text(use.path) or "", use.span) for use in definition.uses)
    assert all(text[span.start : span.end] == "x" for text, span in texts)
    return [os.path.relpath(use.path, tmp_path / "a") for use in definition.uses]


@pytest.mark.parametrize(
    ("manifest", "path", "text", "is_named"),
    [
        ("---\nname: x\n---\n", SETTINGS, '{"permissions": {"ask": ["Skill(x)"]}}', (True, True)),
        (
            '---\nname: "x"\n---\n',
            SETTINGS,
            '{"permissions": {"ask": ["Skill(x:*)", "Skill(xy)"]}}',
            (True, True),
        ),
        (
            "---\nname: x\n---\n",
            SETTINGS,
            '{"permissions": {"deny": ["Skill(/x)", "Agent(x)"]}}',
            (True, True),
        ),
        (
            "No front matter, name: x",
            SETTINGS,
            '{"skillOverrides": {"x": "off", "xx": "off"}}',
            (False, True),
        ),
        (
            "---\nname: y\n---\nname: x\n",
            "opencode.json",
            '{"permission": {"skill": {"x": "ask"}}}',
            (False, False),
        ),
        ("---\nname: x\n---\n", "opencode.json", '{"permission": {"skill": {"x": "ask"}}}', (True, True)),
        (
            "---\nname: x\n---\n",
            "opencode.json",
            '{"permission": {"skill": {"\\u0078": "ask"}}}',
            (True, False),
        ),
        ("---\nname: x\n", SETTINGS, '{"skillOverrides": ["x"]}', (False, False)),
        ("", ".claude/agents/a.md", "---\nname: a\nskills:\n  - xy\n  - x\n---\n", (False, True)),
        ("", ".claude/agents/a.md", "---\nname: a\nskills: xy, z\n---\nx\n", (False, False)),
    ],
)
def test_places_of_a_skill(
    tmp_path: Path, manifest: str, path: str, text: str, is_named: tuple[bool, bool]
) -> None:
    own_path = ".claude/skills/x/SKILL.md"
    expected_paths = [name for name, is_use in zip((own_path, path), is_named, strict=True) if is_use]
    assert places(tmp_path, "skill", {own_path: manifest, path: text}) == expected_paths


@pytest.mark.parametrize(
    ("path", "text", "is_named"),
    [
        (SETTINGS, '{"permissions": {"deny": ["Agent(x)", "Agent(xy)", "Agent(x y)", "Skill(x)"]}}', True),
        (SETTINGS, '{"permissions": {"allow": ["Task(x)"]}}', True),
        (SETTINGS, '{"agent": "x", "model": "x"}', True),
        (SETTINGS, '{"agent": "xy", "permissions": {"agent": "x"}}', False),
        (".claude/skills/s/SKILL.md", "---\nname: s\nagent: x\n---\n", True),
        (".claude/commands/s.md", "---\nagent: xy\n---\n", False),
    ],
)
def test_places_of_an_agent(tmp_path: Path, path: str, text: str, *, is_named: bool) -> None:
    own_path = ".claude/agents/reader.md"
    assert places(tmp_path, "agent", {own_path: AGENT, path: text}) == [own_path, path][: 1 + is_named]


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        ("skill", (".claude/skills/x/SKILL.md", ".claude/commands/x.md")),
        ("agent", (".claude/agents/a.md", ".claude/agents/b/c.md")),
        ("agent", (".claude/skills/x/SKILL.md",)),
        ("skill", (".claude/commands/x.md",)),
    ],
)
def test_a_name_that_no_file_or_several_define_means_nothing(
    tmp_path: Path, kind: DefinitionKind, paths: tuple[str, ...]
) -> None:
    assert places(tmp_path, kind, dict.fromkeys(paths, AGENT)) is None
