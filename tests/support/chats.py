"""Conversations as text, for tests of what is kept of them.

user: a message
assistant: another, which goes on
  in indented lines
bash: git status              a call of the tool `bash` with the argument `command`
edit: src/a.py                any other tool: with the argument `file_path`
todo: {"todos": []}           any tool with these arguments
=> what the call returned     its result
"""

import json

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import MARKER, as_summary

COMMANDS = ("bash", "shell", "execute")


def chat(text: str) -> list[Message]:
    """The messages that a text says; every call is a message of its own."""
    messages: list[Message] = []
    for said in _entries(text):
        if said.startswith("=>"):
            call = messages[-1].tool_calls[0]
            messages.append(Message("tool", said[2:].strip(" "), tool_call_id=call.id, name=call.name))
            continue
        who, _, what = said.partition(": ")
        if who in ("user", "assistant", "system"):
            message = Message(who, what)  # type: ignore[arg-type]
            messages.append(as_summary(message) if what.startswith(MARKER) else message)
        else:
            messages.append(_call(who, what, len(messages)))
    return messages


def _call(who: str, what: str, number: int) -> Message:
    if what.startswith("{"):
        arguments = json.loads(what)
    else:
        arguments = {"command" if who in COMMANDS else "file_path": what}
    return Message("assistant", None, (ToolCall(f"call_{number}", who, arguments),))


def _entries(text: str) -> list[str]:
    entries: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith("  "):
            entries[-1] += f"\n{line[2:]}"
        elif line.strip():
            entries.append(line)
    return entries
