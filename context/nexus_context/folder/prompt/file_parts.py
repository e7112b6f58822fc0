"""Finds what each heading and import of one file contributes to a prompt.

1. A heading's part extends from its line to the next heading of its level or above, including imports.
   Headings are lines that begin with `#`, outside of code and comments.
2. An import's part is the text of the imported file with that file's imports. The load recorded which words
   are imports: most words with an `@` are not.
3. Text of the file that is not in the prompt has no part.
4. A part's tokens are those of the file's own text, rounded down separately, and those of its imports, as in
   `token_attribution`: parts never sum to more than the heading or file that contains them.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from operator import mul
from typing import Literal

import msgspec

from nexus_context.errors import Span
from nexus_context.folder.prompt.blocks import blocks_of
from nexus_context.folder.prompt.gather import PromptContents
from nexus_context.folder.prompt.headings import find_headings
from nexus_context.folder.prompt.imports import Import
from nexus_context.folder.prompt.render import Prompt, places_of
from nexus_context.folder.prompt.texts import Piece, cut, trimmed, unix_lines
from nexus_context.folder.prompt.token_attribution import fragment_tokens, fragment_units
from nexus_context.tokens import TokenCounter, part_tokens, span_units


class Share(msgspec.Struct, frozen=True):
    """A heading or an import.

    `source` is its range in the file, `span` the range of its text in the prompt.
    """

    kind: Literal["heading", "import"]
    source: Span
    span: Span


class PlacedFile(msgspec.Struct, frozen=True):
    """Where one file stands in a prompt. `pieces` are those of the file and its imports.

    `starts` are the prompt's offsets where the pieces begin. `through` maps the path of each imported file to
    the import in this file that brings it.
    """

    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    through: dict[str, Span] = {}

    @property
    def end(self) -> int:
        """The offset behind the last piece."""
        return self.starts[-1] + len(self.pieces[-1].text)


def placed(
    prompt: Prompt, contents: PromptContents, path: str, file_texts: Mapping[str, str]
) -> PlacedFile | None:
    """Locate a file in a prompt that was rendered from these contents. None if the prompt does not have it.

    `file_texts` are the texts by path that the prompt was made of.
    """
    through = _through(contents.imports, path)
    for top, pieces in _files(contents):
        indexes = [
            at for at, piece in enumerate(pieces) if path in (top, piece.path) or piece.path in through
        ]
        if indexes:
            low, high = indexes[0], indexes[-1] + 1
            starts = _starts(prompt, pieces, file_texts)
            return None if starts is None else PlacedFile(tuple(pieces[low:high]), starts[low:high], through)
    return None


def alone(path: str, text: str, span: Span) -> tuple[Prompt, PlacedFile]:
    """Return a prompt that consists of the part `span` of one file, and where the file stands in it."""
    piece = cut(path, text, trimmed(text, span))
    return Prompt(piece.text, ()), PlacedFile((piece,), (0,))


def counted_shares(
    prompt: Prompt, where: PlacedFile, path: str, text: str, *, counter: TokenCounter, most: int
) -> list[tuple[Share, int]]:
    """Return the first shares of a file, at most `most`, each with its tokens.

    `text` is the text of the file.
    """
    parts = shares(where, path, text)[:most]
    units, imported = _sums(prompt, path, counter, {end for share in parts for end in share.span})
    return [
        (share, part_tokens(counter, units[end] - units[start]) + imported[end] - imported[start])
        for share in parts
        for start, end in (share.span,)
    ]


def shares(where: PlacedFile, path: str, text: str) -> list[Share]:
    """Return the parts of a prompt that the headings and imports of a file contribute.

    They are in the order of the file's text.
    """
    parts = [*_headings(where, path, text), *_imports(where)]
    return sorted(parts, key=lambda share: (share.source, share.kind))


def _sums(
    prompt: Prompt, path: str, counter: TokenCounter, positions: Collection[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Before each place of a prompt: units of the file's own text, and tokens of other files' text.

    A prompt without fragments is the file's own text.
    """
    cuts = sorted({0, len(prompt.text), *positions})
    fine = dict(zip(cuts, accumulate(_units(counter, prompt.text, tuple(cuts)), initial=0), strict=True))
    if not prompt.fragments:
        return fine, dict.fromkeys(cuts, 0)
    fragments, units = prompt.fragments, fragment_units(prompt, counter)
    is_own = [fragment.path == path for fragment in fragments]
    ends = [fragment.span.end for fragment in fragments]
    units_before = list(accumulate(units, initial=0))
    own_before = list(accumulate(map(mul, units, is_own), initial=0))
    tokens = zip(fragment_tokens(prompt, counter), is_own, strict=True)
    imported_before = list(
        accumulate((0 if file_units else count for count, file_units in tokens), initial=0)
    )
    file_units, imported = {}, {}
    for position in cuts:
        index = bisect_right(ends, position)  # the fragment that the cut is in
        inside = 0
        if index < len(fragments) and is_own[index]:
            inside = min(max(fine[position] - units_before[index], 0), units[index])
        file_units[position], imported[position] = own_before[index] + inside, imported_before[index]
    return file_units, imported


