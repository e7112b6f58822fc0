"""The promises about the ledger, and whether they are kept."""

from collections.abc import Iterator

from benchmarks.conversation.targets import Verdict
from benchmarks.ledger.runner import MADE, Outcome

APPEND_MS = 20.0
OPEN_MS = 50.0
RESUME_MS = 5.0
SEARCH_MS = 50.0
KNOWLEDGE_MS = 100.0


def verdicts(outcome: Outcome) -> Iterator[Verdict]:
    """All promises, in the order in which they are printed; times in milliseconds."""
    appending, opened = outcome.appending, outcome.openings.get("whole")
    yield _ms("append a turn, durable, p95", appending.ledger.p95 if appending else None, APPEND_MS)
    what = f"open a session of {opened.messages:,} messages" if opened else "open a session"
    yield _ms(f"{what}, ledger and all, median", opened.both.p50 if opened else None, OPEN_MS)
    resumed = outcome.openings.get("window")
    where = f" of {outcome.imports[MADE].messages:,} messages" if MADE in outcome.imports else ""
    yield _ms(
        f"resume the window{where} after open, median", resumed.read.p50 if resumed else None, RESUME_MS
    )
    for name, searching in outcome.searches.items():
        yield _ms(f"search {searching.messages:,} messages, {name}, p95", searching.all.p95, SEARCH_MS)
    knowing = outcome.knowing
    files = f" of {knowing.files:,} files" if knowing else ""
    yield _ms(f"knowledge query{files}, p95", knowing.query.p95 if knowing else None, KNOWLEDGE_MS)


def _ms(promise: str, microseconds: float | None, limit: float) -> Verdict:
    return Verdict(promise, None if microseconds is None else microseconds / 1e3, "ms", limit)
