"""Finds hidden text: what models read and people do not see, which can carry unnoticed instructions.

Characters (`hidden_text`):

1. Hidden are tag characters, bidirectional controls, characters without width or ink (joiners, fillers, soft
   hyphens, blank braille, the controls of notations), variation selectors and control characters such as ESC
   and backspace. A run of them is one problem, whose fix removes the run.
2. Not hidden is what writing needs: one variation selector after an emoji, an ideograph or a Mongolian
   letter; a joiner between emoji, or after a letter of Arabic, Indic and the like; the tags of the three
   flags that have them; a zero-width space within Thai, Khmer and their neighbours; a direction mark near
   right-to-left letters; a filler beside a Hangul jamo; blank braille and the controls of a notation beside
   its own signs.
3. Tag characters spell ASCII, variation selectors bytes: the message shows the spelling.
4. A byte order mark at the start is left to `files`.

Markup (`hidden_markup`), which people do not see in the rendered page:

5. Hidden are HTML comments, link definitions that serve as comments (`[//]: # (…)`), and elements with the
   attribute `hidden` or a style that shows nothing (`display: none`). An unclosed one hides the rest.
6. Code spans and fences are visible to people, so their content is not hidden.
7. This is information, not a warning: comments are an ordinary way to leave notes. Those of the template that
   `nexus init` writes are not reported.
"""

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from nexus_context.config import fixes
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.folder.layers.template import is_template_comment
from nexus_context.folder.prompt.markdown import code_ranges
from nexus_context.text.redact import redact_prose

MOST_RUNS = 100  # of one file that are reported
MOST_SHOWN = 200  # code points of a message in tag characters
MOST_NAMES = 3  # of code points in one run
NEAR = 200  # code points on the same line in which a right-to-left letter explains a direction mark

_ZERO_WIDTH = "\u00ad\u034f\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\u3164\ufeff\uffa0\ufff0-\ufffb"
_CONTROLS = "\x01-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f"  # a NUL has its own problem: `files`
_MARKS = "\u061c\u200e\u200f"
_BIDI = f"{_MARKS}\u202a-\u202e\u2066-\u206f"
_FREE_SELECTORS = "\u180b-\u180d\u180f"  # of Mongolian letters
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"

# inkless characters of a script or notation, and the signs beside which they are needed
_NEIGHBOURS = {
    "\u115f\u1160": "\u1100-\u115e\u1161-\u11ff\ua960-\ua97c\ud7b0-\ud7fb",  # Hangul fillers, jamo
    "\u2800": "\u2801-\u28ff",  # braille
    "\U00013430-\U0001343f": "\U00013000-\U0001342f",  # hieroglyphs
    "\U0001bca0-\U0001bca3": "\U0001bc00-\U0001bc9f",  # shorthand
    "\U0001d173-\U0001d17a": "\U0001d100-\U0001d172\U0001d17b-\U0001d1ff",  # music
}
_INKLESS = "".join(_NEIGHBOURS)
_HIDDEN = _ZERO_WIDTH + _CONTROLS + _BIDI + _FREE_SELECTORS + _SELECTORS + _INKLESS + _TAGS

