"""The budget is that of the request: its window, answer, tools, bytes, and what its provider counted."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context import Options, Request, assemble
from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.bodies import body_bytes
from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.conversation.tools import sent_fields
from nexus_context.errors import ContextOverflowError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext
from support.folders import load_configured

NOW = datetime(2026, 11, 26, 9, 5, tzinfo=UTC)
SONNET = "claude-sonnet-4-5"


def folder(tmp_path: Path, model: str = SONNET, *, prompt: str = "", **settings: Any) -> Snapshot:
    config = json.dumps({"provider": {"model": model}} | settings)
    return load_configured(tmp_path, config, f"//- /home/a/NEXUS.md\n{prompt}\n")


def check(
    snapshot: Snapshot, chat: ContextManager, form: str = "anthropic", **options: Any
) -> AssembledContext:
    """A turn of "Why?"; input and answer fit the window, and the rows sum to the total."""
    request = Request(Message("user", "Why?"), format=form, options=Options(**options))
    turn = assemble(snapshot, chat, request, now=NOW)
    body: Any = turn.request
    answer = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    assert turn.usage.total + answer <= (8_192 if turn.model == "gpt-4" else 200_000)
    assert sum(row.tokens for row in turn.usage.rows) == turn.usage.total
    return turn


def words(tokens: int) -> list[Message]:
    """A conversation of about so many tokens."""
    turns = (Message("user", f"{at} {'word ' * 1_000}") for at in range(tokens // 1_000))
    return [one for user in turns for one in (user, Message("assistant", "ok"))]


# ---------------------------------------------------------------- which budget


@pytest.mark.parametrize(
    ("model", "config", "limit", "known"),
    [
        (SONNET, None, 200_000, True),
        ("gpt-4", ContextConfig(reserve_tokens=100), 8_192, True),
        (SONNET, ContextConfig(max_tokens=8_000), 8_000, True),
        (SONNET, ContextConfig(max_tokens=9_000_000), 200_000, True),
        ("house-model", None, 128_000, False),
        (None, None, 8_000, False),
        (None, ContextConfig(max_tokens=16_000), 16_000, True),
    ],
)
def test_a_manager_has_the_window_of_its_model(
    model: str | None, config: ContextConfig | None, limit: int, known: bool
) -> None:
    spent = ContextManager(config, model=model).get_token_usage()
    assert (spent.limit, spent.limit_known) == (limit, known)


def test_the_default_is_8000() -> None:
    assert ContextConfig().max_tokens == 8_000
    chat = ContextManager()
    chat.set_system_prompt("word " * 9_000)
    chat.add_user_message("Why?")
    with pytest.raises(ContextOverflowError, match=r"give the manager its model, .* it keeps 8,000"):
        chat.build_messages()


def test_a_compaction_uses_the_window_of_the_model() -> None:
    chat = ContextManager(model=SONNET)
    chat.add(words(120_000))
    receipt = chat.compact(made_at=NOW)
    assert receipt.tokens_before > 100_000
    assert receipt.tokens_after > 20_000


def test_the_budget_of_the_last_request_holds(tmp_path: Path) -> None:
    chat = ContextManager()  # it knows no model: the folder's request does
    chat.add(words(20_000))
    assert chat.is_over_budget()
    check(folder(tmp_path), chat)
    assert not chat.is_over_budget()
    assert chat.compact(made_at=NOW).tokens_after > 4_000
    chat.undo_compaction()
    check(folder(tmp_path, context={"max_tokens": 10_000}), chat)
    assert not chat.is_over_budget()  # that request was cut
    chat.add(words(8_000))
    assert chat.is_over_budget()
    assert chat.compact(made_at=NOW).tokens_after < 6_000


# ---------------------------------------------------------------- the answer


@pytest.mark.parametrize("tokens", [1_000, 120_000, 165_000, 190_000])
def test_an_answer_that_nobody_limits_takes_what_is_left(tmp_path: Path, tokens: int) -> None:
    chat = ContextManager(model=SONNET)
    chat.add(words(tokens))
    turn = check(folder(tmp_path), chat)
    assert turn.request is not None
    assert 2_000 <= turn.request["max_tokens"] <= 64_000
    assert turn.usage.reserved == 2_000  # nothing is cut for it


@pytest.mark.parametrize(
    ("model", "form", "asked", "reserved"),
    [
        (SONNET, "anthropic", 64_000, 64_000),
        (SONNET, "anthropic", 900_000, 64_000),  # the model's own maximum
        (SONNET, "anthropic", 100, 2_000),
        ("gpt-4", "openai", 4_000, 4_000),
    ],
)
def test_an_answer_that_is_asked_for_is_reserved(
    tmp_path: Path, model: str, form: str, asked: int, reserved: int
) -> None:
    chat = ContextManager(model=model)
    chat.add(words(190_000 if model == SONNET else 7_000))
    snapshot = folder(tmp_path, model, parameters={"max_tokens": asked})
    turn = check(snapshot, chat, form)
    assert turn.usage.reserved == reserved
    assert turn.usage.total <= turn.usage.limit - reserved
    assert turn.budget.reserve_response == reserved
    smaller = check(
        folder(tmp_path, SONNET, parameters={"max_tokens": asked}), chat, max_context_tokens=100_000
    )
    assert smaller.usage.reserved == 2_000  # 100,000 of 200,000 are outside the limit


# ---------------------------------------------------------------- tools


def test_tools_cost_what_is_sent_of_them(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"outputSchema": {"type": "string"}}}
    tool = {"name": "look", "description": "Look there.", "inputSchema": schema}
    extra = {
        "outputSchema": {"type": "object", "description": "long " * 2_000},
        "_meta": {"vendor": "x" * 20_000},
        "icons": [{"src": "data:image/png;base64," + "A" * 40_000}],
        "title": "Look " * 500,
        "annotations": {"readOnlyHint": True},
        "execution": {"taskSupport": "x" * 5_000},
    }
    plain = check(folder(tmp_path), ContextManager(), additional_tools=[tool])
    heavy = check(folder(tmp_path), ContextManager(), additional_tools=[tool | extra])
    assert plain.usage.by_category()["tools"] == heavy.usage.by_category()["tools"]
    assert plain.request == heavy.request
    chat = ContextManager(model=SONNET)
    chat.set_tool_definitions([tool | extra])
    assert chat.get_token_usage()["tools"] == plain.usage.by_category()["tools"]
    inner = {"type": "function", "function": {"name": "look", "parameters": schema, "_meta": extra}}
    assert "_meta" not in sent_fields(inner)["function"]
    hosted = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    assert sent_fields(hosted) == hosted


# ---------------------------------------------------------------- what the provider counted


@pytest.mark.parametrize("lines", [100, 900])
def test_a_correction_compares_the_same_request(tmp_path: Path, lines: int) -> None:
    snapshot, chat = folder(tmp_path, prompt="Rule.\n" * lines), ContextManager(model=SONNET)
    for number in range(4):
        request = Request(Message("user", f"q{number} {'word ' * 600}"), format="anthropic")
        turn = assemble(snapshot, chat, request, now=NOW)
        answer = Message("assistant", "a " * 100)
        assert turn.turn_message is not None
        counted = ProviderUsage(
            input_tokens=turn.usage.total, output_tokens=chat.counter.count_messages([answer])
        )
        chat.add([turn.turn_message, answer], usage=counted)
    spent = check(snapshot, chat).usage
    assert spent.corrected is not None
    assert abs(spent.corrected.total - spent.total) < 100


def test_a_usage_after_a_tool_loop_is_that_of_its_last_request(tmp_path: Path) -> None:
    snapshot, chat = folder(tmp_path, prompt="Rule.\n" * 300), ContextManager(model=SONNET)
    turn = check(snapshot, chat)
    assert turn.turn_message is not None
    chat.add([turn.turn_message, Message("assistant", None, (ToolCall("c1", "read"),))])
    chat.add_tool_result("c1", "read", "content " * 3_000)
    step = assemble(snapshot, chat, Request(format="anthropic"), now=NOW)
    answer = Message("assistant", "Done. " * 50)
    tokens = chat.counter.count_messages([answer])
    counted = ProviderUsage(input_tokens=step.usage.total, output_tokens=tokens)
    chat.add([answer], usage=counted)
    spent = check(snapshot, chat).usage
    assert spent.corrected is not None
    assert abs(spent.corrected.total - spent.total) < 200
    chat.compact(made_at=NOW)
    chat.add(
        [Message("user", "x"), Message("assistant", "y")],
        usage=ProviderUsage(input_tokens=2_000, output_tokens=1),
    )


# ---------------------------------------------------------------- bytes


def picture(number: int, size: int) -> dict[str, Any]:
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (1900).to_bytes(4, "big") + (1000).to_bytes(4, "big")
    data = base64.b64encode(head + bytes([number]) * size).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def screenshots(count: int, size: int) -> list[Message]:
    """So many results of a tool, each an image of so many bytes."""
    messages = []
    for number in range(count):
        call = (ToolCall(f"c{number}", "shot", {}),)
        messages += [
            Message("user", f"Shot {number}"),
            Message("assistant", None, call),
            Message("tool", [picture(number, size)], tool_call_id=f"c{number}", name="shot"),
            Message("assistant", "ok"),
        ]
    return messages


FORMS = {"anthropic": SONNET, "openai": "gpt-4o", "openai-responses": "gpt-5.1", "gemini": "gemini-2.5-pro"}


@pytest.mark.parametrize("form", FORMS)
def test_the_oldest_images_leave_before_a_body_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(body_bytes, "BODY_BYTES", dict.fromkeys(body_bytes.BODY_BYTES, 400_000))
    snapshot, chat = folder(tmp_path, FORMS[form]), ContextManager(model=FORMS[form])
    chat.add(screenshots(20, 20_000))  # 540 kB in base64
    turn = check(snapshot, chat, form)
    text = json.dumps(turn.request)
    assert len(text) <= 400_000
    assert [repair.kind for repair in turn.metadata["repairs"] if repair.kind == "media-left-out"]
    places = [index for index, message in enumerate(turn.history) if isinstance(message.content, list)]
    left = [at for at in places if "not shown any more" in text_of(turn.history[at])]
    assert left == places[: len(left)]
    assert text.count("not shown any more") == len(left) == turn.view.unsent_media
    counted = sum(turn.view.sizes(chat.counter))
    assert counted == turn.view.tokens
    chat.add([Message("user", "Why?"), Message("assistant", "So."), *screenshots(1, 20_000)[:3]])
    later = check(snapshot, chat, form)
    assert later.view.unsent_media == len(left)  # the same: the requests begin alike
    assert later.history[: len(turn.history)] == turn.history


def test_text_and_small_images_never_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bytes, "BODY_BYTES", {"anthropic": 60_000})
    chat = ContextManager(model=SONNET)
    chat.add([*screenshots(3, 900), *words(2_000)])
    turn = check(folder(tmp_path), chat)
    assert (turn.view.unsent_media, turn.view.excess_bytes, turn.metadata.get("repairs")) == (0, 0, None)


def test_a_message_that_alone_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_bytes, "BODY_BYTES", {"anthropic": 50_000})
    request = Request(Message("user", [picture(1, 60_000)]), format="anthropic")
    with pytest.raises(ContextOverflowError, match="bytes more than the provider takes"):
        assemble(folder(tmp_path), ContextManager(), request, now=NOW)
    assert assemble(folder(tmp_path), ContextManager(), Request(request.message), now=NOW).request is None


def test_files_leave_after_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bytes, "BODY_BYTES", {"anthropic": 100_000})
    pdf = base64.b64encode(b"%PDF-1.7" + b"x" * 60_000).decode()
    document = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": pdf},
    }
    chat = ContextManager(model=SONNET)
    chat.add([Message("user", [document]), Message("assistant", "ok"), *screenshots(1, 30_000)])
    assert "An earlier image is not shown" in json.dumps(check(folder(tmp_path), chat).request)
    assert pdf in json.dumps(check(folder(tmp_path), chat).request)
    chat.add([Message("user", [document]), Message("assistant", "ok")])
    assert "An earlier file is not shown" in json.dumps(check(folder(tmp_path), chat).request)
