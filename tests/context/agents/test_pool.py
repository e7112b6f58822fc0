"""Agents: what each reads and may do, who may start whom, and how they end."""

import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.agents import MAX_AGENTS, Agent, AgentPool
from nexus_context.config.patterns import Patterns
from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_context.turn.assembly import assemble
from nexus_context.turn.request import Options, Request
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative
from support.pools import inputs_of, pool_of
from support.source_map import source_at

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
COMPANY = """
//- /home/.nexus3/NEXUS.md
<user>
//- /home/.nexus3/IDENTITY.md
<who the user is>
//- /home/co/.nexus3/NEXUS.md
<co>
@shared.md
//- /home/co/.nexus3/shared.md
<shared>
//- /home/co/.nexus3/SOUL.md
<soul of co>
//- /home/co/.nexus3/AGENT.md
<agent of co>
//- /home/co/.nexus3/mcp.json
{"mcpServers": {"github": {"command": "gh"}, "db": {"command": "db"}}}
//- /home/co/.nexus3/config.json
{"provider": {"model": "gpt-4o"},
 "context": {"sections": [{"name": "Tone", "content": "<tone>"}]}}
//- /home/co/api/AGENTS.md
<api>
//- /home/co/api/.nexus3/SOUL.md
<soul of api>
//- /home/co/api/.nexus3/mcp.json
{"mcpServers": {"evil": {"command": "evil"}}}
//- /home/co/api/.nexus3/config.json
{"permissions": {"level": "sandboxed", "deny": ["fs.write"]}}
//- /home/co/api/auth/.nexus3/NEXUS.md
<auth>
See @../../.nexus3/shared.md and @own.md
//- /home/co/api/auth/.nexus3/own.md
<own>
//- /home/co/api/auth/.nexus3/AGENT.auth.md
<definition of auth>
//- /home/co/empty/x.txt
//- /home/other/x.txt
"""


@pytest.fixture
def tree(tmp_path: Path) -> Fixture:
    return write_fixture(COMPANY, tmp_path)


@pytest.fixture
def pool(tree: Fixture) -> AgentPool:
    return pool_of(tree, "/home/co")


def marks(agent: Agent) -> list[str]:
    """The fixture's texts in an agent's prompt, in its order."""
    return [line for line in agent.prompt.text.splitlines() if line.startswith("<")]


def refused(pool: AgentPool, *arguments: Any, **keywords: Any) -> tuple[str, str]:
    """Code and message of a refused spawn, which changes nothing."""
    before = [(one.id, list(one.children)) for one in pool.list()]
    with pytest.raises(RequestError) as caught:
        pool.spawn(*arguments, **keywords)
    assert [(one.id, list(one.children)) for one in pool.list()] == before
    return caught.value.code, str(caught.value)


OF_CO = ["<agent of co>", "<soul of co>", "<who the user is>", "<user>", "<co>", "<shared>", "<tone>"]


@pytest.mark.parametrize(
    ("spawns", "expected"),
    [
        pytest.param([("a", ".")], OF_CO, id="in the folder itself: the parent's prompt"),
        pytest.param([("a", "empty")], OF_CO, id="nothing of its own: the parent's prompt"),
        pytest.param([("a", "api")], ["<api>", *OF_CO], id="a worker's identity is its parent's"),
        pytest.param(
            [("a", "api", "manager")],
            ["<api>", "<soul of api>", *(one for one in OF_CO if one != "<soul of co>")],
            id="a manager has its own identity",
        ),
        pytest.param(
            [("a", "api"), ("auth", "api/auth")],
            ["<auth>", "<own>", "<definition of auth>", "<api>", *OF_CO[1:]],
            id="each generation's own files, the nearest first",
        ),
        pytest.param(
            [("auth", "api/auth")],
            ["<api>", "<auth>", "<own>", "<definition of auth>", *OF_CO[1:]],
            id="what lies between, in layer order",
        ),
    ],
)
def test_what_an_agent_reads(pool: AgentPool, spawns: list[tuple[str, ...]], expected: list[str]) -> None:
    parent = None
    for spawn in spawns:
        named: dict[str, Any] = dict(zip(("agent_id", "cwd", "role"), spawn, strict=False))
        agent = pool.spawn(**named, parent=parent)
        parent = agent.id
    assert marks(agent) == expected
    text = agent.prompt.text
    assert text.startswith("## Subagent Configuration\nSource: ") == (expected[0] != OF_CO[0])
    assert "".join(text[one.span.start : one.span.end] for one in agent.prompt.fragments) == text


