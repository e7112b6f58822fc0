"""The chats of `examples/chats` through the providers' real SDKs, against a provider on loopback."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assistants.provider_stand_in import ProviderStandIn
from support.provider_rules import CHECKS

CHATS = Path(__file__).resolve().parents[1] / "examples" / "chats"
INPUT = "When is the tide low at Brest?\nThank you.\n"
ANSWERS = ("At 12:40.", "You are welcome.")
RESULT = '{"place":"Brest","low":"12:40"}'


class Provider(NamedTuple):
    """A chat's provider: where its SDK looks for an address, and its answers with a part of each kind."""

    format: str
    variables: dict[str, str]
    tool: str  # as it is sent
    thinking: Any
    history: str  # the field of a body that has the messages

    def answer(self, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to the first request calls the tool; those after it have a text."""
        text = ANSWERS[number - 2]
        arguments = {"place": "Brest"}
        if self.format == "anthropic":
            call = {"type": "tool_use", "id": "toolu_1", "name": self.tool, "input": arguments}
            content = [self.thinking, call] if number == 1 else [{"type": "text", "text": text}]
            usage = {"input_tokens": 9, "output_tokens": 9}
            reason = "tool_use" if number == 1 else "end_turn"
            message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
            return message | {
                "content": content,
                "stop_reason": reason,
                "stop_sequence": None,
                "usage": usage,
            }
        if self.format == "gemini":
            call = {"functionCall": {"name": self.tool, "args": arguments}, "thoughtSignature": "c2ln"}
            parts = [self.thinking, call] if number == 1 else [{"text": text}]
            return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
        said = {"type": "output_text", "text": text, "annotations": []}
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        }
        call |= {"name": self.tool, "arguments": json.dumps(arguments)}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"]}
        rest = {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return response | rest | {"output": [self.thinking, call] if number == 1 else [item]}


PROVIDERS = {
    "anthropic_chat": Provider(
        "anthropic",
        {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": "{address}"},
        "tides_low",
        {"type": "thinking", "thinking": "A place in Brittany.", "signature": "c2ln"},
        "messages",
    ),
    "openai_chat": Provider(
        "openai-responses",
        {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "{address}/v1"},
        "tides_low",
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
        "input",
    ),
    "gemini_chat": Provider(
        "gemini",
        {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{address}"},
        "tides_low_at",
        {"text": "A place in Brittany.", "thought": True},
        "contents",
    ),
}


def test_every_chat_has_a_provider() -> None:
    assert {path.stem for path in CHATS.glob("*.py")} == set(PROVIDERS)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_chat_with_thinking_and_a_tool(name: str, tmp_path: Path) -> None:
    provider, chat = PROVIDERS[name], CHATS / f"{name}.py"
    assert len(chat.read_text(encoding="utf-8").splitlines()) <= 60
    bodies: list[dict[str, Any]] = []

    def answer(path: str, body: dict[str, Any]) -> dict[str, Any]:
        wire = json.dumps(body).replace("parameters_json_schema", "parametersJsonSchema")  # Google's SDK's
        bodies.append(json.loads(wire))
        return provider.answer(len(bodies), body)

    with ProviderStandIn(answers=answer) as server:
        variables = {key: value.format(address=server.address) for key, value in provider.variables.items()}
        run = subprocess.run(
            [sys.executable, "-W", "error::DeprecationWarning:__main__", str(chat)],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"} | variables,
            input=INPUT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (run.returncode, run.stdout.splitlines()) == (0, list(ANSWERS)), run.stderr
    first, looped, last = bodies
    for body in bodies:
        CHECKS[provider.format](body)
        assert provider.tool in json.dumps(body["tools"])
    sent = [json.dumps(body[provider.history]) for body in bodies]
    assert "tide low at Brest" in sent[0]
    assert "c2ln" in sent[1]  # the thinking comes back as it was
    assert RESULT in sent[1].replace("\\", "").replace(": ", ":").replace(", ", ",")
    for before, after in ((first, looped), (looped, last)):
        shared = before[provider.history]
        assert after[provider.history][: len(shared)] == shared
