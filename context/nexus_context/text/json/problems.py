"""Collects the problems of one JSON file with messages and fixes, in text order and bounded in number.

Messages and titles of fixes are written to logs, and a value may be a secret: they never contain the text of
a value, and that of a key only if it is a plain name.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Problem, Related, Severity, Span

MOST_PROBLEMS = 200
"""Problems reported for one file; one more counts the rest."""

MOST_ERRORS = 10_000
"""Errors after which a file is not read on: it is not JSON."""

LONGEST_NUMBER = 4300
"""Digits of the longest integer that Python converts by default."""

NAME_EXPECTED = "Expecting property name enclosed in double quotes"
COMMA_EXPECTED = "Expecting ',' delimiter"
COLON_EXPECTED = "Expecting ':' delimiter"

_OPENERS = {"}": "{", "]": "["}
# Patterns are strings: re compiles and keeps them on first use, not at import.
_SURROGATE = "[\ud800-\udfff]"
_ESCAPED_SURROGATE = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff]"
)


class TokenProblem(NamedTuple):
    """An error inside a token. It does not know its file."""

    start: int
    end: int
    code: str
    message: str
    fix: Fix | None


def replace(title: str, start: int, end: int, text: str) -> Fix:
    """Return a fix of one edit."""
    return Fix(title, (Edit(Span(start, end), text),))


def printable(source: str, limit: int = 40) -> str:
    """Return source text as a message can quote it: short, on one line, without invisible characters."""
    text = source if len(source) <= limit else source[: limit - 1] + "…"
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)


def has_surrogate(text: str) -> bool:
    """Whether a text contains half of a surrogate pair."""
    return not text.isascii() and re.search(_SURROGATE, text) is not None


class Problems:
    """Collects the problems of one file. Those past the limit are only counted."""

    __slots__ = ("_extra", "_items", "_path", "_worst", "errors")

    def __init__(self, path: str) -> None:
        self._path = path
        self._items: list[Problem] = []
        self._extra = 0
        self._worst = Severity.HINT
        self.errors = 0

    @property
    def full(self) -> bool:
        """Whether further problems are only counted. There is no need then to work out a fix for them."""
        return len(self._items) >= MOST_PROBLEMS

    def add(
        self,
        start: int,
        end: int,
        code: str,
        message: str,
        *,
        fix: Fix | None = None,
        severity: Severity = Severity.ERROR,
        related: tuple[tuple[int, int, str], ...] = (),
    ) -> None:
        """Report one problem at `text[start:end]`. `related` are places as (start, end, message)."""
        self.errors += severity is Severity.ERROR
        if self.full:
            self._extra += 1
            self._worst = min(self._worst, severity)
            return
        places = tuple(Related(self._path, Span(a, b), message) for a, b, message in related)
        self._items.append(
            Problem(
                self._path,
                Span(start, end),
                f"json.{code}",
                severity,
                message=message,
                fix=fix,
                related=places,
            )
        )

    def add_all(self, problems: tuple[TokenProblem, ...]) -> None:
        """Report the errors inside a token."""
        for start, end, code, message, fix in problems:
            self.add(start, end, code, message, fix=fix)

    def add_removable(self, start: int, end: int, code: str, finding: str, *, fixable: bool = True) -> None:
        """Report something that should be removed."""
        fix = replace("Remove it", start, end, "") if fixable else None
        self.add(start, end, code, f"{finding}: remove it.", fix=fix)

    def add_trailing_comma(self, start: int, container: str) -> None:
        """Report a comma after the last member of an array or object."""
        fix = replace("Remove the comma", start, start + 1, "")
        message = f"Illegal trailing comma before end of {container}: remove it."
        self.add(start, start + 1, "trailing-comma", message, fix=fix)

    def add_missing_comma(self, start: int, end: int, at: int) -> None:
        """Report that a comma is missing before `text[start:end]`. It belongs at the offset `at`."""
        message = f"{COMMA_EXPECTED}: write a comma before this."
        self.add(start, end, "missing-comma", message, fix=replace("Insert a comma", at, at, ","))

    def add_not_a_comma(self, start: int, message: str) -> None:
        """Report another character in place of a comma."""
        fix = replace("Write a comma", start, start + 1, ",")
        self.add(start, start + 1, "missing-comma", f"{COMMA_EXPECTED}, {message}.", fix=fix)

    def add_not_a_colon(self, start: int, end: int, source: str) -> None:
        """Report other characters in place of a colon."""
        fix = replace("Write a colon", start, end, ":")
        self.add(start, end, "missing-colon", f"{COLON_EXPECTED}, not '{source}'.", fix=fix)

    def add_missing_colon(self, start: int, end: int, at: int) -> None:
        """Report that a colon is missing before a value. It belongs at the offset `at`."""
        message = f"{COLON_EXPECTED}: write a colon after the property name."
        self.add(start, end, "missing-colon", message, fix=replace("Insert a colon", at, at, ":"))

    def add_missing_member_value(self, start: int, end: int, *, colon: bool) -> None:
        """Report that a key has no value. If `colon` is true, its colon is missing, too."""
        if colon:
            message = f"{COLON_EXPECTED}: write a colon and a value after the property name."
            self.add(start, end, "missing-colon", message)
        else:
            self.add(start, end, "missing-value", "Expecting value: write one after the colon.")

    def add_missing_name(self, start: int, end: int, remedy: str) -> None:
        """Report that a key is missing."""
        self.add(start, end, "property-name", f"{NAME_EXPECTED}{remedy}")

    def add_duplicate_key(self, start: int, end: int, first_key: tuple[int, int]) -> None:
        """Warn that a key repeats an earlier one."""
        message = "This key is there already; the last one wins. Remove one of them."
        related = ((*first_key, "First here."),)
        self.add(start, end, "duplicate-key", message, severity=Severity.WARNING, related=related)

    def add_number_range(self, start: int, end: int, source: str) -> None:
        """Report a number that is infinite, or an integer that is too long."""
        message = "The number is out of range. Write one between -1.7e308 and 1.7e308."
        if len(source) > LONGEST_NUMBER and source.lstrip("-").isdigit():
            digits = f"The integer has {len(source):,} digits; at most {LONGEST_NUMBER:,} are read."
            message = f"{digits} Write a string."
        self.add(start, end, "number-range", message)

    def add_too_deep(self, start: int, end: int, deepest: int) -> None:
        """Report an opening bracket past the limit of depth."""
        message = f"Nested more than {deepest} levels deep: what follows is not read. Flatten the structure."
        self.add(start, end, "too-deep", message)

    def add_empty(self) -> None:
        """Report that there is nothing in the file."""
        fix = replace("Write an empty object", 0, 0, "{}")
        self.add(0, 0, "empty", "Expecting value: the file is empty. Write {}.", fix=fix)

    def add_mismatched_bracket(self, start: int, closer: str) -> None:
        """Report a closing bracket that should be of the other kind."""
        message = (
            f"Mismatched bracket: write '{closer}', as the bracket that is open is '{_OPENERS[closer]}'."
        )
        self.add(
            start, start + 1, "bracket", message, fix=replace(f"Write {closer}", start, start + 1, closer)
        )

    def add_unclosed(self, start: int, closer: str, edit: Edit) -> None:
        """Report an opening bracket that is never closed. `edit` closes it."""
        message = f"'{_OPENERS[closer]}' was never closed: write '{closer}'."
        self.add(start, start + 1, "unclosed", message, fix=Fix(f"Insert {closer}", (edit,)))

    def add_unclosed_at_end(self, openers: Sequence[int], closers: str, start: int, end: int) -> None:
        """Report the brackets that are open at the end, innermost first.

        `closers` replace the text from `start` to `end`.
        """
        innermost = openers[0]
        message = f"'{_OPENERS[closers[0]]}' was never closed: write '{printable(closers)}' at the end."
        related = tuple((opener, opener + 1, "This one is not closed either.") for opener in openers[1:4])
        fix = replace(f"Insert {printable(closers)}", start, end, closers)
        self.add(innermost, innermost + 1, "unclosed", message, fix=fix, related=related)

    def add_unescaped_quotes(self, start: int, end: int, quotes: Sequence[int]) -> None:
        """Report the quotes at these offsets, inside of what is meant as one string."""
        fix = Fix("Escape the quotes", tuple(Edit(Span(at, at), "\\") for at in quotes))
        message = "Unescaped double quotes inside a string: write a backslash before each."
        self.add(start, end, "unescaped-quote", message, fix=fix)

    def add_extra_data(self, start: int, end: int, *, fixable: bool) -> None:
        """Report text after the end of the value. It is `fixable` if removing it loses nothing."""
        message = "Extra data after the end of the value: remove it, or put all into one object."
        fix = replace("Remove it", start, end, "") if fixable else None
        self.add(start, end, "extra-data", message, fix=fix)

    def replace_surrogates(self, text: str, start: int, end: int, value: str) -> str:
        """Return the string `value` of `text[start:end]` with U+FFFD for each lone surrogate.

        Warns about each.
        """
        halves = re.compile(_ESCAPED_SURROGATE).finditer(text, start, end)
        for half in halves:
            if self.full:
                count = sum(len(other_half.group()) in (1, 6) for other_half in halves) + (
                    len(half.group()) in (1, 6)
                )
                self._extra += count
                if count:
                    self._worst = min(self._worst, Severity.WARNING)
                break
            source = half.group()
            if len(source) not in (1, 6):  # a pair, or another escape
                continue
            code = source[2:].upper() or f"{ord(source):X}"
            message = f"U+{code} is half of a surrogate pair: U+FFFD is read instead. Write the character."
            self.add(*half.span(), "lone-surrogate", message, severity=Severity.WARNING)
        return re.sub(_SURROGATE, "\ufffd", value)

    def result(self) -> tuple[Problem, ...]:
        """Return all problems by position, followed by one that counts the rest."""
        items = sorted(self._items, key=lambda problem: problem.span)
        if self._extra:
            count = f"{self._extra:,}" if self.errors < MOST_ERRORS else f"at least {self._extra:,}"
            message = f"And {count} more problems in this file. Fix the reported ones first."
            items.append(Problem(self._path, items[-1].span, "json.more", self._worst, message=message))
        return tuple(items)
