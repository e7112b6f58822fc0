"""The client's model writes summaries: a real daemon, a client that answers, refuses or dies."""

from pathlib import Path
from typing import Any

from support.client import Message
from support.editor import Editor, editor_in, uri_of

SETTINGS = """
//- /a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "context": {"max_tokens": 2000, "reserve_tokens": 300}}
//- /a/NEXUS.md
# Wind
Log it.
@more.md
//- /a/more.md
Twice a day.
"""
HAS_MODEL: dict[str, Any] = {"capabilities": {"experimental": {"nexus": {"modelComplete": True}}}}
SUMMARY = "## Goal\nLog the wind, which never rests."
DAYS = [
    {"role": role, "content": text}
    for day in range(30)
    for role, text in (
        ("user", f"Day {day}: the wind is from the north. Log it."),
        ("assistant", f"Did {day}."),
    )
]


def asked(editor: Editor) -> Message:
    return editor.wait_method("nexus/model/complete")


def begin(editor: Editor, folder: str, method: str, **params: object) -> int:
    return editor.send_request(f"nexus/{method}", {"workspaceFolder": uri_of(folder), **params})


def test_a_model_writes_the_summary_and_other_folders_do_not_wait(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as editor:
        folder, other = (editor.tree(SETTINGS).path("/a") for _ in range(2))
        editor.hello(folder, other, **HAS_MODEL)
        editor.ask("session/append", folder, messages=DAYS)
        request = begin(editor, folder, "session/compact", instructions="Keep the wind.")
        question = asked(editor)
        assert "Keep the wind." in question["params"]["messages"][-1]["content"]
        assert editor.ask("context/usage", other)["total"] > 0
        assert editor.ask("context/usage", folder)["total"] > 0
        editor.respond(question["id"], {"content": SUMMARY, "model": "m1"})
        receipt = editor.wait_reply(request)["result"]["receipt"]
        assert (receipt["summarizer"], receipt["model"], receipt["failures"]) == ("editor", "m1", [])
        first = editor.ask("session/messages", folder)["messages"][0]
        assert SUMMARY in first["content"]
        exported = editor.ask("session/export", folder, format="jsonl")["text"]
        assert '"summarizer":"editor"' in exported.replace(": ", ":")
        editor.goodbye()


def test_a_client_that_dies_while_its_model_writes_loses_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Editor(home) as editor:
        folder = editor.tree(SETTINGS).path("/a")
        editor.hello(folder, **HAS_MODEL)
        editor.ask("session/append", folder, messages=DAYS)
        before = editor.ask("session/messages", folder)
        begin(editor, folder, "session/compact")
        asked(editor)
        editor.kill()
    with editor_in(home, folder) as again:
        assert again.ask("session/messages", folder) == before
        receipt = again.ask("session/compact", folder)["receipt"]
        assert (receipt["summarizer"], receipt["failures"]) == ("extractive", [])


def test_code_lenses_in_an_editor(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as editor:
        folder = editor.tree(SETTINGS).path("/a")
        hello = editor.hello(folder)
        assert hello["capabilities"]["codeLensProvider"] == {"resolveProvider": False}
        path = f"{folder}/NEXUS.md"
        editor.open(path, "# Wind\n😀 Log it.\n@more.md\n")
        found = editor.request("textDocument/codeLens", {"textDocument": {"uri": uri_of(path)}})
        assert [
            (one["range"]["start"]["line"], one["command"]["title"].split(" · ")[-1]) for one in found
        ] == [
            (0, "sent with every request"),
            (0, "12 tokens"),
            (2, "5 tokens imported"),
        ]
        fragments = editor.ask("context/preview", folder)["fragments"]
        imported = [one["tokens"] for one in fragments if one["title"].endswith(": more.md")]
        assert imported[0] == 5
        editor.goodbye()
