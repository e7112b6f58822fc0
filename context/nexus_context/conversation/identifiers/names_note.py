"""The names and values in what is cut from a conversation, and the few of them that fit in a note.

1. Each message is read once, when it is cut. The index holds how strongly a name was mentioned (WEIGHTS, by
   source) and when last; its strength fades with every message that is cut afterwards.
2. The note lists as many of the best as fit, weighted by kind, grouped by kind, best first.
3. The index holds MOST names: past twice that, the worst half is dropped.
4. The same messages and counter give the same note.
"""

from collections.abc import Iterable, Mapping

from nexus_context.conversation.identifiers.mentions import Source, mentions
from nexus_context.conversation.identifiers.word_kinds import KINDS, Kind, Mention
from nexus_context.conversation.message import Message
from nexus_context.prompt import texts
from nexus_context.tokens import TokenCounter

MOST = 2_000
HALF_LIFE = 60
"""Messages after which a mention counts half."""

WEIGHTS: Mapping[Source, float] = {"user": 3.0, "call": 3.0, "assistant": 1.0, "written": 0.4, "result": 0.15}
PLAIN = 0.3
"""Share of the weight for a word of letters only, such as IMPORTANT, unless it is in a call."""
KIND_WEIGHTS: Mapping[Kind, float] = {
    "path": 1.3,
    "command": 1.0,
    "error": 0.9,
    "symbol": 0.8,
    "id": 1.2,
    "url": 0.8,
    "email": 1.0,
    "version": 0.8,
    "date": 0.7,
    "amount": 0.5,
}


_Strength = tuple[float, int]  # the strength, and the number of the last message that mentioned it


class IdentifierIndex:
    """The names in messages as they are cut. A copy is cheap and independent."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self.messages = 0
        """Number of messages added."""
        self._strengths: dict[Mention, _Strength] = {}

    def copy(self) -> "IdentifierIndex":
        index = IdentifierIndex(most=self._most)
        index.messages, index._strengths = self.messages, self._strengths.copy()
        return index

    def add(self, message: Message) -> None:
        """Read the next message that is cut."""
        self.messages = now = self.messages + 1
        strengths = self._strengths
        for source, names in mentions(message):
            weight = WEIGHTS[source]
            for mention in names:
                strength = weight
                if source != "call" and mention.text.isalpha():
                    strength *= PLAIN
                before = strengths.get(mention)
                if before is not None:
                    strength += before[0] * 0.5 ** ((now - before[1]) / HALF_LIFE)
                strengths[mention] = (strength, now)
        if len(strengths) > 2 * self._most:
            self._strengths = {mention: strengths[mention] for mention in self.ranked()[: self._most]}

    def extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.add(message)

    def ranked(self) -> list[Mention]:
        """All names, best first."""
        now = self.messages

        def score(item: tuple[Mention, _Strength]) -> tuple[float, str]:
            mention, (strength, last) = item
            weight = strength * 0.5 ** ((now - last) / HALF_LIFE) * KIND_WEIGHTS[mention.kind]
            return (-weight, mention.text)

        return [mention for mention, _ in sorted(self._strengths.items(), key=score)]

    def render(self, counter: TokenCounter, limit: int = 600) -> str:
        """The note in at most `limit` tokens; empty if nothing is known or nothing fits."""
        head = texts.text("identifiers_head").format(messages=self.messages)
        lines = list_of(self.ranked(), counter, limit, head=head)
        return f"{head}\n{lines}" if lines else ""


def list_of(ranked: Iterable[Mention], counter: TokenCounter, limit: int, *, head: str = "") -> str:
    """As many of the mentions, best first, as fit with `head` in `limit` tokens: a line for each kind."""
    chosen: list[Mention] = []
    spent = counter.count(head) + 1
    labels: set[Kind] = set()
    for mention in ranked:
        cost = counter.count(f" {mention.text}") + 1
        if mention.kind not in labels:
            cost += counter.count(f"\n{texts.text('identifiers_kinds')}") // len(KINDS)
        if spent + cost > limit:
            if spent + 4 > limit:
                break
            continue
        labels.add(mention.kind)
        chosen.append(mention)
        spent += cost
    while chosen:
        text = _lines(chosen)
        over = counter.count(f"{head}\n{text}") - limit
        if over <= 0:
            return text
        del chosen[-max(1, over // 8) :]
    return ""


def _lines(chosen: Iterable[Mention]) -> str:
    labels = dict(line.split(": ", 1) for line in texts.text("identifiers_kinds").splitlines())
    by_kind: dict[Kind, list[str]] = {}
    for mention in chosen:
        by_kind.setdefault(mention.kind, []).append(mention.text)
    lines = []
    for kind in KINDS:
        names = by_kind.get(kind, ())
        if kind == "command":
            lines += [f"$ {name}" for name in names]
        elif names:
            lines.append(f"{labels[kind]}: {', '.join(names)}")
    return "\n".join(lines)
