"""The tools of a request: the section that lists them, and which of them the permission level allows."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.agents import AgentPool
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.sections import MAX_SENTENCE
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext, Options, Request
from support.fixture import write_fixture
from support.folders import load_folder, load_inputs
from support.source_map import fragment_at

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
READ, WRITE = {"readOnlyHint": True}, {"readOnlyHint": False}
TOOLS: list[dict[str, Any]] = [
    {"name": "write", "description": "Writes a file. Overwrites it.", "annotations": WRITE},
    {"type": "function", "function": {"name": "ask", "description": "Asks\n  the user?\nOr not."}},
    {"name": "read", "description": "Reads a\n# file", "annotations": READ},
    {
        "name": "fetch",
        "description": "Reads e.g. v1.2 pages\n\nAt length.",
        "annotations": {**READ, "openWorldHint": True},
    },
    {"name": "list", "annotations": {**READ, "openWorldHint": False}},
    {"name": "long", "description": "x" * 500},
]


def check(root: Path, config: str, options: Options, expected: list[str]) -> AssembledContext:
    """Assemble with these tools; returns the names of the offered ones. Rows sum to the total."""
    files = f"//- /home/.nexus3/config.json\n{config}\n//- /home/a/NEXUS.md\nRules.\n"
    snapshot = load_folder(write_fixture(files, root), "/home/a")
    made = assemble(snapshot, ContextManager(), Request(options=options), now=NOW)
    assert list(made.prefix.tool_names) == expected
    assert sum(row.tokens for row in made.usage.rows) == made.usage.total
    spans = [fragment.span for fragment in made.prompt.fragments]
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
    assert spans[-1].end == len(made.system_prompt)
    return made


ALL = ["ask", "fetch", "list", "long", "read", "write"]
CONDENSED = "## Capabilities\n\nTools: 6 (ask, fetch, list, long, read, write)"
SUMMARY = f"""\
## Tools

