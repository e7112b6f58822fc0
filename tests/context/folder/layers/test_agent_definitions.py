"""The agents that config.json defines: which mistakes are reported, and what counts when they start."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.agents import AgentPool
from nexus_context.config.patterns import Patterns
from nexus_context.config.scope import LEVELS
from nexus_context.errors import Problem, RequestError, Severity
from nexus_context.folder.layers.agent_definitions import configured_directory
from nexus_context.text.json import parse
from support.fixture import write_fixture
from support.folders import load_folder, relative
from support.pools import pool_of
from support.problems import fixed

PATH = "/home/co/.nexus3/config.json"


def check(root: Path, text: str, *expected: str, rest: str = "") -> None:
    """The problems of the folder's config.json, each as `code "the text there" … a part of the message`."""
    tree = write_fixture(f"//- {PATH}\n{text}\n//- /home/co/api/x.txt\n{rest}", root)
    problems = load_folder(tree, "/home/co").problems
    found = [
        f"{one.code} {tree.files[one.path][one.span.start : one.span.end]} {relative(tree, one.message)}"
        for one in problems
        if one.path == tree.path(PATH)
    ]
    assert len(found) == len(expected), found
    for shown, line in zip(found, expected, strict=True):
        place, _, said = line.partition(" … ")
        assert shown.startswith(place), (shown, place)
        assert said in shown, (shown, said)


def test_what_is_right(tmp_path: Path) -> None:
    text = """{"agents": {
      "api": {"cwd": "api", "tools": ["fs.*", "github.*"], "permissions": {"level": "worker"}},
      "b": {"parent": "api", "cwd": "api"}, "c": {"parent": "main"}, "_comment": "none"}}"""
    check(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"agents": {"a": {"cwd": "none"}}}',
            'config.agent-cwd "none" … /home/co/none does not exist: agent "a"',
        ),
        ('{"agents": {"a": {"cwd": "api/x.txt"}}}', 'config.agent-cwd "api/x.txt" … is not a directory'),
        ('{"agents": {"a": {"role": "boss"}}}', 'config.enum "boss" … manager'),
        (
            '{"agents": {"lead": {}, "b": {"parent": "leda"}}}',
            'config.agent-parent "leda" … did you mean "lead"?',
        ),
        ('{"agents": {"a": {"parent": "zzz"}}}', 'config.agent-parent "zzz" … Define it, or remove this.'),
        ('{"agents": {"a": {"parent": "a"}}}', 'config.agent-cycle "a" … a → a'),
        (
            '{"permissions": {"level": "sandboxed"}, "agents": {"a": {"permissions": {"level": "trusted"}}}}',
            'config.agent-permissions "trusted" … "sandboxed" of the folder',
        ),
        (
            '{"permissions": {"allow": ["fs.*"]}, "agents": {"a": {"permissions": {"allow": ["net.*"]}}}}',
            'config.agent-permissions "net.*" … within "fs.*"',
        ),
        (
            '{"agents": {"a": {"permissions": {"level": "yolo"}}}}',
            'config.scope "yolo" … wider than the global',
        ),
        (
            '{"tools": {"disabled": ["fs.*"]}, "agents": {"a": {"tools": ["fs.read"]}}}',
            'config.agent-tool "fs.read" … tools.disabled contains "fs.*"',
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, expected: str) -> None:
    check(tmp_path, text, expected)


def test_wider_than_another_agent_and_a_cycle_of_two(tmp_path: Path) -> None:
    text = """{"agents": {
      "a": {"permissions": {"level": "worker"}},
      "main": {"parent": "b", "cwd": "none"},
      "b": {"parent": "a", "permissions": {"level": "sandboxed"}},
      "c": {"parent": "d"}, "d": {"parent": "c"}}}"""
    wider = 'config.agent-permissions "sandboxed" … "worker" of its parent "a"'
    own = 'config.agent-name "main" … the folder\'s own agent'
    one, two = 'config.agent-cycle "d" … c → d → c', 'config.agent-cycle "c" … d → c → d'
    check(tmp_path, text, own, wider, one, two)


