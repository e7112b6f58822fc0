"""Claude Code's settings: which values void a file or one entry, and what counts of several files."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from assistants import settings_runs
from nexus_context.assistants.claude_code import settings as claude_settings
from nexus_context.assistants.claude_code.settings import read_settings
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Surroundings
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_fixture
from support.sentences import sentences


def check(text: str, root: Path) -> tuple[AssistantSettings, list[tuple[str, ...]]]:
    """The settings of a folder whose file has this text, and the problems: text in place, and message."""
    tree = write_fixture("//- /work/.claude/x\n//- /home/x\n", root)
    path = Path(tree.path("/work/.claude/settings.json"))
    path.write_text(text)
    settings = read_settings(Disk(), Surroundings(tree.path("/work"), tree.path("/home"), {}))
    problems = [
        (settings.texts[each.path][each.span.start : each.span.end], each.code, *sentences(each.message))
        for each in settings.problems
    ]
    return settings, problems


@pytest.mark.parametrize("row", settings_runs.rows(), ids=lambda row: row["text"][36:76])
def test_what_a_wrong_value_does_in_the_program(row: dict[str, Any], tmp_path: Path) -> None:
    settings, problems = check(row["text"], tmp_path)
    codes = {each[1] for each in problems}
    assert ("assistant.void" in codes) == (row["effect"] == "void")
    if row["effect"] == "skipped":
        assert "assistant.no-effect" in codes
    elif "permissions" in row.get("settings", {}):  # a rule that counts is never said to be left out
        assert not [each for each in problems if "Claude Code leaves" in each[2]]
    counts = [file.values for file in settings.files if file.scope == "project"] != [{}]
    assert counts == (row["effect"] != "void")


def test_a_void_file_says_what_is_not_in_force(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "permissions": {"deny": ["Bash(rm:*)", "Read(.env)"], "allow": ["Bash(ls:*)"]},
            "disabledMcpjsonServers": ["a"],
            "cleanupPeriodDays": "30",
        }
    )
    _, problems = check(text, tmp_path)
    assert problems == snapshot(
        [
            (
                '"30"',
                "assistant.void",
                "Claude Code ignores this whole file.",
                '"cleanupPeriodDays" must be a whole number, not text.',
                "Not in force: 1 allow rule, 2 deny rules, `disabledMcpjsonServers`, `cleanupPeriodDays`.",
            )
        ]
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"claudeMdExclude": []},
            snapshot(
                [
                    (
                        '"claudeMdExclude"',
                        "assistant.no-effect",
                        "Claude Code 2.1.330 has no setting `claudeMdExclude`: it has no effect.",
                        "Did you mean `claudeMdExcludes`?",
                    )
                ]
            ),
        ),
        (
            {"claudeMdExclude": [], "claudeMdExcludes": []},
            snapshot(
                [
                    (
                        '"claudeMdExclude"',
                        "assistant.no-effect",
                        "Claude Code 2.1.330 has no setting `claudeMdExclude`: it has no effect.",
                    )
                ]
            ),
        ),
        (
            {"permissions": {"alow": ["Read"], "deny": []}},
            snapshot(
                [
                    (
                        '"alow"',
                        "assistant.no-effect",
                        "Claude Code 2.1.330 has no setting `permissions.alow`: it has no effect.",
                        "Did you mean `allow`?",
                    )
                ]
            ),
        ),
        (
            {"hooks": {"PreTooluse": []}},
            snapshot(
                [
                    (
                        '"PreTooluse"',
                        "assistant.no-effect",
                        "Claude Code has no hook event `PreTooluse`, and ignores it.",
                        "Did you mean `PreToolUse`?",
                    )
                ]
            ),
        ),
        (
            {"permissions": {"allow": ["mcp__*"]}},
            snapshot(
                [
                    (
                        '"mcp__*"',
                        "assistant.no-effect",
                        "Claude Code ignores this rule.",
                        "`mcp__*` is too wide to be allowed: a `*` may stand only behind `mcp__server__`.",
                    )
                ]
            ),
        ),
        (
            {"permissions": {"deny": ["bash"]}},
            snapshot(
                [
                    (
                        '"bash"',
                        "assistant.no-effect",
                        "Claude Code ignores this rule.",
                        "The name of a tool begins with a capital letter.",
                        "Write `Bash`.",
                    )
                ]
            ),
        ),
        (
            {"effortLevel": "max"},
            snapshot(
                [
                    (
                        '"max"',
                        "assistant.no-effect",
                        'Claude Code ignores this value: "effortLevel" must be low, medium, high or xhigh.',
                    )
                ]
            ),
        ),
        (
            {"managedMcpServers": {}},
            snapshot(
                [
                    (
                        '"managedMcpServers"',
                        "assistant.not-modelled",
                        "`managedMcpServers` can change what Claude Code sends, and Nexus does not model it.",
                    )
                ]
            ),
        ),
    ],
    ids=str,
)
def test_what_has_no_effect(value: dict[str, Any], message: list[tuple[str, ...]], tmp_path: Path) -> None:
    _, problems = check(json.dumps(value), tmp_path)
    assert problems == message


def test_what_counts_of_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(claude_settings.MANAGED, sys.platform, str(tmp_path / "managed"))
    tree = write_fixture(
        """