- ask: Asks the user?
- fetch: Reads e.g. v1.2 pages
- list
- long: {"x" * (MAX_SENTENCE - 1)}…
- read: Reads a # file
- write: Writes a file."""


def test_the_section_lists_what_is_offered(tmp_path: Path) -> None:
    options = Options(additional_tools=TOOLS, additional_system_prompt="More.")
    made = check(tmp_path, '{"tools": {"summary": true}}', options, ALL)
    sections = made.system_prompt.split("\n\n---\n\n")
    assert sections[1:-1] == [CONDENSED, SUMMARY, "## Additional Instructions\n\nMore."]
    fragment = fragment_at(made.prompt, made.system_prompt.index("- read"))
    assert fragment is not None
    assert (fragment.section, fragment.title, fragment.path) == ("tools", "Tools", None)
    assert "Tools" in [row.label for row in made.usage.rows if row.category == "system"]
    # the order in which they are given does not matter; what is not offered is not listed
    turned = Options(additional_tools=TOOLS[::-1], additional_system_prompt="More.")
    again = check(tmp_path, '{"tools": {"summary": true}}', turned, ALL)
    assert again.prompt == made.prompt
    fewer = Options(additional_tools=TOOLS, disabled_tools=["l*"])
    made = check(tmp_path, '{"tools": {"summary": true}}', fewer, ["ask", "fetch", "read", "write"])
    assert "- list" not in made.system_prompt


def test_without_the_setting_or_a_tool_there_is_no_section(tmp_path: Path) -> None:
    made = check(tmp_path, "{}", Options(additional_tools=TOOLS), ALL)
    assert "## Tools" not in made.system_prompt
    assert made.system_prompt.split("\n\n---\n\n")[1:-1] == [CONDENSED]
    made = check(tmp_path, '{"tools": {"summary": true}}', Options(), [])
    assert "Tools" not in made.system_prompt


@pytest.mark.parametrize(
    ("level", "sandbox", "expected"),
    [
        ("yolo", None, ALL),
        ("trusted", None, ALL),
        ("trusted", True, ["fetch", "list", "read"]),
        ("sandboxed", None, ["fetch", "list", "read"]),
        ("sandboxed", False, ["fetch", "list", "read"]),  # a request cannot widen it
        ("worker", None, ["list", "read"]),
        ("worker", False, ["list", "read"]),
    ],
)
def test_levels_leave_tools_out(
    tmp_path: Path, level: str, sandbox: bool | None, expected: list[str]
) -> None:
    config = f'{{"permissions": {{"level": "{level}"}}}}'
    made = check(tmp_path, config, Options(additional_tools=TOOLS, sandbox=sandbox), expected)
    left_out = made.metadata.get("toolsLeftOut", {})
    assert sorted([*left_out, *expected]) == ALL
    if "write" in left_out:
        assert left_out["write"] == "not in a sandbox: it does not say that it only reads"
    if level == "worker":
        assert left_out["fetch"] == "not at this level: it says that it reaches outside"


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, []),
        ({"memory": {"knowledge": {"embeddings": {"enabled": True}}}}, []),
        ({"memory": {"knowledge": {"paths": ["docs"], "max_tokens": 0}}}, []),
        (
            {"memory": {"knowledge": {"paths": ["docs", "notes/*.md"]}}},
            ["Knowledge (files that are searched with each message, by words): docs, notes/*.md"],
        ),
        (
            {"memory": {"knowledge": {"paths": ["docs"], "embeddings": {"enabled": True}}}},
            ["Knowledge (files that are searched with each message, by words and by meaning): docs"],
        ),
        (
            {"agents": {"web": {}, "db": {"parent": "web"}}},
            ["Agents defined in the settings: db, web"],
        ),
    ],
)
def test_a_line_for_each_kind_that_there_is_something_of(
    tmp_path: Path, settings: dict[str, Any], lines: list[str]
) -> None:
    made = check(tmp_path, json.dumps(settings), Options(), [])
    assert check(tmp_path, json.dumps(settings), Options(), []).system_prompt == made.system_prompt
    section = made.system_prompt.partition("## Capabilities\n\n")[2].partition("\n\n---")[0]
    assert section.splitlines() == lines


@pytest.mark.parametrize(
    ("name", "role", "line"),
    [
        ("web", "manager", "Agents defined in the settings: db, ops"),
        ("web", "worker", "Agents defined in the settings: db"),
        ("db", "worker", None),
    ],
)
def test_an_agent_is_told_of_the_agents_that_it_may_start(
    tmp_path: Path, name: str, role: str, line: str | None
) -> None:
    config = '{"agents": {"web": {"role": "manager"}, "db": {"parent": "web"}, "ops": {}}}'
    tree = write_fixture(f"//- /home/.nexus3/config.json\n{config}\n//- /home/a/NEXUS.md\nRules.\n", tmp_path)
    inputs = load_inputs(tree.path("/home"))
    pool = AgentPool(load(tree.path("/home/a"), inputs), inputs)
    text = pool.view_as(name, role=role).prompt.text
    section = text.partition("## Capabilities\n\n")[2].partition("\n\n---")[0]
    assert section.splitlines() == ([] if line is None else [line])


def test_memory_that_can_be_queried_is_a_capability(tmp_path: Path) -> None:
    names = ["query_l2_memory", "query_l4_memory"]
    options = Options(memory_tools=True, disabled_tools=["query_l3_memory"])
    made = check(tmp_path, "{}", options, names)
    line = "\nMemory of conversations that you can query: what mattered in a session, all sessions\n"
    assert made.system_prompt.count(line) == 1


def test_memory_is_read_at_every_level(tmp_path: Path) -> None:
    names = ["query_l2_memory", "query_l3_memory", "query_l4_memory"]
    check(tmp_path, '{"permissions": {"level": "worker"}}', Options(memory_tools=True), names)
