"""Runs `nexus tokens --accuracy`, which tells how wrong our counts of requests have been."""

import argparse
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from nexus_context.conversation.reported_usage import LEAST_GROWTH
from nexus_context.ledger.errors import LedgerError
from nexus_context.text.visible import visible_line
from nexus_context.tokens.accuracy import Errors, FamilyAccuracy, measure_accuracy
from nexus_daemon.cli import output
from nexus_daemon.cli.open_session import ledger_for, load_folder

DEFAULT_FAMILY = "others"
UNKNOWN = "–"


def run(options: argparse.Namespace) -> int:
    """Print the accuracy for each family of models; return the exit code."""
    try:
        with ledger_for(load_folder(".")) as ledger:
            accuracies = measure_accuracy(ledger.usage.reports())
    except LedgerError as error:
        output.complain("tokens", str(error))
        return 1
    if options.json:
        output.json_value({"families": [_values(accuracy) for accuracy in accuracies]})
    elif accuracies:
        _print(accuracies)
    else:
        output.line(
            "No request can be compared with a provider's count yet. Sessions of Claude Code, Codex and "
            f"opencode that nexus sessions keep reads count once they have grown by {LEAST_GROWTH:,} tokens."
        )
    return 0


def _print(accuracies: Sequence[FamilyAccuracy]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("models", style="bold", no_wrap=True)
    names = ("samples", "factor", "error", "p90", "corrected", "p90")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("since", no_wrap=True)
    for accuracy in accuracies:
        factor = UNKNOWN if accuracy.factor is None else f"{accuracy.factor / 1000:.2f}"
        errors = (
            (accuracy.uncorrected,) if accuracy.factor is None else (accuracy.uncorrected, accuracy.corrected)
        )
        shares = [
            f"{error / 10:.1f}%"
            for distribution in errors
            for error in (distribution.median, distribution.ninth_decile)
        ]
        since = UNKNOWN if accuracy.since is None else output.local_time(accuracy.since)[:10]
        figures = (f"{accuracy.conversations:,}/{accuracy.requests:,}", factor, *shares)
        padding = [UNKNOWN] * (len(names) - len(figures))
        table.add_row(visible_line(accuracy.family or DEFAULT_FAMILY), *figures, *padding, since)
    output.console().print(table)


def _values(accuracy: FamilyAccuracy) -> dict[str, Any]:
    return {
        "family": accuracy.family,
        "conversations": accuracy.conversations,
        "requests": accuracy.requests,
        "factor": None if accuracy.factor is None else accuracy.factor / 1000,
        "uncorrected": _percents(accuracy.uncorrected),
        "corrected": _percents(accuracy.corrected),
        "since": accuracy.since,
    }


def _percents(errors: Errors) -> dict[str, float]:
    return {"medianPercent": errors.median / 10, "p90Percent": errors.ninth_decile / 10}
