"""JSONTestSuite (nst/JSONTestSuite, MIT), where its files are present: NEXUS_CORPORA or ../shared/data."""

import os
import time
from pathlib import Path

import pytest

from nexus_context.disk.files import decode
from nexus_context.errors import Severity
from nexus_context.text.json import parse

LONGEST_S = 0.2

CORPORA = Path(os.environ.get("NEXUS_CORPORA") or Path(__file__).parents[5] / "shared" / "data")
FILES = sorted((CORPORA / "JSONTestSuite" / "test_parsing").glob("*.json"))


def check(file: Path) -> bool:
    """Whether reading a file, from bytes to value, meets no error; within the time allowed."""
    data = file.read_bytes()
    started = time.process_time()
    read = decode(str(file), data)
    document = parse(str(file), read.text or "")
    assert time.process_time() - started < LONGEST_S
    return all(each.severity is not Severity.ERROR for each in (*read.problems, *document.problems))


if FILES:

    @pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
    def test_file(file: Path) -> None:
        valid = check(file)
        if file.name.startswith("y_"):
            assert valid
        elif file.name.startswith("n_"):
            assert not valid
