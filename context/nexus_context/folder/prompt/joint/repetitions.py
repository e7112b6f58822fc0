"""Finds sentences that occur twice in files that are sent together.

1. A repetition is a sentence that an earlier place has, too, in the same file or in another one. White space,
   case, emphasis and the punctuation at the ends of words make no difference.
2. It counts if its prose, without code and quoted words, has LEAST_CHARACTERS and LEAST_WORDS, and if it
   makes sense alone: "This method fails then" belongs to what stands before it.
3. A run of sentences that repeats another run is one problem, at its first sentence, which is one that
   counts. All runs that two files share are one problem if they are LEAST_OF_COPY or more.
4. What two sections or directories say each of their own is no repetition: within a file, sections of equal
   scope whose titles are not made alike count; else only a run of LEAST_ELSEWHERE characters.
5. Each sentence is looked up once: the work is linear. At most MOST_PROBLEMS are told.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from nexus_context.errors import Edit, Fix, Problem, Related, Severity, Span
from nexus_context.folder.prompt.joint.scopes import AREAS, are_parallel, sections_of
from nexus_context.folder.prompt.joint.statements import (
    MOST_SENTENCES,
    Statement,
    plain,
    prose,
    read_statements,
)
from nexus_context.folder.prompt.joint.texts import JointText, LineNumbers
from nexus_context.tokens import SimpleTokenCounter

DUPLICATE = "instructions.duplicate"
LEAST_CHARACTERS = 40
LEAST_WORDS = 6
LEAST_IDEOGRAPHS = 20
"""Characters of a sentence in a script that writes no blanks between words, in place of LEAST_CHARACTERS."""
LEAST_ELSEWHERE = 150
LEAST_OF_COPY = 3
MOST_PROBLEMS = 50
_MOST_RELATED = 10

_DEPENDENT = (
    r"^(?:this|it|its|these|they|that|those|such|both|he|she|also|same|see|here|each|either|neither|otherwise"
    r"|then|as above|in this case)\b"
    r"|\bthis (?:file|directory|folder|package|module|document|section|skill|layer|service|component|step"
    r"|method|command|rule|page|table)\b"
)
"""What a sentence says of something that stands beside it."""
_DEFINITION = r"\S+ ?(?:\([^)]*\))?:\s"
_CODE = r"[{};=<>|]\S*[\s\S]*[{};=<>|]|^[\w.]+\(|^[$>] "
_IDEOGRAPHS = "[\u3040-\u9fff\uac00-\ud7a3]"
_LETTERS = r"[^\W\d_]|<!--|```"
_LINE_END = r"\r\n|\r|\n|\Z"

_Sentence = tuple[JointText, Statement]


class _Run(NamedTuple):
    """Numbers of the first and last sentence of a run, and of the first one that it repeats."""

    first: int
    last: int
    original: int

    @property
    def length(self) -> int:
        """The number of its sentences."""
        return self.last - self.first + 1


def find_repetitions(files: Sequence[JointText]) -> Iterator[Problem]:
    """Return the problems of files, which are in the order of their importance.

    Each path may be there once.
    """
    sentences = [
        (file, statement)
        for file in files
        for statement in read_statements(file.text)
        if file.sends(statement.span)
    ]
    by_files: dict[tuple[str, str], list[_Run]] = {}
    for run in _runs(sentences):
        if _counts(sentences, run):
            paths = (sentences[run.first][0].path, sentences[run.original][0].path)
            by_files.setdefault(paths, []).append(run)
    return islice(_problems(sentences, by_files), MOST_PROBLEMS)


def _problems(
    sentences: Sequence[_Sentence], by_files: dict[tuple[str, str], list[_Run]]
) -> Iterator[Problem]:
    lines = LineNumbers()
    for (path, original_path), runs in by_files.items():
        if path != original_path and len(runs) >= LEAST_OF_COPY:
            yield _copy(sentences, runs, lines)
        else:
            yield from (_repetition(sentences, run, lines) for run in runs)


def _runs(sentences: Sequence[_Sentence]) -> Iterator[_Run]:
    first_numbers: dict[str, int] = {}
    run: _Run | None = None
    for number, (file, statement) in enumerate(sentences):
        if run is not None:
            if _continues(sentences, run, number):
                run = run._replace(last=number)
                continue
            yield run
        earlier = first_numbers.setdefault(statement.key, number)
        if earlier != number and _begins_run(file.text[statement.span.start : statement.span.end]):
            run = _Run(number, number, earlier)
        else:
            run = None
    if run is not None:
        yield run


def _continues(sentences: Sequence[_Sentence], run: _Run, number: int) -> bool:
    """Whether the next sentence repeats the next one of the run's original."""
    original = run.original + run.length
    file, statement = sentences[number]
    original_file, original_statement = sentences[original]
    return (
        original < run.first
        and file is sentences[run.first][0]
        and original_file is sentences[run.original][0]
        and statement.key == original_statement.key
    )


