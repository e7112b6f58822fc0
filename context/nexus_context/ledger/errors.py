"""What can go wrong with a ledger, said for the person who has to mend it.

RequestError
 └─ LedgerError            code says which: see CODES
     └─ HeadMovedError     somebody else compacted or cleared the thread in between
"""

from nexus_context.errors import RequestError

CODES = (
    "ledger-newer",  # written by a newer version; left untouched
    "ledger-foreign",  # another program's database; left untouched
    "ledger-corrupt",  # not a ledger any more; set aside
    "ledger-full",  # no room on the disk; nothing was written
    "ledger-read-only",  # may not be written
    "ledger-io",  # the disk failed
    "ledger-busy",  # another process holds it for too long
    "ledger-closed",
    "unknown-session",
    "session-exists",
    "unknown-turn",
    "unknown-compaction",
    "head-moved",
    "key-reused",  # a key names one append
    "bad-session-name",
    "search-too-broad",  # took too long
    "agent-exists",  # another window started one of that name
    "unknown-agent",  # another window disposed of the parent
    "agent-count",  # with those of other windows
    "bad-text",  # what cannot be kept: a name with half a character
)


class LedgerError(RequestError):
    """A ledger could not do what was asked; nothing was half-written."""


class HeadMovedError(LedgerError):
    """The thread is another one since the caller looked: look again."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"The conversation {session!r} was compacted or cleared in another window; read it again.",
            code="head-moved",
        )


def key_reused(key: str, before: int, messages: int) -> LedgerError:
    """The key of an append came again with another number of messages."""
    return LedgerError(
        f"The key {key!r} was given to an append of {before} message(s) before, and now comes with "
        f"{messages}. A key names one append: give each its own.",
        code="key-reused",
    )
