"""A record of a session's file, whatever program wrote it. What it holds may be anything."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

MOST_KINDS = 50
"""Unknown kinds that are counted one by one."""


class SessionRecord:
    """A JSON object that is a line of a file. Programs have subclasses that say what is in it."""

    __slots__ = ("value",)

    FIELDS: ClassVar[tuple[str, ...]] = ()
    """The names that are read of a line; the values of all others are skipped. Without any, all are read."""

    COMPACTION_MARKS: ClassVar[tuple[bytes, ...]] = ()
    """What a line contains, among others, that is the record of a compaction."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    @property
    def unknown(self) -> tuple[str, ...]:
        """The kinds of it, and of what it holds, that Nexus does not know."""
        return ()

    @property
    def is_compaction(self) -> bool:
        """Whether the messages before it are no longer sent."""
        return False

    @property
    def folder(self) -> str | None:
        """Where the session works, if it says."""
        return None

    @property
    def relocated(self) -> str | None:
        """Where the session was moved to, if it says."""
        return None

    @property
    def fork_of(self) -> str | None:
        """The session whose messages this one begins with, if it says."""
        return None

    @property
    def shared_until(self) -> str | None:
        """When a fork was made that does not repeat the messages of its origin (ISO 8601), if it says."""
        return None

    @property
    def titles(self) -> dict[int, str]:
        """The title that it gives its session, by its rank."""
        return {}

    @property
    def uuid(self) -> str | None:
        """Its own name, if others refer to it by that."""
        return None

    @property
    def session(self) -> str | None:
        """The name of its session, if it says."""
        return None

    @property
    def parent_session(self) -> str | None:
        """The session that started this one, if it says."""
        return None


def count_kinds(counts: Counter[str], kinds: Iterable[str]) -> None:
    """Count unknown kinds."""
    for kind in kinds:
        counts[kind if kind in counts or len(counts) < MOST_KINDS else "other kinds"] += 1
