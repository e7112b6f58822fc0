"""Model parameters: whose value wins, where it comes from, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context import parameters
from nexus_context.errors import RequestError
from support.fixture import write_fixture
from support.folders import load_folder

FIXTURE = """
//- /home/.nexus3/config.json
{"parameters": {"temperature": 0.1, "top_p": 0.5}}
//- /home/a/.nexus3/config.json
{"parameters": {"temperature": 0.2, "thinking": {"level": "low"}}}
"""


def check(root: Path, requested: dict[str, Any], expected: dict[str, tuple[Any, str]]) -> None:
    """Each parameter's value and origin, for a request in /home/a."""
    effective = load_folder(write_fixture(FIXTURE, root), "/home/a").effective
    found = parameters.resolve(effective, requested)
    assert {name: (one.value, one.origin) for name, one in found.items()} == expected


def test_the_nearest_value_wins(tmp_path: Path) -> None:
    configured = {
        "temperature": (0.2, "local"),
        "top_p": (0.5, "global"),
        "thinking": ({"level": "low"}, "local"),
    }
    check(tmp_path, {}, configured)
    check(tmp_path, {"temperature": 1}, {**configured, "temperature": (1, "request")})
    check(tmp_path, {"max_tokens": 5}, {**configured, "max_tokens": (5, "request")})


@pytest.mark.parametrize(
    "requested",
    [
        {"thinking/level": "high"},
        {"thinking~1level": "high"},
        {"thinking": {"level": "hard"}},
        {"../provider/model": "x"},
        {"": {}},
        {"temperature/": 1},
        {"temprature": 1},
        {"top_k": 0},
    ],
)
def test_a_name_is_one_step_and_a_value_in_range(tmp_path: Path, requested: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as failed:
        check(tmp_path, requested, {})
    assert failed.value.code == "bad-parameter"
    assert next(iter(requested)) in str(failed.value)
