"""Cache in memory what usage reports of providers have taught about each family of models.

The ledger is read only if a report may have come since: from this process, or from another that has written.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.ledger.store import Ledger
    from nexus_context.tokens.correction import Correction


class CorrectionCache:
    """The corrections of all families in use. Any thread may use it: at worst one is read twice."""

    def __init__(self) -> None:
        self._written = 0
        self._corrections: dict[str, tuple[tuple[int, int], Correction]] = {}

    def get(self, ledger: "Ledger", family: str) -> "Correction":
        """Return the correction of a family, without an anchor."""
        version = ledger.version(), self._written
        cached = self._corrections.get(family)
        if cached is None or cached[0] != version:
            cached = self._corrections[family] = version, ledger.usage.correction(family)
        return cached[1]

    def wrote(self) -> None:
        """Take note that this process wrote a report."""
        self._written += 1
