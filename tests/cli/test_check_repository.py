"""`nexus check` in CI: it depends on the repository alone, and nothing of the user's fails it."""

import json
from pathlib import Path

import pytest

from support.commands import run_nexus, use_home
from support.fixture import write_fixture

SECRET = "sk-live-0123456789"  # noqa: S105
REPOSITORY = """
//- /home/src/shop/.git/HEAD
ref: refs/heads/main
//- /home/src/shop/.git/objects/x
//- /home/src/shop/.git/refs/x
//- /home/src/shop/AGENTS.md
Answer briefly.
//- /home/src/shop/CLAUDE.md
@docs/gone.md and @~/.claude/mine.md
//- /home/src/shop/.claude/skills/hooks/SKILL.md
---
description: Use this: always
hooks:
  Stop:
    - hooks:
        - type: command
          command: x
---
Text.
//- /home/src/shop/.mcp.json
{"mcpServers": {"far": {"url": "https://example.com/mcp"}}}
//- /home/src/shop/.nexus3/mcp.json
{"mcpServers": {"a": {"command": "no-such-program", "env": {"A": "${NOT_SET}"}}}}
//- /home/src/shop/.codex/config.toml
project_doc_max_bytes = 65536
//- /home/src/shop/.gemini/settings.json
{"contextFileName": "AGENTS.md"}
//- /home/src/shop/.cursor/rules/a.mdc
---
alwaysApply: true
---
Be kind.
"""
HOME = f"""
//- /home/.nexus3/config.json
{{"provider": {{"model": 5}}, "skills": {{"exclude": ["*"]}}}}
//- /home/.nexus3/NEXUS.md
@gone.md
//- /home/.claude.json
{{"mcpServers": {{"x": {{"command": 5, "env": {{"KEY": "{SECRET}"}}}}}}, "oauth": "{SECRET}",
//- /home/.claude/settings.json
{{"permissions": "{SECRET}", "env": {{"KEY": "{SECRET}"}}, "claudeMdExcludes": ["**"],}}
//- /home/.claude/CLAUDE.md
@gone.md
//- /home/.codex/config.toml
model = "{SECRET}"
model = "{SECRET}"
key = "{SECRET}"
//- /home/.gemini/settings.json
{{"security": {{"key": "{SECRET}"}},,}}
//- /home/.config/opencode/opencode.json
{{"mcp": {{"a": {{"type": "{SECRET}"}}}}}}
//- /home/.cursor/mcp.json
{{"mcpServers": {{"a": "{SECRET}"
//- /home/CLAUDE.md
@gone.md
//- /home/bin/claude
"""
FORMATS = ("text", "json", "sarif", "github")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    use_home(monkeypatch, tmp_path)


