"""Tools of skills: those that a skill brings, and the one that reads skills."""

from pathlib import Path
from typing import Any

import pytest

from support.asking import Asking, check
from support.desk import Desk, write

SKILL = """---
name: pdf-forms
description: Fills PDF forms.
metadata:
  tools: |
    [{"name": "list_fields", "inputSchema": {"type": "object"}}, {"name": "rm"}]
---
List the fields first.
"""


async def tools(ask: Asking, **options: object) -> Any:
    context = await ask("context/assemble", message="Why?", options=options)
    return [tool["name"] for tool in context["tools"]], context["metadata"].get("toolsLeftOut")


def test_the_tools_of_an_active_skill_are_offered_by_the_folders_rules(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        desk.open(ask.talk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        assert await tools(ask) == ([], None)
        assert await tools(ask, skills=["pdf-forms"]) == (["list_fields"], {"rm": "disabled"})
        mine = {"name": "list_fields", "description": "Mine."}
        options = {"skills": ["pdf-forms"], "additionalTools": [mine]}
        context = await ask("context/assemble", message="Why?", options=options)
        assert context["tools"] == [mine]

    check(tmp_path, story)


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ({}, "read its file"),
        ({"skillTools": True}, "read it with the tool `read_skill`"),
        ({"skillTools": True, "disabledTools": ["read_skill"]}, "read its file"),
        ({"skillTools": True, "permissions": ["fs.*"]}, "read its file"),
    ],
)
def test_the_prompt_names_the_tool_where_it_is_offered(
    options: dict[str, Any], how: str, tmp_path: Path
) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        desk.open(ask.talk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        predicted = await ask("context/usage", nextTurn={"options": options})
        turn = await ask("context/assemble", message="", options=options)
        assert f"Before work that one of them describes, {how} and follow it" in turn["systemPrompt"]
        assert (how != "read its file") == ("read_skill" in [tool["name"] for tool in turn["tools"]])
        assert ("read_skill" in turn["systemPrompt"]) == (how != "read its file")
        rows = [
            [row for row in usage["rows"] if row["category"] in ("system", "tools")]
            for usage in (predicted, turn["usage"])
        ]
        assert rows[0] == rows[1]

    check(tmp_path, story)


def test_a_picked_model_is_offered_the_tool_from_then_on(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/.nexus3/config.json", "{}")
        write(desk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        desk.open(ask.talk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        for switch, labels in ((True, ["read_skill"]), (False, [])):
            picked = await ask("model/pick", model="gpt-4o", skillTools=switch)
            rows = [row["label"] for row in picked["usage"]["rows"] if row["category"] == "tools"]
            assert rows == labels

    check(tmp_path, story)


def test_a_model_reads_a_skill_that_the_prompt_lists(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        assert await tools(ask, skillTools=True) == ([], None)
        write(desk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        desk.open(ask.talk, "/a/.nexus3/skills/pdf-forms/SKILL.md", SKILL)
        assert await tools(ask, skillTools=True) == (["read_skill"], None)
        assert await tools(ask, skillTools=True, skipSkills=True) == ([], None)
        for arguments in ({"name": "pdf-forms"}, '{"name": "pdf-forms"}'):
            text = (await ask("skill/read", arguments=arguments))["text"]
            assert text.startswith("## Skill: pdf-forms\n")
            assert text.endswith("List the fields first.")
        for wrong, error in (
            ({"name": "pdf"}, "unknown-skill"),
            ({}, "bad-argument"),
            ({"name": "pdf-forms", "path": "/etc/passwd"}, "bad-argument"),
            ("{", "bad-argument"),
            ({"name": "../../secret"}, "unknown-skill"),
        ):
            assert (await ask.refused("skill/read", arguments=wrong))[0] == error

    check(tmp_path, story)
