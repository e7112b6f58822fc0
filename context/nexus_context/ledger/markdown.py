"""Renders a session as Markdown for people, with everything that it has.

1. The session is a first-level heading, a turn a second-level one, each message (its role) a third-level one.
2. Text stays unchanged. Text that could affect the page (headings, HTML, an unclosed fence) is quoted: every
   line begins with `> `.
3. Tool calls, results and everything that is not text are fenced. A fence is longer than any fence in its
   content.
4. A compaction is a turn with its summary and a list of the messages that it keeps. An undo names the
   compaction that it takes back.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from nexus_context.conversation.compaction.receipt import opaque_provider
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.conversation.summary import SUMMARY_META, is_summary
from nexus_context.ledger.records import SessionOrigin, Turn

ROLES = {"user": "User", "assistant": "Assistant", "tool": "Tool result", "system": "System"}

_HEADING = re.compile(r"(?:^|\r) {0,3}(?:#|=+[ \t]*\r?$|-+[ \t]*\r?$)", re.MULTILINE)
_FENCE = re.compile(r"(?:^|\r) {0,3}(`{3,}|~{3,})", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")
_LINE_END = re.compile(r"\r\n?|\n")
_HTML = re.compile(r"(?:^|\r) {0,3}<", re.MULTILINE)


def pieces(session: str, turns: Iterable[Turn], origin: SessionOrigin | None = None) -> Iterator[str]:
    """Yield the page in pieces. `origin` is the session of another assistant that this session was kept from,
    if any.
    """
    yield f"# {_inline(session)}\n"
    if origin is not None:
        yield f"\nKept from {_inline(origin.assistant)}: {_inline(origin.id)} ({_inline(origin.path)})\n"
    for turn in turns:
        yield from _turn(turn)


def fenced(text: str, language: str = "") -> str:
    """Return a text in a fence that nothing in the text can close."""
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
    """The context of the user message, item by item."""
    for name, value in context.items() if isinstance(context, dict) else [("", context)]:
        block = fenced(value) if isinstance(value, str) else fenced(_json(value), "json")
        yield f"\nContext{f', {_code(name)}' if name else ''}:\n\n{block}"


def _compaction(turn: Turn) -> str:
    provider = opaque_provider(turn.receipt)
    replacement = "the summary" if provider is None else f"a compaction by a server of {provider}"
    text = f"From here on {replacement} stands for what came before (compaction `{turn.compaction}`)"
    ranges = ", ".join(
        str(start) if end == start + 1 else f"{start} to {end - 1}" for start, end in turn.kept
    )
    text += f"; kept beside it: messages {ranges}, counted from 0.\n" if ranges else ".\n"
    return text + (f"\nReceipt:\n\n{fenced(_json(turn.receipt), 'json')}" if turn.receipt is not None else "")


def _message(message: Message) -> Iterator[str]:
    named = f" {_code(message.name)}" if message.name else ""
    answered = f" of {_code(message.tool_call_id)}" if message.tool_call_id else ""
    yield f"\n### {ROLES[message.role]}{named}{answered}\n"
    content = content_of(message)
    for part in [content] if isinstance(content, str) else content:
        for text in _part(part, tool=message.role == "tool"):
            yield f"\n{text}"
    for call in message.tool_calls:
        yield f"\n{_call(call)}"
    meta = message.meta
    if isinstance(meta, dict) and is_summary(message):  # the text says so
        meta = {key: value for key, value in meta.items() if key not in SUMMARY_META}
    if isinstance(meta, dict | list) and meta:
        yield f"\nMeta:\n\n{fenced(_json(meta), 'json')}"


def _part(part: Any, *, tool: bool) -> Iterator[str]:
    """One part of a content: its text, then everything else."""
    other_content = None
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        other_content = {key: value for key, value in part.items() if key not in ("type", "text")}
        part = part["text"]
    if isinstance(part, str):
        if part:
            yield fenced(part) if tool else _text(part)
    else:
        other_content = part
    if other_content or not isinstance(other_content, dict | None):
        yield fenced(_json(other_content), "json")


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
    """Text for a heading: one line, with Markdown escaped."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(text.split()))
