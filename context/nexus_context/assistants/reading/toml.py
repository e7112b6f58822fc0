"""Parses a TOML text: its value, where its keys and values lie, and the place of what breaks it.

1. `tomllib` reads TOML 1.0. Where it fails, the text is read again with what TOML 1.1 adds written in the old
   way and as long: lines and a last comma in inline tables, `\\e` and `\\x`. Programs in Rust take these.
2. Places are found on first use, in one pass over a text that is valid.
3. A key of more than MOST_NAMES names, and a number of more digits than Python reads, break a text: the time
   that the parser takes grows with the square of the former.
"""

import re
import tomllib
from datetime import date, time
from functools import cached_property
from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.settings import without_mark
from nexus_context.errors import Span

Pointer = tuple[str | int, ...]
MOST_NAMES = 100
"""In a dotted key."""

_TOKEN = (
    re.compile(  # a string without an end reaches to that of its line or of the text: no step is repeated
        r'(?P<comment>#[^\n]*)|(?P<basic>"""(?:[^\\]|\\[\s\S])*?(?:"{3,5}|\Z)|"(?:[^"\\\n]|\\.)*"?)'
        r"|(?P<literal>'''[\s\S]*?(?:'{3,5}|\Z)|'[^'\n]*'?)|(?P<mark>[\[\]{},=.\n])|(?P<space>[ \t\r]+)"
        r"|(?P<bare>[^\s\[\]{},=.#\"']+)"
    )
)
_LONG_KEY = re.compile(rf"(?<![\w.-])[\w-]++(?:[\"' \t]*+\.[\"' \t]*+[\w-]++){{{MOST_NAMES}}}")
"""Where a key may have too many names, or a string as many words."""
_ESCAPE = re.compile(r"\\(?:(e)|x[0-9A-Fa-f]{2}|[\s\S])")
_ERROR_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


def read_toml(disk: Disk, path: str) -> "TomlDocument":
    """Read a TOML file. If it is missing, its text is empty."""
    return TomlDocument(path, without_mark(disk.text(path) or ""))