def test_a_cycle_of_many_is_not_told_whole(tmp_path: Path) -> None:
    agents = {f"n{number}": {"parent": f"n{(number + 1) % 40}"} for number in range(40)}
    expected = [f'config.agent-cycle "n{(number + 1) % 40}" … parents: n{number} →' for number in range(40)]
    check(tmp_path, json.dumps({"agents": agents}), *expected)


BROKEN = {
    "tools": (
        {"p": {"tools": ["fs.*"]}, "c": {"parent": "p", "tools": ["fs.read", "net.get", "?s.read"]}},
        'config.agent-tool "net.get" … "p" above it has "fs.*"',
    ),
    "tools further up": (
        {
            "p": {"tools": ["fs.*"]},
            "m": {"parent": "p", "tools": ["*"]},
            "c": {"parent": "m", "tools": ["net.*"]},
        },
        'config.agent-tool "net.*" … "p" above it has "fs.*"',
    ),
    "no tools": (
        {"p": {"tools": []}, "c": {"parent": "p", "tools": ["*"]}, "d": {"parent": "p", "tools": []}},
        'config.agent-tool "*" … "p" above it has none',
    ),
    "a manager below a worker": (
        {"p": {"role": "worker"}, "c": {"parent": "p", "role": "manager"}},
        'config.agent-role "manager" … the worker "p"',
    ),
    "below one that has no role": (
        {"p": {}, "c": {"parent": "p", "role": "unified"}, "d": {"parent": "p", "role": "worker"}},
        'config.agent-role "unified" … only workers. Make it a worker, or make "p" a manager',
    ),
    "six deep": (
        {"n1": {}} | {f"n{number}": {"parent": f"n{number - 1}"} for number in range(2, 7)},
        'config.agent-depth "n5" … "n6" would be 6 deep',
    ),
    "no name": ({"a b": {"tools": []}}, 'config.agent-name "a b" … "a b" is not a valid agent name'),
    "a name with nothing said": ({".a": {}}, 'config.agent-name ".a" … it must not start with'),
    "what a set means": (
        {
            "p": {"permissions": {"allow": ["fs.*"]}},
            "c": {"parent": "p", "permissions": {"allow": ["fs.[r]*"]}},
        },
        'config.agent-permissions "fs.[r]*" … within "fs.*"',
    ),
}


@pytest.mark.parametrize(("agents", "expected"), BROKEN.values(), ids=BROKEN)
def test_what_could_not_be_started(tmp_path: Path, agents: dict[str, Any], expected: str) -> None:
    check(tmp_path, json.dumps({"agents": agents}), expected)


def test_what_the_fix_makes_of_it(tmp_path: Path) -> None:
    rest = '//- /home/co/.nexus3/mcp.json\n{"mcpServers": {"tickets": {"url": "https://x.y/z"}}}\n'
    agents = {
        "p": {"permissions": {"level": "worker"}, "tools": ["t*", "mcp__*"]},
        "c": {
            "parent": "p",
            "role": "manager",
            "tools": ["mcp__tickts__find", "tickts.*"],
            "permissions": {"level": "trusted"},
        },
    }
    tree = write_fixture(f"//- {PATH}\n{json.dumps({'agents': agents})}\n{rest}", tmp_path)
    problems = load_folder(tree, "/home/co").problems
    text = tree.files[tree.path(PATH)]
    for problem in sorted(problems, key=lambda one: one.span, reverse=True):
        text = fixed(text, problem.fix) or ""
    assert json.loads(text)["agents"]["c"] == {
        "parent": "p",
        "role": "worker",
        "tools": ["mcp__tickets__find", "tickets.*"],
        "permissions": {"level": "worker"},
    }


def test_a_directory_outside_the_folder(tmp_path: Path) -> None:
    text = """{"agents": {"up": {"cwd": "../other"}, "in": {"cwd": "../co/api"}, "led": {"cwd": "out"},
      "back": {"cwd": "in"}, "far": {"cwd": "{root}/home/other"}}}"""
    for name, target in (("out", "other"), ("in", "co/api")):
        link = tmp_path / "home/co" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "home" / target)
    check(
        tmp_path,
        text,
        'config.agent-cwd "../other" … /home/other is outside /home/co: agent "up" could work there only',
        'config.agent-cwd "out" … /home/co/out leads to /home/other, which is outside /home/co: agent "led"',
        'config.agent-cwd "/',
        rest="//- /home/other/x.txt\n",
    )


