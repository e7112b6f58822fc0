"""`.mcp.json` as Claude Code takes it: servers that it skips, and files that it reads none of."""

import json
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.claude_code.mcp_file import check_unread_files, read_mcp_file
from nexus_context.assistants.reading.disk import Disk
from support.sentences import sentences

OK: dict[str, Any] = {"command": "server", "args": []}


def check(text: str, root: Path) -> tuple[list[str], list[str]]:
    """The names of the servers that start, and the messages."""
    path = root / ".mcp.json"
    path.write_text(text)
    file = read_mcp_file(Disk(), str(path))
    names = [name for name in file.servers if name not in file.skipped]
    return names, [sentence for each in file.problems for sentence in sentences(each.message)]


# started or not by Claude Code 2.1.330 itself
@pytest.mark.parametrize(
    ("entry", "starts"),
    [
        (OK, True),
        ({**OK, "type": "stdio"}, True),
        ({**OK, "type": "STDIO"}, False),
        ({**OK, "type": None}, False),
        ({**OK, "type": "local"}, False),
        ({**OK, "type": "http"}, False),
        ({**OK, "args": "x"}, False),
        ({**OK, "args": None}, False),
        ({"command": "server"}, True),
        ({"command": ""}, False),
        ({"command": "server --port 5"}, False),
        ({"command": "/opt/my tools/server"}, True),
        ({"command": "C:\\Program Files\\nodejs\\node.exe"}, True),
        ({"command": "${HOME}/my tools/run"}, True),
        ({"type": "http", "url": "http://127.0.0.1/mcp", "command": None}, True),
        ({"type": "http", "url": "http://127.0.0.1/mcp", "command": "npx foo"}, True),
        ({}, False),
        ("server", False),
        (None, False),
        ({**OK, "env": {"A": 1}}, False),
        ({**OK, "env": None}, False),
        ({**OK, "env": "A=1"}, False),
        ({**OK, "env": {"A": "${NOT_SET}"}}, True),
        ({**OK, "cwd": "/tmp"}, True),
        ({**OK, "timeout": "5"}, False),
        ({**OK, "disabled": True}, True),
        ({**OK, "enabled": False}, True),
        ({**OK, "alwaysAllow": ["x"]}, True),
        ({**OK, "url": "http://127.0.0.1/mcp"}, True),
        ({"url": "http://127.0.0.1/mcp"}, False),
        ({"type": "http", "url": "http://127.0.0.1/mcp"}, True),
        ({"type": "streamable-http", "url": "http://127.0.0.1/mcp"}, True),
        ({"type": "sse", "url": "http://127.0.0.1/mcp"}, True),
    ],
    ids=str,
)
def test_which_servers_start(entry: Any, starts: bool, tmp_path: Path) -> None:
    names, messages = check(json.dumps({"mcpServers": {"one": entry, "good": OK}}), tmp_path)
    assert names == (["one", "good"] if starts else ["good"])
    assert starts or messages


@pytest.mark.parametrize("name", ["ide", "workspace", "computer-use", "claude-in-chrome", ""])
def test_names_of_its_own(name: str, tmp_path: Path) -> None:
    assert check(json.dumps({"mcpServers": {name: OK, "good": OK}}), tmp_path)[0] == ["good"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"servers": {"a": {"command": "x"}}}',
            snapshot(
                (
                    [],
                    [
                        "Claude Code reads no server of this file.",
                        "`servers` is a key of VS Code; Claude Code reads `mcpServers`.",
                    ],
                )
            ),
        ),
        (
            '{"a": {"command": "x"}}',
            snapshot(
                ([], ["Claude Code reads no server of this file.", "It needs `mcpServers`, an object."])
            ),
        ),
        (
            '{"mcpServers": []}',
            snapshot(
                ([], ["Claude Code reads no server of this file.", "It needs `mcpServers`, an object."])
            ),
        ),
        (
            '{"mcpServers": {"a": {"command": "x"}},}',
            snapshot(
                (
                    [],
                    [
                        "Claude Code reads no server of this file.",
                        "Illegal trailing comma before end of object: remove it.",
                    ],
                )
            ),
        ),
        (
            '// servers\n{"mcpServers": {}}',
            snapshot(
                (
                    [],
                    [
                        "Claude Code reads no server of this file.",
                        'Comments are not JSON: remove it, or keep it as a "_comment" key.',
                    ],
                )
            ),
        ),
        ('\ufeff{"mcpServers": {"a": {"command": "x"}}}', snapshot((["a"], []))),
        (
            '{"mcpServers": {"a": {"command": "x", "disabled": true}}}',
            snapshot(
                (
                    ["a"],
                    [
                        "Claude Code ignores `disabled`: the server 'a' starts.",
                        "To turn it off, add its name to `disabledMcpjsonServers` in settings.",
                    ],
                )
            ),
        ),
        (
            '{"mcpServers": {"a": {"url": "https://a.example/mcp"}}}',
            snapshot(
                (
                    [],
                    [
                        "Claude Code skips the server 'a'.",
                        "A server with `url` needs `type`: `http` or `sse`.",
                    ],
                )
            ),
        ),
    ],
    ids=str,
)
def test_what_is_said(text: str, expected: Any, tmp_path: Path) -> None:
    assert check(text, tmp_path) == expected


def test_files_that_no_program_reads(tmp_path: Path) -> None:
    for name in (".claude/mcp.json", "mcp.json", "sub/mcp.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"mcpServers": {}}')
    problems = [each.message for each in check_unread_files(Disk(), str(tmp_path))]
    assert problems == snapshot(
        [
            "No program reads .claude/mcp.json. Claude Code reads the servers of a project in .mcp.json.",
            "No program reads mcp.json. Claude Code reads the servers of a project in .mcp.json.",
        ]
    )
