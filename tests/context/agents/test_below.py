"""Agents in directories of the opened folder: they have everything that the folder has, and never more."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_context.errors import RequestError
from support.fixture import Fixture, write_fixture
from support.pools import inputs_of, pool_of

DEEP = "a/b/c/d/e"
SETTINGS: dict[str, Any] = {
    "provider": {"name": "anthropic", "model": "acme-1"},
    "context": {"reserve_tokens": 7777, "max_tokens": 40000, "datetime": {"placement": "off"}},
    "parameters": {"temperature": 0.2},
    "permissions": {"level": "sandboxed", "deny": ["fs.rm"]},
    "tools": {"disabled": ["Bash"]},
    "skills": {"enabled": False},
}


def company(tmp_path: Path, files: dict[str, Any]) -> Fixture:
    """A folder /home/co with these files; objects are written as JSON."""
    texts = {
        path: text if isinstance(text, str) else msgspec.json.encode(text).decode()
        for path, text in files.items()
    }
    return write_fixture("".join(f"//- /home/co/{path}\n{text}\n" for path, text in texts.items()), tmp_path)


def settings(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= settings(value, f"{prefix}/{key}") if isinstance(value, dict) else {f"{prefix}/{key}": value}
    return flat


@pytest.mark.parametrize("cwd", [".", "a", "a/b", "a/b/c", DEEP])
def test_the_settings_of_the_folder_count_however_deep(tmp_path: Path, cwd: str) -> None:
    tree = company(tmp_path, {".nexus3/config.json": SETTINGS, f"{DEEP}/x.txt": "x"})
    agent = pool_of(tree, "/home/co").spawn("deep", cwd)
    effective = agent.snapshot.effective
    assert {pointer: effective.get(pointer) for pointer in settings(SETTINGS)} == settings(SETTINGS)


@pytest.mark.parametrize("mode", [0o755, 0o777], ids=["own", "writable for everyone"])
def test_what_lies_between_is_read_as_the_folder_is(tmp_path: Path, mode: int) -> None:
    files: dict[str, Any] = {f"{DEEP}/x.txt": "x", "../AGENTS.md": "<home>", "AGENTS.md": "<co>"}
    between = ("a", "a/b", "a/b/c", "a/b/c/d", DEEP)
    files |= {f"{at}/AGENTS.md": f"<{at}>" for at in between}
    files[".nexus3/config.json"] = {"context": {"ancestor_depth": 0}, "tools": {"disabled": ["Bash"]}}
    tree = company(tmp_path, files)
    for each in (".", *between):
        os.chmod(tree.path(f"/home/co/{each}"), mode)
    pool = pool_of(tree, "/home/co")
    agent = pool.spawn("deep", DEEP)
    places = [agent.prompt.text.index(f"<{one}>") for one in (*between, "co")]
    assert places == [*sorted(places[:-1]), max(places)]
    assert "<home>" not in agent.prompt.text
    assert agent.snapshot.effective.get("/tools/disabled") == ["Bash"]
    assert agent.snapshot.problems == ()


def test_the_depth_of_the_folder_is_said_nowhere_to_be_wrong(tmp_path: Path) -> None:
    tree = company(
        tmp_path, {".nexus3/config.json": {"context": {"ancestor_depth": 1}}, "a/AGENTS.md": "<a>", "b/x": ""}
    )
    Path(tree.path("/home/co/b/.nexus3")).mkdir()
    Path(tree.path("/home/co/b/.nexus3/config.json")).write_text('{"context": {"ancestor_depth": 3}}')
    os.makedirs(tree.path("/home/co/b/c"))
    pool = pool_of(tree, "/home/co")
    for cwd in ("a", "b", "b/c"):
        seen = pool.spawn(cwd.replace("/", "-"), cwd).snapshot
        assert (seen.problems, seen.effective.get("/context/ancestor_depth")) == ((), 1)


def test_another_workspace_folder_is_read_as_itself(tmp_path: Path) -> None:
    text = """