def test_of_a_directory_in_the_folder_its_own_agents_are_looked_at(tmp_path: Path) -> None:
    tree = write_fixture(
        """
        //- /home/co/.nexus3/config.json
        {"agents": {"a": {"permissions": {"level": "trusted"}}, "a b": {}}}
        //- /home/co/api/.nexus3/config.json
        {"permissions": {"level": "worker"},
         "agents": {"c": {"permissions": {"level": "sandboxed"}, "cwd": "none", "parent": "b"}, "c d": {}}}
        """,
        tmp_path,
    )
    pool = pool_of(tree, "/home/co")
    pool.spawn("b", "api")
    api = tree.path("/home/co/api/.nexus3/config.json")
    level, cwd, name, parent = (f"config.agent-{of}" for of in ("permissions", "cwd", "name", "parent"))
    seen = pool.get("b").snapshot.problems
    assert sorted(one.code for one in seen) == [cwd, name, parent, level]
    assert {one.path for one in seen} == {api}
    above = [one.code for one in load_folder(tree, "/home/co/api").problems if one.path != api]
    assert sorted(above) == [name, level]


def test_of_a_directory_the_opened_folder_says_how_far_up(tmp_path: Path) -> None:
    tree = write_fixture(
        """
        //- /home/co/.nexus3/config.json
        {"context": {"ancestor_depth": 1}}
        //- /home/co/api/.nexus3/config.json
        {"context": {"ancestor_depth": 3}}
        //- /home/co/api/in/x.txt
        """,
        tmp_path,
    )
    for folder, root, depth, told in (
        ("/home/co/api", "/home/co", 1, []),
        ("/home/co/api/in", "/home/co", 1, []),
        ("/home/co/api", "/home/co/api", 3, [PATH]),
    ):
        found = load_folder(tree, folder, root=root)
        assert [relative(tree, one.path) for one in found.problems] == told
        chain = found.effective.provenance["/context/ancestor_depth"]
        assert [(entry.value, entry.ignored) for entry in chain if entry.wins] == [(depth, False)]


SETTLED = {
    "agents": {
        "top": {"role": "manager", "tools": [f"s{number}.*" for number in range(20)]},
        "far": {"cwd": "none"},
    }
    | {f"a{n}": {"parent": "top", "tools": ["s1.x", f"q{n}.y"]} for n in range(20)}
}


