"""Where in a prompt the headings and imports of one file stand: what each of them brings.

1. A heading's part goes from its line to the next heading of its level or above, with what is imported there.
   Headings are lines that begin with `#`, outside of code and comments.
2. An import's part is the text of the file that it brings, with what that imports.
3. What of the file is not in the prompt has no part.
4. Tokens are differences of cumulative counts of the whole prompt, as for its fragments.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal

import msgspec

from nexus_context.errors import Span
from nexus_context.prompt.blocks import blocks_of
from nexus_context.prompt.contents import Contents
from nexus_context.prompt.imports import import_tokens
from nexus_context.prompt.markdown import code_ranges
from nexus_context.prompt.render import Prompt, places_of
from nexus_context.prompt.texts import Piece, cut, trimmed, unix_lines
from nexus_context.tokens import TokenCounter, count_spans

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?=[ \t]|$)[^\r\n]*", re.MULTILINE)


class Share(msgspec.Struct, frozen=True):
    """A heading or an import: `source` is its place in the file, `span` what it brings in the prompt."""

    kind: Literal["heading", "import"]
    source: Span
    span: Span


class Placed(msgspec.Struct, frozen=True):
    """The pieces of one file and its imports, in a row, and the prompt's offsets of their beginnings."""

    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]

    @property
    def end(self) -> int:
        """The offset behind the last piece."""
        return self.starts[-1] + len(self.pieces[-1].text)


def placed(prompt: Prompt, contents: Contents, path: str, file_texts: Mapping[str, str]) -> Placed | None:
    """Where a file stands in a prompt that was rendered from these contents; None where it does not.

    `file_texts` are the texts by path that the prompt was made of.
    """
    for top, pieces in _files(contents):
        low, high = 0, len(pieces)
        if path != top:  # it may be imported: up to where the text of one that imports it goes on
            low = next((at for at, one in enumerate(pieces) if one.path == path and one.verbatim), high)
            above = {one.path for one in pieces[:low]}
            high = next((at for at in range(low, high) if pieces[at].path in above), high)
        if low < high:
            starts = _starts(prompt, pieces, file_texts)
            return None if starts is None else Placed(tuple(pieces[low:high]), starts[low:high])
    return None


def alone(path: str, text: str, span: Span) -> tuple[Prompt, Placed]:
    """A prompt that is nothing but a part of a file."""
    piece = cut(path, text, trimmed(text, span))
    return Prompt(piece.text, ()), Placed((piece,), (0,))


def counted_shares(
    prompt: Prompt, where: Placed, path: str, text: str, counter: TokenCounter, *, most: int
) -> list[tuple[Share, int]]:
    """The first shares of a file of that text, each with the tokens of what it brings."""
    found = shares(where, path, text)[:most]
    cuts = sorted({0, len(prompt.text), *(end for share in found for end in share.span)})
    sums = dict(zip(cuts, accumulate(_tokens(counter, prompt.text, tuple(cuts)), initial=0), strict=True))
    return [(share, sums[share.span.end] - sums[share.span.start]) for share in found]


def shares(where: Placed, path: str, text: str) -> list[Share]:
    """What the headings and imports of a file of that text bring, in the order of the text."""
    found = [*_headings(where, path, text), *_imports(where, path, text)]
    return sorted(found, key=lambda share: (share.source, share.kind))


@lru_cache(maxsize=16)
def _tokens(counter: TokenCounter, text: str, cuts: tuple[int, ...]) -> tuple[int, ...]:
    """Remembered: an editor asks again and again, mostly for texts that have not changed."""
    return count_spans(counter, text, cuts)


def _starts(prompt: Prompt, pieces: Sequence[Piece], file_texts: Mapping[str, str]) -> tuple[int, ...] | None:
    """The prompt's offsets where pieces in a row begin: one is looked for, the others follow from it."""
    lengths = accumulate((len(one.text) for one in pieces), initial=0)
    for piece, start in zip(pieces, (starts := list(lengths)), strict=False):
        if piece.verbatim and piece.path is not None:
            begin = next(places_of(prompt, piece.path, piece.source.start, file_texts), None)
            return None if begin is None else tuple(begin - start + one for one in starts[:-1])
    return None


def _files(contents: Contents) -> Iterator[tuple[str | None, Sequence[Piece]]]:
    """Each file that a layer or a section brings, with its pieces and those of what it imports."""
    for block in (*contents.bootstrap, *contents.blocks, *blocks_of(contents.above)):
        yield block.path, block.pieces
    for section in contents.sections:
        yield section.pieces[0].path, section.pieces


def _headings(where: Placed, path: str, text: str) -> Iterator[Share]:
    found: list[tuple[int, Span, int]] = []  # level, heading, place in the prompt
    places = _Places(where, path, text)
    for match in _outside_code(text):
        place = places.of(match.start(1))
        if place is not None:
            found.append((len(match[1]), Span(*match.span()), place))
    ends = [where.end] * len(found)
    open_ones: list[int] = []
    for at, (level, _, place) in enumerate(found):
        while open_ones and found[open_ones[-1]][0] >= level:
            ends[open_ones.pop()] = place
        open_ones.append(at)
    for (_, heading, place), end in zip(found, ends, strict=True):
        yield Share("heading", heading, Span(place, end))


def _outside_code(text: str) -> Iterator[re.Match[str]]:
    """Headings."""
    code = code_ranges(text)
    index = 0
    for match in _HEADING.finditer(text):
        while index < len(code) and code[index].end <= match.start():
            index += 1
        if index == len(code) or code[index].start > match.start():
            yield match


class _Places:
    """Where in the prompt the characters of a file stand."""

    def __init__(self, where: Placed, path: str, text: str) -> None:
        pairs = zip(where.pieces, where.starts, strict=True)
        self._own = [(one.source, start) for one, start in pairs if one.path == path and one.verbatim]
        self._text = text
        self._plain = "\r" not in text

    def of(self, offset: int) -> int | None:
        at = bisect_right(self._own, offset, key=lambda one: one[0].start) - 1
        if at < 0 or offset >= self._own[at][0].end:
            return None
        source, start = self._own[at]
        if self._plain:
            return start + offset - source.start
        return start + len(unix_lines(self._text[source.start : offset]))


def _imports(where: Placed, path: str, text: str) -> Iterator[Share]:
    tokens = list(import_tokens(text))
    for behind, span in _runs(where, path, text):
        for at, token in enumerate(tokens):
            # a token alone on its line is replaced, so its file follows what stands before it; else the
            # file follows its line, and that of the first token there comes first
            on_line = token.span.end <= behind and "\n" not in unix_lines(text[token.span.end : behind])
            if token.span.start == behind or on_line:
                yield Share("import", token.span, span)
                del tokens[: at + 1]
                break


def _runs(where: Placed, path: str, text: str) -> Iterator[tuple[int, Span]]:
    """Runs of pieces of other files: up to where this file's text was written before, and their place."""
    behind = trimmed(text, Span(0, len(text))).start
    begin: int | None = None
    for piece, start in zip(where.pieces, where.starts, strict=True):
        if piece.path == path:
            if begin is not None:
                yield behind, Span(begin, start)
                begin = None
            behind = piece.source.end
        elif begin is None:
            begin = start
    if begin is not None:
        yield behind, Span(begin, where.end)
