"""What a file inside a workspace may not set."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.config.merge import ConfigLayer, merge
from nexus_context.config.patterns import Patterns, servers_named
from nexus_context.config.scope import LEVELS, restrict
from nexus_context.errors import Severity
from nexus_context.text.json import parse
from support.fixture import split_files
from support.problems import fixed

GLOBAL = "/home/u/.nexus3/config.json"


def check(fixture: str, values: dict[str, Any], *expected: tuple[str, str, str]) -> None:
    """Effective values, and each warning's layer, text under the span and message."""
    files = [(path.strip("/"), parse(path, text.strip())) for path, text in split_files(fixture)]
    layers = [
        ConfigLayer(name, document, depth="sets" if name == "local" else "above") for name, document in files
    ]
    restricted, problems = restrict(layers, global_path=GLOBAL)
    texts = {layer.document.path: layer.document.text for layer in layers}
    assert [(p.path.strip("/"), texts[p.path][slice(*p.span)], p.message) for p in problems] == list(expected)
    assert {(p.code, p.severity) for p in problems} <= {("config.scope", Severity.WARNING)}
    assert {pointer: merge(restricted).get(pointer) for pointer in values} == values


WHERE = "a file inside a workspace must not decide where your requests, keys and sessions go"


def test_where_requests_and_keys_go() -> None:
    check(
        """
        //- /global
        {"provider": {"base_url": "https://a", "api_key_env": "KEY", "headers": {"A": "1"}}}
        //- /local
        {"provider": {"base_url": null, "model": "m", "headers": {"B": "2"}},
         "ledger": {"_comment": 1, "url": "u"}}
        """,
        {
            "/provider/base_url": "https://a",
            "/provider/api_key_env": "KEY",
            "/provider/headers": {"A": "1"},
            "/provider/model": "m",
            "/ledger/url": None,
        },
        ("local", '"base_url"', f'"base_url" is ignored here: {WHERE}. Set it in {GLOBAL}.'),
        ("local", '"headers"', f'"headers" is ignored here: {WHERE}. Set it in {GLOBAL}.'),
        ("local", '"url"', f'"url" is ignored here: {WHERE}. Set it in {GLOBAL}.'),
    )


def test_which_model_is_loaded() -> None:
    where = "a file inside a workspace must not decide which model is loaded"
    check(
        """
        //- /global
        {"memory": {"knowledge": {"embeddings": {"model": "m"}}}}
        //- /local
        {"memory": {"knowledge": {"embeddings": {"enabled": true, "model": "n"}}}}
        """,
        {"/memory/knowledge/embeddings/enabled": True, "/memory/knowledge/embeddings/model": "m"},
        ("local", '"model"', f'"model" is ignored here: {where}. Set it in {GLOBAL}.'),
    )


@pytest.mark.parametrize("locally", ["true", "null"])
def test_conversations_stay_off(locally: str) -> None:
    why = "the global file turns it off"
    check(
        f"""
        //- /global
        {{"views": {{"conversations": false}}}}
        //- /local
        {{"views": {{"show": "codex", "conversations": {locally}}}}}
        """,
        {"/views/conversations": False, "/views/show": "codex"},
        ("local", '"conversations"', f'"conversations" is ignored here: {why}. Set it in {GLOBAL}.'),
    )
    check(
        """
        //- /global
        {"views": {"conversations": true}}
        //- /local
        {"views": {"conversations": false}}
        """,
        {"/views/conversations": False},
    )


def test_the_global_file_and_the_defaults_may_set_everything() -> None:
    check(
        """
        //- /defaults
        {"ledger": {"path": "a"}, "permissions": {"level": "sandboxed"}, "context": {"ancestor_depth": 1}}
        //- /global
        {"ledger": {"path": "p"}, "permissions": {"level": "yolo"}, "provider": {"headers": {"A": "b"}}}
        """,
        {"/ledger/path": "p", "/permissions/level": "yolo", "/provider/headers": {"A": "b"}},
    )


@pytest.mark.parametrize(
    ("globally", "locally", "effective"),
    [
        ("{}", "yolo", "trusted"),
        ("{}", "trusted", "trusted"),
        ("{}", "worker", "worker"),
        ('{"permissions": {"level": "worker"}}', "sandboxed", "worker"),
        ('{"permissions": {"level": "yolo"}}', "trusted", "trusted"),
        ('{"permissions": {"level": "yolo"}}', "yolo", "yolo"),
    ],
)
def test_levels(globally: str, locally: str, effective: str) -> None:
    wide = {"yolo": 3, "trusted": 2, "sandboxed": 1, "worker": 0}
    limit = next((level for level in wide if level in globally), "trusted")
    message = f'"{locally}" is ignored here: it is wider than the global "{limit}". Set it in {GLOBAL}.'
    check(
        f'//- /global\n{globally}\n//- /local\n{{"permissions": {{"level": "{locally}", "deny": ["x"]}}}}',
        {"/permissions/level": effective, "/permissions/deny": ["x"]},
        *([("local", f'"{locally}"', message)] if wide[locally] > wide[limit] else []),
    )


