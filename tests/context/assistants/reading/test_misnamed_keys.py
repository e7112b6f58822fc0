"""Servers whose `url` or `command` has another name: what to write instead, and a fix that works."""

from pathlib import Path

import pytest

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Problem
from support.fixture import write_fixture

FILES = {
    "claude-code": (".mcp.json", "mcpServers"),
    "copilot": (".vscode/mcp.json", "servers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
}


def problems_of(program: str, path: Path) -> list[Problem]:
    work = next(parent for parent in path.parents if parent.name == "work")
    surroundings = Surroundings(str(work), "/nobody", {})
    return [problem for problem in read_profile(program, surroundings).problems if problem.path == str(path)]


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize(
    ("server", "remedy"),
    [
        ('{"type": "http", "uri": "https://docs.example/mcp"}', "Write `url` in place of `uri`."),
        ('{"serverUrl": "https://docs.example/mcp"}', "Write `url` in place of `serverUrl`."),
        ('{"args": ["a@1"], "cmd": "npx"}', "Write `command` in place of `cmd`."),
        ('{"Command": "npx"}', "Write `command` in place of `Command`."),
    ],
)
def test_a_key_that_is_almost_right(program: str, server: str, remedy: str, tmp_path: Path) -> None:
    file, key = FILES[program]
    text = f'{{"{key}": {{"docs": {server}}}}}'
    path = Path(write_fixture(f"//- /work/{file}\n{text}\n", tmp_path).path(f"/work/{file}"))
    (problem,) = problems_of(program, path)
    assert problem.message.endswith(remedy)
    assert problem.fix is not None
    (edit,) = problem.fix.edits
    path.write_text(path.read_text()[: edit.span.start] + edit.text + path.read_text()[edit.span.end :])
    assert problems_of(program, path) == []


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize("server", ['{"args": []}', '{"url": ""}', '{"command": ""}'])
def test_a_server_without_any_such_key(program: str, server: str, tmp_path: Path) -> None:
    file, key = FILES[program]
    text = f'{{"{key}": {{"docs": {server}}}}}'
    path = Path(write_fixture(f"//- /work/{file}\n{text}\n", tmp_path).path(f"/work/{file}"))
    (problem,) = problems_of(program, path)
    assert "in place of" not in problem.message
