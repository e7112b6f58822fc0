"""A scan of JSON text that goes on past every error: value, places, problems.

1. Each error is reported once, where the standard library would report it, or nearer to its cause.
2. The state after it is the one that the author most likely had in mind, so that nothing follows from it:
   a missing comma or colon is taken as written, a missing value leaves its key without one.
3. What fits nothing is skipped up to the next comma, bracket or line end.
4. A bracket that closes another kind than the open one: if the whole text has too few of the one and too many
   of the other, it is a slip of the key; else, if an outer bracket matches, the inner one was never closed;
   else it is one too many.
"""

import re
from typing import Any, NamedTuple

from nexus_context.errors import Edit, Fix, Problem, Span
from nexus_context.jsontext.lexer import BareKey, junk_end, read_comment, read_key, read_space, read_value
from nexus_context.jsontext.reports import COLON_WANTED, COMMA_WANTED, NAME_WANTED, Reporter
from nexus_context.jsontext.reusable_spans import Piece, Placed
from nexus_context.jsontext.runs import Runs
from nexus_context.jsontext.scanner import (
    COLON,
    END,
    ITEM,
    KEY,
    KEY_FIRST,
    NEXT_ITEM,
    NEXT_MEMBER,
    ROOT,
    VALUE,
)
from nexus_context.jsontext.spans import Node
from nexus_context.jsontext.strings import (
    QUOTES,
    Complaint,
    Lexeme,
    read_quoted,
    read_string,
    replace,
    requote,
)

MOST_INNER_QUOTES = 20
"""Quotes that one string may hold unescaped and still be taken for one string."""

_COLON = re.compile(r"[ \t\r\n]*+:")
_CLOSES = re.compile(r"[ \t\r\n]*+[}\],:;]")
_EQUALS = re.compile(r"=>?")
_LEFTOVER = re.compile(r"[\s,;}\]]*+")
_MORE_MEMBERS = re.compile(r',\s*+"[^"\\\r\n]*+"\s*+:')


class Scan(NamedTuple):
    """What a scan found. `value` is None where nothing was understood."""

    value: Any
    nodes: list[Node]
    pieces: dict[int, Piece]
    problems: tuple[Problem, ...]

    def placed(self) -> list[Placed]:
        """The pieces and where they begin."""
        return [(self.nodes[number][0], piece) for number, piece in self.pieces.items()]


def scan(path: str, text: str, runs: Runs | None = None) -> Scan:
    """Scan any text; never raises. Takes time in proportion to its length.

    With `runs`, valid members that follow each other have one node, and are in `pieces`.
    """
    scanner = _Scanner(path, text, runs)
    scanner.run()
    return Scan(scanner.value, scanner.nodes, scanner.pieces, scanner.problems.result())


