"""How wrong our counts have been, by family of models."""

from hypothesis import given
from hypothesis import strategies as st

from nexus_context.tokens.accuracy import DatedReport, Errors, FamilyAccuracy, measure_accuracy
from nexus_context.tokens.correction import UsageReport


def report(
    reported: int, *, conversation: object = 0, family: str = "claude", day: int | None = 1
) -> DatedReport:
    figures = UsageReport(family, reported=reported, estimated=1000, shown=1000)
    return DatedReport(conversation, figures, None if day is None else f"2026-11-{day:02}T10:00:00.000Z")


def test_the_errors_with_and_without_a_factor() -> None:
    reports = [report(1250, conversation=at // 2, day=20 - at) for at in range(10)]
    assert measure_accuracy(reports) == [
        FamilyAccuracy(
            "claude",
            conversations=5,
            requests=10,
            factor=1250,
            uncorrected=Errors(200, 200),
            corrected=Errors(0, 0),
            since="2026-11-11T10:00:00.000Z",
        )
    ]


def test_nine_of_ten_are_below_the_ninth_decile() -> None:
    (accuracy,) = measure_accuracy([report(1000 + 20 * at, conversation=at) for at in range(10)])
    assert accuracy.uncorrected == Errors(74, 138)
    assert accuracy.corrected == Errors(38, 80)


def test_too_few_have_errors_but_no_factor() -> None:
    (accuracy,) = measure_accuracy([report(1250), report(1250, day=None)])
    assert (accuracy.factor, accuracy.requests, accuracy.since) == (None, 2, "2026-11-01T10:00:00.000Z")
    assert accuracy.uncorrected == accuracy.corrected == Errors(200, 200)
    assert measure_accuracy([report(1250, day=None)])[0].since is None


def test_families_are_apart_and_what_does_not_count_is_left() -> None:
    accuracies = measure_accuracy(
        [report(1250), report(1100, family="gpt-4o"), report(90_000, family="lies")]
    )
    assert [(one.family, one.requests) for one in accuracies] == [("claude", 1), ("gpt-4o", 1)]
    assert measure_accuracy([]) == []


REPORTS = st.builds(report, st.integers(0, 2500), conversation=st.integers(0, 9), day=st.integers(1, 28))


@given(st.lists(REPORTS, max_size=100))
def test_the_correction_never_makes_the_median_worse(reports: list[DatedReport]) -> None:
    for accuracy in measure_accuracy(reports):
        assert accuracy.corrected.median <= accuracy.uncorrected.median
        assert accuracy.conversations <= accuracy.requests <= 64
