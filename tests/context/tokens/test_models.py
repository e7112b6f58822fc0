"""The registry of models: names, limits, overrides, and which counter fits."""

import subprocess
import sys
from typing import Any

import pytest
import tiktoken.model
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.features import FEATURES, Feature
from nexus_context.config.schema import ModelSection
from nexus_context.tokens import counter_for, get_model_limits, models, supports_feature


def check(model: str | None, **override: Any) -> tuple[str, int, int, int | None, bool, str, bool]:
    """Name, window, maximum input and output, whether known, counter, whether exact."""
    limits = get_model_limits(model, {str(model): override} if override else None)
    counter = counter_for(model)
    assert counter.exact == limits.family.exact
    return (
        limits.name,
        limits.context_window,
        limits.max_input,
        limits.max_output,
        limits.known,
        counter.name,
        limits.family.exact,
    )


CLAUDE_SONNET_4 = ("claude-sonnet-4", 200_000, 200_000, 64_000, True, "o200k_base × 1.18 (Claude)", False)
GPT_5 = ("gpt-5", 400_000, 272_000, 128_000, True, "o200k_base (gpt-5)", True)
GEMINI = ("gemini-2.5-pro", 1_048_576, 1_048_576, 65_536, True, "o200k_base × 1.15 (Gemini)", False)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-20250514", CLAUDE_SONNET_4),
        ("claude-sonnet-4@20250514", CLAUDE_SONNET_4),
        ("claude-sonnet-4-0", CLAUDE_SONNET_4),
        ("anthropic/claude-sonnet-4", CLAUDE_SONNET_4),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", CLAUDE_SONNET_4),
        ("Claude-Sonnet-4-latest", CLAUDE_SONNET_4),
        ("openai/gpt-5-2025-08-07", GPT_5),
        ("models/gemini-2.5-pro", GEMINI),
        ("google/gemini-2.5-pro-preview-05-06:free", GEMINI),
        (
            "claude-opus-4.5",
            ("claude-opus-4-5", 200_000, 200_000, 64_000, True, "o200k_base × 1.18 (Claude)", False),
        ),
        (
            "claude-opus-4-7",
            ("claude-opus-4-7", 1_000_000, 1_000_000, 128_000, True, "o200k_base × 1.48 (Claude)", False),
        ),
        (
            "claude-opus-9",
            ("claude-opus-9", 128_000, 128_000, None, False, "o200k_base × 1.48 (Claude)", False),
        ),
        ("gpt-4o-2024-08-06", ("gpt-4o", 128_000, 128_000, 16_384, True, "o200k_base", True)),
        ("gpt-4-0613", ("gpt-4", 8_192, 8_192, 4_096, True, "cl100k_base", True)),
        (
            "mistral-small-latest",
            ("mistral-small-latest", 262_144, 262_144, 262_144, True, "o200k_base", False),
        ),
        ("no-such-model", ("no-such-model", 128_000, 128_000, None, False, "o200k_base", False)),
        ("", ("", 128_000, 128_000, None, False, "o200k_base", False)),
        (None, ("", 128_000, 128_000, None, False, "o200k_base", False)),
    ],
)
def test_names(model: str | None, expected: tuple[object, ...]) -> None:
    assert check(model) == expected


