"""The assembler as one object: equal to the pipeline, cached per session, and its own parts."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_context import (
    ActiveSkill,
    ContextAssembler,
    FolderSkills,
    LedgerStore,
    Message,
    RequestError,
    ToolList,
    create_context_assembler,
    open_ledger,
)
from support.fixture import write_fixture
from support.ledgers import turn_of

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
    turn = turn_of(Message("user", "Where?"))
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
        ledger.append(WORKSPACE, "main", turn_of(Message("user", words)))
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


class Sessions:
    """A store of one session."""

    def __init__(self, *records: Any) -> None:
        self.records = list(records)

    def get_messages(self, session_id: str) -> list[Any]:
        return self.records

    def get_metadata(self, session_id: str) -> dict[str, Any]:
        return {"parameters": {"temperature": 0.5}}


def assembler_of(root: Path, store: Any, *, config: Any = None, **sources: Any) -> Any:
    folder = root / "work"
    folder.mkdir(exist_ok=True)
    settings = {"provider": {"model": "gpt-4o"}} | (config or {})
    environ = {"HOME": str(root), "NEXUS_HOME": str(root / "global")}
    return create_context_assembler(store, folder=folder, environ=environ, config=settings, **sources)


OFF: dict[str, Any] = {"context": {"datetime": {"placement": "off"}}}


def test_records_of_a_store_are_messages(tmp_path: Path) -> None:
    store = Sessions(
        {"type": "compaction", "content": "They found the gate."},
        {"role": "user", "content": "Is it open?"},
        {"type": "assistant", "content": "I look."},
        {"type": "tool_call", "id": "c1", "name": "look", "input": {"at": "gate"}},
        {"type": "tool_call", "toolCallId": "c2", "toolName": "listen", "arguments": {}},
        {"type": "tool_result", "toolCallId": "c1", "output": {"open": True}},
        {"type": "tool_result", "tool_call_id": "c2", "error": "Nothing to hear.", "name": "listen"},
    )
    context = assembler_of(tmp_path, store, config=OFF).assemble("s", format="openai")
    assert [message.role for message in context.messages] == ["user", "user", "assistant", "tool", "tool"]
    summary, _, calls, open_gate, silence = context.messages
    assert summary.content == "[CONTEXT SUMMARY]\nThey found the gate."
    assert (calls.content, [(call.id, call.name) for call in calls.tool_calls]) == (
        "I look.",
        [("c1", "look"), ("c2", "listen")],
    )
    assert (open_gate.content, silence.content, silence.meta) == (
        '{"open":true}',
        "Nothing to hear.",
        {"is_error": True},
    )
    assert "repairs" not in context.assembled.metadata


@pytest.mark.parametrize(
    "call",
    [
        {"tool_calls": [{"id": "c1", "name": "look", "arguments": {"at": 1}}]},
        {"toolCalls": [{"id": "c1", "name": "look", "arguments": {"at": 1}}]},
        {
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
            ]
        },
    ],
)
@pytest.mark.parametrize("key", ["tool_call_id", "toolCallId"])
def test_messages_of_a_store_keep_their_calls(tmp_path: Path, call: dict[str, Any], key: str) -> None:
    store = Sessions(
        {"role": "user", "content": "Look.", "created_at": 5},
        {"role": "assistant", "content": None, **call},
        {"role": "tool", key: "c1", "name": None, "content": "a wall"},
    )
    context = assembler_of(tmp_path, store, config=OFF).assemble("s", format="openai")
    _, asks, result = context.messages
    assert [(one.id, one.name) for one in asks.tool_calls] == [("c1", "look")]
    assert result.tool_call_id == "c1"
    assert "repairs" not in context.assembled.metadata


def test_what_was_sent_takes_the_place_of_the_same_users_message_only(tmp_path: Path) -> None:
    store = Sessions(Message("user", "Hi"))
    assembler = assembler_of(tmp_path, store)
    assembler.assemble("s")
    store.records[:] = [Message("assistant", "Hi"), Message("user", "Who are you?")]
    assert [message.role for message in assembler.assemble("s").messages] == ["assistant", "user"]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"type": []}, "its type is []; known are user"),
        ({"role": {}}, "its type is {}; known are user"),
        ({"role": "assistant", "tool_calls": 5}, "tool_calls is of the type int"),
        (5, "it is of the type int."),
        ({}, "its type is None; known are user, assistant, system, tool_call, tool_result, compaction."),
        ({"type": "thought"}, "its type is 'thought'; known are user"),
        ({"type": "tool_call", "name": "look"}, "it has none of tool_call_id, toolCallId"),
        ({"type": "tool_call", "id": 4, "name": "look"}, "its id is of the type int; it must be text."),
        ({"type": "tool_result", "id": "c1"}, "it has none of result, output, content, error."),
        ({"type": "compaction", "summary": 5}, "its summary is of the type int"),
        ({"role": "user", "content": 5}, "Expected `str | array | null`, got `int`"),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, record: Any, said: str) -> None:
    assembler = assembler_of(tmp_path, Sessions({"role": "user", "content": "Go."}, record))
    with pytest.raises(
        RequestError, match=f"^Record 1 of the session is damaged: {re.escape(said)}"
    ) as failed:
        assembler.assemble("s")
    assert failed.value.code == "bad-record"


def test_the_time_is_told_without_a_message_and_stays(tmp_path: Path) -> None:
    store = Sessions(Message("user", "Is it open?"))
    assembler = assembler_of(tmp_path, store)
    first = assembler.assemble("s")
    assert re.fullmatch(r"Current time: .*\n\nIs it open\?", first.messages[-1].content)
    assert assembler.check_compaction("s").current_tokens > 300  # and nothing is read anew after it
    store.records += [Message("assistant", "Yes."), Message("user", "Who opened it?")]
    second = assembler.assemble("s")
    assert second.messages[:1] == first.messages
    assert second.messages[-1].content.endswith("Who opened it?")
    assert second.assembled.prefix.base == first.assembled.prefix.base


def test_what_was_cut_is_told_in_snake_case(tmp_path: Path) -> None:
    store = Sessions(*(Message("user", f"Question {number}? {'why ' * 40}") for number in range(60)))
    context = assembler_of(tmp_path, store).assemble("s", max_context_tokens=2_600)
    assert context.metadata.truncation_info is not None
    assert {"strategy", "removed_messages", "removed_tokens", "original_tokens", "final_tokens"} <= (
        context.metadata.truncation_info.keys()
    )
    assert all(name == name.lower() for name in context.metadata.truncation_info)


class Skills:
    """A provider whose getters say more than the active skill has."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_active_skills(self, agent_id: str | None, session_id: str) -> list[ActiveSkill]:
        return [ActiveSkill("poetry", "Poetry", "Write sonnets.", priority=50), ActiveSkill("math", "Math")]

    def get_skill_instructions(self, skill_id: str) -> str:
        self.asked.append(f"instructions {skill_id}")
        return "Count twice." if skill_id == "math" else ""

    def get_skill_tools(self, skill_id: str) -> list[dict[str, Any]]:
        self.asked.append(f"tools {skill_id}")
        return [{"name": "add", "inputSchema": {"type": "object"}}] if skill_id == "math" else []

    def get_skill_priority(self, skill_id: str) -> int:
        self.asked.append(f"priority {skill_id}")
        return 100 if skill_id == "math" else 0


