"""The list of problems of one JSON file: in the order of the text, and of bounded length."""

from nexus_context.errors import Fix, Problem, Related, Severity, Span

MOST_PROBLEMS = 200
"""Problems reported of one file; one more says how many there are beside."""

MOST_ERRORS = 10_000
"""Errors after which a file is not read on: it is no JSON."""


class Problems:
    """Collects the problems of one file; what is past the cap is only counted."""

    __slots__ = ("_extra", "_items", "_path", "_worst", "errors")

    def __init__(self, path: str) -> None:
        self._path = path
        self._items: list[Problem] = []
        self._extra = 0
        self._worst = Severity.HINT
        self.errors = 0

    @property
    def full(self) -> bool:
        """Whether further problems are only counted; no need to work out a fix for them."""
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
        """Report one problem at `text[start:end]`; `related` are places (start, end, message)."""
        self.errors += severity is Severity.ERROR
        if self.full:
            self._extra += 1
            self._worst = min(self._worst, severity)
            return
        places = tuple(Related(self._path, Span(a, b), why) for a, b, why in related)
        self._items.append(
            Problem(self._path, Span(start, end), f"json.{code}", severity, message, fix, places)
        )

    def count_warnings(self, count: int) -> None:
        """Count warnings that are past the cap."""
        self._extra += count
        if count:
            self._worst = min(self._worst, Severity.WARNING)

    def result(self) -> tuple[Problem, ...]:
        """All problems by position, and at the end the one that counts the rest."""
        items = sorted(self._items, key=lambda problem: problem.span)
        if self._extra:
            beside = f"{self._extra:,}" if self.errors < MOST_ERRORS else f"at least {self._extra:,}"
            message = f"And {beside} more problems in this file. Mend those shown first."
            items.append(Problem(self._path, items[-1].span, "json.more", self._worst, message))
        return tuple(items)
