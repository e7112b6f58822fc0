"""The transitions of a JSON scan that are expected; `recovery` adds the others.

1. One regular expression finds the next token, valid or the first character of something odd.
2. A state says what is expected; a stack holds the open brackets. There is no recursion.
3. What is expected and comes is taken at once; all else goes to the methods at the end.
4. Where a member may begin, `runs` takes all valid ones at once: they have one node between them.
"""

import re
from collections.abc import Callable
from typing import Any

from nexus_context.errors import Severity
from nexus_context.jsontext.lexer import LONGEST_NUMBER, read_number
from nexus_context.jsontext.problems import MOST_ERRORS, Problems
from nexus_context.jsontext.reusable_spans import Piece
from nexus_context.jsontext.runs import DEEPEST, Runs
from nexus_context.jsontext.spans import Node

# States: what comes next. A value is wanted up to VALUE; the next states follow a complete value.
ROOT, ITEM_FIRST, ITEM, VALUE, KEY_FIRST, KEY, COLON, NEXT_ITEM, NEXT_MEMBER, END = range(10)

# Kinds of tokens: the groups of TOKEN.
T_STRING, T_KEY, T_COMMA, T_NUMBER, T_CLOSE, T_OPEN, T_LITERAL, T_COLON, T_END, T_ODD = range(1, 11)

_DELIMITED = r"""(?![^\s,:\[\]{}"'/;=\#])"""
_TOKEN = re.compile(
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
_LITERALS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff]"
)


Frame = tuple[dict[str, Any] | list[Any] | None, int, int, dict[str, int]]
"""What is put aside while a bracket is open, of the container around it: container, node, after, seen."""

_NOTHING_SEEN: dict[str, int] = {}


