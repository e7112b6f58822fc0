"""What a compaction replaced, what it saved, and what of the replaced part is nowhere any more.

1. Lost is what stood in the replaced messages and stands nowhere in the new history: neither in the summary
   nor in what is kept, in its texts or in the arguments of its tool calls, upper and lower case apart.
2. Lists hold MOST_LISTED of each kind, those that mattered most first; `counts` are of all that was read.
"""

import msgspec

MOST_LISTED = 50


class Lost(msgspec.Struct, frozen=True, rename="camel"):
    """What appears nowhere in the new history. `counts`: how many of each there are, listed or not."""

    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    counts: dict[str, int] = {}


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """What one compaction did. Tokens are those of the history."""

    id: str
    reason: str
    summarizer: str
    replaced_messages: int
    tokens_before: int
    tokens_after: int
    created: str  # ISO 8601
    lost: Lost
    failures: tuple[str, ...] = ()  # summarizers that were asked before, and why they failed
    model: str | msgspec.UnsetType = msgspec.UNSET  # the model that wrote the summary, where one says so
    unread_messages: int | msgspec.UnsetType = (
        msgspec.UNSET
    )  # replaced ones that nobody read: they were too many
