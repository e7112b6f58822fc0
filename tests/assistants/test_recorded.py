"""The profiles agree with what the real programs sent: `make test-assistants` recorded it in `recorded.json`.

A text longer than `agreement.LONGEST` is recorded as its digest. Where a program reads a directory in the
order in which the file system has it, the order of files is not compared here.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from assistants.agreement import (
    NEAR,
    Record,
    extract_of,
    is_near,
    profile_of,
    record,
    unordered,
    write_folder,
)
from assistants.cases import CASES, Case
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.tokens import counter_for

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
RUNS = [
    pytest.param(program, case, id=f"{program}: {case.name}") for case in CASES for program in case.programs
]


def check(program: str, case: Case, root: Path) -> tuple[Any, Any]:
    """What the program sent, and what its profile says."""
    write_folder(program, case, root)
    predicted = record(extract_of(profile_of(program, case, root)), root)
    real = Record(**RECORDED[program]["records"][case.name])._replace(unexplained=[], tokens=None)
    return (unordered(real), unordered(predicted)) if case.as_stored else (real, predicted)


@pytest.mark.parametrize(("program", "case"), RUNS)
def test_a_profile_agrees_with_the_program(program: str, case: Case, tmp_path: Path) -> None:
    real, predicted = check(program, case, tmp_path.resolve())
    assert predicted == real


@pytest.mark.parametrize("program", RECORDED)
def test_the_own_prompt_and_tools_of_a_program_are_counted(program: str) -> None:
    claimed = PROGRAMS[program].instructions.assistant.own_tokens or 0
    assert claimed == pytest.approx(RECORDED[program]["own_tokens_at_terminal"], rel=NEAR)


@pytest.mark.parametrize(("program", "case"), RUNS)
def test_every_request_costs_what_the_profile_says(program: str, case: Case, tmp_path: Path) -> None:
    tokens = RECORDED[program]["records"][case.name]["tokens"]
    write_folder(program, case, tmp_path)
    profile = profile_of(program, case, tmp_path, RECORDED[program]["own_tokens"])
    if tokens is None:
        assert profile.request_tokens is None
    else:  # paths are longer here than where it was recorded
        assert is_near(tokens, profile, within=2 * NEAR)


def test_the_cost_of_nearly_every_request_is_claimed() -> None:
    assert [name for name, result in RECORDED.items() if result["claimed"] < 0.85 * result["cases"]] == []


@pytest.mark.parametrize(("program", "case"), RUNS)
def test_tokens_of_parts_sum_to_the_count_of_their_block(program: str, case: Case, tmp_path: Path) -> None:
    write_folder(program, case, tmp_path)
    profile = profile_of(program, case, tmp_path)
    counter = counter_for(profile.assistant.model)
    sums = [sum(part.tokens for part in block.parts) for block in profile.blocks]
    assert sums == [counter.count(block.text) for block in profile.blocks]
    assert sum(sums) == profile.total


def test_no_request_holds_a_text_of_the_folder_that_nothing_explains() -> None:
    lines = {
        (program, name): record["unexplained"]
        for program, result in RECORDED.items()
        for name, record in result["records"].items()
        if record["unexplained"]
    }
    assert lines == {}


def test_every_program_agrees_in_25_cases_or_more() -> None:
    assert {
        name: (result["cases"] >= 25, result["cases"] - result["agreements"])
        for name, result in RECORDED.items()
    } == {"claude-code": (True, 0), "codex": (True, 0), "opencode": (True, 0), "gemini": (True, 0)}
