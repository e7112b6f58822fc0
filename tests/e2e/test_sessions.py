"""Conversations: what goes in comes out exactly, in order, once."""

import re
from typing import Any

import pytest

from support.client import ReplyError
from support.editor import Editor, uri_of

ODD = {
    "class": "reserved",
    "a-b": 1,
    "_x": None,
    "jsonrpc": "1.0",
    "id": 7,
    "method": "shutdown",
    "params": {"jsonrpc": "2.0", "method": "exit", "class": {"def": [], "": {}}},
    "z": 1.0,
    "big": 123456789012345678901234567890,
    "negative": -9223372036854775809,
    "small": 5e-324,
    "float": 0.1,
    "whole": 2.0,
    "empty": {},
    "list": [[], [None], {"workspace_folder": 1, "workspaceFolder": 2}],
    "true": True,
    "漢字 😀\u0000\u2028": '\u00a0 \u0007\t"\\/é',
    "a": "keys stay in their order",
}
MESSAGES = [
    {"role": "user", "content": "Zdravo, 世界 😀\r\n\u2028\u0000"},
    {
        "role": "assistant",
        "content": "Looking.",
        "toolCalls": [{"id": "1", "name": "read", "arguments": ODD}],
    },
    {"role": "assistant", "content": None, "toolCalls": [{"id": "2", "name": "read", "arguments": []}]},
    {"role": "tool", "content": '{"raw": 1}', "toolCallId": "1", "name": "read"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": ODD}],
        "meta": ODD,
    },
    {"role": "system", "content": "x", "timestamp": 1.5, "tokens": 3},
    {"role": "user", "content": "y", "timestamp": "2026-01-01T00:00:00Z"},
]


@pytest.fixture
def folder(editor: Editor) -> str:
    return editor.open_folder("//- /a/NEXUS.md\nA.\n")


def check(editor: Editor, folder: str, messages: list[Any], **more: object) -> list[Any]:
    """Append messages in one turn; return what the session then holds, without its opening message."""
    editor.ask("session/append", folder, messages=messages, **more)
    return held(editor, folder, **more)[1:]


def held(editor: Editor, folder: str, *, session: object = "main", **_: object) -> list[Any]:
    messages: list[Any] = editor.ask("session/messages", folder, session=session)["messages"]
    return messages


def test_messages_come_back_exactly(editor: Editor, folder: str) -> None:
    back = check(editor, folder, MESSAGES)
    assert len(back) == len(MESSAGES)
    for sent, received in zip(MESSAGES, back, strict=True):
        assert received == sent
    for sent, received in ((ODD, back[1]["toolCalls"][0]["arguments"]), (ODD, back[4]["meta"])):
        assert list(received) == list(sent)
        assert [type(value) for value in received.values()] == [type(value) for value in sent.values()]
    history = editor.ask("context/assemble", folder)["history"]
    assert history[1:] == MESSAGES


def test_numbers_keep_their_digits(editor: Editor, folder: str) -> None:
    """What Python's own parser would round or rewrite."""
    reply = append_raw(
        editor, folder, b'{"role": "user", "content": "n", "meta": [1e2, 12345678901234567890123, -0.0]}'
    )
    assert reply["result"]["count"] == 2
    (message,) = held(editor, folder)[1:]
    assert repr(message["meta"]) == "[100.0, 12345678901234567890123, -0.0]"


def append_raw(editor: Editor, folder: str, message: bytes) -> Any:
    """The reply to an append of one message, given as the very bytes."""
    params = b'{"workspaceFolder": "%b", "messages": [%b]}' % (uri_of(folder).encode(), message)
    body = b'{"jsonrpc": "2.0", "id": "raw", "method": "nexus/session/append", "params": %b}' % params
    editor.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    return editor.wait_reply("raw")


def test_a_session_begins_with_when_it_began(editor: Editor, folder: str) -> None:
    assert held(editor, folder) == []
    result = editor.ask("session/append", folder, messages=[{"role": "user", "content": "hi"}])
    assert (result["session"], result["count"]) == ("main", 2)
    first = held(editor, folder)[0]
    assert first["role"] == "user"
    assert re.fullmatch(r"\[Session started: \d{4}-\d\d-\d\d \d\d:\d\d \(local\)\]", first["content"])
    again = editor.ask("session/append", folder, messages=[{"role": "assistant", "content": "hello"}])
    assert again["count"] == 3
    assert again["turn"] != result["turn"]
    assert held(editor, folder)[0] == first


def test_a_repeated_append_adds_nothing(editor: Editor, folder: str) -> None:
    params = {"messages": [{"role": "user", "content": "once"}], "idempotencyKey": "k1"}
    first = editor.ask("session/append", folder, **params)
    again = editor.ask("session/append", folder, **params)
    assert (again["turn"], again["count"]) == (first["turn"], first["count"])
    other = editor.ask("session/append", folder, **{**params, "idempotencyKey": "k2"})
    assert (other["turn"] != first["turn"], other["count"]) == (True, 3)
    elsewhere = editor.ask("session/append", folder, session="other", **params)
    assert elsewhere["turn"] != first["turn"]
    assert [message["content"] for message in held(editor, folder)[1:]] == ["once", "once"]


