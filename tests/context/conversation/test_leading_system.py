"""System messages and results stay by their kind: in front, as a marked text, in a repair or a receipt."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context import Request, assemble
from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.compaction.run import select_messages_for_compaction
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.conversation.summary import create_summary_message
from nexus_context.conversation.truncation import STRATEGIES, Strategy
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Budget, Policy, Window
from nexus_context.errors import ContextOverflowError, RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.store import Ledger
from nexus_context.turn.manager import ContextManager
from support.folders import load_configured
from support.histories import Letters, conversation, histories, pairing_errors, shown

NOW = datetime(2026, 11, 26, 9, 5, tzinfo=UTC)
RULE, TASK = "Never touch module zeta.", "Port the parser."
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4o",
    "openai-responses": "gpt-5.1",
    "gemini": "gemini-2.5-pro",
}
PLAIN = Policy(identifier_tokens=0)


def check(messages: str, room: int, sent: str, *, policy: Policy = PLAIN) -> View:
    """What of the words of a history is sent in so many tokens."""
    view = Window(History(conversation(messages)), Letters(), policy).fit(Budget(room, 0))
    assert shown(view.messages()) == sent
    assert len(view.indexes()) == len(view.messages())
    assert sum(view.sizes(Letters())) == view.tokens
    assert [msgspec_text(text) for text in view.encoded()] == [text_of(one) for one in view.messages()]
    return view


def msgspec_text(encoded: Any) -> str:
    content: str = json.loads(bytes(encoded)).get("content", "")
    return content


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_cut_never_takes_the_system_messages_at_the_start(strategy: Strategy) -> None:
    policy = Policy(strategy, keep_recent_turns=1, identifier_tokens=0)
    task = "" if strategy in ("sliding", "recency", "simple") else "u0 "
    check("s1 s2 u0 a0 u1 a1 u2 a2 u3 a3", 60, f"s1 s2 {task}u3 a3", policy=policy)


def test_they_stand_before_what_opens_the_session() -> None:
    opening = Message("user", "[Session started: 2026-11-26 09:05 (local)]")
    history = History([opening, *conversation("s1 u1 a1 s2 u2 a2")])
    window = Window(history, Letters(), Policy("recency", keep_recent_turns=1, identifier_tokens=0))
    whole = window.look(Budget(1_000, 0))
    assert shown(whole.messages()) == "s1 [Session u1 a1 s2 u2 a2"
    assert whole.indexes() == [1, 0, 2, 3, 4, 5, 6]
    cut = window.fit(Budget(55, 0))
    assert shown(cut.messages()) == "s1 [Session u2 a2"
    assert sum(cut.sizes(Letters())) == cut.tokens


def test_what_a_cut_leaves_out_is_a_repair() -> None:
    assert check("u1 a1 u2 a2", 100, "u1 a1 u2 a2").left_out() == []
    assert check("u1 a1 u2 a2 u3 a3", 44, "u1 u3 a3").left_out() == []  # words: `truncation` has them
    [repair] = check("u1 a1 s9 c1 r1 u2 a2 u3 a3", 44, "u1 u3 a3").left_out()
    assert (repair.kind, repair.text) == (
        "cut",
        "The cut leaves out 6 messages, among them 1 system message and 1 result of a tool.",
    )


def test_a_summary_that_is_too_long_beside_them_is_shortened() -> None:
    summary = create_summary_message("word " * 400, NOW, 3)
    history = History([summary, *conversation("s1 u1 a1")])
    view = Window(history, Letters(), PLAIN).fit(Budget(200, 0))
    assert not view.over
    assert [message.role for message in view.messages()] == ["system", "user", "user", "assistant"]
    assert "left out here" in text_of(view.messages()[1])


# ---------------------------------------------------------------- bodies


def folder(tmp_path: Path, model: str) -> Snapshot:
    config = json.dumps(
        {"provider": {"model": model}, "context": {"max_tokens": 3_000, "reserve_tokens": 500}}
    )
    return load_configured(tmp_path, config)


def system_part(form: str, body: Any) -> str:
    """What stands in the place of the system prompt."""
    match form:
        case "anthropic":
            return json.dumps(body["system"])
        case "gemini":
            return json.dumps(body["systemInstruction"])
        case "openai":
            return json.dumps([one for one in body["messages"][:3] if one["role"] == "system"])
    first = [one for one in body["input"][:3] if one.get("role") in ("developer", "system")]
    return json.dumps([body.get("instructions"), first])


def long_chat() -> list[Message]:
    asked = (Message("user", f"Step {number}: {'go on ' * 60}") for number in range(40))
    return [one for user in asked for one in (user, Message("assistant", "Done. " * 20))]


@pytest.mark.parametrize("form", MODELS)
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("compacted", [False, True])
def test_every_body_has_the_rule_and_the_task_after_a_cut(
    tmp_path: Path, ledger: Ledger, form: str, stored: bool, compacted: bool
) -> None:
    of_ledger: Any = {"ledger": ledger, "folder": "/work/castle", "session": "s"} if stored else {}
    chat = ContextManager(**of_ledger)
    chat.add([Message("system", RULE), Message("user", TASK), *long_chat()])
    if compacted:
        chat.compact(made_at=NOW)
        chat.compact(made_at=NOW)
    turn = assemble(
        folder(tmp_path, MODELS[form]), chat, Request(Message("user", "Now?"), format=form), now=NOW
    )
    assert RULE in system_part(form, turn.request)
    assert TASK in json.dumps(turn.request)
    assert json.dumps(turn.request).count(RULE) == 1
    if stored:
        again = ContextManager(ledger=ledger, folder="/work/castle", session="s")
        assert [text_of(one) for one in again.messages] == [text_of(one) for one in chat.messages]


def test_the_manager_sends_the_rule_after_a_cut_and_a_compaction() -> None:
    chat = ContextManager(ContextConfig(max_tokens=3_000, reserve_tokens=500))
    chat.set_system_prompt("You are Pia.")
    chat.add([Message("system", RULE), Message("user", TASK), *long_chat()])
    assert [text_of(one) for one in chat.build_messages()[:3]] == ["You are Pia.", RULE, TASK]
    for _ in range(2):
        chat.compact(made_at=NOW)
        assert [text_of(one) for one in chat.build_messages()[:2]] == ["You are Pia.", RULE]
        chat.add(long_chat())
    chat.undo_compaction()
    chat.undo_compaction()
    assert text_of(chat.history.messages[0]) == RULE


def test_a_summary_of_somebody_else_keeps_the_rule() -> None:
    chat = ContextManager()
    chat.add([Message("system", RULE), Message("user", TASK), *long_chat()[:6]])
    old, kept = select_messages_for_compaction(chat.messages, chat.counter, 200)
    assert (text_of(kept[0]), Message("system", RULE) in old) == (RULE, False)
    chat.apply_compaction(create_summary_message("They ported it.", NOW, len(old)), kept[1:])
    assert [one.role for one in chat.messages[:2]] == ["system", "user"]
    assert text_of(chat.messages[0]) == RULE


def test_a_servers_compaction_keeps_the_rule(ledger: Ledger) -> None:
    for of_ledger in ({}, {"ledger": ledger, "folder": "/work/castle", "session": "s"}):
        chat = ContextManager(**of_ledger)  # type: ignore[arg-type]
        chat.add([Message("system", RULE), Message("user", TASK), Message("assistant", "Yes.")])
        part = {"type": "compaction", "content": "They port it.", "signature": "c2ln"}
        chat.add([Message("user", "Go on."), Message("assistant", [part, {"type": "text", "text": "Done."}])])
        assert [one.role for one in chat.messages] == ["system", "assistant", "assistant"]
        chat.add([Message("user", "And now?")])
        assert text_of(chat.messages[0]) == RULE


# ---------------------------------------------------------------- receipts, late results


def test_a_receipt_lists_the_rules_and_counts_the_results_that_it_replaced() -> None:
    chat = ContextManager(ContextConfig(max_tokens=6_000, reserve_tokens=500))
    chat.add([Message("user", TASK), Message("assistant", "Yes."), Message("system", RULE)])
    for number in range(8):
        chat.add_assistant_message(None, [{"id": f"c{number}", "name": "read", "arguments": {}}])
        chat.add_tool_result(f"c{number}", "read", f"content {number} " * 100)
    receipt = chat.compact(made_at=NOW)
    held = "\n".join(map(text_of, chat.history.messages))
    assert receipt.lost.rules == (() if RULE in held else (RULE,))
    stayed = sum(message.role == "tool" for message in chat.history.messages)
    assert receipt.replaced_results == {"read": 8 - stayed}


def test_a_late_result_whose_call_was_compacted_is_a_marked_text(tmp_path: Path) -> None:
    chat = ContextManager(ContextConfig(max_tokens=3_000, reserve_tokens=500))
    chat.add(
        [Message("user", TASK), Message("assistant", None, (ToolCall("c1", "build", {}),)), *long_chat()]
    )
    chat.compact(made_at=NOW)
    chat.add([Message("user", "Well?"), Message("assistant", "It runs.")])
    chat.add_tool_result("c1", "build", "12 errors in gate.py")
    sent = chat.build_messages()
    assert pairing_errors(sent) == []
    marked = next(one for one in sent if "12 errors" in text_of(one))
    assert marked.role == "user"
    assert text_of(marked) == (
        '<late_tool_result tool="build" call="c1">\n12 errors in gate.py\n</late_tool_result>'
    )
    for form, model in MODELS.items():
        turn = assemble(folder(tmp_path, model), chat, Request(format=form), now=NOW)
        assert "12 errors in gate.py" in json.dumps(turn.request)
        assert "result-orphan" in [repair.kind for repair in turn.metadata["repairs"]]


def test_a_late_result_with_an_image_keeps_its_parts() -> None:
    parts = [{"type": "text", "text": "a wall"}, {"type": "image", "url": "https://x.example/a.png"}]
    chat = ContextManager()
    chat.add([Message("user", "Look."), Message("tool", parts, tool_call_id="c9", name="look")])
    sent = chat.build_messages()[-1]
    assert (sent.role, sent.content[1:-1]) == ("user", parts)  # type: ignore[index]


@pytest.mark.parametrize("form", MODELS)
@given(data=st.data())
def test_no_system_message_and_no_result_leaves_without_a_word(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    """Random histories: what is not sent is in a repair, what is compacted in the receipt."""
    leading = data.draw(st.integers(0, 2))
    messages = [Message("system", f"rule {number} <{number}>") for number in range(leading)]
    messages += data.draw(histories(most=16))
    chat = ContextManager(ContextConfig(max_tokens=2_000, reserve_tokens=200), counter=Letters())
    chat.add(messages)
    if data.draw(st.booleans()):
        _compact(chat)
    _check_sent(tmp_path_factory, chat, form, leading)


def _compact(chat: ContextManager) -> None:
    before = list(chat.history.messages)
    try:
        receipt = chat.compact(made_at=NOW)
    except RequestError:
        return
    kept = {id(one) for one in chat.history.messages}
    gone = [one for one in before if id(one) not in kept]
    texts = "\n".join(map(text_of, chat.history.messages))
    for message in gone:
        if message.role == "system":
            begin = text_of(message)[:1_000].strip()  # the receipt has the beginning of a long one
            assert begin in texts or any(rule.startswith(begin) for rule in receipt.lost.rules)
    results = sum(one.role == "tool" for one in gone)
    counted = receipt.replaced_results
    assert (sum(counted.values()) if isinstance(counted, dict) else 0) == results


def _check_sent(paths: pytest.TempPathFactory, chat: ContextManager, form: str, leading: int) -> None:
    snapshot = _SNAPSHOTS.get(form) or _SNAPSHOTS.setdefault(form, folder(paths.mktemp("a"), MODELS[form]))
    try:
        turn = assemble(
            snapshot, chat, Request(Message("user", "Now?"), format=form), now=NOW, counter=Letters()
        )
    except ContextOverflowError:
        return
    body = json.dumps(turn.request)
    for number in range(leading):
        assert f"rule {number} <{number}>" in system_part(form, turn.request)
    kinds = [repair.kind for repair in turn.metadata.get("repairs", ())]
    shortened = set(turn.view.shortened)
    for index, message in enumerate(chat.history.messages):
        opening = text_of(message)[:12].strip()
        if message.role in ("system", "tool") and opening and index not in shortened and opening not in body:
            assert kinds, message


_SNAPSHOTS: dict[str, Snapshot] = {}
