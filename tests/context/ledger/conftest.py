"""The contract of a ledger is tested with every engine: a new one is added to `support.ledgers.ENGINES`."""

from collections.abc import Iterator

import pytest

from nexus_context.ledger.store import Ledger
from support.ledgers import ENGINES


@pytest.fixture(params=ENGINES)
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """An empty ledger of an engine."""
    with ENGINES[request.param]() as made:
        yield made
