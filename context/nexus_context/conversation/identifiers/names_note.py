"""The names and values of what is cut from a conversation, and the few of them that fit in a note.

1. Each message is read once, when it is cut. What is known of a name is how strongly it was mentioned
   (WEIGHTS, by who said it) and when last; strength fades with every message that is cut after it.
2. The note holds the best by that, and by kind, as many as fit; in it they stand by kind, the best first.
3. At most MOST names are remembered: past twice that, the worst half are forgotten.
4. Deterministic: the same messages and counter give the same note.
"""

from collections.abc import Container, Iterable, Mapping

from nexus_context.conversation.identifiers.mentions import Source, mentions
from nexus_context.conversation.identifiers.word_kinds import KINDS, Found, Kind
from nexus_context.conversation.message import Message
from nexus_context.prompt import texts
from nexus_context.tokens import TokenCounter

MOST = 2_000
HALF_LIFE = 60
"""Messages after which a mention counts half."""

WEIGHTS: Mapping[Source, float] = {"user": 3.0, "call": 3.0, "assistant": 1.0, "written": 0.4, "result": 0.15}
PLAIN = 0.3
"""Share of a mention's weight for a word of letters only, such as IMPORTANT, unless a call uses it."""
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


_Known = tuple[float, int]  # how strongly mentioned, as of the number of the message that did so last


class IdentifierIndex:
    """Names of messages as they are cut. A copy is cheap and independent."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self.messages = 0
        """Messages that were added."""
        self._known: dict[Found, _Known] = {}

    def copy(self) -> "IdentifierIndex":
        made = IdentifierIndex(most=self._most)
        made.messages, made._known = self.messages, self._known.copy()
        return made

    def add(self, message: Message) -> None:
        """Read the next message that is cut."""
        self.messages = now = self.messages + 1
        known = self._known
        for source, names in mentions(message):
            weight = WEIGHTS[source]
            for found in names:
                strength = weight
                if source != "call" and found.text.isalpha():
                    strength *= PLAIN
                before = known.get(found)
                if before is not None:
                    strength += before[0] * 0.5 ** ((now - before[1]) / HALF_LIFE)
                known[found] = (strength, now)
        if len(known) > 2 * self._most:
            self._known = {found: known[found] for found in self.ranked()[: self._most]}

    def extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.add(message)

    def ranked(self) -> list[Found]:
        """All names, the best first."""
        now = self.messages

        def score(item: tuple[Found, _Known]) -> tuple[float, str]:
            found, (strength, last) = item
            weight = strength * 0.5 ** ((now - last) / HALF_LIFE) * KIND_WEIGHTS[found.kind]
            return (-weight, found.text)

        return [found for found, _ in sorted(self._known.items(), key=score)]

    def render(self, counter: TokenCounter, limit: int = 600, *, shown: Container[str] = frozenset()) -> str:
        """The note, of at most `limit` tokens; empty where nothing is known or nothing fits.

        Names in `shown` are left out: they stand elsewhere in what is sent.
        """
        head = texts.text("identifiers_head").format(messages=self.messages)
        lines = list_of(self.ranked(), counter, limit, head=head, shown=shown)
        return f"{head}\n{lines}" if lines else ""


def list_of(
    ranked: Iterable[Found], counter: TokenCounter, limit: int, *, head: str = "", shown: Container[str] = ()
) -> str:
    """As many of the names, the best first, as fit with `head` in `limit` tokens: a line for each kind."""
    chosen: list[Found] = []
    spent = counter.count(head) + 1
    labels: set[Kind] = set()
    for found in ranked:
        if found.text in shown:
            continue
        cost = counter.count(f" {found.text}") + 1
        if found.kind not in labels:
            cost += counter.count(f"\n{texts.text('identifiers_kinds')}") // len(KINDS)
        if spent + cost > limit:
            if spent + 4 > limit:
                break
            continue
        labels.add(found.kind)
        chosen.append(found)
        spent += cost
    while chosen:
        made = _lines(chosen)
        over = counter.count(f"{head}\n{made}") - limit
        if over <= 0:
            return made
        del chosen[-max(1, over // 8) :]
    return ""


def _lines(chosen: Iterable[Found]) -> str:
    labels = dict(line.split(": ", 1) for line in texts.text("identifiers_kinds").splitlines())
    by_kind: dict[Kind, list[str]] = {}
    for found in chosen:
        by_kind.setdefault(found.kind, []).append(found.text)
    lines = []
    for kind in KINDS:
        names = by_kind.get(kind, ())
        if kind == "command":
            lines += [f"$ {name}" for name in names]
        elif names:
            lines.append(f"{labels[kind]}: {', '.join(names)}")
    return "\n".join(lines)
