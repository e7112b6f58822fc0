"""Render the answers of `nexus/explain` as Markdown, for a hover."""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from nexus_context.assistants.tracking.in_use import view_title
from nexus_context.text.visible import visible_line
from nexus_daemon.protocol.explain import ExplainAnswer, ExplainLink

_LINK = re.compile(r"\[((?:[^\]\\]|\\.)*)\]\([^)]*\)")
_BOLD = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)  # begins a block: stars elsewhere cover a value
_ESCAPE = re.compile(r"\\([\\*_\[\]<>#])")
LONGEST_VALUE = 200
"""The most characters of a value that are shown."""
Shorten = Callable[[str], str]
"""URI → the path as people write it."""


def answers_text(answers: Sequence[ExplainAnswer], shorten: Shorten) -> str:
    """Render the answers of several views, each under its name.

    `shorten` turns a URI into a path for people.
    """
    return "\n\n---\n\n".join("\n\n".join(_blocks(answer, shorten)) for answer in answers)


def _blocks(answer: ExplainAnswer, shorten: Shorten) -> Iterator[str]:
    title, reason = f"**{view_title(answer.assistant)}**", escaped(answer.reason)
    if answer.value is not None:
        reason = f"{reason.removesuffix('.')}: {code(as_json(answer.value))}"
    if answer.documentation:
        yield f"{title}: {escaped(answer.documentation)}"
        yield reason
    else:
        yield f"{title}: {reason}"
    if answer.chain:
        yield "\n".join(_row(link, shorten) for link in answer.chain)
    if answer.tokens:
        yield f"{'' if answer.exact else '≈ '}{answer.tokens:,} tokens"
    if answer.note:
        yield escaped(answer.note)


def _row(link: ExplainLink, shorten: Shorten) -> str:
    line = link.range.start.line + 1
    row = f"- [{escaped(shorten(link.uri))}:{line}]({link.uri}#L{line}) {code(link.value)}"
    return row if link.wins else f"{row} (does not count)"


def as_json(value: object) -> str:
    """Return a value as it is written in a settings file (JSON)."""
    return msgspec.json.encode(value).decode()


def code(text: str) -> str:
    """Render a text on one line as Markdown code, shortened if it is long."""
    text = visible_line(text)
    text = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


def escaped(text: str) -> str:
    """Escape a text for Markdown, except code between backticks."""
    return "`".join(
        segment if number % 2 else _escaped_words(segment)
        for number, segment in enumerate(visible_line(text).split("`"))
    )


def _escaped_words(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\*_[]<>#" else character for character in text)


def plain(text: str) -> str:
    """Remove the Markdown marks from a text that this module has made."""
    text = _BOLD.sub(r"\1", _LINK.sub(r"\1", text)).replace("`", "").replace("\n\n---\n\n", "\n\n")
    return _ESCAPE.sub(r"\1", text)
