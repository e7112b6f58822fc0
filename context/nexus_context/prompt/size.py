"""How much of the model's window the files of a prompt take: what is too much is told, never cut.

1. One file is too long from FILE_SHARE of the window on, all files together from PROMPT_SHARE; the second is
   told only where no single file is, at the longest. What a file imports is a file of its own.
2. The window is `context.max_tokens`, else that of the configured model; the usual one where that is unknown.
3. Tokens are estimated, and only where there are enough characters for it: a folder with short files costs
   one look at their lengths.
"""

import functools
import os
from collections.abc import Collection, Iterable, Iterator

from nexus_context.config.merge import Effective
from nexus_context.errors import Problem, Severity, Span
from nexus_context.prompt.blocks import Block, Section
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.tokens.models import resolve

FILE_SHARE = 0.10
PROMPT_SHARE = 0.25
LEAST_CHARACTERS = 1.4  # of a token, by the estimate (1.5 in Chinese, Japanese and Korean)


def too_long(
    effective: Effective, blocks: Iterable[Block | Section], packaged: Collection[str]
) -> Iterator[Problem]:
    """A warning for each file that takes too much of the window, or for all of them together.

    `packaged` are paths that no user can shorten.
    """
    texts: dict[str, list[str]] = {}
    for block in blocks:
        for piece in block.pieces:
            if piece.path is not None and piece.path not in packaged:
                texts.setdefault(piece.path, []).append(piece.text)
    window = _window(effective)
    lengths = {path: sum(map(len, parts)) for path, parts in texts.items()}
    most = window * FILE_SHARE
    found = False
    for path, length in lengths.items():
        if length >= most * LEAST_CHARACTERS and (tokens := _estimate("".join(texts[path]))) >= most:
            found = True
            yield _file(path, tokens, window)
    if found or sum(lengths.values()) < window * PROMPT_SHARE * LEAST_CHARACTERS:
        return
    total = sum(_estimate("".join(parts)) for parts in texts.values())
    if total >= window * PROMPT_SHARE:
        yield _all(max(lengths, key=lengths.__getitem__), len(lengths), total, window)


def _window(effective: Effective) -> int:
    """Tokens."""
    limit = effective.get("/context/max_tokens")
    if isinstance(limit, int):
        return limit
    return resolve(effective.get("/provider/model"), effective.get("/models") or {}).context_window


@functools.lru_cache(maxsize=64)
def _estimate(text: str) -> int:
    """Remembered: all files but the one that is edited are the same on every keystroke."""
    return SimpleTokenCounter().count(text)


def _file(path: str, tokens: int, window: int) -> Problem:
    message = (
        f"{os.path.basename(path)} takes about {tokens:,} tokens of every request, {tokens / window:.0%} of "
        f"the window of {window:,}. All of it is sent. Shorten it, or move what is not always needed into "
        "skills, which the model reads when it needs them."
    )
    return Problem(path, Span(0, 0), "prompt.size", Severity.WARNING, message)


def _all(path: str, files: int, tokens: int, window: int) -> Problem:
    message = (
        f"The {files:,} files of the prompt take about {tokens:,} tokens of every request, "
        f"{tokens / window:.0%} of the window of {window:,}; this is the longest. All of it is sent. Shorten "
        "some, or move what is not always needed into skills, which the model reads when it needs them."
    )
    return Problem(path, Span(0, 0), "prompt.size", Severity.WARNING, message)
