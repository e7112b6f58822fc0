"""Cover the values in a frame's lines: a frame shows only a file's structure and the reported value.

Each covered character becomes `*`, so that columns stay the same. A frame of JSON shows

1. what is outside values: brackets, commas, colons, blanks, keys, `true`, `false` and `null`;
2. in valid JSON the reported value, if its key is one of the schemas or of another assistant's settings, and
   its place is not secret (`redact.is_secret_place`); the name of a reported package, wherever it stands;
3. in broken JSON no value, since it is uncertain where a string ends. It shows the keys of the schemas, keys
   whose missing quotes are reported, and, in lines whose quotes all close, plain names in quotes before a
   colon where a key can be.

With `is_private`, for the user's own terminal, more is shown of JSON that is valid, or would be without its
comments and last commas: where the place is not secret, numbers and the values of keys of the schemas; and
comments of several words.

A frame of TOML shows keys and the names of tables, and no value. A frame of front matter shows the names of
fields, and the reported value of a field of the specification; a frame of prose shows what
`redact.redact_prose` leaves. A reported secret is shown nowhere.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

from nexus_context.config import fixes
from nexus_context.config.check import CONFIG_SCHEMA, MCP_SCHEMA, load_schema
from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.errors import Problem, Span
from nexus_context.text.json import JsonDocument, parse
from nexus_context.text.lines import LineIndex
from nexus_context.text.opaque import is_example
from nexus_context.text.redact import is_secret_place, redact, redact_prose, says_secret

NEAR = 320
"""Characters beside the printed part of a long line of prose that are searched for secrets, too."""

LOOK_BACK = 20_000
"""Characters before a line of broken JSON that decide whether it is inside a list."""

MOST_PRINTED = 1_000
"""Characters of a value of front matter that are printed; a frame has fewer columns."""

_JSON_FAMILIES = ("json", "config", "mcp")
_BARE_KEY = "json.unquoted-key"
# Patterns are strings: re compiles and keeps them on first use, not at import.
_PLAIN_NAME = r"[A-Za-z_$][\w$-]{0,19}"
_SYMBOL = r"[^\w\s]{1,2}"  # what is wrong there, too short for a secret
_QUOTES = "\"'`"
_LITERALS = ("true", "false", "null")

_PIECE = r'"|[^\s{}\[\],:"]+'
_PART = r'[^"\\]*+(?:\\.[^"\\]*+){0,500}'
_COLON = r"[ \t]*+:"

_TOML_KEYS = r"""[ \t]*(?:\[{1,2}[\w."' -]*\]{1,2}|[\w."'-]+(?:[ \t]*\.[ \t]*[\w."'-]+)*[ \t]*=)?"""
_FENCE = r"(?:---|\.\.\.)[ \t]*"
_FIELD = r"""([ \t]*(?:-[ \t]+)*)("[^"]*"|'[^']*'|[^\s:"'#&*!|>%@`-][^:]{0,80}?)([ \t]*:)(?=[ \t]|\Z)"""
_FIELDS = ("name", "description", "license", "compatibility", "allowed-tools")
_WORD = r"\S"
_COMMENT = "json.comment"
_PACKAGE = "mcp.unpinned"
_OF_ASSISTANT = "assistant."
_HARMLESS = (_COMMENT, "json.trailing-comma")
_PROSE = r"//[^\"'`:=]*\w [^\"'`:=]*"  # no value that somebody took out
_BEARER = r"(?i)(?<=\bbearer )[ \t]*(\S{8,})"


