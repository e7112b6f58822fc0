"""What stands outside strings and is not JSON: comments, bare words, numbers of other languages.

Messages and titles of fixes go to logs, and a value may be a secret: they never hold a value's text, and a
key's only if a plain name.
"""

import re
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Span
from nexus_context.jsontext.strings import (
    Complaint,
    Lexeme,
    character_name,
    quoted,
    replace,
    requote,
    shown,
    skip,
)

LONGEST_NUMBER = 4300
"""Digits of the longest integer that Python converts by default."""

LONGEST_CONVERTED = 6
"""Characters of a hexadecimal, octal or binary number that a fix converts; a longer one may be a secret."""

_NAME = re.compile(r"[A-Za-z_$][A-Za-z_$-]{0,19}")
_WORD = r"""[^\s{}\[\],:"';=]"""
_COMMENT = re.compile(r"//[^\r\n]*+|#[^\r\n]*+")
_TO_LINE_END = re.compile(r"[^\r\n]*+")
_BLANK_TO_LINE_END = re.compile(r"[ \t]*+(\r\n|\n|\r)")
_KEY = re.compile(rf"""({_WORD}++(?:[ \t]++{_WORD}++){{0,20}})("?)[ \t\r\n]*+(=>?|:)""")
_RUN_STOP = re.compile(r'[,\[\]{}"\r\n;]|[ \t](?://|/\*|#)')
_VARIABLE = re.compile(r"\$\{[^{}\r\n]*+\}")
_UNOPENED = re.compile(r'[^,\[\]{}"\\\x00-\x1f:;]*+"(?=[ \t]*+(?:[,:}\]\r\n]|\Z))')
_JUNK = re.compile(r'(?:[^,\[\]{}"\r\n]++|"(?:[^"\r\n]*+")?+){1,500}')  # bounded as in `strings`
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_LOOSE_NUMBER = re.compile(r"([+-]?)((?:[0-9][0-9_]*+)?)(\.?)([0-9_]*+)([eE][+-]?[0-9]++)?")
_HEX_NUMBER = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]{1,16}|0[oO][0-7]{1,20}|0[bB][01]{1,64})")

_LITERALS: dict[str, tuple[str, object]] = {
    "true": ("true", True),
    "false": ("false", False),
    "null": ("null", None),
    "none": ("null", None),
    "nil": ("null", None),
    "undefined": ("null", None),
}
_NOT_FINITE = {"nan", "inf", "infinity"}


class BareKey(NamedTuple):
    """A key without (all of) its quotes, and the colon after it."""

    key: Lexeme
    colon: int
    colon_end: int


def read_comment(text: str, start: int, gap: int, last_end: int) -> Complaint | None:
    """The comment at `start`, or None; `gap` is where the blank before it begins.

    `last_end` is the offset of the last `*/` of the text: a `/*` after it ends with its line.
    """
    if text.startswith("/*", start):
        end = text.index("*/", start + 2) + 2 if start + 2 <= last_end else skip(_TO_LINE_END, text, start)
    else:
        end = skip(_COMMENT, text, start)
    if end == start:
        return None
    message = 'Comments are not JSON: remove it, or keep it as a "_comment" key.'
    return Complaint(start, end, "comment", message, _remove_comment(text, gap, start, end))


def read_space(text: str, start: int) -> Complaint | None:
    """The run of characters at `start` that are blank or invisible and not JSON's white space, or None."""
    end = start
    while (
        end < len(text)
        and text[end] not in " \t\r\n"
        and (text[end].isspace() or not text[end].isprintable())
    ):
        end += 1
    if end == start:
        return None
    control = text[start] < " "
    code, what = ("control-character", "control character") if control else ("whitespace", "character")
    message = f"Invalid {what} {character_name(text[start])} between values: write a space, or remove it."
    return Complaint(start, end, code, message, replace("Write a space", start, end, " "))


def read_key(text: str, start: int) -> BareKey | None:
    """The key at `start` that lacks its quotes, or the opening one; None if no colon (or `=`) follows."""
    found = _KEY.match(text, start)
    if not found:
        return None
    end = found.end(2)
    name = found[1]
    message = f"Expecting property name enclosed in double quotes: write {_shown_name(found)}."
    if found[2] and "\\" not in name:
        complaint = Complaint(
            start, end, "missing-quote", message, replace("Open the string", start, start, '"')
        )
    else:
        complaint = Complaint(start, end, "unquoted-key", message, requote("Quote the key", text, start, end))
    return BareKey(Lexeme(start, end, name, (complaint,)), found.start(3), found.end(3))


