"""What a file inside a workspace may not set."""

import json
from typing import Any

import pytest

from nexus_context.config.merge import ConfigLayer, merge
from nexus_context.config.scope import restrict
from nexus_context.errors import Severity
from nexus_context.jsontext import parse
from support.fixture import split_files
from support.problems import fixed

GLOBAL = "/home/u/.nexus3/config.json"


def check(fixture: str, values: dict[str, Any], *expected: tuple[str, str, str]) -> None:
    """Effective values, and each warning's layer, text under the span and message."""
    layers = [ConfigLayer(path.strip("/"), parse(path, text.strip())) for path, text in split_files(fixture)]
    kept, problems = restrict(layers, global_path=GLOBAL)
    texts = {layer.document.path: layer.document.text for layer in layers}
    assert [(p.path.strip("/"), texts[p.path][slice(*p.span)], p.message) for p in problems] == list(expected)
    assert {(p.code, p.severity) for p in problems} <= {("config.scope", Severity.WARNING)}
    assert {pointer: merge(kept).get(pointer) for pointer in values} == values


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
    ("globally", "locally", "kept"),
    [
        ([], [], True),
        ([], ["a"], True),  # without a list everything is allowed: any list narrows
        (["a"], ["a"], True),
        (["a", "b"], ["b", "a", "c"], False),
        (["*"], ["a.*", "*", "**"], True),
        (["fs.*"], ["fs.*"], True),
        (["fs.*"], ["fs*"], False),
        (["fs.*.read"], ["fs.x.read"], False),
        (["fs.*.read"], ["fs.*.read"], True),
        (["*.r*"], ["x.read"], False),
        (["?"], ["*"], False),
    ],
)
def test_a_workspace_allows_nothing_more(globally: list[str], locally: list[str], kept: bool) -> None:
    """What is kept is covered without doubt; a pattern of another form is not taken apart."""
    layers = [
        ConfigLayer("global", parse("/g", json.dumps({"permissions": {"allow": globally}}))),
        ConfigLayer("local", parse("/l", json.dumps({"permissions": {"allow": locally}}))),
    ]
    restricted, problems = restrict(layers, global_path=GLOBAL)
    assert (problems == ()) is kept
    expected = [*globally, *(item for item in locally if item not in globally)] if kept else globally
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
                '"ancestor_depth" is ignored here: it must be known before this directory is looked at. '
                f"Set it in the folder's own config.json or in {GLOBAL}."
            ),
        ),
    )


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
