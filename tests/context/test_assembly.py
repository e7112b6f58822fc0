"""One chat turn: what is sent, under which name, and what it costs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assembly import AssembledContext, Options, Request, assemble, usage_of
from nexus_context.budget import TokenUsage, UsageRow, usage
from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_context.manager import ContextManager
from nexus_context.snapshot import Snapshot, prompt_for
from nexus_context.tokens import SimpleTokenCounter, resolve
from support.fixture import write_fixture
from support.folders import load_folder

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def loaded(root: Path, config: str = "{}") -> Snapshot:
    return load_folder(write_fixture(f"//- /home/a/.nexus3/config.json\n{config}\n", root), "/home/a")


def check(
    root: Path,
    config: str,
    form: str,
    *,
    options: Options = Options(),  # noqa: B008 (frozen)
) -> AssembledContext:
    """Assemble "Why?" for a folder with these settings; the rows sum to the total."""
    request = Request(message=Message("user", "Why?"), format=form, options=options)
    made = assemble(loaded(root, config), ContextManager(), request, now=NOW)
    assert sum(row.tokens for row in made.usage.rows) == made.usage.total
    return made


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "model",
    ["gpt-4o-2024-08-06", "us.anthropic.claude-sonnet-4-20250514-v1:0", "openai/gpt-5", "no-such-model"],
)
def test_the_body_names_the_model_as_it_is_configured(tmp_path: Path, form: str, model: str) -> None:
    for config, options in (
        (f'{{"provider": {{"model": "{model}"}}}}', Options()),
        ('{"provider": {"model": "gpt-4.1"}}', Options(model=model)),
    ):
        made = check(tmp_path, config, form, options=options)
        assert made.request is not None
        assert (made.request["model"], made.model, made.usage.model) == (model, model, model)


def test_a_body_needs_a_model(tmp_path: Path) -> None:
    assert check(tmp_path, "{}", "neutral").model == ""
    for form in ("openai", "anthropic"):
        with pytest.raises(RequestError, match=r"provider\.model .* options\.model") as failed:
            check(tmp_path, "{}", form)
        assert failed.value.code == "no-model"


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (Options(max_context_tokens=0), "bad-option", "maxContextTokens"),
        (Options(reserve_tokens=-1), "bad-option", "reserveTokens"),
        (Options(parameters={"thinking/level": "low"}), "bad-parameter", "thinking/level"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: Options, code: str, named: str) -> None:
    with pytest.raises(RequestError, match=named) as failed:
        check(tmp_path, "{}", "neutral", options=options)
    assert failed.value.code == code


def test_what_a_body_cannot_hold_is_said(tmp_path: Path) -> None:
    config = '{"provider": {"model": "gpt-4o"}, "parameters": {"top_k": 5, "thinking": {"level": "low"}}}'
    assert check(tmp_path, config, "openai").metadata["unsent"] == [
        "parameter top_k",
        "parameter thinking.level",
    ]
    assert "unsent" not in check(tmp_path, config, "neutral").metadata
    reasoning = '{"provider": {"model": "gpt-5"}, "parameters": {"thinking": {"level": "low"}}}'
    made = check(tmp_path, reasoning, "openai")
    assert made.request is not None
    assert (made.request["reasoning_effort"], "unsent" in made.metadata) == ("low", False)


# ---------------------------------------------------------------- budget


def spent(model: str, tokens: int, *, reserved: int = 2000, max_tokens: int | None = None) -> TokenUsage:
    row = UsageRow("history", "x", tokens, True)
    return usage(resolve(model), SimpleTokenCounter(), [row], max_tokens=max_tokens, reserved=reserved)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # limit, available, remaining, over
        (spent("gpt-5", 272_000), (400_000, 272_000, 0, False)),
        (spent("gpt-5", 272_001), (400_000, 272_000, -1, True)),
        (spent("gpt-5", 0, reserved=200_000), (400_000, 200_000, 200_000, False)),
        (spent("gpt-5", 0, max_tokens=100_000), (100_000, 98_000, 98_000, False)),
        (spent("gpt-4o", 0), (128_000, 126_000, 126_000, False)),
        (spent("no-such-model", 0, max_tokens=1_000_000), (1_000_000, 998_000, 998_000, False)),
        (spent("gpt-4o", 1, reserved=200_000), (128_000, 0, -1, True)),
    ],
)
def test_the_number_shown_is_the_number_that_triggers(made: TokenUsage, expected: tuple[Any, ...]) -> None:
    assert (made.limit, made.available, made.remaining, made.over) == expected
    assert made.remaining == made.available - made.total
    assert made.over == (made.percent > 100 or made.total > made.available)


# ---------------------------------------------------------------- the date in the prompt


def test_what_is_counted_is_what_is_sent_with_the_date_in_the_prompt(tmp_path: Path) -> None:
    snapshot = loaded(tmp_path, '{"context": {"datetime": {"placement": "system"}}}')
    made = assemble(snapshot, ContextManager(), Request(), now=NOW)
    assert "2026-11-20" in made.prompt.text
    assert prompt_for(snapshot, now=NOW) == made.prompt
    assert usage_of(snapshot, ContextManager(), now=NOW) == made.usage
    assert usage_of(snapshot, ContextManager()).total < made.usage.total


# ---------------------------------------------------------------- the conversation


def test_a_cleared_conversation_costs_nothing() -> None:
    counter = SimpleTokenCounter()
    manager = ContextManager(started=NOW)
    manager.add([Message("user", "Why?")])
    assert (len(manager), manager.history_tokens(counter) > 0, len(manager.encoded())) == (2, True, 2)
    manager.clear_messages()
    assert (manager.messages, manager.history_tokens(counter), manager.encoded()) == ([], 0, [])
