"""Each page of docs/ says what to type first, and names tests that exist; all pages together stay short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "protocol.md")
TOP_LINES = 30
MOST_WORDS = 41_000  # of all pages but the protocol's
COMMAND = re.compile(r"^(?: {4}|\$ )(?:nexus|pip|\.venv/bin/\w+|make) |`(?:nexus|make)\b", re.MULTILINE)
TEST_PATH = re.compile(r"`((?:tests/[\w/]+|test_\w+)(?:\.py)?)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_a_page_begins_with_what_to_type_and_how_it_was_verified(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    top = "\n".join(text.splitlines()[:TOP_LINES])
    assert COMMAND.search(top)
    verified = re.search(r"[Vv]erified|holds this page", text)
    assert verified is not None
    names = TEST_PATH.findall(text)
    assert names, "no test is named"
    assert [name for name in names if not exists(name)] == []


def exists(name: str) -> bool:
    """Whether a test's path, or the bare name of its file, is that of a file or directory."""
    return (ROOT / name).exists() or any((ROOT / "tests").rglob(name))


def test_a_test_that_does_not_exist_is_noticed() -> None:
    assert exists("tests/test_pages.py")
    assert exists("test_pages.py")
    assert not exists("tests/test_of_nothing.py")
    assert not exists("test_of_nothing.py")


def test_all_pages_together_are_short() -> None:
    pages = [*PAGES, *(ROOT / "docs/adr").glob("*.md")]
    pages += [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MOST_WORDS
