"""Represents what a context costs, row by row, and its limits."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from nexus_context.conversation.truncation import STRATEGIES, Strategy
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Policy
from nexus_context.errors import RequestError, Span
from nexus_context.folder.prompt.token_attribution import PromptPart
from nexus_context.tokens import ModelLimits, TokenCounter, family_of_counter
from nexus_context.tokens.correction import Correction

Category = Literal["system", "tools", "history", "memory", "event"]

EARLIER_EVENTS, EARLIER_MEMORY = "event text of user messages", "memory text of user messages"
EARLIER_CHANGES = "notes on changed instructions and tools"
"""Labels of the rows for what earlier messages were sent with."""

FIGURES = ("system", "tools", "messages", "memory", "event", "total", "budget", "available", "remaining")
"""What `usage[name]` knows. `messages` are those of the history; `budget` is the whole window, `available`
what the context may take of it.
"""


class DefaultLimit(int):
    """A default limit that no configuration set. The window of a known model replaces it."""


DEFAULT_MAX_TOKENS = DefaultLimit(8_000)


class ContextConfig(msgspec.Struct, frozen=True):
    """How large a context may be, and what is cut first. Sizes are in tokens.

    If `max_tokens` is not set, the limit is the window of the manager's model, or 8,000 tokens without a
    model.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    reserve_tokens: int = 2_000  # reserved for the answer
    truncation_strategy: Strategy = "oldest_first"
    truncation_target: float = 0.6  # the share of the available tokens that remains after a cut
    keep_recent_turns: int = 3
    pin_first: bool = True  # never cut the user's first message
    identifier_tokens: int | None = (
        None  # the maximum for names and values of the cut part; None: by the room
    )

    def __post_init__(self) -> None:
        if self.truncation_strategy not in STRATEGIES:
            strategies = ", ".join(STRATEGIES)
            raise RequestError(
                f"Unknown truncation strategy {self.truncation_strategy!r}. Known strategies: {strategies}.",
                code="bad-option",
            )
        if not 0.1 <= self.truncation_target <= 1:
            raise RequestError(
                f"truncation_target is {self.truncation_target}; it must be from 0.1 to 1.", code="bad-option"
            )
        for name in ("max_tokens", "reserve_tokens", "keep_recent_turns", "identifier_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise RequestError(f"{name} is {value}; it must not be negative.", code="bad-option")

    @property
    def policy(self) -> Policy:
        return Policy(
            strategy=self.truncation_strategy,
            target=self.truncation_target,
            keep_recent_turns=self.keep_recent_turns,
            pin_first=self.pin_first,
            identifier_tokens=self.identifier_tokens,
        )


class UsageRow(msgspec.Struct, frozen=True):
    """The tokens of one part of a context, with its place in a file if it has one.

    In a row of the history, `message` is the index of the row's first message.
    """

    category: Category
    label: str
    tokens: int
    exact: bool
    path: str | None = None
    span: Span | None = None
    message: int | None = None


class UsagePart(msgspec.Struct, frozen=True):
    """The tokens of one kind of text in the system prompt (`folder.prompt.token_attribution`).

    `program` is the prompt and the tools of another assistant.
    """

    part: PromptPart | Literal["program"]
    tokens: int
    exact: bool


class CategoryTokens(msgspec.Struct, frozen=True, rename="camel"):
    """The tokens of each category, and their total."""

    system: int = 0
    tools: int = 0
    history: int = 0
    memory: int = 0
    event: int = 0
    total: int = 0


class TokenBudget(msgspec.Struct, frozen=True, rename="camel"):
    """The figures of a `TokenUsage` for the program that runs the model. Sizes are in tokens.

    `model_limit` is the model's window or the configured maximum, and `available` is the part of it that the
    context may take.
    """

    model_limit: int
    reserve_response: int
    reserve_tools: int
    available: int
    used: CategoryTokens
    remaining: int


class Corrected(msgspec.Struct, frozen=True):
    """A total as the provider would count it (`tokens.correction`).

    `error` is the median of how far such totals were off lately, in thousandths, or None if it is not known
    yet.
    """

    total: int
    error: int | None = None


class TokenUsage(msgspec.Struct, frozen=True):
    """The tokens of a context. The rows sum to `total` exactly, and `over` is true if `total` is more than
    `available`.

    `limit` is the model's window or the configured maximum. `reserved` is for the answer and tool results.
    `max_input` is the model's maximum input. `available` is the smaller of limit - reserved and max_input,
    and at least 0. `limit_known` is false if the limit is a guess for an unknown model.

    `parts` has the tokens of the system prompt again, by kind of text. They sum to the tokens of the system
    rows, but are empty if the prompt's sources are unknown. `corrected` is the total by the provider's last
    count and what came since, or None before a provider's usage is known. `deferred` are the tokens of tool
    definitions that a model gets only when it searches for them.

    A usage is also a mapping of the FIGURES to tokens: `usage["total"]`, `usage.get("budget")`.
    """

    model: str
    limit: int
    reserved: int
    max_input: int
    limit_known: bool
    counter: str
    exact: bool
    rows: tuple[UsageRow, ...]
    parts: tuple[UsagePart, ...] = ()
    corrected: Corrected | None = None
    deferred: int = 0

    @property
    def available(self) -> int:
        return max(min(self.limit - self.reserved, self.max_input), 0)

    @property
    def total(self) -> int:
        return sum(row.tokens for row in self.rows)

    @property
    def remaining(self) -> int:
        return self.available - self.total

    @property
    def percent(self) -> float:
        """The percentage of the available tokens that is used, rounded to one decimal."""
        return round(100 * self.total / self.available, 1) if self.available else 100.0

    @property
    def over(self) -> bool:
        return self.total > self.available

    def __getitem__(self, name: str) -> int:
        """A figure in tokens by its name: see `FIGURES`. KeyError for another name."""
        if name not in FIGURES:
            raise KeyError(f"{name!r} is not a figure of the usage. Figures: {', '.join(FIGURES)}.")
        if name in ("total", "available", "remaining"):
            return int(getattr(self, name))
        if name == "budget":
            return self.limit
        return self.by_category().get("history" if name == "messages" else name, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(FIGURES)

    def __len__(self) -> int:
        return len(FIGURES)

    __contains__, get = Mapping.__contains__, Mapping.get
    keys, items, values = Mapping.keys, Mapping.items, Mapping.values

    def budget(self, *, reserve_tools: int = 0) -> TokenBudget:
        """Return the figures as a `TokenBudget`. `reserve_tools` is the part of `reserved` that is for tool
        results.
        """
        return TokenBudget(
            model_limit=self.limit,
            reserve_response=self.reserved - reserve_tools,
            reserve_tools=reserve_tools,
            available=self.available,
            used=CategoryTokens(**self.by_category(), total=self.total),
            remaining=self.remaining,
        )

    def by_category(self) -> dict[str, int]:
        """Return the tokens of each category that has any: category → tokens."""
        sums: dict[str, int] = {}
        for row in self.rows:
            sums[row.category] = sums.get(row.category, 0) + row.tokens
        return sums


Mapping.register(TokenUsage)  # pyright: ignore[reportAttributeAccessIssue] - it cannot inherit: a struct has its metaclass


def usage(
    limits: ModelLimits,
    counter: TokenCounter,
    rows: Iterable[UsageRow],
    *,
    max_tokens: int | None,
    reserved: int,
    parts: Iterable[UsagePart] = (),
) -> TokenUsage:
    """Make a usage of rows and limits. `max_tokens` can only narrow the window of a known model."""
    limit = limits.limit(max_tokens)
    max_input = limits.max_input if limits.known else limit  # a guess does not narrow the input
    return TokenUsage(
        model=limits.given,
        limit=limit,
        reserved=reserved,
        max_input=max_input,
        limit_known=limits.known or max_tokens is not None,
        counter=counter.name,
        exact=counter.exact,
        rows=tuple(rows),
        parts=tuple(parts),
    )


def corrected(spent: TokenUsage, correction: Correction, counter: TokenCounter) -> TokenUsage:
    """Return the usage with its total as the provider would count it. If that is not known, return it
    unchanged.
    """
    total = correction.total(spent.total, family_of_counter(counter).name)
    return (
        spent
        if total is None
        else msgspec.structs.replace(spent, corrected=Corrected(total, correction.error))
    )


def history_rows(view: View, counter: TokenCounter) -> list[UsageRow]:
    """Return the rows of the part of a conversation that is sent.

    Rows for what stands before a cut come first, then the row of the messages. Event and memory text of
    earlier turns, and notes on changed instructions and tools, have rows of their own.
    """
    rows: list[tuple[str, int, int]] = []
    message_tokens = view.tokens
    count = view.end - view.start + (view.anchor is not None)
    if not view.start:
        count += view.head
    elif view.head:
        rows.append((f"{_messages(view.head)} from the beginning", view.pinned, 0))
    if view.note is not None:
        label = f"names and values of {_messages(view.removed)} not sent"
        rows.append((label, view.note_tokens, view.head))
    event, memory, changes = view.preamble_tokens(counter)
    message_tokens -= sum(tokens for _, tokens, _ in rows) + event + memory + changes
    if count:
        rows.append((_messages(count), message_tokens, view.start if view.anchor is None else view.anchor))
    exact = counter.exact and not view.history.images
    replayed = ((EARLIER_EVENTS, event), (EARLIER_MEMORY, memory), (EARLIER_CHANGES, changes))
    return [
        *(
            UsageRow("history", label, tokens, exact, message=first_message)
            for label, tokens, first_message in rows
        ),
        *(UsageRow("history", label, tokens, counter.exact) for label, tokens in replayed if tokens),
    ]


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"
