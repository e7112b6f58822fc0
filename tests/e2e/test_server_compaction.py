"""A compaction by a provider's server, through a daemon: bodies, receipt, transcript, undo, forks."""

from typing import Any

import pytest

from support.client import ReplyError
from support.editor import Editor

SETTINGS = """
//- /NAME/.nexus3/config.json
{"provider": {"model": "MODEL"}, "compaction": {"enabled": false}}
"""
BLOCK = {"type": "compaction", "content": "They greeted.", "signature": "c2ln"}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"}
TEXT = {"type": "text", "text": "Behind the wall."}


def folder(editor: Editor, name: str, model: str = "claude-opus-5-5") -> str:
    path = editor.open_folder(SETTINGS.replace("NAME", name).replace("MODEL", model), f"/{name}")
    for number in range(3):
        append(editor, path, f"What is gate_{number}?", "A hole in a wall.")
    return path


def append(editor: Editor, path: str, question: str, answer: Any, **more: Any) -> Any:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return editor.ask("session/append", path, messages=messages, **more)


def contents(editor: Editor, path: str, **more: Any) -> list[Any]:
    return [one["content"] for one in editor.ask("session/messages", path, **more)["messages"]]


def body(editor: Editor, path: str, form: str) -> Any:
    context = editor.ask("context/assemble", path, message="And now?", format=form)
    assert sum(row["tokens"] for row in context["usage"]["rows"]) == context["usage"]["total"]
    assert context["metadata"].get("repairs", []) == []
    return context["request"]


def check(editor: Editor, path: str, form: str) -> list[Any]:
    """What is sent before the new question, in the provider's form."""
    request = body(editor, path, form)
    if form == "anthropic":
        *first, last = request["messages"]
        assert last["role"] == "user"
        return [(one["role"], strip(one["content"])) for one in first]
    items = [one for one in request["input"] if one.get("role") not in ("developer", "system")]
    return items[:-1]


def strip(blocks: Any) -> Any:
    """The blocks without the marks of the cache."""
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]


@pytest.mark.parametrize(
    ("form", "model", "part", "expected"),
    [
        ("anthropic", "claude-opus-5-5", BLOCK, [("assistant", [BLOCK, TEXT])]),
        (
            "openai-responses",
            "gpt-5.6",
            ITEM,
            [ITEM, {"type": "message", "role": "assistant", "content": "Behind the wall."}],
        ),
    ],
)
def test_the_next_request_begins_with_it_until_it_is_undone(
    editor: Editor, form: str, model: str, part: dict[str, Any], expected: list[Any]
) -> None:
    path = folder(editor, form, model)
    before = contents(editor, path)
    appended = append(editor, path, "Where is the gate?", [part, TEXT], idempotencyKey="k")
    assert contents(editor, path) == [[part], [TEXT]]
    sent = check(editor, path, form)
    assert [without(one, "id", "status") if form != "anthropic" else one for one in sent[1:]] == expected[1:]
    assert sent[0] == expected[0]

    stored = editor.ask("session/receipt", path)
    receipt = stored["receipt"]
    assert (receipt["opaque"], receipt["reason"], stored["inForce"]) == (True, "provider", True)
    assert receipt["summarizer"] == ("anthropic" if form == "anthropic" else "openai")
    assert receipt.get("text") == part.get("content")
    assert receipt["replacedMessages"] == len(before) + 1
    assert not any(receipt["lost"].values())
    *_, query, compaction = editor.ask("session/transcript", path)["turns"]
    assert (query["type"], compaction["type"]) == ("query", "compaction")
    assert compaction["receipt"] == receipt
    assert compaction["messages"][0]["text"].startswith("[")
    (hit,) = editor.ask("session/search", path, query="gate_1")["hits"]
    assert hit["role"] == "user"

    again = append(editor, path, "Where is the gate?", [part, TEXT], idempotencyKey="k")  # no reply came
    assert (again["turn"], again["count"]) == (appended["turn"], appended["count"])
    editor.ask("session/undoCompaction", path)
    assert contents(editor, path) == [*before, "Where is the gate?", [TEXT]]
    assert "compaction" not in str(check(editor, path, form))


def without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


def test_a_turn_that_follows_it_is_no_fork_and_a_late_one_is(editor: Editor) -> None:
    path = folder(editor, "forks")
    parent = append(editor, path, "Who?", "Nobody.")["turn"]
    first = append(editor, path, "Where?", [BLOCK, TEXT], parentTurn=parent)
    follow = append(editor, path, "And?", "Nothing.", parentTurn=first["turn"])
    assert (first["session"], follow["session"]) == ("main", "main")
    assert contents(editor, path) == [[BLOCK], [TEXT], "And?", "Nothing."]
    late = append(editor, path, "Else?", [ITEM, TEXT], parentTurn=parent)
    assert late["session"] == "main (2)"
    assert contents(editor, path, session=late["session"]) == [[ITEM], [TEXT]]
    receipt = editor.ask("session/receipt", path, session=late["session"])["receipt"]
    assert receipt["replacedMessages"] == 1 + 6 + 2 + 1  # opening, three turns, the parent, the question
    assert contents(editor, path) == [[BLOCK], [TEXT], "And?", "Nothing."]
    editor.ask("session/fork", path, to="behind")
    assert contents(editor, path, session="behind") == [[BLOCK], [TEXT], "And?", "Nothing."]


def test_a_refused_turn_compacts_nothing(editor: Editor) -> None:
    path = folder(editor, "refused")
    before = contents(editor, path)
    append(editor, path, "Who?", "Nobody.", idempotencyKey="k")
    editor.ask("session/clear", path)
    for number in range(2):
        append(editor, path, f"What {number}?", "A wall.", idempotencyKey=f"n{number}")
    held = contents(editor, path)
    assert held != before
    with pytest.raises(ReplyError):
        editor.ask(
            "session/append",
            path,
            messages=[{"role": "assistant", "content": [BLOCK, TEXT]}],
            idempotencyKey="n1",
        )
    assert contents(editor, path) == held
    with pytest.raises(ReplyError):
        editor.ask("session/receipt", path)


def test_a_block_of_5_mb_and_an_export(editor: Editor) -> None:
    path = folder(editor, "large")
    block = {"type": "compaction", "encrypted_content": "eA" * 2_500_000, "content": None}
    append(editor, path, "Where?", [block, TEXT])
    kept = {"type": "compaction", "encrypted_content": block["encrypted_content"]}
    assert check(editor, path, "anthropic") == [("assistant", [kept, TEXT])]
    text = editor.ask("session/export", path, format="markdown")["text"]
    assert "a compaction by a server of Anthropic stands for what came before" in text
