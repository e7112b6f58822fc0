"""Agents while files change, and restored agents: what they keep, what they lose, and the notices."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.agents import Agent, AgentPool
from nexus_context.agents.agent import AgentSpec
from nexus_context.agents.directory_snapshots import UNUSED_AT_MOST
from nexus_context.disk.files import real_path
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder
from support.pools import inputs_of, pool_of

COMPANY = """
//- /home/co/.nexus3/config.json
{"permissions": {"level": "trusted", "allow": ["fs.*", "net.*"]}}
//- /home/co/AGENTS.md
<co>
//- /home/co/api/AGENTS.md
<api>
//- /home/co/api/.nexus3/AGENT.auth.md
<auth>
//- /home/co/api/.nexus3/config.json
{}
//- /home/co/web/AGENTS.md
<web>
//- /home/other/AGENTS.md
<other>
"""
NARROW = '{"permissions": {"level": "worker", "allow": ["fs.read"]}}'
EDITED = (
    "co/AGENTS.md",
    "co/.nexus3/config.json",
    "co/api/AGENTS.md",
    "co/api/.nexus3/AGENT.auth.md",
    "co/api/.nexus3/config.json",
    "co/web/AGENTS.md",
    "co/web/.nexus3/NEXUS.md",
    "other/AGENTS.md",
)


@pytest.fixture
def tree(tmp_path: Path) -> Fixture:
    return write_fixture(COMPANY, tmp_path)


def check(agent: Agent, notice: str, *words: str) -> None:
    """The agent has this notice, and its prompt contains these texts."""
    assert (agent.notice or "").endswith(notice)
    assert bool(agent.notice) == bool(notice)
    assert [word for word in ("<co>", "<api>", "<web>", "<other>") if word in agent.prompt.text] == list(
        words
    )


def renewed(tree: Fixture, pool: AgentPool) -> list[str]:
    now = load_folder(tree, "/home/co", previous=pool.main.snapshot)
    return [one.id for one in pool.refresh(now, inputs=inputs_of(tree))]


def test_a_directory_that_is_gone_keeps_what_was_read(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co")
    api = pool.spawn("api", "api")
    shutil.rmtree(tree.path("/home/co/api"))
    assert renewed(tree, pool) == []
    check(api, "is not a directory any more. Dispose of the agent.", "<co>", "<api>")
    os.symlink(tree.path("/home/other"), tree.path("/home/co/api"))
    assert renewed(tree, pool) == []
    assert "is outside every workspace folder" in (api.notice or "")
    assert "<other>" not in api.prompt.text
    os.unlink(tree.path("/home/co/api"))
    os.mkdir(tree.path("/home/co/api"))
    assert renewed(tree, pool) == ["api"]
    check(api, "", "<co>")


def test_a_directory_that_is_swapped_once_it_was_looked_at(
    tree: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tree.path("/home/co/api")

    def look_and_swap(at: str) -> str:
        real = real_path(at)
        if at == path and not os.path.islink(path):
            shutil.rmtree(path)
            os.symlink(tree.path("/home/other"), path)
        return real

    monkeypatch.setattr("nexus_context.agents.directory_snapshots.real_path", look_and_swap)
    agent = pool_of(tree, "/home/co").spawn("api", "api")
    assert os.path.islink(path)
    check(agent, "", "<co>")


def test_who_gives_less_gives_less_to_those_below(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co")
    api = pool.spawn("api", "api", permissions={"level": "trusted", "allow": ["fs.*"], "deny": ["fs.rm"]})
    below = pool.spawn("below", "web", parent="api", permissions={"level": "trusted"}, tools=["fs.*"])
    config = Path(tree.path("/home/co/.nexus3/config.json"))
    before = config.read_text()
    config.write_text(NARROW)
    assert renewed(tree, pool) == ["api", "below"]
    for agent in (api, below):
        may = agent.permissions
        assert (may.level, may.allow, may.deny) == ("worker", ("fs.read",), ("fs.rm",))
        assert (agent.notice or "").endswith("Until then it has what its parent can grant.")
        assert agent.snapshot.effective.get("/permissions/level") == "worker"
    config.write_text(before)
    assert renewed(tree, pool) == ["api", "below"]
    assert (api.notice, below.notice, below.permissions.allow) == (None, None, ("fs.*",))


def test_an_agent_comes_back_as_it_was(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co")
    made = pool.spawn("auth", "api", "manager", "Fix it.", tools=["fs.*"], parameters={"temperature": 0.5})
    pool.spawn("below", "web", parent="auth")
    other = pool_of(tree, "/home/co")
    back = [other.restore(agent.spec) for agent in pool.list()]
    assert [(one.prompt, one.permissions, one.tools, one.parameters) for one in back] == [
        (one.prompt, one.permissions, one.tools, one.parameters) for one in pool.list()
    ]
    assert [(one.notice, one.folder, one.depth) for one in back] == [
        (None, one.folder, one.depth) for one in pool.list()
    ]
    assert made.children == back[0].children == ["below"]
    for wanted in (made.spec, AgentSpec("main")):
        with pytest.raises(RequestError, match="already"):
            other.restore(wanted)
    with pytest.raises(RequestError, match="no agent 'nobody'"):
        other.restore(AgentSpec("x", "api", parent="nobody"))


@pytest.mark.parametrize(
    ("folder", "notice"),
    [
        ("gone", "is not a directory any more. Dispose of the agent."),
        ("/home/other", "Open it as one, or choose one in {co}."),
    ],
)
def test_an_agent_without_its_directory_comes_back_with_what_its_parent_reads(
    tree: Fixture, folder: str, notice: str
) -> None:
    pool = pool_of(tree, "/home/co")
    path = tree.path(folder) if folder.startswith("/") else folder
    lost = pool.restore(AgentSpec("lost", path, "worker"))
    unknown = " Until then it has no tools, since its settings are unknown."
    check(lost, notice.format(co=tree.path("/home/co")) + unknown, "<co>")
    assert lost.folder == (path if folder.startswith("/") else tree.path(f"/home/co/{folder}"))
    assert pool.spawn("web", "web").notice is None
    if folder.startswith("/"):
        pool.roots = (*pool.roots, path)
    else:
        Path(tree.path("/home/co/gone")).mkdir()
        Path(tree.path("/home/co/gone/AGENTS.md")).write_text("<other>")
    assert renewed(tree, pool) == ["lost"]
    check(lost, "", "<co>", "<other>")


def test_revisions_do_not_come_again(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co")
    found = []
    for folder in ("api", "web", "api"):
        found.append(pool.spawn("x", folder).snapshot.revision)
        pool.dispose("x")
    assert found == [1, 2, 3]


def edits(*texts: str) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(st.sampled_from(EDITED), st.sampled_from(texts)), max_size=4)


def test_of_directories_that_are_only_looked_at_the_last_are_kept(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co")
    pool.spawn("web", "web")
    first, *looked = ["api", *(f"d{number}" for number in range(UNUSED_AT_MOST + 1))]
    for cwd in (first, *looked):
        os.makedirs(tree.path(f"/home/co/{cwd}"), exist_ok=True)
        pool.view_as(cwd=cwd)
    watched = {
        path for path in (first, "web", *looked) if tree.path(f"/home/co/{path}/AGENTS.md") in pool.watch()
    }
    assert watched == {"web", *looked}
    Path(tree.path("/home/co/api/AGENTS.md")).write_text("<new>")
    assert "<new>" in pool.view_as(cwd="api").prompt.text


def test_who_is_told_of_changes_does_not_look_for_them(tree: Fixture) -> None:
    pool = pool_of(tree, "/home/co", followed=True)
    file = Path(tree.path("/home/co/api/AGENTS.md"))
    assert "<api>" in pool.view_as(cwd="api").prompt.text
    file.write_text("<new>")
    assert "<api>" in pool.view_as(cwd="api").prompt.text
    assert "<new>" in pool.spawn("a", "api").prompt.text
    file.write_text("<newer>")
    for changed in ((), (tree.path("/home/co/web/AGENTS.md"),)):
        pool.refresh(pool.main.snapshot, changed=changed)
        assert "<new>" in pool.view_as(cwd="api").prompt.text
    pool.dispose("a")
    pool.refresh(pool.main.snapshot, changed={str(file)})
    assert "<newer>" in pool.view_as(cwd="api").prompt.text


@settings(max_examples=15, deadline=None)
@given(edits("{}", NARROW))
def test_what_is_looked_at_is_as_if_looked_at_anew(done: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        tree = write_fixture(COMPANY, Path(root))
        pool = pool_of(tree, "/home/co", followed=True)
        pool.spawn("auth", "api", "manager")
        for name, text in (("web/AGENTS.md", "<a>"), *done):
            path = Path(tree.path(f"/home/{name}"))
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            now = load_folder(tree, "/home/co", previous=pool.main.snapshot)
            pool.refresh(now, inputs=inputs_of(tree), changed={str(path)})
            new = pool_of(tree, "/home/co")
            for cwd in ("api", "web", "."):
                assert shown(pool.view_as(cwd=cwd).snapshot) == shown(new.view_as(cwd=cwd).snapshot)


@settings(max_examples=15, deadline=None)
@given(edits("<a>", "{}", NARROW, "{"))
def test_what_can_have_changed_is_all_that_need_be_looked_at(done: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        tree = write_fixture(COMPANY, Path(root))
        pool = pool_of(tree, "/home/co")
        pool.spawn("auth", "api", "manager")
        pool.spawn("web", "web", parent="auth")
        pool.spawn("here", ".")
        for name, text in done:
            path = Path(tree.path(f"/home/{name}"))
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            now = load_folder(tree, "/home/co", previous=pool.main.snapshot)
            pool.refresh(now, inputs=inputs_of(tree), changed={str(path)})
            seen = [shown(agent.snapshot) for agent in pool.list()]
            assert pool.refresh(now, inputs=inputs_of(tree)) == ()
            assert [shown(agent.snapshot) for agent in pool.list()] == seen


def shown(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.prompt, snapshot.problems, snapshot.effective.values
