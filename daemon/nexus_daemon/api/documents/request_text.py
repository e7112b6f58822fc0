"""Show the next request as a text: the system prompt as it is, then the tools and the messages.

The headings between the parts are not sent.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from nexus_daemon.lsp import framing
from nexus_daemon.protocol.context import AssembledContext, Fragment, Preview
from nexus_daemon.protocol.shapes import Range


def request_text(request: AssembledContext) -> Preview:
    """Return the text of a dry run, with the sources of the system prompt in it."""
    heading = "── system prompt ──\n\n"
    explanation = request.explanation
    fragments = [] if explanation is None else explanation.fragments
    return Preview(
        revision=request.revision,
        text="".join((heading, request.system_prompt, *_tools(request), *_messages(request))),
        fragments=[_moved(fragment, heading.count("\n")) for fragment in fragments],
        tokens=request.usage.total,
    )


def _tools(request: AssembledContext) -> Iterator[str]:
    if request.tools:
        yield f"\n\n── tools ({len(request.tools):,}) ──\n\n{_json(request.tools)}"


def _messages(request: AssembledContext) -> Iterator[str]:
    current = [] if request.current_message is None else [request.current_message]
    for number, message in enumerate([*request.history, *current], 1):
        fields = framing.decode(framing.encode(message), dict[str, Any])
        role, content = fields.pop("role", "message"), fields.pop("content", None)
        other_fields = {name: value for name, value in fields.items() if value is not None}
        parts = [content if isinstance(content, str) else _json(content)] if content else []
        parts += [_json(other_fields)] if other_fields else []
        yield f"\n\n── message {number:,}, {role} ──\n\n" + "\n\n".join(parts)


def _json(value: Any) -> str:
    return msgspec.json.format(framing.encode(value), indent=2).decode()


def _moved(fragment: Fragment, lines: int) -> Fragment:
    start, end = (
        msgspec.structs.replace(position, line=position.line + lines)
        for position in (fragment.range.start, fragment.range.end)
    )
    return msgspec.structs.replace(fragment, range=Range(start, end))
