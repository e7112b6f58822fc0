"""Agents as tools: which are offered to whom, and what a model's calls do."""

from pathlib import Path
from typing import Any

import pytest

from support.asking import Asking, check
from support.desk import Desk

ALL = ["dispose_agent", "list_agents", "message_agent", "spawn_agent"]
NOT_OFFERED = "is not offered to this agent"


async def run(ask: Asking, tool: str, arguments: Any = None, **caller: str) -> tuple[str, bool]:
    """The text of a call's result, and whether it is an error."""
    result = await ask("agent/call", tool=tool, arguments=arguments, **caller)
    return result["text"], result["isError"]


async def offered(ask: Asking, **params: Any) -> list[str]:
    """The tools of a turn that asks for agent tools."""
    options = {"agentTools": True, **params.pop("options", {})}
    made = await ask("context/assemble", message="Go.", options=options, **params)
    return [tool["name"] for tool in made["tools"]]


async def begin(ask: Asking) -> None:
    """Start the manager `boss`, its worker `db`, and `web` beside them."""
    await ask("agent/spawn", agentId="boss", cwd=".", role="manager", task="Lead.")
    await ask("agent/spawn", agentId="db", cwd=".", parent="boss", task="Tune\nit.")
    await ask("agent/spawn", agentId="web", cwd="web")


