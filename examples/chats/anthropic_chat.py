"""A chat with thinking and tools through Anthropic's SDK: a line of the input is a message.

ANTHROPIC_API_KEY=… python examples/chats/anthropic_chat.py
"""

import sys
from datetime import datetime
from typing import Any

import anthropic

from nexus_context import ContextManager, Message, Options, Request, assemble

TIDE = {
    "name": "tides.low",  # Anthropic takes no dot: it is sent under another name
    "description": "Says when the tide is low today.",
    "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def run_tool(name: str, arguments: dict[str, Any]) -> Any:
    """The result of a call: text, or a value that is sent as JSON."""
    if name == "tides.low":
        return {"place": arguments.get("place"), "low": "12:40"}
    return f"There is no tool {name}."


client = anthropic.Anthropic()
chat = ContextManager(model="claude-sonnet-4-6")
chat.set_system_prompt("You answer questions about tides, in one sentence.")
chat.set_tool_definitions([TIDE])
options = Options(parameters={"thinking": {"budget": 2_000}, "max_tokens": 8_000})

for line in sys.stdin:
    message: Message | None = Message("user", line.strip())
    while True:
        request = Request(message, format="anthropic", options=options)
        turn = assemble(None, chat, request, now=datetime.now().astimezone())
        assert turn.request is not None
        answer = client.messages.create(**turn.request)
        chat.add([turn.turn_message, Message("assistant", answer.content)])
        calls = [part for part in answer.content if part.type == "tool_use"]
        for call in calls:
            name = turn.metadata.get("renamedTools", {}).get(call.name, call.name)
            chat.add_tool_result(call.id, name, run_tool(name, call.input))
        if not calls:
            break
        message = None  # the loop goes on: the next request has no message of its own
    print("".join(part.text for part in answer.content if part.type == "text"))
