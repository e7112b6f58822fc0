"""A configured model that is not in the registry: a hint at its name."""

from pathlib import Path

import pytest

from nexus_context.errors import Severity
from support.fixture import write_fixture
from support.folders import load_folder
from support.problems import fixed, rows

CONFIG = "/home/a/.nexus3/config.json"


def check(text: str, root: Path, *expected: tuple[str, str], severity: Severity = Severity.HINT) -> None:
    """The marked text of the folder's file, and the message."""
    fixture = write_fixture(f"//- {CONFIG}\n{text}\n", root)
    found = [p for p in load_folder(fixture, "/home/a").problems if p.code == "config.unknown-model"]
    assert [(marked, message) for _, marked, message in rows(fixture.text, found)] == list(expected)
    assert {problem.severity for problem in found} <= {severity}


def guessed(name: str, meant: str = "") -> str:
    hint = f'did you mean "{meant}"? Otherwise set' if meant else "set"
    return (
        f'"{name}" is not in the list of known models, so its window is taken as 128,000 tokens: {hint} '
        "models.<name>.context_window."
    )


def test_a_name_that_nobody_knows(tmp_path: Path) -> None:
    check('{"provider": {"model": "our-own"}}', tmp_path, ('"our-own"', guessed("our-own")))


def test_a_slip_of_the_pen(tmp_path: Path) -> None:
    text = '{"provider": {"name": "openai", "model": "gpt-41"}}'
    check(text, tmp_path, ('"gpt-41"', guessed("gpt-41", "gpt-4.1")), severity=Severity.INFORMATION)
    fixture = write_fixture(f"//- {CONFIG}\n{text}\n", tmp_path)
    (problem,) = load_folder(fixture, "/home/a").problems
    assert fixed(text, problem.fix) == text.replace("gpt-41", "gpt-4.1")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"provider": {"model": null}}',
        '{"provider": {"model": "gpt-4.1"}}',
        '{"provider": {"model": "anthropic/claude-opus-4.5"}}',
        '{"provider": {"model": "our-own"}, "models": {"our-own": {"context_window": 32000}}}',
        '{"provider": {"model": "our-own"}, "context": {"max_tokens": 32000}}',
    ],
)
def test_nothing_is_guessed(tmp_path: Path, text: str) -> None:
    check(text, tmp_path)


def test_limits_without_a_window_are_not_enough(tmp_path: Path) -> None:
    text = '{"provider": {"model": "our-own"}, "models": {"our-own": {"max_output": 1000}}}'
    check(text, tmp_path, ('"our-own"', guessed("our-own")))


def test_a_key_in_the_wrong_place_is_not_repeated(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 5
    check(f'{{"provider": {{"model": "{key}"}}}}', tmp_path, (f'"{key}"', guessed("*" * len(key))))


def test_the_model_in_force_counts_in_every_layer_and_state(tmp_path: Path) -> None:
    """Reported at the winning value only, not while its file is broken, and again once it is fixed."""
    fixture = write_fixture(
        """
        //- /home/.nexus3/config.json
        {"provider": {"model": "mine"}}
        //- /home/a/.nexus3/config.json
        {"provider": {"model": "ours"}}
        """,
        tmp_path,
    )
    loaded = load_folder(fixture, "/home/a")
    assert [(p.path, p.code) for p in loaded.problems] == [(fixture.path(CONFIG), "config.unknown-model")]
    states = []
    for text in (
        '{"provider": {"model": "ours"',
        '{"provider": {"model": "our"',
        '{"provider": {}}',
        '{"context": {"max_tokens": 1}',
    ):
        overlays = {CONFIG: text}
        changed = frozenset({fixture.path(CONFIG)})
        loaded = load_folder(fixture, "/home/a", overlays=overlays, previous=loaded, changed=changed)
        found = [p for p in loaded.problems if p.code == "config.unknown-model"]
        states.append([p.path.removeprefix(fixture.root) for p in found])
    assert states == [[], [], ["/home/.nexus3/config.json"], ["/home/.nexus3/config.json"]]
