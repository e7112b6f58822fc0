"""A chat with thinking and tools through OpenAI's SDK: a line of the input is a message.

OPENAI_API_KEY=… python examples/chats/openai_chat.py
"""

import json
import sys
from datetime import datetime
from typing import Any

import openai

from nexus_context import ContextManager, Message, Options, Request, assemble

TIDE = {
    "name": "tides.low",  # OpenAI takes no dot: it is sent under another name
    "description": "Says when the tide is low today.",
    "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def run_tool(name: str, arguments: dict[str, Any]) -> Any:
    """The result of a call: text, or a value that is sent as JSON."""
    if name == "tides.low":
        return {"place": arguments.get("place"), "low": "12:40"}
    return f"There is no tool {name}."


client = openai.OpenAI()
chat = ContextManager(model="gpt-5.1")
chat.set_system_prompt("You answer questions about tides, in one sentence.")
chat.set_tool_definitions([TIDE])
options = Options(parameters={"thinking": {"level": "medium"}, "max_tokens": 8_000})

for line in sys.stdin:
    message: Message | None = Message("user", line.strip())
    while True:
        request = Request(message, format="openai-responses", options=options)
        turn = assemble(None, chat, request, now=datetime.now().astimezone())
        assert turn.request is not None
        answer = client.responses.create(**turn.request)
        chat.add([turn.turn_message, Message("assistant", answer.output)])
        calls = [item for item in answer.output if item.type == "function_call"]
        for call in calls:
            name = turn.metadata.get("renamedTools", {}).get(call.name, call.name)
            chat.add_tool_result(call.call_id, name, run_tool(name, json.loads(call.arguments)))
        if not calls:
            break
        message = None  # the loop goes on: the next request has no message of its own
    print(answer.output_text)
