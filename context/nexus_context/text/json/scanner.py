"""Scans JSON text past every error, and finds its value, places and problems.

1. One regular expression finds the next token: a valid one, or the first character of something invalid.
2. A state says what is expected; a stack holds the open brackets. There is no recursion.
3. Each error is reported once, where the standard library would report it, or nearer to its cause.
4. The state after an error is the one that the author most likely intended, so that no error follows from it:
   a missing comma or colon is taken as written, a missing value leaves its key without one.
5. What fits nowhere is skipped up to the next comma, bracket or line end.
6. A closing bracket may be of another kind than the open one. It is a typing mistake if the whole text has
   too few of the one kind and too many of the other. Otherwise, if it matches an outer bracket, the inner one
   was never closed. If it matches none, it is one too many.
"""

import re
from typing import Any, NamedTuple

from nexus_context.errors import Edit, Problem, Span
from nexus_context.text.json import lexer
from nexus_context.text.json.index import Node
from nexus_context.text.json.problems import (
    COMMA_EXPECTED,
    MOST_ERRORS,
    NAME_EXPECTED,
    Problems,
    TokenProblem,
    has_surrogate,
)
from nexus_context.text.json.strings import QUOTES, Token, read_quoted, read_string, requote

DEEPEST = 200
"""Open brackets at one place of a file."""

MOST_INNER_QUOTES = 20
"""Unescaped quotes that one string may contain and still be taken for one string."""

# States: what comes next. A value is expected up to VALUE; the later states follow a complete value.
ROOT, ITEM_FIRST, ITEM, VALUE, KEY_FIRST, KEY, COLON, NEXT_ITEM, NEXT_MEMBER, END = range(10)

_COLON = re.compile(r"[ \t\r\n]*+:")
_CLOSES = re.compile(r"[ \t\r\n]*+[}\],:;]")
_EQUALS = re.compile(r"=>?")
_LEFTOVER = re.compile(r"[\s,;}\]]*+")
_LINE_END = re.compile(r"[\r\n]")
_MORE_MEMBERS = re.compile(r',\s*+"[^"\\\r\n]*+"\s*+:')

Frame = tuple[dict[str, Any] | list[Any] | None, int, int, dict[str, int]]
"""What is put aside while a bracket is open, of the container around it: container, node, after, names."""

_NO_NAMES: dict[str, int] = {}


class Scan(NamedTuple):
    """The result of a scan. `value` is None if nothing was understood."""

    value: Any
    nodes: list[Node]
    problems: tuple[Problem, ...]


def scan(path: str, text: str) -> Scan:
    """Scan any text. Never raises; takes time in proportion to the text's length."""
    scanner = _Scanner(path, text)
    scanner.run()
    return Scan(scanner.value, scanner.nodes, scanner.problems.result())


