"""CONTRIBUTING.md: its walk finds what it says, `make` lists every target, and no cell of a table is long."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PARTS_OF_TARGETS = {"help", "mypy", "pyright"}


def test_the_sentence_of_the_walk_is_where_the_walk_says() -> None:
    program = re.findall(r"`(context/[\w/]+\.py)`", PAGE)
    tests = re.findall(r"tests/[\w/]+/test_\w+\.py", PAGE.partition("\n## Find your way")[0])
    (sentence,) = re.findall(r"`git grep -n '([^']+)' context tests`", PAGE)
    assert len(program) == 1
    assert len(tests) == 2
    for path in (*program, *tests):
        assert (ROOT / path).read_text(encoding="utf-8").count(sentence) == 1, path
    sources = [
        str(path.relative_to(ROOT))
        for package in ("context", "daemon")
        for path in (ROOT / package).rglob("*.py")
        if sentence in path.read_text(encoding="utf-8")
    ]
    assert sources == program


def test_make_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    _, _, phony = makefile.partition("\n.PHONY: ")
    targets = set(phony.partition("\n")[0].split()) - PARTS_OF_TARGETS
    printed = subprocess.run(
        ["make"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=30
    ).stdout
    assert set(re.findall(r"^make (\S+) +\S", printed, re.MULTILINE)) == targets


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_no_cell_of_a_table_is_long(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    cells = [cell for line in lines if line.startswith("|") for cell in line.split(" | ")]
    assert [cell for cell in cells if len(cell.split()) > 30] == []