_PICTURES = "\u00a9\u00ae\u203c-\u205f\u2070-\u3299\U0001f000-\U0001faff"
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_VARIED = f"\u1000-\u109f\u2200-\u2aff\u3000-\u33ff\ua840-\ua87f{_IDEOGRAPHS}"
_JOINED = (
    "\u0600-\u061b\u061d-\u0dff\u0f00-\u109f\u1700-\u180d\u180f-\u18af\u1900-\u1cff\ua800-\uabff"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
_UNSPACED = "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\uaa60-\uaadf"
_RIGHT_TO_LEFT = (
    "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
)

# a character and the one that may follow it
_PAIRS = (
    rf"[#*0-9{_PICTURES}][\ufe0e\ufe0f]|[{_VARIED}][\ufe00-\ufe02]|[{_IDEOGRAPHS}][\U000e0100-\U000e01ef]"
    rf"|[{_JOINED}][\u200c\u200d]|[\u1820-\u18aa][{_FREE_SELECTORS}]|[\u0300-\u034e\u0350-\u036f\u0591-\u05c7]\u034f"
)
# pairs that stand alone, the common case, are skipped within the regex; it must begin with a set
_RUN = rf"[{_HIDDEN}](?:(?<!{_PAIRS.replace('|', ')(?<!')})[{_HIDDEN}]*|[{_HIDDEN}]+)"
_FLAGS = "\U0001f3f4(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
)

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
_EDGE, _WORDS = "start|begin|end", r"[\w.:/@-]{1,60}(?:[ ][\w.:/@-]{1,60}){0,2}"
_MARKER = re.compile(
    rf"(?i)<!--\s{{0,9}}(?:({_WORDS}?)[:\s_-]{{1,3}}({_EDGE})|({_EDGE})[:\s_-]{{1,3}}({_WORDS}))\s{{0,9}}-->"
)
"""A comment by which a tool finds its block: `NAME:START` or `BEGIN NAME`, or the end of one."""
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")


class _Markup(NamedTuple):
    span: Span
    noun: str
    closed: bool = True


def hidden_text(path: str, text: str) -> Iterator[Problem]:
    """Yield a warning for each run of hidden characters of a file, with the fix that removes it."""
    for span in _runs(text):
        fix = Fix("Remove the hidden text", (Edit(span, ""),))
        message = _message(text[span.start : span.end])
        yield Problem(path, span, "prompt.hidden-text", Severity.WARNING, message=message, fix=fix)


