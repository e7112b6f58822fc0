"""What settings of VS Code change in what Copilot reads, and problems of its files, by documentation."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_fixture

FILES = """
//- /work/AGENTS.md
agents
//- /work/CLAUDE.md
claude
//- /work/.claude/CLAUDE.md
dot claude
//- /home/.claude/CLAUDE.md
home claude
//- /work/.github/copilot-instructions.md
copilot
//- /work/.github/instructions/a.instructions.md
---
applyTo: "**"
---
instructions
//- /work/docs/ai/b.instructions.md
---
applyTo: "**"
---
docs
//- /work/.claude/rules/all.md
rule
//- /work/.claude/rules/ts.md
---
paths: ["**/*.ts", "**/*.tsx"]
---
for some
//- /home/.copilot/instructions/u.instructions.md
---
applyTo: "**"
---
user
//- /work/pkg/AGENTS.md
nested
"""
CODES = {f"assistant.{effect}" for effect in ("no-effect", "void", "reads-otherwise", "not-modelled")}
NOWHERE = "VS Code looks for instructions in no directory because of this: "
NOT_SHOWN = "changes what Copilot reads or may do. Nexus does not show that."
USERS = "in a folder. Set it in the settings of the user."
INLINE = 'must be inline, hover, input or none. Did you mean "inline"?'
ONLY_ATTACHED = "Copilot sends this file only where somebody attaches it"
ALL = ["copilot", "agents", "claude", "dot claude", "home claude", "instructions", "rule", "user"]


@pytest.fixture(autouse=True)
def _on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


def check(files: str, root: Path) -> dict[str, Any]:
    """What Copilot sends, what it sends later, its servers, and problems with the text they are in."""
    tree = write_fixture(files + "//- /home/x\n", root)
    profile = read_profile("copilot", Surroundings(tree.path("/work"), tree.path("/home"), {"SET": "1"}))
    return {
        "sent": [part.text.strip() for part in profile.parts],
        "later": [os.path.relpath(each.path, tree.path("/work")) for each in profile.later],
        "servers": [f"{each.name} {each.start}" for each in profile.servers],
        "problems": [
            (profile.texts[each.path][slice(*each.span)], each.message)
            for each in profile.problems
            if each.code in CODES
        ],
    }


@pytest.mark.parametrize(
    ("settings", "left_out", "added", "later"),
    [
        ("{}", [], [], [".claude/rules/ts.md"]),
        ('{"chat.useAgentsMdFile": false, // c\n}', ["agents"], [], [".claude/rules/ts.md"]),
        (
            '{"chat.useClaudeMdFile": false}',
            ["claude", "dot claude", "home claude"],
            [],
            [".claude/rules/ts.md"],
        ),
        (
            '{"github.copilot.chat.codeGeneration.useInstructionFiles": false}',
            ["copilot"],
            [],
            [".claude/rules/ts.md"],
        ),
        (
            '{"chat.instructionsFilesLocations": {".github/instructions": false, "docs/ai": true}}',
            ["instructions"],
            ["docs"],
            [".claude/rules/ts.md"],
        ),
        ('{"chat.instructionsFilesLocations": {".claude/rules": false}}', ["rule"], [], []),
        ('{"chat.includeApplyingInstructions": false}', ["instructions", "rule", "user"], [], []),
        ('{"chat.useNestedAgentsMdFiles": true}', [], [], [".claude/rules/ts.md", "pkg/AGENTS.md"]),
    ],
)
def test_a_switch(
    settings: str, left_out: list[str], added: list[str], later: list[str], tmp_path: Path
) -> None:
    result = check(f"{FILES}//- /work/.vscode/settings.json\n{settings}\n", tmp_path)
    assert (sorted(result["sent"]), sorted(result["later"])) == (
        sorted({*ALL, *added} - {*left_out}),
        sorted(later),
    )
    assert result["problems"] == []


def test_the_folder_counts_before_the_user(tmp_path: Path) -> None:
    files = """