@lru_cache(maxsize=16)
def _units(counter: TokenCounter, text: str, cuts: tuple[int, ...]) -> tuple[int, ...]:
    """Cached: an editor asks repeatedly, mostly for unchanged texts."""
    return span_units(counter, text, cuts)


def _through(imports: Sequence[Import], path: str) -> dict[str, Span]:
    """The import in a file that brings each file beneath it; each has exactly one."""
    imports_by_path: dict[str, Span] = {}
    for file_import in imports:  # each follows that of its importing file
        if file_import.path == path:
            imports_by_path[file_import.target] = file_import.span
        elif file_import.path in imports_by_path:
            imports_by_path[file_import.target] = imports_by_path[file_import.path]
    return imports_by_path


def _starts(prompt: Prompt, pieces: Sequence[Piece], file_texts: Mapping[str, str]) -> tuple[int, ...] | None:
    """The prompt's offsets where consecutive pieces begin: one is searched for, the others follow from it."""
    lengths = accumulate((len(piece.text) for piece in pieces), initial=0)
    for piece, start in zip(pieces, (starts := list(lengths)), strict=False):
        if piece.verbatim and piece.path is not None:
            begin = next(places_of(prompt, piece.path, piece.source.start, file_texts), None)
            return (
                None if begin is None else tuple(begin - start + other_start for other_start in starts[:-1])
            )
    return None


def _files(contents: PromptContents) -> Iterator[tuple[str | None, Sequence[Piece]]]:
    """The pieces of each file that a layer or a section brings, including its imports.

    For files of agents above, imports are not recorded: all pieces belong to the yielded path.
    """
    for block in (*contents.bootstrap, *contents.blocks):
        yield None, block.pieces
    for block in blocks_of(contents.above):
        yield block.path, block.pieces
    for section in contents.sections:
        yield None, section.pieces


def _headings(where: PlacedFile, path: str, text: str) -> Iterator[Share]:
    offsets = _PromptOffsets(where, path, text)
    placed_headings = [
        (heading, offset)
        for heading in find_headings(text)
        if (offset := offsets.of(heading.mark)) is not None
    ]
    ends = [where.end] * len(placed_headings)
    open_ones: list[int] = []
    for at, (heading, offset) in enumerate(placed_headings):
        while open_ones and placed_headings[open_ones[-1]][0].level >= heading.level:
            ends[open_ones.pop()] = offset
        open_ones.append(at)
    for (heading, offset), end in zip(placed_headings, ends, strict=True):
        yield Share("heading", heading.line, Span(offset, end))


class _PromptOffsets:
    """Where in the prompt the characters of a file stand."""

    def __init__(self, where: PlacedFile, path: str, text: str) -> None:
        pairs = zip(where.pieces, where.starts, strict=True)
        self._own = [(piece.source, start) for piece, start in pairs if piece.path == path and piece.verbatim]
        self._text = text
        self._plain = "\r" not in text

    def of(self, offset: int) -> int | None:
        at = bisect_right(self._own, offset, key=lambda pair: pair[0].start) - 1
        if at < 0 or offset >= self._own[at][0].end:
            return None
        source, start = self._own[at]
        if self._plain:
            return start + offset - source.start
        return start + len(unix_lines(self._text[source.start : offset]))


def _imports(where: PlacedFile) -> Iterator[Share]:
    pairs = zip(where.pieces, where.starts, strict=True)
    for source, run in groupby(pairs, key=lambda pair: where.through.get(pair[0].path or "")):
        if source is not None:
            pieces = list(run)
            last_piece, begin = pieces[-1]
            yield Share("import", source, Span(pieces[0][1], begin + len(last_piece.text)))
