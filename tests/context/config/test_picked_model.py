"""The model that the user picked in the editor, over the settings: what counts, and that all of it agrees."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.config.picked_model import ModelChoice
from nexus_context.folder.request_prompt import for_choice
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.assembly import measure
from nexus_context.turn.manager import ContextManager
from support.fixture import write_fixture
from support.folders import load_folder

FOLDER = "/home/c/a"
CONFIG = f"{FOLDER}/.nexus3/config.json"
LINE = "Always write the tests first.\n"  # 6 tokens
PICKED = ModelChoice("gpt-4o", 100_000)
SETTINGS = [
    "{}",
    '{"provider": {"model": "o3"}}',
    '{"provider": {"model": "our-own"}}',
    '{"context": {"max_tokens": 50000}}',
    '{"provider": {"model": "o3"}, "context": {"max_tokens": 300000}}',
    '{"provider": {"name": "openai", "model": "o3"}}',
    '{"provider": {"name": "none"}}',
]
CHOICES = [
    ModelChoice(),
    PICKED,
    ModelChoice("gpt-4o", 900_000),
    ModelChoice("gpt-4o"),
    ModelChoice("house-model", 32_000),
    ModelChoice("house-model"),
]


def loaded(root: Path, config: str, choice: ModelChoice | None, previous: Snapshot | None = None) -> Snapshot:
    fixture = write_fixture(f"//- {CONFIG}\n{config}\n//- {FOLDER}/AGENTS.md\n{LINE * 5000}", root)
    return load_folder(fixture, FOLDER, choice=choice, previous=previous)


@pytest.mark.parametrize(
    ("config", "choice", "model", "limit"),
    [
        ("{}", None, "", 128_000),
        ("{}", PICKED, "gpt-4o", 100_000),
        ("{}", ModelChoice("gpt-4o", 900_000), "gpt-4o", 128_000),  # a model that is known is not widened
        ("{}", ModelChoice("gpt-4o"), "gpt-4o", 128_000),
        ("{}", ModelChoice("house-model", 198_000), "house-model", 198_000),
        ("{}", ModelChoice(), "", 128_000),
        ('{"provider": {"model": "o3"}}', PICKED, "gpt-4o", 100_000),
        ('{"provider": {"model": "o3"}}', ModelChoice(), "o3", 200_000),
        ('{"context": {"max_tokens": 50000}}', PICKED, "gpt-4o", 50_000),  # the settings allow less
        ('{"context": {"max_tokens": 300000}}', PICKED, "gpt-4o", 100_000),
        ('{"provider": {"name": "openai", "model": "o3"}}', PICKED, "o3", 200_000),
    ],
)
def test_what_counts(tmp_path: Path, config: str, choice: ModelChoice | None, model: str, limit: int) -> None:
    """The model and the window that usage and problems are counted for, and that the prompt names."""
    snapshot = loaded(tmp_path, config, choice)
    usage = measure(snapshot, ContextManager()).usage
    assert (usage.model, usage.limit) == (model, limit)
    shares = [problem.message for problem in snapshot.problems if problem.code == "prompt.size"]
    assert [f"of the {usage.available:,} that a request may take." in message for message in shares] == [True]
    named = model or (choice is not None and choice.model) or ""
    assert (f"Model: {named}" in snapshot.prompt.text) is bool(named)


def test_where_it_comes_from_is_shown_and_what_the_settings_say_is_overridden(tmp_path: Path) -> None:
    effective = loaded(tmp_path, '{"provider": {"model": "o3"}}', PICKED).effective
    chain = effective.provenance["/provider/model"]
    assert [(entry.layer, entry.value, entry.wins) for entry in chain] == [
        ("local", "o3", False),
        ("picked", "gpt-4o", True),
    ]


def test_an_unknown_model_of_the_settings_is_no_matter_while_another_is_picked(tmp_path: Path) -> None:
    config = '{"provider": {"model": "our-own"}}'
    hints = [
        [
            problem.code
            for problem in loaded(tmp_path, config, choice).problems
            if problem.code != "prompt.size"
        ]
        for choice in (None, PICKED, ModelChoice())
    ]
    assert hints == [["config.unknown-model"], [], ["config.unknown-model"]]


def test_nothing_is_merged_or_rendered_again_while_the_choice_stays(tmp_path: Path) -> None:
    first = loaded(tmp_path, "{}", PICKED)
    again = loaded(tmp_path, "{}", PICKED, first)
    assert (again.effective is first.effective, again.prompt is first.prompt) == (True, True)
    assert again.revision == first.revision
    assert loaded(tmp_path, "{}", None, again).revision == first.revision + 1


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(SETTINGS), st.sampled_from([None, *CHOICES]), st.sampled_from(CHOICES), st.booleans())
def test_a_snapshot_for_another_model_is_the_one_that_would_be_loaded(
    tmp_path_factory: pytest.TempPathFactory,
    config: str,
    before: ModelChoice | None,
    after: ModelChoice,
    follows: bool,
) -> None:
    """However it came to it: from another choice, or loaded after a load with another one."""
    root = tmp_path_factory.getbasetemp() / "choices"
    snapshot = loaded(root, config, before)
    wanted = loaded(root, config, after, snapshot if follows else None)
    made = for_choice(snapshot, after)
    assert made.choice == after
    assert made.prompt == wanted.prompt
    for pointer in ("/provider/model", "/context/max_tokens"):
        assert made.effective.get(pointer) == wanted.effective.get(pointer)
