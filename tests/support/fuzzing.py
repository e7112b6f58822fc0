"""`make fuzz`: the property tests alone, with a multiple of their own examples, drawn anew each time.

1. `--fuzz TIMES` selects the tests with `@given`. Each gets TIMES as many examples and TIMES as much time.
2. No example of an earlier run is tried first, and CI's fixed draws do not apply. The run draws a seed unless
   `--fuzz-seed` gives it: a test draws the same from it as long as the same modules are imported.
3. Hypothesis saves the example that fails: the printed command tries it first. For another machine it prints
   `@reproduce_failure`. (With `--hypothesis-seed` it would save nothing.)
"""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, seed, settings

_SETTINGS = "_hypothesis_internal_use_settings"  # where @settings keeps them


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fuzz` and `--fuzz-seed`."""
    about = "run only property tests, each with TIMES its examples"
    parser.addoption("--fuzz", type=int, metavar="TIMES", help=about)
    parser.addoption("--fuzz-seed", type=int, metavar="SEED", help="draw what a run with this seed drew")


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed of a run; a worker has it from its controller."""
    if config.option.fuzz_seed is None:
        drawn = random.SystemRandom().getrandbits(32)
        config.option.fuzz_seed = getattr(config, "workerinput", {}).get("fuzz_seed", drawn)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker the seed."""
    node.workerinput["fuzz_seed"] = node.config.option.fuzz_seed


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the seed before the tests, since an interrupted run has no summary."""
    if not config.option.fuzz:
        return None
    return f"fuzz: {config.option.fuzz} times the examples, SEED={config.option.fuzz_seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the property tests, and multiply their examples and their time."""
    times = config.option.fuzz
    if not times:
        return
    tests: dict[pytest.Item, Any] = {item: getattr(item, "obj", None) for item in items}
    properties = [item for item, test in tests.items() if is_hypothesis_test(test)]
    for item in properties:
        item.add_marker(pytest.mark.timeout(times * float(config.getini("timeout"))))
    # items of one function with several parameters share its settings
    for function in {getattr(tests[item], "__func__", tests[item]) for item in properties}:
        own = getattr(function, _SETTINGS, None) or settings()
        seed(config.option.fuzz_seed)(function)  # it also sets that nothing is saved
        setattr(function, _SETTINGS, _multiplied(own, times))
    config.hook.pytest_deselected(items=[item for item in items if not is_hypothesis_test(tests[item])])
    items[:] = properties


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print a command for each failure."""
    failures = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    if not config.option.fuzz or not failures:
        return
    terminalreporter.section("reproduce")
    for nodeid in dict.fromkeys(report.nodeid for report in failures):
        terminalreporter.line(f"python -m pytest -n0 '{nodeid}'")
    terminalreporter.line("On another machine use the @reproduce_failure above.")
    terminalreporter.line(
        f"SEED={config.option.fuzz_seed} added to the command of this run draws the same again."
    )


def _multiplied(own: settings, times: int) -> settings:
    return settings(
        own,
        max_examples=own.max_examples * times,
        derandomize=False,
        phases=[phase for phase in own.phases if phase is not Phase.reuse],
        print_blob=True,
        suppress_health_check={*own.suppress_health_check, HealthCheck.too_slow},  # a busy machine is no bug
    )
