"""Lists in the settings that are too long: what is in force instead, and where that is reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_context.config.limits import ENDS, MOST_AGENTS, MOST_PATTERNS, REFUSES
from nexus_context.config.mcp import MOST_SERVERS
from nexus_context.errors import Severity
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.json import parse_pointer
from support.fixture import write_fixture
from support.folders import load_folder

FIRST = "reported at the first item past the limit"


def check(root: Path, local: Any, *problems: tuple[str, str], globally: Any = None) -> Snapshot:
    """The folder with these settings; its problems of limits: the marked text, and the message."""
    files = {"/home/co/.nexus3/config.json": local, "/home/.nexus3/config.json": globally or {}}
    tree = write_fixture("".join(f"//- {path}\n{json.dumps(value)}\n" for path, value in files.items()), root)
    snapshot = load_folder(tree, "/home/co")
    found = [one for one in snapshot.problems if one.code == "config.too-many"]
    texts = [snapshot.layers.texts[one.path][one.span.start : one.span.end] for one in found]
    assert [text for text, _ in problems] == texts
    for problem, (_, part) in zip(found, problems, strict=True):
        assert part in problem.message
        assert problem.severity is Severity.ERROR
    assert all(
        file.status == "loaded"
        for layer in snapshot.layers.layers
        for file in layer.files
        if file.kind == "config"
    )
    return snapshot


def names(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def at(place: str, value: Any) -> dict[str, Any]:
    section, *steps = (str(step) for step in parse_pointer(place))
    return {section: at("/" + "/".join(steps), value) if steps else value}


@pytest.mark.parametrize("place", [place for place in ENDS if place != "/context/sections"])
def test_a_list_ends(tmp_path: Path, place: str) -> None:
    most = ENDS[place]
    assert check(tmp_path, at(place, names(most))).effective.get(place) == names(most)
    problem = (f'"n{most}"', f"has more than {most:,} items: the rest does not count")
    longer = check(tmp_path, at(place, names(most + 5)), problem)
    assert longer.effective.get(place) == names(most)
    assert f"{place}/{most - 1}" in longer.effective.provenance
    assert f"{place}/{most}" not in longer.effective.provenance


def test_sections_end(tmp_path: Path) -> None:
    most = ENDS["/context/sections"]
    sections = [{"name": name, "content": f"<{name}>"} for name in names(most + 1)]
    problem = (json.dumps(sections[-1]), "the rest does not count")
    snapshot = check(tmp_path, {"context": {"sections": sections}}, problem)
    assert f"<n{most - 1}>" in snapshot.prompt.text
    assert f"<n{most}>" not in snapshot.prompt.text


@pytest.mark.parametrize("place", REFUSES)
def test_a_list_of_what_is_refused_stands_for_everything(tmp_path: Path, place: str) -> None:
    most = REFUSES[place]
    assert check(tmp_path, at(place, names(most))).effective.get(place) == names(most)
    problem = (f'"n{most}"', "until it is shorter it stands for everything")
    longer = check(tmp_path, at(place, names(most + 5)), problem)
    assert longer.effective.get(place) == ["*"]
    assert [entry.layer for entry in longer.effective.provenance[place] if entry.wins] == ["limit"]


def test_layers_count_together(tmp_path: Path) -> None:
    half = MOST_PATTERNS // 2
    globally = {"tools": {"disabled": names(half, "g")}}
    local = {"tools": {"disabled": names(half, "g") + names(half, "l")}}
    assert len(check(tmp_path, local, globally=globally).effective.get("/tools/disabled")) == MOST_PATTERNS
    local["tools"]["disabled"].append("last")
    problem = ('"last"', '"disabled" has more than 1,000 items')
    assert check(tmp_path, local, problem, globally=globally).effective.get("/tools/disabled") == ["*"]


@pytest.mark.parametrize("steps", [("tools",), ("permissions", "allow"), ("permissions", "deny")])
def test_an_agent_with_a_list_that_is_too_long_may_do_nothing(tmp_path: Path, steps: tuple[str, ...]) -> None:
    agent = {"role": "manager", **at("/" + "/".join(steps), names(MOST_PATTERNS + 1))}
    problem = (f'"n{MOST_PATTERNS}"', "until it is shorter the agent may do nothing")
    snapshot = check(tmp_path, {"agents": {"a/b": agent, "c": {"task": "x"}}}, problem)
    closed = {"level": "worker", "allow": [], "deny": ["*"]}
    agents = snapshot.effective.get("/agents")
    assert (agents["a/b"]["permissions"], agents["a/b"]["tools"], agents["a/b"]["role"]) == (
        closed,
        [],
        "manager",
    )
    assert agents["c"]["permissions"].get("level") is None
    assert "/agents/c/task" in snapshot.effective.provenance


def test_agents_past_the_limit_may_do_nothing(tmp_path: Path) -> None:
    agents: dict[str, Any] = {name: {"role": "manager"} for name in names(MOST_AGENTS + 3)}
    problem = (f'"n{MOST_AGENTS}"', "this one and those after it may do nothing")
    snapshot = check(tmp_path, {"agents": agents}, problem)
    lists = [agent.get("tools") for agent in snapshot.effective.get("/agents").values()]
    assert lists == [None] * MOST_AGENTS + [[]] * 3


def test_servers_past_the_limit_do_not_count(tmp_path: Path) -> None:
    servers = {name: {"url": "https://x.y/z"} for name in names(MOST_SERVERS + 2)}
    tree = write_fixture(f"//- /home/co/.nexus3/mcp.json\n{json.dumps({'servers': servers})}\n", tmp_path)
    snapshot = load_folder(tree, "/home/co")
    (problem,) = snapshot.problems
    assert (problem.code, problem.severity) == ("mcp.too-many", Severity.WARNING)
    text = snapshot.layers.texts[problem.path]
    assert text[problem.span.start : problem.span.end] == f'"n{MOST_SERVERS}"'
    assert [server.name for server in snapshot.layers.servers] == names(MOST_SERVERS)


def test_names_and_patterns_are_not_longer_than_255_characters(tmp_path: Path) -> None:
    local = {"tools": {"disabled": ["x" * 255, "x" * 256]}, "context": {"instruction_files": ["y" * 256]}}
    tree = write_fixture(f"//- /home/co/.nexus3/config.json\n{json.dumps(local)}\n", tmp_path)
    problems = [(one.code, one.message) for one in load_folder(tree, "/home/co").problems]
    assert problems == [
        ("config.too-long", 'Item 2 of "disabled" has 256 characters, and 255 are allowed. Shorten it.'),
        (
            "config.too-long",
            'Item 1 of "instruction_files" has 256 characters, and 255 are allowed. Shorten it.',
        ),
    ]
