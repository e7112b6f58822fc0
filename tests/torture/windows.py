"""Two windows that append to one session as fast as they can."""

import tempfile
from pathlib import Path

from torture.children import children, write_turns
from torture.figures import Figure, Outcome, Watch, nothing_wrong, p95
from torture.ledgers import MAIN, NAME, WORKSPACE, damage_in, opened, wrong_with

WINDOWS = ("left", "right")
PATIENCE_S = 600.0


def run(turns: int) -> Outcome:
    """So many turns in each window."""
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="nexus-windows-") as root:
        path = str(Path(root) / NAME)
        with opened(path):
            pass  # the first one to open a ledger makes it, which is not what is measured here
        with children() as start:
            working = Watch()
            writers = [start(write_turns, path, name, 1, turns) for name in WINDOWS]
            said = [words for writer in writers for words in writer.finish(PATIENCE_S)]
            worked = working.seconds
        took = [float(each) for words in said if words[0] == "took" for each in words[1:]]
        acknowledged = {words[2]: int(words[3]) for words in said if words[0] == "ack"}
        busy = [" ".join(words) for words in said if words[0] == "refused"]
        wrong = [" ".join(words) for words in said if words[0] not in ("ack", "took", "refused")]
        with opened(path) as ledger:
            wrong += wrong_with(ledger, MAIN, acknowledged, set(acknowledged))
            head = ledger.head(WORKSPACE, MAIN)
            wrong += [f"a notice: {ledger.notice}"] if ledger.notice else []
            wrong += [] if ledger.upkeep.verify().sound else ["the chain is broken"]
        wrong += damage_in(path)
    total = len(WINDOWS) * turns
    figures = (
        Figure("turns of two windows", total),
        Figure("turns in the session", head.seq if head else 0, at_least=total, at_most=total),
        Figure("refused, busy or otherwise", len(busy), at_most=0),
        Figure("both together", total / worked, "turns/s"),
        Figure("an append, p95", p95(took), "ms"),
        Figure("an append, longest", max(took, default=0.0), "ms"),
        nothing_wrong(wrong),
    )
    return Outcome("two windows", figures, tuple(busy + wrong), seconds=watch.seconds)
