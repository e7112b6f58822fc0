"""Totals corrected by what providers counted: the rules, and what lies cannot do."""

from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.tokens.correction import (
    FACTORS,
    LEAST_REPORTS,
    MOST_REPORTS,
    PER_CONVERSATION,
    UNCORRECTED,
    Correction,
    UsageReport,
    checked_report,
    counted_reports,
    deviations,
    learned,
)


def report(reported: int, estimated: int = 1000, shown: int | None = None) -> UsageReport:
    shown = estimated if shown is None else shown
    return UsageReport("claude", reported=reported, estimated=estimated, shown=shown)


def check(*figures: int, conversations: int = 100) -> tuple[int | None, int | None]:
    """The factor and the error after reports of these figures for an estimate of 1,000, the newest first."""
    correction = learned("claude", [(at % conversations, report(one)) for at, one in enumerate(figures)])
    return correction.factor, correction.error


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((), (None, None)),
        ((1100,) * (LEAST_REPORTS - 1), (None, None)),
        ((1100,) * LEAST_REPORTS, (1100, 91)),
        ((1000,) * 20, (1000, 0)),
        ((1000, 1200) * 10, (1000, 0)),
        ((900, 1000, 1050, 1100, 1100, 1150, 1300, 1999), (1100, 91)),
        ((1990,) * 20, (1500, 497)),  # the bound
        ((510,) * 20, (750, 961)),
        ((10_000, 0, -5, 100, 499, 2001) * 20, (None, None)),  # none can be true
        ((10_000, 0, -5, 100) * 5 + (1100,) * 8, (1100, 91)),
        ((1100,) * 8 + (1900,) * 7, (1100, 91)),  # a minority of lies
        ((1100,) * MOST_REPORTS + (1900,) * 500, (1100, 91)),  # only the newest count
    ],
)
def test_factor_and_error(figures: tuple[int, ...], expected: tuple[int | None, int | None]) -> None:
    assert check(*figures) == expected


def test_a_report_beside_an_unknown_prompt_is_an_anchor_and_teaches_no_factor() -> None:
    beside = report(21_000)
    correction = Correction("claude", anchor=beside)
    assert [correction.total(estimate, "claude") for estimate in (0, 500, 1_000, 3_000)] == [
        20_000,
        20_500,
        21_000,
        23_000,
    ]
    assert (correction.capacity(100_000, "claude"), correction.capacity(15_000, "claude")) == (80_000, 0)
    assert learned("claude", [(at, beside) for at in range(20)]).factor is None
    assert checked_report(beside) is None
    assert checked_report(beside, prompt_known=False) is beside


def test_one_conversation_does_not_decide_alone() -> None:
    lies = [("long", report(1900))] * 200
    others = [(at, report(1100)) for at in range(PER_CONVERSATION + 1)]
    assert learned("claude", [*lies, *others]).factor == 1100
    assert learned("claude", lies).factor == 1500


def test_reports_of_other_families_and_of_small_requests_do_not_count() -> None:
    small = [(at, report(150, 100)) for at in range(50)]
    other = [(at, UsageReport("gemini", reported=1500, estimated=1000, shown=1000)) for at in range(50)]
    assert learned("claude", [*small, *other]) == Correction("claude")


@pytest.mark.parametrize(
    ("figures", "counts"),
    [
        ((2000, 1000), True),
        ((2001, 1000), False),
        ((500, 1000), True),
        ((499, 1000), False),
        ((0, 1000), False),
        ((-1000, 1000), False),
        ((1000, 0), False),
        ((200, 200), True),
        ((199, 199), False),
    ],
)
def test_only_plausible_reports_count(figures: tuple[int, int], counts: bool) -> None:
    assert (checked_report(report(*figures)) is not None) == counts


ANCHOR = report(1200)


