"""Removes problems that the user has silenced, by the setting `check.ignore` or by a comment in the file.

1. `check.ignore` lists codes or patterns of codes, such as `assistant.unread` and `skill.*`. A colon and
   globs of paths may follow: `assistant.import:vendor/**`. Paths are those below the folder.
2. A comment `nexus: ignore CODE` silences codes in its line and in the next one, `nexus: ignore-file CODE` in
   the whole file. It begins with `#`, `//`, `/*` or `<!--`; commas or blanks separate codes.
3. A bug of Nexus (`internal`) is never silenced.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nexus_context.config.globs import Globs, GlobsError
from nexus_context.config.patterns import Patterns
from nexus_context.errors import Problem
from nexus_context.text.lines import LineIndex

SETTING = "/check/ignore"
MARK = "nexus: ignore"
BUG = "internal"
# a pattern is a string: re compiles and keeps it on first use, not at import
_COMMENT = r"(?:#|//|/\*|<!--)[ \t]*nexus: ignore(-file)?[ \t]+([a-z][\w.*, \t-]*)"
_CODE = r"[a-z]+\.[a-z*][a-z*-]*(?<!-)"


class Heard(NamedTuple):
    """The problems that the user is told, and those that are silenced."""

    problems: tuple[Problem, ...]
    silenced: tuple[Problem, ...]


def without_silenced(
    problems: Sequence[Problem], texts: Mapping[str, str], ignore: Sequence[str], folder: str
) -> Heard:
    """Separate the problems that `check.ignore` or a comment silences from all others.

    `texts` maps paths to the texts of their files. `ignore` is the value of the setting.
    """
    rules = list(_rules(ignore))
    comments: dict[str, _Comments] = {}
    heard, silenced = [], []
    for problem in problems:
        text = texts.get(problem.path, "")
        if problem.path not in comments:
            comments[problem.path] = _Comments(text)
        if problem.code == BUG or not (
            _is_ignored(problem, rules, folder) or comments[problem.path].silence(problem)
        ):
            heard.append(problem)
        else:
            silenced.append(problem)
    return Heard(tuple(heard), tuple(silenced))


def _rules(ignore: Iterable[str]) -> Iterator[tuple[Patterns, Globs | None]]:
    for entry in ignore:
        code, colon, paths = entry.partition(":")
        try:
            yield Patterns([code]), Globs(paths, has_case=True) if colon else None
        except GlobsError:  # as one that matches nothing
            continue


def _is_ignored(problem: Problem, rules: Sequence[tuple[Patterns, Globs | None]], folder: str) -> bool:
    if not rules:
        return False
    path = problem.path.removeprefix(folder.rstrip(os.sep)).replace(os.sep, "/")
    return any(
        codes.matches(problem.code) and (globs is None or globs.matches(path)) for codes, globs in rules
    )


class _Comments:
    """The codes in comments of a text: those for the file, and those for a line."""

    def __init__(self, text: str) -> None:
        self._index = LineIndex(text) if MARK in text else None
        self._of_file: list[str] = []
        self._of_lines: dict[int, list[str]] = {}
        for comment in re.finditer(_COMMENT, text) if self._index is not None else ():
            codes = re.findall(_CODE, comment[2])
            if comment[1]:
                self._of_file += codes
                continue
            line = self._index.position(comment.start())[0] if self._index is not None else 0
            for number in (line, line + 1):
                self._of_lines.setdefault(number, []).extend(codes)

    def silence(self, problem: Problem) -> bool:
        """Whether a comment silences a problem."""
        if self._index is None:
            return False
        line = self._index.position(problem.span.start)[0]
        return Patterns([*self._of_file, *self._of_lines.get(line, ())]).matches(problem.code)
