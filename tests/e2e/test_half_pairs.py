"""Half a surrogate pair, wherever it comes from: conversations go on, and what has one already heals."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
import pytest

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.turn.manager import ContextManager
from support.editor import Editor, environ
from support.json_lines import json_lines

HALF = "\ud83d"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": f"x{HALF}"},
    {"role": "user", "content": [{"type": "text", "text": HALF}, {"type": "x", HALF: [HALF]}]},
    {
        "role": "assistant",
        "content": None,
        "toolCalls": [{"id": HALF, "name": HALF, "arguments": {HALF: HALF}}],
    },
    {"role": "tool", "content": HALF, "toolCallId": HALF, "name": HALF},
    {"role": "user", "content": "x", "meta": {"of": HALF}},
]


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    with Editor(tmp_path / "home") as opened:
        yield opened


def check(editor: Editor, folder: str, session: str) -> None:
    """A conversation can be read and continued."""
    editor.ask("session/messages", folder, session=session)
    editor.ask("context/assemble", folder, session=session, message="And now?")
    editor.ask("session/transcript", folder, session=session)
    editor.ask("session/append", folder, session=session, messages=[{"role": "user", "content": "y"}])


@pytest.mark.parametrize("message", MESSAGES, ids=["text", "parts", "call", "result", "metadata"])
def test_an_import_with_one(editor: Editor, tmp_path: Path, message: dict[str, Any]) -> None:
    root = editor.tree("//- /AGENTS.md\nUse tabs.\n").root
    editor.hello(root)
    editor.ask("session/append", root, session="main", messages=[{"role": "user", "content": "x"}])
    (exported,) = [editor.ask("session/export", root, session="main")]
    lines = [json.loads(line) for line in exported["text"].splitlines()]
    lines[0]["session"] = "other"
    lines[1]["messages"] = [message]
    lines[1].pop("counts", None)
    path = tmp_path / "other.jsonl"
    path.write_text(json_lines(lines))
    command = [sys.executable, "-m", "nexus_daemon", "sessions", "import", str(path), "--folder", root]
    variables = {**os.environ, **environ(editor.home)}
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    check(editor, root, "other")


def test_a_ledger_that_has_one_heals(editor: Editor, tmp_path: Path) -> None:
    root = editor.tree("//- /AGENTS.md\nUse tabs.\n").root
    editor.hello(root)
    editor.ask("session/append", root, session="main", messages=[{"role": "user", "content": "x"}])
    (path,) = Path(editor.home).rglob("ledger.db")
    with apsw.Connection(str(path)) as connection:
        last = connection.execute("SELECT max(id), turn, tokens FROM message").fetchone()
        assert last is not None
        number, turn, tokens = last
        data = json.dumps({"role": "user", "content": HALF})
        checksum = crc32(data.encode(), crc32(b"?", number + turn + tokens))
        connection.execute(
            "UPDATE message SET length = NULL, said = '?', data = ?, crc = ? WHERE id = ?",
            (data, checksum, number),
        )
    connection.close()
    with Editor(editor.home) as other:
        other.hello(root)
        check(other, root, "main")


def test_a_conversation_in_memory_is_what_the_ledger_has(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    chat = ContextManager(ledger=ledger, folder=str(tmp_path))
    chat.add(
        [Message("user", f"x{HALF}"), Message("assistant", None, (ToolCall(HALF, "look", {HALF: HALF}),))]
    )
    stored = ledger.history(str(tmp_path), "main")
    assert stored is not None
    assert [one.message for one in stored.messages] == chat.messages
    assert chat.messages[1].content == "x\ufffd"
    ledger.append(str(tmp_path), "main", NewTurn(messages=(Counted(Message("user", HALF), 1),), counter="c"))
    ledger.close()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("check_configuration", {"path": f"x{HALF}"}), ("add_memory", {"text": f"Never {HALF} do it."})],
)
def test_a_call_of_a_tool_with_one(editor: Editor, tool: str, arguments: dict[str, Any]) -> None:
    root = editor.tree("//- /AGENTS.md\nUse tabs.\n").root
    lines = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    text = json_lines({"jsonrpc": "2.0", **line} for line in lines)
    command = [sys.executable, "-m", "nexus_daemon", "mcp", "--write", "--folder", root]
    variables = {**os.environ, **environ(editor.home), "NEXUS_DAEMON": "off"}
    ended = subprocess.run(command, env=variables, input=text, capture_output=True, text=True, timeout=60)
    replies = [json.loads(line) for line in ended.stdout.splitlines()]
    assert "Traceback" not in ended.stderr
    (reply,) = [one for one in replies if one.get("id") == 2]
    assert "codec" not in json.dumps(reply) and "Unicode" not in json.dumps(reply), reply
    editor.hello(root)
    editor.ask("context/assemble", root, message="And now?")
