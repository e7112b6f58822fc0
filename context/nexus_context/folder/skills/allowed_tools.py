"""Reads the tools of `allowed-tools`: names, some with a pattern in parentheses, as in `Bash(git:*)`.

1. White space and commas separate tools. In parentheses they belong to the pattern, and parentheses may be
   nested there. Each item of a list is one tool.
2. Doubtful parts are left out and reported, so that a typing mistake never approves more than intended: a
   pattern that is separated from its tool, with the name before it; a tool that continues after its pattern;
   an item that is not one tool.
3. The intended reach of an unpaired parenthesis is unknown: one that is not closed is left out with
   everything that follows, one that was not opened with everything before it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nexus_context.config import fixes
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.folder.skills.front_matter import Node
from nexus_context.text.redact import redact_prose

MOST_QUOTED = 200  # characters of a tool and its pattern in a message

CODE = "skill.allowed-tools"
MAX_REPORTED = 20
"""Parts left out that are reported; more are not."""

_EXAMPLE = "`Bash(git:*)`"


class _Token(NamedTuple):
    """The text between two separators. `stray`: a `)` too many; `unclosed`: a `(` that is never closed."""

    start: int
    end: int
    stray: bool
    unclosed: bool


class _Fault(NamedTuple):
    """A range of the value that is left out. Removing `gap` would make it one tool."""

    start: int
    end: int
    message: str
    gap: tuple[int, int] | None = None


_Range = tuple[int, int]
_Locate = Callable[[int, int], Span | None]


def allowed_tools(path: str, text: str, value: Node) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Return the tools of a field's value, each on one line, and the problems of what is left out.

    `text` is the text of the file.
    """
    if value.items is not None:
        return _of_items(path, value.items)
    content = value.text or ""
    good, faults = _scan(content)
    source = text[value.span.start : value.span.end]
    at = source.find(content)

    def locate(start: int, end: int) -> Span | None:
        if at >= 0:
            return Span(value.span.start + at + start, value.span.start + at + end)
        # folded: the source has the same words with other white space between them
        words = map(re.escape, content[start:end].split())
        matches = list(re.finditer(r"\s+".join(words), source))
        return (
            Span(*(value.span.start + offset for offset in matches[0].span())) if len(matches) == 1 else None
        )

    tools = tuple(_one_line(content[start:end]) for start, end in good)
    return tools, tuple(_problems(path, value.span, faults, locate))


def _of_items(path: str, items: Sequence[Node]) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """As `allowed_tools`. Items are scanned together: a comma in `[…]` ends one within parentheses, too."""
    texts = [(item, item.text.strip()) for item in items if item.text and item.text.strip()]
    joined, bounds = "", []
    for _, text in texts:
        bounds.append((len(joined), len(joined) + len(text)))
        joined += f"{text}\n"
    good, faults = _scan(joined)
    whole_tools = set(bounds).intersection(good)
    starts = [start for start, _ in good]
    for start, end in bounds:
        last_tool = bisect_left(starts, end) - 1  # of the tools that begin before the item ends
        if (start, end) not in whole_tools and last_tool >= 0 and good[last_tool][1] > start:
            faults.append(_Fault(start, end, _not_one(joined[start:end])))

    def locate(start: int, end: int) -> Span:
        spans = [
            item.span
            for (item, _), (item_start, item_end) in zip(texts, bounds, strict=True)
            if item_start < end and start < item_end
        ]
        return Span(spans[0].start, spans[-1].end)

    message = "This is not a text, and it is left out. Put the tool in quotes."
    foreign = [
        Problem(path, item.span, CODE, Severity.WARNING, message=message)
        for item in items
        if item.text is None
    ]
    plain = [fault._replace(gap=None) for fault in faults]
    tools = tuple(_one_line(joined[start:end]) for start, end in good if (start, end) in whole_tools)
    return tools, (*foreign, *_problems(path, Span(0, 0), plain, locate))