class _Scanner(Reporter):
    """The transitions that are errors."""

    __slots__ = ()

    def on_colon(self, start: int, end: int) -> None:
        state = self.state
        if state == COLON:
            self.state = VALUE
        elif state in (KEY, KEY_FIRST):
            self.problems.add(start, end, "property-name", f"{NAME_WANTED}: write a name before the colon.")
            self.lose_key()
            self.state = VALUE
        elif state == NEXT_ITEM and not _CLOSES.match(self.text, end):
            fix = replace("Write a comma", start, end, ",")
            self.problems.add(start, end, "missing-comma", f"{COMMA_WANTED}, not ':', in an array.", fix=fix)
            self.state, self.comma = ITEM, start
        elif state == NEXT_MEMBER:
            self.junk(start)
        elif state == END:
            self.extra_data(start)
        else:
            self.remove(start, end, "unexpected", "Expecting value, not ':'")

    def on_end(self, start: int, _end: int) -> None:
        self.stop = True
        if self.state == ROOT and not self.last:
            fix = replace("Write an empty object", 0, 0, "{}")
            self.problems.add(0, 0, "empty", "Expecting value: the file is empty. Write {}.", fix=fix)
        if not self.stack:
            return
        if self.state == VALUE:
            self.missing_value(self.last - 1, self.last)
            self.placeholder(start)
        elif self.state == COLON:
            self.missing_colon_and_value(self.key_start, self.key_end)
            self.placeholder(start)
        self.unclosed_at_end()

    def on_odd(self, start: int) -> None:
        text, state = self.text, self.state
        character = text[start]
        skipped = self.comment(start) if character in "/#" else read_space(text, start)
        if skipped:
            self.complain((skipped,))
            self.position = skipped.end
            return
        if state == END:
            self.extra_data(start)
        elif character == '"' or character in QUOTES:
            is_key = state in (KEY, KEY_FIRST) or (state in (COLON, NEXT_MEMBER) and self.new_line(start))
            read = read_string if character == '"' else read_quoted
            self.odd_string(read(text, start, is_key=is_key, depth=len(self.stack)))
        elif character in ";=":
            self.odd_separator(start)
        else:
            self.odd_word(start)
        self.last = self.position

    def odd_comma(self, start: int, end: int) -> None:
        if self.state == VALUE:
            self.missing_value(start, end)
            self.placeholder(start)
        elif self.state == COLON:
            self.missing_colon_and_value(start, end)
            self.placeholder(start)
        elif self.state == END:
            self.extra_data(start)
            return
        elif self.state == ROOT:
            self.problems.add(start, end, "missing-value", "Expecting value, not ','.")
            return
        else:
            self.remove(start, end, "extra-comma", "Expecting value, not ','")
            return
        self.state, self.comma = KEY, start

    def odd_close(self, start: int, end: int) -> None:
        got = self.text[start]
        if not self.stack:
            if self.state == END:
                self.extra_data(start)
            else:
                self.problems.add(start, end, "bracket", f"Expecting value, not '{got}'.")
            return
        balance = self.brackets()
        while (self.after == NEXT_MEMBER) != (got == "}"):
            want = "}" if self.after == NEXT_MEMBER else "]"
            if balance[want] < 0 < balance[got]:
                balance[want] += 1
                balance[got] -= 1
                message = (
                    f"Mismatched bracket: write '{want}', as the bracket that is open is '{_opener(want)}'."
                )
                self.problems.add(
                    start, end, "bracket", message, fix=replace(f"Write {want}", start, end, want)
                )
                break
            if not any((after == NEXT_MEMBER) is (got == "}") for _, _, after, _ in self.stack[1:]):
                balance[got] -= 1
                self.remove(start, end, "bracket", f"Unexpected '{got}'")
                return
            self.unfinished(start, end)
            self.unclosed(self.last)
        self.unfinished(start, end)
        self.pop(end)

    def make_room(self, start: int, end: int) -> bool:
        state = self.state
        opens = self.text[start] in "{["
        if state == NEXT_ITEM:
            self.missing_comma(start, end)
            self.state = ITEM
        elif state == COLON:
            self.state = VALUE
            fix = replace("Insert a colon", self.key_end, self.key_end, ":")
            message = f"{COLON_WANTED}: write a colon after the property name."
            self.problems.add(start, end, "missing-colon", message, fix=fix)
        elif state == END:
            self.extra_data(start)
            return False
        elif state in (KEY, KEY_FIRST):
            return self.open_without_key(start, end) if opens else self.scalar_as_key(start, end)
        elif opens:
            message = f"{COMMA_WANTED}: write a comma and a property name before this."
            self.problems.add(start, end, "missing-comma", message)
            self.lose_key()
        elif self.text[start] == '"' and self.new_line(start):
            self.missing_comma(start, end)
            self.state = KEY
        else:
            self.junk(start)
            return False
        return True

    def make_key_room(self, value: str, start: int, end: int) -> bool:
        state = self.state
        if state == NEXT_MEMBER:
            self.missing_comma(start, end)
        elif state == VALUE and self.new_line(start):
            self.missing_value(self.last - 1, self.last)
            self.placeholder(start)
        elif state == COLON:
            self.missing_colon_and_value(start, end)
            self.placeholder(start)
        elif state in (NEXT_ITEM, ITEM) and self.stack[-1][2] == NEXT_MEMBER and self.brackets()["]"] < 0:
            # a member inside an array, and the text lacks a "]": the array was to end before it
            if state == NEXT_ITEM:
                self.unclosed(self.last, separator=",")
            else:
                self.unclosed(self.comma)
        elif state == END:
            self.extra_data(start)
            return False
        else:
            colon = self.position - 1
            self.string(value, start, end)
            self.last = end
            self.on_colon(colon, colon + 1)
            return False
        return True

    # What to do about a value, a key or a character that is out of place.

    def open_without_key(self, start: int, end: int) -> bool:
        """An opening bracket in an object where a key is expected."""
        if (
            self.state == KEY
            and self.text[start] == "{"
            and self.stack[-1][2] == NEXT_ITEM
            and self.brackets()["}"] < 0
        ):
            self.unclosed(self.comma)  # the next object of a list: the one before was to end
            self.state = ITEM
            return True
        self.problems.add(start, end, "property-name", f"{NAME_WANTED} before this.")
        self.lose_key()
        return True

    def scalar_as_key(self, start: int, end: int) -> bool:
        """A number or literal in an object where a key is expected."""
        source = self.text[start:end]
        colon = _COLON.match(self.text, end)
        if colon:
            message = f"{NAME_WANTED}: write them around this."
            fix = requote("Quote the key", self.text, start, end)
            self.problems.add(start, end, "unquoted-key", message, fix=fix)
            self.take_key(source, start, end)
            self.position = colon.end()
            self.state = VALUE
        else:
            self.problems.add(start, end, "property-name", f"{NAME_WANTED} before this.")
            self.state = NEXT_MEMBER
        return False

    def odd_string(self, lexeme: Lexeme) -> None:
        """A string with escapes, with errors inside, or in other quotation marks."""
        start, end, value, complaints = lexeme
        colon = _COLON.match(self.text, end)
        if complaints and self.state in (COLON, NEXT_ITEM, NEXT_MEMBER):
            if complaints[0].code == "unterminated-string" and start == self.last:
                self.position = start + 1
                self.remove(start, start + 1, "unexpected", "Unexpected double quote")
                return
            if self.state == NEXT_MEMBER and not colon and not self.new_line(start):
                self.junk(start)
                return
        self.complain(complaints)
        if colon:
            self.position = colon.end()
            self.named(str(value), start, end)
        else:
            self.position = end
            self.string(str(value), start, end)

    def odd_separator(self, start: int) -> None:
        """A semicolon or an equals sign."""
        state = self.state
        if (
            self.text[start] == ";"
            and state in (NEXT_ITEM, NEXT_MEMBER)
            and not _CLOSES.match(self.text, start + 1)
        ):
            fix = replace("Write a comma", start, start + 1, ",")
            self.problems.add(start, start + 1, "missing-comma", f"{COMMA_WANTED}, not ';'.", fix=fix)
            self.on_comma(start, start + 1)
        elif self.text[start] == "=" and state == COLON:
            self.position = _EQUALS.match(self.text, start).end()  # type: ignore[union-attr]
            self.not_a_colon(start, self.position)
            self.state = VALUE
        elif state == NEXT_MEMBER and self.text[start] == "=":
            self.junk(start)
        else:
            self.remove(start, start + 1, "unexpected", f"Unexpected '{self.text[start]}'")

    def odd_word(self, start: int) -> None:
        """A bare word, a malformed number, or any other character."""
        state, new_line = self.state, self.new_line(start)
        may_be_key = state in (KEY, KEY_FIRST, COLON) or (new_line and state in (VALUE, NEXT_MEMBER))
        key = read_key(self.text, start) if may_be_key else None
        if key and state == COLON and not new_line:
            self.position = key.key.end
            self.remove(start, self.position, "unexpected", "Unexpected text between property name and colon")
        elif key:
            self.bare_key(key)
        elif state in (KEY, KEY_FIRST):
            self.position = junk_end(self.text, start)
            self.problems.add(
                start, self.position, "property-name", f"{NAME_WANTED}: write a name, or remove this."
            )
            self.state = NEXT_MEMBER
        elif state == NEXT_MEMBER or (state == NEXT_ITEM and not new_line):
            self.junk(start)
        else:
            if state > VALUE:
                self.make_room(start, start + 1)
            _, self.position, value, complaints = read_value(self.text, start)
            if state == ROOT and complaints[0].code == "unquoted-string":  # some other kind of file
                complaints = (complaints[0]._replace(fix=None),)
            self.complain(complaints)
            if isinstance(value, str):
                self.string(value, start, self.position)
            else:
                self.place(value, start, self.position)

    def bare_key(self, bare: BareKey) -> None:
        """A key without quotes, and its colon."""
        start, end, value, complaints = bare.key
        self.complain(complaints)
        self.position = bare.colon_end
        if self.text[bare.colon] != ":":
            self.not_a_colon(bare.colon, bare.colon_end)
        self.named(str(value), start, end)

    def junk(self, start: int) -> None:
        """Skip what stands after a complete value and is not understood."""
        text = self.text
        end = self.position = junk_end(text, start)
        adjacent = start == self.last and text[start - 1] == '"' == text[end - 1] and end > start + 1
        if adjacent and text.count('"', start, end) <= MOST_INNER_QUOTES:
            inner = [at for at in range(start - 1, end - 1) if text[at] == '"' and text[at - 1] != "\\"]
            edits = tuple(Edit(Span(at, at), "\\") for at in inner)
            message = "Unescaped double quotes inside a string: write a backslash before each."
            fix = Fix("Escape the quotes", edits)
            self.problems.add(start - 1, end, "unescaped-quote", message, fix=fix)
            return
        message = f"{COMMA_WANTED}: remove this, or write a comma and what belongs to it."
        self.problems.add(start, end, "unexpected", message)

    def comment(self, start: int) -> Complaint | None:
        """The comment at `start`; a word such as `#fff` in a value's place is none."""
        if self.text[start] == "#" and self.state <= VALUE and self.text[start + 1 : start + 2].isalnum():
            return None
        if self.comments_end is None:
            self.comments_end = self.text.rfind("*/")
        return read_comment(self.text, start, self.gap, self.comments_end)

    def extra_data(self, start: int) -> None:
        """Something after the end of the value: the last problem, unless a bracket closed too early."""
        text = self.text
        if isinstance(self.value, dict) and text[self.last - 1] == "}" and _MORE_MEMBERS.match(text, start):
            at = self.last - 1
            self.remove(at, self.last, "bracket", f"Unexpected '{text[at]}', as the object goes on after it")
            self.stack.append((None, -1, END, {}))
            root = self.nodes[0]
            self.nodes[0] = (root[0], len(text), *root[2:])
            self.container, self.node, self.after = self.value, 0, NEXT_MEMBER
            self.state, self.comma = KEY, start
            self.seen = {}
            self.position = start + 1
            return
        end = len(text.rstrip(" \t\r\n"))
        fix = None
        if _LEFTOVER.match(text, start).end() >= end:  # type: ignore[union-attr]
            fix = replace("Remove it", start, end, "")
        message = "Extra data after the end of the value: remove it, or put all into one object."
        self.problems.add(start, end, "extra-data", message, fix=fix)
        self.stop = True


def _opener(closer: str) -> str:
    return "{" if closer == "}" else "["
