"""Strings that break the rules of JSON: where they end, what they mean, how to mend them.

1. A string ends at its closing quote on the same line.
2. If that is missing, but the next quote of the file ends its line (`def",`), the string runs over several
   lines, and its line ends are the error.
3. Otherwise it was never closed. It then ends before what looks like the JSON that follows: a key's colon,
   a comma at the end of the line, closing brackets that were not opened in it.
4. Every bad escape and every raw control character inside is an error of its own, up to a limit that makes
   the whole text hopeless.
"""

import functools
import json
import re
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Span
from nexus_context.jsontext.problems import MOST_ERRORS

QUOTES = {"'": "'", "`": "`", "“": "”", "”": "”", "„": "“", "‘": "’", "’": "’", "«": "»"}
"""Quotation marks that are not JSON's, each with the one that closes it."""

# bounded repeats: the engine keeps some bytes for each round, and a text may hold millions of escapes
_GOOD = re.compile(r'(?:[^"\\\x00-\x1f]*+\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){0,500}[^"\\\x00-\x1f]*+')
_GOOD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_LINE = re.compile(r"[^\r\n]*+")
_APOSTROPHES = 200  # and escapes, in a string in other quotation marks
_LOOKED_AT = 100  # escaped quotes after a line's end among which the one that closes a string is looked for
MOST_EDITS = 20  # of a fix inside a string
_GUESSED = 1_000  # characters of a string without its quotes whose meaning is worked out
_ENDS_LINE = re.compile(r"[ \t]*+[,}\]]*+[ \t]*+(?:[\r\n]|\Z)")
_TO_MEND = re.compile(
    r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,500}|\\(?:x[0-9a-fA-F]{2}|[^\x00-\x1f]|)'
    r'|["\x00-\x1f\ud800-\udfff]{1,500}'
)
_HEX_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_NAMED = {0: " (NUL)", 9: " (tab)", 10: " (line feed)", 13: " (carriage return)"}


class Complaint(NamedTuple):
    """An error inside a token, before it has a file."""

    start: int
    end: int
    code: str
    message: str
    fix: Fix | None


class Lexeme(NamedTuple):
    """A malformed token that was understood nevertheless: `text[start:end]` means `value`."""

    start: int
    end: int
    value: object
    complaints: tuple[Complaint, ...]


def replace(title: str, start: int, end: int, text: str) -> Fix:
    """A fix of one edit."""
    return Fix(title, (Edit(Span(start, end), text),))


def requote(title: str, text: str, start: int, end: int, *, opened: int = 0, closed: int = 0) -> Fix | None:
    """A fix that makes a JSON string of `text[start:end]`, whose first and last characters may be quotes.

    `opened` and `closed` count those. The edits hold quotes and escapes only: the text may be a secret, and
    edits are printed where people read them. None where that takes more than MOST_EDITS of them.
    """
    low, high = start + opened, end - closed
    places = list(islice(_TO_MEND.finditer(text, low, high), MOST_EDITS + 1))
    if len(places) > MOST_EDITS:
        return None
    inside = (Edit(Span(*place.span()), _mended(place)) for place in places)
    edits = (Edit(Span(start, low), '"'), *inside, Edit(Span(high, end), '"'))
    return Fix(title, tuple(edit for edit in edits if text[edit.span.start : edit.span.end] != edit.text))


def skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Offset after what a pattern matches at `at`; `at` itself if it does not match."""
    found = pattern.match(text, at)
    return found.end() if found else at


def character_name(character: str) -> str:
    """A character's code point, with a name where it is well known: `U+0000 (NUL)`."""
    return f"U+{ord(character):04X}{_NAMED.get(ord(character), '')}"


def shown(source: str, limit: int = 40) -> str:
    """Source text as a message can quote it: short, on one line, without invisible characters."""
    text = source if len(source) <= limit else source[: limit - 1] + "…"
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def quoted(content: str) -> str:
    """A string's content as a JSON string; what is not valid in it is mended."""
    return f'"{_TO_MEND.sub(_mended, content)}"'


def meaning(content: str) -> str:
    """What a string with this content between its quotes means, mended as by `quoted`."""
    value: str = scanstring(quoted(content), 1)[0]
    return value


def read_string(text: str, start: int, *, is_key: bool, depth: int) -> Lexeme:
    """Read the string that opens with `\"` at `start`, valid or not; `depth` counts the open brackets."""
    complaints: list[Complaint] = []
    at = start + 1
    lines_end = -1  # line ends before this offset belong to the string
    while True:
        if len(complaints) >= MOST_ERRORS:
            return _hopeless(text, start, at, tuple(complaints))
        at = skip(_GOOD, text, at)
        character = text[at : at + 1]
        if character == '"':
            break
        if character == "\\":
            if not _GOOD_ESCAPE.match(text, at):  # else the bounded pattern goes on
                complaints.append(_bad_escape(text, at))
                at = complaints[-1].end
            continue
        if character in ("", "\r", "\n"):
            lines_end = _lines_end(text, at) if lines_end < 0 else lines_end
            if at >= lines_end:
                return _unterminated(text, start, at, tuple(complaints), is_key=is_key, depth=depth)
        complaints.append(_control_character(text, at))
        at = complaints[-1].end
    return Lexeme(start, at + 1, meaning(text[start + 1 : at]), tuple(complaints))


