"""Why a compaction did not happen.

RequestError
└── CompactionError      `code` says which: nothing to do, no summary, no gain
"""

from typing import Literal

from nexus_context.errors import RequestError

Refusal = Literal["nothing-to-compact", "no-summary", "no-gain"]


class CompactionError(RequestError):
    """A compaction that did not happen; the conversation is as it was.

    `code` is `nothing-to-compact`, `no-summary` (nobody wrote one; the message says why each failed) or
    `no-gain` (the summary is not smaller than what it would replace).
    """

    def __init__(self, message: str, *, code: Refusal) -> None:
        super().__init__(message, code=code)