class CoveredText:
    """Gives the lines of a file as the frame of one problem may show them."""

    def __init__(self, problem: Problem, text: str, index: LineIndex, *, is_private: bool = False) -> None:
        self._index, self._span, self._is_private = index, problem.span, is_private
        self._is_secret = _is_secret(problem)
        family = problem.code.partition(".")[0]
        self._json = problem.path.endswith(".json") or (
            family in _JSON_FAMILIES and not problem.path.endswith(".md")
        )
        self._toml = problem.path.endswith(".toml")
        self._valid, self._reported = False, frozenset[Span]()
        self._document: JsonDocument | None = None
        if self._json:
            document = self._document = _document(text)
            self._valid = document.ok
            self._reported = _reported_value(problem, document) if document.ok else _bare_keys(document)
        else:
            self._front_end = _front_matter_end(text)

    def line(self, number: int, low: int, high: int) -> str:
        """Return a line with its values covered. It is exact only from the column `low` to the column `high`.

        Columns keep their numbers: what is left out before `low` is blank. What comes long after `high` is
        missing.
        """
        text = self._index.line(number)
        start = self._index.offset(number, 0)
        low = max(low - NEAR, 0)
        if self._json:
            covered = redact(self._json_line(text, number, start)[low : high + NEAR])
        elif self._toml:
            covered = redact(_covered_toml(text)[low : high + NEAR])
        elif number <= self._front_end:
            covered = redact(self._field_line(text, number, start)[low : high + NEAR])
        else:
            covered = redact_prose(text[low : high + NEAR])
        return " " * low + covered

    def _json_line(self, line: str, number: int, start: int) -> str:
        brackets, follows_colon = ("", False) if self._valid else self._context_before(number)
        covered = _covered_json(line, self._valid, brackets, follows_colon)
        if self._is_private:
            for shown_start, shown_end in self._harmless(line, start):
                covered = covered[:shown_start] + line[shown_start:shown_end] + covered[shown_end:]
        for span in self._reported:
            shown_start, shown_end = span.start - start, span.end - start
            if shown_start >= 0 and shown_end <= len(line):
                covered = covered[:shown_start] + line[shown_start:shown_end] + covered[shown_end:]
        return covered

    def _harmless(self, line: str, start: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of a line that the user's own terminal may show."""
        if self._is_secret or self._document is None or not _is_readable(self._document):
            return
        comments = (
            problem.span.start - start for problem in self._document.problems if problem.code == _COMMENT
        )
        begin = min((comment_start for comment_start in comments if comment_start >= 0), default=len(line))
        for token_start, token_end in _tokens(line[:begin]):
            at = self._document.path_at(start + token_start)
            name = next((step for step in reversed(at) if isinstance(step, str)), "")
            is_prose = name.startswith(COMMENT_PREFIX) and " " in line[token_start:token_end]
            is_known = line[token_start] != '"' or name in _schema_keys()
            if (is_prose or is_known) and not is_secret_place(at):
                yield token_start, token_end
        if re.fullmatch(_PROSE, line[begin:]):
            yield begin, len(line)

    def _context_before(self, number: int) -> tuple[str, bool]:
        """Return the brackets that are open where a line begins, and whether a colon stands before it.

        Only LOOK_BACK characters are searched: where they are blank, there may be a colon before them.
        """
        lines, size = [], 0
        while number > 0 and size <= LOOK_BACK:
            number -= 1
            lines.append(self._index.line(number))
            size += len(lines[-1])
        brackets: list[str] = []
        for line in reversed(lines if size <= LOOK_BACK else lines[:-1]):
            end = 0
            for token_start, token_end in _tokens(line):
                _follow(brackets, line[end:token_start])
                end = token_end
            _follow(brackets, line[end:])
        text = next(filter(None, map(str.rstrip, lines)), "" if number == 0 else ":")
        return "".join(brackets), text.endswith(":")

    def _field_line(self, line: str, number: int, start: int) -> str:
        if re.fullmatch(_FENCE, line):
            return line
        field = re.match(_FIELD, line)
        head = field.end() if field else len(line) - len(line.lstrip("- \t"))
        reported = Span(0, 0)
        if self._may_show(number):
            reported_start = max(self._span.start - start, head)
            reported = Span(
                reported_start, min(self._span.end - start, len(line), reported_start + MOST_PRINTED)
            )
        covered = re.sub(_WORD, "*", line[head:])
        start, end = reported
        if start >= end:
            return line[:head] + covered
        low = max(start - NEAR, 0)
        redacted = _without_bearer(redact_prose(line[low : end + NEAR]))[start - low : end - low]
        return line[:head] + covered[: start - head] + redacted + covered[end - head :]

    def _may_show(self, number: int) -> bool:
        """Whether a line of the front matter belongs to a field whose name is not secret."""
        if self._is_secret:
            return False
        while number > 0:
            field = re.match(_FIELD, self._index.line(number))
            if field and says_secret(field[2]):
                return False
            if field and not field[1]:
                return field[2] in _FIELDS
            number -= 1
        return False


def _is_readable(document: JsonDocument) -> bool:
    """Whether it is certain where the values are; what a comment of several lines holds is not looked at."""
    return all(
        problem.code in _HARMLESS and not document.text.startswith("/*", problem.span.start)
        for problem in document.problems
    )


def _covered_toml(line: str) -> str:
    """A line of TOML with everything but its keys covered; within a text of several lines, too."""
    keys = re.match(_TOML_KEYS, line)
    end = keys.end() if keys else 0
    return line[:end] + re.sub(_WORD, "*", line[end:])


def _without_bearer(field: str) -> str:
    """Cover what follows `Bearer` in a field's value, even a plain word."""
    return re.sub(_BEARER, lambda match: match[0] if is_example(match[1]) else "*" * len(match[0]), field)


@functools.lru_cache(maxsize=4)
def _covered_json(line: str, valid: bool, open_brackets: str, follows_colon: bool) -> str:
    """Cover every value in a line of JSON. Cached, since many problems can be in one long line.

    `open_brackets` are those that are open where the line begins; `follows_colon` says that a colon ends
    the text before it, so that its first string is a value.
    """
    tokens = list(_tokens(line))
    strings = [line[token_start:token_end] for token_start, token_end in tokens if line[token_start] == '"']
    closes = all(len(string) > 1 and string[-1] == '"' for string in strings)
    parts, end, brackets = [], 0, list(open_brackets)
    for token_start, token_end in tokens:
        token = line[token_start:token_end]
        text_before = line[end:token_start].rstrip()
        _follow(brackets, text_before)
        is_value = text_before.endswith(":") or (follows_colon and end == 0 and not text_before)
        can_be_key = token[0] == '"' and not is_value and brackets[-1:] != ["["]
        is_key = can_be_key and re.compile(_COLON).match(line, token_end) is not None
        printed = is_key and (valid or (closes and fixes.is_plain(token[1:-1])))
        parts += [line[end:token_start], token if printed else _covered_token(token)]
        end = token_end
    return "".join([*parts, line[end:]])


def _follow(brackets: list[str], text: str) -> None:
    """Update the open brackets with the text between two tokens."""
    for char in text:
        if char in "{[":
            brackets.append(char)
        elif char in "}]" and brackets:
            brackets.pop()


def _covered_token(token: str) -> str:
    """Cover a string or word unless it is a literal, a key of the schemas or a symbol."""
    if token in _LITERALS or token.strip(_QUOTES) in _schema_keys() or re.fullmatch(_SYMBOL, token):
        return token
    if token[0] != '"':
        return "*" * len(token)
    closed = len(token) > 1 and token[-1] == '"'
    return '"' + "*" * (len(token) - 1 - closed) + '"' * closed


def _is_secret(problem: Problem) -> bool:
    """Whether the problem is a secret."""
    return problem.code.endswith(".secret")


def _reported_value(problem: Problem, document: JsonDocument) -> frozenset[Span]:
    """The span of the reported value, if it may be printed."""
    span = problem.span
    if problem.code == _PACKAGE:
        return frozenset((span,))
    at = document.path_at(span.start)
    try:
        value_span = document.span(at)
    except KeyError:
        return frozenset()
    name = next((step for step in reversed(at) if isinstance(step, str)), "")
    inside = (
        value_span.start <= span.start
        and span.end <= value_span.end
        and document.text[value_span.start] not in "{["
    )
    is_known = name in _schema_keys() or problem.code.startswith(_OF_ASSISTANT)
    may_show = inside and is_known and not is_secret_place(at) and not _is_secret(problem)
    return frozenset((value_span,)) if may_show else frozenset()


def _bare_keys(document: JsonDocument) -> frozenset[Span]:
    """The spans of keys without quotes, if they are plain names: the messages quote them, too."""
    spans = (problem.span for problem in document.problems if problem.code == _BARE_KEY)
    plain_name = re.compile(_PLAIN_NAME)
    return frozenset(span for span in spans if plain_name.fullmatch(document.text, span.start, span.end))


@functools.lru_cache(maxsize=2)
def _document(text: str) -> JsonDocument:
    return parse("", text)


@functools.cache
def _schema_keys() -> frozenset[str]:
    """Every key that the schemas name: none of them is a secret, wherever it stands."""
    return frozenset(_keys(load_schema(CONFIG_SCHEMA))) | frozenset(_keys(load_schema(MCP_SCHEMA)))


def _keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        properties = node.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for child in node.values():
            yield from _keys(child)
    elif isinstance(node, list):
        for child in node:
            yield from _keys(child)


def _tokens(line: str) -> Iterator[tuple[int, int]]:
    """The strings and words of a line of JSON; a string that does not close ends with the line."""
    at = 0
    while token := re.compile(_PIECE).search(line, at):
        at = token.end()
        if token[0] == '"':
            at = _string_end(line, at)
        yield token.start(), at


def _string_end(line: str, at: int) -> int:
    while at < len(line):
        match = re.compile(_PART).match(line, at)
        end = match.end() if match else at
        if line[end : end + 1] == '"':
            return end + 1
        if end == at or line[end : end + 1] != "\\":
            return len(line)
        at = end
    return len(line)


@functools.lru_cache(maxsize=2)
def _front_matter_end(text: str) -> int:
    """The line that ends the front matter: -1 without one, the number of lines if it is not closed."""
    index = LineIndex(text)
    if index.line(0).rstrip() != "---":
        return -1
    for number in range(1, index.count):
        if re.fullmatch(_FENCE, index.line(number)):
            return number
    return index.count
