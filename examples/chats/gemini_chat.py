"""A chat with thinking and tools through Google's SDK: a line of the input is a message.

GEMINI_API_KEY=… python examples/chats/gemini_chat.py
"""

import sys
from datetime import datetime
from typing import Any

from google import genai

from nexus_context import ContextManager, Message, Options, Request, assemble

MODEL = "gemini-3-pro-preview"
TIDE = {
    "name": "tides:low at",  # Gemini takes no space: it is sent under another name
    "description": "Says when the tide is low today.",
    "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def run_tool(name: str, arguments: dict[str, Any]) -> Any:
    """The result of a call: text, or a value that is sent as JSON."""
    if name == "tides:low at":
        return {"place": arguments.get("place"), "low": "12:40"}
    return f"There is no tool {name}."


client = genai.Client()
chat = ContextManager(model=MODEL)
chat.set_system_prompt("You answer questions about tides, in one sentence.")
chat.set_tool_definitions([TIDE])
options = Options(parameters={"thinking": {"level": "high"}, "max_tokens": 8_000})

for line in sys.stdin:
    message: Message | None = Message("user", line.strip())
    while True:
        request = Request(message, format="gemini", options=options)
        turn = assemble(None, chat, request, now=datetime.now().astimezone())
        assert turn.request is not None
        contents, settings = turn.request["contents"], turn.request.get("generationConfig", {})
        others = {key: turn.request[key] for key in ("systemInstruction", "tools") if key in turn.request}
        answer = client.models.generate_content(model=MODEL, contents=contents, config={**others, **settings})
        parts = answer.candidates[0].content.parts
        chat.add([turn.turn_message, Message("assistant", parts)])
        calls = [part.function_call for part in parts if part.function_call]
        for call in calls:
            name = turn.metadata.get("renamedTools", {}).get(call.name, call.name)
            chat.add_tool_result(call.id or "", name, run_tool(name, call.args))
        if not calls:
            break
        message = None  # the loop goes on: the next request has no message of its own
    print("".join(part.text for part in parts if part.text and not part.thought))