def test_what_is_settled_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typing elsewhere only checks the directories again; changed settings, servers and texts count."""
    looked: list[str] = []
    meet = Patterns.meet

    def counted(patterns: Patterns, pattern: str) -> bool:
        looked.append(pattern)
        return meet(patterns, pattern)

    monkeypatch.setattr(Patterns, "meet", counted)
    files = {"NEXUS.md": "hi", "mcp.json": "{}", "config.json": json.dumps(SETTLED)}
    listed = "".join(f"//- /home/co/.nexus3/{name}\n{text}\n" for name, text in files.items())
    tree = write_fixture(listed, tmp_path)
    now, texts = load_folder(tree, "/home/co"), dict[str, str]()
    first = now.problems
    assert (len(first), len(looked)) == (21, 80)

    def typed(name: str, text: str) -> tuple[Problem, ...]:
        nonlocal now
        path = f"/home/co/.nexus3/{name}"
        texts[path] = text
        looked.clear()
        now = load_folder(
            tree, "/home/co", overlays=texts, previous=now, changed=frozenset({tree.path(path)})
        )
        return now.problems

    for text in ("h", "", "hi there"):
        assert (typed("NEXUS.md", text), looked) == (first, [])
    (tmp_path / "home/co/none").mkdir()
    assert ([one.code for one in typed("NEXUS.md", "x")], looked) == (["config.agent-tool"] * 20, [])
    servers = '{"mcpServers": {"q1x": {"url": "https://x.y/z"}}}'
    assert any("did you mean" in one.message for one in typed("mcp.json", servers)) and len(looked) == 80
    broken = typed("config.json", files["config.json"] + "}")
    assert {one.code for one in broken}.isdisjoint({"config.agent-tool"})
    assert len(typed("config.json", files["config.json"])) == 20
    fewer = json.dumps({"agents": SETTLED["agents"] | {"a1": {"parent": "top"}}})
    assert len(typed("config.json", fewer)) == 19


NAMES = ("n0", "n1", "n2", "n3", "n4", "n5", "n6")
ODD = ("n0", "é", "a b", "n1", "main", "n2", ".x")
PATTERNS = st.sampled_from([["*"], ["fs.*"], ["fs.*"], ["net.get"], ["fs.[r]*"], ["[fn]*", "x?"], []])
LEVEL = st.sampled_from([{"level": level} for level in LEVELS])
ALLOW = PATTERNS.map(lambda patterns: {"allow": patterns})
SAID: dict[str, st.SearchStrategy[Any]] = {
    "role": st.sampled_from(["manager", "unified", "worker", None]),
    "tools": PATTERNS | st.none(),
    "permissions": ALLOW | LEVEL | st.sampled_from([{}, {"deny": ["*"]}]),
}
MEANT = {
    "agent-tools": "config.agent-tool",
    "agent-role": "config.agent-role",
    "agent-depth": "config.agent-depth",
    "agent-permissions": "config.agent-permissions",
    "agent-id": "config.agent-name",
    "agent-exists": "config.agent-name",
}


@st.composite
def families(draw: st.DrawFn, said: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Agents with these values: each below the one before, or below any other."""
    straight = draw(st.sampled_from([True, True, False]))
    names = draw(st.sampled_from([NAMES, NAMES, ODD]))
    agents: dict[str, dict[str, Any]] = {}
    for number in range(draw(st.integers(3, 7))):
        others = [None, "main", "nobody", *names, *names[:number] * 4]
        before = names[number - 1] if number else "main"
        parent = before if straight else draw(st.sampled_from(others))
        agent = {"role": "manager"} | {key: draw(SAID[key]) for key in said}
        agents[names[number]] = agent if parent is None else agent | {"parent": parent}
    return agents


@pytest.mark.parametrize("said", [(), *((key,) for key in SAID), tuple(SAID)], ids=" ".join)
@settings(max_examples=80, deadline=None)
@given(st.data(), SAID["permissions"])
def test_what_nothing_is_said_of_can_be_started(
    said: tuple[str, ...], data: st.DataObject, may: dict[str, Any]
) -> None:
    """An error reports what cannot start: at the agent itself, or at one of its parents."""
    agents = data.draw(families(said))
    text = json.dumps({"permissions": may, "agents": agents})
    with tempfile.TemporaryDirectory() as root:
        fixture = f"//- /home/.nexus3/config.json\n{text}\n//- /home/co/x.txt\n"
        pool = pool_of(write_fixture(fixture, Path(root)), "/home/co")
        document = parse("/", text)
        wrong: dict[str, set[str]] = {}
        for problem in pool.main.snapshot.problems:
            assert problem.severity is Severity.ERROR
            wrong.setdefault(str(document.path_at(problem.span.start)[1]), set()).add(problem.code)
        refused = started(pool, agents)
        for name in agents:
            above = line(name, agents)
            assert (name in pool) is wrong.keys().isdisjoint(above), (name, wrong, refused)
        assert all(MEANT[code] in wrong[name] for name, code in refused.items())


