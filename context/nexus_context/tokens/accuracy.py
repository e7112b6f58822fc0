"""How wrong our counts have been for each family of models, by what providers counted.

The same reports count as for the factor of a family (`correction`, rule 2). An error is that of the estimate
of a request, in thousandths of the provider's figure: as it is, and times the factor.
"""

from collections.abc import Hashable, Iterable, Sequence
from statistics import median_low

import msgspec

from nexus_context.tokens.correction import UsageReport, counted_reports, deviations, learned


class DatedReport(msgspec.Struct, frozen=True):
    """A stored report with its conversation. `created`: ISO 8601, UTC; None where nobody noted it."""

    conversation: Hashable
    report: UsageReport
    created: str | None = None


class Errors(msgspec.Struct, frozen=True):
    """The errors of some estimates, in thousandths: half of them, and nine of ten, are at most that."""

    median: int
    ninth_decile: int


class FamilyAccuracy(msgspec.Struct, frozen=True):
    """The errors of one family. `factor` is in thousandths; None: there are too few requests to know one.

    `since` is when the first of the requests was reported.
    """

    family: str
    conversations: int
    requests: int
    factor: int | None
    uncorrected: Errors
    corrected: Errors
    since: str | None


def measure_accuracy(reports: Sequence[DatedReport]) -> list[FamilyAccuracy]:
    """The accuracy for each family, by name; `reports` are the newest first."""
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
