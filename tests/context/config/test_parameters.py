"""Model parameters: whose value wins, its origin, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.config import parameters
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
    found = parameters.resolve(effective, request=requested)
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


def layered(root: Path, **layers: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    """The values from several layers."""
    effective = load_folder(write_fixture(FIXTURE, root), "/home/a").effective
    return {name: (one.value, one.origin) for name, one in parameters.resolve(effective, **layers).items()}


def test_request_over_session_over_agent_over_system(tmp_path: Path) -> None:
    found = layered(
        tmp_path,
        agent={"temperature": 0.3, "top_p": 0.6, "top_k": 5, "max_tokens": 1},
        session={"temperature": 0.4, "top_p": 0.7, "max_tokens": 2},
        request={"temperature": 0.5, "max_tokens": 3},
    )
    assert found == {
        "temperature": (0.5, "request"),
        "max_tokens": (3, "request"),
        "top_p": (0.7, "session"),
        "top_k": (5, "agent"),
        "thinking": ({"level": "low"}, "local"),
    }


def test_a_null_leaves_a_parameter_to_the_others(tmp_path: Path) -> None:
    found = layered(tmp_path, agent={"top_k": 5}, session={"top_k": None}, request={"temperature": None})
    assert (found["top_k"], found["temperature"]) == ((5, "agent"), (0.2, "local"))


@pytest.mark.parametrize("layer", ["agent", "session", "request"])
def test_what_is_out_of_range_is_named_with_its_layer(tmp_path: Path, layer: str) -> None:
    with pytest.raises(RequestError, match=f"temperature of the {layer}") as failed:
        layered(tmp_path, **{layer: {"temperature": 2.5}})
    assert failed.value.code == "bad-parameter"