@lru_cache(maxsize=MOST_SENTENCES)
def _begins_run(source: str) -> bool:
    """Whether a sentence is long enough, and makes sense alone."""
    text = plain(source)
    return (
        _has_prose(prose(source), LEAST_CHARACTERS)
        and not text.endswith(":")
        and not _pattern(_CODE).search(text)
        and not _pattern(_DEFINITION).match(text)
        and not _pattern(_DEPENDENT).search(text.casefold())
    )


def _has_prose(words: str, least_characters: int) -> bool:
    if len(words) >= least_characters and words.count(" ") + 1 >= LEAST_WORDS:
        return True
    ideographs = 0 if words.isascii() else len(_pattern(_IDEOGRAPHS).findall(words))
    return ideographs * LEAST_CHARACTERS >= LEAST_IDEOGRAPHS * least_characters


def _counts(sentences: Sequence[_Sentence], run: _Run) -> bool:
    """Whether a repetition is none that two sections, or two directories, need each (rule 4)."""
    file, first_statement = sentences[run.first]
    original_file, original = sentences[run.original]
    is_same_file = file is original_file
    if is_same_file and run.length == 1 and not (first_statement.begins and original.begins):
        return False
    if not is_same_file and file.directory == original_file.directory:
        return True
    sections, other_sections = sections_of(first_statement), sections_of(original)
    if is_same_file and sections == other_sections and not are_parallel(first_statement, original):
        return True
    if (sections ^ other_sections) & AREAS:
        return False
    sources = (
        file.text[statement.span.start : statement.span.end]
        for _, statement in sentences[run.first : run.last + 1]
    )
    return _has_prose(" ".join(map(prose, sources)), LEAST_ELSEWHERE)


def _repetition(sentences: Sequence[_Sentence], run: _Run, lines: LineNumbers) -> Problem:
    file, _ = sentences[run.first]
    original_file, original = sentences[run.original]
    location = lines.describe(original_file, original.span, file)
    if run.length == 1:
        finding = f"This sentence is in {location}, too"
    else:
        end = lines.number(file, sentences[run.last][1].span.end)
        finding = f"The {run.length} sentences from here to line {end} are in {location} and below, too"
    fix = _removal(sentences, run) if file is original_file else None
    return _duplicate(sentences, [run], finding, fix=fix)


def _copy(sentences: Sequence[_Sentence], runs: Sequence[_Run], lines: LineNumbers) -> Problem:
    """One problem for two files that are alike in many places."""
    file, _ = sentences[runs[0].first]
    original_file, original = sentences[runs[0].original]
    count = sum(run.length for run in runs)
    location = lines.describe(original_file, original.span, file)
    finding = (
        f"{count} sentences of this file in {len(runs)} places, of which this is the first, "
        f"are in {location} "
    )
    other_spans = (sentences[run.first][1].span for run in runs[1:_MOST_RELATED])
    related = tuple(Related(file.path, span, "These sentences are there, too.") for span in other_spans)
    return _duplicate(sentences, runs, f"{finding}and below, too", related=related)


def _duplicate(
    sentences: Sequence[_Sentence],
    runs: Sequence[_Run],
    finding: str,
    *,
    related: tuple[Related, ...] = (),
    fix: Fix | None = None,
) -> Problem:
    file, first_statement = sentences[runs[0].first]
    original_file, original = sentences[runs[0].original]
    counter = SimpleTokenCounter()  # equal for each program that sends both files
    tokens = sum(
        counter.count(file.text[statement.span.start : statement.span.end])
        for run in runs
        for _, statement in sentences[run.first : run.last + 1]
    )
    return Problem(
        file.path,
        first_statement.span,
        DUPLICATE,
        Severity.INFORMATION,
        message=(
            f"{finding}. Both are sent: about {tokens:,} tokens more in each request. Remove one of them."
        ),
        fix=fix,
        related=(Related(original_file.path, original.span, "It is here, too."), *related),
    )


def _removal(sentences: Sequence[_Sentence], run: _Run) -> Fix | None:
    """Removes the lines of a run, if they are whole paragraphs or list items with nothing between them."""
    file, first_statement = sentences[run.first]
    _, last_statement = sentences[run.last]
    next_statement = sentences[run.last + 1][1] if run.last + 1 < len(sentences) else None
    has_nested = next_statement is not None and len(next_statement.leads) > len(last_statement.leads)
    if not first_statement.begins or last_statement.span.end != last_statement.block.end or has_nested:
        return None
    position = first_statement.block.start
    for _, statement in sentences[run.first : run.last + 1]:
        if _pattern(_LETTERS).search(file.text, position, statement.span.start):
            return None
        position = statement.span.end
    line_end = _pattern(_LINE_END).search(file.text, position)
    end = position if line_end is None else line_end.end()
    if _pattern(r"\S").search(file.text, position, end):
        return None  # emphasis that is closed behind the sentence, or a comment
    title = "Remove the repeated sentence" if run.length == 1 else "Remove the repeated sentences"
    return Fix(title, (Edit(Span(first_statement.block.start, end), ""),))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: a folder without instructions needs none."""
    return re.compile(pattern)