def test_the_getters_of_a_skill_provider_count(tmp_path: Path) -> None:
    skills = Skills()
    context = assembler_of(tmp_path, Sessions(), skill_provider=skills).assemble("s")
    assert context.metadata.active_skills == ["Math", "Poetry"]
    assert context.system_prompt.index("Count twice.") < context.system_prompt.index("Write sonnets.")
    assert [tool["name"] for tool in context.tools] == ["add"]
    assert sorted(skills.asked) == [
        f"{what} {skill}" for what in ("instructions", "priority", "tools") for skill in ("math", "poetry")
    ]


def test_asynchronous_sources_are_awaited(tmp_path: Path) -> None:
    def asynchronous(source: Any) -> Any:
        """The same source with methods that are awaited."""

        def method(name: str) -> Any:
            async def answer(*arguments: Any) -> Any:
                await asyncio.sleep(0)
                return getattr(source, name)(*arguments)

            return answer

        names = [name for name in dir(source) if name.startswith("get_")]
        return SimpleNamespace(**{name: method(name) for name in names})

    tools = ToolList([{"name": "look"}])
    sources: dict[str, Any] = {"tool_executor": tools, "skill_provider": Skills()}
    expected = assembler_of(tmp_path, Sessions(Message("user", "Go.")), config=OFF, **sources).assemble("s")

    with pytest.raises(TypeError, match="use AsyncContextAssembler"):
        ContextAssembler(asynchronous(Sessions()), folder=tmp_path)

    async def story() -> None:
        assembler = assembler_of(
            tmp_path,
            asynchronous(Sessions(Message("user", "Go."))),
            config=OFF,
            **{name: asynchronous(source) for name, source in sources.items()},
        )
        first, second = await asyncio.gather(assembler.assemble("s"), assembler.assemble("s"))
        for context in (first, second):
            assert (context.system_prompt, context.messages, context.tools, context.parameters) == (
                (expected.system_prompt, expected.messages, expected.tools, expected.parameters)
            )
        assert (first.metadata.cached, second.metadata.cached) == (False, True)
        assert not (await assembler.check_compaction("s")).needed
        assembler.invalidate_cache("s")
        assert not (await assembler.assemble("s", skip_skills=True)).metadata.active_skills
        assert assembler.get_cache_stats().hits == 1

    asyncio.run(story())
