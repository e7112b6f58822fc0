"""Reads strings that break the rules of JSON: where they end, what they mean, how to fix them.

1. A string ends at its closing quote on the same line.
2. If that quote is missing, but the next quote of the file ends its line (`def",`), the string spans several
   lines, and its line ends are the error.
3. Otherwise the string was never closed. It then ends before what looks like JSON: the colon of a key, a
   comma at the end of the line, closing brackets that were not opened in it.
4. Every bad escape and every raw control character inside is an error of its own, up to a limit past which
   the text is given up.
"""

import functools
import json
import re
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Span
from nexus_context.text.json.problems import MOST_ERRORS, NAME_EXPECTED, TokenProblem, printable, replace

QUOTES = {"'": "'", "`": "`", "“": "”", "”": "”", "„": "“", "‘": "’", "’": "’", "«": "»"}
"""Quotation marks that are not JSON's, each with the one that closes it."""

# bounded repeats: the engine keeps some bytes for each round, and a text may hold millions of escapes
_GOOD = re.compile(r'(?:[^"\\\x00-\x1f]*+\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){0,500}[^"\\\x00-\x1f]*+')
_GOOD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_LINE = re.compile(r"[^\r\n]*+")
_APOSTROPHES = 200  # and escapes, in a string in other quotation marks
_MOST_ESCAPED_QUOTES = 100  # after a line's end, before the quote that closes a string
MOST_EDITS = 20  # of a fix inside a string
_LONGEST_GUESS = 1_000  # characters of an unclosed string whose escapes are decoded
_ENDS_LINE = re.compile(r"[ \t]*+[,}\]]*+[ \t]*+(?:[\r\n]|\Z)")
_INVALID = re.compile(
    r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,500}|\\(?:x[0-9a-fA-F]{2}|[^\x00-\x1f]|)'
    r'|["\x00-\x1f\ud800-\udfff]{1,500}'
)
_HEX_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_NAMED = {0: " (NUL)", 9: " (tab)", 10: " (line feed)", 13: " (carriage return)"}


class Token(NamedTuple):
    """A malformed token that was understood nevertheless: `text[start:end]` means `value`."""

    start: int
    end: int
    value: object
    problems: tuple[TokenProblem, ...]


def requote(title: str, text: str, start: int, end: int, *, opened: int = 0, closed: int = 0) -> Fix | None:
    """Return a fix that turns `text[start:end]` into a JSON string.

    None if that takes more than MOST_EDITS edits. `opened` and `closed` count the quotation marks that the
    text has at its ends. The edits contain only quotes and escapes: the text may be a secret, and edits are
    printed.
    """
    low, high = start + opened, end - closed
    matches = list(islice(_INVALID.finditer(text, low, high), MOST_EDITS + 1))
    if len(matches) > MOST_EDITS:
        return None
    inside = (Edit(Span(*match.span()), _escaped(match)) for match in matches)
    edits = (Edit(Span(start, low), '"'), *inside, Edit(Span(high, end), '"'))
    return Fix(title, tuple(edit for edit in edits if text[edit.span.start : edit.span.end] != edit.text))


def skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the offset after what a pattern matches at `at`, or `at` itself if it does not match."""
    match = pattern.match(text, at)
    return match.end() if match else at


def character_name(character: str) -> str:
    """Return a character's code point, with its name if that is well known: `U+0000 (NUL)`."""
    return f"U+{ord(character):04X}{_NAMED.get(ord(character), '')}"


def quote(content: str) -> str:
    """Return a string's content as a JSON string. What is not valid in it is escaped."""
    return f'"{_INVALID.sub(_escaped, content)}"'


def meaning(content: str) -> str:
    """Return the string that the content between two quotes means, after it is fixed as by `quote`."""
    value: str = scanstring(quote(content), 1)[0]
    return value


def read_string(text: str, start: int, *, is_key: bool, depth: int) -> Token:
    """Read the string that opens with `\"` at `start`, valid or not; `depth` counts the open brackets."""
    problems: list[TokenProblem] = []
    at = start + 1
    lines_end = -1  # line ends before this offset belong to the string
    while True:
        if len(problems) >= MOST_ERRORS:  # too many to go through: it ends at the next quote
            quote_at = text.find('"', at)
            end = len(text) if quote_at < 0 else quote_at + 1
            return Token(start, end, text[start + 1 : end].removesuffix('"'), tuple(problems))
        at = skip(_GOOD, text, at)
        character = text[at : at + 1]
        if character == '"':
            break
        if character == "\\":
            if not _GOOD_ESCAPE.match(text, at):  # else the bounded pattern goes on
                problems.append(_bad_escape(text, at))
                at = problems[-1].end
            continue
        if character in ("", "\r", "\n"):
            lines_end = _lines_end(text, at) if lines_end < 0 else lines_end
            if at >= lines_end:
                return _unterminated(text, start, at, tuple(problems), is_key=is_key, depth=depth)
        problems.append(_control_character(text, at))
        at = problems[-1].end
    return Token(start, at + 1, meaning(text[start + 1 : at]), tuple(problems))


