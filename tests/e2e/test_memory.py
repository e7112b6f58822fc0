"""What a real daemon remembers: files that change on the disk, messages between agents, tools to ask with."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.client import ReplyError
from support.editor import Editor, uri_of
from support.embeddings import needs_model

FOLDER = """
//- /a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "memory": {"knowledge": {"paths": ["docs"], "top_k": 2}}}
//- /a/docs/deploy.md
# Deploy

## Rollback

Run `make rollback` to roll a release back.
//- /a/docs/style.md
Names are short.
"""


def check(editor: Editor, folder: Path, message: str, *expected: str) -> Any:
    """Sooner or later these files come with the message, the best first."""

    def asked() -> Any:
        return editor.ask("context/assemble", folder, message=message)

    def files(made: Any) -> list[str]:
        rows = [row for row in made["usage"]["rows"] if row["category"] == "memory"]
        return [row["source"]["uri"].removeprefix(f"{uri_of(folder)}/") for row in rows]

    return editor.eventually(asked, lambda made: files(made) == list(expected))


def opened(editor: Editor) -> Path:
    folder = Path(editor.open_folder(FOLDER))
    editor.layers(folder)
    return folder


def remembered(made: Any) -> str:
    """What stands between the marks of memory."""
    content = made["currentMessage"]["content"]
    return str(content.partition("<memory>")[2].partition("</memory>")[0])


def test_files_come_with_the_message_and_are_followed(editor: Editor) -> None:
    folder = opened(editor)
    docs = folder / "docs"
    made = check(editor, folder, "How is a rollback done?", "docs/deploy.md")
    assert "make rollback" in remembered(made)
    assert made["usage"]["total"] == sum(row["tokens"] for row in made["usage"]["rows"])
    assert made["tokenBudget"]["used"]["memory"] == made["metadata"]["memory"]["tokens"] > 0
    (docs / "deploy.md").write_text("# Deploy\n\nA rollback is forbidden.\n")
    made = editor.eventually(
        lambda: editor.ask("context/assemble", folder, message="How is a rollback done?"),
        lambda made: "forbidden" in remembered(made),
    )
    (docs / "more").mkdir()
    (docs / "more" / "who.md").write_text("Ask Ana for a rollback.\n")
    made = editor.eventually(
        lambda: editor.ask("context/assemble", folder, message="How is a rollback done?"),
        lambda made: "Ask Ana" in remembered(made),
    )
    assert len(made["metadata"]["memory"]["included"]) == 2
    shutil.rmtree(docs)
    check(editor, folder, "How is a rollback done?")


def test_other_settings_count_at_once(editor: Editor) -> None:
    folder = opened(editor)
    config = folder / ".nexus3" / "config.json"
    check(editor, folder, "How is a rollback done?", "docs/deploy.md")
    text = config.read_text()
    editor.open(config, text.replace('"docs"', '"docs/style.md", "../x"'))
    editor.until(lambda: editor.codes(config) == ["config.scope"])
    check(editor, folder, "How is a rollback done?")
    check(editor, folder, "How short are names?", "docs/style.md")
    editor.type(config, "\n" + text.replace('"docs"', '"docs/style.md", "../x"'))
    editor.layers(folder)
    assert [one["range"]["start"]["line"] for one in editor.shown(config)] == [1]
    editor.close(config)
    editor.until(lambda: editor.codes(config) == [])
    check(editor, folder, "How is a rollback done?", "docs/deploy.md")


def test_a_message_outlives_the_daemon_and_comes_once(tmp_path: Path) -> None:
    message = {"source": "planner", "target": "worker"}
    with Editor(tmp_path / "home") as editor:
        folder = Path(editor.tree(FOLDER).root, "a")
        editor.hello(folder)
        for content, more in (("later", {"priority": 0.1}), ("urgent", {"priority": 0.9}), ("plain", {})):
            editor.ask("agent/message", folder, content=content, **message, **more)
        editor.ask("agent/message", folder, content="gone", ttlSeconds=0.001, **message)
        told = [said["params"] for said in editor.said("nexus/agent/didChange")]
        assert told == [{"workspaceFolder": uri_of(folder), "agentId": "worker", "reason": "message"}] * 4
        editor.process.kill()
    with Editor(tmp_path / "home") as editor:
        editor.hello(folder)
        made = editor.ask("context/assemble", folder, agent="worker", message="Go on.")
        text = remembered(made)
        assert text.index("urgent") < text.index("plain") < text.index("later")
        assert "gone" not in text
        editor.ask("session/append", folder, messages=[{"role": "user", "content": "Go on."}])
        assert editor.ask("agent/messages", folder, agent="worker") == {"messages": []}
        assert remembered(editor.ask("context/assemble", folder, agent="worker", message="More.")) == ""
        with pytest.raises(ReplyError) as failed:
            editor.ask("agent/message", folder, content="x", ttlSeconds=-1, **message)
        assert failed.value.error["data"]["code"] == "bad-message"
        assert "ttlSeconds is -1" in failed.value.error["message"]
        editor.goodbye()


def test_tools_of_memory_are_run(editor: Editor) -> None:
    folder = opened(editor)
    said = [{"role": "user", "content": "Never touch sign() in auth/tokens.py."}]
    editor.ask("session/append", folder, session="old", messages=said)
    arguments = json.dumps({"query": "sign", "limit": 3})
    call = {"workspaceFolder": uri_of(folder), "tool": "query_l4_memory", "arguments": arguments}
    command = {"command": "nexus.memory.query", "arguments": [call]}
    assert "auth/tokens.py" in editor.request("nexus/memory/query", call)["text"]
    assert editor.request("workspace/executeCommand", command) == editor.request("nexus/memory/query", call)
    with pytest.raises(ReplyError) as failed:
        editor.ask("memory/query", folder, tool="query_l2_memory", arguments={"limits": 3})
    assert failed.value.error["data"]["code"] == "bad-argument"


@needs_model
def test_files_are_found_by_meaning_with_the_installed_model(editor: Editor) -> None:
    folder = opened(editor)
    config = folder / ".nexus3" / "config.json"
    (folder / "docs" / "money.md").write_text("Customers get their money back within thirty days.\n")
    question = "a refund for a client"
    check(editor, folder, question)
    settings = json.loads(config.read_text())
    settings["memory"]["knowledge"] |= {"embeddings": {"enabled": True}, "top_k": 1}
    config.write_text(json.dumps(settings))
    made = check(editor, folder, question, "docs/money.md")
    assert made["metadata"]["memory"]["included"] == [f"{folder}/docs/money.md (by meaning)"]
    assert "Customers get their money back" in remembered(made)
    assert check(editor, folder, "How is a rollback done?", "docs/deploy.md")["metadata"]["memory"][
        "included"
    ] == [f"{folder}/docs/deploy.md › Deploy › Rollback (by words and meaning)"]


def test_a_missing_model_is_a_warning_at_its_setting(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as editor:
        config = editor.home / ".nexus3" / "config.json"
        config.parent.mkdir()
        config.write_text('{"memory": {"knowledge": {"embeddings": {"enabled": true, "model": "~/none"}}}}')
        folder = Path(editor.tree(FOLDER).root, "a")
        editor.hello(folder)
        made = check(editor, folder, "How is a rollback done?", "docs/deploy.md")
        assert made["metadata"]["memory"]["included"] == [f"{folder}/docs/deploy.md › Deploy › Rollback"]
        editor.until(lambda: editor.codes(config) == ["config.knowledge"])
        (problem,) = editor.shown(config)
        assert problem["message"] == (
            f"Files are searched by words only: {editor.home}/none is not a directory. "
            "Correct memory.knowledge.embeddings.model."
        )
        at = config.read_text().index('"~/none"')
        assert problem["range"] == {
            "start": {"line": 0, "character": at},
            "end": {"line": 0, "character": at + len('"~/none"')},
        }
        editor.goodbye()
