"""What is sent otherwise than it was given: one entry a repair, in words for people."""

import msgspec

_LONGEST_SHOWN = 60  # code points of an id or a name in a sentence


class Repair(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that is sent otherwise than it was given.

    `index` is the message's place among those given. `given` and `sent` are a name or an id before and
    after, where that is what changed.
    """

    kind: str  # such as result-missing; the same words for the same repair
    text: str  # one sentence for people
    index: int | None = None
    tool_call_id: str | None = None
    given: str | None = None
    sent: str | None = None


def place(index: int) -> str:
    """The place of a message, in words."""
    return f"message {index + 1}"


def shown(name: str | None) -> str:
    """An id or a name in a sentence."""
    if not name:
        return '""'
    return name if len(name) <= _LONGEST_SHOWN else name[:_LONGEST_SHOWN] + "…"
