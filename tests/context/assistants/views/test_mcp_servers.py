"""The MCP servers in the settings of assistants: which are started in a folder; nothing else is told."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assistants.server_cases import CASES, ServerCase, write_case
from nexus_context.assistants.claude_code import settings as claude_code
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantServer, Surroundings
from nexus_context.assistants.views.mcp_servers import read_servers
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_file, write_fixture

S = '{"command": "secret-command", "args": ["--token", "secret"], "env": {"A": "secret"}, "url": "secret"}'
OPENCODE = '{"type": "local", "command": ["secret-command"], "environment": {"A": "secret"}}'


def check(
    fixture: str, name: str, root: Path, *, environ: Mapping[str, str] | None = None
) -> list[tuple[str, str, str, str]]:
    """Name, file, scope and start of each server in the folder `/work`."""
    tree = write_fixture(fixture.replace("$S", S).replace("$O", OPENCODE), root)
    surroundings = Surroundings(tree.path("/work"), tree.path("/home"), environ or {})
    servers = read_servers(name, PROGRAMS[name].settings(Disk(), surroundings), Disk())
    assert "secret" not in repr(servers)
    return [(each.name, each.path.removeprefix(tree.root), each.scope, each.start) for each in servers]


@pytest.mark.parametrize("case", [pytest.param(each, id=f"{each.program}: {each.name}") for each in CASES])
def test_the_servers_are_those_that_the_program_starts(case: ServerCase, tmp_path: Path) -> None:
    root = tmp_path.resolve()
    environ = write_case(case, root)
    profile = read_profile(case.program, Surroundings(str(root / "work"), str(root / "home"), environ))
    # `claude -p` does not ask
    started = [each.name for each in profile.servers if each.start != "off"]
    assert tuple(started) == case.started


def test_a_file_of_the_project_needs_approval(tmp_path: Path) -> None:
    fixture = """
//- /work/.mcp.json
{"mcpServers": {"one": $S, "two": $S}}
//- /.mcp.json
{"mcpServers": {"one": $S, "three": $S}}
//- /work/.claude/settings.json
{"enabledMcpjsonServers": ["two"]}
"""
    assert check(fixture, "claude-code", tmp_path) == [
        ("one", "/work/.mcp.json", "project", "asks"),
        ("three", "/.mcp.json", "parent", "asks"),
        ("two", "/work/.mcp.json", "project", "starts"),
    ]


def test_the_servers_of_an_organization_are_the_only_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(claude_code.MANAGED, sys.platform, str(tmp_path / "managed"))
    fixture = """
//- /managed/managed-mcp.json
{"mcpServers": {"theirs": $S}}
//- /home/.claude.json
{"mcpServers": {"mine": $S}}
//- /work/x
"""
    assert check(fixture, "claude-code", tmp_path) == [
        ("mine", "/home/.claude.json", "user", "off"),
        ("theirs", "/managed/managed-mcp.json", "managed", "starts"),
    ]


def test_the_scopes_of_opencode(tmp_path: Path) -> None:
    fixture = """
//- /home/.config/opencode/opencode.json
{"mcp": {"a": $O}}
//- /home/.opencode/opencode.json
{"mcp": {"b": $O}}
//- /opencode.json
{"mcp": {"c": $O}}
//- /.opencode/opencode.json
{"mcp": {"d": $O}}
//- /work/.opencode/opencode.json
{"mcp": {"e": $O}}
"""
    scopes = [scope for _, _, scope, _ in check(fixture, "opencode", tmp_path)]
    assert scopes == ["user", "user", "parent", "parent", "project"]


def test_codex_without_trust(tmp_path: Path) -> None:
    fixture = """
//- /work/.codex/config.toml
[mcp_servers.one]
command = "secret"
"""
    assert check(fixture, "codex", tmp_path) == [("one", "/work/.codex/config.toml", "project", "off")]


def test_gemini_copilot_and_cursor(tmp_path: Path) -> None:
    fixture = """
