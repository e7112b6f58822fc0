"""Measures how much of a request the files of a prompt take. Excess is reported, never cut.

1. A file is too long from FILE_SHARE of that on, all files together from PROMPT_SHARE. The latter is
   reported at the longest file, and only if no single file is too long. An imported file counts separately.
2. The descriptions of all skills count as one more file, reported at the longest one. A skill's text is sent
   only when active: it is reported if it alone takes FILE_SHARE, and does not count towards the whole.
3. A request may take the window without the reserves. The window is `context.max_tokens`, else that of the
   configured model, else the usual one. Panel, code lenses and status bar count shares of the same figure.
4. Reported figures come from the model's own counter: "about" marks an estimate.
5. What cannot be too long is not counted, since a token has at least one byte. Without a vocabulary in
   memory, three letters of a lowercase word count as at most two tokens, so that files of usual length do not
   load one. Measured: 1.85 in words of the rarest letters, 1.6 of any letters, 0.7 in prose.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nexus_context.config.merge import Effective
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.layer_types import LayerSkill
from nexus_context.folder.prompt.blocks import Block, PromptSection
from nexus_context.folder.prompt.memo import TextMemo, TextSlice, whole
from nexus_context.folder.prompt.texts import text as sentence
from nexus_context.folder.skills import Skill
from nexus_context.tokens import SimpleTokenCounter, TokenCounter, counter_for, is_loaded
from nexus_context.tokens.models import get_model_limits
from nexus_context.tokens.vocabulary import VocabularyError

FILE_SHARE = 0.10
PROMPT_SHARE = 0.25

_WORDS = re.compile("[a-z]{3,}")


class OversizeReport(NamedTuple):
    """The warnings about texts that are too long.

    `waits_for` is an encoding that must be loaded to check everything, or None.
    """

    problems: tuple[Problem, ...]
    waits_for: str | None


def measure(
    effective: Effective,
    blocks: Iterable[Block | PromptSection],
    skills: Sequence[LayerSkill],
    *,
    read: Callable[[str], str],
    packaged: Collection[str],
    load: bool,
) -> OversizeReport:
    """Return a warning for each file that takes too much of a request, or for all of them together.

    `read` returns the text of a skill's file; no user can shorten the `packaged` paths. If `load`, a
    vocabulary that is needed and not in memory is loaded, which takes 0.1 to 0.3 s.
    """
    scale = _Scale(effective, load=load)
    files = _by_file(blocks, packaged)
    return OversizeReport((*_prompt(scale, files, skills), *_bodies(scale, skills, read)), scale.waits_for)


class _Amount(NamedTuple):
    """Too many tokens; `exact` if the model's own tokenizer counted them."""

    tokens: int
    exact: bool
    available: int

    def __str__(self) -> str:
        return f"{'' if self.exact else 'about '}{self.tokens:,} tokens"

    @property
    def share(self) -> str:
        return f"{self.tokens / self.available:.0%} of the {self.available:,} that a request may take"


class _Scale:
    """The limit of a request to the prompt's model, and its counter.

    `waits_for` is a vocabulary that was needed.
    """

    def __init__(self, effective: Effective, *, load: bool) -> None:
        name, overrides = effective.get("/provider/model"), effective.get("/models") or {}
        limits = get_model_limits(name, overrides)
        reserves = (effective.get(f"/context/{key}") for key in ("reserve_tokens", "reserve_tool_tokens"))
        max_tokens, reserved = effective.get("/context/max_tokens"), sum(reserve or 0 for reserve in reserves)
        # where nothing is left, the window: a share of nothing says nothing
        self.available = limits.available(max_tokens, reserved) or limits.limit(max_tokens)
        self.waits_for: str | None = None
        self._counter = counter_for(name, overrides)
        self._encoding, self._factor = limits.encoding, limits.family.factor
        self._load = load

    def too_much(self, texts: Collection[TextSlice], share: float) -> _Amount | None:
        """The tokens of some texts, if they are known to be that share or more."""
        least = self.available * share
        if sum(map(_length, texts)) * self._factor < least:
            return None
        if not is_loaded(self._encoding):
            if sum(_ceilings.of(text, token_ceiling) for text in texts) * self._factor < least:
                return None
            if not self._load:
                self.waits_for = self._encoding
                return None
        try:
            tokens, exact = sum(_count(self._counter, text) for text in texts), self._counter.exact
        except VocabularyError:  # a damaged installation must not prevent reading the folder
            tokens, exact = sum(_count(_BY_CHARACTERS, text) for text in texts), False
        return _Amount(tokens, exact, self.available) if tokens >= least else None