def test_who_is_offered_what(tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        await begin(ask)
        made = await ask("context/assemble", message="Go.")
        assert made["tools"] == []
        assert await offered(ask) == ALL
        assert await offered(ask, agent="boss") == ALL
        assert await offered(ask, agent="db") == ALL
        assert await offered(ask, options={"sandbox": True}) == ["list_agents"]
        assert await offered(ask, options={"disabledTools": ["spawn_*"]}) == ALL[:3]
        await ask("agent/spawn", agentId="strict", permissions=["list_agents"])
        assert await offered(ask, agent="strict") == ["list_agents"]
        await ask("agent/spawn", agentId="box", cwd="api")
        assert await offered(ask, agent="box") == ["list_agents"]

    check(tmp_path, story)


def test_a_worker_is_offered_its_manager_and_workers_only(tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        await begin(ask)
        schemas = {}
        for agent in ("db", "boss"):
            made = await ask("context/assemble", message="Go.", agent=agent, options={"agentTools": True})
            schemas[agent] = {tool["name"]: tool["inputSchema"]["properties"] for tool in made["tools"]}
        assert schemas["db"]["message_agent"]["target"]["enum"] == ["boss"]
        assert schemas["db"]["spawn_agent"]["role"]["enum"] == ["worker"]
        assert "enum" not in schemas["boss"]["message_agent"]["target"]
        assert schemas["boss"]["spawn_agent"]["role"]["enum"] == ["manager", "unified", "worker"]

    check(tmp_path, story)


def test_an_agent_as_deep_as_agents_may_be_starts_none(tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        for depth in range(1, 6):
            parent = {"parent": f"a{depth - 1}"} if depth > 1 else {}
            await ask("agent/spawn", agentId=f"a{depth}", role="manager" if depth < 5 else "worker", **parent)
        assert await offered(ask, agent="a4") == ALL
        assert await offered(ask, agent="a5") == ["list_agents", "message_agent"]
        text, is_error = await run(ask, "spawn_agent", {"agent_id": "a6", "task": "Dig."}, agent="a5")
        assert (text, is_error) == (
            f"spawn_agent {NOT_OFFERED}: this agent is as deep as agents may be.",
            True,
        )

    check(tmp_path, story)


def test_calls_start_message_list_and_end_agents(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        folder = desk.tree.path("/a")
        spawn = {"agent_id": "boss", "task": "Lead.", "role": "manager"}
        assert await run(ask, "spawn_agent", spawn) == (
            (
                f'Started the agent "boss" (manager) in {folder}, below "main". '
                'Its conversation is "agent:boss".'
            ),
            False,
        )
        below = '{"agent_id": "db", "task": "Tune\\nit.", "cwd": "web", "tools": ["fs.*"]}'
        assert await run(ask, "spawn_agent", below, session="agent:boss") == (
            f'Started the agent "db" (worker) in {folder}/web, below "boss". Its conversation is "agent:db".',
            False,
        )
        got = await ask("agent/get", agentId="db")
        assert (got["parent"], got["task"], got["tools"]) == ("boss", "Tune\nit.", ["fs.*"])
        sent = {"target": "db", "content": "Faster.", "priority": 1}
        assert await run(ask, "message_agent", sent, agent="boss") == (
            'The message waits for the next turn of "db".',
            False,
        )
        (waiting,) = (await ask("agent/messages", agent="db"))["messages"]
        names = ("source", "content", "priority", "session")
        assert [waiting[name] for name in names] == ["boss", "Faster.", 1, "agent:boss"]
        late = {"target": "later", "content": "Begin."}
        assert await run(ask, "message_agent", late) == (
            'No agent "later" is live: the message waits until one is started.',
            False,
        )
        main = f"- main: the workspace folder's own agent, in {folder}\n"
        boss = f'- boss: manager, below "main", in {folder}. Task: Lead.\n'
        db = f'- db: worker, below "boss", in {folder}/web. Task: Tune it.'
        assert await run(ask, "list_agents", {}, agent="boss") == (main + boss + db, False)
        assert await run(ask, "dispose_agent", {"agent_id": "boss"}) == ("Ended: db, boss.", False)
        assert await ask.ids() == []

    check(tmp_path, story)


def test_a_worker_sees_and_ends_only_what_is_below_it(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        folder = desk.tree.path("/a")
        await begin(ask)
        boss = f'- boss: manager, below "main", in {folder}. Task: Lead.'
        worker = '{"agent_id": "low", "task": "Count."}'
        assert await run(ask, "list_agents", agent="db") == (boss, False)
        assert (await run(ask, "spawn_agent", worker, agent="db"))[1] is False
        low = f'- low: worker, below "db", in {folder}. Task: Count.'
        assert await run(ask, "list_agents", agent="db") == (f"{boss}\n{low}", False)
        said = "dispose_agent: agent_id 'web' is not below you. Agents below you: low."
        assert await run(ask, "dispose_agent", {"agent_id": "web"}, agent="db") == (said, True)
        said = "dispose_agent: agent_id 'db' is not below you. Agents below you: low."
        assert await run(ask, "dispose_agent", {"agent_id": "db"}, agent="db") == (said, True)
        report = {"target": "boss", "content": "Tuned."}
        assert await run(ask, "message_agent", report, agent="db") == (
            'The message waits for the next turn of "boss".',
            False,
        )
        assert await run(ask, "dispose_agent", {"agent_id": "low"}, agent="db") == ("Ended: low.", False)

    check(tmp_path, story)


@pytest.mark.parametrize(
    ("caller", "tool", "arguments", "said"),
    [
        ("main", "query_agents", {}, f"There is no agent tool 'query_agents'. Known: {', '.join(ALL)}."),
        ("main", "spawn_agent", {"agent_id": "new"}, "spawn_agent: task is missing. Give it."),
        (
            "main",
            "spawn_agent",
            "{",
            "spawn_agent: the arguments are not valid JSON: Input data was truncated.",
        ),
        ("main", "list_agents", {"all": True}, "list_agents: there is no argument 'all'. It takes none."),
        (
            "main",
            "spawn_agent",
            {"agent_id": "new", "task": "Go.", "directory": "web"},
            "spawn_agent: there is no argument 'directory'. Known: agent_id, task, cwd, role, tools.",
        ),
        (
            "main",
            "spawn_agent",
            {"agent_id": "new", "task": 5},
            "spawn_agent: task is of type int; it must be a string.",
        ),
        (
            "main",
            "spawn_agent",
            {"agent_id": "new", "task": " "},
            "spawn_agent: task is empty. Give a text, or leave it out where it is optional.",
        ),
        (
            "main",
            "spawn_agent",
            {"agent_id": "new", "task": "Go.", "role": "king"},
            'spawn_agent: role is "king"; you may give only "manager", "unified", "worker".',
        ),
        (
            "db",
            "spawn_agent",
            {"agent_id": "new", "task": "Go.", "role": "manager"},
            'spawn_agent: role is "manager"; you may give only "worker".',
        ),
        (
            "main",
            "spawn_agent",
            {"agent_id": "new", "task": "Go.", "tools": "fs.*"},
            "spawn_agent: tools must be a list of strings.",
        ),
        (
            "db",
            "message_agent",
            {"target": "web", "content": "Hi."},
            'message_agent: target is "web"; you may give only "boss".',
        ),
        (
            "boss",
            "message_agent",
            {"target": "boss", "content": "Hi."},
            "message_agent: target is you. Name another agent.",
        ),
        (
            "boss",
            "message_agent",
            {"target": "db", "content": "Hi.", "priority": 2},
            "message_agent: priority is 2; it must be a number from 0 to 1.",
        ),
        (
            "boss",
            "message_agent",
            {"target": "db", "content": "x" * 16_001},
            (
                "message_agent: content has 16,001 characters; it may have 16,000. Put the rest into a file "
                "and name the file."
            ),
        ),
    ],
)
def test_a_mistake_is_a_text_that_names_it(
    tmp_path: Path, caller: str, tool: str, arguments: Any, said: str
) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        await begin(ask)
        assert await run(ask, tool, arguments, agent=caller) == (said, True)
        assert await ask.ids() == ["boss", "db", "web"]
        for name in ("boss", "db", "web"):
            assert (await ask("agent/messages", agent=name))["messages"] == []

    check(tmp_path, story)


@pytest.mark.parametrize(
    ("tool", "arguments", "request_method", "params"),
    [
        (
            "spawn_agent",
            {"agent_id": "db", "task": "Go."},
            "spawn",
            {"agentId": "db", "task": "Go.", "parent": "boss"},
        ),
        (
            "spawn_agent",
            {"agent_id": "new", "task": "Go.", "cwd": "/nowhere"},
            "spawn",
            {"agentId": "new", "task": "Go.", "cwd": "/nowhere", "parent": "boss"},
        ),
        ("dispose_agent", {"agent_id": "none"}, "dispose", {"agentId": "none"}),
        (
            "message_agent",
            {"target": "DB", "content": "Hi."},
            "message",
            {"source": "boss", "target": "DB", "content": "Hi."},
        ),
    ],
)
def test_the_checks_are_those_of_the_requests(
    tmp_path: Path, tool: str, arguments: Any, request_method: str, params: dict[str, Any]
) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        await begin(ask)
        message = (await ask.refused(f"agent/{request_method}", **params))[1]
        assert await run(ask, tool, arguments, agent="boss") == (message, True)

    check(tmp_path, story)


def test_a_call_is_refused_where_its_tool_is_not_offered(tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="box", cwd="api")
        text, is_error = await run(ask, "spawn_agent", {"agent_id": "x", "task": "Go."}, agent="box")
        reason = "not in a sandbox: it does not say that it only reads"
        assert (text, is_error) == (f"spawn_agent {NOT_OFFERED}: {reason}.", True)
        assert await ask.refused("agent/call", tool="list_agents", agent="BOX") == (
            "unknown-agent",
            "There is no agent 'BOX'. Did you mean 'box'?",
        )

    check(tmp_path, story)
