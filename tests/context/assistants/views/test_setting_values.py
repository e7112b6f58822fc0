"""The value in force of a setting of each program, and the files that set it."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.setting_values import SettingValue, find_setting, read_keys
from support.fixture import write_fixture

USER = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "opencode": ".config/opencode/opencode.json",
    "gemini": ".gemini/settings.json",
}
PROJECT = {**USER, "opencode": "opencode.json", "copilot": ".vscode/settings.json"}
TRUST = '\n[projects."{root}/work"]\ntrust_level = "trusted"\n'


def setting_of(root: Path, name: str, key: str, *, user: str = "", project: str = "") -> SettingValue | None:
    files = "//- /work/.git/HEAD\nref: refs/heads/main\n//- /work/.git/objects/x\n//- /work/.git/refs/x\n"
    user += TRUST.replace("{root}", str(root)) if name == "codex" else ""
    for directory, places, text in (("home", USER, user), ("work", PROJECT, project)):
        files += f"//- /{directory}/{places[name]}\n{text}\n" if text else ""
    write_fixture(files, root)
    disk, where = Disk(), Surroundings(str(root / "work"), str(root / "home"), {})
    settings = PROGRAMS[name].settings(disk, where)
    return find_setting(name, read_keys(name, key, settings), settings, disk)


@pytest.mark.parametrize(
    ("name", "key", "user", "project", "value", "counting"),
    [
        ("claude-code", "model", '{"model": "opus"}', '{"model": "sonnet"}', "sonnet", [True, False]),
        ("claude-code", "model", '{"model": "opus"}', "{}", "opus", [True]),
        *[
            (
                "claude-code",
                key,
                '{"permissions": {"allow": ["A", "B"]}}',
                '{"permissions": {"allow": ["B", "C"]}}',
                ["A", "B", "C"],
                [True, True],
            )
            for key in ("permissions.allow", "/permissions/allow")
        ],
        ("codex", "sandbox_mode", 'sandbox_mode = "read-only"', "", "read-only", [True]),
        ("codex", "notify", 'notify = ["a"]', 'notify = ["b"]', ["a"], [True]),
        (
            "opencode",
            "instructions",
            '{"instructions": ["a.md"]}',
            '{"instructions": ["b.md"]}',
            ["a.md", "b.md"],
            [True, True],
        ),
        ("opencode", "model", '{"model": "x/a"}', '{"model": "x/b"}', "x/b", [True, False]),
        (
            "gemini",
            "context.includeDirectories",
            '{"context": {"includeDirectories": ["a"]}}',
            '{"context": {"includeDirectories": ["b"]}}',
            ["a", "b"],
            [True, True],
        ),
        (
            "gemini",
            "mcp.excluded",
            '{"mcp": {"excluded": ["a"]}}',
            '{"mcp": {"excluded": ["b"]}}',
            ["a", "b"],
            [True, True],
        ),
        (
            "gemini",
            "mcp.allowed",
            '{"mcp": {"allowed": ["a", "b"]}}',
            '{"mcp": {"allowed": ["b", "c"]}}',
            ["b"],
            [True, True],
        ),
        (
            "gemini",
            "context.fileName",
            '{"context": {"fileName": ["A.md"]}}',
            '{"context": {"fileName": ["B.md"]}}',
            ["B.md"],
            [True, False],
        ),
        (
            "copilot",
            "github.copilot.chat.codeGeneration.useInstructionFiles",
            "",
            '{"github.copilot.chat.codeGeneration.useInstructionFiles": false}',
            False,
            [True],
        ),
    ],
)
def test_the_value_in_force_is_that_of_the_program(
    tmp_path: Path, name: str, key: str, user: str, project: str, value: Any, counting: list[bool]
) -> None:
    if name == "copilot":
        user = ""
    found = setting_of(tmp_path, name, key, user=user, project=project)
    assert found is not None
    assert found.value == value
    assert [each.counts for each in found.sources] == counting


def test_a_source_has_the_place_of_its_key(tmp_path: Path) -> None:
    texts = {"claude-code": '{"model": "opus"}', "codex": 'sandbox_mode = "read-only"'}
    for name, key in (("claude-code", "model"), ("codex", "sandbox_mode")):
        found = setting_of(tmp_path / name, name, key, user=texts[name])
        assert found is not None
        [source] = found.sources
        span = source.span
        assert texts[name][span.start : span.end].strip('"') == key


def test_of_a_refused_file_nothing_counts_but_it_is_named(tmp_path: Path) -> None:
    found = setting_of(tmp_path, "claude-code", "model", project='{"model": "opus", "permissions": 5}')
    assert found is not None
    assert found.value is None
    assert [(each.value, each.counts) for each in found.sources] == [("opus", False)]


@pytest.mark.parametrize(
    ("name", "key", "is_known"),
    [
        ("claude-code", "model", True),
        ("claude-code", "permissions.allow", True),
        ("codex", "sandbox_mode", True),
        ("gemini", "context.fileName", True),
        ("claude-code", "git", None),
        ("claude-code", "npm test", None),
        ("gemini", "context.nonsense", None),
        ("claude-code", "model.nonsense", None),
        ("claude-code", "/permissions/allow/0", True),
        ("claude-code", "/0", None),
        ("cursor", "anything", None),
    ],
)
def test_a_word_is_a_setting_only_if_the_program_has_it(
    tmp_path: Path, name: str, key: str, is_known: bool | None
) -> None:
    disk, where = Disk(), Surroundings(str(tmp_path), str(tmp_path / "home"), {})
    settings = PROGRAMS[name].settings(disk, where)
    found = find_setting(name, read_keys(name, key, settings), settings, disk)
    assert (None if found is None else found.is_known) == is_known


def test_a_key_that_the_program_does_not_have_is_said_to_be_unknown(tmp_path: Path) -> None:
    found = setting_of(tmp_path, "claude-code", "modle", project='{"modle": "opus"}')
    assert found is not None and found.is_known is False


@pytest.mark.parametrize(
    ("name", "key", "text", "shown"),
    [
        (
            "claude-code",
            "env",
            '{"env": {"A_TOKEN": "abcdefgh", "MAX": "3"}}',
            {"A_TOKEN": "***", "MAX": "***"},
        ),
        (
            "gemini",
            "mcpServers",
            '{"mcpServers": {"a": {"command": "x", "args": ["--pw", "hush"], "timeout": 3}}}',
            {"a": {"command": "***", "args": "***", "timeout": 3}},
        ),
    ],
)
def test_what_may_be_secret_is_covered(tmp_path: Path, name: str, key: str, text: str, shown: Any) -> None:
    found = setting_of(tmp_path, name, key, project=text)
    assert found is not None
    assert found.value == shown
    assert [each.value for each in found.sources] == [shown]


def test_a_secret_that_no_file_sets_has_no_value(tmp_path: Path) -> None:
    found = setting_of(tmp_path, "gemini", "mcpServers.docs.command")
    assert found is not None and (found.value, found.sources) == (None, ())
