"""What a user's turn carries besides the user's words: the time, the event's facts, git's state, memory.

The same for every subject, from a fixed seed. Nexus gets it as values; users of other libraries write it into
the message that they store, so they get it as a text (`front`).
"""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

START = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
TURN = timedelta(minutes=3)
PASSAGES = 3  # of memory, a turn
MOST_FILES = 6  # that git shows as changed

_SEED = 35_300
_FILES = tuple(
    f"src/{part}/{name}.py"
    for part in ("booking", "pay", "web")
    for name in ("api", "model", "rules", "store")
)
_TOPICS = ("refunds", "luggage", "seats", "vouchers", "invoices", "groups", "pets", "delays")
_PROSE = (
    "the customer may change a booking until the day before the flight when the fare allows it and every "
    "other change needs a voucher or the consent of the airline which the agent asks for in writing"
)
_WORDS = _PROSE.split()


class TurnFacts(NamedTuple):
    """The facts of one turn. `files` are those that git shows as changed, `passages` are texts of memory."""

    now: datetime
    file: str
    line: int
    branch: str
    files: Sequence[str]
    passages: Sequence[str]

    @property
    def front(self) -> str:
        """The text before the user's words."""
        changed = "\n".join(f" M {file}" for file in self.files)
        memory = "\n\n".join(self.passages)
        return (
            f"Current time: {self.now:%Y-%m-%d %H:%M} (UTC)\n"
            f"activeFile: {self.file}\nline: {self.line}\n"
            f"Git: branch {self.branch}, {len(self.files)} changed\n{changed}\n\n"
            f"<memory>\n{memory}\n</memory>"
        )


def facts_of_turn(number: int) -> TurnFacts:
    """The facts of the turn of that number, from 0: no two turns have the same."""
    dice = random.Random(_SEED + number)  # noqa: S311 - a benchmark, no secret
    files = sorted(dice.sample(_FILES, dice.randint(1, MOST_FILES)))
    passages = [_passage(dice, topic) for topic in dice.sample(_TOPICS, PASSAGES)]
    return TurnFacts(START + number * TURN, dice.choice(files), dice.randint(1, 900), "main", files, passages)


def _passage(dice: random.Random, topic: str) -> str:
    return f"docs/{topic}.md: {' '.join(dice.choices(_WORDS, k=50)).capitalize()}."
