"""Tool definitions: merged by name, filtered by pattern, in a steady order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.tools import name_of, select


def check(names: list[list[str]], disabled: list[str], expected: list[str]) -> None:
    """Names of the tools that are left of several sources."""
    sources = [[{"name": name, "source": index} for name in source] for index, source in enumerate(names)]
    assert [f"{tool['name']}{tool['source']}" for tool in select(*sources, disabled=disabled)] == expected


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
    check(names, disabled, expected)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"name": "a"}, "a"),
        ({"type": "function", "function": {"name": "a"}}, "a"),
        ({"function": "a", "name": "b"}, "b"),
        ({"name": 5}, ""),
        ({}, ""),
    ],
)
def test_the_name_of_a_tool(tool: dict[str, Any], name: str) -> None:
    assert name_of(tool) == name


@given(st.permutations(["a", "b", "c", "fs.read"]))
def test_the_order_of_the_sources_does_not_matter_to_the_order(names: list[str]) -> None:
    assert [tool["name"] for tool in select([{"name": name} for name in names])] == ["a", "b", "c", "fs.read"]
