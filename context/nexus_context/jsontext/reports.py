"""What a broken JSON text is told, and the state of the object or array that follows from each report."""

import re

from nexus_context.jsontext.runs import Runs
from nexus_context.jsontext.scanner import COLON, ITEM, KEY, NEXT_MEMBER, ROOT, VALUE, Scanner
from nexus_context.jsontext.strings import Complaint, replace, shown

NAME_WANTED = "Expecting property name enclosed in double quotes"
COMMA_WANTED = "Expecting ',' delimiter"
COLON_WANTED = "Expecting ':' delimiter"

_LINE_END = re.compile(r"[\r\n]")
_NO_BRACKETS = re.compile(r'"(?:[^"\\\r\n]*+\\.){0,500}[^"\\\r\n]*+"?|//[^\r\n]*+')


class Reporter(Scanner):
    """Reports and their consequences; when each is due, `recovery` decides."""

    __slots__ = ("balance", "comments_end")

    def __init__(self, path: str, text: str, runs: Runs | None) -> None:
        super().__init__(path, text, runs)
        self.balance: dict[str, int] | None = None  # see brackets()
        self.comments_end: int | None = None

    def unfinished(self, start: int, end: int) -> None:
        if self.state in (ITEM, KEY) and self.text[self.comma] == ",":
            what = "array" if self.state == ITEM else "object"
            fix = replace("Remove the comma", self.comma, self.comma + 1, "")
            message = f"Illegal trailing comma before end of {what}: remove it."
            self.problems.add(self.comma, self.comma + 1, "trailing-comma", message, fix=fix)
        elif self.state == VALUE:
            self.missing_value(start, end)
            self.placeholder(start)
        elif self.state == COLON:
            self.missing_colon_and_value(start, end)
            self.placeholder(start)
        self.state = self.after

    def missing_comma(self, start: int, end: int) -> None:
        fix = replace("Insert a comma", self.last, self.last, ",")
        message = f"{COMMA_WANTED}: write a comma before this."
        self.problems.add(start, end, "missing-comma", message, fix=fix)

    def missing_value(self, start: int, end: int) -> None:
        self.problems.add(start, end, "missing-value", "Expecting value: write one after the colon.")

    def missing_colon_and_value(self, start: int, end: int) -> None:
        message = f"{COLON_WANTED}: write a colon and a value after the property name."
        self.problems.add(start, end, "missing-colon", message)

    def not_a_colon(self, start: int, end: int) -> None:
        source = self.text[start:end]
        fix = replace("Write a colon", start, end, ":")
        self.problems.add(start, end, "missing-colon", f"{COLON_WANTED}, not '{source}'.", fix=fix)

    def remove(self, start: int, end: int, code: str, what: str) -> None:
        """Report something whose removal is the mend, if that leaves anything."""
        fix = None if self.state == ROOT else replace("Remove it", start, end, "")
        self.problems.add(start, end, code, f"{what}: remove it.", fix=fix)

    def complain(self, complaints: tuple[Complaint, ...]) -> None:
        for start, end, code, message, fix in complaints:
            self.problems.add(start, end, code, message, fix=fix)

    def unclosed(self, end: int, *, separator: str = "") -> None:
        """Close the innermost bracket, which was never closed, at `end`."""
        start = self.nodes[self.node][0]
        want = "}" if self.after == NEXT_MEMBER else "]"
        self.brackets()[want] += 1
        fix = replace(f"Insert {want}", end, end, want + separator)
        message = f"'{self.text[start]}' was never closed: write '{want}'."
        self.problems.add(start, start + 1, "unclosed", message, fix=fix)
        self.pop(end)

    def unclosed_at_end(self) -> None:
        """Report all brackets that are open at the end of the text, as one problem."""
        ends = [self.after, *(after for _, _, after, _ in reversed(self.stack[1:]))]
        closers = "".join("}" if after == NEXT_MEMBER else "]" for after in ends)
        openers = [
            self.nodes[self.node][0],
            *(self.nodes[node][0] for _, node, _, _ in reversed(self.stack[1:])),
        ]
        # a comma at the very end goes as well, else closing would make it a trailing comma
        comma = self.state in (ITEM, KEY) and self.comma + 1 == self.last and self.text[self.comma] == ","
        at = self.comma if comma else self.last
        fix = replace(f"Insert {shown(closers)}", at, self.last, closers)
        start = openers[0]
        message = f"'{self.text[start]}' was never closed: write '{shown(closers)}' at the end."
        related = tuple((each, each + 1, "This one is not closed either.") for each in openers[1:4])
        self.problems.add(start, start + 1, "unclosed", message, fix=fix, related=related)

    def lose_key(self) -> None:
        """The value to come has no key: it is read, and left out of the object."""
        self.key = None
        self.key_start = self.key_end = -1

    def placeholder(self, start: int) -> None:
        """A node for the value that a key lacks, at the next token or the line's end if that is sooner."""
        found = _LINE_END.search(self.text, self.gap, start)
        at = found.start() if found else start
        self.nodes.append((at, at, self.node, self.key, self.key_start, self.key_end))

    def new_line(self, start: int) -> bool:
        """Whether the token at `start` is the first of its line."""
        return _LINE_END.search(self.text, self.gap, start) is not None

    def brackets(self) -> dict[str, int]:
        """How many more closing brackets of each kind the text has than opening ones; kept up to date."""
        if self.balance is None:
            rest = _NO_BRACKETS.sub("", self.text)
            self.balance = {
                "}": rest.count("}") - rest.count("{"),
                "]": rest.count("]") - rest.count("["),
            }
        return self.balance