def read_value(text: str, start: int) -> Lexeme:
    """The bare words at `start`, where a value is expected; at least one character is taken."""
    unopened = _UNOPENED.match(text, start)
    if unopened:
        end = unopened.end()
        message = "Expecting value: the opening double quote is missing."
        fix = replace("Open the string", start, start, '"')
        return Lexeme(
            start, end, text[start : end - 1], (Complaint(start, end, "missing-quote", message, fix),)
        )
    end = _run_end(text, start)
    source = text[start:end].rstrip() or text[start]
    end = start + len(source)
    word = source.lower()
    if word in _LITERALS:
        literal, value = _LITERALS[word]
        fix = replace(f"Write {literal}", start, end, literal)
        return _instead(start, end, value, "literal", f"Expecting value: write {literal}.", fix)
    if word in "+-." or word.lstrip("+-") in _NOT_FINITE:
        message = f"Expecting value: JSON has no {shown(source)}; write a number or null."
        return Lexeme(start, end, None, (Complaint(start, end, "number", message, None),))
    number = _number(source)
    if number is not None:
        message = "Expecting value: write a decimal number without `+`, `_` and leading zeros."
        rewritten = _rewrite(source, start, number)
        return _instead(start, end, read_number(number), "number", message, rewritten)
    quoted = requote("Quote the text", text, start, end)
    message = "Expecting value: write text in double quotes."
    return _instead(start, end, source, "unquoted-string", message, quoted)


def read_number(source: str) -> int | float | None:
    """Value of a JSON number; None if it is out of range: infinite, or an integer that is too long."""
    try:
        if not source.lstrip("-").isdigit():
            value = float(source)
            return value if abs(value) != float("inf") else None
        return int(source) if len(source.lstrip("-")) <= LONGEST_NUMBER else None
    except ValueError:  # the process allows fewer digits
        return None


def junk_end(text: str, start: int) -> int:
    """End of what cannot be understood at `start`: before a comma, a bracket or the line's end."""
    at = start
    while found := _JUNK.match(text, at):
        at = found.end()
    return start + max(len(text[start:at].rstrip()), 1)


def _run_end(text: str, start: int) -> int:
    """End of unquoted text: before a comma, bracket, quote, comment or the line's end; `${…}` is text."""
    at = start
    while found := _RUN_STOP.search(text, at):
        at = found.start()
        variable = _VARIABLE.match(text, at - 1) if at > start else None
        if not variable:
            return at
        at = variable.end()
    return len(text)


def _rewrite(source: str, start: int, number: str) -> Fix | None:
    """A fix that makes `number` of a number's source; its edits hold no digits of it but zeros."""
    title = "Write a JSON number"
    if _HEX_NUMBER.fullmatch(source):
        short = len(source) <= LONGEST_CONVERTED
        return replace(title, start, start + len(source), number) if short else None
    edits, at = [], 0
    for place, char in enumerate(source):
        if number[at : at + 1] == char and not (char == "0" and _is_padding(source, place)):
            at += 1
        elif char == ".":
            edits.append(Edit(Span(start + place, start + place), "0"))
            at += 2
        else:
            edits.append(Edit(Span(start + place, start + place + 1), ""))
        if char == "." and number[at : at + 1] == "0" and not source[place + 1 : place + 2].isdigit():
            edits.append(Edit(Span(start + place + 1, start + place + 1), "0"))
            at += 1
    return Fix(title, tuple(edits))


def _is_padding(source: str, place: int) -> bool:
    """Whether a zero leads a number that goes on with a digit."""
    return not source[:place].strip("+-0_") and source[place + 1 :].lstrip("_")[:1].isdigit()


def _instead(start: int, end: int, value: object, code: str, message: str, fix: Fix | None) -> Lexeme:
    return Lexeme(start, end, value, (Complaint(start, end, code, message, fix),))


def _shown_name(key: re.Match[str]) -> str:
    """A key as a message may show it: a plain name before a colon; other text might be part of a value."""
    return quoted(key[1]) if key[3] == ":" and _NAME.fullmatch(key[1]) else "them around the name"


def _number(source: str) -> str | None:
    """A number of another notation as JSON writes it, or None."""
    other_base = _HEX_NUMBER.fullmatch(source)
    if other_base:
        return other_base[1].replace("+", "") + str(int(other_base[2], 0))
    found = _LOOSE_NUMBER.fullmatch(source)
    if not found:
        return None
    sign, whole, point, part, exponent = (each or "" for each in found.groups())
    whole, part = whole.replace("_", ""), part.replace("_", "")
    if not whole and not part:
        return None
    number = (
        sign.replace("+", "") + (whole.lstrip("0") or "0") + (f".{part or 0}" if point else "") + exponent
    )
    return number if _JSON_NUMBER.fullmatch(number) else None


def _remove_comment(text: str, gap: int, start: int, end: int) -> Fix:
    """Removes the comment; with its line if it is alone there, else with the blanks before it."""
    before = text[gap:start]
    line_start = max(before.rfind("\n"), before.rfind("\r"))
    line_end = _BLANK_TO_LINE_END.match(text, end)
    if line_end and (line_start >= 0 or gap == 0):
        return Fix("Remove the comment", (Edit(Span(gap + line_start + 1, line_end.end()), ""),))
    start -= len(before) - len(before.rstrip(" \t"))
    return replace("Remove the comment", start, end, "")