class TomlDocument:
    """A parsed TOML text. `value` is its table; if the text is broken, that is empty, and `failure` has the
    place and the reason.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.value: dict[str, Any] = {}
        self.failure: tuple[Span, str] | None = None
        plain = text
        try:
            if (key := _long_key(text)) is not None:
                self.failure = key, f"A key has more than {MOST_NAMES} names"
                return
            try:
                value = tomllib.loads(text)
            except tomllib.TOMLDecodeError:
                plain = _as_old(text)
                value = tomllib.loads(plain)
            self.value = _without_times(value)
        except (ValueError, RecursionError) as error:  # tomllib.TOMLDecodeError, or a number that is too long
            self.failure = _failure(plain, str(error))

    def span(self, pointer: Pointer) -> Span:
        """Return the place of a value. For a table with several headers it is the name in the first."""
        return self._places.get(pointer, (None, Span(0, 0)))[1]

    def key_span(self, pointer: Pointer) -> Span | None:
        """Return the place of the key of a value, None if it has none."""
        return self._places.get(pointer, (None, Span(0, 0)))[0]

    def key_spans(self, pointer: Pointer) -> list[Span]:
        """List all places where a key is written: a table may have several headers, and dotted keys below
        them.
        """
        return self._scan.keys.get(pointer, [])

    def path_at(self, offset: int) -> Pointer:
        """Return the path of the innermost key or value that contains an offset or ends there. Return () if
        there is none.
        """
        innermost: tuple[int, Pointer] = (len(self.text) + 1, ())
        for pointer, spans in self._places.items():
            for span in spans:
                if span is not None and span.start <= offset <= span.end:
                    innermost = min(
                        innermost, (span.end - span.start, pointer), key=lambda candidate: candidate[0]
                    )
        return innermost[1]

    @property
    def _places(self) -> dict[Pointer, tuple[Span | None, Span]]:
        return self._scan.places

    @cached_property
    def _scan(self) -> "_Scan":
        return _Scan(_as_old(self.text))


def _long_key(text: str) -> Span | None:
    """The first key of more than MOST_NAMES names."""
    if _LONG_KEY.search(text) is None:
        return None
    count, start = 0, 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup in ("bare", "basic", "literal"):
            start = start if count else match.start()
            count += 1
            if count > MOST_NAMES:
                return Span(start, match.end())
        elif match[0] != "." and match.lastgroup != "space":
            count = 0
    return None


class _Scan:
    """The places in a valid text."""

    def __init__(self, text: str) -> None:
        self.places: dict[Pointer, tuple[Span | None, Span]] = {}
        self.keys: dict[Pointer, list[Span]] = {}
        self._counts: dict[Pointer, int] = {}  # of the arrays of tables
        self._tokens = [
            (match[0], Span(*match.span()))
            for match in _TOKEN.finditer(text)
            if match.lastgroup not in ("comment", "space")
        ]
        self._tokens.append(("\n", Span(len(text), len(text))))
        self._at = 0
        table: Pointer = ()
        while self._at < len(self._tokens):
            if self._next == "\n":
                self._at += 1
            elif self._next == "[":
                table = self._header()
            else:
                self._pair(table)

    @property
    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _header(self) -> Pointer:
        is_item = self._tokens[self._at + 1][0] == "["
        self._at += 1 + is_item
        pointer = self._key(())
        if is_item:
            index = self._counts[pointer] = self._counts.get(pointer, -1) + 1
            self.places[(*pointer, index)] = (None, self._tokens[self._at - 1][1])
            pointer = (*pointer, index)
        self._at += 1 + is_item
        return pointer

    def _pair(self, table: Pointer) -> None:
        start = self._at
        pointer = self._key(table)
        self._at += 1
        self.places[pointer] = (self.places[pointer][0], self._value(pointer))
        self._at = max(self._at, start + 1)

    def _key(self, pointer: Pointer) -> Pointer:
        """Read a dotted key; returns its pointer. The first occurrence of each of its names gets a place."""
        while self._at < len(self._tokens):
            word, span = self._tokens[self._at]
            pointer = (*pointer, _name(word))
            self.places.setdefault(pointer, (span, span))
            self.keys.setdefault(pointer, []).append(span)
            self._at += 1
            if self._next != ".":
                break
            self._at += 1
            if pointer in self._counts:
                pointer = (*pointer, self._counts[pointer])
        return pointer

    def _value(self, pointer: Pointer) -> Span:
        opening, (start, end) = self._tokens[self._at]
        self._at += 1
        if opening in ("[", "{"):
            index = 0
            while self._next not in ("]", "}", ""):
                if self._next in (",", "\n"):
                    self._at += 1
                elif opening == "{":
                    self._pair(pointer)
                else:
                    item_pointer = (*pointer, index)
                    self.places[item_pointer] = (None, self._value(item_pointer))
                    index += 1
            end = self._tokens[min(self._at, len(self._tokens) - 1)][1].end
            self._at += 1
        while self._next not in (",", "\n", "]", "}", ""):  # of a time or a fraction
            end = self._tokens[self._at][1].end
            self._at += 1
        return Span(start, end)


def _name(word: str) -> str:
    if word[:1] not in ("'", '"'):
        return word
    try:
        return str(next(iter(tomllib.loads(f"{word} = 0"))))
    except tomllib.TOMLDecodeError:
        return word


def _as_old(text: str) -> str:
    """The text with what TOML 1.1 adds in the words of 1.0, of the same length."""
    parts, depth, comma = list[str](), list[str](), -1
    for match in _TOKEN.finditer(text):
        word, kind = match[0], match.lastgroup
        is_inline = bool(depth) and depth[-1] == "{"
        if word in ("[", "{") and kind == "mark":
            depth.append(word)
        elif word in ("]", "}") and depth:
            depth.pop()
            if word == "}" and comma >= 0:
                parts[comma] = " "
        elif is_inline and (kind == "comment" or word == "\n"):
            word = " " * len(word)
        elif kind == "basic":
            word = _ESCAPE.sub(lambda escape: _as_old_escape(escape[0]), word)
        if word.strip() and kind != "comment":
            comma = len(parts) if word == "," and is_inline else -1
        parts.append(word)
    result = "".join(parts)
    return result if len(result) == len(text) else text  # of a text with characters that are no token


def _as_old_escape(escape: str) -> str:
    if escape.startswith("\\x"):
        return f"\\t{'?' * (len(escape) - 2)}"
    return "\\t" if escape == "\\e" else escape


def _without_times(value: Any) -> Any:
    """The value with texts for dates and times."""
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_times(item) for item in value]
    return {"time": value.isoformat()} if isinstance(value, date | time) else value


def _failure(text: str, message: str) -> tuple[Span, str]:
    """Where a text breaks, and why."""
    match = _ERROR_PLACE.search(message)
    reason = message[: match.start()] if match else "It is nested too deeply"
    if "digits" in message:
        reason = "A number has too many digits"
    start = len(text) if match else 0
    if match and match[1]:
        lines_before = text.split("\n")[: int(match[1]) - 1]
        start = min(sum(map(len, lines_before)) + len(lines_before) + int(match[2]) - 1, len(text))
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return Span(start if start < end else text.rfind("\n", 0, start) + 1, end), reason