def test_sessions_and_folders_are_apart(editor: Editor, folder: str) -> None:
    second = editor.tree("//- /a/NEXUS.md\nA.\n").path("/a")
    editor.add(second)
    assert check(editor, folder, [{"role": "user", "content": "main"}]) != []
    assert check(editor, folder, [{"role": "user", "content": "one"}], session="one") == [
        {"role": "user", "content": "one"}
    ]
    assert held(editor, second) == []
    assert held(editor, folder, session="never") == []
    status = {one["uri"]: one["sessions"] for one in editor.request("nexus/status", {})["folders"]}
    assert (status[uri_of(folder)], status[uri_of(second)]) == (["main", "one"], [])


def test_clear_empties_the_session(editor: Editor, folder: str) -> None:
    editor.ask("session/append", folder, messages=[{"role": "user", "content": "hello " * 100}])
    assert "history" in categories(editor.ask("context/usage", folder))
    cleared = editor.ask("session/clear", folder)
    assert cleared["session"] == "main"
    assert "history" not in categories(cleared["usage"])
    assert held(editor, folder) == []
    assert editor.ask("session/clear", folder, session="never")["session"] == "never"
    again = editor.ask("session/append", folder, messages=[{"role": "user", "content": "hello"}])
    assert again["count"] == 2


def test_a_clear_forgets_idempotency_keys_too(editor: Editor, folder: str) -> None:
    params = {"messages": [{"role": "user", "content": "once"}], "idempotencyKey": "k1"}
    first = editor.ask("session/append", folder, **params)
    editor.ask("session/clear", folder)
    again = editor.ask("session/append", folder, **params)
    assert (again["turn"] != first["turn"], again["count"]) == (True, 2)


def categories(usage: Any) -> list[str]:
    return [row["category"] for row in usage["rows"]]


def test_fifty_appends_at_once_keep_their_order(editor: Editor, folder: str) -> None:
    ids = []
    for number in range(50):
        messages = [{"role": "user", "content": f"{number}a"}, {"role": "assistant", "content": f"{number}b"}]
        params = {"workspaceFolder": uri_of(folder), "messages": messages}
        ids.append(editor.send_request("nexus/session/append", params))
    replies = [editor.wait_reply(one)["result"] for one in ids]
    assert [reply["count"] for reply in replies] == [3 + 2 * number for number in range(50)]
    assert len({reply["turn"] for reply in replies}) == 50
    contents = [message["content"] for message in held(editor, folder)[1:]]
    assert contents == [f"{number}{half}" for number in range(50) for half in "ab"]


def test_usage_grows_with_the_history_and_is_announced(editor: Editor, folder: str) -> None:
    before = editor.ask("context/usage", folder)
    editor.until(lambda: editor.changes(folder))
    result = editor.ask("session/append", folder, messages=[{"role": "user", "content": "word " * 50}])
    usage = editor.ask("context/usage", folder)
    assert result["usage"] == usage
    assert usage["total"] - before["total"] == sum(
        r["tokens"] for r in usage["rows"] if r["category"] == "history"
    )
    assert usage["total"] == sum(row["tokens"] for row in usage["rows"])
    told = editor.until(lambda: [one for one in editor.changes(folder) if one["reason"] == "session"])
    assert told[-1]["usage"]["total"] == usage["total"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "robot", "content": "x"}],
        [{"content": "x"}],
        [{"role": "user", "content": 5}],
        [{"role": "assistant", "content": "x", "toolCalls": [{"id": 1, "name": "x"}]}],
        ["text"],
        "text",
    ],
)
def test_a_message_that_is_none_is_refused_and_nothing_is_kept(
    editor: Editor, folder: str, messages: Any
) -> None:
    with pytest.raises(ReplyError) as failed:
        editor.ask("session/append", folder, messages=[{"role": "user", "content": "fine"}, *messages])
    assert failed.value.error["code"] == -32602
    assert held(editor, folder) == []


def test_a_long_message(editor: Editor, folder: str) -> None:
    text = "é" * 500_000 + "x" * 500_000
    assert check(editor, folder, [{"role": "user", "content": text}]) == [{"role": "user", "content": text}]
    usage = editor.ask("context/usage", folder)
    history = sum(row["tokens"] for row in usage["rows"] if row["category"] == "history")
    alone = editor.request("nexus/tokens/count", {"texts": [text], "model": usage["model"]})["total"]
    # the message alone exceeds the window: it is sent shortened, and the ledger has all of it
    assert 100_000 < history <= usage["available"] < alone
    assert (usage["over"], usage["remaining"]) == (False, usage["available"] - usage["total"])


def test_a_lone_surrogate_is_answered(editor: Editor, folder: str) -> None:
    """JSON can say it, UTF-8 cannot: it is kept as the character that stands for what is none."""
    reply = append_raw(editor, folder, b'{"role": "user", "content": "a\\ud800b"}')
    assert reply["result"]["count"] == 2
    assert held(editor, folder)[1:] == [{"role": "user", "content": "a\ufffdb"}]
    assert editor.ask("context/usage", folder) == reply["result"]["usage"]