def _by_file(blocks: Iterable[Block | PromptSection], packaged: Collection[str]) -> dict[str, TextSlice]:
    """The text that each file contributes."""
    parts: dict[str, list[str]] = {}
    for block in blocks:
        for piece in block.pieces:
            if piece.path is not None and piece.path not in packaged:
                parts.setdefault(piece.path, []).append(piece.text)
    return {path: whole("".join(texts)) for path, texts in parts.items()}


def _prompt(scale: _Scale, files: Mapping[str, TextSlice], skills: Sequence[LayerSkill]) -> Iterator[Problem]:
    """The warnings about the files and the skills' descriptions, which are in every request."""
    is_reported = False
    for path, text in files.items():
        if amount := scale.too_much([text], FILE_SHARE):
            is_reported = True
            yield _problem(path, Span(0, 0), _FILE.format(os.path.basename(path), amount, amount.share))
    index = whole("\n".join(_row(layer_skill.skill) for layer_skill in skills))
    if amount := scale.too_much([index], FILE_SHARE):
        is_reported = True
        longest = max((layer_skill.skill for layer_skill in skills), key=lambda skill: len(skill.description))
        message = _INDEX.format(f"{len(skills):,}", amount, amount.share)
        yield _problem(longest.path, longest.description_span, message)
    if files and not is_reported and (amount := scale.too_much([*files.values(), index], PROMPT_SHARE)):
        sources = f"{len(files):,} files of the prompt"
        sources += f" and the descriptions of {len(skills):,} skills" if skills else ""
        longest_file = max(files, key=lambda path: len(files[path].text))
        yield _problem(longest_file, Span(0, 0), _ALL.format(sources, amount, amount.share))


def _bodies(scale: _Scale, skills: Sequence[LayerSkill], read: Callable[[str], str]) -> Iterator[Problem]:
    """The warnings about the skills' own texts."""
    for layer_skill in skills:
        skill = layer_skill.skill
        if amount := scale.too_much([TextSlice(read(skill.path), skill.body)], FILE_SHARE):
            message = _BODY.format(skill.name, amount, amount.share)
            yield _problem(skill.path, Span(skill.body.start, skill.body.start), message)


def _row(skill: Skill) -> str:
    return sentence("skill_row").format(name=skill.name, description=skill.description, path=skill.path)


def _length(text_slice: TextSlice) -> int:
    """The bytes of a part."""
    if text_slice.text.isascii():
        return text_slice.span.end - text_slice.span.start
    return _lengths.of(text_slice, byte_length)


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def token_ceiling(text: str) -> float:
    """Return more tokens than any vocabulary makes of a text."""
    return byte_length(text) - sum(map(len, _WORDS.findall(text))) / 3


def _count(counter: TokenCounter, text_slice: TextSlice) -> int:
    return _counts.of(text_slice, counter.count, counter)


_BY_CHARACTERS = SimpleTokenCounter()

_lengths = TextMemo[int]()
_ceilings = TextMemo[float]()
_counts = TextMemo[int]()


def _problem(path: str, span: Span, message: str) -> Problem:
    return Problem(path, span, "prompt.size", Severity.WARNING, message=message)


_FILE = (
    "{} takes {} of every request, {}. All of it is sent. Shorten it, or move what is not always needed into "
    "skills, which the model reads when it needs them."
)
_ALL = (
    "The {} take {} of every request, {}; this is the longest. All of it is sent. Shorten some, or move what "
    "is not always needed into skills, which the model reads when it needs them."
)
_INDEX = (
    "The descriptions of {} skills take {} of every request, {}; this is the longest. All of it is sent. "
    "Shorten them, or leave skills out: with skills.exclude, or all with skills.enabled: false."
)
_BODY = (
    "Activated, the skill {} takes {} of a request, {}. All of it is sent. Shorten it, or move parts of it "
    "into files beside it, which the model reads when it needs them."
)