def test_each_file_of_an_agent_has_a_title_of_its_own(pool: AgentPool) -> None:
    pool.spawn("api", "api")
    agent = pool.spawn("auth", "api/auth", parent="api")
    titles = [one.title for one in agent.prompt.fragments if one.section == "subagent"]
    assert list(dict.fromkeys(titles)) == [
        "Subagent Configuration (auth)",
        "Subagent Configuration (auth): NEXUS.md",
        "Subagent Configuration (auth): NEXUS.md: own.md",
        "Parent Agent Configuration (api)",
        "Parent Agent Configuration (api): AGENTS.md",
    ]


def test_every_character_of_a_file_keeps_its_source(tree: Fixture, pool: AgentPool) -> None:
    pool.spawn("api", "api")
    agent = pool.spawn("auth", "api/auth", parent="api")
    for mark, path in (
        ("<auth>", "/home/co/api/auth/.nexus3/NEXUS.md"),
        ("<own>", "/home/co/api/auth/.nexus3/own.md"),
        ("<api>", "/home/co/api/AGENTS.md"),
        ("<shared>", "/home/co/.nexus3/shared.md"),
    ):
        at = agent.prompt.text.index(mark)
        assert source_at(agent.prompt, at + 1, agent.snapshot.layers.texts) == (
            tree.path(path),
            tree.files[tree.path(path)].index(mark) + 1,
        )
    base = load_folder(tree, "/home/co/api/auth", root="/home/co")
    assert {one.code for one in agent.snapshot.problems} <= {one.code for one in base.problems}


def test_a_given_prompt_replaces_all_files(pool: AgentPool) -> None:
    agent = pool.spawn("a", "api", system_prompt="<given>", task="<task>")
    below = pool.spawn("b", "api/auth", parent="a")
    assert marks(agent) == ["<given>", "<task>"]
    assert [one for one in marks(below) if one in ("<api>", "<auth>", "<given>")] == [
        "<api>",
        "<auth>",
        "<given>",
    ]
    assert "Working directory" in agent.prompt.text


def test_a_file_under_two_paths_is_one_file(tmp_path: Path) -> None:
    tree = write_fixture("//- /home/co/AGENTS.md\n<co>\n//- /home/co/a/x.txt\n", tmp_path)
    Path(tree.path("/home/co/a/AGENTS.md")).symlink_to("../AGENTS.md")
    agent = pool_of(tree, "/home/co").spawn("a", "a")
    assert marks(agent) == ["<co>"]


@pytest.mark.parametrize(
    ("role", "has", "lacks"),
    [
        ("manager", ["Your Role: Manager", "Your Task", "<task>"], ["Your Role: Worker"]),
        ("worker", ["Your Role: Worker", 'Report to "main" only', "<task>"], ["Your Role: Manager"]),
        ("unified", ["Your Task", "<task>"], ["Your Role"]),
    ],
)
def test_roles(pool: AgentPool, role: str, has: list[str], lacks: list[str]) -> None:
    text = pool.spawn("a", "api", role, "<task>").prompt.text
    assert [one for one in has if one not in text] + [one for one in lacks if one in text] == []
    assert "Your Role" not in pool.main.prompt.text


def test_permissions_of_folder_parent_and_request(pool: AgentPool) -> None:
    api = pool.spawn("api", "api", permissions={"allow": ["fs.*", "net.get"]})
    below = pool.spawn("b", ".", parent="api", permissions={"allow": ["fs.read"], "deny": ["net.*"]})
    assert (api.permissions.level, api.permissions.deny) == ("sandboxed", ("fs.write",))
    assert (below.permissions.level, below.permissions.allow) == ("sandboxed", ("fs.read",))
    assert below.permissions.deny == ("fs.write", "net.*")
    assert "Permission level: sandboxed" in below.prompt.text


@pytest.mark.parametrize(
    ("permissions", "said"),
    [
        ({"level": "yolo"}, 'its parent has "sandboxed"'),
        ({"level": "trusted"}, 'its parent has "sandboxed"'),
        ({"level": "root"}, "permissions.level"),
        ({"allow": ["*"]}, 'may not be allowed "*"'),
        ({"allow": ["fs.read*"]}, 'may not be allowed "fs.read*"'),
        ({"grant": True}, "there is no permission 'grant'"),
    ],
)
def test_more_than_the_parent_has_is_refused(pool: AgentPool, permissions: Any, said: str) -> None:
    pool.spawn("api", "api", permissions={"allow": ["fs.read", "net.*"]})
    code, message = refused(pool, "b", "api", parent="api", permissions=permissions)
    assert (code, said in message) == ("agent-permissions", True)


