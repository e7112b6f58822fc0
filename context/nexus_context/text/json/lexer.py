"""Reads tokens: those of valid JSON, and what is not JSON outside of strings.

The latter are comments, bare words and numbers in other forms.
"""

import re
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Span
from nexus_context.text.json.problems import LONGEST_NUMBER, NAME_EXPECTED, TokenProblem, printable, replace
from nexus_context.text.json.strings import Token, character_name, quote, requote, skip

# Kinds of tokens: the groups of TOKEN, which matches a token or the first character of something invalid.
T_STRING, T_KEY, T_COMMA, T_NUMBER, T_CLOSE, T_OPEN, T_LITERAL, T_COLON, T_END, T_ODD = range(1, 11)

_DELIMITED = r"""(?![^\s,:\[\]{}"'/;=\#])"""
TOKEN = re.compile(
    rf"""[ \t\r\n]*+(?:
    ("[^"\\\x00-\x1f]*+")(?:[ \t\r\n]*+(:))?
    |(,)
    |(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?){_DELIMITED}
    |([}}\]])
    |([{{\[])
    |(true|false|null){_DELIMITED}
    |(:)
    |(\Z)
    |(.))""",
    re.VERBOSE | re.DOTALL,
)
LITERALS = {"true": True, "false": False, "null": None}

LONGEST_CONVERTED = 6
"""Characters of a hexadecimal, octal or binary number that a fix converts; a longer one may be a secret."""

_NAME = re.compile(r"[A-Za-z_$][A-Za-z_$-]{0,19}")
_WORD = r"""[^\s{}\[\],:"';=]"""
_NO_BRACKETS = re.compile(r'"(?:[^"\\\r\n]*+\\.){0,500}[^"\\\r\n]*+"?|//[^\r\n]*+')
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

_LITERAL_WORDS: dict[str, tuple[str, object]] = {
    "true": ("true", True),
    "false": ("false", False),
    "null": ("null", None),
    "none": ("null", None),
    "nil": ("null", None),
    "undefined": ("null", None),
}
_NOT_FINITE = {"nan", "inf", "infinity"}


class BareKey(NamedTuple):
    """A key that lacks one quote or both, with the offsets of the colon that follows it."""

    key: Token
    colon: int
    colon_end: int


def read_comment(text: str, start: int, gap: int, last_end: int) -> TokenProblem | None:
    """Return the comment at `start` as a problem, or None. The white space before it begins at `gap`.

    `last_end` is the offset of the last `*/` of the text; a `/*` after it ends with its line.
    """
    if text.startswith("/*", start):
        end = text.index("*/", start + 2) + 2 if start + 2 <= last_end else skip(_TO_LINE_END, text, start)
    else:
        end = skip(_COMMENT, text, start)
    if end == start:
        return None
    message = 'Comments are not JSON: remove it, or keep it as a "_comment" key.'
    return TokenProblem(start, end, "comment", message, fix=_remove_comment(text, gap, start, end))


def read_space(text: str, start: int) -> TokenProblem | None:
    """Return the characters at `start` that are blank or invisible but not JSON white space, or None."""
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
    code, noun = ("control-character", "control character") if control else ("whitespace", "character")
    message = f"Invalid {noun} {character_name(text[start])} between values: write a space, or remove it."
    return TokenProblem(start, end, code, message, fix=replace("Write a space", start, end, " "))


def read_key(text: str, start: int) -> BareKey | None:
    """Return the key at `start` without quotes or opening quote. None if no colon (or `=`) follows."""
    match = _KEY.match(text, start)
    if not match:
        return None
    end = match.end(2)
    name = match[1]
    message = f"{NAME_EXPECTED}: write {_name_in_message(match)}."
    if match[2] and "\\" not in name:
        problem = TokenProblem(
            start, end, "missing-quote", message, fix=replace("Open the string", start, start, '"')
        )
    else:
        problem = TokenProblem(
            start, end, "unquoted-key", message, fix=requote("Quote the key", text, start, end)
        )
    return BareKey(Token(start, end, name, (problem,)), match.start(3), match.end(3))


def read_value(text: str, start: int) -> Token:
    """Return the bare words at `start`, where a value is expected. They have at least one character."""
    unopened = _UNOPENED.match(text, start)
    if unopened:
        end = unopened.end()
        message = "Expecting value: the opening double quote is missing."
        fix = replace("Open the string", start, start, '"')
        return Token(
            start, end, text[start : end - 1], (TokenProblem(start, end, "missing-quote", message, fix=fix),)
        )
    end = _run_end(text, start)
    source = text[start:end].rstrip() or text[start]
    end = start + len(source)
    word = source.lower()
    if word in _LITERAL_WORDS:
        literal, value = _LITERAL_WORDS[word]
        fix = replace(f"Write {literal}", start, end, literal)
        return _instead(start, end, value, "literal", message=f"Expecting value: write {literal}.", fix=fix)
    if word in "+-." or word.lstrip("+-") in _NOT_FINITE:
        message = f"Expecting value: JSON has no {printable(source)}; write a number or null."
        return Token(start, end, None, (TokenProblem(start, end, "number", message, fix=None),))
    number = _number(source)
    if number is not None:
        message = "Expecting value: write a decimal number without `+`, `_` and leading zeros."
        rewritten = _rewrite(source, start, number)
        return _instead(start, end, read_number(number), "number", message=message, fix=rewritten)
    message = "Expecting value: write text in double quotes."
    requoted = requote("Quote the text", text, start, end)
    return _instead(start, end, source, "unquoted-string", message=message, fix=requoted)


