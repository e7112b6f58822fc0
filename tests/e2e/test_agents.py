"""Agents of a real daemon: they outlive it, two windows share them, files on the disk reach them."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from support.client import ReplyError
from support.editor import Editor, uri_of

FOLDER = """
//- /a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}}
//- /a/api/AGENTS.md
Rules of the api.
//- /a/web/AGENTS.md
Rules of the web.
"""


def check(editor: Editor, folder: Path, *agents: str) -> None:
    """These agents live, each with the rules of its own directory."""
    listed = editor.ask("agent/list", folder)["agents"]
    assert [one["agentId"] for one in listed] == list(agents)
    for one in listed:
        made = editor.ask("context/assemble", folder, agent=one["agentId"], message="Go on.")
        assert made["session"] == f"agent:{one['agentId']}"
        assert f"Rules of the {one['agentId']}." in made["systemPrompt"]
        assert made["usage"]["total"] == sum(row["tokens"] for row in made["usage"]["rows"])


def test_agents_outlive_a_daemon_that_is_killed(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as editor:
        folder = Path(editor.tree(FOLDER).root, "a")
        editor.hello(folder)
        editor.ask("agent/spawn", folder, agentId="api", cwd=uri_of(folder / "api"), role="manager")
        editor.ask("agent/spawn", folder, agentId="web", cwd="web", parent="api", task="Fix it.")
        said = [{"role": "user", "content": "Never log a secret."}]
        editor.ask("session/append", folder, session="agent:web", messages=said)
        check(editor, folder, "api", "web")
        editor.process.kill()
    shutil.rmtree(folder / "api")
    with Editor(tmp_path / "home") as editor:
        editor.hello(folder)
        api, web = editor.ask("agent/list", folder)["agents"]
        assert api["notice"].startswith(
            f"{folder / 'api'} is not a directory any more. Dispose of the agent."
        )
        assert editor.ask("agent/get", folder, agentId="api")["permissions"]["allow"] == ["[]"]
        assert (web["parent"], web["task"], "notice" in web) == ("api", "Fix it.", False)
        assert "Never log" in str(editor.ask("context/assemble", folder, agent="web", message="x")["history"])
        assert editor.ask("agent/dispose", folder, agentId="api") == {"disposed": ["web", "api"]}
        assert "Never log" in str(editor.ask("session/messages", folder, session="agent:web"))
        editor.goodbye()


def test_two_windows_share_the_agents_of_a_folder(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as one, Editor(tmp_path / "home") as two:
        folder = Path(one.tree(FOLDER).root, "a")
        for editor in (one, two):
            editor.hello(folder)
            check(editor, folder)
        one.ask("agent/spawn", folder, agentId="api", cwd="api")
        two.until(lambda: two.said("nexus/agent/didChange"))  # without being asked
        (told,) = two.said("nexus/agent/didChange")
        assert told["params"] == {"workspaceFolder": uri_of(folder), "agentId": "api", "reason": "spawned"}
        with pytest.raises(ReplyError) as failed:
            two.ask("agent/spawn", folder, agentId="api", cwd="web")
        assert failed.value.error["data"]["code"] == "agent-exists"
        two.ask("agent/spawn", folder, agentId="web", cwd="web")
        check(one, folder, "api", "web")
        (folder / "api" / "AGENTS.md").write_text("Rules of the api. Others.\n")
        for editor in (one, two):
            asked = partial(editor.ask, "context/preview", folder, agent="api")
            editor.eventually(asked, lambda made: "Others." in made["text"])
        one.ask("agent/dispose", folder, agentId="api")
        check(two, folder, "web")
        one.goodbye()
        two.goodbye()