//- /home/.config/Code/User/settings.json
{
  "chat.useAgentsMdFile": false,
  "chat.useClaudeMdFile": false,
  "chat.instructionsFilesLocations": {"docs/ai": true}
}
//- /work/.vscode/settings.json
{"chat.useAgentsMdFile": true, "chat.useClaudeMdFile": "yes", "chat.instructionsFilesLocations": ["docs"]}
"""
    result = check(FILES + files, tmp_path)
    assert sorted(result["sent"]) == sorted(["copilot", "agents", "claude", "dot claude", "home claude"])
    assert result["problems"] == [
        (
            '"yes"',
            'VS Code takes this for true: "chat.useClaudeMdFile" must be true or false, not text.',
        ),
        (
            '["docs"]',
            f'{NOWHERE}"chat.instructionsFilesLocations" must be an object, not a list.',
        ),
    ]


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ('{"chat.useAgentsMdFile": "false"}', []),
        ('{"chat.useAgentsMdFile": 0}', ["agents"]),
        ('{"chat.useAgentsMdFile": null}', ["agents"]),
        ('{"chat.instructionsFilesLocations": {".github/instructions": "False"}}', ["instructions"]),
        ('{"chat.instructionsFilesLocations": {".github/instructions/": false}}', []),
        ('{"chat.instructionsFilesLocations": {".github/instructions": 7}}', []),
    ],
)
def test_a_value_of_another_type_counts_as_vs_code_takes_it(
    settings: str, left_out: list[str], tmp_path: Path
) -> None:
    result = check(f"{FILES}//- /work/.vscode/settings.json\n{settings}\n", tmp_path)
    assert sorted(result["sent"]) == sorted({*ALL} - {*left_out})


def test_nested_agents_files_need_both_switches(tmp_path: Path) -> None:
    settings = '{"chat.useNestedAgentsMdFiles": true, "chat.useAgentsMdFile": false}'
    result = check(f"{FILES}//- /work/.vscode/settings.json\n{settings}\n", tmp_path)
    assert "pkg/AGENTS.md" not in result["later"]


YOLO = '{"chat.tools.global.autoApprove": true}'


@pytest.mark.parametrize(
    ("path", "settings", "problems"),
    [
        ("/work/.vscode", '{"editor.fontSize": 12, "chat.agent.enabled": true}', []),
        ("/work/.vscode", '{"chat.useHooks": false}', [f"`chat.useHooks` {NOT_SHOWN}"]),
        ("/work/.vscode", YOLO, [f"VS Code ignores `chat.tools.global.autoApprove` {USERS}"]),
        ("/home/.config/Code/User", YOLO, [f"`chat.tools.global.autoApprove` {NOT_SHOWN}"]),
        (
            "/work/.vscode",
            '{"chat.editRequests": "inlin"}',
            [f'VS Code warns of this, and may not use it: "chat.editRequests" {INLINE}'],
        ),
    ],
)
def test_other_keys(path: str, settings: str, problems: list[str], tmp_path: Path) -> None:
    result = check(f"//- {path}/settings.json\n{settings}\n", tmp_path)
    assert [message for _, message in result["problems"]] == problems


@pytest.mark.parametrize(
    ("matter", "problems"),
    [
        (
            'applyTo:\n  - "**/*.m"\n  - "**/*.mlx"',
            ["Copilot takes no list of globs: write one text, separated by commas."],
        ),
        (
            'ApplyTo: "**"',
            [
                f"{ONLY_ATTACHED}: `ApplyTo` is not read. Write `applyTo`.",
            ],
        ),
        ("applyTo: **/*.py", []),
    ],
)
def test_apply_to(matter: str, problems: list[str], tmp_path: Path) -> None:
    files = f"//- /work/.github/instructions/a.instructions.md\n---\n{matter}\n---\nText.\n"
    assert [message for _, message in check(files, tmp_path)["problems"]] == problems


@pytest.mark.parametrize(
    ("text", "servers", "problems"),
    [
        (
            '{"servers": {"a": {"command": "x", "env": {"A": "${env:SET}", "B": "${userHome}"}}}}',
            ["a asks"],
            [],
        ),
        (
            '{"mcpServers": {"a": {"command": "x"}}}',
            [],
            ['"mcpServers": VS Code ignores `mcpServers` and starts none of its servers. Write `servers`.'],
        ),
        (
            '{"servers": {"a": {"type": "stdio"}, "b": {"command": ["secret"]}}}',
            ["a off", "b off"],
            [
                '"a": VS Code does not start this server: it has neither `command` nor `url`. Add one.',
                '["secret"]: VS Code does not start this server: "command" must be text, not a list.',
            ],
        ),
        (
            '{"servers": {"a": {"url": "https://h/p", "headers": {"A": "${input:key}", "B": "${TOKEN}"}}}}',
            ["a asks"],
            [
                '"${input:key}": `inputs` has no `key`: VS Code cannot ask for it. Add it there.',
                '"${TOKEN}": VS Code leaves `${TOKEN}` as it is. Write `${env:TOKEN}`, and set TOKEN.',
            ],
        ),
        (
            '{"inputs": [{"id": "key"}], "servers": {"a": {"url": "h", "headers": {"A": "${input:key}"}}}}',
            ["a asks"],
            [],
        ),
        (
            '{"servers": {"a": {} "b": {}}}',
            ["a off", "b off"],
            None,
        ),
    ],
)
def test_servers(text: str, servers: list[str], problems: list[str] | None, tmp_path: Path) -> None:
    result = check(f"//- /work/.vscode/mcp.json\n{text}\n", tmp_path)
    found = [f"{place}: {message}" for place, message in result["problems"]]
    if problems is None:
        assert [message[:59] for _, message in result["problems"]] == [
            "VS Code starts no server of this file: it is not valid JSON"
        ]
    else:
        assert (result["servers"], found) == (servers, problems)


def test_servers_of_a_portable_file_that_do_not_start_are_reported(tmp_path: Path) -> None:
    tree = write_fixture(
        '//- /work/.mcp.json\n{"mcpServers": {"a": {"command": "x", "args": ["${X}"]}, "b": {"uri": "y"}}}\n'
        "//- /home/.copilot/mcp-config.json\n{\n",
        tmp_path,
    )
    profile = read_profile("copilot", Surroundings(tree.path("/work"), tree.path("/home"), {"A": "1"}))
    assert {
        (os.path.relpath(problem.path, tmp_path), problem.code, problem.message.partition(":")[0])
        for problem in profile.problems
    } == {
        ("work/.mcp.json", "assistant.no-effect", "VS Code does not start this server"),
        ("home/.copilot/mcp-config.json", "assistant.void", "VS Code starts no server of this file"),
    }
    assert [(server.name, server.start) for server in profile.servers] == [("a", "asks"), ("b", "off")]
