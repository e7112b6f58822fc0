"""`nexus mcp list` and `tools` say what servers cost, and what of it is sent at first."""

import json
import sys
from pathlib import Path

import pytest

from support.commands import output_of, use_home
from support.fixture import Fixture, write_fixture
from support.server_story import SERVER

CONFIG = {"provider": {"model": "gpt-4o"}, "tools": {"defer": "always", "disabled": ["mcp__notes__off"]}}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    tree = write_fixture(f"//- /home/a/.nexus3/config.json\n{json.dumps(CONFIG)}\n//- /home/b/x\n", tmp_path)
    texts = {"add_note": "Adds a note.", "find_notes": "Finds notes.", "off": "Is off."}
    for name in ("a", "b"):
        folder = Path(tree.path(f"/home/{name}"))
        entry = {"command": sys.executable, "args": [str(SERVER), tree.path("/home/a")], "cwd": "."}
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
    (Path(tree.path("/home/a")) / "tools.json").write_text(json.dumps(texts))
    return tree


def test_what_servers_cost(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    def run(action: str, *arguments: str, folder: str = "a") -> str:
        place = ("--in", tree.path(f"/home/{folder}"))
        return output_of(tree, capsys, "mcp", action, *arguments, *place)

    output_of(tree, capsys, "trust", tree.path("/home/a"))
    assert "window" not in run("list")  # nobody knows yet
    run("approve", "notes", "--yes")
    tools = run("tools", "notes")
    assert [line.split()[:4:2] for line in tools.splitlines() if "." in line and "tokens" not in line] == [
        ["add_note", "on"],
        ["find_notes", "on"],
        ["off", "left"],
    ]
    assert "tokens once the model has found them" in tools
    listed = run("list")
    cost = json.loads(run("list", "--json"))["tokens"]
    assert listed.splitlines()[-1] == (
        f"This server costs {cost} tokens, less than 1 % of the window of 128,000, of which {cost} are sent "
        "only when the model looks for them; it was not called in 30 days."
    )
    assert "not run here" in run("tools", "notes", folder="b")  # the same program in another folder


def test_a_file_with_a_broken_server_is_named(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    servers = {"mcpServers": {"good": {"command": sys.executable}, "bad": {"comand": "x"}}}
    Path(tree.path("/home/b/.mcp.json")).write_text(json.dumps(servers))
    text = output_of(tree, capsys, "mcp", "list", "--in", tree.path("/home/b"))
    assert "/b/.mcp.json has an error: none of its servers counts." in text
