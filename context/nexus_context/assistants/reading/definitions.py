"""Chooses which of several definitions of a skill, agent or server counts, and says why the others do not.

1. The caller gives the definitions in the order in which the program prefers them. The first of each name
   counts.
2. The others are not read; the reason names the winner and says why the program prefers it. In the project's
   own files each is a problem: a warning, but an information if the user's own file wins, since that is so
   only here, and a hint if both files have the same text, as copies for several programs do.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import IgnoredFile, Scope, Surroundings, short_path
from nexus_context.errors import Problem, Severity, Span


class Definition(Protocol):
    """A definition of a name in a file."""

    @property
    def name(self) -> str:
        """The name that is defined."""
        ...

    @property
    def path(self) -> str:
        """The file that defines it."""
        ...

    @property
    def scope(self) -> Scope:
        """Whose file it is: the user's, the project's or another."""
        ...


class ListEntry(NamedTuple):
    """A definition with the text that the program's list has for it."""

    name: str
    path: str
    scope: Scope
    text: str


class Preference(NamedTuple):
    """Says which of several definitions a program prefers. `title` is the program, `what` is the kind of
    definition, and `why` is a sentence with the reason. None if either may count, because the program reads
    them at the same time.
    """

    title: str
    what: str
    why: str | None


AnyDefinition = TypeVar("AnyDefinition", bound=Definition)


def choose(
    definitions: Iterable[AnyDefinition],
    preference: Preference,
    where: Surroundings,
    *,
    disk: Disk,
    ignored: list[IgnoredFile],
    problems: list[Problem],
) -> list[AnyDefinition]:
    """Return the first definition of each name, in order. The others are added to `ignored`, those of the
    project also to `problems`.
    """
    winners: dict[str, AnyDefinition] = {}
    for definition in definitions:
        winner = winners.setdefault(definition.name, definition)
        if winner.path == definition.path:
            continue
        title, what, why = preference
        winner_path = short_path(winner.path, where.folder, where.user_home)
        reason = f"{title} uses the {what} `{definition.name}` of {winner_path} instead. {why}"
        if why is None:
            reason = (
                f"{title} reads this {what} `{definition.name}` and that of {winner_path} at the same time. "
                "Which of them it uses may change from start to start."
            )
        ignored.append(IgnoredFile(definition.path, reason))
        if definition.scope != "user" and os.path.isabs(definition.path):
            severity = Severity.INFORMATION if winner.scope == "user" else Severity.WARNING
            message = f"{reason} Rename one."
            if disk.has_same_bytes(definition.path, winner.path):
                severity, message = Severity.HINT, f"{reason} Both have the same text."
            problems.append(
                Problem(definition.path, Span(0, 0), "assistant.shadowed", severity, message=message)
            )
    return list(winners.values())
