"""Model parameters in each provider's format, and what is reported about those it does not accept."""

from typing import Any

import pytest

from nexus_context.conversation.bodies import parameter_fields

SAMPLING = {"temperature": 0.5, "top_p": 0.9}


def check(provider: str, model: str, parameters: Any, expected: Any, unsent: list[str], **given: Any) -> None:
    """The fields of the provider's request, and what is not sent. Most models give 8,000 tokens here."""
    if provider == "openai":
        made = parameter_fields.openai(parameters, thinks=given.pop("thinks", True), model=model, **given)
        assert made == (expected, unsent)
        return
    given = {"max_output": 8000, "thinks": True} | given
    made = parameter_fields.anthropic(parameters, model=model, **given)
    assert made == ({"max_tokens": 8000} | expected, unsent)


@pytest.mark.parametrize(
    ("model", "parameters", "expected", "unsent"),
    [
        ("m", {}, {}, []),
        (
            "m",
            {**SAMPLING, "top_k": 5, "max_tokens": 100},
            {**SAMPLING, "max_completion_tokens": 100},
            ["top_k: OpenAI does not accept it"],
        ),
        ("m", {"thinking": {"level": "low"}, **SAMPLING}, {**SAMPLING, "reasoning_effort": "low"}, []),
        (
            "m",
            {"thinking": {"level": "high", "budget": 2000}},
            {"reasoning_effort": "high"},
            ["thinking.budget: OpenAI accepts only a level"],
        ),
        (
            "m",
            {"thinking": {"level": "off"}},
            {},
            ["thinking.level: the model cannot be told not to think"],
        ),
        (
            "gpt-5",
            {"thinking": {"level": "minimal"}, "temperature": 1},
            {"reasoning_effort": "minimal"},
            ["temperature: gpt-5 does not accept it while thinking"],
        ),
        (
            "o3",
            {"thinking": {"level": "minimal"}, "top_p": 1},
            {"reasoning_effort": "low"},
            [
                "thinking.level minimal: the lowest level of the model is low, which is sent instead",
                "top_p: o3 does not accept it while thinking",
            ],
        ),
        ("openai/gpt-5.1", SAMPLING, SAMPLING, []),
        (
            "gpt-5.4-2026-03-05",
            {"thinking": {"level": "off"}, **SAMPLING},
            {**SAMPLING, "reasoning_effort": "none"},
            [],
        ),
        (
            "gpt-5.2",
            {"thinking": {"level": "low"}, "temperature": 1},
            {"reasoning_effort": "low"},
            ["temperature: gpt-5.2 does not accept it while thinking"],
        ),
        ("gpt-5.6", {"temperature": 1}, {}, ["temperature: gpt-5.6 does not accept it while thinking"]),
        (
            "gpt-6-astra",
            {"thinking": {"level": "off"}},
            {},
            ["thinking.level: the model cannot be told not to think"],
        ),
        ("gpt-6-sol", {"thinking": {"level": "off"}}, {"reasoning_effort": "none"}, []),
        ("gpt-5-chat-latest", SAMPLING, SAMPLING, []),
        ("gpt-4.1", SAMPLING, SAMPLING, []),
    ],
)
def test_openai(model: str, parameters: Any, expected: Any, unsent: list[str]) -> None:
    check("openai", model, parameters, expected, unsent)


@pytest.mark.parametrize(
    ("model", "level", "effort", "unsent"),
    [
        ("gpt-5.2", "low", "low", []),
        (
            "gpt-5.4",
            "low",
            None,
            ["thinking.level: gpt-5.4 does not accept it beside tools in chat completions"],
        ),
        ("gpt-5.5", None, None, []),
        ("gpt-5.6", "off", "none", []),
        ("gpt-5.6", None, "none", ["thinking: gpt-5.6 does not think beside tools in chat completions"]),
        (
            "gpt-5.6-luna",
            "low",
            "none",
            ["thinking.level: gpt-5.6-luna does not accept it beside tools in chat completions"],
        ),
    ],
)
def test_effort_beside_tools(model: str, level: str | None, effort: str | None, unsent: list[str]) -> None:
    expected = {} if effort is None else {"reasoning_effort": effort}
    check("openai", model, {"thinking": {"level": level}}, expected, unsent, tools=True)


