"""Answers of all providers through their real SDKs, from a provider on loopback that streams byte by byte."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from nexus_context import ContextManager, Message, Options, Request, assemble
from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import ToolCall
from nexus_daemon.providers import FORMATS, Answer, Provider, Target
from nexus_daemon.providers import streaming as retries
from support.provider_asking import KEY, ask, body_for
from support.provider_streams import STREAMS, TEXT, THOUGHT, TOOL
from support.streaming_provider import Reply, data_lines, events, streaming_provider

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PROVIDERS = sorted(STREAMS)


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY_S", 0.001)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_with_thinking_text_and_calls(provider: str) -> None:
    expected = STREAMS[provider]
    result = ask(provider, Reply([expected.data]))
    assert result.error is None
    assert result.answer is not None
    assert (result.text, result.thinking) == (TEXT, THOUGHT)
    assert result.answer.message.tool_calls == tuple(expected.calls)
    assert (result.answer.usage, result.answer.stop_reason) == (expected.usage, expected.stop_reason)
    (request,) = result.requests
    assert request.path.partition("?")[0] == expected.path


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_next_request_returns_what_the_provider_gave(provider: str) -> None:
    expected = STREAMS[provider]
    chat = ContextManager(model=expected.model)
    chat.set_tool_definitions([{"name": TOOL, "description": "d", "inputSchema": {"type": "object"}}])
    options = Options(parameters={"max_tokens": 4_000})

    def assembled(message: Message | None) -> tuple[dict[str, Any], Message | None]:
        request = Request(message, format=FORMATS[provider], options=options)
        turn = assemble(None, chat, request, now=NOW)
        assert turn.request is not None
        return turn.request | {"model": expected.model}, turn.turn_message

    body, message = assembled(Message("user", "When is the tide low?"))
    result = ask(provider, Reply([expected.data]), body=body)
    assert result.answer is not None, result.error
    assert message is not None
    chat.add([message, result.answer.message])
    for call in result.answer.message.tool_calls:
        chat.add_tool_result(call.id, call.name, "12:40")
    body, _ = assembled(None)
    history = body[expected.history]
    start = len(history) - len(expected.returned)
    at = next(index for index in range(start + 1) if history[index] == expected.returned[0])
    assert history[at : at + len(expected.returned)] == list(expected.returned)
    assert ask(provider, Reply([expected.data]), body=body).error is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_chunks_are_cut_anywhere(provider: str) -> None:
    """In one session all answers in two chunks, each cut at another byte, and one in single bytes."""
    data = STREAMS[provider].data
    whole = ask(provider, Reply([data])).answer
    first = data.index(b"\n\n")  # within what every answer has
    cuts = [*range(first - 40, first + 40), *_cuts_in_letters(data)]
    single_bytes = [data[at : at + 1] for at in range(len(data))]
    replies = [Reply([data[:cut], data[cut:]]) for cut in cuts]

    async def run() -> None:
        async with (
            streaming_provider(*replies, Reply(single_bytes)) as server,
            Provider(Target(provider, server.url, KEY)) as connection,
        ):
            for reply in (*replies, Reply(single_bytes)):
                items = [item async for item in connection.stream(body_for(provider))]
                assert items[-1] == whole, reply

    asyncio.run(run())


def _cuts_in_letters(data: bytes) -> list[int]:
    """The places within letters of several bytes."""
    return [at for at in range(1, len(data)) if data[at] & 0xC0 == 0x80]


# ---------------------------------------------------------------- what not every answer has


def answer_of(provider: str, data: bytes) -> Answer:
    result = ask(provider, Reply([data]))
    assert result.answer is not None, result.error
    return result.answer


def _anthropic_answer(*parts: dict[str, Any], reason: str = "end_turn") -> Answer:
    usage = {"input_tokens": 3, "output_tokens": 1}
    start = {
        "type": "message_start",
        "message": {"id": "m", "role": "assistant", "content": [], "usage": usage},
    }
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}
    return answer_of("anthropic", events(start, *parts, end, {"type": "message_stop"}))


def _begin(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def test_a_refusal_without_a_word() -> None:
    answer = _anthropic_answer(reason="refusal")
    assert answer == Answer(Message("assistant", ""), ProviderUsage(3, 2), "refusal")


def test_a_paused_answer_keeps_the_blocks_of_server_tools() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"x": 1}]}
    answer = _anthropic_answer(
        _begin(0, use),
        _delta(0, type="input_json_delta", partial_json=""),
        _delta(0, type="input_json_delta", partial_json='{"query": "tide"}'),
        _begin(1, result),
        reason="pause_turn",
    )
    assert answer.stop_reason == "pause_turn"
    assert answer.message.content == [use | {"input": {"query": "tide"}}, result]


def test_a_call_that_was_cut_off_has_a_text() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "edit", "input": {}}
    part = _delta(0, type="input_json_delta", partial_json='{"text": "a very')
    answer = _anthropic_answer(_begin(0, use), part, reason="max_tokens")
    assert answer.message.tool_calls == (ToolCall("toolu_1", "edit", '{"text": "a very'),)


def test_citations_and_deltas_that_nobody_knows() -> None:
    citation = {"type": "char_location", "cited_text": "x"}
    answer = _anthropic_answer(
        _begin(0, {"type": "text", "text": ""}),
        _delta(0, type="text_delta", text="Low."),
        _delta(0, type="citations_delta", citation=citation),
        _delta(0, type="new_delta", value=1),
        {"type": "new_event", "value": 2},
    )
    assert answer.message.content == [{"type": "text", "text": "Low.", "citations": [citation]}]


def test_halves_of_a_letter_are_joined() -> None:
    """Programs that cut a text in UTF-16 send them in two events."""
    data = events(
        {"type": "message_start", "message": {"usage": {}}},
        _begin(0, {"type": "text", "text": ""}),
        _delta(0, type="text_delta", text="\ud83c"),
        _delta(0, type="text_delta", text="\udf0a"),
        {"type": "message_stop"},
    )
    result = ask("anthropic", Reply([data]))
    assert result.answer is not None
    assert (result.text, result.answer.message.content) == ("\ufffd\ufffd", [{"type": "text", "text": "🌊"}])


def _chat_answer(*deltas: dict[str, Any], reason: str = "stop", **fields: Any) -> Answer:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    end = {"index": 0, "delta": {}, "finish_reason": reason}
    return answer_of(
        "openai-compatible",
        data_lines(*({"choices": [each]} for each in choices), {"choices": [end]} | fields),
    )


def test_calls_of_servers_that_number_them_otherwise() -> None:
    def calls(*pieces: dict[str, Any]) -> list[tuple[str, str, Any]]:
        answer = _chat_answer(*({"tool_calls": [piece]} for piece in pieces), reason="tool_calls")
        return [(call.id, call.name, call.arguments) for call in answer.message.tool_calls]

    whole = [{"id": each, "function": {"name": "f", "arguments": "{}"}} for each in ("a", "b")]
    expected: list[tuple[str, str, Any]] = [("a", "f", {}), ("b", "f", {})]
    assert calls(*({"index": 0} | each for each in whole)) == expected  # Ollama, earlier
    assert calls(*whole) == expected
    assert calls(*({"index": at} | each for at, each in enumerate(whole))) == expected
    begun = [{"index": at, "id": name, "function": {"name": "f"}} for at, name in enumerate("ab")]
    rest = [{"index": at, "id": name, "function": {"arguments": "{}"}} for at, name in enumerate("ab")]
    assert calls(*begun, *reversed(rest)) == expected
    assert calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}) == [
        ("a", "f", {"x": 1})
    ]
    assert calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}) == [("a", "f", "{")]
    assert calls({"index": 0, "id": None, "function": {"name": "f"}}) == [("", "f", {})]


def test_other_fields_of_chat_completions() -> None:
    answer = _chat_answer(
        {"reasoning": "Hm."}, {"content": "Low."}, reason="length", usage={"prompt_tokens": 4}
    )
    content = [{"type": "reasoning_content", "text": "Hm."}, {"type": "text", "text": "Low."}]
    assert answer == Answer(Message("assistant", content), None, "length")
    answer = _chat_answer({"refusal": "No."}, reason="content_filter")
    assert answer.message.content == [{"type": "refusal", "refusal": "No."}]
    assert _chat_answer().message == Message("assistant", "")
    usage = {"prompt_tokens": 4, "completion_tokens": 2, "prompt_tokens_details": None}
    assert _chat_answer({"content": "x"}, usage=usage).usage == ProviderUsage(4, 2)


def test_a_response_without_output_at_its_end() -> None:
    text = {"type": "output_text", "text": "Low.", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    response = {"status": "incomplete", "output": [], "incomplete_details": {"reason": "max_output_tokens"}}
    answer = answer_of("openai", events(done, {"type": "response.incomplete", "response": response}))
    assert answer == Answer(Message("assistant", [item]), None, "max_output_tokens")


def _gemini_answer(*parts: dict[str, Any], reason: str | None = "STOP", **fields: Any) -> Answer:
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts
    ]
    end = {"candidates": [{"finishReason": reason}]} if reason else {}
    return answer_of("google", data_lines(*chunks, end | fields))


def test_signed_parts_stay_apart() -> None:
    answer = _gemini_answer(
        {"text": "Lo"},
        {"text": "w."},
        {"text": " At", "thoughtSignature": "c2ln"},
        {"text": " noon."},
        {"text": "", "thoughtSignature": "bW9yZQ=="},
    )
    assert answer.message.content == [
        {"text": "Low."},
        {"text": " At", "thoughtSignature": "c2ln"},
        {"text": " noon."},
        {"text": "", "thoughtSignature": "bW9yZQ=="},
    ]


def test_gemini_says_why_it_stops() -> None:
    assert _gemini_answer({"text": "Lo"}, reason="MAX_TOKENS").stop_reason == "MAX_TOKENS"
    blocked = _gemini_answer(reason=None, promptFeedback={"blockReason": "PROHIBITED_CONTENT"})
    assert (blocked.stop_reason, blocked.message) == ("PROHIBITED_CONTENT", Message("assistant", ""))
    assert (
        _gemini_answer({"text": "Lo"}, reason="MALFORMED_FUNCTION_CALL").stop_reason
        == "MALFORMED_FUNCTION_CALL"
    )
