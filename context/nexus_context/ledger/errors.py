"""Defines the errors of a ledger, whose texts are written for the person who has to fix them.

RequestError
 └─ LedgerError            code says which: see CODES
     └─ HeadMovedError     somebody else compacted or cleared the thread in between
"""

from nexus_context.errors import RequestError

CODES = (
    "ledger-newer",  # written by a newer version; left unchanged
    "ledger-foreign",  # another program's database; left unchanged
    "ledger-corrupt",  # not a ledger any more; set aside
    "ledger-full",  # no space on the disk; nothing was written
    "ledger-read-only",  # cannot be written
    "ledger-io",  # the disk failed
    "ledger-busy",  # another process holds it too long
    "ledger-moved",  # moved or replaced while it was written: the write is in the one that was moved
    "ledger-closed",
    "unknown-session",
    "session-exists",
    "unknown-turn",
    "unknown-compaction",
    "head-moved",
    "key-reused",  # a key names one append
    "bad-session-name",
    "search-too-broad",  # took too long
    "agent-exists",  # another window started one with that name
    "unknown-agent",  # another window disposed of the parent
    "agent-count",  # including those of other windows
    "bad-text",  # cannot be stored: a name with half a surrogate pair
)


class LedgerError(RequestError):
    """A ledger could not do what was requested. Nothing was written in part."""


class HeadMovedError(LedgerError):
    """The thread has changed since the caller read it. The caller must read it again."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"The conversation {session!r} was compacted or cleared in another window; read it again.",
            code="head-moved",
        )


def key_reused(key: str, earlier_count: int, new_count: int) -> LedgerError:
    """Make the error for a key that was used again with a different number of messages."""
    return LedgerError(
        f"The key {key!r} was already used to append {earlier_count} message(s), and now comes with "
        f"{new_count}. Use a new key for each append.",
        code="key-reused",
    )
