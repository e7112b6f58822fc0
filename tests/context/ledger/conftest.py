"""The contract of a ledger is tested with every engine: a new one is added to `support.ledgers.ENGINES`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_context.ledger.store import Ledger
from support.ledgers import ENGINES


@pytest.fixture(params=ENGINES)
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """An empty ledger of an engine."""
    with ENGINES[request.param]() as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger of a user with a state directory is, which nobody has opened."""
    return tmp_path / "state" / "ledger.db"