def check(
    fixture: str, root: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Exit code, output and errors of `nexus check` in the repository."""
    tree = write_fixture(fixture, root)
    return run_nexus(capsys, "check", tree.path("/home/src/shop"), *arguments, root=tree.root)


def codes(output: str) -> set[tuple[str, str]]:
    """The file and code of each problem of a report in JSON."""
    return {(one["uri"].rpartition("/shop/")[2], one["code"]) for one in json.loads(output)["problems"]}


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_around_the_repository_changes_what_is_said(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--format", form, "--level", "hint")
    clean = check(REPOSITORY, tmp_path, capsys, *arguments)
    monkeypatch.setenv("NOT_SET", "1")
    monkeypatch.setenv("PATH", str(tmp_path / "home" / "bin"))
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1")
    noisy = check(HOME, tmp_path, capsys, *arguments)
    assert noisy[:2] == clean[:2]
    assert clean[0] == 0
    assert ".nexus3/config.json" in noisy[2], "the user's own file is only mentioned"
    assert not clean[2]


def test_what_is_said_of_a_repository_that_is_set_up_for_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output, _ = check(REPOSITORY, tmp_path, capsys, "--format", "json")
    assert code == 0
    assert codes(output) == {
        ("CLAUDE.md", "assistant.import"),
        (".mcp.json", "assistant.no-effect"),
        (".gemini/settings.json", "assistant.no-effect"),
        ("AGENTS.md", "assistant.unread"),  # once, for Gemini CLI, which reads nothing here
    }


def test_one_fault_of_an_import_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixture = "//- /home/src/shop/CLAUDE.md\nSee @docs/gone.md.\n\nAgain: @docs/gone.md.\n"
    _, output, _ = check(fixture, tmp_path, capsys, "--format", "json")
    assert [each["code"] for each in json.loads(output)["problems"]] == ["assistant.import"]


def test_an_import_that_is_misspelled_names_the_file_that_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixture = "//- /home/src/shop/CLAUDE.md\nSee @docs/stlye.md\n//- /home/src/shop/docs/style.md\nTabs.\n"
    _, output, _ = check(fixture, tmp_path, capsys, "--format", "json")
    messages = [each["message"] for each in json.loads(output)["problems"]]
    assert messages == ["docs/stlye.md does not exist. Did you mean docs/style.md?"]


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode", "gemini", "cursor", "copilot", "all"])
@pytest.mark.parametrize("form", FORMATS)
def test_findings_in_the_home_directory_never_fail_a_check_and_tell_no_secret(
    form: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output, errors = check(
        REPOSITORY + HOME.lstrip(), tmp_path, capsys, "--for", name, "--format", form, "--level", "hint"
    )
    assert code == 0
    assert SECRET not in output + errors
    if form in ("github", "sarif"):
        assert "file=/home/." not in output
        assert '"uri": "file:///home/.' not in output


def test_a_stop_in_the_home_directory_hides_no_problem_of_the_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = REPOSITORY + HOME.lstrip() + "//- /home/src/shop/.codex/agents/a.toml\nname = 5\n"
    code, output, _ = check(broken, tmp_path, capsys, "--for", "codex", "--format", "json")
    assert (".codex/agents/a.toml", "assistant.void") in codes(output)
    assert code == 1


def test_a_budget_is_part_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--for", "all", "--budget", "20", "--format")
    code, output, errors = check(REPOSITORY, tmp_path, capsys, *arguments, "json")
    report = json.loads(output)
    assert (code, errors) == (1, "")
    assert (report["budget"]["limit"], report["budget"]["since"]) == (20, None)
    over = {one["name"]: one["over"] for one in report["budget"]["assistants"]}
    assert (over["claude-code"], over["gemini"]) == (True, False)
    assert ("CLAUDE.md", "assistant.budget") in codes(output)
    assert "title=assistant.budget::" in check(REPOSITORY, tmp_path, capsys, *arguments, "github")[1]


@pytest.mark.parametrize(
    ("files", "readers"),
    [
        ("//- /home/src/shop/main.py\n", ""),
        ("//- /home/src/shop/.cursorrules\nx\n", "in what is read by Cursor"),
        ("//- /home/src/shop/GEMINI.md\nx\n//- /home/src/shop/AGENTS.md\nx\n", " by Codex and Gemini CLI"),
        ("//- /home/src/shop/.gemini/commands/a.toml\nx\n", " by Gemini CLI"),
        ("//- /home/src/shop/.gemini/config.yaml\nx: 1\n", ""),  # of the reviewer on GitHub
        ("//- /home/src/shop/opencode.jsonc\n{}\n", " by opencode"),
        ("//- /home/src/shop/.vscode/mcp.json\n{}\n", " by GitHub Copilot"),
    ],
)
def test_a_program_counts_where_the_repository_has_files_for_it(
    files: str, readers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = check(files, tmp_path, capsys)[1]
    assert readers in output
    assert bool(readers) == ("read by" in output)


def test_a_setting_and_a_comment_silence_a_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting = (
        "//- /home/src/shop/.nexus3/config.json\n"
        '{"check": {"ignore": ["assistant.no-effect:.gemini/**", "assistant.unread"]}}\n'
    )
    comment = "<!-- nexus: ignore assistant.import -->\n"
    quiet = REPOSITORY.replace("@docs/gone.md", f"{comment}@docs/gone.md") + setting
    code, output, _ = check(quiet.lstrip(), tmp_path, capsys, "--format", "json", "--strict")
    assert (code, codes(output)) == (1, {(".mcp.json", "assistant.no-effect")})
    assert "3 problems silenced by `check.ignore` or a comment.\n" in check(quiet, tmp_path, capsys)[1]
    assert "silenced" in check(quiet, tmp_path, capsys, "--for", "gemini")[1]
