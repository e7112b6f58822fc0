"""Corrects the estimated total of a request by what providers counted for earlier requests.

1. A *report* has the tokens of one request as its provider counted them, beside our estimate of the same
   request. It is dropped if the provider's figure is less than half or more than twice the estimate, because
   then it is a sum over several requests, in another unit, or false. Reports of small requests are dropped,
   too, because they say nothing.
2. The *factor* of a family of models is the median ratio of its last reports. At most PER_CONVERSATION
   reports of a conversation count, at least LEAST_REPORTS are needed, and the factor stays within FACTORS. So
   one report moves it by one place in their order, and nothing moves it past the bounds. The factor is 1 if
   the median error of these reports is smaller without it.
3. The newest report of a conversation is its *anchor*. The part of a request that was reported counts as its
   provider counted it, and the part that came after as the estimate times the factor. If less is sent than
   was reported, because messages were cut or compacted, it counts in proportion.
   If prompt and tools of the reported request are unknown here, a report of more than twice the estimate is
   an anchor, too, if it exceeds the estimate by at most UNKNOWN_PROMPT. The excess is then added to later
   requests.
4. Only totals are corrected: those that are displayed, and those that decide whether a compaction is due and
   what it keeps. Counts of messages and rows, and the budget of a cut, are never corrected. So a cut stays in
   place while factors are learned, and equal files and messages give equal requests.
5. The *error* is the median of how far the displayed totals of the last reports were off.
"""

from collections.abc import Hashable, Iterable
from statistics import median_low

import msgspec

LEAST_TOKENS = 200
"""Tokens below which a request says nothing about a factor."""

LEAST_REPORTS = 8
"""Reports from which on a factor and an error are known."""

MOST_REPORTS = 64
"""The last reports that count."""

PER_CONVERSATION = 16
"""Of these, the most of one conversation: its content must not decide alone."""

FACTORS = (750, 1500)
"""The least and the greatest factor, in thousandths."""

PLAUSIBLE = 2
"""A report counts if neither figure exceeds the other by more than this factor."""


UNKNOWN_PROMPT = 100_000
"""The most tokens that a prompt with its tools takes of which we know nothing."""


class UsageReport(msgspec.Struct, frozen=True):
    """The tokens of one request: as its provider counted them (`reported`), and as we estimated them. `shown`
    is the total that was displayed to the user.

    `anchors` is true if later requests of the conversation contain this request. It is false for an imported
    conversation, whose requests had other prompts.
    """

    family: str
    reported: int
    estimated: int
    shown: int
    anchors: bool = True

    @property
    def ratio(self) -> int:
        """The provider's figure in thousandths of the estimate."""
        return round(1000 * self.reported / self.estimated)

    @property
    def is_plausible(self) -> bool:
        """Whether the two figures can be counts of the same text (rule 1)."""
        return is_plausible(self.reported, self.estimated)

    @property
    def deviation(self) -> int:
        """How far the displayed total was from the provider's figure, in thousandths of that figure."""
        return round(1000 * abs(self.shown - self.reported) / self.reported)


class Correction(msgspec.Struct, frozen=True):
    """How totals of one family of models are corrected. `factor` and `error` are in thousandths, or None if
    they are not known.
    """

    family: str = ""
    factor: int | None = None
    error: int | None = None
    anchor: UsageReport | None = None

    def total(self, estimate: int, family: str) -> int | None:
        """Return the corrected tokens of a request whose estimate is `estimate`. Return None if nothing is
        known about `family`.

        The result is never negative, and never smaller for a larger estimate.
        """
        if family != self.family or (self.factor is None and self.anchor is None):
            return None
        estimate, anchor = max(estimate, 0), self.anchor
        factor = self.factor or 1000
        if anchor is not None and not anchor.is_plausible:
            return max(estimate * factor // 1000 + self._unknown_prompt(anchor), 0)
        counted, anchored = 0, 0
        if anchor is not None:
            counted = min(estimate, anchor.estimated)
            anchored = counted * anchor.reported // anchor.estimated
        return anchored + (estimate - counted) * factor // 1000

    def capacity(self, available: int, family: str) -> int:
        """Return how many estimated tokens fill `available` tokens as the provider counts them. The result is
        never more than `available`.
        """
        if family != self.family:
            return available
        ratio, anchor = self.factor or 1000, self.anchor
        if anchor is not None and not anchor.is_plausible:
            available = max(available - max(self._unknown_prompt(anchor), 0), 0)
        elif anchor is not None:
            ratio = anchor.ratio
        return available * 1000 // max(ratio, 1000)

    def _unknown_prompt(self, anchor: UsageReport) -> int:
        """Estimate a prompt and tools that a report's estimate does not include."""
        return anchor.reported - anchor.estimated * (self.factor or 1000) // 1000


UNCORRECTED = Correction()


def is_plausible(reported: int, estimated: int) -> bool:
    """Whether two counts can be of the same text (rule 1)."""
    return 0 < reported <= PLAUSIBLE * estimated and 0 < estimated <= PLAUSIBLE * reported


def checked_report(report: UsageReport, *, prompt_known: bool = True) -> UsageReport | None:
    """Return the report, or None if its request is too small to say anything or its figures cannot both be
    right.

    If the prompt of the request is unknown (`prompt_known` is false), rule 3 accepts a larger provider's
    figure.
    """
    excess = report.reported - report.estimated
    if not prompt_known and 0 < report.estimated < excess <= UNKNOWN_PROMPT:
        return report
    if report.estimated < LEAST_TOKENS or not is_plausible(report.reported, report.estimated):
        return None
    return report


def learned(family: str, reports: Iterable[tuple[Hashable, UsageReport]]) -> Correction:
    """Learn the correction of a family from reports, each with its conversation. The reports must be sorted
    newest first.
    """
    counted = [report for _, report in counted_reports(family, reports)]
    if len(counted) < LEAST_REPORTS:
        return Correction(family)
    smallest, largest = FACTORS
    factor = min(max(median_low(report.ratio for report in counted), smallest), largest)
    deviation_before, deviation_after = (
        median_low(deviations(counted, tried_factor)) for tried_factor in (1000, factor)
    )
    if deviation_after > deviation_before:
        factor = 1000
    return Correction(family, factor, median_low(report.deviation for report in counted))


def counted_reports(
    family: str, reports: Iterable[tuple[Hashable, UsageReport]]
) -> list[tuple[Hashable, UsageReport]]:
    """Return the reports of a family that count by rule 2, each with its conversation. Input and result are
    sorted newest first.
    """
    counts: dict[Hashable, int] = {}
    counted: list[tuple[Hashable, UsageReport]] = []
    for conversation, report in reports:
        if len(counted) == MOST_REPORTS:
            break
        if checked_report(report) is None or report.family != family:
            continue
        counts[conversation] = counts.get(conversation, 0) + 1
        if counts[conversation] <= PER_CONVERSATION:
            counted.append((conversation, report))
    return counted


def deviations(reports: Iterable[UsageReport], factor: int) -> list[int]:
    """Return how far each estimate times `factor` is from the provider's figure. Both `factor` and the
    results are in thousandths.
    """
    return [
        round(1000 * abs(report.estimated * factor // 1000 - report.reported) / report.reported)
        for report in reports
    ]
