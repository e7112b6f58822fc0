"""The agents that config.json names: where they are wrong, and what counts when they are started."""

from pathlib import Path

import pytest

from nexus_context.errors import RequestError
from nexus_context.layers.agents import configured_directory
from support.fixture import write_fixture
from support.folders import load_folder, relative
from support.pools import pool_of

PATH = "/home/co/.nexus3/config.json"


def check(root: Path, text: str, *expected: str, rest: str = "") -> None:
    """The problems of the folder's config.json, each as `code "the text there" … a part of what is said`."""
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
            'config.agent-tool "fs.read" … tools.disabled has "fs.*"',
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, expected: str) -> None:
    check(tmp_path, text, expected)


def test_wider_than_another_agent_and_a_cycle_of_two(tmp_path: Path) -> None:
    text = """{"agents": {
      "a": {"permissions": {"level": "worker"}},
      "b": {"parent": "a", "permissions": {"level": "sandboxed"}},
      "c": {"parent": "d"}, "d": {"parent": "c"}}}"""
    wider = 'config.agent-permissions "sandboxed" … "worker" of its parent "a"'
    check(tmp_path, text, wider, 'config.agent-cycle "d" … c → d → c', 'config.agent-cycle "c" … d → c → d')


def test_a_server_that_is_nearly_named(tmp_path: Path) -> None:
    rest = '//- /home/co/.nexus3/mcp.json\n{"mcpServers": {"github": {"url": "https://x.y/z"}}}\n'
    text = '{"agents": {"a": {"tools": ["githab.*", "github.pull", "git*.x"]}}}'
    check(tmp_path, text, 'config.agent-tool "githab.*" … did you mean "github.*"?', rest=rest)


@pytest.mark.parametrize(
    ("above", "tool", "wrong"),
    [
        ('"tools": ["fs.*"]', "github.*", True),
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
    with pytest.raises(RequestError, match="no agent 'lead'"):
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
