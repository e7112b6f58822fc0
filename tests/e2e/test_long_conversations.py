"""A conversation that outgrows its budget: what is sent, what is said of it, compaction and the way back."""

from typing import Any

import pytest

from support.client import ReplyError
from support.editor import Editor

SETTINGS = """
//- /a/NEXUS.md
Be brief.
//- /a/.nexus3/config.json
{
  "provider": {"model": "gpt-4o"},
  "context": {"max_tokens": 6000, "reserve_tokens": 1000},
  "compaction": COMPACTION
}
"""
OFF = '{"enabled": false}'
ON = "{}"


def folder(editor: Editor, name: str, *, compaction: str) -> str:
    fixture = SETTINGS.replace("/a/", f"/{name}/").replace("COMPACTION", compaction)
    return editor.open_folder(fixture, f"/{name}")


def turn(number: int) -> list[dict[str, Any]]:
    """About 190 tokens: a question, a call, its result and an answer."""
    path = f"src/module_{number}.py"
    return [
        {"role": "user", "content": f"Please never rename the function handle_{number} in {path}."},
        {
            "role": "assistant",
            "content": f"I read {path}.",
            "toolCalls": [{"id": f"call_{number}", "name": "read", "arguments": {"path": path}}],
        },
        {"role": "tool", "toolCallId": f"call_{number}", "content": f"def handle_{number}(): ...\n" * 12},
        {"role": "assistant", "content": f"handle_{number} stays as it is. " + "It has twelve copies. " * 8},
    ]


def talk(editor: Editor, path: str, turns: int, *, first: int = 0) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for number in range(first, first + turns):
        result = editor.ask("session/append", path, messages=turn(number))
    return result


def assemble(editor: Editor, path: str, **more: object) -> dict[str, Any]:
    made: dict[str, Any] = editor.ask("context/assemble", path, **more)
    assert sum(row["tokens"] for row in made["usage"]["rows"]) == made["usage"]["total"]
    return made


def test_what_does_not_fit_is_cut_at_a_turn_and_nothing_is_forgotten(editor: Editor) -> None:
    path = folder(editor, "cut", compaction=OFF)
    spent = talk(editor, path, 40)["usage"]
    assert not spent["over"]
    assert {row["category"] for row in spent["rows"]} == {"system", "history"}
    made = assemble(editor, path, message="And now?")
    cut = made["metadata"]["truncation"]
    assert (made["metadata"]["truncated"], cut["strategy"]) == (True, "oldest_first")
    assert made["usage"]["total"] <= made["usage"]["available"] == 5000
    assert cut["finalTokens"] < cut["originalTokens"]
    began, asked, note, first = made["history"][:4]
    assert began["content"].startswith("[Session started: ")
    assert asked["content"] == turn(0)[0]["content"]  # the first message is pinned
    assert "src/module_0.py" in note["content"] or "handle_" in note["content"]
    assert first["role"] == "user"
    held = editor.ask("session/messages", path)["messages"]
    assert len(held) == 161
    assert made["history"][-1] == held[-1]


def test_the_same_start_is_sent_for_many_turns(editor: Editor) -> None:
    path = folder(editor, "steady", compaction=OFF)
    talk(editor, path, 30)
    assemble(editor, path, message="one")
    breaks = 0
    for number in range(30, 45):
        talk(editor, path, 1, first=number)
        cache = assemble(editor, path, message="more")["metadata"]["cache"]
        breaks += "broke" in cache
        if "broke" not in cache:
            assert cache["reusedTokens"] > 0.5 * cache["prefixTokens"]
        else:
            assert cache["broke"]["category"] == "history"
    assert 1 <= breaks <= 2


