"""Defines a record of a session's file, whatever program wrote it. What it holds may be anything."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

MOST_KINDS = 50
"""Unknown kinds that are counted one by one."""


class SessionRecord:
    """A line of a session's file, a JSON object. Each program has a subclass that knows what is in it."""

    __slots__ = ("value",)

    FIELDS: ClassVar[tuple[str, ...]] = ()
    """The names that are read of a line; the values of all others are skipped. Without any, all are read."""

    COMPACTION_MARKS: ClassVar[tuple[bytes, ...]] = ()
    """What a line contains, among others, that is the record of a compaction."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    @property
    def unknown(self) -> tuple[str, ...]:
        """The kinds that Nexus does not know, of the record and of what it holds."""
        return ()

    @property
    def is_compaction(self) -> bool:
        """Whether the record is a compaction, so that the messages before it are no longer sent."""
        return False

    @property
    def folder(self) -> str | None:
        """The folder where the session works, if the record names it."""
        return None

    @property
    def relocated(self) -> str | None:
        """The folder that the session was moved to, if the record names it."""
        return None

    @property
    def fork_of(self) -> str | None:
        """The id of the session that this one was forked from, if the record names it."""
        return None

    @property
    def shared_until(self) -> str | None:
        """When the session was forked (ISO 8601), if it is a fork whose file does not repeat the messages of
        its origin. Else None.
        """
        return None

    @property
    def titles(self) -> dict[int, str]:
        """The titles that the record gives its session: each rank → title. A higher rank counts more."""
        return {}

    @property
    def uuid(self) -> str | None:
        """The id by which other records refer to this one, if it has one."""
        return None

    @property
    def session(self) -> str | None:
        """The id of the session, if the record names it."""
        return None

    @property
    def parent_session(self) -> str | None:
        """The id of the session that started this one, if the record names it."""
        return None


def count_kinds(counts: Counter[str], kinds: Iterable[str]) -> None:
    """Count kinds that Nexus does not know. At most MOST_KINDS are told apart."""
    for kind in kinds:
        counts[kind if kind in counts or len(counts) < MOST_KINDS else "other kinds"] += 1
