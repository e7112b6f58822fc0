"""Makes what is sent for a result without its call, and for a call without its result."""

from nexus_context.conversation.message import Message, ToolCall, content_of, is_error, text_part
from nexus_context.folder.prompt import texts

LONGEST_LABEL = 60
"""Characters of a tool's name and of an id in the mark."""


def late_result(result: Message) -> Message:
    """Make a user's message of a result whose call was cut or compacted away."""
    labels = {"tool": result.name, "call": result.tool_call_id, "error": "true" if is_error(result) else None}
    names = "".join(f' {label}="{value[:LONGEST_LABEL]}"' for label, value in labels.items() if value)
    begin, end = texts.text("late_result").replace("{names}", names).split("{result}")
    content = content_of(result)
    if isinstance(content, str):
        return Message("user", f"{begin}{content}{end}")
    return Message("user", [text_part(begin.rstrip()), *content, text_part(end.lstrip())])


def missing_result(call: ToolCall) -> Message:
    """Make a result for a call, which says that no result was recorded."""
    content, meta = texts.text("result_missing"), {"is_error": True}
    return Message("tool", content, tool_call_id=call.id, name=call.name, meta=meta)