def test_the_strategy_of_a_request_holds_for_that_request_only(editor: Editor) -> None:
    path = folder(editor, "strategy", compaction=OFF)
    talk(editor, path, 40)
    usual = assemble(editor, path)["history"]
    middle = assemble(editor, path, options={"truncationStrategy": "middle_out"})
    assert middle["metadata"]["truncation"]["strategy"] == "middle_out"
    assert assemble(editor, path)["history"] == usual
    with pytest.raises(ReplyError, match=r"Unknown truncation strategy 'best'.*oldest_first"):
        assemble(editor, path, options={"truncationStrategy": "best"})


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_body_that_cannot_fit_is_refused_and_shown_in_the_neutral_form(editor: Editor, form: str) -> None:
    path = folder(editor, f"refused-{form}", compaction=OFF)
    long = "word " * 6000
    with pytest.raises(ReplyError, match="does not fit") as refused:
        assemble(editor, path, message=long, format=form)
    assert refused.value.error["data"]["code"] == "context-overflow"
    assert assemble(editor, path, message=long)["usage"]["over"]


def test_compaction_leaves_a_receipt_and_can_be_undone(editor: Editor) -> None:
    path = folder(editor, "compact", compaction=OFF)
    talk(editor, path, 20)
    before = editor.ask("session/messages", path)["messages"]
    made = editor.ask("session/compact", path, pins=["the release is on Friday", 5])
    receipt = made["receipt"]
    assert (receipt["reason"], receipt["summarizer"]) == ("explicit", "extractive")
    assert receipt["tokensAfter"] < receipt["tokensBefore"]
    assert made["compaction"] == receipt["id"]
    after = editor.ask("session/messages", path)["messages"]
    assert len(after) < len(before)
    assert after[0]["role"] == "user"
    assert after[0]["content"].startswith("[CONTEXT SUMMARY]\n")
    assert "the release is on Friday" in after[0]["content"]
    assert before[5] in after
    assert after[-1] == before[-1]
    whole = "".join(map(str, after))
    assert not [lost for lost in receipt["lost"]["paths"] if lost in whole]
    editor.ask("session/append", path, messages=turn(99))
    editor.ask("session/undoCompaction", path, compaction=made["compaction"])
    assert editor.ask("session/messages", path)["messages"] == [*before, *turn(99)]
    with pytest.raises(ReplyError, match="no compaction"):
        editor.ask("session/undoCompaction", path)


def test_a_compaction_that_brings_nothing_changes_nothing(editor: Editor) -> None:
    path = folder(editor, "nothing", compaction=OFF)
    with pytest.raises(ReplyError, match="There is no session 'main'") as refused:
        editor.ask("session/compact", path)
    assert refused.value.error["data"]["code"] == "unknown-session"
    editor.ask("session/append", path, messages=[{"role": "user", "content": "Hi."}])
    before = editor.ask("session/messages", path)["messages"]
    with pytest.raises(ReplyError, match="Nothing was compacted"):
        editor.ask("session/compact", path)
    assert editor.ask("session/messages", path)["messages"] == before


def test_a_turn_past_the_threshold_is_compacted_first_and_told(editor: Editor) -> None:
    path = folder(editor, "auto", compaction=ON)
    editor.until(lambda: editor.changes(path))  # else that it was added would be told instead
    talk(editor, path, 22)
    looked = assemble(editor, path)
    assert looked["metadata"]["compactionReason"] == "token_limit"
    assert "compaction" not in looked["metadata"]  # to look at it changes nothing
    made = assemble(editor, path, message="Go on.")
    compaction = made["metadata"]["compaction"]
    assert compaction["reached"]
    assert made["history"][0]["content"].startswith("[CONTEXT SUMMARY]\n")
    assert made["usage"]["percent"] < 80
    editor.until(lambda: "compaction" in [change["reason"] for change in editor.changes(path)])
    again = assemble(editor, path, message="Go on.")
    assert again["history"] == made["history"]
    assert "compaction" not in again["metadata"]


def test_the_user_is_warned_once_for_each_threshold(editor: Editor) -> None:
    path = folder(editor, "warned", compaction=OFF)

    def warnings() -> list[tuple[int, str]]:
        said = [message["params"] for message in editor.said("window/showMessage")]
        return [(one["type"], one["message"]) for one in said if " of warned fills " in one["message"]]

    talk(editor, path, 32)
    editor.until(lambda: len(warnings()) >= 3)
    assert [kind for kind, _ in warnings()] == [3, 2, 2]
    percents = [float(text.split(" fills ")[1].split(" %")[0]) for _, text in warnings()]
    assert 75 <= percents[0] < 90 <= percents[1] < 95 <= percents[2]