def read_quoted(text: str, start: int, *, is_key: bool, depth: int) -> Lexeme:
    """Read a string in other quotation marks, from the opening one at `start`."""
    closing = QUOTES[text[start]]
    found = _up_to(closing).match(text, start + 1)
    if found:
        end = found.end()
        content = text[start + 1 : end - 1]
    else:
        line_end = skip(_LINE, text, start)
        end = _closing_place(text, start, line_end, is_key=is_key, depth=depth)
        content = text[start + 1 : end]
    closed = 1 if found else 0
    what = "Expecting property name enclosed in double quotes" if is_key else "Expecting value"
    message = f'{what}: write "…" instead of {text[start]}…{closing}.'
    fix = requote("Use double quotes", text, start, end, opened=1, closed=closed)
    return Lexeme(start, end, _guess(content), (Complaint(start, end, "quotes", message, fix),))


@functools.cache
def _up_to(closing: str) -> re.Pattern[str]:
    """A string's content and its closing mark; an apostrophe inside a word does not close."""
    inside = rf"[^{closing}\\\r\n]*+"
    return re.compile(rf"{inside}(?:(?:\\[^\r\n]|{closing}(?=\w)){inside}){{0,{_APOSTROPHES}}}{closing}")


def _hopeless(text: str, start: int, at: int, complaints: tuple[Complaint, ...]) -> Lexeme:
    """A string with too many errors to go through: it ends at the next quote."""
    quote = text.find('"', at)
    end = len(text) if quote < 0 else quote + 1
    return Lexeme(start, end, text[start + 1 : end].removesuffix('"'), complaints)


def _unterminated(
    text: str, start: int, line_end: int, complaints: tuple[Complaint, ...], *, is_key: bool, depth: int
) -> Lexeme:
    end = _closing_place(text, start, line_end, is_key=is_key, depth=depth)
    message = "Unterminated string: write the closing double quote."
    fix = replace("Close the string", end, end, '"')
    inside = tuple(each for each in complaints if each.end <= end)
    whole = Complaint(start, end, "unterminated-string", message, fix)
    content = text[start + 1 : end]
    return Lexeme(start, end, _guess(content), (whole, *inside))


def _guess(content: str) -> str:
    """What a string with this content probably means; a line may have hundreds of them, each to its end."""
    return meaning(content) if len(content) <= _GUESSED else content


def _closing_place(text: str, start: int, line_end: int, *, is_key: bool, depth: int) -> int:
    """Where a string that its line does not close should have been closed."""
    content = text[start + 1 : line_end]
    if is_key and ":" in content:
        return start + 1 + len(content[: content.index(":")].rstrip())
    body = content.rstrip()
    if body.endswith(","):
        body = body[:-1].rstrip()
    if "{" not in body and "[" not in body:
        inner = body.rstrip("}] \t")
        closers = len(body) - len(inner) - body.count(" ", len(inner)) - body.count("\t", len(inner))
        body = inner if closers <= depth else body
    return start + 1 + len(body)


def _lines_end(text: str, at: int) -> int:
    """Offset of the quote that closes a string of several lines, or -1 (rule 2)."""
    quote = text.find('"', at)
    for _ in range(_LOOKED_AT):
        if quote < 1 or text[quote - 1] != "\\":
            break
        quote = text.find('"', quote + 1)
    else:
        return -1
    return quote if quote >= 0 and _ENDS_LINE.match(text, quote + 1) else -1


def _bad_escape(text: str, at: int) -> Complaint:
    escape = text[at : at + 2]
    if _HEX_ESCAPE.match(text, at):
        end, mend = at + 4, f"\\u00{text[at + 2 : at + 4]}"
    elif escape == "\\'":
        end, mend = at + 2, "'"
    elif len(escape) == 1 or escape[1] < " ":
        end, mend = at + 1, "\\\\"
    else:
        end, mend = at + 2, "\\" + escape
    message = f'Invalid \\escape "{shown(text[at:end])}": write "{shown(mend)}".'
    return Complaint(at, end, "escape", message, replace("Mend the escape", at, end, mend))


def _control_character(text: str, at: int) -> Complaint:
    end = at + (2 if text.startswith("\r\n", at) else 1)
    mend = json.dumps("\n" if end == at + 2 else text[at])[1:-1]
    message = f'Invalid control character {character_name(text[at])} in a string: write "{mend}".'
    return Complaint(at, end, "control-character", message, replace(f"Write {mend}", at, end, mend))


def _mended(found: re.Match[str]) -> str:
    source = found.group()
    if source in ("\\'", "\\`"):
        return source[1]
    if source[0] != "\\":
        return json.dumps(source)[1:-1]
    if _GOOD_ESCAPE.match(source):  # several, maybe: all of them are good
        return source
    if _HEX_ESCAPE.fullmatch(source):
        return f"\\u00{source[2:]}"
    return "\\" + source
