"""Makes the names note of a summary: names and values of the replaced messages that nothing else in the new
history has.

1. Names that are in the summary or in a preserved message are left out. So are commands, because the summary
   lists those that matter.
2. The names are ordered by an `IdentifierIndex` with WEIGHTS. What edits contain counts more than in the note
   about a cut. The names of an earlier summary count as little as those of a result, so that they fade unless
   a message mentions them again. What programs write into a user's message does not count.
"""

from collections.abc import Iterable, Iterator, Mapping

from nexus_context.conversation import identifiers
from nexus_context.conversation.compaction.user_words import without_program_text
from nexus_context.conversation.identifiers import IdentifierIndex, Source, arguments_of, leaves, list_of
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.summary import is_summary, summary_of
from nexus_context.folder.prompt import texts
from nexus_context.tokens import TokenCounter

NAMES_SHARE = 0.22
"""Share of a summary's limit that is reserved for names and values."""
MOST_NAMES = 20_000
"""Names and values that are told apart."""
WEIGHTS: Mapping[Source, float] = {**identifiers.WEIGHTS, "written": 2.0, "result": 0.3}
MOST_PIECES = 40
_PIECE = identifiers.RESULT_HEAD  # characters of a summary that are read at once


def names_in(messages: Iterable[Message], *, most: int = MOST_NAMES) -> IdentifierIndex:
    """Return the names in messages that a summary replaces. At most `most` names are told apart."""
    index = IdentifierIndex(most=most, weights=WEIGHTS)
    for message in messages:
        if is_summary(message):
            summary = summary_of(message)
            for at in range(0, min(len(summary), _PIECE * MOST_PIECES), _PIECE):
                index.add(Message("tool", summary[at : at + _PIECE]))
        else:
            index.add(without_program_text(message))
    return index


def missing_names(index: IdentifierIndex, present: Iterable[str], counter: TokenCounter, limit: int) -> str:
    """Return the names of the index that occur in none of the texts `present`, best first, as a text with at
    most `limit` tokens.
    """
    words = Words(present)
    names = (name for name in index.ranked() if name.kind != "command" and not words.has(name.text))
    return list_of(names, counter, limit)


def with_names(
    summary: str,
    index: IdentifierIndex,
    preserved: Iterable[Message],
    counter: TokenCounter,
    *,
    limit: int,
) -> str:
    """Add to a summary the names that neither it nor a preserved message has. They take at most `limit`
    tokens.
    """
    lines = dict(line.split(": ", 1) for line in texts.text("summary_headings").splitlines())
    title = f"\n\n## {lines['facts']}\n"
    names = missing_names(index, (summary, *texts_of(preserved)), counter, limit - counter.count(title) - 2)
    return f"{summary.rstrip()}{title}{names}" if names else summary


class Words:
    """Texts in which names are looked up. Each word is stored once, which makes looking up much faster."""

    def __init__(self, present: Iterable[str]) -> None:
        self._texts = "\n".join(present)
        self._words = "\n".join(dict.fromkeys(self._texts.split()))

    def __len__(self) -> int:
        return len(self._texts)

    def has(self, name: str) -> bool:
        """Whether a name or a longer text occurs in one of the texts."""
        return name in (self._texts if len(name.split()) != 1 else self._words)


def texts_of(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts of messages and the values in the arguments of their calls."""
    for message in messages:
        yield text_of(message)
        for call in message.tool_calls:
            values = (value for _, value in leaves(arguments_of(call.arguments)))
            yield from (str(value) for value in values if value is not None)
