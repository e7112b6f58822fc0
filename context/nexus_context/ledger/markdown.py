"""A session as Markdown for people: nothing of what was said is left out, whoever said it.

1. The session is the first heading, a turn a heading of the second level, each message one of the third: who
   speaks.
2. Text stands as it is. Text that could be taken for a part of the page, with headings, HTML or a fence that
   is not closed, is a quotation: every line of it begins with `> `.
3. Tool calls, results and what is no text stand in fences; a fence is longer than any in what it holds.
4. A compaction is a turn that says which messages it keeps, and holds its summary; an undo says what it takes
   back.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.ledger.records import Turn

ROLES = {"user": "User", "assistant": "Assistant", "tool": "Tool result", "system": "System"}

_HEADING = re.compile(r"(?:^|\r) {0,3}(?:#|=+[ \t]*\r?$|-+[ \t]*\r?$)", re.MULTILINE)
_FENCE = re.compile(r"(?:^|\r) {0,3}(`{3,}|~{3,})", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")
_LINE_END = re.compile(r"\r\n?|\n")
_HTML = re.compile(r"(?:^|\r) {0,3}<", re.MULTILINE)


def pieces(session: str, turns: Iterable[Turn]) -> Iterator[str]:
    """The page, piece by piece."""
    yield f"# {_inline(session)}\n"
    for turn in turns:
        yield from _turn(turn)


def fenced(text: str, language: str = "") -> str:
    """Text in a fence that nothing in it can close."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _turn(turn: Turn) -> Iterator[str]:
    about = [_inline(turn.created)]
    if turn.model:
        about.append(_inline(turn.model))
    if turn.type == "query":
        yield f"\n## Turn {turn.seq}\n\n{' · '.join(about)}\n"
    elif turn.type == "undo":
        yield f"\n## Turn {turn.seq}: compaction taken back\n\n{' · '.join(about)}\n\n"
        yield f"The compaction `{turn.compaction}` and all later ones are not in force any more.\n"
    else:
        yield f"\n## Turn {turn.seq}: compaction\n\n{' · '.join(about)}\n\n{_compaction(turn)}"
    if turn.context is not None:
        yield from _context(turn.context)
    for message in turn.messages:
        yield from _message(message)


def _context(context: Any) -> Iterator[str]:
    """What was put around the user's message, item by item where it has names."""
    for name, value in context.items() if isinstance(context, dict) else [("", context)]:
        shown = fenced(value) if isinstance(value, str) else fenced(_json(value), "json")
        yield f"\nContext{f', {_code(name)}' if name else ''}:\n\n{shown}"


def _compaction(turn: Turn) -> str:
    said = f"From here on the summary stands for what came before (compaction `{turn.compaction}`)"
    kept = ", ".join(str(first) if end == first + 1 else f"{first} to {end - 1}" for first, end in turn.kept)
    said += f"; kept beside it: messages {kept}, counted from 0.\n" if kept else ".\n"
    return said + (f"\nReceipt:\n\n{fenced(_json(turn.receipt), 'json')}" if turn.receipt is not None else "")


def _message(message: Message) -> Iterator[str]:
    named = f" {_code(message.name)}" if message.name else ""
    answered = f" of {_code(message.tool_call_id)}" if message.tool_call_id else ""
    yield f"\n### {ROLES[message.role]}{named}{answered}\n"
    content = content_of(message)
    for part in [content] if isinstance(content, str) else content:
        for said in _part(part, tool=message.role == "tool"):
            yield f"\n{said}"
    for call in message.tool_calls:
        yield f"\n{_call(call)}"
    if isinstance(message.meta, dict | list) and message.meta:
        yield f"\nMeta:\n\n{fenced(_json(message.meta), 'json')}"


def _part(part: Any, *, tool: bool) -> Iterator[str]:
    """One part of a content: its text, and what else it holds."""
    rest = None
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        rest = {key: value for key, value in part.items() if key not in ("type", "text")}
        part = part["text"]
    if isinstance(part, str):
        if part:
            yield fenced(part) if tool else _text(part)
    else:
        rest = part
    if rest or not isinstance(rest, dict | None):
        yield fenced(_json(rest), "json")


def _text(text: str) -> str:
    if _HEADING.search(text) or _HTML.search(text) or len(_FENCE.findall(text)) % 2:
        text = "> " + _LINE_END.sub(r"\g<0>> ", text)
    return text + "\n"


def _call(call: ToolCall) -> str:
    arguments = call.arguments
    text, language = (arguments, "") if isinstance(arguments, str) else (_json(arguments), "json")
    named = f" {_code(call.id)}" if call.id else ""
    return f"**Tool call** {_code(call.name)}{named}\n\n{fenced(text, language)}"


def _json(value: Any) -> str:
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (UnicodeError, msgspec.DecodeError):
        from nexus_context.ledger.rows import json_text

        return json_text(value)


def _code(text: str) -> str:
    line = " ".join(text.split())
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def _inline(text: str) -> str:
    """Text in a heading: one line, with nothing that Markdown would take for its own."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(text.split()))
