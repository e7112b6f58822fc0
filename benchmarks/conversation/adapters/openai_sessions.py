"""openai-agents: an `SQLiteSession` in memory that returns the newest items, `limit` of them."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agents.memory import SessionSettings, SQLiteSession  # type: ignore[import-not-found]
from benchmarks.conversation.facts import OpenAIMessage, calls_of

MEAN_TOKENS = 93  # of a message of the joined chat: the limit is a number of items


class Limited:
    """The system prompt is the agent's instructions and no item; they are sent with every request."""

    def __init__(self, budget: int) -> None:
        self._session = SQLiteSession("bench", session_settings=SessionSettings(limit=budget // MEAN_TOKENS))
        self._loop = asyncio.new_event_loop()
        self._system: list[OpenAIMessage] = []

    def prepare(self, message: OpenAIMessage) -> list[Any]:
        """Items of the Responses API; a message with calls becomes several."""
        if message["role"] == "system":
            self._system.append(message)
            return []
        if message["role"] == "tool":
            content = message["content"]
            return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}]
        said = [{"role": message["role"], "content": message["content"]}] if message.get("content") else []
        calls = [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in calls_of(message)
        ]
        return [*said, *calls]

    def add(self, prepared: list[Any]) -> None:
        """Stores the items."""
        self._loop.run_until_complete(self._session.add_items(prepared))

    def build(self) -> list[Any]:
        """The newest items."""
        items: list[Any] = self._loop.run_until_complete(self._session.get_items())
        return items

    def sent(self, built: list[Any]) -> Sequence[OpenAIMessage]:
        """Items that follow each other as one message with calls."""
        sent = list(self._system)
        for item in built:
            kind = item.get("type")
            if kind == "function_call_output":
                sent.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            elif kind == "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                call = {"id": item["call_id"], "type": "function", "function": function}
                before = sent[-1] if sent else {}
                if before.get("role") == "assistant":
                    sent[-1] = before | {"tool_calls": [*before.get("tool_calls", ()), call]}
                else:
                    sent.append({"role": "assistant", "content": None, "tool_calls": [call]})
            else:
                sent.append(dict(item))
        return sent

    def encode(self) -> bytes:
        """All items, by `json`."""
        return json.dumps(self._loop.run_until_complete(self._session.get_items(limit=1_000_000))).encode()