//- /home/.claude/settings.json
{"outputStyle": "user", "env": {"A": "user", "B": true, "CLAUDE_CONFIG_DIR": "/elsewhere"}}
//- /work/.claude/settings.json
{"outputStyle": "project", "env": {"A": 5}}
//- /work/.claude/settings.local.json
{"outputStyle": "local"}
//- /managed/managed-settings.json
{"claudeMdExcludes": ["a"]}
""",
        tmp_path,
    )
    settings = read_settings(Disk(), Surroundings(tree.path("/work"), tree.path("/home"), {"C": "c"}))
    assert settings.value("outputStyle") == "local"
    assert list(settings.each("outputStyle")) == ["user", "project", "local"]
    assert settings.value("claudeMdExcludes") == ["a"]
    assert settings.where.environ == {"A": "5", "B": "true", "C": "c"}


@pytest.mark.parametrize("cut", range(0, 90, 3))
def test_a_file_that_is_cut_anywhere_is_void(cut: int, tmp_path: Path) -> None:
    text = '{"permissions": {"deny": ["Bash(rm:*)"]}, "claudeMdExcludes": ["**/CLAUDE.md"], "model": "x"}'
    settings, problems = check(text[:cut], tmp_path)
    assert [file.values for file in settings.files if file.values] == []
    assert len(problems) == (cut > 0), problems


def test_a_byte_order_mark_moves_no_place(tmp_path: Path) -> None:
    _, problems = check('\ufeff{"model": 5}', tmp_path)
    assert [each[:2] for each in problems] == [("5", "assistant.void")]


def test_in_the_home_directory_a_file_is_read_once(tmp_path: Path) -> None:
    tree = write_fixture('//- /home/.claude/settings.json\n{"model": 5}\n', tmp_path)
    settings = read_settings(Disk(), Surroundings(tree.path("/home"), tree.path("/home"), {}))
    assert len(settings.problems) == 1


@pytest.mark.parametrize("value", [{"_comment": "why"}, {"_comment-2": 5}])
def test_a_comment_is_no_setting(value: dict[str, Any], tmp_path: Path) -> None:
    assert check(json.dumps(value), tmp_path)[1] == []


def test_servers_are_not_in_settings(tmp_path: Path) -> None:
    ((place, _, *said),) = check('{"mcpServers": {}}', tmp_path)[1]
    assert (place, said[-1]) == ('"mcpServers"', "Those of a project are in `.mcp.json`.")


@pytest.mark.parametrize(
    ("rule", "is_meant"),
    [
        ("Skill(releese)", "Skill(release)"),
        ("Skill(/releese)", "Skill(/release)"),
        ("Skill(release)", None),
        ("Skill(/release)", None),
        ("Skill(release:*)", None),
        ("Skill(release *)", None),
        ("Skill(rel:*)", None),
    ],
)
def test_a_skill_of_a_rule_is_one_that_is_there(rule: str, is_meant: str | None, tmp_path: Path) -> None:
    """A rule that ends with `:*` or ` *` is about all skills that begin so."""
    tree = write_fixture(
        f'//- /work/.claude/settings.json\n{{"permissions": {{"deny": ["{rule}"]}}}}\n'
        "//- /work/.claude/skills/release/SKILL.md\n---\ndescription: Tags.\n---\n//- /home/x\n",
        tmp_path,
    )
    profile = read_profile("claude-code", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    fixes = [problem.fix.edits[0].text for problem in profile.problems if problem.fix is not None]
    assert fixes == ([] if is_meant is None else [f'"{is_meant}"'])
