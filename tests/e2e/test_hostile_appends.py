"""Any JSON as a message of `nexus/session/append`: it comes back exactly, or is refused with a reason."""

import json
from pathlib import Path
from typing import Any

import msgspec

from nexus_context.conversation.message import Message
from support import hostile_transcripts as hostile
from support.editor import Editor, editor_in, uri_of
from torture.figures import dice_of

FIELDS = {field.encode_name for field in msgspec.structs.fields(Message)}
CALL_FIELDS = {"id", "name", "arguments"}
FORMS = ("openai", "anthropic", "neutral")
MODELS = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-3.5-flash", "openai-responses": "gpt-5.6"}
PER_FORM = 60


def test_any_message_comes_back_exactly_or_is_refused(tmp_path: Path) -> None:
    with editor_in(tmp_path / "home") as editor:
        folder = editor.tree('//- /a/.nexus3/config.json\n{"provider": {"model": "gpt-4o"}}\n').path("/a")
        editor.add(folder)
        kept = 0
        for form in FORMS:
            for seed in range(PER_FORM):
                kept += check(editor, folder, hostile.line(dice_of(seed), form), f"{form}-{seed}")
        assert kept > PER_FORM


def check(editor: Editor, folder: str, text: str, session: str) -> bool:
    """Append a message as it is written; whether it was kept."""
    if not is_json(text):
        return False  # the frame is refused: the tests of the connection have that
    params = (
        f'{{"workspaceFolder": {json.dumps(uri_of(folder))}, "session": "{session}", "messages": [{text}]}}'
    )
    body = f'{{"jsonrpc": "2.0", "id": "{session}", "method": "nexus/session/append", "params": {params}}}'
    encoded = body.encode()
    editor.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(encoded), encoded))
    reply = editor.wait_reply(session)
    if "Unknown field" in reply.get("error", {}).get("message", "") and session.count("-") == 1:
        known = {key: value for key, value in json.loads(text).items() if key in FIELDS}
        known["toolCalls"] = [
            {key: value for key, value in call.items() if key in CALL_FIELDS}
            for call in known.get("toolCalls", ())
        ]
        return check(editor, folder, json.dumps(known), f"{session}-known")
    if "error" in reply:
        assert reply["error"]["message"], text
        assert reply["error"]["code"] != -32603, f"{reply['error']} of {text!r:.2000}"
        return False
    given = json.loads(text)
    messages = editor.ask("session/messages", folder, session=session)["messages"]
    assert messages[-1] == expected(given), text
    for shape in ("neutral", "openai", "openai-responses", "anthropic", "gemini"):
        model = {"model": MODELS.get(shape, "gpt-4o")}
        editor.ask("context/assemble", folder, session=session, format=shape, options=model)
    return True


def expected(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message; those that say nothing need not be there."""
    defaults: dict[str, Any] = {
        "toolCalls": [],
        "toolCallId": None,
        "name": None,
        "timestamp": None,
        "tokens": None,
    }
    made = {key: value for key, value in given.items() if key in FIELDS}
    if "toolCalls" in made:
        calls = ({"arguments": {}} | call for call in made["toolCalls"])
        made["toolCalls"] = [{key: call[key] for key in ("id", "name", "arguments")} for call in calls]
    return {key: value for key, value in made.items() if key not in defaults or value != defaults[key]}


def is_json(text: str) -> bool:
    """Whether the daemon's own reader takes it: Python's takes NaN, too."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True
