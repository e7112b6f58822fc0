"""Measures how wrong our token estimates have been for each family of models, by the counts that providers
reported.

It uses the reports that also determine a family's factor (`correction`, rule 2). An error is how far the
estimate of a request is from the provider's figure, in thousandths of that figure. Each error is computed
twice: without the factor and with it.
"""

from collections.abc import Hashable, Iterable, Sequence
from statistics import median_low

import msgspec

from nexus_context.tokens.correction import UsageReport, counted_reports, deviations, learned


class DatedReport(msgspec.Struct, frozen=True):
    """A stored report with its conversation. `created` is ISO 8601 in UTC, or None if no time was stored."""

    conversation: Hashable
    report: UsageReport
    created: str | None = None


class Errors(msgspec.Struct, frozen=True):
    """The median and the ninth decile of the errors of some estimates, in thousandths of the provider's
    figures.
    """

    median: int
    ninth_decile: int


class FamilyAccuracy(msgspec.Struct, frozen=True):
    """The errors of one family of models. `factor` is in thousandths, or None if there are too few requests
    to learn one.

    `since` is when the earliest of the counted requests was reported.
    """

    family: str
    conversations: int
    requests: int
    factor: int | None
    uncorrected: Errors
    corrected: Errors
    since: str | None


def measure_accuracy(reports: Sequence[DatedReport]) -> list[FamilyAccuracy]:
    """Return the accuracy of each family, sorted by family name. `reports` must be sorted newest first."""
    families = sorted({dated.report.family for dated in reports})
    accuracies = (_accuracy(family, reports) for family in families)
    return [accuracy for accuracy in accuracies if accuracy is not None]


def _accuracy(family: str, reports: Sequence[DatedReport]) -> FamilyAccuracy | None:
    numbered = [(at, dated.report) for at, dated in enumerate(reports) if dated.report.family == family]
    pairs = [(reports[at].conversation, report) for at, report in numbered]
    counted = counted_reports(family, pairs)
    if not counted:
        return None
    factor = learned(family, pairs).factor
    identities = {id(report) for _, report in counted}
    moments = [reports[at].created for at, report in numbered if id(report) in identities]
    figures = [report for _, report in counted]
    return FamilyAccuracy(
        family,
        conversations=len({conversation for conversation, _ in counted}),
        requests=len(counted),
        factor=factor,
        uncorrected=_errors(deviations(figures, 1000)),
        corrected=_errors(deviations(figures, factor or 1000)),
        since=min((moment for moment in moments if moment is not None), default=None),
    )


def _errors(errors: Iterable[int]) -> Errors:
    ordered = sorted(errors)
    return Errors(median_low(ordered), ordered[-(-9 * len(ordered) // 10) - 1])