def test_an_agents_level() -> None:
    check(
        """
        //- /ancestor:x
        {"agents": {"a": {"permissions": {"level": "yolo"}}, "b": {"permissions": {"level": "worker"}}}}
        """,
        {"/agents/a/permissions/level": None, "/agents/b/permissions/level": "worker"},
        (
            "ancestor:x",
            '"yolo"',
            f'"yolo" is ignored here: it is wider than the global "trusted". Set it in {GLOBAL}.',
        ),
    )


def dropped(globally: dict[str, Any], locally: dict[str, Any]) -> tuple[str, list[str]]:
    """The effective agent of two files, as JSON, and the messages about ignored values."""
    layers = [
        ConfigLayer("global", parse("/g", json.dumps({"agents": {"a": globally}}))),
        ConfigLayer("local", parse("/l", json.dumps({"agents": {"a": locally}}))),
    ]
    restricted, problems = restrict(layers, global_path=GLOBAL)
    text = layers[1].document.text
    messages = [
        f"{text[slice(*one.span)]}: {one.message.removesuffix(f' Set it in {GLOBAL}.')}" for one in problems
    ]
    assert all(fixed(text, problem.fix) != text for problem in problems)
    return json.dumps(merge(restricted).get("/agents/a")), messages


@pytest.mark.parametrize(
    ("globally", "locally", "messages"),
    [
        (
            {"permissions": {"level": "sandboxed"}},
            {"permissions": {"level": "trusted"}},
            '"trusted": "trusted" is ignored here: it is wider than the "sandboxed" of the global agent "a".',
        ),
        (
            {"permissions": {"level": "yolo"}},
            {"permissions": {"level": "yolo"}},
            '"yolo": "yolo" is ignored here: it is wider than the global "trusted".',
        ),
        (
            {"permissions": {"level": "worker"}},
            {"permissions": {"level": None}},
            'null: null is ignored here: it removes the "worker" of the global agent "a".',
        ),
        (
            {"permissions": {"allow": ["fs.*"]}},
            {"permissions": {"allow": ["fs.read", "*"]}},
            '"allow": "allow" is ignored here: it allows "*", which the global agent "a" is not allowed.',
        ),
        (
            {"tools": ["fs.read"]},
            {"tools": ["*"]},
            '"tools": "tools" is ignored here: it names "*", which the global agent "a" does not have.',
        ),
        (
            {"tools": []},
            {"tools": ["x"]},
            '"tools": "tools" is ignored here: it names "x", which the global agent "a" does not have.',
        ),
        (
            {"tools": ["fs.read"]},
            {"tools": None},
            '"tools": "tools" is ignored here: null removes the list of the global agent "a".',
        ),
        (  # `git*` names tools, and no server
            {"tools": ["git*"]},
            {"tools": ["github.pull"]},
            (
                '"tools": "tools" is ignored here: it names "github.pull", which the global agent "a" does '
                "not have."
            ),
        ),
        (
            {"role": "worker"},
            {"role": "manager"},
            '"manager": "manager" is ignored here: it is more than the global agent "a", a "worker".',
        ),
        (
            {"role": "manager"},
            {"role": "unified"},
            (
                '"unified": "unified" is ignored here: the global agent "a" is a "manager", and here it can '
                'only be made a "worker".'
            ),
        ),
        (
            {},
            {"role": "manager"},
            '"manager": "manager" is ignored here: it is more than the global agent "a", a "worker".',
        ),
        (
            {"role": None},
            {"role": "unified"},
            '"unified": "unified" is ignored here: it is more than the global agent "a", a "worker".',
        ),
        (
            {"task": "x"},
            {"tools": ["*"]},
            (
                '"tools": "tools" is ignored here: "*" can name an MCP server, and the global agent "a" '
                "names none."
            ),
        ),
        (
            {"tools": None},
            {"tools": ["Read", "github.pull"]},
            (
                '"tools": "tools" is ignored here: "github.pull" can name an MCP server, and the global '
                'agent "a" names none.'
            ),
        ),
        (
            {"parent": "b"},
            {"parent": None},
            ('null: null is ignored here: the global agent "a" is below "b", and never has more than that.'),
        ),
    ],
)
def test_what_the_global_file_says_of_an_agent(
    globally: dict[str, Any], locally: dict[str, Any], messages: str
) -> None:
    assert dropped(globally, locally) == (dropped(globally, {})[0], [messages])


