"""Whom an agent is below before it is started, and whose settings say what it was not asked to be."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.agents import MAX_DEPTH, Agent, AgentPool
from nexus_context.agents.permissions import AgentPermissions
from nexus_context.errors import RequestError
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative
from support.pools import inputs_of, pool_of

COMPANY = """
//- /home/.nexus3/config.json
{"agents": {"guest": {"cwd": "docs", "task": "<guest>"}}}
//- /home/co/AGENTS.md
<co>
//- /home/co/.nexus3/config.json
{"agents": {
  "backend": {"cwd": "backend", "role": "manager", "tools": ["fs.*", "net.*"]},
  "auth": {"cwd": "backend/auth", "parent": "backend", "task": "<auth>", "tools": ["fs.*"]},
  "reviewer": {"parent": "auth", "tools": ["fs.read"]},
  "own": {"parent": "own"},
  "one": {"parent": "two"}, "two": {"parent": "three"}, "three": {"parent": "two"},
  "lost": {"parent": "nobody"}}}
//- /home/co/backend/AGENTS.md
<backend>
//- /home/co/backend/.nexus3/config.json
{}
//- /home/co/backend/auth/AGENTS.md
<auth's directory>
//- /home/co/docs/x.txt
//- /home/co/backend/docs/x.txt
//- /home/other/.nexus3/config.json
{"agents": {"x": {"task": "<of other>"}}}
"""
CHAIN = ("backend", "auth", "reviewer")


@pytest.fixture
def tree(tmp_path: Path) -> Fixture:
    return write_fixture(COMPANY, tmp_path)


@pytest.fixture
def pool(tree: Fixture) -> AgentPool:
    return pool_of(tree, "/home/co")


def refused(tree: Fixture, ask: Any, *arguments: str, **named: str) -> str:
    with pytest.raises(RequestError) as caught:
        ask(*arguments, **named)
    return f"{caught.value.code}: {relative(tree, str(caught.value))}"


def shown(agent: Agent) -> tuple[object, ...]:
    """All that an agent is, but for how often it was loaded."""
    above = None if agent.parent is None else agent.parent.id
    prompt = agent.prompt.text
    return above, agent.depth, agent.spec, agent.permissions, agent.tools, agent.folder, prompt


def write(tree: Fixture, path: str, text: str) -> str:
    Path(tree.path(path)).write_text(text)
    return tree.path(path)


# ------------------------------------------------------------ looked at before its parents live


def test_a_view_below_parents_that_are_not_started(tree: Fixture, pool: AgentPool) -> None:
    seen = {name: shown(pool.view_as(name)) for name in CHAIN}
    assert (pool.list(), pool.main.children) == ((), [])
    assert {name: shown(pool.spawn(name)) for name in CHAIN} == seen
    assert seen["reviewer"][:2] == ("auth", 3)
    below = pool_of(tree, "/home/co").view_as("new", role="worker", parent="auth")
    assert below.parent is not None
    assert shown(below.parent) == seen["auth"]


def test_a_parent_that_lives_is_taken_as_it_is(pool: AgentPool) -> None:
    before = pool.view_as("auth")
    backend = pool.spawn("backend", "docs", "manager", "<live>")
    assert pool.view_as("auth").parent is backend
    pool.dispose("backend")
    assert shown(pool.view_as("auth")) == shown(before)


def test_who_is_told_of_changes_makes_nothing_to_look_again(tree: Fixture) -> None:
    agents = [
        f'"a{n}": {{"cwd": "d{n}", "parent": "{f"a{n - 1}" if n else "main"}"}}' for n in range(MAX_DEPTH)
    ]
    write(tree, "/home/co/.nexus3/config.json", f'{{"agents": {{{", ".join(agents)}}}}}')
    for number in range(MAX_DEPTH):
        Path(tree.path(f"/home/co/d{number}")).mkdir()
    pool = pool_of(tree, "/home/co", followed=True)
    deepest = f"a{MAX_DEPTH - 1}"
    seen = pool.view_as(deepest)
    path = tree.path("/home/co/d0/AGENTS.md")
    assert path in pool.watch()
    write(tree, "/home/co/d0/AGENTS.md", "<new>")
    assert pool.view_as(deepest) is seen
    assert seen.parent is pool.view_as(f"a{MAX_DEPTH - 2}")
    pool.refresh(pool.main.snapshot, changed={path})
    assert "<new>" in pool.view_as(deepest).prompt.text


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("path", ["AGENTS.md", ".nexus3/AGENT.backend.md", ".nexus3/more/import.md"])
def test_a_parent_is_made_anew_when_its_file_changes(tmp_path: Path, path: str, followed: bool) -> None:
    own = "//- /home/co/backend/.nexus3/AGENT.backend.md\n@more/import.md\n"
    tree = write_fixture(f"{COMPANY}{own}//- /home/co/backend/.nexus3/more/import.md\n<old>\n", tmp_path)
    pool = pool_of(tree, "/home/co", followed=followed)
    before = {name: pool.view_as(name).prompt.text for name in ("backend", "reviewer")}
    changed = tree.path(f"/home/co/backend/{path}")
    assert changed in pool.watch()
    write(tree, f"/home/co/backend/{path}", "<new>")
    if followed:
        pool.refresh(pool.main.snapshot, changed={changed})
    for name, text in before.items():
        assert ("<old>" in text, "<new>" in pool.view_as(name).prompt.text) == (True, True)


def test_what_is_remembered_is_what_was_asked_and_read(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co", roots=["/home/co", "/home/other"], followed=True)
    asked = [("x", "docs", "worker"), ("x", "docs", "manager"), ("y", "docs", "manager")]
    seen = [pool.view_as(*one) for one in asked]
    assert [(one.id, one.snapshot.folder, one.role) for one in seen] == [
        (name, tree.path(f"/home/co/{cwd}"), role) for name, cwd, role in asked
    ]
    far = tree.path("/home/other")
    assert "<co>" in pool.view_as("far", far).prompt.text
    changed = write(tree, "/home/co/AGENTS.md", "<other>")
    pool.refresh(load_folder(tree, "/home/co", previous=pool.main.snapshot), changed={changed})
    assert "<other>" in pool.view_as("far", far).prompt.text


EDITED: Mapping[str, tuple[str, ...]] = {
    "/home/co/AGENTS.md": ("<a>", "<b>"),
    "/home/co/backend/AGENTS.md": ("<a>", "<b>", ""),
    "/home/co/backend/.nexus3/config.json": (
        "{}",
        '{"permissions": {"level": "sandboxed"}, "agents": {"auth": {"task": "<c>", "tools": ["net.*"]}}}',
        '{"agents": {"reviewer": {"model": "o3"}, "auth": {"cwd": "docs"}}}',
    ),
    "/home/co/backend/auth/AGENTS.md": ("<a>", "@../AGENTS.md"),
}
EDITS = [(path, text) for path, texts in EDITED.items() for text in texts]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(EDITS), max_size=5), st.booleans())
def test_a_view_is_what_a_spawn_of_all_gives(done: list[tuple[str, str]], followed: bool) -> None:
    with tempfile.TemporaryDirectory() as root:
        tree = write_fixture(COMPANY, Path(root))
        pool = pool_of(tree, "/home/co", followed=followed)
        pool.view_as("reviewer")
        for path, text in done:
            changed = write(tree, path, text)
            now = load_folder(tree, "/home/co", previous=pool.main.snapshot)
            pool.refresh(now, inputs=inputs_of(tree), changed={changed})
            new = pool_of(tree, "/home/co")
            try:
                spawned = [new.spawn(name) for name in CHAIN]
            except RequestError as error:
                with pytest.raises(RequestError) as caught:
                    pool.view_as("reviewer")
                assert str(caught.value) == str(error)
            else:
                assert shown(pool.view_as("reviewer")) == shown(spawned[-1])


# ------------------------------------------------------------ what cannot be


def test_a_parent_of_the_settings_that_is_not_started(tree: Fixture, pool: AgentPool) -> None:
    defined = "which is defined in /home/co/.nexus3/config.json and is not started."
    one = f"unknown-agent: The parent of agent 'auth' is 'backend', {defined} Start it first."
    two = f"unknown-agent: The parent of agent 'reviewer' is 'auth', {defined} Start 'backend' first, then"
    assert refused(tree, pool.spawn, "auth") == one
    assert refused(tree, pool.spawn, "x", parent="backend") == one.replace("'auth'", "'x'")
    assert refused(tree, pool.spawn, "reviewer") == f"{two} 'auth'."


def test_what_is_defined_and_does_not_live(tree: Fixture, pool: AgentPool) -> None:
    defined = (
        "unknown-agent: There is no agent 'backend' in /home/co: /home/co/.nexus3/config.json defines it, "
    )
    assert refused(tree, pool.get, "backend") == f"{defined}but it is not started. Agents: main."
    near = "unknown-agent: There is no agent 'bakend' in /home/co. Did you mean 'backend'? Agents: main."
    assert refused(tree, pool.view_as, "x", parent="bakend") == near
    assert "no agent 'nobody'" in refused(tree, pool.view_as, "lost")


@pytest.mark.parametrize("way", ["spawn", "view_as"])
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"agent_id": "own"},
            "agent-cycle: Agent 'own' would be below itself: own → own. Correct `parent` in /home/co/",
        ),
        (
            {"agent_id": "one"},
            "agent-cycle: Agent 'one' cannot be started: these agents form a circle of parents: two → three",
        ),
        (
            {"agent_id": "x", "parent": "x"},
            "agent-cycle: Agent 'x' would be below itself: x → x. Give another",
        ),
        (
            {"agent_id": "backend", "parent": "reviewer"},
            "agent-cycle: Agent 'backend' would be below itself: backend → reviewer → auth → backend. Give",
        ),
        ({"agent_id": "main"}, "agent-exists: Agent 'main' already exists in /home/co. Choose another"),
    ],
)
def test_parents_that_cannot_be(
    tree: Fixture, pool: AgentPool, way: str, asked: dict[str, str], said: str
) -> None:
    assert refused(tree, getattr(pool, way), **asked).startswith(said)
    assert pool.list() == ()


@pytest.mark.parametrize("way", ["spawn", "view_as"])
@pytest.mark.parametrize("live", [False, True])
def test_main_is_no_agent_of_the_settings(tree: Fixture, way: str, live: bool) -> None:
    write(
        tree,
        "/home/co/.nexus3/config.json",
        '{"agents": {"main": {"cwd": "docs", "parent": "x"}, "x": {"parent": "main"}}}',
    )
    pool = pool_of(tree, "/home/co")
    if live:
        pool.spawn("x")
    agent = getattr(pool, way)("y", parent="x" if live else "main")
    assert (agent.depth, agent.folder) == (1 + live, pool.main.folder)


@pytest.mark.parametrize("way", ["spawn", "view_as"])
@pytest.mark.parametrize("live", [False, True])
def test_a_chain_that_is_too_deep(tree: Fixture, way: str, live: bool) -> None:
    agents = [f'"a{n}": {{"parent": "{f"a{n - 1}" if n else "main"}"}}' for n in range(100)]
    write(tree, "/home/co/.nexus3/config.json", f'{{"agents": {{{", ".join(agents)}}}}}')
    pool = pool_of(tree, "/home/co")
    if live:
        pool.spawn("a0")
    said = refused(tree, getattr(pool, way), "a5")
    assert said.startswith("agent-depth: Agent 'a5' would be 6 deep, and agents are at most 5: ")
    assert said.endswith("a0 → a1 → a2 → a3 → a4 → a5. Start it from an agent further up.")
    long = refused(tree, getattr(pool, way), "a99")
    assert (long[:42], len(long) < 400) == ("agent-depth: Agent 'a99' would be 100 deep", True)


def test_a_view_may_have_the_name_of_a_live_agent(tree: Fixture, pool: AgentPool) -> None:
    backend = pool.spawn("backend")
    seen = pool.view_as("backend", "docs")
    assert (seen.folder, seen.parent) == (tree.path("/home/co/docs"), pool.main)
    assert refused(tree, pool.view_as, "backend", parent="backend").startswith("agent-cycle: ")
    above = pool.view_as("backend", role="worker", parent="auth", tools=["fs.read"]).parent
    assert (above and above.id, above and above.parent) == ("auth", backend)


def test_a_view_without_a_name_below_an_agent_of_that_name(pool: AgentPool) -> None:
    assert pool.view_as(cwd="docs").id == "agent"
    live = pool.spawn("agent")
    assert pool.view_as(cwd="docs", parent="agent").parent is live


# ------------------------------------------------------------ settings of the parent's directory


@pytest.fixture
def lead(tree: Fixture) -> AgentPool:
    """A pool in which `lead` works in a directory whose settings name agents, too."""
    write(
        tree,
        "/home/co/backend/.nexus3/config.json",
        """{"agents": {
          "auth": {"permissions": {"level": "sandboxed"}, "model": "o3"},
          "docs": {"cwd": "docs", "role": "manager", "tools": ["fs.read"], "task": "<docs>"},
          "reviewer": {"parent": "docs"}, "backend": {"cwd": "auth"}}}""",
    )
    pool = pool_of(tree, "/home/co", roots=["/home/co", "/home/other"])
    pool.spawn("lead", "backend", "manager")
    return pool


def test_what_the_parents_directory_says_of_a_name(tree: Fixture, lead: AgentPool) -> None:
    docs = lead.spawn("docs", parent="lead")
    assert (docs.role, docs.task, docs.tools, docs.folder) == (
        "manager",
        "<docs>",
        (("fs.read",),),
        tree.path("/home/co/backend/docs"),
    )
    auth = lead.view_as("auth", parent="lead")
    assert (auth.task, auth.model, auth.tools, auth.permissions) == (
        "<auth>",
        "o3",
        (("fs.*",),),
        AgentPermissions("sandboxed"),
    )
    assert auth.folder == tree.path("/home/co/backend/auth")
    assert lead.view_as("backend").folder == tree.path("/home/co/backend")
    assert lead.view_as("backend", parent="lead").folder == tree.path("/home/co/backend/auth")
    assert lead.view_as("docs").task is None  # the folder's settings know nothing of it


def test_the_folder_names_the_parent_and_the_parents_directory_the_rest(
    tree: Fixture, lead: AgentPool
) -> None:
    auth = lead.view_as("auth")
    assert auth.parent is not None
    assert (auth.parent.id, auth.model, auth.permissions.level) == ("backend", "o3", "sandboxed")
    assert lead.view_as("reviewer").spec.parent == "auth"
    lead.spawn("backend")
    assert shown(lead.spawn("auth")) == shown(auth)


def test_what_is_asked_counts_before_all_settings(lead: AgentPool) -> None:
    docs = lead.spawn("docs", ".", "worker", "<asked>", parent="lead", tools=["fs.write"])
    assert (docs.folder, docs.role, docs.task, docs.tools) == (
        lead.main.folder,
        "worker",
        "<asked>",
        (("fs.write",),),
    )


def test_a_directory_of_the_global_file_is_the_folders(tree: Fixture, lead: AgentPool) -> None:
    assert lead.view_as("guest", parent="lead").folder == tree.path("/home/co/docs")


def test_below_a_parent_in_another_workspace_folder(tree: Fixture, lead: AgentPool) -> None:
    lead.spawn("far", tree.path("/home/other"), "manager")
    assert lead.view_as("x", parent="far").task == "<of other>"
    auth = lead.view_as("auth", parent="far")
    assert (auth.task, auth.folder) == ("<auth>", tree.path("/home/co/backend/auth"))
