"""What pytest opens for a test and closes after it; a module with a fixture of the same name uses its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_context.ledger.store import Ledger
from support.editor import Editor, editor_in
from support.ledgers import ledger_in
from support.shared import SharedHome, shared_home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SharedHome]:
    """A user's home directory, whose shared daemon ends with the test."""
    with shared_home(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger in `ledger.db`."""
    with ledger_in(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """The one editor of all tests of a module; it says goodbye, without an error, at the end."""
    with editor_in(tmp_path_factory.mktemp("editor") / "home") as opened:
        yield opened
