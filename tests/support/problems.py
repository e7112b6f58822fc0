"""Problems as rows for comparison, and the text after a fix."""

from collections.abc import Iterable

from nexus_context.errors import Fix, Problem

Row = tuple[str, str, str]


def rows(text: str, problems: Iterable[Problem]) -> list[Row]:
    """Code, text under the span and message of each problem."""
    return [(problem.code, text[slice(*problem.span)], problem.message) for problem in problems]


def fixed(text: str, fix: Fix | None) -> str | None:
    """The text with the edits of a fix applied, None where there is no fix."""
    if fix is None:
        return None
    for edit in sorted(fix.edits, key=lambda edit: edit.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text
