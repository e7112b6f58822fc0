"""Front matter and globs are read as the real programs read them, by what they did with `spellings.jsonl`."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from assistants import spelling_runs

ROWS: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
for _row in spelling_runs.rows():
    ROWS[_row["program"], _row["kind"]].append(_row)


def real(row: dict[str, Any]) -> Any:
    """What a program did, as far as a profile says it: of a rule whether it follows later."""
    if row["kind"] != "paths" or row["sent"] == "always":
        return row["sent"]
    return "later" if row["sent"] else "never"


@pytest.mark.parametrize("which", ROWS, ids="-".join)
def test_the_spellings_are_read_as_the_program_reads_them(which: tuple[str, str], tmp_path: Path) -> None:
    rows = ROWS[which]
    texts = [row["text"] for row in rows]
    predicted = spelling_runs.predicted_results(*which, texts, tmp_path.resolve())
    assert dict(zip(texts, predicted, strict=True)) == {row["text"]: real(row) for row in rows}


def test_there_are_40_spellings_of_each_kind() -> None:
    assert {which: len(rows) for which, rows in ROWS.items() if len(rows) < 40} == {}
