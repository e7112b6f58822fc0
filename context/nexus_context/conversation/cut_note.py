"""Writes the note that replaces the messages of a cut: failures that are not resolved, then names and values.

1. Messages are read as they are cut, each once. The note is written again at each cut.
2. A failure is removed from the note once the same command, or the same tool on the same file, ends without
   one. The last MOST_FAILURES are listed, in at most FAILURES_SHARE of the note.
3. Names take the rest of the note, best first (`IdentifierIndex`).
4. The note has no secrets, because they are covered before the messages are read.
"""

from collections.abc import Sequence

from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message
from nexus_context.conversation.message_secrets import without_secrets
from nexus_context.conversation.tool_activity import Failure, activity_of
from nexus_context.folder.prompt import texts
from nexus_context.tokens import TokenCounter

MOST_FAILURES = 3
FAILURES_SHARE = 0.2
READ = 3_000
"""Characters of a result that are searched for failures."""
LONGEST_FAILURE = 160
"""Characters of a failure, and of what failed, that the note tells."""


class CutNote:
    """Collects the content of a note. Copying it is cheap, and a copy is independent."""

    def __init__(self, unread: int = 0) -> None:
        self._names = IdentifierIndex()
        self._names.messages = unread
        self._failures: Sequence[Failure] = ()

    def copy(self) -> "CutNote":
        note = CutNote()
        note._names, note._failures = self._names.copy(), self._failures
        return note

    def skip(self, count: int) -> None:
        """Count this many messages of the cut without reading them, because their names would have faded."""
        self._names.messages += count

    def extend(self, messages: Sequence[Message]) -> None:
        """Read the next messages of the cut."""
        self._names.extend(messages)
        of_tools = [
            without_secrets(message) for message in messages if message.role == "tool" or message.tool_calls
        ]
        failures = activity_of(of_tools, self._failures, most=READ).failures
        self._failures = [failure for failure in failures if not failure.resolved][-MOST_FAILURES:]

    def render(self, counter: TokenCounter, limit: int) -> str:
        """Return the note with at most `limit` tokens. Return "" if there is nothing to note or nothing
        fits.
        """
        room, lines = int(limit * FAILURES_SHARE), list[str]()
        for failure in reversed(self._failures):
            where, text = _shortened(failure.where), _shortened(failure.text)
            line = texts.text("identifiers_failure").format(where=where, text=text)
            room -= counter.count(f"\n{line}")
            if room < 0:
                break
            lines.append(line)
        return self._names.render(counter, limit, first="\n".join(lines))


def _shortened(text: str) -> str:
    """Return the beginning of a text on one line."""
    beginning = " ".join(text[:LONGEST_FAILURE].split())
    return beginning if len(text) <= LONGEST_FAILURE else f"{beginning}…"
