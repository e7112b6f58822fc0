"""What a rendering sends otherwise than it was given: what happens often is said once, with its number."""

from collections.abc import Iterable

from nexus_context.conversation.repair import Repair


class Said:
    """The entries of one rendering, in the order in which they were first said."""

    def __init__(self, repairs: Iterable[Repair]) -> None:
        self._repairs = list(repairs)
        self._counts: dict[tuple[str, str], tuple[Repair, int]] = {}

    def add(
        self,
        kind: str,
        text: str,
        index: int | None = None,
        *,
        tool_call_id: str | None = None,
        given: str | None = None,
        sent: str | None = None,
    ) -> None:
        """Say that something is sent otherwise. The same words again only raise their number."""
        first, count = self._counts.get((kind, text), (None, 0))
        if first is None:
            first = Repair(kind, text, index, tool_call_id, given, sent)
        self._counts[kind, text] = (first, count + 1)

    def repairs(self) -> list[Repair]:
        """All entries. Of what was said several times the first place is named."""
        made = list(self._repairs)
        for first, count in self._counts.values():
            text = first.text if count == 1 else f"{first.text} ({count} times)"
            made.append(Repair(first.kind, text, first.index, first.tool_call_id, first.given, first.sent))
        return made