@pytest.mark.parametrize(
    ("correction", "estimate", "total"),
    [
        (UNCORRECTED, 1000, None),
        (Correction("claude"), 1000, None),
        (Correction("gemini", 1100), 1000, None),
        (Correction("claude", 1100), 1000, 1100),
        (Correction("claude", 1100), 0, 0),
        (Correction("claude", 1100), -5, 0),
        (Correction("claude", None, None, ANCHOR), 1000, 1200),  # exactly what the provider counted
        (Correction("claude", None, None, ANCHOR), 1500, 1700),  # and an estimate of what came after
        (Correction("claude", 1100, None, ANCHOR), 1500, 1750),
        (Correction("claude", 1100, None, ANCHOR), 500, 600),  # half of it was cut
    ],
)
def test_totals(correction: Correction, estimate: int, total: int | None) -> None:
    assert correction.total(estimate, "claude") == total


@pytest.mark.parametrize(
    ("correction", "capacity"),
    [
        (UNCORRECTED, 1200),
        (Correction("claude"), 1200),
        (Correction("gemini", 1500), 1200),
        (Correction("claude", 1500), 800),
        (Correction("claude", 800), 1200),  # an estimate that is too high is no reason to send more
        (Correction("claude", 1500, None, ANCHOR), 1000),
    ],
)
def test_capacity(correction: Correction, capacity: int) -> None:
    assert correction.capacity(1200, "claude") == capacity


FIGURES = st.integers(-10, 5000)
REPORTS = st.builds(report, FIGURES, FIGURES, FIGURES)
PAIRS = st.tuples(st.integers(0, 5), REPORTS)


@given(st.lists(PAIRS, max_size=120))
def test_nothing_moves_a_factor_past_its_bounds(reports: list[tuple[int, UsageReport]]) -> None:
    factor = learned("claude", reports).factor
    assert factor is None or FACTORS[0] <= factor <= FACTORS[1]


@given(st.lists(st.integers(900, 1300), min_size=LEAST_REPORTS, max_size=MOST_REPORTS - 1), REPORTS)
def test_a_report_moves_a_factor_by_one_place_at_most(ratios: list[int], lie: UsageReport) -> None:
    honest = [(at, report(one)) for at, one in enumerate(ratios)]
    before, after = learned("claude", honest).factor, learned("claude", [("lie", lie), *honest]).factor
    assert before is not None
    assert after is not None
    ordered = sorted({*ratios, before, lie.ratio if checked_report(lie) else before})
    places = abs(ordered.index(before) - ordered.index(after)) if after in ordered else 0
    assert places <= 1 or 1000 in (before, after)
    assert after in (*ordered, *FACTORS, 1000)


@given(st.lists(PAIRS, min_size=LEAST_REPORTS, max_size=120))
def test_a_factor_never_makes_the_median_error_of_its_reports_worse(
    reports: list[tuple[int, UsageReport]],
) -> None:
    factor = learned("claude", reports).factor
    counted = [each for _, each in counted_reports("claude", reports)]
    if factor is not None:
        assert median_low(deviations(counted, factor)) <= median_low(deviations(counted, 1000))


def test_a_factor_that_would_make_it_worse_is_none() -> None:
    figures = (600, 600, 700, 700, 1000, 1000, 1000, 1000)
    assert check(*figures) == (1000, 0)


CORRECTIONS = st.builds(
    Correction,
    st.just("claude"),
    st.none() | st.integers(*FACTORS),
    st.none(),
    st.none() | REPORTS.filter(lambda one: checked_report(one) is not None),
)


@given(CORRECTIONS, st.integers(-100, 10_000), st.integers(0, 1000))
def test_totals_are_never_negative_and_never_fall(correction: Correction, estimate: int, more: int) -> None:
    total, larger = correction.total(estimate, "claude"), correction.total(estimate + more, "claude")
    if total is not None and larger is not None:
        assert 0 <= total <= larger
        assert total <= 2 * max(estimate, 0)