//- /home/.gemini/settings.json
{"mcpServers": {"one": $S, "two": $S, "four": $S}, "mcp": {"excluded": ["two"]}}
//- /work/.gemini/settings.json
{"mcpServers": {"three": $S, "one": $S}, "mcp": {"allowed": ["one", "two", "three"]}}
//- /work/.vscode/mcp.json
{"servers": {"code": $S}, "inputs": []}
//- /work/.mcp.json
{"mcpServers": {"portable": $S, "code": $S}}
//- /home/.copilot/mcp-config.json
{"mcpServers": {"mine": $S}}
//- /work/.cursor/mcp.json
{"mcpServers": {"near": $S}}
//- /home/.cursor/mcp.json
{"mcpServers": {"far": $S}}
"""
    assert check(fixture, "gemini", tmp_path) == [
        ("four", "/home/.gemini/settings.json", "user", "off"),
        ("one", "/work/.gemini/settings.json", "project", "starts"),
        ("three", "/work/.gemini/settings.json", "project", "starts"),
        ("two", "/home/.gemini/settings.json", "user", "off"),
    ]
    assert check(fixture, "copilot", tmp_path) == [
        ("code", "/work/.vscode/mcp.json", "project", "asks"),
        ("mine", "/home/.copilot/mcp-config.json", "user", "asks"),
        ("portable", "/work/.mcp.json", "project", "asks"),
    ]
    assert check(fixture, "cursor", tmp_path) == [
        ("far", "/home/.cursor/mcp.json", "user", "starts"),
        ("near", "/work/.cursor/mcp.json", "project", "starts"),
    ]


@pytest.mark.parametrize("name", tuple(PROGRAMS))
@pytest.mark.parametrize(
    "content", ["", "[]", '{"mcpServers": 5, "mcp": [], "servers": "x"}', "[" * 9_999, "\0", "{"]
)
def test_settings_that_make_no_sense_name_no_server(name: str, content: str, tmp_path: Path) -> None:
    for path in (
        *("home/.claude.json", "work/.mcp.json", "home/.codex/config.toml", "work/opencode.json"),
        *("work/.gemini/settings.json", "work/.vscode/mcp.json", "work/.cursor/mcp.json"),
    ):
        write_file(tmp_path / path, content)
    surroundings = Surroundings(str(tmp_path / "work"), str(tmp_path / "home"), {})
    assert read_servers(name, PROGRAMS[name].settings(Disk(), surroundings), Disk()) == ()


def test_a_large_state_of_claude_code_takes_nothing_from_the_files(tmp_path: Path) -> None:
    tree = write_fixture("//- /work/CLAUDE.md\nRules.\n//- /home/x\n", tmp_path)
    state = {"history": "x" * 6_000_000, "mcpServers": {"one": {}}}
    Path(tree.path("/home/.claude.json")).write_text(json.dumps(state))
    Path(tree.path("/work/other.md")).write_text("x" * 3_000_000)
    profile = read_profile("claude-code", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    assert [part.path for part in profile.parts if part.path] == [tree.path("/work/CLAUDE.md")]
    assert [each.name for each in profile.servers] == ["one"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"deniedMcpServers": [{"serverName": "b"}]}, "on off on"),
        ({"deniedMcpServers": [{"serverCommand": ["x", "1"]}]}, "off on on"),
        ({"deniedMcpServers": [{"serverUrl": "https://*.example/*"}]}, "on on off"),
        ({"deniedMcpServers": 5, "allowedMcpServers": "a"}, "on on on"),
        ({"allowedMcpServers": []}, "off off off"),
        ({"allowedMcpServers": [{"serverName": "a"}, {"serverName": "c"}]}, "on off on"),
        # once a command is named, processes are allowed by their command alone; addresses still by name
        ({"allowedMcpServers": [{"serverName": "a"}, {"serverCommand": ["y"]}]}, "off on off"),
        ({"allowedMcpServers": [{"serverName": "c"}, {"serverUrl": "https://b.example/"}]}, "off off off"),
        ({"allowedMcpServers": [{"serverName": "a"}, {"serverUrl": "https://*"}]}, "on off on"),
    ],
    ids=str,
)
def test_lists_of_allowed_and_denied_servers(settings: Any, expected: str, tmp_path: Path) -> None:
    url = {"type": "http", "url": "https://a.example/mcp"}
    servers = {"a": {"command": "x", "args": ["1"]}, "b": {"command": "y", "args": 5}, "c": url}
    tree = write_fixture("//- /work/x\n//- /home/x\n", tmp_path)
    write_file(tmp_path / "home/.claude.json", json.dumps({"mcpServers": servers}))
    write_file(tmp_path / "home/.claude/settings.json", json.dumps(settings))
    found = read_servers(
        "claude-code",
        PROGRAMS["claude-code"].settings(Disk(), Surroundings(tree.path("/work"), tree.path("/home"), {})),
        Disk(),
    )
    assert " ".join("off" if each.start == "off" else "on" for each in found) == expected


@pytest.mark.parametrize("stars", [1, 8, 400])
def test_a_pattern_of_addresses_takes_no_time(stars: int, tmp_path: Path) -> None:
    pattern = "*a" * stars + "b"
    tree = write_fixture("//- /work/x\n//- /home/x\n", tmp_path)
    write_file(
        tmp_path / "work/.claude/settings.json", json.dumps({"deniedMcpServers": [{"serverUrl": pattern}]})
    )
    server = {"type": "http", "url": "a" * 60}
    write_file(tmp_path / "work/.mcp.json", json.dumps({"mcpServers": {"a": server}}))
    surroundings = Surroundings(tree.path("/work"), tree.path("/home"), {})
    (found,) = read_servers("claude-code", PROGRAMS["claude-code"].settings(Disk(), surroundings), Disk())
    assert found.start == "asks"


def test_unsaved_settings_count(tmp_path: Path) -> None:
    path = str(tmp_path / "work" / ".mcp.json")
    os.makedirs(tmp_path / "work")
    surroundings = Surroundings(str(tmp_path / "work"), str(tmp_path / "home"), {})
    settings = PROGRAMS["claude-code"].settings(Disk(), surroundings)
    servers = read_servers("claude-code", settings, Disk({path: '{"mcpServers": {"new": {}}}'}))
    assert [msgspec.structs.astuple(each)[:2] for each in servers] == [("new", path)]


def test_every_assistant_has_rules() -> None:
    assert all(program.servers.rules for program in PROGRAMS.values())
    assert AssistantServer.__struct_fields__ == ("name", "path", "scope", "start", "reason")
