"""Several definitions of a name: which one is listed, and what is said of the others."""

from pathlib import Path

import pytest

from nexus_context.assistants.reading.profile_types import Profile, Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Severity
from support.fixture import write_fixture

SKILL = "---\nname: x\ndescription: {0}\n---\nText.\n"
CLAUDE = "Claude Code uses the skill `x` of "
CLAUDE_WHY = (
    " instead. Of one name the user's skill comes first, then the nearest; then commands so. Rename one."
)


def check(fixture: str, name: str, root: Path, folder: str = "/work") -> Profile:
    tree = write_fixture(fixture, root)
    return read_profile(name, Surroundings(tree.path(folder), tree.path("/home"), {}))


def files(*paths: str) -> str:
    """A fixture of skills and agents named `x`, each with its path as description."""
    texts = (f"//- {path}\n" + SKILL.format(path.replace("/", " ").strip()) for path in paths)
    return "//- /work/.git/HEAD\nref\n//- /work/.git/objects/x\n//- /work/.git/refs/x\n" + "".join(texts)


@pytest.mark.parametrize(
    ("name", "paths", "winner", "severities"),
    [
        ("claude-code", ["/work/.claude/skills/x/SKILL.md"], 0, []),
        ("claude-code", ["/work/.claude/skills/x/SKILL.md", "/work/.claude/commands/x.md"], 0, ["warning"]),
        (
            "claude-code",
            ["/work/.claude/skills/x/SKILL.md", "/home/.claude/skills/x/SKILL.md"],
            1,
            ["information"],
        ),
        ("claude-code", ["/home/.claude/commands/x.md", "/work/.claude/skills/x/SKILL.md"], 1, []),
        ("claude-code", ["/home/.claude/agents/x.md", "/work/.claude/agents/x.md"], 1, []),
        ("claude-code", ["/work/.claude/agents/a.md", "/work/.claude/agents/b/b.md"], 1, ["warning"]),
        ("gemini", ["/work/.gemini/skills/x/SKILL.md", "/work/.agents/skills/x/SKILL.md"], 1, ["warning"]),
        (
            "opencode",
            ["/work/.claude/skills/x/SKILL.md", "/work/.opencode/skills/x/SKILL.md"],
            1,
            ["warning"],
        ),
        ("codex", ["/work/.agents/skills/x/SKILL.md", "/work/.codex/skills/x/SKILL.md"], None, []),
    ],
    ids=str,
)
def test_one_definition_of_a_name_is_listed(
    name: str, paths: list[str], winner: int | None, severities: list[str], tmp_path: Path
) -> None:
    profile = check(files(*paths), name, tmp_path)
    listed = [
        part.path for block in profile.blocks for part in block.parts if part.scope in ("skill", "agent")
    ]
    expected = paths if winner is None else [paths[winner]]
    assert sorted(str(path).removeprefix(str(tmp_path)) for path in listed) == sorted(expected)
    shadowed = [each for each in profile.problems if each.code == "assistant.shadowed"]
    assert [each.severity.name.lower() for each in shadowed] == severities
    others = {each.path.removeprefix(str(tmp_path)) for each in profile.ignored}
    assert others.issuperset(path for path in paths if path not in expected)


def test_a_problem_names_the_winner_and_why(tmp_path: Path) -> None:
    profile = check(
        files("/work/.claude/skills/x/SKILL.md", "/work/.claude/commands/x.md"), "claude-code", tmp_path
    )
    messages = [each.message for each in profile.problems if each.code == "assistant.shadowed"]
    assert messages == [f"{CLAUDE}.claude/skills/x/SKILL.md{CLAUDE_WHY}"]


@pytest.mark.parametrize(
    ("name", "path"),
    [("opencode", ".claude/skills/x/SKILL.md"), ("claude-code", ".claude/agents/x.md")],
)
def test_copies_of_a_definition_need_no_other_name(name: str, path: str, tmp_path: Path) -> None:
    copy = path.replace(".claude", ".opencode") if name == "opencode" else ".claude/agents/copies/x.md"
    skill = SKILL.format("Same.")
    fixture = f"//- /work/opencode.json\n{{}}\n//- /work/{path}\n{skill}//- /work/{copy}\n{skill}"
    (problem,) = (
        each for each in check(fixture, name, tmp_path).problems if each.code == "assistant.shadowed"
    )
    assert problem.severity is Severity.HINT
    assert problem.message.endswith(" Both have the same text.")


def test_a_server_that_another_one_replaces_is_told(tmp_path: Path) -> None:
    servers = '{"mcpServers": {"s": {"command": "x"}}}'
    fixture = f"//- /work/sub/.mcp.json\n{servers}\n//- /work/.mcp.json\n{servers}\n"
    profile = check(fixture, "claude-code", tmp_path, "/work/sub")
    assert [(each.name, each.scope) for each in profile.servers] == [("s", "project")]
    assert [each.path for each in profile.problems if each.code == "assistant.shadowed"] == [
        str(tmp_path / "work" / ".mcp.json")
    ]


@pytest.mark.parametrize(
    "paths",
    [
        ["/work/.opencode/skill/x/SKILL.md", "/work/.opencode/skills/x/SKILL.md"],
        ["/work/.claude/skills/one/SKILL.md", "/work/.claude/skills/two/SKILL.md"],
        ["/work/.claude/skills/x/SKILL.md", "/work/.agents/skills/x/SKILL.md"],
        ["/home/.claude/skills/x/SKILL.md", "/work/.claude/skills/x/SKILL.md"],
    ],
    ids=str,
)
def test_opencode_has_no_winner_among_skills_of_one_name(paths: list[str], tmp_path: Path) -> None:
    """opencode 1.18.33 parses all at once. On a busy machine now the one counted, now the other."""
    profile = check(files(*paths), "opencode", tmp_path)
    reasons = [each.reason for each in profile.ignored if each.path.endswith("SKILL.md")]
    assert [reason.endswith("may change from start to start.") for reason in reasons] == [True]
