"""`init --adopt`: servers of other programs' files in a new mcp.json, without their secrets."""

import json
import os
from pathlib import Path
from typing import Any

from nexus_context.config.mcp import read_servers
from nexus_context.folder.init import InitPlan, plan_init
from nexus_context.text.json import parse
from support.fixture import write_fixture

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"


def check(tmp_path: Path, text: str) -> tuple[Any, list[tuple[str, ...]], list[tuple[str, str]]]:
    """The new mcp.json, what is adopted with its variables, and what is left and why."""
    fixture = write_fixture(text, tmp_path)
    folder = fixture.path("/a")
    before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    plan = plan_init(folder, adopt=True)
    assert {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()} == before
    written = dict(plan.create).get(os.path.join(folder, ".nexus3", "mcp.json"))
    value = None if written is None else json.loads(written)
    if written is not None:
        assert TOKEN not in written
        _, problems = read_servers(
            parse("mcp.json", written), origin="local", folder=folder, environ={}, which=lambda name: name
        )
        assert problems == ()
    return value, adopted(plan, folder), [(one.name, one.reason.replace(folder, "")) for one in plan.left]


def adopted(plan: InitPlan, folder: str) -> list[tuple[str, ...]]:
    return [(one.name, os.path.relpath(one.path, folder), *one.variables) for one in plan.adopted]


def test_servers_of_both_files_are_taken_once(tmp_path: Path) -> None:
    assert check(
        tmp_path,
        """
//- /a/.mcp.json
{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files@1.0.0"], "env": {"ROOT": "/srv"}},
                "web": {"type": "http", "url": "https://example.org/mcp", "disabled": true}}}
//- /a/.vscode/mcp.json
{"servers": {"files": {"command": "other"}, "db": {"command": "db", "env": {"KEY": "${input:key}"}}},
 "inputs": [{"id": "key", "type": "promptString"}, {"id": "other", "type": "promptString"}]}
""",
    ) == (
        {
            "servers": [
                {"name": "files", "command": ["npx", "-y", "files@1.0.0"], "env": {"ROOT": "/srv"}},
                {"name": "web", "type": "http", "url": "https://example.org/mcp", "enabled": False},
                {"name": "db", "command": ["db"], "env": {"KEY": "${input:key}"}},
            ],
            "inputs": [{"id": "key", "type": "promptString"}],
        },
        [("files", ".mcp.json"), ("web", ".mcp.json"), ("db", ".vscode/mcp.json")],
        [("files", "/.mcp.json has a server of this name, which counts.")],
    )


def test_no_secret_is_copied(tmp_path: Path) -> None:
    value, servers, left = check(
        tmp_path,
        f"""
//- /a/.mcp.json
{{"mcpServers": {{
  "one": {{"command": "one", "args": ["--token", "{TOKEN}"],
           "env": {{"GITHUB_TOKEN": "{TOKEN}", "MODE": "fast"}}}},
  "two": {{"command": "two", "env": {{"PGPASSWORD": "hunter2", "API_KEY": "${{API_KEY}}"}}}},
  "three": {{"command": "three", "env": {{"PGPASSWORD": "other"}}}},
  "four": {{"url": "https://example.org/mcp", "headers": {{"Authorization": "Bearer {TOKEN}"}}}}
}}}}
""",
    )
    assert value == {
        "servers": [
            {
                "name": "one",
                "command": ["one", "--token", "${TOKEN}"],
                "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "MODE": "fast"},
            },
            {
                "name": "two",
                "command": ["two"],
                "env": {"PGPASSWORD": "${PGPASSWORD}", "API_KEY": "${API_KEY}"},
            },
            {"name": "three", "command": ["three"], "env": {"PGPASSWORD": "${MCP_THREE_PGPASSWORD}"}},
            {
                "name": "four",
                "type": "http",
                "url": "https://example.org/mcp",
                "headers": {"Authorization": "Bearer ${FOUR_TOKEN}"},
            },
        ]
    }
    assert servers == [
        ("one", ".mcp.json", "GITHUB_TOKEN", "TOKEN"),
        ("two", ".mcp.json", "PGPASSWORD"),
        ("three", ".mcp.json", "MCP_THREE_PGPASSWORD"),
        ("four", ".mcp.json", "FOUR_TOKEN"),
    ]
    assert left == []


def test_what_cannot_be_taken_whole_is_left(tmp_path: Path) -> None:
    assert check(
        tmp_path,
        """
//- /a/.vscode/mcp.json
{"servers": {"env": {"command": "env", "envFile": ".env"}, "none": {"args": ["x"]}}}
""",
    ) == (
        {"servers": []},
        [],
        [("none", "It has errors: see nexus check."), ("env", "This would be lost: envFile.")],
    )


def test_a_file_of_ours_is_never_changed(tmp_path: Path) -> None:
    assert check(
        tmp_path,
        """
//- /a/.mcp.json
{"mcpServers": {"files": {"command": "files"}}}
//- /a/.nexus3/mcp.json
{"servers": []}
""",
    ) == (None, [], [("", "/.nexus3/mcp.json exists already, and is never changed.")])


def test_a_file_from_elsewhere_is_not_read(tmp_path: Path) -> None:
    fixture = write_fixture(
        '//- /other.json\n{"mcpServers": {"evil": {"command": "evil"}}}\n//- /a/x\n', tmp_path
    )
    Path(fixture.path("/a"), ".mcp.json").symlink_to(fixture.path("/other.json"))
    plan = plan_init(fixture.path("/a"), adopt=True)
    assert (plan.adopted, [one.reason for one in plan.left]) == (
        (),
        ["It cannot be read, or lies outside the folder."],
    )


def test_nothing_is_taken_without_a_word(tmp_path: Path) -> None:
    fixture = write_fixture('//- /a/.mcp.json\n{"mcpServers": {"files": {"command": "files"}}}\n', tmp_path)
    plan = plan_init(fixture.path("/a"))
    assert (plan.adopted, plan.left) == ((), ())
    assert '"servers": []' in dict(plan.create)[os.path.join(fixture.path("/a"), ".nexus3", "mcp.json")]


def test_a_file_of_any_content_is_no_crash(tmp_path: Path) -> None:
    for number, text in enumerate(
        ("", "[]", "{", '{"servers": 5, "inputs": 5}', '{"mcpServers": {"a": 5}, "inputs": [{"id": []}]}')
    ):
        value, servers, _ = check(tmp_path / str(number), f"//- /a/.mcp.json\n{text}\n//- /a/x\n")
        assert (value, servers) == ({"servers": []}, [])
