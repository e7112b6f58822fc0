"""Markup that hides text: models read it; people who look at the rendered page do not see it.

1. Hidden are HTML comments, link definitions that serve as comments (`[//]: # (…)`), and elements with the
   attribute `hidden` or a style that shows nothing (`display: none`). An unclosed one hides the rest.
2. Code spans and fences are visible to people, so their content is not hidden.
3. This is information, not a warning: comments are an ordinary way to leave notes.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.prompt.markdown import code_ranges

MOST_MARKUPS = 100  # of one file that are reported

_COMMENT, _COMMENT_END = "<!--", "-->"
_DEFINITION = re.compile(
    r"""(?m)^[ ]{0,3}\[[^\[\]\n]{1,100}\]:[ \t]*(?:\#|<\#?>)[ \t]+
    (?:"[^"]{1,4000}"|'[^']{1,4000}'|\([^()]{1,4000}\))[ \t]*$""",
    re.VERBOSE,
)
_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9-]{0,40})\s([^<>]{1,2000})>")
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'")
_STYLE = re.compile(r"(?i)\bstyle\s*=")
_NOTHING_SHOWN = re.compile(
    r"(?i)\b(?:display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?![.\d]))"
)
_ATTRIBUTE = re.compile(r"(?i)(?:\A|\s)(hidden)(?=[\s=/]|\Z)")
_BLANK = " \t\r\n-"
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")


class _Markup(NamedTuple):
    span: Span
    noun: str
    closed: bool = True


def hidden_markup(path: str, text: str) -> Iterator[Problem]:
    """An information for each comment or hidden element of a file; a closed one has its removal as a fix."""
    for markup in islice(_markups(text), MOST_MARKUPS):
        fix = Fix(f"Remove the {markup.noun}", (Edit(markup.span, ""),)) if markup.closed else None
        message = (
            f"Models read this {markup.noun}; people who look at the rendered page do not see it. Remove it "
            "unless it is meant for the model."
        )
        yield Problem(
            path, markup.span, "prompt.hidden-markup", Severity.INFORMATION, message=message, fix=fix
        )


def _markups(text: str) -> Iterator[_Markup]:
    """Every piece of hiding markup in order; a nested one is part of the outer one."""
    if "<" not in text and "]:" not in text:
        return
    ranges = code_ranges(text)
    comments = [span for span in ranges if text.startswith(_COMMENT, span.start)]
    code = [span for span in ranges if not text.startswith(_COMMENT, span.start)]
    end = 0
    for markup in merge(_comments(text, comments, code), _definitions(text, code), _elements(text, code)):
        if markup.span.start >= end:
            yield markup
            end = markup.span.end


def _comments(text: str, comments: Sequence[Span], code: Sequence[Span]) -> Iterator[_Markup]:
    end = 0
    for span in comments:
        end = span.end
        if text[span.start + len(_COMMENT) : end - len(_COMMENT_END)].strip(_BLANK):
            yield _Markup(span, "comment")
    start = text.find(_COMMENT, max([end, *(span.end for span in code[-1:])]))
    if start >= 0 and text[start + len(_COMMENT) :].strip():
        yield _Markup(Span(start, len(text)), "comment", closed=False)


def _definitions(text: str, code: Sequence[Span]) -> Iterator[_Markup]:
    for match in _DEFINITION.finditer(text):
        if not _is_code(match.start(), code) and not _BLANK_LINE.search(match[0]):
            yield _Markup(Span(*match.span()), "comment")


def _elements(text: str, code: Sequence[Span]) -> Iterator[_Markup]:
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        at, name, attributes = tag.end(), tag[1], tag[2]
        if _is_code(tag.start(), code) or not _hides(attributes):
            continue
        if name.lower() in _VOID or attributes.endswith("/"):
            yield _Markup(Span(*tag.span()), "element")
            continue
        end = _element_end(text, name, at)
        at = len(text) if end is None else end
        yield _Markup(Span(tag.start(), at), "element", closed=end is not None)


def _hides(attributes: str) -> bool:
    if _STYLE.search(attributes) and _NOTHING_SHOWN.search(attributes):
        return True
    return _ATTRIBUTE.search(_VALUE.sub("", attributes)) is not None


def _element_end(text: str, name: str, at: int) -> int | None:
    """The offset after the element's closing tag; nested elements of the same name are skipped."""
    depth = 1
    for tag in re.compile(rf"(?i)<(/?){re.escape(name)}(?=[\s/>])[^<>]{{0,2000}}>").finditer(text, at):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end()
    return None


def _is_code(offset: int, code: Sequence[Span]) -> bool:
    """Whether one of the ordered spans contains the offset."""
    index = bisect_right(code, offset, key=attrgetter("start")) - 1
    return index >= 0 and offset < code[index].end