@functools.lru_cache(maxsize=64)
def _runs(text: str) -> tuple[Span, ...]:
    """Cached: all files but the edited one are the same on every keystroke."""
    suspects = _CONTROLS if text.isascii() else _HIDDEN
    if not _compiled(f"[{suspects}]").search(text):
        return ()
    spans: list[Span] = []
    for match in _compiled(_RUN).finditer(text):
        start = _start(text, *match.span())
        if start < match.end() and not _needed(text, start, match.end()):
            spans.append(Span(start, match.end()))
            if len(spans) == MOST_RUNS:
                break
    return tuple(spans)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled on first use; most folders need none."""
    return re.compile(pattern)


def _start(text: str, start: int, end: int) -> int:
    """Where hidden text begins in a run, after what belongs to the character before it."""
    if start == 0:
        return int(text[0] == "\ufeff")
    for pattern in (_PAIRS, _FLAGS):
        match = _compiled(pattern).match(text, start - 1, end)
        if match is not None:
            return match.end()
    return start


def _needed(text: str, start: int, end: int) -> bool:
    """Whether the rest of a run is needed to write its script or an emoji."""
    run, next_character = text[start:end], text[end : end + 1]
    previous_character = text[start - 1 : start] if start else ""
    if run == "\u200d":
        base = (
            text[start - 2 : start - 1] if previous_character in ("\ufe0e", "\ufe0f") else previous_character
        )
        return _is_one_of(_PICTURES, base) and _is_one_of(_PICTURES, next_character)
    if run == "\u200b":
        return _is_one_of(_UNSPACED, previous_character) and _is_one_of(_UNSPACED, next_character)
    if _compiled(f"[{_INKLESS}]").match(run):
        return any(
            not _compiled(f"[^{inkless}]").search(run)
            and (_is_one_of(signs, previous_character) or _is_one_of(signs, next_character))
            for inkless, signs in _NEIGHBOURS.items()
        )
    if len(run) <= 2 and not _compiled(f"[^{_MARKS}]").search(run):
        low = max(start - NEAR, text.rfind("\n", max(start - NEAR, 0), start) + 1, 0)
        high = text.find("\n", end, end + NEAR)
        letters = _compiled(f"[{_RIGHT_TO_LEFT}]")
        return letters.search(text, low, end + NEAR if high < 0 else high) is not None
    return False


def _is_one_of(characters: str, char: str) -> bool:
    return _compiled(f"[{characters}]").match(char) is not None


def _message(run: str) -> str:
    spelling = _spelling(run)
    if spelling:
        effect = f"People do not see it, models can read {fixes.as_json(spelling)}"
    elif _compiled(f"[{_CONTROLS}]").search(run):
        effect = "Terminals act on it instead of showing it, models read it"
    elif _compiled(f"[{_BIDI}]").search(run):
        effect = "People see the text around it in another order than models read it"
    else:
        effect = "People do not see it, models do"
    return f"Hidden text, {_names(run)}: {effect}. Remove it."


def _spelling(run: str) -> str:
    """The text that tag characters and variation selectors spell, secrets covered; empty if it is none."""
    tags = "".join(chr(ord(char) - 0xE0000) for char in run if 0xE0020 <= ord(char) <= 0xE007E)
    data = bytes(_selected(char) for char in run if _compiled(f"[{_SELECTORS}]").match(char))
    try:
        spelt = data.decode() if len(data) > 1 else ""
    except UnicodeDecodeError:
        spelt = ""
    spelling = tags + (spelt if spelt.isprintable() else "")
    if not spelling.strip():
        return ""
    spelling = redact_prose(spelling[: 4 * MOST_SHOWN])
    return spelling if len(spelling) <= MOST_SHOWN else spelling[: MOST_SHOWN - 1] + "…"


def _selected(selector: str) -> int:
    """A variation selector as a byte: the sixteen of the first block, then those of the second."""
    code = ord(selector)
    return code - 0xFE00 if code <= 0xFE0F else code - 0xE0100 + 16


_CONTROL_NAMES = {
    **{chr(code): "control character" for code in (*range(0x20), *range(0x7F, 0xA0))},
    "\b": "BACKSPACE",
    "\x1b": "ESCAPE",
    "\x7f": "DELETE",
}


def _names(run: str) -> str:
    """The run's code points with their names, in the order of their first appearance."""
    # only a run needs unicodedata
    from unicodedata import name

    tags = sum(0xE0000 <= ord(char) <= 0xE007F for char in run)
    names = [f"{tags} tag characters (U+E0000 to U+E007F)"] if tags else []
    for char in dict.fromkeys(run):
        if not 0xE0000 <= ord(char) <= 0xE007F:
            count = run.count(char)
            name_of_char = f"U+{ord(char):04X} {name(char, _CONTROL_NAMES.get(char, 'unassigned'))}"
            names.append(f"{name_of_char} ({count} times)" if count > 1 else name_of_char)
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def hidden_markup(path: str, text: str) -> Iterator[Problem]:
    """Yield an information for each comment or hidden element of a file.

    If it is closed, a fix removes it.
    """
    markers = _paired_markers(text)
    for markup in islice(
        (candidate for candidate in _markups(text) if candidate.span not in markers), MOST_MARKUPS
    ):
        if is_template_comment(text[markup.span.start : markup.span.end]):
            continue
        fix = Fix(f"Remove the {markup.noun}", (Edit(markup.span, ""),)) if markup.closed else None
        message = (
            f"Models read this {markup.noun}; people who look at the rendered page do not see it. Remove it "
            "unless it is meant for the model."
        )
        yield Problem(
            path, markup.span, "prompt.hidden-markup", Severity.INFORMATION, message=message, fix=fix
        )


def _paired_markers(text: str) -> set[Span]:
    """The markers of a text that begin a block and end the same one, such as `NAME:START` and `NAME:END`."""
    starts: dict[str, Span] = {}
    paired: set[Span] = set()
    for match in _MARKER.finditer(text) if _COMMENT in text else ():
        name, edge = (match[1] or match[4]).casefold(), (match[2] or match[3]).casefold()
        span = Span(*match.span())
        if edge != "end":
            starts[name] = span
        elif name in starts:
            paired |= {starts.pop(name), span}
    return paired


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
