"""Defines what a compaction leaves behind: a receipt, or the reason why nothing was compacted.

RequestError
└── CompactionError      `code`: nothing-to-compact, no-summary, no-gain
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from nexus_context.conversation.parts import PROVIDER_NAMES
from nexus_context.errors import RequestError

MOST_LISTED = 50
"""Lost items of each kind that a receipt lists, the most important first."""

Refusal = Literal["nothing-to-compact", "no-summary", "no-gain"]


class CompactionError(RequestError):
    """Nothing was compacted, and the conversation is unchanged.

    `code` is `nothing-to-compact`, `no-summary` (every summarizer failed, and the message says why) or
    `no-gain` (the summary is not smaller than what it would replace). `reason` says why the summary was
    refused. If another summarizer is tried afterwards, it appears in that one's list of failures.
    """

    def __init__(self, message: str, *, code: Refusal, reason: str = "") -> None:
        super().__init__(message, code=code)
        self.reason = reason or message


def nothing_to_undo(compaction: str | None, existing: Iterable[str]) -> str:
    """Return the sentence that says that a compaction cannot be undone. `compaction` is None for the last
    one; the error's code is `unknown-compaction`.
    """
    subject = "no compaction" if compaction is None else f"no compaction {compaction!r}"
    ids = ", ".join(existing)
    return f"There is {subject} to undo.{f' There are: {ids}.' if ids else ''}"


def opaque_provider(receipt: Any) -> str | None:
    """Return the name of the provider whose server made a compaction, from its stored receipt. Return None
    for any other compaction.
    """
    if not isinstance(receipt, dict) or receipt.get("opaque") is not True:
        return None
    provider = str(receipt.get("summarizer"))
    return PROVIDER_NAMES.get(provider, provider)  # type: ignore[call-overload, no-any-return]


class Lost(msgspec.Struct, frozen=True, rename="camel"):
    """What appears nowhere in the new history. `counts` has the number of lost items of each kind, including
    those that are not listed.
    """

    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # system messages
    counts: dict[str, int] = {}


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """What one compaction did. Numbers of tokens are those of the history.

    `opaque` is true if a provider's server made the compaction, so that nobody can say what is lost. Then
    `summarizer` is the provider.
    """

    id: str
    reason: str
    summarizer: str
    replaced_messages: int
    tokens_before: int
    tokens_after: int
    created: str  # ISO 8601
    lost: Lost
    failures: tuple[str, ...] = ()  # summarizers that were tried before, and why each failed
    model: str | msgspec.UnsetType = msgspec.UNSET  # the model that wrote the summary, if the client names it
    replaced_results: dict[str, int] | msgspec.UnsetType = msgspec.UNSET  # results of tools, by tool
    unread_messages: int | msgspec.UnsetType = msgspec.UNSET  # replaced but not read: there were too many
    opaque: bool | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET  # of an opaque one: what can be read of it, maybe shortened
    replaced_opaque: str | msgspec.UnsetType = msgspec.UNSET  # provider whose opaque one this one replaces