@pytest.mark.parametrize(
    ("model", "parameters", "expected", "unsent"),
    [
        ("m", {}, {}, []),
        ("m", {**SAMPLING, "top_k": 5, "max_tokens": 100}, {**SAMPLING, "top_k": 5, "max_tokens": 100}, []),
        (
            "m",
            {"thinking": {"level": "low"}, "temperature": 0.5, "top_p": 0.95},
            {"thinking": {"type": "enabled", "budget_tokens": 4096}, "top_p": 0.95},
            ["temperature: not accepted beside thinking"],
        ),
        (
            "m",
            {"thinking": {"level": "high", "budget": 2000}},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            [],
        ),
        ("m", {"thinking": {"level": "high"}}, {"thinking": {"type": "enabled", "budget_tokens": 7999}}, []),
        (
            "m",
            {"thinking": {"budget": 2000}, "max_tokens": 500},
            {"max_tokens": 500},
            ["thinking: it needs at least 1024 tokens, but max_tokens is 500"],
        ),
        ("m", {"thinking": {"level": "off"}}, {}, []),
        ("m", {"temperature": 1.5}, {}, ["temperature 1.5: Anthropic accepts 0 to 1"]),
        ("claude-3-5-sonnet-latest", SAMPLING, SAMPLING, []),
        (
            "claude-sonnet-4-5-20250929",
            SAMPLING,
            {"temperature": 0.5},
            ["top_p: claude-sonnet-4-5-20250929 does not accept it beside a temperature"],
        ),
        (
            "anthropic/claude-opus-4.6",
            {"thinking": {"level": "minimal"}},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            [],
        ),
        (
            "claude-opus-4-6",
            {"thinking": {"budget": 2000}},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            [],
        ),
        (
            "claude-opus-4-7",
            {"thinking": {"level": "high", "budget": 2000}, "top_k": 5, "temperature": 0.0},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
            [
                "thinking.budget: claude-opus-4-7 decides by itself how much it thinks",
                "temperature: claude-opus-4-7 does not accept it",
                "top_k: claude-opus-4-7 does not accept it",
            ],
        ),
        ("claude-opus-4-8", {"thinking": {"level": "off"}}, {}, []),
        ("claude-sonnet-5", {"thinking": {"level": "off"}}, {"thinking": {"type": "disabled"}}, []),
        *(
            (model, {"thinking": {"level": "off"}}, {}, [f"thinking.level: {model} always thinks"])
            for model in ("claude-opus-5-5", "claude-fable-5", "claude-mythos-preview")
        ),
    ],
)
def test_anthropic(model: str, parameters: Any, expected: Any, unsent: list[str]) -> None:
    check("anthropic", model, parameters, expected, unsent)


@pytest.mark.parametrize(
    ("model", "parameters", "expected", "unsent"),
    [
        ("m", {}, {}, []),
        (
            "m",
            {**SAMPLING, "top_k": 5, "max_tokens": 100},
            {**SAMPLING, "max_output_tokens": 100},
            ["top_k: OpenAI does not accept it"],
        ),
        (
            "gpt-5.5",
            {"thinking": {"level": "low", "budget": 5}},
            {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]},
            ["thinking.budget: OpenAI accepts only a level"],
        ),
        (
            "gpt-5.6",
            {"temperature": 1},
            {"include": ["reasoning.encrypted_content"]},
            ["temperature: gpt-5.6 does not accept it while thinking"],
        ),
        ("gpt-4.1", SAMPLING, SAMPLING, []),
        (
            "m",
            {"thinking": {"level": "high"}},
            {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]},
            [],
        ),
    ],
)
def test_openai_responses(model: str, parameters: Any, expected: Any, unsent: list[str]) -> None:
    made = parameter_fields.openai_responses(parameters, thinks=True, model=model)
    assert made == (expected, unsent)


