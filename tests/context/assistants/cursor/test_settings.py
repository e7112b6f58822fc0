"""What is wrong with files of Cursor, and its rules in directories below, by documentation."""

import os
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.reading.server_checks import judge_variable
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_fixture


def check(files: str, root: Path) -> dict[str, Any]:
    """What Cursor sends, what it sends later, its servers, and problems with the text they are in."""
    tree = write_fixture(files + "//- /home/x\n", root)
    profile = read_profile("cursor", Surroundings(tree.path("/work"), tree.path("/home"), {"SET": "1"}))
    texts = profile.texts
    return {
        "sent": [part.text.strip() for part in profile.parts],
        "later": [(os.path.relpath(each.path, tree.path("/work")), each.when) for each in profile.later],
        "servers": [f"{each.name} {each.start}" for each in profile.servers],
        "problems": [
            (
                each.code.removeprefix("assistant."),
                texts.get(each.path, "")[slice(*each.span)],
                each.message,
            )
            for each in profile.problems
        ],
    }


@pytest.mark.parametrize(
    ("text", "servers", "problems"),
    [
        (
            '{"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}", "${env:SET}"]}}}',
            ["a starts"],
            [],
        ),
        (
            '{"servers": {"a": {"url": "x"}}, "mcpServers": {"b": {}, "c": {"url": "h", "headers": 5}}}',
            ["b off", "c off"],
            [
                (
                    "no-effect",
                    '"servers"',
                    "Cursor ignores `servers` and starts none of its servers. Write `mcpServers`.",
                ),
                (
                    "no-effect",
                    '"b"',
                    "Cursor does not start this server: it has neither `command` nor `url`. Add one.",
                ),
                (
                    "no-effect",
                    "5",
                    'Cursor does not start this server: "headers" must be an object, not a whole number.',
                ),
            ],
        ),
        (
            '{"mcpServers": {"a": {"url": "${env:U}/mcp", "headers": {"A": "${MISSING}", "B": "${SET}"}}}}',
            ["a starts"],
            [
                (
                    "no-effect",
                    '"${env:U}/mcp"',
                    "U is not set here: Cursor replaces `${env:U}` by nothing. Set it.",
                ),
                (
                    "no-effect",
                    '"${MISSING}"',
                    "Cursor leaves `${MISSING}` as it is. Write `${env:MISSING}`, and set MISSING.",
                ),
                ("no-effect", '"${SET}"', "Cursor leaves `${SET}` as it is. Write `${env:SET}`."),
            ],
        ),
        ("[]", [], [("void", "", "Cursor starts no server of this file: it must be an object.")]),
    ],
)
def test_servers(text: str, servers: list[str], problems: list[Any], tmp_path: Path) -> None:
    result = check(f"//- /work/.cursor/mcp.json\n{text}\n", tmp_path)
    assert (result["servers"], result["problems"]) == (servers, problems)


def test_rules_of_a_directory_below(tmp_path: Path) -> None:
    files = """
//- /work/.cursor/rules/base.mdc
---
alwaysApply: true
---
Base.
//- /work/pkg/web/.cursor/rules/web.mdc
---
alwaysApply: true
---
Web.
//- /work/node_modules/a/.cursor/rules/not.mdc
Not this one.
"""
    assert check(files, tmp_path) == {
        "sent": ["Base."],
        "later": [("pkg/web/.cursor/rules/web.mdc", "with files in pkg/web")],
        "servers": [],
        "problems": [],
    }


def test_rules_that_are_a_file(tmp_path: Path) -> None:
    result = check("//- /work/.cursor/rules\nText.\n//- /work/AGENTS.md\nAgents.\n", tmp_path)
    assert result["sent"] == ["Agents."]
    assert [(code, message) for code, _, message in result["problems"]] == [
        ("void", "Cursor reads nothing of this file: `.cursor/rules` must be a directory. Move it into one.")
    ]


def test_no_variable_is_missed_where_none_of_the_machine_counts() -> None:
    assert judge_variable("Cursor", "env:HOME", {}, frozenset()) is None


def test_a_rule_whose_front_matter_is_no_yaml(tmp_path: Path) -> None:
    text = '//- /work/.cursor/rules/a.mdc\n---\ndescription: "open\nglobs: *.ts\n---\nA\n'
    result = check(text, tmp_path)
    message = (
        "This front matter is not valid YAML: the quote that begins here does not end. Put values in quotes. "
        "What Cursor does with such a rule is not documented."
    )
    assert result == {"sent": [], "later": [], "servers": [], "problems": [("front-matter", '"', message)]}
