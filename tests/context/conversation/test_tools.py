"""Tool definitions: merged by name, filtered by pattern and permission, in a stable order."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.tools import Filter, name_of, select, tool_rows
from nexus_context.errors import RequestError
from nexus_context.tokens import SimpleTokenCounter


@pytest.mark.parametrize(
    ("names", "disabled", "expected"),
    [
        ([], [], []),
        ([["b", "a"]], [], ["a0", "b0"]),
        ([["b", "a"], ["b", "c"]], [], ["a0", "b1", "c1"]),
        ([["fs.read", "fs.write", "web"]], ["fs.*"], ["web0"]),
        ([["fs.read", "FS.read"]], ["fs.*"], ["FS.read0"]),
        ([["a", "b"]], ["*"], []),
        ([["a", "b"]], ["c", "?"], []),
    ],
)
def test_selection(names: list[list[str]], disabled: list[str], expected: list[str]) -> None:
    """Names of the tools that remain of several sources."""
    sources = [[{"name": name, "source": index} for name in source] for index, source in enumerate(names)]
    selection = select(*sources, rules=Filter(disabled=tuple(disabled)))
    assert [f"{tool['name']}{tool['source']}" for tool in selection.tools] == expected
    gone = {name for source in names for name in source} - {name_of(tool) for tool in selection.tools}
    assert selection.left_out == dict.fromkeys(sorted(gone), "disabled")


TOOLS: list[dict[str, Any]] = [
    {"name": "read", "permissions": ["fs.read"], "annotations": {"readOnlyHint": True}},
    {"name": "write", "permissions": ["fs.read", "fs.write"], "annotations": {"readOnlyHint": False}},
    {"name": "shell", "permissions": "process.run"},  # no list: it needs what it is called
    {"name": "fetch", "permissions": []},
    {"name": "ask", "permissions": [5], "annotations": {"readOnlyHint": "yes"}},
]
UNSAID = "not in a sandbox: it does not say that it only reads"


@pytest.mark.parametrize(
    ("rules", "left_out"),
    [
        (Filter(), {}),
        (Filter(deny=("fs.write",)), {"write": "fs.write is denied"}),
        (Filter(deny=("fs.*", "shell")), {"read": "fs.read", "write": "fs.read", "shell": "shell"}),
        (Filter(deny=("fetch", "ask")), {"fetch": "fetch", "ask": "ask"}),
        (Filter(deny=("read",)), {}),  # a permission's name, not the tool's
        (Filter(allow=("fs.*",)), {}),  # what says nothing of what it needs is left alone
        (Filter(allow=("fs.read",)), {"write": "fs.write is not allowed"}),
        (
            Filter(allow=("fs.*",), strict=True),
            {name: f"{name} is not allowed" for name in ("shell", "fetch", "ask")},
        ),
        (Filter(strict=True), {}),  # nothing was said of what is allowed
        (
            Filter(only=("fs.*", "a*")),
            {"shell": "the request does not allow shell", "fetch": "the request does not allow fetch"},
        ),
        (Filter(only=()), dict.fromkeys(["read", "write", "shell", "fetch", "ask"], "")),
        (
            Filter(allow=("fs.*",), only=("fs.read",)),  # each narrows
            dict.fromkeys(["write", "shell", "fetch", "ask"], ""),
        ),
        (Filter(sandbox=True), dict.fromkeys(["write", "shell", "fetch", "ask"], UNSAID)),
        (
            Filter(disabled=("read",), deny=("fs.read",), sandbox=True),
            {
                "read": "disabled",
                "write": "fs.read is denied",
                "shell": UNSAID,
                "fetch": UNSAID,
                "ask": UNSAID,
            },
        ),
    ],
)
def test_what_is_not_offered_is_told_why(rules: Filter, left_out: dict[str, str]) -> None:
    selection = select(TOOLS, rules=rules)
    assert {tool["name"] for tool in selection.tools} | selection.left_out.keys() == {
        tool["name"] for tool in TOOLS
    }
    assert selection.left_out.keys() == left_out.keys()
    for name, reason in selection.left_out.items():
        assert reason.startswith(left_out[name])


def test_a_name_with_a_dot_says_what_the_tool_needs() -> None:
    tools = [{"name": "fs.read"}, {"name": "network.fetch"}, {"name": "search"}]
    selection = select(tools, rules=Filter(allow=("fs.*",)))
    assert selection.left_out == {"network.fetch": "network.fetch is not allowed"}


def test_each_definition_is_a_row_of_what_it_costs() -> None:
    counter = SimpleTokenCounter()
    tools: list[dict[str, Any]] = [{"name": "a", "description": "x" * 400}, {"function": {"name": "b"}}]
    rows = tool_rows(tools, counter)
    assert [(row.category, row.label, row.exact) for row in rows] == [
        ("tools", "a", False),
        ("tools", "b", False),
    ]
    assert [row.tokens for row in rows] == [
        counter.count(msgspec.json.encode(tool).decode()) for tool in tools
    ]


def test_what_no_model_is_sent_of_a_definition_costs_nothing() -> None:
    tool: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object"}}
    filtered = tool | {"annotations": {"readOnlyHint": True}, "permissions": ["fs.read"]}
    (bare,), (row,) = (tool_rows([each], SimpleTokenCounter()) for each in (tool, filtered))
    assert row == bare


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"name": "a"}, "a"),
        ({"type": "function", "function": {"name": "a"}}, "a"),
        ({"function": "a", "name": "b"}, "b"),
        ({"type": "custom", "custom": {"name": "shell"}}, "shell"),
        ({"type": "custom", "name": "a", "input_schema": {}}, "a"),
        ({"type": "web_search_20250305", "name": "web_search"}, "web_search"),
        ({"type": "web_search"}, "web_search"),
        ({"type": "function"}, ""),
        ({"type": "function", "function": {}}, ""),
        ({"type": "custom", "custom": {}, "name": "a"}, ""),
        ({"name": 5}, ""),
        ({"name": " "}, ""),
        ({}, ""),
    ],
)
def test_the_name_of_a_tool(tool: dict[str, Any], name: str) -> None:
    assert name_of(tool) == name


@given(st.permutations(["a", "b", "c", "fs.read"]))
def test_the_order_of_the_sources_does_not_matter_to_the_order(names: list[str]) -> None:
    tools = select([{"name": name} for name in names]).tools
    assert [tool["name"] for tool in tools] == ["a", "b", "c", "fs.read"]


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([{"name": "a"}, {"description": "b"}], r"Tool 2 of the request has no name\."),
        ([{"type": "function", "function": {}}], "Tool 1 of the request has no name"),
        (["shell"], "Tool 1 of the request is of type str"),
    ],
)
def test_a_tool_without_a_name_is_refused(tools: list[Any], said: str) -> None:
    with pytest.raises(RequestError, match=said) as failed:
        select(tools)
    assert failed.value.code == "bad-tool"


def test_tools_of_every_form_stand_beside_one_another() -> None:
    custom = [{"type": "custom", "custom": {"name": name}} for name in ("shell", "patch")]
    assert select([*custom, {"type": "web_search"}]).tools == [custom[1], custom[0], {"type": "web_search"}]