@pytest.mark.parametrize(
    ("model", "parameters", "expected", "unsent"),
    [
        (
            "gemini-2.5-flash",
            {**SAMPLING, "top_k": 5, "max_tokens": 100},
            {"temperature": 0.5, "topP": 0.9, "topK": 5, "maxOutputTokens": 100},
            [],
        ),
        ("gemini-2.5-flash", {"thinking": {"level": "off"}}, {"thinkingConfig": {"thinkingBudget": 0}}, []),
        (
            "gemini-2.5-pro",
            {"thinking": {"level": "off"}},
            {},
            ["thinking.level: the model cannot be told not to think"],
        ),
        ("gemini-2.5-pro", {"thinking": {"level": "low"}}, {"thinkingConfig": {"thinkingBudget": 4096}}, []),
        (
            "models/gemini-2.5-flash-lite",
            {"thinking": {"budget": 100}},
            {"thinkingConfig": {"thinkingBudget": 512}},
            [
                "thinking.budget 100: models/gemini-2.5-flash-lite accepts 512 to 24576; 512 is sent instead",
            ],
        ),
        (
            "gemini-3-flash",
            {"thinking": {"level": "minimal"}},
            {"thinkingConfig": {"thinkingLevel": "MINIMAL"}},
            [],
        ),
        (
            "gemini-3.5-flash",
            {"thinking": {"level": "off"}},
            {"thinkingConfig": {"thinkingLevel": "MINIMAL"}},
            ["thinking.level off: gemini-3.5-flash does not accept it; minimal is sent instead"],
        ),
        (
            "gemini-3.8-flash",
            {"thinking": {"level": "minimal"}},
            {"thinkingConfig": {"thinkingLevel": "LOW"}},
            ["thinking.level minimal: gemini-3.8-flash does not accept it; low is sent instead"],
        ),
        (
            "gemini-3-pro-preview",
            {"thinking": {"level": "medium", "budget": 9}},
            {"thinkingConfig": {"thinkingLevel": "HIGH"}},
            [
                "thinking.budget: gemini-3-pro-preview does not accept it beside a level",
                "thinking.level medium: gemini-3-pro-preview does not accept it; high is sent instead",
            ],
        ),
        (
            "gemini-3.1-pro",
            {"thinking": {"level": "medium"}},
            {"thinkingConfig": {"thinkingLevel": "MEDIUM"}},
            [],
        ),
        ("gemini-3.1-pro", {"thinking": {"budget": 9}}, {"thinkingConfig": {"thinkingBudget": 9}}, []),
    ],
)
def test_gemini(model: str, parameters: Any, expected: Any, unsent: list[str]) -> None:
    fields = {"generationConfig": expected} if expected else {}
    assert parameter_fields.gemini(parameters, thinks=True, model=model) == (fields, unsent)


def test_a_model_that_does_not_think_is_not_told_to() -> None:
    parameters = {"thinking": {"level": "high"}, "temperature": 0.5}
    left = {"temperature": 0.5}
    unsent = ["thinking.level: the model cannot be told how much to think"]
    check("openai", "gpt-4o", parameters, left, unsent, thinks=False)
    check("anthropic", "m", parameters, left, ["thinking: the model does not support it"], thinks=False)
    check("openai", "gpt-4o", {"thinking": {"level": "off"}}, {}, [], thinks=False)
    assert parameter_fields.openai_responses(parameters, thinks=False, model="gpt-4o") == (left, unsent)
    no_thinking = ["thinking: the model does not support it"]
    fields = {"generationConfig": left}
    assert parameter_fields.gemini(parameters, thinks=False, model="gemini-2.0-flash") == (
        fields,
        no_thinking,
    )


def test_an_answer_is_no_longer_than_the_model_gives() -> None:
    unsent = ["max_tokens 9000: the maximum of the model is 5000, which is sent instead"]
    check("openai", "m", {"max_tokens": 9000}, {"max_completion_tokens": 5000}, unsent, limit=5000)
    check("anthropic", "m", {"max_tokens": 9000}, {"max_tokens": 5000}, unsent, limit=5000)
    check("anthropic", "m", {"max_tokens": 5000}, {"max_tokens": 5000}, [], limit=5000)


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-opus-4-5-20251101", (4, 5)),
        ("us.anthropic.claude-sonnet-4-6-v1:0", (4, 6)),
        ("claude-3-5-haiku-latest", (3, 5)),
        ("claude-2.1", (2, 1)),
        ("claude-instant-1.2", (1, 2)),
        ("anthropic/claude-opus-4.7", (4, 7)),
        ("claude-fable-5-1", (5, 1)),
        ("claude-mythos-preview", (99, 0)),
        ("gpt-4o", None),
    ],
)
def test_the_version_of_a_claude(model: str, version: Any) -> None:
    assert parameter_fields.claude_version(model) == version
    assert parameter_fields.takes_prefill(model) == (version is None or version < (4, 6))


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        *((model, True) for model in ("claude-opus-4-8", "claude-sonnet-5", "anthropic/claude-haiku-5.5")),
        *((model, False) for model in ("claude-opus-4-7", "claude-mythos-preview", "claude-3-opus", "m")),
    ],
)
def test_system_messages_inside_a_conversation(model: str, takes: bool) -> None:
    assert parameter_fields.takes_system_messages(model) == takes


@pytest.mark.parametrize(
    ("model", "takes"), [("gpt-5.6", True), ("openai/gpt-6-sol", True), ("gpt-5.5", False), ("m", False)]
)
def test_explicit_cache_breakpoints(model: str, takes: bool) -> None:
    assert parameter_fields.takes_breakpoints(model) == takes