def started(pool: AgentPool, agents: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Start all agents, parents first; returns the refused ones, with the code."""
    refused: dict[str, str] = {}
    for name in list(agents) * len(agents):
        above = agents[name].get("parent") or "main"
        if name not in pool and (above == "main" or above in pool):
            try:
                pool.spawn(name)
            except RequestError as error:
                refused[name] = error.code
    return refused


def line(name: str, agents: dict[str, dict[str, Any]]) -> list[str]:
    """An agent and its parents, up to the folder's own agent, an undefined one, or a repetition."""
    found = [name]
    while (above := agents.get(found[-1], {}).get("parent") or "main") not in ("main", *found):
        found.append(above)
    return found


def test_a_server_that_is_nearly_named(tmp_path: Path) -> None:
    rest = '//- /home/co/.nexus3/mcp.json\n{"mcpServers": {"github": {"url": "https://x.y/z"}}}\n'
    text = '{"agents": {"a": {"tools": ["githab.*", "github.pull", "git*.x"]}}}'
    check(tmp_path, text, 'config.agent-tool "githab.*" … did you mean "github.*"?', rest=rest)
    text = (
        '{"agents": {"a": {"tools": ["mcp__githab__*", "mcp__zzz__x", "mcp__git*__x", "mcp__*", "zzz.x"]}}}'
    )
    check(
        tmp_path,
        text,
        'config.agent-tool "mcp__githab__*" … did you mean "mcp__github__*"?',
        'config.agent-tool "mcp__zzz__x" … no MCP server "zzz". There are "github".',
        rest=rest,
    )


def test_a_server_where_there_is_none(tmp_path: Path) -> None:
    text = '{"agents": {"a": {"tools": ["mcp__tickets__find", "tickets.find", "*"]}}}'
    check(tmp_path, text, 'config.agent-tool "mcp__tickets__find" … gives "a" nothing')


@pytest.mark.parametrize(
    ("above", "tool", "wrong"),
    [
        ('"tools": ["git*"]', "github.*", True),
        ('"role": "manager"', "mcp__github__pull", True),
        ('"tools": ["*"]', "github.*", False),
        ('"tools": ["git*.pull"]', "github.*", False),
        ('"tools": ["fs.*"]', "fs.read", False),
    ],
)
def test_a_server_that_the_parent_was_not_granted(tmp_path: Path, above: str, tool: str, wrong: bool) -> None:
    rest = '//- /home/co/.nexus3/mcp.json\n{"mcpServers": {"github": {"url": "https://x.y/z"}}}\n'
    text = f'{{"agents": {{"a": {{{above}}}, "b": {{"parent": "a", "tools": ["{tool}"]}}}}}}'
    expected = [f'config.agent-tool "{tool}" … "a" above it has none'] if wrong else []
    check(tmp_path, text, *expected, rest=rest)


def test_a_directory_that_is_made_is_noticed(tmp_path: Path) -> None:
    tree = write_fixture(f'//- {PATH}\n{{"agents": {{"a": {{"cwd": "new"}}}}}}\n', tmp_path)
    before = load_folder(tree, "/home/co")
    assert tree.path("/home/co/new") in before.layers.watch
    Path(tree.path("/home/co/new")).mkdir()
    now = load_folder(tree, "/home/co", previous=before)
    assert ([one.code for one in before.problems], now.problems) == (["config.agent-cwd"], ())


def test_paths_are_those_of_the_layer(tmp_path: Path) -> None:
    tree = write_fixture(
        """
        //- /home/.nexus3/config.json
        {"agents": {"mine": {"cwd": "docs"}}}
        //- /home/co/.nexus3/config.json
        {"agents": {"api": {"cwd": "api"}, "none": {}}}
        //- /home/co/api/x.txt
        """,
        tmp_path,
    )
    layers = load_folder(tree, "/home/co/api").layers
    found = [configured_directory(layers, name) for name in ("mine", "api", "none")]
    assert found == [tree.path("/home/co/api/docs"), tree.path("/home/co/api"), None]
    assert layers.problems == ()


def test_what_is_given_counts_before_the_settings(tmp_path: Path) -> None:
    text = """{"agents": {"lead": {"role": "manager"},
      "api": {"cwd": "api", "task": "<set>", "parent": "lead",
      "model": "o3", "tools": ["fs.*"], "permissions": {"level": "worker"}}}}"""
    pool = pool_of(write_fixture(f"//- {PATH}\n{text}\n//- /home/co/api/x.txt\n", tmp_path), "/home/co")
    with pytest.raises(RequestError, match="'lead'"):
        pool.spawn("api")
    pool.spawn("lead")
    one = pool.view_as("api")
    two = pool.view_as(
        "api", ".", "worker", "<given>", parent="main", model="gpt-4o", tools=["*"], permissions={}
    )
    assert [(a.folder[-3:], a.task, a.model, a.tools, a.permissions.level) for a in (one, two)] == [
        ("api", "<set>", "o3", (("fs.*",),), "worker"),
        ("/co", "<given>", "gpt-4o", (("*",),), "trusted"),
    ]
