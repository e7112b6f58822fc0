"""`--fuzz` (`make fuzz`): a small suite in a process of its own, what its tests draw, and what is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

SUITE = """
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

def draw(name, value):
    with open(name + ".draws", "a") as file:
        print(value, file=file)

@pytest.mark.parametrize("name", ["one", "two"])
@settings(max_examples=7)
@given(st.integers())
def test_parameters(name, number):
    draw(name, number)

@given(st.integers(), st.integers())
def test_default(one, other):
    draw("default", (one, other))

class TestClass:
    @given(st.lists(st.integers()))
    def test_that_fails(self, numbers):
        draw("failing", numbers)
        assert len(numbers) < 3

@given(st.just(1))
def test_last(number):
    draw("last", number)

def test_without_a_property():
    draw("other", 1)
"""


PLUGINS = ("xdist", "pytest_timeout", "hypothesis.extra.pytestplugin", "support.fuzzing")


def run(folder: Path, *options: str, **variables: str) -> tuple[str, dict[str, list[str]]]:
    """What a run of the suite prints, and the values that its tests drew."""
    for path in folder.glob("*.draws"):
        path.unlink()
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 60\n")
    environ = {name: value for name, value in os.environ.items() if name != "CI"} | variables
    environ |= {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = [word for name in PLUGINS for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", *plugins, *options]
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    draws = {path.stem: path.read_text().splitlines() for path in folder.glob("*.draws")}
    return f"{ended.stdout}\n{ended.stderr}\nexit {ended.returncode}", draws


def test_more_examples_and_what_reproduces_a_failure(tmp_path: Path) -> None:
    printed, draws = run(tmp_path, "--fuzz", "3")
    assert printed.endswith("exit 1"), printed
    assert "@reproduce_failure(" in printed
    first_failing = draws.pop("failing")[0]
    counts = {name: len(values) for name, values in draws.items()}
    assert counts == {"one": 21, "two": 21, "default": 300, "last": 1}
    command = re.search(r"^python -m pytest -n0 '(.+)'$", printed, re.MULTILINE)
    assert command is not None, printed
    assert command[1] == "test_suite.py::TestClass::test_that_fails"
    _, replayed = run(tmp_path, command[1])
    assert replayed["failing"][0] == "[0, 0, 0]" != first_failing


def test_each_run_draws_anew_and_a_seed_draws_the_same_again(tmp_path: Path) -> None:
    options = ("test_suite.py::test_default", "--fuzz", "3")
    printed, draws = run(tmp_path, *options, "-n1", CI="true")
    seed = re.search(r"^fuzz: 3 times the examples, SEED=(\d+)$", printed, re.MULTILINE)
    assert seed is not None, printed
    assert run(tmp_path, *options, "--fuzz-seed", seed[1])[1] == draws
    assert run(tmp_path, *options, CI="true")[1] != draws
