"""The targets, and the outcome as Markdown that also reads well in a terminal."""

from collections.abc import Iterable, Iterator

from benchmarks.conversation.report import judged, table
from benchmarks.conversation.speed import Times
from benchmarks.conversation.targets import Verdict
from benchmarks.knowledge.measures import HYBRID, WORDS, Outcome
from benchmarks.ledger.report import times

QUERY_MS = 100.0


def verdicts(outcome: Outcome) -> Iterator[Verdict]:
    """The promises, in the order in which they are printed: both ways are no worse than words, and fast."""
    words, hybrid = (outcome.ways[way].quality["all"] for way in (WORDS, HYBRID))
    yield Verdict("recall@5 of both, beside words", hybrid.recall, "", words.recall, at_least=True)
    rank = words.reciprocal_rank
    yield Verdict("MRR of both, beside words", hybrid.reciprocal_rank, "", rank, at_least=True)
    for way, each in outcome.large.processor.items():
        promise = f"{outcome.large.files:,} files, {way}, processor time, p95"
        yield Verdict(promise, each.p95 / 1e3, "ms", QUERY_MS)


def markdown(title: str, facts: dict[str, str], judged_verdicts: Iterable[Verdict], outcome: Outcome) -> str:
    """The whole report."""
    large, cost = outcome.large, outcome.cost  # of the model: processor time
    costs = [
        ("import of the libraries", f"{cost.import_s:.2f} s"),
        ("load of the model", f"{cost.load_s:.2f} s"),
        ("a thousand passages of 1,000 characters", f"{cost.thousand_s:.2f} s"),
        ("a message", f"{cost.message_ms:.2f} ms"),
        ("resident memory, with the libraries", f"{cost.megabytes:.0f} MB"),
    ]
    sizes = [
        ("files, passages", f"{large.files:,}, {large.passages:,}"),
        ("index", f"{large.index_s:.1f} s"),
        ("embed", f"{large.embed_s:.1f} s"),
        ("embed again, unchanged", f"{large.again_s * 1e3:.1f} ms"),
        ("database", f"{large.megabytes:.0f} MB"),
    ]
    parts = [f"# Benchmark {title}", table(("", ""), facts.items()), "## Targets", judged(judged_verdicts)]
    parts += [f"## Quality: {outcome.passages} labelled passages", quality_table(outcome)]
    all_times = {way: each.times for way, each in outcome.ways.items()}
    processor = {way: each.processor for way, each in outcome.ways.items()}
    parts += ["Time of a query:", times(_with_processor(all_times, processor))]
    parts += ["## The model, processor time", table(("", ""), costs)]
    parts += ["## A large knowledge base, processor time", table(("", ""), sizes)]
    parts += [times(_with_processor(large.times, large.processor))]
    return "\n\n".join(parts) + "\n"


def _with_processor(all_times: dict[str, Times], processor: dict[str, Times]) -> list[tuple[str, Times]]:
    return [
        row
        for way, each in all_times.items()
        for row in ((way, each), (f"{way}, processor time", processor[way]))
    ]


def quality_table(outcome: Outcome) -> str:
    """Recall@5 and mean reciprocal rank of each way, for each kind of query."""
    kinds = list(next(iter(outcome.ways.values())).quality)
    rows = [
        (way, *(f"{each.recall:.3f} / {each.reciprocal_rank:.3f}" for each in one.quality.values()))
        for way, one in outcome.ways.items()
    ]
    return table(("recall@5 / MRR", *kinds), rows)