//- /home/co/.nexus3/config.json
{"tools": {"disabled": ["Bash"]}}
//- /home/lib/.nexus3/config.json
{"tools": {"disabled": ["web.*"]}, "context": {"reserve_tokens": 5}}
//- /home/lib/src/deep/down/AGENTS.md
<down>
"""
    pool = pool_of(write_fixture(text, tmp_path), "/home/co", roots=["/home/co", "/home/lib"])
    agent = pool.spawn("lib", "../lib/src/deep/down")
    get = agent.snapshot.effective.get
    assert (get("/context/reserve_tokens"), get("/tools/disabled")) == (5, ["web.*", "Bash"])


def test_what_a_parent_has_not_its_children_have_not(tmp_path: Path) -> None:
    off = {"tools": {"disabled": ["web.*"]}}
    tree = company(tmp_path, {"back/.nexus3/config.json": off, "front/x.txt": "x"})
    pool = pool_of(tree, "/home/co")
    pool.spawn("lead", "back", "manager")
    below = pool.spawn("below", "front", parent="lead")
    beside = pool.spawn("beside", "front")
    found = [agent.snapshot.effective.get("/tools/disabled") for agent in (below, beside)]
    assert found == [["web.*"], []]


NOTHING = ["[]"]


@pytest.mark.parametrize(
    ("lists", "cwd", "allow"),
    [
        ({"": ["fs.*"], "a": ["fs.read"]}, "a", ["fs.read"]),
        ({"": ["fs.*"], "a": ["fs.read"]}, "a/b/c", ["fs.read"]),
        ({"": ["fs.*"], "a": ["fs.read"], "a/b": ["fs.*"]}, "a/b", ["fs.read"]),
        ({"": ["fs.*"], "a": ["net.*"]}, "a", NOTHING),
        ({"a": ["fs.*", "net.*"], "a/b": ["net.get"]}, "a/b", ["net.get"]),
        ({"": ["fs.*"]}, "a/b", ["fs.*"]),
        ({}, "a/b", []),
    ],
)
def test_each_directory_narrows_what_is_allowed(
    tmp_path: Path, lists: dict[str, list[str]], cwd: str, allow: list[str]
) -> None:
    files: dict[str, Any] = {
        os.path.join(at, ".nexus3/config.json"): {"permissions": {"allow": list(patterns)}}
        for at, patterns in lists.items()
    }
    tree = company(tmp_path, {**files, "a/b/c/x.txt": "x"})
    assert list(pool_of(tree, "/home/co").spawn("one", cwd).permissions.allow) == allow


BOX = {"permissions": {"level": "sandboxed", "deny": ["fs.write"]}, "tools": {"disabled": ["web.*"]}}


def gone(tree: Fixture) -> None:
    shutil.rmtree(tree.path("/home/co/box"))


def elsewhere(tree: Fixture) -> None:
    gone(tree)
    os.symlink("/", tree.path("/home/co/box"))


@pytest.mark.parametrize("lose", [gone, elsewhere])
def test_nobody_gains_by_a_directory_that_is_lost(tmp_path: Path, lose: Callable[[Fixture], None]) -> None:
    tree = company(tmp_path, {"box/.nexus3/config.json": BOX, "x.txt": ""})
    pool = pool_of(tree, "/home/co")
    wanted = pool.spawn("box", "box").spec
    lose(tree)
    back = pool_of(tree, "/home/co")
    agent = back.restore(wanted)
    assert (agent.permissions.level, list(agent.permissions.allow)) == ("worker", NOTHING)
    assert "Until then it has no tools" in (agent.notice or "")
    with pytest.raises(RequestError):
        back.spawn("below", ".", parent="box", permissions={"level": "sandboxed"})
    below = back.spawn("below", ".", parent="box")
    assert (below.permissions.level, list(below.permissions.allow)) == ("worker", NOTHING)
    Path(tree.path("/home/co/box")).unlink(missing_ok=True)
    company(tmp_path, {"box/.nexus3/config.json": BOX})
    back.refresh(back.main.snapshot, inputs=inputs_of(tree))
    assert (agent.permissions.level, agent.notice) == ("sandboxed", None)


def test_own_parameters_stay_where_the_parent_has_less(tmp_path: Path) -> None:
    tree = company(tmp_path, {".nexus3/config.json": {}, "a/x.txt": ""})
    pool = pool_of(tree, "/home/co")
    agent = pool.spawn("a", "a", permissions={"level": "trusted"}, parameters={"temperature": 0.3})
    write_fixture('//- /home/co/.nexus3/config.json\n{"permissions": {"level": "worker"}}\n', tmp_path)
    now = pool_of(tree, "/home/co").main.snapshot
    pool.refresh(now, inputs=inputs_of(tree))
    assert (agent.permissions.level, agent.parameters) == ("worker", {"temperature": 0.3})


IMPORTING = {
    "shared/rules.md": "<rules>",
    "a/AGENTS.md": "<a>\n@../shared/rules.md\n",
    "a/.nexus3/config.json": {"context": {"sections": [{"name": "S", "file": "../shared/more.md"}]}},
    "shared/more.md": "<more>",
}


def test_files_of_the_whole_folder_can_be_brought_in(tmp_path: Path) -> None:
    tree = company(tmp_path, {**IMPORTING, "b/x.txt": ""})
    os.symlink("../a/AGENTS.md", tree.path("/home/co/b/CLAUDE.md"))
    pool = pool_of(tree, "/home/co")
    seen = [pool.spawn(name, name) for name in ("a", "b")]
    assert [[mark for mark in ("<a>", "<rules>", "<more>") if mark in one.prompt.text] for one in seen] == [
        ["<a>", "<rules>", "<more>"],
        ["<a>", "<rules>"],
    ]
    assert [one.snapshot.problems for one in seen] == [(), ()]


def test_files_outside_the_folder_cannot(tmp_path: Path) -> None:
    text = "//- /home/AGENTS.md\n<home>\n//- /home/co/a/AGENTS.md\n@../../AGENTS.md\n//- /home/co/b/x.txt\n"
    tree = write_fixture(text, tmp_path)
    os.symlink("../../AGENTS.md", tree.path("/home/co/b/AGENTS.md"))
    pool = pool_of(tree, "/home/co")
    seen = [pool.spawn(name, name) for name in ("a", "b")]
    assert not any("<home>" in one.prompt.text for one in seen)
    assert [[problem.code for problem in one.snapshot.problems] for one in seen] == [
        ["prompt.import-outside"],
        ["layer.refused"],
    ]
    assert all(tree.path("/home/co") in problem.message for one in seen for problem in one.snapshot.problems)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_what_somebody_else_put_into_the_workspace_is_not_read(tmp_path: Path, mode: int) -> None:
    files = {"AGENTS.md": "<co>", "shared/.nexus3/NEXUS.md": "<planted>", "shared/me/AGENTS.md": "<me>"}
    tree = company(tmp_path, files)
    os.chmod(tree.path("/home/co/shared"), mode)
    for planted in ("shared/.nexus3", "shared/.nexus3/NEXUS.md"):
        os.chown(tree.path(f"/home/co/{planted}"), 12345, 12345)
    agent = pool_of(tree, "/home/co").spawn("me", "shared/me")
    assert "<me>" in agent.prompt.text
    assert "<planted>" not in agent.prompt.text


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_workspace_of_another_user_is_trusted_as_a_whole(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "a/.nexus3/config.json": {"tools": {"disabled": ["Bash"]}},
        "a/b/AGENTS.md": "<b>",
    }
    tree = company(tmp_path, {"AGENTS.md": "<co>", **files})
    for directory, _, names in os.walk(tree.path("/home/co")):
        for name in (".", *names):
            os.chown(os.path.join(directory, name), 12345, 12345)
    agent = pool_of(tree, "/home/co").spawn("b", "a/b")
    assert [mark in agent.prompt.text for mark in ("<b>", "<co>")] == [True, True]
    assert agent.snapshot.effective.get("/tools/disabled") == ["Bash"]


def test_other_workspace_folders_are_another_limit(tmp_path: Path) -> None:
    tree = write_fixture("//- /home/co/x\n//- /home/a/x.md\n<x>\n//- /home/a/b/c/y\n", tmp_path)
    os.symlink("../../x.md", tree.path("/home/a/b/c/AGENTS.md"))
    pool = pool_of(tree, "/home/co", roots=["/home/co", "/home/a"])
    agent = pool.spawn("c", "../a/b/c")
    assert "<x>" in agent.prompt.text
    pool.roots = (tree.path("/home/co"), tree.path("/home/a/b"))
    pool.refresh(pool.main.snapshot)
    assert "<x>" not in agent.prompt.text


def test_a_directory_that_leads_back_to_the_folder(tmp_path: Path) -> None:
    config = '//- /home/up/co/.nexus3/config.json\n{"context": {"ancestor_depth": 0}}\n'
    tree = write_fixture(f"//- /home/up/AGENTS.md\n<up>\n{config}//- /home/up/co/a/x\n", tmp_path)
    os.symlink("..", tree.path("/home/up/co/a/self"))
    agent = pool_of(tree, "/home/up/co").spawn("self", "a/self")
    assert "<up>" not in agent.prompt.text