@pytest.mark.parametrize(
    ("asked", "offered"), [({}, ["Bash", "read_file"]), ({"allow": ["fs.read"]}, ["read_file"])]
)
def test_what_an_agent_may_do_binds_tools_that_say_nothing(
    pool: AgentPool, asked: dict[str, Any], offered: list[str]
) -> None:
    """The rule holds below such an agent, too: nothing gets around it."""
    hint = {"annotations": {"readOnlyHint": True}}
    tools = [{"name": "Bash", **hint}, {"name": "read_file", "permissions": ["fs.read"], **hint}]
    above = pool.spawn("above", "api", permissions=asked)
    for agent in (above, pool.spawn("below", "api", parent="above")):
        request = Request(options=Options(additional_tools=tools))
        found = assemble(agent.snapshot, agent.conversation, request, now=NOW).tools
        assert [one["name"] for one in found] == offered


def test_tools_and_servers_come_from_the_parent(pool: AgentPool) -> None:
    plain = pool.spawn("plain", "api")
    granted = pool.spawn("granted", "api", tools=["fs.*", "github.*", "evil.*"])
    below = pool.spawn("below", "api", parent="granted", tools=["*"])
    narrow = pool.spawn("narrow", "api", parent="granted", tools=["fs.read"])
    servers = [
        [one.name for one in agent.snapshot.layers.servers] for agent in (plain, granted, below, narrow)
    ]
    assert servers == [[], ["github"], ["github"], []]
    assert "evil" not in granted.prompt.text
    reads = {"readOnlyHint": True}  # the pool is a sandbox
    names = ("fs.read", "fs.list", "github.pull", "web.get")
    tools = [{"name": name, "annotations": reads} for name in names]
    request = Request(message=Message("user", "?"), options=Options(additional_tools=tools))
    offered = [
        [one["name"] for one in assemble(agent.snapshot, agent.conversation, request, now=NOW).tools]
        for agent in (plain, granted, below, narrow)
    ]
    assert offered == [
        ["fs.list", "fs.read", "github.pull", "web.get"],
        ["fs.list", "fs.read", "github.pull"],
        ["fs.list", "fs.read", "github.pull"],
        ["fs.read"],
    ]
    code, message = refused(pool, "x", "api", parent="narrow", tools=["web.*"])
    assert (code, "its parent 'narrow' has \"fs.read\"" in message) == ("agent-tools", True)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("fs.*", "fs.read", True),
        ("*read", "fs.*", True),
        ("a*b", "ac*db", True),
        ("a*b", "b*", False),
        ("fs.?", "fs.read", False),
        ("[ab]x", "?x", True),
        ("**", "", True),
        ("", "a", False),
    ],
)
def test_patterns_meet(one: str, other: str, meet: bool) -> None:
    assert (Patterns((other,)).meet(one), Patterns((one,)).meet(other)) == (meet, meet)


def test_models_and_parameters(pool: AgentPool) -> None:
    one = pool.spawn("one", "api")
    two = pool.spawn("two", "api", model="o3", parameters={"temperature": 0.1, "top_k": 5})
    three = pool.spawn("three", "empty", parent="two", parameters={"top_k": 7})
    assert [agent.model for agent in (one, two, three)] == ["gpt-4o", "o3", "o3"]
    assert three.parameters == {"temperature": 0.1, "top_k": 7}
    assert refused(pool, "x", parameters={"temperature": 9})[0] == "bad-parameter"


@pytest.mark.parametrize(
    ("cwd", "said"),
    [
        ("none", "/home/co/none, does not exist. Create it"),
        ("api/AGENTS.md", "/home/co/api/AGENTS.md, is not a directory. Name the directory"),
        (
            "../other",
            "/home/other, is outside every workspace folder. Open it as one, or choose one in /home/co",
        ),
        ("loop", "/home/co/loop, cannot be opened: its path is a loop of symbolic links"),
        ("out", "outside every workspace folder (it leads to /home/other)"),
        ("dangling", "is a broken symbolic link"),
        ("a\0b", "is not a valid path"),
        ("x" * 300, "cannot be opened"),
    ],
)
def test_directories_that_cannot_be(tree: Fixture, pool: AgentPool, cwd: str, said: str) -> None:
    os.symlink("loop", tree.path("/home/co/loop"))
    os.symlink("../other", tree.path("/home/co/out"))
    os.symlink("nowhere", tree.path("/home/co/dangling"))
    code, message = refused(pool, "a", cwd)
    assert (code, said in relative(tree, message)) == ("agent-cwd", True), message
    assert len(pool_of(tree, "/home/co", roots=["/home/co", "/home/other"]).spawn("a", "../other").id) == 1


