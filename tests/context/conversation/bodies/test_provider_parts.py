"""Parts of one provider: as they were to their own, to the others as text or left out with a report."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.transcripts.chat_records import neutral
from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import Message, ToolCall
from support.conversations import PARTS, assistant, result, user

PLAIN = {
    "openai": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3.5-flash",
}
SEARCH = {"name": "search", "inputSchema": {"type": "object"}}
CODE = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "code_execution",
    "input": {"code": "search()"},
}
MARK = {
    "type": "tool_call",
    "id": "c1",
    "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"},
}
OUTPUT = {"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 0, "content": []}
RAN = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": OUTPUT}


def body_of(form: str, messages: list[Message], *, model: str = "") -> tuple[Any, list[str]]:
    """The messages of a body in this format, and the codes of its repairs."""
    render: Any = {
        "openai": formats.openai,
        "openai-responses": formats.openai_responses,
        "anthropic": formats.anthropic,
        "gemini": formats.gemini,
    }[form]
    cache: Any = {"cache": None} if form == "anthropic" else {}
    body, repairs = render(model or PLAIN[form], "", messages, [SEARCH], {}, **cache)
    return body.get("messages") or body.get("input") or body.get("contents"), [each.kind for each in repairs]


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("anthropic", []),
        ("openai", ["document-fields-left-out"]),
        ("openai-responses", ["document-fields-left-out"]),
        ("gemini", ["document-fields-left-out"]),
    ],
)
def test_what_is_said_of_a_document(form: str, code: list[str]) -> None:
    sent, repairs = body_of(form, [user([PARTS["described pdf"]])])
    assert repairs == code
    assert ("Of Monday." in str(sent)) == (form == "anthropic")


@pytest.mark.parametrize("form", PLAIN)
def test_a_document_of_text_keeps_its_title_and_context(form: str) -> None:
    sent, repairs = body_of(form, [user([PARTS["titled text"]])])
    if form == "anthropic":
        assert sent[0]["content"] == [PARTS["titled text"]]
        assert repairs == []
    else:
        assert "Notes\\nOf Monday.\\nsaid" in str(sent)
        assert repairs == ["part-as-text"]


@pytest.mark.parametrize("form", PLAIN)
def test_citations_of_an_answer(form: str) -> None:
    cited = {"type": "text", "text": "said", "citations": [{"type": "char_location", "cited_text": "said"}]}
    sent, repairs = body_of(form, [user("go"), assistant([cited]), user("on")])
    assert ("char_location" in str(sent), repairs) == (
        (True, []) if form == "anthropic" else (False, ["citations-left-out"])
    )


def test_a_reference_to_a_tool_is_kept_where_the_request_defines_it() -> None:
    found = [PARTS["tool reference"], {"type": "tool_reference", "tool_name": "gone"}]
    messages = [user("go"), assistant(None, "c1"), result("c1", found)]
    sent, repairs = body_of("anthropic", messages)
    assert sent[-1]["content"][0]["content"] == snapshot(
        [{"type": "tool_reference", "tool_name": "search"}, {"type": "text", "text": "Tool: gone"}]
    )
    assert repairs == ["part-as-text"]
    sent, repairs = body_of("openai", messages)
    assert sent[-1]["content"] == snapshot("""\
Tool: search
Tool: gone\
""")


def calling(content: list[Any]) -> list[Message]:
    answer = Message("assistant", content, (ToolCall("c1", "search"),))
    return [user("go"), answer, result("c1", "found")]


def test_what_called_a_tool() -> None:
    """Code that the server runs calls a tool; its own result comes after that of the tool."""
    sent, repairs = body_of("anthropic", [*calling([CODE, MARK]), assistant([RAN, "Done."]), user("on")])
    call = {"type": "tool_use", "id": "c1", "name": "search", "input": {}, "caller": MARK["caller"]}
    assert sent[1]["content"] == [CODE, call]
    assert sent[3]["content"][0] == RAN
    assert repairs == []
    sent, repairs = body_of("anthropic", calling([MARK]))
    assert "caller" not in str(sent)
    assert repairs == ["caller-left-out"]
    assert "caller-left-out" in body_of("openai", calling([MARK]))[1]
    sent, repairs = body_of("anthropic", [user("go"), assistant([RAN, "Done."]), user("on")])
    assert (sent[1]["content"], repairs) == ([{"type": "text", "text": "Done."}], ["server-tool-left-out"])


@pytest.mark.parametrize("model", ["deepseek-v4", "moonshotai/kimi-k2-thinking", "glm-4.7"])
def test_reasoning_in_the_clear_goes_back_to_its_model(model: str) -> None:
    messages = calling([PARTS["clear reasoning"], {"type": "text", "text": "said"}])
    sent, repairs = body_of("openai", messages, model=model)
    assert (sent[1]["reasoning_content"], sent[1]["content"], repairs) == (
        "I look.",
        [{"type": "text", "text": "said"}],
        [],
    )
    sent, repairs = body_of("openai", messages)
    assert "I look." not in str(sent)
    assert repairs == ["thinking-left-out"]
    for form in ("anthropic", "gemini", "openai-responses"):
        sent, repairs = body_of(form, messages)
        assert "I look." not in str(sent)
        assert "thinking-left-out" in repairs


def test_an_imported_answer_keeps_the_order_of_its_blocks() -> None:
    thinking = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in ("one", "two")]
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "search", "input": {}} for n in (1, 2)]
    blocks = [thinking[0], calls[0], thinking[1], calls[1]]
    messages = [user("go"), *neutral({"role": "assistant", "content": blocks})]
    messages += [result("c1", "1"), result("c2", "2")]
    sent, repairs = body_of("anthropic", messages)
    assert sent[1]["content"] == blocks
    assert repairs == []


def test_imported_reasoning_in_the_clear() -> None:
    record = {"role": "assistant", "content": "said", "reasoning_content": "I look."}
    assert neutral(record) == [
        Message("assistant", [PARTS["clear reasoning"], {"type": "text", "text": "said"}])
    ]