class Scanner:
    """The expected transitions; those that are errors are methods of the subclass `Recovery`.

    `position` is the offset after the current token, `last` the end of the token before it, `gap` where
    the blank before the current token begins, `comma` the offset of the latest comma.
    """

    __slots__ = (
        "after", "comma", "container", "gap", "key", "key_end", "key_start", "last", "node",
        "nodes", "path", "pieces", "position", "problems", "raw_surrogates", "runs", "seen", "stack",
        "state", "stop", "text", "value",
    )  # fmt: skip

    def __init__(self, path: str, text: str, runs: Runs | None) -> None:
        self.path = path
        self.text = text
        self.problems = Problems(path)
        self.value: Any = None
        self.nodes: list[Node] = []
        self.pieces: dict[int, Piece] = {}  # the members of each run, by its node
        self.stack: list[Frame] = []
        self.container: dict[str, Any] | list[Any] | None = None
        self.node = -1  # number of the container's node
        self.after = END  # the state after a value in this container
        self.seen: dict[str, int] = {}  # name → node of each member of this container
        self.state = ROOT
        self.key: str | None = None
        self.key_start = self.key_end = -1
        self.position = self.last = self.gap = self.comma = 0
        self.stop = False
        self.raw_surrogates = not text.isascii() and _SURROGATE.search(text) is not None
        self.runs = None if self.raw_surrogates else runs

    def run(self) -> None:
        """Scan to the end, or until the text is hopeless."""
        text, match = self.text, _TOKEN.match
        handlers: dict[int, Callable[[int, int], None]] = {
            T_STRING: self.on_string,
            T_COMMA: self.on_comma,
            T_NUMBER: self.on_number,
            T_CLOSE: self.on_close,
            T_OPEN: self.on_open,
            T_LITERAL: self.on_literal,
            T_COLON: self.on_colon,
            T_END: self.on_end,
        }
        problems = self.problems
        while not self.stop and problems.errors < MOST_ERRORS:
            at = self.gap = self.position
            found = match(text, at)
            kind = found.lastindex  # type: ignore[union-attr]
            start, end = found.span(kind)  # type: ignore[union-attr, arg-type]
            self.position = end
            if kind == T_ODD:
                self.on_odd(start)
                continue
            if kind == T_KEY:
                self.on_key(*found.span(T_STRING))  # type: ignore[union-attr]
            else:
                handlers[kind](start, end)  # type: ignore[index]
            self.last = self.position

    def on_string(self, start: int, end: int) -> None:
        """A valid string without escapes that no colon follows."""
        self.string(self.text[start + 1 : end - 1], start, end)

    def on_key(self, start: int, end: int) -> None:
        """A valid string without escapes, and its colon."""
        self.named(self.text[start + 1 : end - 1], start, end)

    def on_number(self, start: int, end: int) -> None:
        """A valid number."""
        if self.state <= VALUE or self.make_room(start, end):
            source = self.text[start:end]
            value = int(source) if end - start < 18 and source.lstrip("-").isdigit() else read_number(source)
            if value is None:
                self.problems.add(start, end, "number-range", _out_of_range(source))
            self.place(value, start, end)

    def on_literal(self, start: int, end: int) -> None:
        """One of true, false and null."""
        if self.state <= VALUE or self.make_room(start, end):
            self.place(_LITERALS[self.text[start:end]], start, end)

    def on_comma(self, start: int, end: int) -> None:
        """A comma."""
        if self.state == NEXT_MEMBER:
            self.state = KEY
        elif self.state == NEXT_ITEM:
            self.state = ITEM
        else:
            self.odd_comma(start, end)
            return
        self.comma = start
        if self.runs:
            self.take_run(self.runs)

    def on_open(self, start: int, end: int) -> None:
        """An opening bracket."""
        if self.state > VALUE and not self.make_room(start, end):
            return
        if len(self.stack) >= DEEPEST:
            message = (
                f"Nested more than {DEEPEST} levels deep: what follows is not read. Flatten the structure."
            )
            self.problems.add(start, end, "too-deep", message)
            self.stop = True
            return
        is_object = self.text[start] == "{"
        value: dict[str, Any] | list[Any] = {} if is_object else []
        self.place(value, start, len(self.text))  # an end for those that stay open
        self.stack.append((self.container, self.node, self.after, self.seen))
        self.container = value
        self.node = len(self.nodes) - 1
        self.seen = {} if is_object else _NOTHING_SEEN
        self.state, self.after = (KEY_FIRST, NEXT_MEMBER) if is_object else (ITEM_FIRST, NEXT_ITEM)
        if self.runs:
            self.take_run(self.runs)

    def on_close(self, start: int, end: int) -> None:
        """A closing bracket."""
        closes_object = self.text[start] == "}"
        if closes_object is (self.after == NEXT_MEMBER) and self.stack:
            if self.state not in (NEXT_MEMBER, NEXT_ITEM, KEY_FIRST, ITEM_FIRST):
                self.unfinished(start, end)
            self.pop(end)
        else:
            self.odd_close(start, end)

    def string(self, value: str, start: int, end: int) -> None:
        """A string's value that no colon follows: a value, or a key whose colon is missing."""
        if self.raw_surrogates or (not value.isascii() and _SURROGATE.search(value)):
            value = self.whole(value, start, end)
        state = self.state
        if state > VALUE and state not in (KEY, KEY_FIRST) and not self.make_room(start, end):
            return
        if self.state in (KEY, KEY_FIRST):
            self.take_key(value, start, end)
            self.state = COLON
        else:
            self.place(value, start, end)

    def named(self, value: str, start: int, end: int) -> None:
        """A string's value that a colon follows, which ends at `position`: a key."""
        if self.raw_surrogates or (not value.isascii() and _SURROGATE.search(value)):
            value = self.whole(value, start, end)
        if self.state in (KEY, KEY_FIRST) or self.make_key_room(value, start, end):
            self.take_key(value, start, end)
            self.state = VALUE

    def take_key(self, name: str, start: int, end: int) -> None:
        """Remember the key of the value to come; warn if the object has it already."""
        first = self.seen.setdefault(name, len(self.nodes))
        if first < len(self.nodes):
            key = self.nodes[first][4:]
            if first in self.pieces and not self.problems.full:
                shift, found = self.nodes[first][0], self.pieces[first].find((name,)).key
                key = (shift + found.start, shift + found.end) if found else key
            self.problems.add(
                start,
                end,
                "duplicate-key",
                "This key is there already; the last one wins. Remove one of them.",
                severity=Severity.WARNING,
                related=((*key, "First here."),),
            )
        self.key = name
        self.key_start = start
        self.key_end = end

    def place(self, value: Any, start: int, end: int) -> None:
        """Put a value where the state wants it."""
        container = self.container
        if self.after == NEXT_MEMBER:
            if self.key is not None:
                container[self.key] = value  # type: ignore[index, call-overload]
            self.nodes.append((start, end, self.node, self.key, self.key_start, self.key_end))
        elif container is not None:
            self.nodes.append((start, end, self.node, len(container), -1, -1))
            container.append(value)  # type: ignore[union-attr]
        else:
            self.nodes.append((start, end, -1, None, -1, -1))
            self.value = value
        self.state = self.after

    def take_run(self, runs: Runs) -> None:
        """Take the valid members that begin at `position`, if there are any."""
        container = self.container
        run = runs.take(
            self.position, is_object=type(container) is dict, seen=self.seen, depth=len(self.stack)
        )
        if run is None:
            return
        start, piece = run
        number, first = len(self.nodes), None
        members = piece.members
        if isinstance(container, dict) and isinstance(members, dict):
            container.update(members)
            self.seen.update(dict.fromkeys(members, number))
        elif isinstance(container, list):
            first = len(container)
            container.extend(members)
        self.pieces[number] = piece
        self.position = start + len(piece.text)
        self.nodes.append((start, self.position, self.node, first, -1, -1))
        self.state = self.after

    def pop(self, end: int) -> None:
        """Close the innermost bracket at `end`."""
        start, _, parent, name, key_start, key_end = self.nodes[self.node]
        self.nodes[self.node] = (start, end, parent, name, key_start, key_end)
        self.container, self.node, self.after, self.seen = self.stack.pop()
        self.state = self.after

    def whole(self, value: str, start: int, end: int) -> str:
        """The value with U+FFFD for each lone surrogate, about which it warns."""
        halves = _ESCAPED_SURROGATE.finditer(self.text, start, end)
        for found in halves:
            if self.problems.full:
                rest = sum(len(each.group()) in (1, 6) for each in halves)
                self.problems.count_warnings(rest + (len(found.group()) in (1, 6)))
                break
            source = found.group()
            if len(source) not in (1, 6):  # a pair, or another escape
                continue
            code = source[2:].upper() or f"{ord(source):X}"
            message = f"U+{code} is half of a surrogate pair: U+FFFD is read instead. Write the character."
            self.problems.add(*found.span(), "lone-surrogate", message, severity=Severity.WARNING)
        return _SURROGATE.sub("\ufffd", value)

    def on_colon(self, start: int, end: int) -> None:
        """A colon that does not directly follow a valid key."""
        raise NotImplementedError

    def on_end(self, start: int, _end: int) -> None:
        """The end of the text."""
        raise NotImplementedError

    def on_odd(self, start: int) -> None:
        """A character that begins no valid token, or a string with escapes."""
        raise NotImplementedError

    def odd_comma(self, start: int, end: int) -> None:
        """A comma where none is wanted."""
        raise NotImplementedError

    def odd_close(self, start: int, end: int) -> None:
        """A closing bracket that does not match the innermost open one."""
        raise NotImplementedError

    def unfinished(self, start: int, end: int) -> None:
        """A matching closing bracket before the member that was begun is complete."""
        raise NotImplementedError

    def make_room(self, start: int, end: int) -> bool:
        """A value where none is wanted: report it; whether the value may be taken now."""
        raise NotImplementedError

    def make_key_room(self, value: str, start: int, end: int) -> bool:
        """A key and its colon where no key is wanted: report it; whether the key may be taken now."""
        raise NotImplementedError


def _out_of_range(source: str) -> str:
    if len(source) > LONGEST_NUMBER and source.lstrip("-").isdigit():
        return f"The integer has {len(source):,} digits; at most {LONGEST_NUMBER:,} are read. Write a string."
    return "The number is out of range. Write one between -1.7e308 and 1.7e308."