def test_names_depth_and_count(pool: AgentPool) -> None:
    for number in range(5):
        pool.spawn(f"d{number}", parent=f"d{number - 1}" if number else None)
    assert refused(pool, "d5", parent="d4")[0] == "agent-depth"
    assert refused(pool, "d4")[0] == "agent-exists"
    assert refused(pool, "main")[0] == "agent-exists"
    assert refused(pool, "../x")[0] == "agent-id"
    assert "Did you mean 'd1'?" not in refused(pool, "y", parent="zzz")[1]
    assert refused(pool, "y", parent="zzz")[0] == "unknown-agent"
    assert refused(pool, "y", role="boss")[0] == "agent-role"
    assert refused(pool, "y", role="manager", parent="d0")[0] == "agent-role"
    for number in range(MAX_AGENTS - 5):
        pool.spawn(f"n{number}")
    assert refused(pool, "one more")[0] in ("agent-count", "agent-id")
    assert refused(pool, "more")[0] == "agent-count"


def test_of_two_at_once_one_is_started(pool: AgentPool) -> None:
    errors: list[str] = []

    def start() -> None:
        try:
            pool.spawn("same", "api")
        except RequestError as error:
            errors.append(error.code)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (errors, len(pool), pool.main.children) == (["agent-exists"] * 7, 1, ["same"])


def test_what_is_disposed_takes_its_children_along(pool: AgentPool) -> None:
    pool.spawn("a", "api")
    pool.spawn("b", "api", parent="a")
    pool.spawn("c", "api", parent="b")
    pool.spawn("d", "api")
    assert pool.dispose("a") == ("c", "b", "a")
    assert ([one.id for one in pool.list()], pool.main.children) == (["d"], ["d"])
    pool.spawn("a", "api")
    with pytest.raises(RequestError, match="no agent 'b'"):
        pool.dispose("b")
    with pytest.raises(RequestError, match="own agent"):
        pool.dispose("main")


def test_files_that_change_are_seen(tree: Fixture, pool: AgentPool) -> None:
    api, other = pool.spawn("api", "api"), pool.spawn("other", "empty")
    Path(tree.path("/home/co/api/AGENTS.md")).write_text("<new api>\n")
    folder = pool.main.snapshot
    assert [one.id for one in pool.refresh(folder)] == ["api"]
    assert (marks(api)[0], api.snapshot.revision) == ("<new api>", 2)
    Path(tree.path("/home/co/.nexus3/NEXUS.md")).write_text("<new co>\n")
    now = load_folder(tree, "/home/co", previous=folder)
    assert [one.id for one in pool.refresh(now, inputs=inputs_of(tree))] == ["api", "other"]
    assert "<new co>" in marks(other)
    assert pool.refresh(now) == ()
    for path in (tree.path("/home/co/empty/x.txt"),):
        os.remove(path)
    os.rmdir(tree.path("/home/co/empty"))
    pool.refresh(now)
    assert (other.notice or "").endswith("is not a directory any more. Dispose of the agent.")


def test_who_may_send_whom_a_message(pool: AgentPool) -> None:
    pool.spawn("m", role="manager")
    pool.spawn("w", parent="m")
    pool.spawn("x", parent="w")
    pool.spawn("y", parent="m")
    names = ("main", "m", "w", "x", "y")

    def may(sender: str, target: str) -> bool:
        try:
            pool.check_message(sender, target)
        except RequestError as error:
            assert error.code == "agent-message"
            return False
        return True

    assert {one: [other for other in names if may(one, other)] for one in names} == {
        "main": ["m", "w", "x", "y"],
        "m": ["main", "w", "x", "y"],
        "w": ["m", "x"],
        "x": ["w"],
        "y": ["m"],
    }


def test_a_view_starts_nothing(pool: AgentPool) -> None:
    seen = pool.view_as("auth", "api/auth", "manager", "<task>")
    assert (len(pool), pool.main.children) == (0, [])
    started = pool.spawn("auth", "api/auth", "manager", "<task>")
    assert seen.prompt == started.prompt
    assert seen.session == "agent:auth"
    assert started.usage().total == started.usage().by_category()["system"]


def test_agents_in_one_directory_share_texts(pool: AgentPool) -> None:
    one, two = pool.spawn("one", "api"), pool.spawn("two", "api")
    for path, text in one.snapshot.layers.texts.items():
        assert two.snapshot.layers.texts[path] is text