def read_quoted(text: str, start: int, *, is_key: bool, depth: int) -> Token:
    """Read a string in other quotation marks, from the opening one at `start`."""
    closing = QUOTES[text[start]]
    match = _up_to(closing).match(text, start + 1)
    if match:
        end = match.end()
        content = text[start + 1 : end - 1]
    else:
        line_end = skip(_LINE, text, start)
        end = _closing_place(text, start, line_end, is_key=is_key, depth=depth)
        content = text[start + 1 : end]
    closed = 1 if match else 0
    expectation = NAME_EXPECTED if is_key else "Expecting value"
    message = f'{expectation}: write "…" instead of {text[start]}…{closing}.'
    fix = requote("Use double quotes", text, start, end, opened=1, closed=closed)
    return Token(start, end, _guess(content), (TokenProblem(start, end, "quotes", message, fix=fix),))


@functools.cache
def _up_to(closing: str) -> re.Pattern[str]:
    """A string's content and its closing mark; an apostrophe inside a word does not close."""
    inside = rf"[^{closing}\\\r\n]*+"
    return re.compile(rf"{inside}(?:(?:\\[^\r\n]|{closing}(?=\w)){inside}){{0,{_APOSTROPHES}}}{closing}")


def _unterminated(
    text: str, start: int, line_end: int, problems: tuple[TokenProblem, ...], *, is_key: bool, depth: int
) -> Token:
    end = _closing_place(text, start, line_end, is_key=is_key, depth=depth)
    message = "Unterminated string: write the closing double quote."
    fix = replace("Close the string", end, end, '"')
    inside = tuple(problem for problem in problems if problem.end <= end)
    unterminated = TokenProblem(start, end, "unterminated-string", message, fix=fix)
    content = text[start + 1 : end]
    return Token(start, end, _guess(content), (unterminated, *inside))


def _guess(content: str) -> str:
    """Guess the value of an unclosed string; bounded, as a line may have hundreds."""
    return meaning(content) if len(content) <= _LONGEST_GUESS else content


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
    for _ in range(_MOST_ESCAPED_QUOTES):
        if quote < 1 or text[quote - 1] != "\\":
            break
        quote = text.find('"', quote + 1)
    else:
        return -1
    return quote if quote >= 0 and _ENDS_LINE.match(text, quote + 1) else -1


def _bad_escape(text: str, at: int) -> TokenProblem:
    escape = text[at : at + 2]
    if _HEX_ESCAPE.match(text, at):
        end, fixed = at + 4, f"\\u00{text[at + 2 : at + 4]}"
    elif escape == "\\'":
        end, fixed = at + 2, "'"
    elif len(escape) == 1 or escape[1] < " ":
        end, fixed = at + 1, "\\\\"
    else:
        end, fixed = at + 2, "\\" + escape
    message = f'Invalid \\escape "{printable(text[at:end])}": write "{printable(fixed)}".'
    return TokenProblem(at, end, "escape", message, fix=replace("Fix the escape", at, end, fixed))


def _control_character(text: str, at: int) -> TokenProblem:
    end = at + (2 if text.startswith("\r\n", at) else 1)
    fixed = json.dumps("\n" if end == at + 2 else text[at])[1:-1]
    message = f'Invalid control character {character_name(text[at])} in a string: write "{fixed}".'
    return TokenProblem(at, end, "control-character", message, fix=replace(f"Write {fixed}", at, end, fixed))


def _escaped(match: re.Match[str]) -> str:
    source = match.group()
    if source in ("\\'", "\\`"):
        return source[1]
    if source[0] != "\\":
        return json.dumps(source)[1:-1]
    if _GOOD_ESCAPE.match(source):  # several, maybe: all of them are good
        return source
    if _HEX_ESCAPE.fullmatch(source):
        return f"\\u00{source[2:]}"
    return "\\" + source