@pytest.mark.parametrize(
    ("globally", "locally"),
    [
        ({}, {"role": "worker", "tools": ["git*", "Read"], "parent": "b"}),
        ({}, {"role": None, "tools": [], "permissions": {"level": "trusted", "allow": ["*"]}}),
        ({"role": "manager"}, {"role": "worker"}),
        ({"role": "worker"}, {"role": None}),
        ({"parent": "main"}, {"parent": "b"}),
        ({"parent": "b"}, {"parent": "b"}),
        ({"tools": ["fs.*", "git.*"]}, {"tools": ["fs.read", "git.log"]}),
        ({"tools": []}, {"tools": []}),
        ({"tools": None}, {"tools": ["Read"]}),
        ({}, {"tools": None}),
        ({"permissions": {"level": "trusted"}}, {"permissions": {"level": "worker", "deny": ["x"]}}),
        ({"permissions": {"allow": []}}, {"permissions": {"allow": ["fs.read"]}}),
        ({"task": "a", "cwd": "x", "model": "m"}, {"task": "b", "cwd": "y", "model": None}),
    ],
)
def test_what_a_workspace_may_say_of_a_global_agent(
    globally: dict[str, Any], locally: dict[str, Any]
) -> None:
    assert dropped(globally, locally)[1] == []


LISTS = st.lists(st.sampled_from(["*", "fs.*", "fs.r*", "git*", "git.log", "mcp__git__*"]), max_size=2)
AGENTS = st.fixed_dictionaries(
    {
        "tools": LISTS | st.none(),
        "permissions": st.fixed_dictionaries({"allow": LISTS, "level": st.sampled_from([None, *LEVELS])}),
    },
    optional={
        "role": st.sampled_from([None, "manager", "worker", "unified"]),
        "parent": st.sampled_from([None, "main", "b", "c"]),
    },
)


@settings(max_examples=300)
@given(AGENTS, st.lists(AGENTS, min_size=1, max_size=2))
def test_no_workspace_widens_an_agent(globally: dict[str, Any], locally: list[dict[str, Any]]) -> None:
    layers = [ConfigLayer("global", parse("/g", json.dumps({"agents": {"a": globally}})))]
    for number, agent in enumerate(locally):
        name = "local" if number else "ancestor:x"
        layers.append(ConfigLayer(name, parse(f"/{number}", json.dumps({"agents": {"a": agent}}))))
    now = merge(restrict(layers, global_path=GLOBAL)[0]).get("/agents/a")
    own, may = globally.get("permissions", {}), now["permissions"]
    if own.get("level"):
        assert LEVELS.index(may["level"] or "trusted") <= LEVELS.index(own["level"])
    for word in ("fs.read", "fs.write", "git.log", "gitx", "mcp__git__x", "other"):
        if own.get("allow"):
            assert Patterns(own["allow"]).matches(word) or not Patterns(may["allow"]).matches(word)
        if globally.get("tools") is not None:
            assert Patterns(globally["tools"]).matches(word) or not Patterns(now["tools"]).matches(word)
    servers, granted = (
        [s for tool in each.get("tools") or () for s in servers_named(tool)] for each in (now, globally)
    )
    assert all(Patterns(granted).matches("git") or not Patterns([one]).matches("git") for one in servers)
    assert (now.get("role") or "worker") in (globally.get("role"), "worker")
    if globally.get("parent") not in (None, "main"):
        assert now["parent"] == globally["parent"]


def more(pattern: str) -> str:
    return (
        f'"allow" is ignored here: it allows "{pattern}", which the global file does not. Set it in {GLOBAL}.'
    )


def test_what_is_allowed_and_denied() -> None:
    check(
        """
        //- /global
        {"permissions": {"allow": ["fs.*", "git.log"], "deny": ["fs.delete"]}}
        //- /ancestor:x
        {"permissions": {"allow": ["fs.read", "network.*"], "deny": ["network.post"]}}
        //- /local
        {"permissions": {"allow": ["fs.read", "fs.w*"], "deny": []},
         "agents": {"a": {"permissions": {"allow": ["git.log"]}}, "b": {"permissions": {"allow": ["git.*"]}}}}
        """,
        {
            "/permissions/allow": ["fs.*", "git.log", "fs.read", "fs.w*"],
            "/permissions/deny": ["fs.delete", "network.post"],
            "/agents/a/permissions/allow": ["git.log"],
            "/agents/b/permissions/allow": None,
        },
        ("ancestor:x", '"allow"', more("network.*")),
        ("local", '"allow"', more("git.*")),
    )