def read_number(source: str) -> int | float | None:
    """Return the value of a JSON number. None if it is infinite, or an integer that is too long."""
    if len(source) < 18 and source.lstrip("-").isdigit():
        return int(source)
    try:
        if not source.lstrip("-").isdigit():
            value = float(source)
            return value if abs(value) != float("inf") else None
        return int(source) if len(source.lstrip("-")) <= LONGEST_NUMBER else None
    except ValueError:  # the process allows fewer digits
        return None


def count_unopened(text: str) -> dict[str, int]:
    """Return how many more closing brackets of each kind a text has than opening ones."""
    brackets = _NO_BRACKETS.sub("", text)
    return {closer: brackets.count(closer) - brackets.count(opener) for opener, closer in ("{}", "[]")}


def junk_end(text: str, start: int) -> int:
    """Return where the text that is not understood ends: before a comma, a bracket or the line's end."""
    at = start
    while match := _JUNK.match(text, at):
        at = match.end()
    return start + max(len(text[start:at].rstrip()), 1)


def _run_end(text: str, start: int) -> int:
    """End of unquoted text: before a comma, bracket, quote, comment or the line's end; `${…}` is text."""
    at = start
    while match := _RUN_STOP.search(text, at):
        at = match.start()
        variable = _VARIABLE.match(text, at - 1) if at > start else None
        if not variable:
            return at
        at = variable.end()
    return len(text)


def _rewrite(source: str, start: int, number: str) -> Fix | None:
    """A fix that turns the source of a number into `number`; its edits contain no digits but zeros."""
    title = "Write a JSON number"
    if _HEX_NUMBER.fullmatch(source):
        short = len(source) <= LONGEST_CONVERTED
        return replace(title, start, start + len(source), number) if short else None
    edits, at = [], 0
    for index, char in enumerate(source):
        if number[at : at + 1] == char and not (char == "0" and _is_padding(source, index)):
            at += 1
        elif char == ".":
            edits.append(Edit(Span(start + index, start + index), "0"))
            at += 2
        else:
            edits.append(Edit(Span(start + index, start + index + 1), ""))
        if char == "." and number[at : at + 1] == "0" and not source[index + 1 : index + 2].isdigit():
            edits.append(Edit(Span(start + index + 1, start + index + 1), "0"))
            at += 1
    return Fix(title, tuple(edits))


def _is_padding(source: str, index: int) -> bool:
    """Whether this zero leads a number that continues with a digit."""
    return not source[:index].strip("+-0_") and source[index + 1 :].lstrip("_")[:1].isdigit()


def _instead(start: int, end: int, value: object, code: str, message: str, fix: Fix | None) -> Token:
    return Token(start, end, value, (TokenProblem(start, end, code, message, fix=fix),))


def _name_in_message(key: re.Match[str]) -> str:
    """A key as a message may show it: only a plain name before a colon; other text may be part of a value."""
    return quote(key[1]) if key[3] == ":" and _NAME.fullmatch(key[1]) else "them around the name"


def _number(source: str) -> str | None:
    """A number in another notation as JSON writes it, or None."""
    other_base = _HEX_NUMBER.fullmatch(source)
    if other_base:
        return other_base[1].replace("+", "") + str(int(other_base[2], 0))
    match = _LOOSE_NUMBER.fullmatch(source)
    if not match:
        return None
    sign, integer_digits, point, fraction_digits, exponent = (
        group_text or "" for group_text in match.groups()
    )
    integer_digits, fraction_digits = integer_digits.replace("_", ""), fraction_digits.replace("_", "")
    if not integer_digits and not fraction_digits:
        return None
    number = (
        sign.replace("+", "")
        + (integer_digits.lstrip("0") or "0")
        + (f".{fraction_digits or 0}" if point else "")
        + exponent
    )
    return number if _JSON_NUMBER.fullmatch(number) else None


def _remove_comment(text: str, gap: int, start: int, end: int) -> Fix:
    """Remove the comment: with its line if it stands alone there, else with the spaces before it."""
    gap_text = text[gap:start]
    line_start = max(gap_text.rfind("\n"), gap_text.rfind("\r"))
    line_end = _BLANK_TO_LINE_END.match(text, end)
    if line_end and (line_start >= 0 or gap == 0):
        return Fix("Remove the comment", (Edit(Span(gap + line_start + 1, line_end.end()), ""),))
    start -= len(gap_text) - len(gap_text.rstrip(" \t"))
    return replace("Remove the comment", start, end, "")
