"""Typing inside one string: the document of the next text, without reading that text.

1. The change lies between the quotes of one string that is a value, and which holds no escape.
2. What it brings and what it takes away is plain: letters, digits, blanks and a few signs that mean nothing
   outside strings either. So every token stays what it was, also where the text has errors.
3. That value is all that is different; what lies behind it has moved. What lies on it is not said here.
4. People type several characters in one place: where they typed last is looked at first.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from nexus_context.errors import Edit, Fix, Problem, Related, Span
from nexus_context.jsontext.document import JsonDocument
from nexus_context.jsontext.pointer import Pointer
from nexus_context.jsontext.reusable_spans import difference

LONGEST = 4_000
"""Characters of a text past which reading what the change touches is as quick."""

_PLAIN = re.compile(r"[\w .!?+-]*")


class Retyped(NamedTuple):
    """The next document, path and text of the string that is different, and the problems as they lie now."""

    document: JsonDocument
    pointer: Pointer
    text: str
    problems: tuple[Problem, ...]


def retyped(before: JsonDocument, text: str, problems: Iterable[Problem]) -> Retyped | None:
    """The document of a text that differs in one string's content, and these problems of the text before.

    The problems are those of the file, all of them. None where the change is another, where a problem lies on
    the string, and where the text is too long for this to pay.
    """
    if len(text) > LONGEST or before.value is None:
        return None
    place = _place(before, text)
    if place is None:
        return None
    pointer, span = place
    by = len(text) - len(before.text)
    shifted = _shifted(problems, span, by)
    own = _shifted(before.problems, span, by)
    if shifted is None or own is None:
        return None
    now = Span(span.start, span.end + by)
    typed = text[now.start + 1 : now.end - 1]
    value = _with(before.value, pointer, typed)
    return Retyped(before.retyped(text, value, own, (pointer, now)), pointer, typed, shifted)


def _place(before: JsonDocument, text: str) -> tuple[Pointer, Span] | None:
    """The string that was typed in; None where the change is no plain one inside a string."""
    known = before.typed
    if known is not None and _is_inside(before.text, text, known[1]):
        return known
    change = difference(before.text, text)
    pointer = before.path_at(change.start)
    try:
        span = before.span(pointer)
    except KeyError:
        return None
    source = before.text[span.start : span.end]
    if source[:1] != '"' or f'"{_value_at(before.value, pointer)}"' != source or "\\" in source:
        return None
    return (pointer, span) if _is_inside(before.text, text, span) else None


def _is_inside(old: str, new: str, span: Span) -> bool:
    """Whether the texts differ inside the string at `span` of the old one only, and there by plain signs."""
    start, end = span.start + 1, span.end - 1  # between the quotes
    behind = len(old) - end
    if len(new) - behind < start or new[:start] != old[:start] or not new.endswith(old[end:]):
        return False
    was, now = old[start:end], new[start : len(new) - behind]
    change = difference(was, now)
    return (
        _PLAIN.fullmatch(was, change.start, change.old_end) is not None
        and _PLAIN.fullmatch(now, change.start, change.new_end) is not None
    )


def _value_at(value: Any, pointer: Pointer) -> Any:
    for step in pointer:
        value = value.get(step) if isinstance(value, dict) else value[step]
    return value


def _with(value: Any, pointer: Pointer, text: str) -> Any:
    """The value with another text at a path; containers on the way are new ones, the others the same."""
    if not pointer:
        return text
    step, rest = pointer[0], pointer[1:]
    copy = value.copy()
    copy[step] = _with(value[step], rest, text)
    return copy


def _shifted(problems: Iterable[Problem], span: Span, by: int) -> tuple[Problem, ...] | None:
    """The problems of a text in which `span` grew by so many characters; None if one lies on it."""
    problems = tuple(problems)
    if any(_lies_on(one, span) for each in problems for one in _spans(each)):
        return None
    if by == 0:
        return problems
    return tuple(_moved(each, span.start, by) for each in problems)


def _lies_on(one: Span, span: Span) -> bool:
    return one.start < span.end and span.start < one.end


def _spans(problem: Problem) -> Iterator[Span]:
    yield problem.span
    for edit in problem.fix.edits if problem.fix else ():
        yield edit.span
    for related in problem.related:
        if related.path == problem.path:
            yield related.span


def _moved(problem: Problem, start: int, by: int) -> Problem:
    fix, related = problem.fix, problem.related
    if all(each.start <= start for each in _spans(problem)):
        return problem
    if fix is not None:
        fix = Fix(fix.title, tuple(Edit(_further(edit.span, start, by), edit.text) for edit in fix.edits))
    if related:
        related = tuple(_moved_related(each, problem.path, start, by) for each in related)
    return msgspec.structs.replace(problem, span=_further(problem.span, start, by), fix=fix, related=related)


def _moved_related(related: Related, path: str, start: int, by: int) -> Related:
    if related.path != path:
        return related
    return Related(path, _further(related.span, start, by), related.message)


def _further(span: Span, start: int, by: int) -> Span:
    return span if span.start <= start else Span(span.start + by, span.end + by)
