"""`nexus explain`: what an assistant does with a call in a folder, by which rule."""

import json
import os
from pathlib import Path

import pytest

from support.commands import output_of, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/.claude/settings.json
{
  "permissions": {
    "allow": ["Bash(npm run *)", "Bash(rm *)"],
    "deny": ["Bash(rm -rf *)", "Read(./.env)"]
  }
}
//- /home/a/deploy.sh
#!/bin/sh
npm run build && git push
rm -rf dist
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def explained(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    folder = tree.path("/home/a")
    text = output_of(tree, capsys, "explain", "--folder", folder, "--for", "claude-code", *arguments)
    return "\n".join(line.strip() for line in text.splitlines()[1:])


def test_a_call_has_its_verdict_its_rule_and_what_that_does_not_stop(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "~/a/.claude/settings.json"
    assert explained(tree, capsys, "Bash(npm run x)") == (
        f"allowed  `Bash(npm run *)` allows it.\n{settings}:3: allow Bash(npm run *) (decides)"
    )
    assert explained(tree, capsys, "git push") == "asks     No rule allows `git push`."
    denied = explained(tree, capsys, "Read(.env)").splitlines()
    assert denied[:2] == ["denied   `Read(./.env)` denies it.", f"{settings}:4: deny Read(./.env) (decides)"]
    assert "does not stop" in denied[2]


def test_each_command_of_a_script_is_explained(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    lines = explained(tree, capsys, "--file", tree.path("/home/a/deploy.sh")).splitlines()
    verdicts = [line for line in lines if line.startswith(("allowed", "asks", "denied"))]
    assert verdicts == ["asks     npm run build && git push", "denied   rm -rf dist"]


def test_json_is_the_result_of_the_request(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree.path("/home/a")
    text = output_of(
        tree, capsys, "explain", "--folder", folder, "--for", "all", "--format", "json", "rm -rf x"
    )
    answer, *others = json.loads(text)["answers"]
    verdicts = {each["assistant"]: each.get("verdict") for each in others}
    assert verdicts == {
        "codex": "asks",
        "opencode": "allowed",
        "gemini": "asks",
        "copilot": None,
        "cursor": None,
    }
    assert others[-1]["reason"] == "What Cursor allows is not known."
    assert (answer["assistant"], answer["verdict"], answer["part"]) == ("claude-code", "denied", "rm -rf x")
    decides, shadowed = answer["chain"][0], answer["chain"][1:]
    assert (decides["value"], decides["wins"], decides["range"]["start"]["line"]) == (
        "deny Bash(rm -rf *)",
        True,
        3,
    )
    assert {link["value"] for link in shadowed} == {"allow Bash(rm *)"}


def test_a_file_that_counts_for_nothing_is_named(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(tree.path("/home/a/.claude/settings.json")).write_text(
        '{"permissions": {"deny": ["Read(.env)"]}, "model": 5}'
    )
    verdict, note = explained(tree, capsys, "Read(.env)").splitlines()
    assert verdict.startswith("allowed ")
    assert note.startswith("Nothing of ") and note.endswith("settings.json counts: `nexus check` says why.")


def test_each_program_names_its_own_rule_and_what_that_does_not_stop(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "opencode.json": '{"permission": {"bash": {\n"git *": "allow",\n"git push*": "deny"}}}',
        ".gemini/settings.json": '{"tools": {\n"allowed": ["run_shell_command(git)"]}}',
        "../.codex/rules/a.rules": '# mine\nprefix_rule(["git", "push"], "forbidden")\n',
    }
    for name, text in files.items():
        path = Path(tree.path("/home/a")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folder = tree.path("/home/a")
    text = output_of(tree, capsys, "explain", "--for", "all", "--folder", folder, "git push && ls")
    lines = [line.strip() for line in text.splitlines()]
    assert "~/.codex/rules/a.rules:2: deny git push (decides)" in lines
    assert "~/a/opencode.json:3: deny bash git push* (decides)" in lines
    assert "~/a/.gemini/settings.json:2: deny tools.allowed has no other command (decides)" in lines
    assert sum("does not stop" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ('sandbox_mode = "workspace-write"\n', "and has no network"),
        ("[sandbox_workspace_write]\nnetwork_access = true\n", "and reach the network"),
        ('sandbox_mode = "read-only"\n', "write nothing, and has no network"),
        (
            "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n",
            "write in the folder, and has no network",
        ),
    ],
)
def test_the_sandbox_of_codex_says_whether_there_is_a_network(
    tree: Fixture, capsys: pytest.CaptureFixture[str], text: str, network: str
) -> None:
    home, folder = Path(tree.path("/home/.codex")), tree.path("/home/a")
    home.mkdir()
    trust = f'[projects.{json.dumps(os.path.realpath(folder))}]\ntrust_level = "trusted"\n'
    (home / "config.toml").write_text(text + trust)
    assert network in output_of(tree, capsys, "explain", "--for", "codex", "--folder", folder, "git push")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "name what to explain"),
        (["ls", "--file", "x"], 2, "name what to explain"),
        ([" "], 1, "Name a call"),
        (["--file", "missing.sh"], 1, "missing.sh"),
        (["ls", "--folder", "missing"], 2, "missing does not exist"),
        (["chat.useAgentMdFile"], 1, "Did you mean `chat.useAgentsMdFile` of GitHub Copilot?"),
    ],
)
def test_wrong_usage_says_what_is_right(
    tree: Fixture, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert words in output_of(tree, capsys, "explain", *arguments, code=code)


MONOREPO = """
//- /home/.claude/settings.json
{"model": "opus"}
//- /home/a/.git/HEAD
ref: refs/heads/main
//- /home/a/.claude/settings.json
{
  "model": "sonnet"
}
//- /home/a/CLAUDE.md
# Rules

<!-- for people -->
Use tabs.

@style.md
//- /home/a/style.md
Be brief.
//- /home/a/AGENTS.md
Run the tests.
//- /home/a/.mcp.json
{"mcpServers": {"github": {"command": "npx", "args": ["--token", "hush"]}}}
"""


@pytest.fixture
def monorepo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(MONOREPO, tmp_path)


def answers_of(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[str, list[str]]:
    """The lines below the name of each assistant."""
    text = output_of(monorepo, capsys, "explain", "--folder", monorepo.path("/home/a"), *arguments)
    answers: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith(" "):
            answers[list(answers)[-1]].append(line.strip())
        else:
            answers[line.rpartition(" ")[0]] = []
    return answers


def test_a_setting_has_its_value_and_the_files_that_set_it(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answers_of(monorepo, capsys, "model") == {
        "Claude Code": [
            "In force from one file.",
            '"sonnet"',
            '~/a/.claude/settings.json:2: "sonnet" (counts)',
            '~/.claude/settings.json:1: "opus" (does not count)',
            "The model that Claude Code uses.",
        ]
    }
    Path(monorepo.path("/home/a/.claude/settings.json")).write_text('{"modle": "sonnet"}')
    assert answers_of(monorepo, capsys, "modle")["Claude Code"][0::2] == [
        "Claude Code has no setting `modle`: it has no effect.",
        '~/a/.claude/settings.json:1: "sonnet" (does not count)',
    ]
    [nexus] = answers_of(monorepo, capsys, "/context/max_tokens").items()
    assert nexus[0] == "Nexus" and nexus[1][0] == "The default of Nexus."


@pytest.mark.parametrize(
    ("key", "title", "reason", "text"),
    [
        ("sandbox_mode", "Codex", ".", "What commands may change: nothing (`read-only`), "),
        ("hide_agent_reasoning", "Codex", ": false.", "Whether the reasoning of the model is hidden "),
        ("context.discoveryMaxDirs", "Gemini CLI", ": 200.", "Maximum number of directories to search "),
        ("chat.useNestedAgentsMdFiles", "GitHub Copilot", ": false.", "Whether AGENTS.md files of the "),
        ("tool_output.max_lines", "opencode", ": 2000.", "Maximum lines of tool output before "),
    ],
)
def test_a_setting_that_no_file_sets_has_its_text_and_its_default(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str], key: str, title: str, reason: str, text: str
) -> None:
    first, last = answers_of(monorepo, capsys, key)[title]
    assert first == f"No file sets it: {title} uses its default{reason}"
    assert last.startswith(text)


def test_a_line_lands_where_each_assistant_sends_it(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = answers_of(monorepo, capsys, "CLAUDE.md:4")
    assert answers["Claude Code"][0].startswith("Sent with every request: line ")
    assert answers["Claude Code"][-1].endswith(" tokens")
    assert answers["Codex"] == ["Codex reads AGENTS.md, not CLAUDE.md.", "~/a/CLAUDE.md:4: line 4"]
    number = int(answers["Claude Code"][0].split()[5])
    shown = output_of(monorepo, capsys, "show", "--for", "claude-code", monorepo.path("/home/a"))
    assert shown.splitlines()[number] == "Use tabs."  # after the line that names the place
    comment = answers_of(monorepo, capsys, "CLAUDE.md:3")
    assert comment["Claude Code"][0] == "Claude Code sends the file without this line."
    imported = answers_of(monorepo, capsys, "style.md:1")
    assert "~/a/CLAUDE.md:6: imports it" in imported["Claude Code"]
    assert imported["Codex"][0] == "Codex does not read it."
    settings = answers_of(monorepo, capsys, ".claude/settings.json:2")["Claude Code"][0]
    assert settings == "Claude Code takes settings from it: `nexus explain KEY` says which one is in force."
    Path(monorepo.path("/home/a/CLAUDE.md")).write_text("See @gone.md.\n")
    broken = answers_of(monorepo, capsys, "CLAUDE.md:1")["Claude Code"][-1]
    assert broken.startswith("gone.md") and "does not exist" in broken
    servers = answers_of(monorepo, capsys, ".mcp.json:1")["Claude Code"][0]
    assert servers.startswith("Claude Code takes MCP servers from it")
    assert answers_of(monorepo, capsys, "AGENTS.md")["Codex"][-1] == "4 tokens"


SKILL = """---
name: release
description: >
  Use this when somebody wants a release, with all
  that belongs to it.
allowed-tools: Read
---
Tag it.
"""


def test_the_description_of_a_skill_is_in_every_request(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(monorepo.path("/home/a/.claude/skills/release/SKILL.md"))
    path.parent.mkdir(parents=True)
    path.write_text(SKILL)
    place = ".claude/skills/release/SKILL.md"
    listed = "Sent with every request, in the list of skills: the entry has these tokens."
    for program in ("claude-code", "opencode"):
        reasons = [answers_of(monorepo, capsys, f"{place}:{line}", "--for", program) for line in range(1, 9)]
        assert [line for line, answer in enumerate(reasons, 1) if listed in str(answer)] == [2, 3, 4, 5]
    [body] = answers_of(monorepo, capsys, f"{place}:8", "--for", "claude-code").values()
    assert body[0] == "Sent when the model calls it; until then only its name and description."
    [whole] = answers_of(monorepo, capsys, place, "--for", "claude-code").values()
    [line] = answers_of(monorepo, capsys, f"{place}:4", "--for", "claude-code").values()
    assert line[-1] == whole[-1] and "tokens" in line[-1]


def test_a_line_of_an_agents_file_in_nexus_has_a_place_in_its_prompt(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    [nexus] = answers_of(monorepo, capsys, "AGENTS.md:1", "--for", "nexus").values()
    assert nexus[0].startswith("Sent with every request: line ") and nexus[0].endswith("the system prompt.")


def test_a_server_says_who_starts_it(monorepo: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    answers = answers_of(monorepo, capsys, "mcp:github", "--for", "all")
    assert answers["Claude Code"][0].startswith("asks     Claude Code asks the user first")
    assert answers["Claude Code"][1] == "~/a/.mcp.json:1: project github (decides)"
    assert answers["Nexus"][0].startswith("asks")
    assert "hush" not in str(answers)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mcp:nope"], "No MCP server here is named `nope`, in the settings of Claude Code, Codex."),
        (["CLAUDE.md:99"], "CLAUDE.md has 6 lines."),
        (["CLAUDE.md:0"], "Lines count from 1."),
        (["CLADUE.md:2"], "CLADUE.md is not a file in "),
        (["missing.md"], "missing.md is not a file in "),
        (["mcp: "], "Name an MCP server, such as mcp:github."),
        (["sandbox_mode", "--for", "claude-code"], "Claude Code has no setting `sandbox_mode`. Codex has."),
        (
            ["permisions.allow"],
            "Did you mean `permissions.allow` of Claude Code? Write 'Bash(permisions.allow)' ",
        ),
        (["modle"], "Did you mean `model` of Claude Code?"),
        (["permissions.alow"], "Did you mean `permissions.allow` of Claude Code?"),
        (
            ["chat.noSuchSwitch"],
            "Nexus knows no setting, file or command `chat.noSuchSwitch`. Check the spelling. ",
        ),
        (["sandbox_mod"], "Did you mean `sandbox_mode` of Codex?"),
        (["context.max_token", "--for", "nexus"], "Did you mean `context.max_tokens` of Nexus?"),
        (["ls", "--for", "cursor"], "What cursor allows is not known."),
    ],
)
def test_what_is_not_there_is_said(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    folder = monorepo.path("/home/a")
    assert words in output_of(monorepo, capsys, "explain", "--folder", folder, *arguments, code=1)


def test_a_file_is_not_a_command_unless_it_can_be_executed(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(monorepo.path("/home/a/package.json"))
    path.write_text("{}\n")
    assert "does not read it" in str(answers_of(monorepo, capsys, "package.json"))
    path.chmod(0o755)
    assert "does not read it" not in str(answers_of(monorepo, capsys, "Bash(package.json)"))
    assert "asks" in str(answers_of(monorepo, capsys, "package.json"))


def test_a_word_that_is_no_setting_is_a_command(
    monorepo: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answers_of(monorepo, capsys, "make")["Claude Code"] == ["asks     No rule allows `make`."]
    script, program = Path(monorepo.path("/home/a/modes")), Path(monorepo.path("/home/bin/modle"))
    program.parent.mkdir()
    for path in (script, program):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    for command in ("modes", "modle", "Bash(modle)", "modle x", "kill", "node", "Agent"):
        assert "asks" in str(answers_of(monorepo, capsys, command))
    assert answers_of(monorepo, capsys, "Bash(env)")["Claude Code"][0].startswith(("asks", "allowed"))


def test_lines_are_those_of_an_editor(monorepo: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(monorepo.path("/home/a/CLAUDE.md")).write_text("a\fb\u2028c\nUse tabs, and nothing else.\n", "utf-8")
    [first] = answers_of(monorepo, capsys, "CLAUDE.md:2", "--for", "claude-code").values()
    assert int(first[-1].split()[1]) > 7  # not those of `b`
    folder = monorepo.path("/home/a")
    assert "has 2 lines" in output_of(monorepo, capsys, "explain", "--folder", folder, "CLAUDE.md:3", code=1)


def test_a_skill_that_changes_what_may_run_asks(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    skills = Path(tree.path("/home/a/.claude/skills"))
    for name, field in (("plain", "model: haiku"), ("guarded", "allowed-tools: Bash(rm *)")):
        (skills / name).mkdir(parents=True)
        (skills / name / "SKILL.md").write_text(f"---\ndescription: Cleans.\n{field}\n---\nClean.\n")
    assert explained(tree, capsys, "Skill(plain)") == "allowed  The tool Skill needs no approval."
    assert explained(tree, capsys, "Skill(guarded)").startswith("asks     The skill brings hooks or changes ")
    settings = Path(tree.path("/home/a/.claude/settings.json"))
    settings.write_text('{"permissions": {"allow": ["Skill(gua:*)"]}}')
    assert explained(tree, capsys, "Skill(guarded)").startswith("allowed  `Skill(gua:*)` allows it.")
