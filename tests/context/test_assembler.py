"""The assembler as one object: equal to the pipeline, cached per session, and its own parts."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context import (
    ContextAssembler,
    FolderSkills,
    LedgerStore,
    Message,
    RequestError,
    ToolList,
    open_ledger,
)
from nexus_context.ledger.records import Counted, NewTurn
from support.fixture import write_fixture

SKILL = """---
name: pdf-forms
description: Fills PDF forms.
metadata:
  priority: 7
  examples: Fill this form.
  tools: |
    [{"name": "list_fields", "inputSchema": {"type": "object"}}]
---
List the fields first.
"""
SETTINGS = '{"provider": {"model": "gpt-4o"}, "context": {"datetime": {"placement": "off"}}}'
WORKSPACE = "/work/castle"


def check(root: Path, **sources: Any) -> tuple[ContextAssembler, LedgerStore, Any]:
    """An assembler of a folder with a skill, and a ledger with the session `main`."""
    tree = write_fixture(
        f"//- /a/.nexus3/config.json\n{SETTINGS}\n//- /a/.nexus3/skills/pdf-forms/SKILL.md\n{SKILL}", root
    )
    ledger = open_ledger(str(root / "ledger.db"))
    ledger.create(WORKSPACE, "main", parameters={"temperature": 0.5})
    store = LedgerStore(ledger, WORKSPACE)
    environ = {"HOME": str(root / "home"), "NEXUS_HOME": str(root / "home" / ".nexus3")}
    return ContextAssembler(store, folder=tree.path("/a"), environ=environ, **sources), store, ledger


def test_a_context_is_reused_until_something_changes(tmp_path: Path) -> None:
    assembler, _, ledger = check(tmp_path, tool_executor=ToolList([{"name": "look"}]))
    first = assembler.assemble("main")
    assert (first.parameters, [tool["name"] for tool in first.tools]) == ({"temperature": 0.5}, ["look"])
    assert assembler.assemble("main").assembled is first.assembled
    assert not assembler.assemble("other").metadata.cached
    turn = NewTurn(messages=(Counted(Message("user", "Where?"), 3),), counter="x")
    ledger.append(WORKSPACE, "main", turn)
    second = assembler.assemble("main")
    assert (second.metadata.cached, second.messages[-1].content) == (False, "Where?")
    Path(assembler.snapshot().folder, "AGENTS.md").write_text("Answer in verse.\n")
    third = assembler.assemble("main")
    assert (third.metadata.cached, "Answer in verse." in third.system_prompt) == (False, True)
    statistics = assembler.get_cache_stats()
    assert (statistics.hits, statistics.misses, statistics.hit_rate) == (1, 4, 0.2)
    assembler.invalidate_cache("main")
    assert not assembler.assemble("main").metadata.cached
    assert assembler.get_cache_stats().hits == 1  # what was counted stays
    ledger.close()


def test_a_history_that_was_rewritten_is_read_again(tmp_path: Path) -> None:
    assembler, _, ledger = check(tmp_path)
    for words in ("Where?", "When?"):
        ledger.append(WORKSPACE, "main", NewTurn(messages=(Counted(Message("user", words), 3),), counter="x"))
        assert assembler.assemble("main").messages[-1].content == words
    ledger.clear(WORKSPACE, "main")
    assert assembler.assemble("main").messages == []
    ledger.close()


def test_the_skills_of_a_folder_are_a_provider(tmp_path: Path) -> None:
    assembler, _, ledger = check(tmp_path)
    skills = FolderSkills(assembler.snapshot(), ["pdf-forms"])
    (skill,) = skills.get_active_skills(None, "main")
    assert (skill.name, skill.priority, skill.examples) == ("pdf-forms", 7, ("Fill this form.",))
    assert skills.get_skill_tools("pdf-forms") == skill.tools
    assert "List the fields first." in skills.get_skill_instructions("pdf-forms")
    with pytest.raises(RequestError, match="did you mean pdf-forms"):
        skills.get_skill_priority("pdf-form")
    context = assembler.assemble("main", skills=["pdf-forms"])
    assert context.metadata.active_skills == ["pdf-forms"]
    assert [tool["name"] for tool in context.tools] == ["list_fields"]
    ledger.close()


def test_an_option_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    assembler, _, ledger = check(tmp_path)
    with pytest.raises(
        RequestError, match=r"^There is no option disabled_tool: did you mean disabled_tools\?$"
    ):
        assembler.assemble("main", disabled_tool=["x"])
    ledger.close()
