"""The outcome as Markdown that also reads well in a terminal, and as JSON."""

from collections.abc import Iterable

import msgspec
from benchmarks.conversation.report import number, table
from benchmarks.conversation.speed import Times
from benchmarks.conversation.targets import Verdict
from benchmarks.ledger.runner import Outcome

HEADS = ("ms", "n", "p50", "p95", "worst")


def markdown(title: str, facts: dict[str, str], verdicts: Iterable[Verdict], outcome: Outcome) -> str:
    """The whole report."""
    rows = [
        (each.promise, "" if each.value is None else number(each.value), f"≤ {each.limit:g} ms", each.result)
        for each in verdicts
    ]
    parts = [f"# Benchmark {title}", table(("", ""), facts.items())]
    parts += ["## Targets", table(("promise", "ms", "target", "outcome"), rows)]
    parts += [
        "## Append, durable",
        _appending(outcome),
        "## Open, in a process of its own",
        _openings(outcome),
    ]
    for name, found in outcome.searches.items():
        kinds = [("all", found.all), *found.kinds.items(), ("all, in one session", found.narrowed)]
        parts += [f"## Search {found.messages:,} messages, {name}", times(kinds)]
    parts += ["## Import", _imports(outcome)]
    if (known := outcome.knowing) is not None:
        said = f"{known.files:,} files of {known.bytes / 1e6:.0f} MB indexed in {known.seconds:.1f} s; "
        said += f"looked through again, unchanged, in {known.unchanged:.2f} s."
        parts += ["## Knowledge", said, times([("query with a whole message", known.query)])]
    return "\n\n".join(parts) + "\n"


def as_json(title: str, facts: dict[str, str], verdicts: Iterable[Verdict], outcome: object) -> bytes:
    """The same for programs; times in microseconds."""
    judged = [msgspec.to_builtins(verdict) | {"result": verdict.result} for verdict in verdicts]
    whole = {"title": title, "facts": facts, "verdicts": judged, "outcome": outcome}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _appending(outcome: Outcome) -> str:
    found = outcome.appending
    if found is None:
        return "not measured"
    rows = [
        ("nexus, a turn of one message", found.ledger),
        ("nexus, a turn of four messages", found.larger),
        ("sqlite3: INSERT and COMMIT of the same text", found.bare),
        ("a file: the same bytes, fdatasync", found.file),
    ]
    ratio, floor = found.ledger.p50 / found.bare.p50, found.ledger.p50 / found.file.p50
    more = (found.ledger.mean - found.bare.mean) / 1e3
    said = f"The median turn takes {ratio:.2f} times the bare INSERT and {floor:.2f} times the bare write; "
    return times(rows) + f"\n\n{said}the mean one {more:.2f} ms more than the INSERT."


def _openings(outcome: Outcome) -> str:
    rows = []
    for name, found in outcome.openings.items():
        of = f"{name}: {found.messages:,} messages"
        rows += [(f"{of}, imports", found.imported), (f"{of}, open", found.opened)]
        rows += [(f"{of}, read", found.read), (f"{of}, read again", found.again)]
    return times(rows)


def _imports(outcome: Outcome) -> str:
    rows = [
        (
            name,
            f"{each.messages:,}",
            f"{each.messages / each.seconds:,.0f}",
            f"{each.bytes / 1e6:.1f}",
            f"{each.bytes / each.text_bytes:.2f}",
        )
        for name, each in outcome.imports.items()
    ]
    return table(("", "messages", "messages/s", "MB of the ledger", "× the text"), rows)


def times(rows: Iterable[tuple[str, Times]]) -> str:
    """Their table, in milliseconds."""
    shown = [
        (name, str(each.n), *(number(value / 1e3) for value in (each.p50, each.p95, each.worst)))
        for name, each in rows
    ]
    return table(HEADS, shown)
