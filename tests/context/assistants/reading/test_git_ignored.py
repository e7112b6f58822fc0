"""Ignore files that are not as git wants them: the other lines count, and nothing takes long."""

import time

import pytest

from nexus_context.assistants.reading.git_ignored import read_patterns


@pytest.mark.parametrize("line", ["!", "\\", "[", "//", "*a" * 40, "**/" * 500 + "["])
def test_a_line_that_is_no_pattern(line: str) -> None:
    start = time.thread_time()
    patterns = read_patterns(f"{line}\nsecret.txt\n")
    assert patterns.check_file("secret.txt").include
    assert not patterns.check_file("a" * 200 + "c").include
    assert time.thread_time() - start < 2
