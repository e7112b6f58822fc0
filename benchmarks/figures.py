"""The figures of a run: series of values by measure and lane, and the lanes that could not be measured."""

import statistics
from collections.abc import Callable

import msgspec
from benchmarks.lsp_client import ServerError


class Series(msgspec.Struct, frozen=True):
    """The values of one lane in one measure, in the order they were taken. `unit` is ms or MB."""

    measure: str
    lane: str
    unit: str
    values: tuple[float, ...]

    @property
    def p50(self) -> float:
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """The nearest-rank 95th percentile."""
        return sorted(self.values)[-(-len(self.values) * 95 // 100) - 1]


class Failure(msgspec.Struct, frozen=True):
    """A lane that could not be measured, and why. `measure` is the head of the names that it lacks."""

    measure: str
    lane: str
    reason: str


class Figures:
    """Collects the figures of one run. A lane that fails drops out of that measure; the others go on."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._values: dict[tuple[str, str, str], list[float]] = {}

    def add(self, measure: str, lane: str, value: float, unit: str = "ms") -> None:
        """Records one value."""
        self._values.setdefault((measure, lane, unit), []).append(value)

    def attempt(self, measure: str, lane: str, step: Callable[[], None]) -> None:
        """Runs one step of a lane; does nothing once that lane failed in that measure."""
        if self.failed(measure, lane):
            return
        try:
            step()
        except (ServerError, TimeoutError, OSError) as error:
            self.failures.append(Failure(measure, lane, str(error) or type(error).__name__))

    def failed(self, measure: str, lane: str) -> bool:
        """Whether that lane failed in that measure."""
        return any(measure.startswith(failure.measure) and lane == failure.lane for failure in self.failures)

    def series(self) -> tuple[Series, ...]:
        """Everything measured, without the lanes that failed on the way."""
        found = (Series(measure, lane, unit, tuple(v)) for (measure, lane, unit), v in self._values.items())
        return tuple(item for item in found if not self.failed(item.measure, item.lane))