def _problems(path: str, field_span: Span, faults: Sequence[_Fault], locate: _Locate) -> Iterator[Problem]:
    for fault in faults[:MAX_REPORTED]:
        fix = None
        gap = locate(*fault.gap) if fault.gap is not None else None
        if gap is not None and gap.end > gap.start:
            fix = Fix("Remove the space", (Edit(gap, ""),))
        span = locate(fault.start, fault.end) or field_span
        yield Problem(path, span, CODE, Severity.WARNING, message=fault.message, fix=fix)


def _tokens(text: str) -> Iterator[_Token]:
    start: int | None = None
    depth, stray = 0, False
    for at, character in enumerate(text):
        if not depth and (character.isspace() or character == ","):
            if start is not None:
                yield _Token(start, at, stray, unclosed=False)
            start, stray = None, False
            continue
        start = at if start is None else start
        if character == "(":
            depth += 1
        elif character == ")":
            stray = stray or not depth
            depth = max(0, depth - 1)
    if start is not None:
        yield _Token(start, len(text.rstrip()), stray, unclosed=depth > 0)


def _scan(text: str) -> tuple[list[_Range], list[_Fault]]:
    """Split a text into the ranges of its tools, and faults for what is left out."""
    good: list[_Range] = []
    faults: list[_Fault] = []
    name: _Range | None = None  # without a pattern, right before the token
    for token in _tokens(text):
        start, end = token.start, token.end
        source = text[start:end]
        alone = name
        name = None
        if token.stray:
            good.clear()
            faults.append(_Fault(start, end, _stray(source)))
        elif source.startswith("("):
            if alone is not None:
                good.pop()
            faults.append(_apart(text, alone, token))
        elif token.unclosed:
            faults.append(_Fault(start, end, _unclosed(source)))
        elif "(" not in source:
            name = (start, end)
            good.append(name)
        elif _closing(source) == len(source) - 1:
            good.append((start, end))
        else:
            faults.append(_Fault(start, end, _continues(source)))
    return good, faults


def _closing(text: str) -> int:
    """Where the first parenthesis of a balanced text is closed."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and not depth:
            return at
    return -1


def _one_line(tool: str) -> str:
    return " ".join(tool.split())


def _quote(tool: str) -> str:
    return fixes.quoted(redact_prose(_one_line(tool[:MOST_QUOTED])))


def _stray(source: str) -> str:
    return (
        f"{_quote(source)} has a `)` whose `(` is missing: it is left out, with everything before it. "
        f"Write the tool and its pattern as in {_EXAMPLE}, or remove the `)`."
    )


def _unclosed(source: str) -> str:
    tool = source.partition("(")[0]
    example = f"`{tool}(…)`" if len(tool) <= 40 else _EXAMPLE
    return (
        f"{_quote(source)} is not closed: it is left out, with everything that follows. Write `)` where "
        f"the pattern ends: {example}."
    )


def _apart(text: str, name: _Range | None, pattern: _Token) -> _Fault:
    """The fault of a pattern that does not directly follow a tool's name; `name` is further before it."""
    source = text[pattern.start : pattern.end]
    if pattern.unclosed:
        start = name[0] if name is not None else pattern.start
        message = f"{_quote(text[start : pattern.end])} has a `(` that is neither at a tool's name nor closed"
        message += f": it is left out, with everything that follows. Write it as in {_EXAMPLE}."
        return _Fault(start, pattern.end, message)
    if name is None:
        message = f"{_quote(source)} has no tool's name right before it: it is left out. Write one, as in "
        return _Fault(pattern.start, pattern.end, f"{message}{_EXAMPLE}.")
    tool = text[slice(*name)]
    message = (
        f"{_quote(tool)} and its pattern are separated: both are left out. Write {_quote(tool + source)}."
    )
    gap = (name[1], pattern.start)
    return _Fault(name[0], pattern.end, message, gap if text[slice(*gap)].isspace() else None)


def _continues(source: str) -> str:
    return (
        f"{_quote(source)} continues after its pattern: it is left out. Write a space after the `)`, or "
        "remove what follows it."
    )


def _not_one(source: str) -> str:
    return (
        f"{_quote(source)} is not one tool: it is left out. Write each tool as an item of its own, in quotes "
        "if there is a comma in its pattern."
    )
