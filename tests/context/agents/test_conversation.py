"""The conversation of an agent has the agent's prompt, tools and budget, also after the files change."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from nexus_context.agents import Agent, AgentPool
from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger
from nexus_context.turn.assembly import assemble
from nexus_context.turn.request import Request
from support.fixture import write_fixture
from support.folders import load_folder
from support.pools import inputs_of, pool_of

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
FOLDER = """
//- /home/co/NEXUS.md
Answer briefly.
//- /home/co/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "context": {"max_tokens": 4000, "reserve_tokens": 500}}
//- /home/co/api/NEXUS.md
Use tabs.
"""
TOOLS = [{"name": "read", "description": "Reads a file."}, {"name": "rm", "description": "Removes it."}]


def check(agent: Agent) -> dict[str, int]:
    """The agent's figures, which its conversation shares to the token."""
    chat, usage = agent.conversation, agent.usage()
    assert chat.get_token_usage() == usage
    sent = chat.build_messages()
    turn = assemble(agent.snapshot, chat, Request(options=chat.options), now=NOW)
    assert sent == [Message("system", turn.prompt.text), *turn.view.sound_messages().messages]
    assert (chat.system_prompt, chat.get_tool_definitions()) == (turn.prompt.text, turn.tools)
    assert turn.usage == usage
    assert usage["messages"] == chat.counter.count_messages(sent[1:])
    assert [row.label for row in usage.rows if row.category == "tools"] == [
        tool["name"] for tool in chat.get_tool_definitions()
    ]
    assert chat.is_over_budget() is (usage["total"] > usage["available"])
    return {name: usage[name] for name in ("tools", "messages", "budget", "available")}


def test_usage_and_messages_are_those_of_the_agent(tmp_path: Path) -> None:
    fixture = write_fixture(FOLDER, tmp_path)
    pool = pool_of(fixture, "/home/co")
    for agent in (pool.main, pool.spawn("api", "api")):
        agent.conversation.add_user_message("Hello.")
        agent.conversation.set_tool_definitions(TOOLS)
        figures = check(agent)
        assert (figures["messages"], figures["budget"], figures["available"]) == (6, 4_000, 3_500)
        assert figures["tools"] > 0


def test_it_follows_the_files(tmp_path: Path) -> None:
    fixture = write_fixture(FOLDER, tmp_path)
    pool = pool_of(fixture, "/home/co")
    agent = pool.spawn("api", "api")
    agent.conversation.set_tool_definitions(TOOLS)
    for number in range(40):
        agent.conversation.add_user_message(f"Question {number}: {'why ' * 20}")
        agent.conversation.add_assistant_message("so " * 20)
    before = check(agent)
    prompt = agent.conversation.system_prompt

    Path(fixture.path("/home/co/api/NEXUS.md")).write_text("Use spaces. " * 40)
    Path(fixture.path("/home/co/.nexus3/config.json")).write_text(
        '{"provider": {"model": "gpt-4o"}, "tools": {"disabled": ["rm"]}, "context": {"max_tokens": 3000}}'
    )
    pool.refresh(load_folder(fixture, "/home/co"))
    after = check(agent)
    assert agent.conversation.system_prompt != prompt
    assert "Use spaces." in agent.conversation.system_prompt
    assert [tool["name"] for tool in agent.conversation.get_tool_definitions()] == ["read"]
    assert (after["budget"], after["tools"] < before["tools"]) == (3_000, True)


def test_it_is_compacted_within_the_agents_budget(tmp_path: Path) -> None:
    agent = pool_of(write_fixture(FOLDER, tmp_path), "/home/co").main
    for number in range(60):
        agent.conversation.add_user_message(f"Question {number}: {'why ' * 20}")
        agent.conversation.add_assistant_message("so " * 20)
    assert agent.conversation.is_over_budget()
    receipt = agent.conversation.compact(made_at=NOW)
    assert receipt.tokens_after < receipt.tokens_before
    assert not agent.conversation.is_over_budget()
    check(agent)


def test_its_prompt_is_that_of_its_files(tmp_path: Path) -> None:
    agent = pool_of(write_fixture(FOLDER, tmp_path), "/home/co").main
    with pytest.raises(RequestError, match="comes from its files") as refused:
        agent.conversation.set_system_prompt("Other.")
    assert refused.value.code == "bad-option"
    agent.conversation.add_user_message("Hello.")
    with pytest.raises(RequestError):
        agent.conversation.apply_compaction(Message("user", "Summary"), [], "Other.")
    assert len(agent.conversation) == 1


def test_a_pool_with_a_ledger_stores_the_conversations_of_its_agents(tmp_path: Path) -> None:
    fixture = write_fixture(FOLDER, tmp_path / "files")
    ledger = open_ledger(str(tmp_path / "ledger.db"))

    def pool() -> AgentPool:
        return AgentPool(load_folder(fixture, "/home/co"), inputs_of(fixture), ledger=ledger)

    first = pool()
    for agent, words in ((first.main, "Plan it."), (first.spawn("api", "api"), "Build it.")):
        agent.conversation.set_tool_definitions(TOOLS)
        agent.conversation.add_user_message(words)
        agent.conversation.add_assistant_message("Done.")
    folder = first.main.folder
    assert {one.name for one in ledger.sessions(folder)} == {"main", "agent:api"}
    (turn,) = ledger.turns(folder, "agent:api")
    assert (turn.model, turn.role, turn.toolset) == ("gpt-4o", "worker", ("read", "rm"))
    assert "Use tabs." in turn.context["system"]["text"]
    again = pool().spawn("api", "api").conversation
    assert [text_of(message) for message in again.messages][1:] == ["Build it.", "Done."]
    assert again.get_token_usage()["messages"] > 0
    ledger.close()