@pytest.mark.parametrize(
    ("globally", "locally", "allowed"),
    [
        ([], [], True),
        ([], ["a"], True),  # without a list everything is allowed: any list narrows
        (["a"], ["a"], True),
        (["a", "b"], ["b", "a", "c"], False),
        (["*"], ["a.*", "*", "**"], True),
        (["fs.*"], ["fs.*"], True),
        (["fs.*"], ["fs*"], False),
        (["fs.*.read"], ["fs.x.read"], True),
        (["fs.*.read"], ["fs.*.read"], True),
        (["*.r*"], ["x.read"], True),
        (["?"], ["*"], False),
        (["[*"], ["[a]"], False),  # without its end a set is a bracket
        (["fs.[rw]*"], ["fs.read"], False),
    ],
)
def test_a_workspace_allows_nothing_more(globally: list[str], locally: list[str], allowed: bool) -> None:
    """A list that counts is certainly covered; sets of characters are not expanded."""
    layers = [
        ConfigLayer("global", parse("/g", json.dumps({"permissions": {"allow": globally}}))),
        ConfigLayer("local", parse("/l", json.dumps({"permissions": {"allow": locally}}))),
    ]
    restricted, problems = restrict(layers, global_path=GLOBAL)
    assert (problems == ()) is allowed
    expected = [*globally, *(item for item in locally if item not in globally)] if allowed else globally
    assert merge(restricted).get("/permissions/allow") == expected


def test_the_depth_of_ancestors() -> None:
    check(
        """
        //- /ancestor:x
        {"context": {"ancestor_depth": 9, "git": false}}
        //- /local
        {"context": {"ancestor_depth": 3}}
        """,
        {"/context/ancestor_depth": 3, "/context/git": False},
        (
            "ancestor:x",
            '"ancestor_depth"',
            (
                '"ancestor_depth" does not count for the opened folder: it must be known before this '
                f"directory is read. Set it in the opened folder's own config.json or in {GLOBAL}."
            ),
        ),
    )


DEPTH = '{"context": {"ancestor_depth": 9}}'


MARKS: dict[str, Literal["sets", "inside", "above"]] = {"!": "sets", ".": "inside"}


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["ancestor:x", "local!"], ["ancestor:x"]),
        (["ancestor:x"], ["ancestor:x"]),  # the opened folder has no file
        (["ancestor:x", "ancestor:co!", "ancestor:y.", "local."], ["ancestor:x"]),
        (["ancestor:co!", "local."], []),
        (["local."], []),
    ],
)
def test_only_the_opened_folder_says_how_far_up(names: list[str], paths: list[str]) -> None:
    """`!`: the opened folder; `.`: nothing is reported inside it, as the value is right for others."""
    layers = [
        ConfigLayer(name.strip("!."), parse(f"/{name}", DEPTH), depth=MARKS.get(name[-1], "above"))
        for name in names
    ]
    restricted, problems = restrict(layers, global_path=GLOBAL)
    assert [problem.path.strip("/!") for problem in problems] == paths
    chain = merge(restricted).provenance["/context/ancestor_depth"]
    assert {entry.layer: entry.wins for entry in chain if entry.document} == {
        name.strip("!."): name.endswith("!") for name in names
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"provider": 1, "ledger": [], "agents": {"a": 1}, "permissions": {"level": ["yolo"]}}',
        '{"permissions": {"allow": "*"}, "agents": {"a": {"permissions": {"allow": [1, null]}}}}',
    ],
)
def test_values_of_any_kind(text: str) -> None:
    check(f"//- /local\n{text}\n", {"/permissions/level": "trusted"} if text[:2] != '{"' else {})


def test_the_fix_removes_the_setting() -> None:
    text = '{"ledger": {"path": "p"}, "permissions": {"level": "yolo", "deny": []}}'
    _, problems = restrict([ConfigLayer("local", parse("/c", text))], global_path=GLOBAL)
    assert [fixed(text, problem.fix) for problem in problems] == [
        '{"ledger": {}, "permissions": {"level": "yolo", "deny": []}}',
        '{"ledger": {"path": "p"}, "permissions": {"deny": []}}',
    ]