class _Scanner:
    """The state machine: first the transitions that are expected, then the errors.

    `position` is the offset after the current token, `last` the end of the token before it, `gap` where
    the blank before the current token begins, `comma` the offset of the latest comma.
    """

    def __init__(self, path: str, text: str) -> None:
        self.text = text
        self.problems = Problems(path)
        self.value: Any = None
        self.nodes: list[Node] = []
        self.stack: list[Frame] = []
        self.container: dict[str, Any] | list[Any] | None = None
        self.node = -1  # number of the container's node
        self.after = END  # the state after a value in this container
        self.names: dict[str, int] = {}  # name → node of each member of this container
        self.state = ROOT
        self.key: str | None = None
        self.key_start = self.key_end = -1
        self.position = self.last = self.gap = self.comma = 0
        self.stop = False
        self.raw_surrogates = has_surrogate(text)
        self.balance: dict[str, int] | None = None  # see brackets()
        self.comments_end: int | None = None

    def run(self) -> None:
        """Scan to the end, or until the text is hopeless."""
        text, match = self.text, lexer.TOKEN.match
        handlers = (  # in the order of the groups of lexer.TOKEN
            self.on_string, self.on_key, self.on_comma, self.on_number, self.on_close, self.on_open,
            self.on_literal, self.on_colon, self.on_end,
        )  # fmt: skip
        problems = self.problems
        while not self.stop and problems.errors < MOST_ERRORS:
            at = self.gap = self.position
            token = match(text, at)
            kind = token.lastindex  # type: ignore[union-attr]
            start, self.position = token.span(kind)  # type: ignore[union-attr, arg-type]
            if kind == lexer.T_ODD:
                self.on_odd(start)
                continue
            start, end = token.span(lexer.T_STRING if kind == lexer.T_KEY else kind)  # type: ignore[union-attr, arg-type]
            handlers[kind - 1](start, end)  # type: ignore[operator]
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
            value = lexer.read_number(self.text[start:end])
            if value is None:
                self.problems.add_number_range(start, end, self.text[start:end])
            self.place(value, start, end)

    def on_literal(self, start: int, end: int) -> None:
        """One of true, false and null."""
        if self.state <= VALUE or self.make_room(start, end):
            self.place(lexer.LITERALS[self.text[start:end]], start, end)

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

    def on_open(self, start: int, end: int) -> None:
        """An opening bracket."""
        if self.state > VALUE and not self.make_room(start, end):
            return
        if len(self.stack) >= DEEPEST:
            self.problems.add_too_deep(start, end, DEEPEST)
            self.stop = True
            return
        is_object = self.text[start] == "{"
        value: dict[str, Any] | list[Any] = {} if is_object else []
        self.place(value, start, len(self.text))  # an end for those that stay open
        self.stack.append((self.container, self.node, self.after, self.names))
        self.container = value
        self.node = len(self.nodes) - 1
        self.names = {} if is_object else _NO_NAMES
        self.state, self.after = (KEY_FIRST, NEXT_MEMBER) if is_object else (ITEM_FIRST, NEXT_ITEM)

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
        if self.raw_surrogates or has_surrogate(value):
            value = self.problems.replace_surrogates(self.text, start, end, value)
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
        if self.raw_surrogates or has_surrogate(value):
            value = self.problems.replace_surrogates(self.text, start, end, value)
        if self.state in (KEY, KEY_FIRST) or self.make_key_room(value, start, end):
            self.take_key(value, start, end)
            self.state = VALUE

    def take_key(self, name: str, start: int, end: int) -> None:
        """Set the key of the next value; warn if the object has it already."""
        first_node = self.names.setdefault(name, len(self.nodes))
        if first_node < len(self.nodes):
            key = self.nodes[first_node][4:]
            self.problems.add_duplicate_key(start, end, key)
        self.key, self.key_start, self.key_end = name, start, end

    def place(self, value: Any, start: int, end: int) -> None:
        """Put a value where the state expects it."""
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

    def pop(self, end: int) -> None:
        """Close the innermost bracket at `end`."""
        start, _, parent, name, key_start, key_end = self.nodes[self.node]
        self.nodes[self.node] = (start, end, parent, name, key_start, key_end)
        self.container, self.node, self.after, self.names = self.stack.pop()
        self.state = self.after

    # Tokens that are not expected where they stand.

    def on_colon(self, start: int, end: int) -> None:
        """A colon that does not directly follow a valid key."""
        state = self.state
        if state == COLON:
            self.state = VALUE
        elif state in (KEY, KEY_FIRST):
            self.problems.add_missing_name(start, end, ": write a name before the colon.")
            self.lose_key()
            self.state = VALUE
        elif state == NEXT_ITEM and not _CLOSES.match(self.text, end):
            self.problems.add_not_a_comma(start, "not ':', in an array")
            self.state, self.comma = ITEM, start
        elif state == NEXT_MEMBER:
            self.junk(start)
        elif state == END:
            self.extra_data(start)
        else:
            self.remove(start, end, "unexpected", "Expecting value, not ':'")

    def on_end(self, start: int, _end: int) -> None:
        """The end of the text."""
        self.stop = True
        if self.state == ROOT and not self.last:
            self.problems.add_empty()
        if not self.stack:
            return
        if self.state == VALUE:
            self.missing_value(self.last - 1, self.last, before=start)
        elif self.state == COLON:
            self.missing_value(self.key_start, self.key_end, before=start)
        self.unclosed_at_end()

    def on_odd(self, start: int) -> None:
        """A character that begins no valid token, or a string with escapes."""
        text, state = self.text, self.state
        character = text[start]
        skipped = self.comment(start) if character in "/#" else lexer.read_space(text, start)
        if skipped:
            self.problems.add_all((skipped,))
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
        """A comma where none is expected."""
        if self.state in (VALUE, COLON):
            self.missing_value(start, end, before=start)
            self.state, self.comma = KEY, start
        elif self.state == END:
            self.extra_data(start)
        elif self.state == ROOT:
            self.problems.add(start, end, "missing-value", "Expecting value, not ','.")
        else:
            self.remove(start, end, "extra-comma", "Expecting value, not ','")

    def odd_close(self, start: int, end: int) -> None:
        """A closing bracket that does not match the innermost open one."""
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
                self.problems.add_mismatched_bracket(start, want)
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
        """Report a value where none is expected; whether the value may be taken now."""
        state = self.state
        opens = self.text[start] in "{["
        if state == NEXT_ITEM:
            self.problems.add_missing_comma(start, end, self.last)
            self.state = ITEM
        elif state == COLON:
            self.state = VALUE
            self.problems.add_missing_colon(start, end, self.key_end)
        elif state == END:
            self.extra_data(start)
            return False
        elif state in (KEY, KEY_FIRST):
            return self.open_without_key(start, end) if opens else self.scalar_as_key(start, end)
        elif opens:
            message = f"{COMMA_EXPECTED}: write a comma and a property name before this."
            self.problems.add(start, end, "missing-comma", message)
            self.lose_key()
        elif self.text[start] == '"' and self.new_line(start):
            self.problems.add_missing_comma(start, end, self.last)
            self.state = KEY
        else:
            self.junk(start)
            return False
        return True

    def make_key_room(self, value: str, start: int, end: int) -> bool:
        """Report a key and its colon where no key is expected; whether the key may be taken now."""
        state = self.state
        if state == NEXT_MEMBER:
            self.problems.add_missing_comma(start, end, self.last)
        elif state == VALUE and self.new_line(start):
            self.missing_value(self.last - 1, self.last, before=start)
        elif state == COLON:
            self.missing_value(start, end, before=start)
        elif state in (NEXT_ITEM, ITEM) and self.stack[-1][2] == NEXT_MEMBER and self.brackets()["]"] < 0:
            # a member inside an array, and the text lacks a "]": it belongs before this member
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

    def open_without_key(self, start: int, end: int) -> bool:
        """An opening bracket in an object where a key is expected."""
        is_item = self.state == KEY and self.text[start] == "{" and self.stack[-1][2] == NEXT_ITEM
        if is_item and self.brackets()["}"] < 0:
            self.unclosed(self.comma)  # the next object of a list: the previous one was not closed
            self.state = ITEM
            return True
        self.problems.add_missing_name(start, end, " before this.")
        self.lose_key()
        return True

    def scalar_as_key(self, start: int, end: int) -> bool:
        """A number or literal in an object where a key is expected."""
        colon = _COLON.match(self.text, end)
        if colon:
            message = f"{NAME_EXPECTED}: write them around this."
            fix = requote("Quote the key", self.text, start, end)
            self.problems.add(start, end, "unquoted-key", message, fix=fix)
            self.take_key(self.text[start:end], start, end)
            self.position = colon.end()
            self.state = VALUE
        else:
            self.problems.add_missing_name(start, end, " before this.")
            self.state = NEXT_MEMBER
        return False

    def odd_string(self, token: Token) -> None:
        """A string with escapes, with errors inside, or in other quotation marks."""
        start, end, value, problems = token
        colon = _COLON.match(self.text, end)
        if problems and self.state in (COLON, NEXT_ITEM, NEXT_MEMBER):
            if problems[0].code == "unterminated-string" and start == self.last:
                self.position = start + 1
                self.remove(start, start + 1, "unexpected", "Unexpected double quote")
                return
            if self.state == NEXT_MEMBER and not colon and not self.new_line(start):
                self.junk(start)
                return
        self.problems.add_all(problems)
        if colon:
            self.position = colon.end()
            self.named(str(value), start, end)
        else:
            self.position = end
            self.string(str(value), start, end)

    def odd_separator(self, start: int) -> None:
        """A semicolon or an equals sign."""
        state = self.state
        after_value = state in (NEXT_ITEM, NEXT_MEMBER)
        if self.text[start] == ";" and after_value and not _CLOSES.match(self.text, start + 1):
            self.problems.add_not_a_comma(start, "not ';'")
            self.on_comma(start, start + 1)
        elif self.text[start] == "=" and state == COLON:
            self.position = _EQUALS.match(self.text, start).end()  # type: ignore[union-attr]
            self.problems.add_not_a_colon(start, self.position, self.text[start : self.position])
            self.state = VALUE
        elif state == NEXT_MEMBER and self.text[start] == "=":
            self.junk(start)
        else:
            self.remove(start, start + 1, "unexpected", f"Unexpected '{self.text[start]}'")

    def odd_word(self, start: int) -> None:
        """A bare word, a malformed number, or any other character."""
        state, new_line = self.state, self.new_line(start)
        may_be_key = state in (KEY, KEY_FIRST, COLON) or (new_line and state in (VALUE, NEXT_MEMBER))
        key = lexer.read_key(self.text, start) if may_be_key else None
        if key and state == COLON and not new_line:
            self.position = key.key.end
            self.remove(start, self.position, "unexpected", "Unexpected text between property name and colon")
        elif key:
            self.bare_key(key)
        elif state in (KEY, KEY_FIRST):
            self.position = lexer.junk_end(self.text, start)
            self.problems.add_missing_name(start, self.position, ": write a name, or remove this.")
            self.state = NEXT_MEMBER
        elif state == NEXT_MEMBER or (state == NEXT_ITEM and not new_line):
            self.junk(start)
        else:
            if state > VALUE:
                self.make_room(start, start + 1)
            _, self.position, value, problems = lexer.read_value(self.text, start)
            if state == ROOT and problems[0].code == "unquoted-string":  # some other kind of file
                problems = (problems[0]._replace(fix=None),)
            self.problems.add_all(problems)
            if isinstance(value, str):
                self.string(value, start, self.position)
            else:
                self.place(value, start, self.position)

    def bare_key(self, bare: lexer.BareKey) -> None:
        """A key without quotes, and its colon."""
        start, end, value, problems = bare.key
        self.problems.add_all(problems)
        self.position = bare.colon_end
        if self.text[bare.colon] != ":":
            source = self.text[bare.colon : bare.colon_end]
            self.problems.add_not_a_colon(bare.colon, bare.colon_end, source)
        self.named(str(value), start, end)

    def junk(self, start: int) -> None:
        """Skip what stands after a complete value and is not understood."""
        text = self.text
        end = self.position = lexer.junk_end(text, start)
        adjacent = start == self.last and text[start - 1] == '"' == text[end - 1] and end > start + 1
        if adjacent and text.count('"', start, end) <= MOST_INNER_QUOTES:
            inner = [at for at in range(start - 1, end - 1) if text[at] == '"' and text[at - 1] != "\\"]
            self.problems.add_unescaped_quotes(start - 1, end, inner)
            return
        message = f"{COMMA_EXPECTED}: remove this, or write a comma and what belongs to it."
        self.problems.add(start, end, "unexpected", message)

    def comment(self, start: int) -> TokenProblem | None:
        """The comment at `start`; a word such as `#fff` in place of a value is not one."""
        if self.text[start] == "#" and self.state <= VALUE and self.text[start + 1 : start + 2].isalnum():
            return None
        if self.comments_end is None:
            self.comments_end = self.text.rfind("*/")
        return lexer.read_comment(self.text, start, self.gap, self.comments_end)

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
            self.names = {}
            self.position = start + 1
            return
        end = len(text.rstrip(" \t\r\n"))
        removable = _LEFTOVER.match(text, start).end() >= end  # type: ignore[union-attr]
        self.problems.add_extra_data(start, end, fixable=removable)
        self.stop = True

    # Reports and the state that follows from each.

    def unfinished(self, start: int, end: int) -> None:
        """A matching closing bracket before the current member is complete."""
        if self.state in (ITEM, KEY) and self.text[self.comma] == ",":
            self.problems.add_trailing_comma(self.comma, "array" if self.state == ITEM else "object")
        elif self.state in (VALUE, COLON):
            self.missing_value(start, end, before=start)
        self.state = self.after

    def missing_value(self, start: int, end: int, *, before: int) -> None:
        """Report that the current key has no value, and give it an empty node.

        That node is at the next token, which is at `before`, or at the line's end if that comes first.
        """
        self.problems.add_missing_member_value(start, end, colon=self.state == COLON)
        line_end = _LINE_END.search(self.text, self.gap, before)
        at = line_end.start() if line_end else before
        self.nodes.append((at, at, self.node, self.key, self.key_start, self.key_end))

    def remove(self, start: int, end: int, code: str, finding: str) -> None:
        """Report what should be removed; there is a fix only if that leaves anything."""
        self.problems.add_removable(start, end, code, finding, fixable=self.state != ROOT)

    def unclosed(self, end: int, *, separator: str = "") -> None:
        """Close the innermost bracket, which was never closed, at `end`."""
        start = self.nodes[self.node][0]
        want = "}" if self.after == NEXT_MEMBER else "]"
        self.brackets()[want] += 1
        self.problems.add_unclosed(start, want, Edit(Span(end, end), want + separator))
        self.pop(end)

    def unclosed_at_end(self) -> None:
        """Report all brackets that are open at the end of the text, as one problem."""
        ends = [self.after, *(after for _, _, after, _ in reversed(self.stack[1:]))]
        closers = "".join("}" if after == NEXT_MEMBER else "]" for after in ends)
        nodes = [self.node, *(node for _, node, _, _ in reversed(self.stack[1:]))]
        # a comma at the very end is removed too, else closing would make it a trailing comma
        comma = self.state in (ITEM, KEY) and self.comma + 1 == self.last and self.text[self.comma] == ","
        at = self.comma if comma else self.last
        self.problems.add_unclosed_at_end([self.nodes[node][0] for node in nodes], closers, at, self.last)

    def lose_key(self) -> None:
        """The next value has no key: it is read, and left out of the object."""
        self.key, self.key_start, self.key_end = None, -1, -1

    def new_line(self, start: int) -> bool:
        """Whether the token at `start` is the first of its line."""
        return _LINE_END.search(self.text, self.gap, start) is not None

    def brackets(self) -> dict[str, int]:
        """How many more closing brackets of each kind the text has than opening ones; kept up to date."""
        if self.balance is None:
            self.balance = lexer.count_unopened(self.text)
        return self.balance
