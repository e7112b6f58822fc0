"""What a model cannot take becomes a text in the body, with a repair; everything else stays as it is."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from inline_snapshot import snapshot

from nexus_context.config.features import FEATURES
from nexus_context.conversation.bodies.model_features import adapted
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.folders import load_configured
from support.histories import histories
from support.provider_rules import CHECKS, check_anthropic, check_openai

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
MESSAGES = [
    Message("user", [{"type": "text", "text": "What is this?"}, IMAGE, PDF]),
    Message("assistant", "I look.", tool_calls=(ToolCall("c1", "look", {"at": 1}),)),
    Message("tool", "A cat.", tool_call_id="c1"),
    Message("assistant", "A cat."),
]
TOOL = {"name": "look", "inputSchema": {"type": "object"}}


def check(root: Path, supports: list[str], form: str) -> tuple[dict[str, Any], list[str]]:
    """The body and the repairs for a model with these features; the rows sum to the total."""
    config = {"provider": {"model": "mine"}, "models": {"mine": {"supports": supports}}}
    snapshot_of_folder = load_configured(root, json.dumps(config))
    conversation = ContextManager()
    conversation.add(MESSAGES)
    options = Options(additional_tools=[TOOL], parameters={"thinking": {"budget": 2000}})
    request = Request(message=Message("user", "Sure?"), format=form, options=options)
    context = assemble(snapshot_of_folder, conversation, request, now=datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert sum(row.tokens for row in context.usage.rows) == context.usage.total
    assert context.request is not None
    return context.request, [repair.text for repair in context.metadata.get("repairs", ())]


def test_a_model_without_features(tmp_path: Path) -> None:
    body, repairs = check(tmp_path, ["json"], "openai")
    check_openai(body)
    assert "tools" not in body
    assert body["messages"][1:-1] == snapshot(
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {
                        "type": "text",
                        "text": "[A part of the type image is left out: the model cannot read it.]",
                    },
                    {
                        "type": "text",
                        "text": "[A part of the type document is left out: the model cannot read it.]",
                    },
                ],
            },
            {
                "role": "assistant",
                "content": """\
I look.
[Tool call look: {"at":1}]\
""",
            },
            {
                "role": "user",
                "content": """\
[Result of the tool look:]
A cat.\
""",
            },
            {"role": "assistant", "content": "A cat."},
        ]
    )
    assert repairs == snapshot(
        [
            "mine has no tools: 1 tool definitions are left out.",
            "mine has no thinking: the setting is left out.",
            "mine has no vision: a part of the type image is left out; a text replaces it.",
            "mine has no documents: a part of the type document is left out; a text replaces it.",
            "mine has no tools: calls and their results are sent as texts. (2 times)",
        ]
    )
    body, same_repairs = check(tmp_path, ["json"], "anthropic")
    check_anthropic(body)
    assert ("tools" in body, "thinking" in body, same_repairs) == (False, False, repairs)


def test_no_format_has_what_a_model_lacks(tmp_path: Path) -> None:
    _, repairs = check(tmp_path, ["json"], "openai")
    for form, check_rules in CHECKS.items():
        body, same_repairs = check(tmp_path, ["json"], form)
        check_rules(body)
        assert "tools" not in body
        assert [one for one in same_repairs if "mine has no" in one] == repairs


def test_a_model_that_does_not_think_gets_no_reasoning() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    messages = [Message("assistant", [thinking, {"type": "text", "text": "Hi."}])]
    adapted_messages, repairs = adapted(messages, ["thinking"], "mine")
    assert adapted_messages == [Message("assistant", [{"type": "text", "text": "Hi."}])]
    assert [(one.kind, one.index, one.text) for one in repairs] == [
        ("thinking-unsupported", 0, "mine has no thinking: reasoning is left out.")
    ]


def test_a_model_with_all_of_them(tmp_path: Path) -> None:
    for form in CHECKS:
        body, repairs = check(tmp_path, list(FEATURES), form)
        assert (len(body["tools"]), [one for one in repairs if "mine has no" in one]) == (1, [])


def test_a_thinking_budget_is_sent_to_a_model_that_thinks(tmp_path: Path) -> None:
    body, _ = check(tmp_path, ["thinking"], "anthropic")
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}


@given(histories())
def test_nothing_is_lost_but_what_is_reported(messages: list[Message]) -> None:
    """A model that has everything gets the same messages; without tools there is no call or result."""
    assert adapted(messages, (), "mine") == (messages, [])
    texts, repairs = adapted(messages, FEATURES, "mine")
    assert [one for one in texts if one.tool_calls or one.role == "tool"] == []
    assert len(texts) == len(messages)
    assert bool(repairs) == (list(texts) != messages)


def test_what_nobody_says_of_a_model_is_sent(tmp_path: Path) -> None:
    conversation = ContextManager()
    conversation.add([Message("user", [{"type": "text", "text": "What is this?"}, IMAGE])])
    context = assemble(
        load_configured(tmp_path, '{"provider": {"model": "grok-4"}}'),
        conversation,
        Request(format="openai"),
        now=datetime(2026, 11, 20, 12, tzinfo=UTC),
    )
    assert context.request is not None
    assert context.request["messages"][-1]["content"][-1]["type"] == "image_url"
    assert "repairs" not in context.metadata