@pytest.mark.parametrize(
    ("model", "override", "expected"),
    [
        ("gpt-5", {"max_output": 10}, (400_000, 272_000, 10, True)),
        ("gpt-5", {"context_window": 1000}, (1000, 1000, 128_000, True)),
        ("mine", {"context_window": 1000, "max_output": 10}, (1000, 1000, 10, True)),
        ("mine", {"max_output": 10}, (128_000, 128_000, 10, False)),
        ("mine", {"context_window": None}, (128_000, 128_000, None, False)),
    ],
)
def test_overrides(model: str, override: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert check(model, **override)[1:5] == expected


def test_an_override_applies_to_every_way_to_write_the_name() -> None:
    overrides = {"gpt-4o": {"supports": ["tools"]}}
    assert get_model_limits("openai/gpt-4o-2024-08-06", overrides).supports == ("tools",)


@given(st.text())
def test_any_name_has_limits_and_a_counter(name: str) -> None:
    assert get_model_limits(name).context_window > 0
    assert counter_for(name).name.startswith(("o200k_base", "cl100k_base"))


def test_registry() -> None:
    every = [get_model_limits(name) for name in models.model_names()]
    assert len(every) >= 40
    assert {"anthropic", "openai", "google", "xai", "mistral", "deepseek", "meta", "qwen"} <= {
        str(limits.provider) for limits in every
    }
    assert [limits.name for limits in every if not limits.known] == []
    assert [limits.name for limits in every if not 0 < limits.max_input <= limits.context_window] == []
    assert [limits.name for limits in every if limits.name not in models.model_names()] == []


def test_openai_encodings_are_tiktokens_own_mapping() -> None:
    names = [name for name in models.model_names() if get_model_limits(name).provider == "openai"]
    names += [
        "gpt-4o-2024-08-06",
        "ft:gpt-4o-mini",
        "chatgpt-4o-latest",
        "gpt-35-turbo",
        "gpt-3.5",
        "o3-2025-04-16",
    ]
    expected = {}
    for name in names:
        try:
            encoding = tiktoken.model.encoding_name_for_model(name).replace("harmony", "base")
            expected[name] = (encoding, True)
        except KeyError:  # newer than this tiktoken: o200k is assumed, and said to be an estimate
            expected[name] = ("o200k_base", False)
    assert {
        name: (counter_for(name).name.partition(" (")[0], counter_for(name).exact) for name in names
    } == expected


def test_importing_reads_nothing_and_loads_no_tokenizer() -> None:
    code = """if True:
        import sys
        from nexus_context.tokens import counter_for, models, get_model_limits
        print("tiktoken" in sys.modules, models._registry.cache_info().currsize)
        print(get_model_limits("gpt-4o").name, counter_for("gpt-4o").name)
        print("tiktoken" in sys.modules, models._registry.cache_info().currsize)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 0\ngpt-4o o200k_base\nFalse 1\n"


def test_features_have_one_vocabulary() -> None:
    every = [get_model_limits(name) for name in models.model_names()]
    assert {feature for limits in every for feature in limits.supports} == set(FEATURES)
    assert ModelSection(supports=list(FEATURES)).supports == list(FEATURES)


@pytest.mark.parametrize(
    ("model", "feature", "overrides", "expected"),
    [
        ("gpt-4o", "vision", {}, True),
        ("gpt-4o", "thinking", {}, False),
        ("gpt-4", "vision", {}, False),
        ("claude-3-7-sonnet", "thinking", {}, True),
        ("claude-3-7-sonnet", "documents", {}, True),
        ("grok-4", "vision", {}, True),  # no package says
        ("llama-4-scout-17b-16e-instruct-fp8", "vision", {}, True),
        ("llama-4-maverick-17b-128e-instruct-fp8", "vision", {}, True),  # one host has it, another does not
        ("deepseek-chat", "vision", {}, False),
        ("deepseek-chat", "documents", {}, False),  # it sees nothing
        ("grok-4", "thinking", {}, False),  # asked for where it is known
        ("grok-4", "vision", {"grok-4": {"supports": ["tools"]}}, False),
        ("no-such-model", "tools", {}, True),  # nobody states what it can do
        ("mine", "tools", {"mine": {"context_window": 1000}}, True),
        ("mine", "tools", {"mine": {"supports": ["vision"]}}, False),
        ("gpt-4o", "vision", {"gpt-4o": {"supports": ["tools"]}}, False),
    ],
)
def test_supports_feature(model: str, feature: Feature, overrides: dict[str, Any], expected: bool) -> None:
    assert supports_feature(model, feature, overrides) is expected
    assert get_model_limits(model, overrides).can(feature) is expected


def test_a_feature_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"There is no feature 'images'\. Known: tools, parallel_tools, vision"
    ):
        supports_feature("gpt-4o", "images")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "model", "window"),
    [
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", 1_000_000),
        ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", 200_000),
        ("databricks-claude-sonnet-4-5", "claude-sonnet-4-5", 200_000),
        ("claude-opus-4-6-fast", "claude-opus-4-6", 1_000_000),
        ("grok-code-fast", "grok-code-fast", 256_000),
    ],
)
def test_names_of_claude_code_are_those_of_its_models(name: str, model: str, window: int) -> None:
    limits = get_model_limits(name)
    assert (limits.name, limits.context_window, limits.known) == (model, window, True)


@pytest.mark.parametrize("name", ["opus", "opus[1m]", "sonnet", "Sonnet[1m]", "haiku", "opusplan"])
def test_a_family_is_its_latest_model(name: str) -> None:
    limits = get_model_limits(name)
    assert limits.known
    assert limits.name.startswith(f"claude-{name.lower().partition('[')[0].removesuffix('plan')}-")
    assert limits.context_window == 1_000_000 or "[" not in name
    assert limits.family.name.startswith("claude")
