"""Computes what a window consists of: the provider's figures, shared among texts by their length.

1. The provider counts each request as a whole. What a request sent beyond the one before is what came between
   them, so that this growth is shared among those texts by their estimated tokens. An answer has the
   provider's own figure.
2. A growth of less than half or more than twice the estimate has another reason, such as an edited context or
   texts that are not in the transcript. Then the estimates are taken, and the rest belongs to `system`.
3. In the first request, and in the first after a compaction, `system` is what the texts do not explain. Later
   it is never more than that, because what the texts do not explain then is not in the transcript.
4. If the texts take more than the whole request, they are scaled down. The parts always sum to the provider's
   figure.
5. `system` is divided into the program's prompt and its tools where their texts are in the transcript.
"""

from collections.abc import Iterable, Mapping, Sequence

from nexus_context.assistants.sessions.report import WindowPart
from nexus_context.assistants.sessions.steps import Category, Definitions
from nexus_context.tokens.estimates import UNITS_PER_TOKEN, text_units

LEAST_GROWTH, MOST_GROWTH = 0.5, 2.0  # the window's growth, as a multiple of the estimate, that is believed
CATEGORIES: tuple[Category, ...] = Category.__args__  # type: ignore[attr-defined]

Part = tuple[Category, str, str | None]
"""Category, label, server."""
SYSTEM: Part = ("system", "", None)
EARLIER: Part = ("earlier", "", None)
UNRECORDED: Part = ("earlier", "not in the transcript", None)


class WindowParts:
    """Keeps the parts of one conversation's window, in tokens."""

    def __init__(self) -> None:
        self.tokens: dict[Part, float] = {}
        """Of the last request."""
        self.sent = 0
        """Of the last request, by the provider; 0 before the first one and after a compaction."""
        self.is_partial = False
        """Whether the beginning of the conversation was not read."""
        self._pending: dict[Part, float] = {}  # estimates of what the next request adds
        self._most_system: float | None = None  # what `system` was in the first request

    def add(self, part: Part, tokens: float) -> None:
        """Add a text that the next request sends, by its part and estimated tokens."""
        if tokens > 0:
            self._pending[part] = self._pending.get(part, 0.0) + tokens

    @property
    def pending(self) -> float:
        """The estimated tokens that the next request adds."""
        return sum(self._pending.values())

    def take_request(self, sent_tokens: int) -> dict[Part, float]:
        """Take in a request that sent so many tokens. Return the tokens of each part that was new in it."""
        pending, self._pending = self._pending, {}
        estimate = sum(pending.values())
        growth = sent_tokens - self.sent
        factor = 1.0
        if self.sent and estimate and LEAST_GROWTH <= growth / estimate <= MOST_GROWTH:
            factor = growth / estimate
        new_parts = {part: tokens * factor for part, tokens in pending.items()}
        for part, tokens in new_parts.items():
            self.tokens[part] = self.tokens.get(part, 0.0) + tokens
        remainder_part: Part = EARLIER if self.is_partial else SYSTEM
        self.tokens.pop(UNRECORDED, None)
        other_tokens = sum(tokens for part, tokens in self.tokens.items() if part != remainder_part)
        if other_tokens > sent_tokens:
            scale = sent_tokens / other_tokens
            self.tokens = {
                part: tokens * scale for part, tokens in self.tokens.items() if part != remainder_part
            }
            new_parts = {part: tokens * scale for part, tokens in new_parts.items()}
        else:
            self._share_unexplained(remainder_part, sent_tokens - other_tokens)
        self.sent = sent_tokens
        return new_parts

    def _share_unexplained(self, remainder_part: Part, unexplained: float) -> None:
        """Divide what no text explains into the program's own and what is not in the transcript (rule 3)."""
        if remainder_part == SYSTEM:
            if self._most_system is None:
                self._most_system = unexplained
            self.tokens[SYSTEM] = min(unexplained, self._most_system)
            unexplained -= self.tokens[SYSTEM]
            remainder_part = UNRECORDED
        if unexplained or remainder_part in self.tokens:
            self.tokens[remainder_part] = unexplained

    def widen(self, sent_tokens: int) -> None:
        """Correct the last request, if it sent more tokens than its first record said."""
        if sent_tokens > self.sent:
            remainder_part: Part = EARLIER if self.is_partial else SYSTEM
            self.tokens[remainder_part] = self.tokens.get(remainder_part, 0.0) + sent_tokens - self.sent
            self.sent = sent_tokens

    def compact(self) -> None:
        """Forget all parts but the program's own prompt, after a compaction."""
        self.is_partial = False
        system = self.tokens.get(SYSTEM)
        self.tokens = {} if system is None else {SYSTEM: system}
        self.sent = 0
        self._pending = {}

    def current(self) -> dict[Part, float]:
        """Return the tokens of each part of the last request. After a compaction they are estimates for the
        next request.
        """
        if self.sent:
            return self.tokens
        sums = dict(self.tokens)
        for part, tokens in self._pending.items():
            sums[part] = sums.get(part, 0.0) + tokens
        return sums


def estimate(text: str, units: int = 0) -> float:
    """Estimate the tokens of a text by its length and script. `units` are 60ths of a token for what is not
    text.
    """
    return (text_units(text) + units) / UNITS_PER_TOKEN


def rows(
    tokens: Mapping[Part, float], definitions: Definitions | None, instructions: Sequence[tuple[str, float]]
) -> tuple[WindowPart, ...]:
    """Round the tokens of the parts so that their sum is the rounded sum, and sort them by category and size.

    `instructions` are files that the transcript does not name, with their tokens. They are taken out of the
    program's own part.
    """
    parts = dict(tokens)
    system = parts.get(SYSTEM, 0.0)
    for path, count in instructions:
        file_tokens = min(count, system)
        if file_tokens > 0:
            parts["instructions", path, None] = parts.get(("instructions", path, None), 0.0) + file_tokens
            system -= file_tokens
    if definitions is not None and system:
        parts.pop(SYSTEM, None)
        for part, share in _divided(system, definitions):
            parts[part] = parts.get(part, 0.0) + share
    elif SYSTEM in parts:
        parts[SYSTEM] = system
    total = round(sum(tokens.values()))
    counts = _rounded(parts, total)
    rounded_parts = [
        WindowPart(category, counts[category, label, server], label, server)
        for category, label, server in counts
        if counts[category, label, server]
    ]
    return tuple(
        sorted(rounded_parts, key=lambda row: (CATEGORIES.index(row.category), -row.tokens, row.label))
    )


def _divided(system: float, definitions: Definitions) -> Iterable[tuple[Part, float]]:
    """The program's own part by its prompt, its tools together, and the tools of each server."""
    weights: dict[Part, float] = {SYSTEM: estimate(definitions.system)}
    for _, server, text in definitions.tools:
        part: Part = ("tools", "", server)
        weights[part] = weights.get(part, 0.0) + estimate(text)
    total_weight = sum(weights.values())
    return (
        ((part, system * weight / total_weight) for part, weight in weights.items())
        if total_weight
        else [(SYSTEM, system)]
    )


def _rounded(parts: Mapping[Part, float], total: int) -> dict[Part, int]:
    """Round the parts so that they sum to `total`; those with the largest fractions are rounded up."""
    counts = {part: int(tokens) for part, tokens in parts.items()}
    missing_tokens = total - sum(counts.values())
    order = sorted(parts, key=lambda part: (counts[part] - parts[part], part[0], part[1]))
    for at in range(abs(missing_tokens)):
        if not order:
            break
        counts[order[at % len(order)]] += 1 if missing_tokens > 0 else -1
    return counts
