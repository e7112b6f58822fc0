"""The committed model registry, and how it is made from packages and documentation."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from documented_models import MODELS
from model_records import build, note_unknown, read_record
from model_sources import PACKAGES, Sources, anthropic_retirements, find_wheels, literals, openai_retirements
from models_page import page, row
from nexus_context.tokens import get_model_limits, models
from update_models import PAGE, ROOT, TARGET, as_json, changes, problems, renew

REGISTRY: dict[str, Any] = json.loads(TARGET.read_bytes())


def test_the_committed_registry_has_no_mistake() -> None:
    assert list(problems(REGISTRY)) == []
    assert TARGET.read_text(encoding="utf-8") == as_json(REGISTRY)
    assert list(REGISTRY["models"]) == list(models.model_names())


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(REGISTRY), "run make generate"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "claude-opus-5-5",
            {
                "cache_minimum": 512,
                "cache_write_price": 5.0,
                "cache_write_1h_price": 8.0,
                "cached_input_price": 0.2,
            },
        ),
        (
            "claude-opus-4-7",
            {"cache_minimum": 2_048, "cache_write_price": 6.25, "cache_write_1h_price": 10.0},
        ),
        (
            "claude-haiku-4-5",
            {"cache_minimum": 4_096, "cache_write_price": 1.25, "cache_write_1h_price": 2.0},
        ),
        ("claude-sonnet-4", {"cache_minimum": 1_024, "retires": "2026-06-15"}),
        ("claude-sonnet-4-5", {"retires": "2026-11-30"}),
        ("claude-fable-5-2", {"context_window": 1_000_000, "input_price": 8.0, "cached_input_price": 0.2}),
        ("gpt-5.6", {"cache_minimum": 1_024, "cache_write_price": 5.0, "input_price": 4.0}),
        ("gpt-6.2-astra", {"context_window": 1_050_000, "max_input": 922_000, "output_price": 40.0}),
        ("gpt-6.2-sol", {"context_window": 1_050_000, "input_price": 2.0, "cache_write_price": 2.5}),
        ("gpt-4o", {"cache_minimum": 1_024, "retires": "2027-01-14"}),
        ("gpt-4-0125-preview", {"context_window": 128_000, "retires": "2026-03-26"}),
        ("gemini-1.5-pro", {"context_window": 2_097_152, "max_output": 8_192, "retires": "2025-09-24"}),
        ("gemini-1.5-flash", {"context_window": 1_048_576, "max_output": 8_192, "retires": "2025-09-24"}),
        ("gemini-2.0-flash", {"context_window": 1_048_576, "max_output": 8_192, "retires": "2026-06-01"}),
        ("gemini-2.5-pro", {"cache_minimum": 2_048, "retires": "2026-12-01"}),
        ("gemini-4-carbon", {"context_window": 1_048_576, "input_price": 2.0}),
    ],
)
def test_what_the_registry_says(name: str, expected: dict[str, Any]) -> None:
    record = REGISTRY["models"][name]
    assert {field: record[field] for field in expected} == expected
    limits = get_model_limits(name)
    assert {field: getattr(limits, field) for field in expected} == expected


def test_models_that_do_not_cache_have_no_minimum() -> None:
    wrong = [
        name
        for name, record in REGISTRY["models"].items()
        if "cache_minimum" in record and "prompt_caching" not in record["supports"]
    ]
    assert wrong == []
    assert "prompt_caching" not in REGISTRY["models"]["gpt-4"]["supports"]


def test_every_claude_has_prices_of_writes() -> None:
    claudes = [record for name, record in REGISTRY["models"].items() if name.startswith("claude-")]
    assert len(claudes) >= 20
    for record in claudes:
        assert record["cache_write_price"] == pytest.approx(1.25 * record["input_price"])
        assert record["cache_write_1h_price"] == pytest.approx(2 * record["input_price"])


def test_a_documented_model_names_its_page() -> None:
    for name, documented in MODELS.items():
        assert re.fullmatch(r"https://[a-z.]+/[\w./-]+", documented.source), name


# ---------------------------------------------------------------- from the sources


def entry(provider: str = "anthropic", size: int = 1_000, **more: Any) -> dict[str, Any]:
    sizes = {"max_input_tokens": size, "max_output_tokens": size // 10}
    return {"litellm_provider": provider, "mode": "chat"} | sizes | more


CACHES: dict[str, Any] = {"supports_prompt_caching": True}
SIBLINGS = {
    "claude-fable-5-1": entry(),
    "claude-mythos-5-1": entry(),
    "gpt-6-astra": entry("openai"),
    "gpt-6.1-sol": entry("openai"),
    "gemini/gemini-4-argon": entry("gemini"),
}


def made(table: dict[str, Any], **more: Any) -> tuple[dict[str, Any], list[str]]:
    """Registry and notes from a small table of litellm's."""
    from model_records import EARLIER

    hosts = {key: entry("bedrock") for key in EARLIER.values()}
    nothing: dict[str, Any] = {"windows": {}, "names": {}, "retirements": {}, "versions": {}}
    return build(Sources(**nothing | {"table": hosts | SIBLINGS | table} | more))


@pytest.mark.parametrize(
    ("table", "name", "expected"),
    [
        ({"claude-new-9": entry()}, "claude-new-9", {"context_window": 1_000, "max_output": 100}),
        ({"anthropic/Claude-New-9": entry()}, "claude-new-9", {"provider": "anthropic"}),
        ({"claude-new-9-latest": entry()}, "claude-new-9", {"max_output": 100}),
        ({"claude-new-9": entry(**CACHES)}, "claude-new-9", {"supports": ["prompt_caching"]}),
        (
            {"claude-new-9": entry(**CACHES, input_cost_per_token=4e-6)},
            "claude-new-9",
            {"input_price": 4.0, "cache_write_price": 5.0, "cache_write_1h_price": 8.0},
        ),
        (
            {"claude-new-9": entry(cache_creation_input_token_cost=3e-7, prompt_cache_min_tokens=77.0)},
            "claude-new-9",
            {"cache_write_price": 0.3, "cache_minimum": 77},
        ),
        ({"gpt-6.9": entry("openai", **CACHES)}, "gpt-6.9", {"cache_minimum": 1_024}),
        (
            {"gpt-6.9": entry("openai", 10_000, deprecation_date="2031-01-01")},
            "gpt-6.9",
            {"retires": "2031-01-01"},
        ),
        ({"claude-fable-5-2": entry(size=7_000)}, "claude-fable-5-2", {"context_window": 7_000}),
    ],
)
def test_a_record(table: dict[str, Any], name: str, expected: dict[str, Any]) -> None:
    record = made(table)[0][name]
    assert {field: record[field] for field in expected} == expected


def test_what_is_no_model_of_chat_is_left_out() -> None:
    left_out = {
        "claude-new-9-20300101": entry(),
        "gpt-6.9-audio": entry("openai"),
        "gpt-8": entry("openai", mode="embedding"),
        "bedrock/claude-new-9": entry("bedrock"),
        "command-x": entry("cohere"),
    }
    assert set(made(left_out)[0]) == set(made({})[0])


def test_the_total_window_is_of_input_and_output() -> None:
    windows = {"openai": {"gpt-6.9": 1_100}}
    records, notes = made({"gpt-6.9": entry("openai"), "gpt-6.9-mini": entry("openai")}, windows=windows)
    for name in ("gpt-6.9", "gpt-6.9-mini"):  # one with the same two limits has the same window
        assert (records[name]["context_window"], records[name]["max_input"]) == (1_100, 1_000)
    assert notes == []
    _, notes = made({"gpt-6.9": entry("openai")}, windows={"openai": {"gpt-6.9": 2_000}})
    assert notes == ["gpt-6.9: litellm has 1000 in, genai-prices 2000; litellm's is used"]


def test_the_providers_own_shutdown_date_counts() -> None:
    table = {"claude-new-9": entry(deprecation_date="2030-01-01"), "gpt-6.9": entry("openai")}
    dates = {"claude-new-9-20290101": "2031-02-03", "gpt-6.9": "2032-01-01"}
    records, _ = made(table, retirements=dates)
    assert (records["claude-new-9"]["retires"], records["gpt-6.9"]["retires"]) == ("2031-02-03", "2032-01-01")


def test_names_without_limits_are_noted() -> None:
    names = {
        "openai": frozenset(
            {"gpt-6.9", "gpt-6.9-2031-01-01", "gpt-6.10", "gpt-6.9-audio", "gpt-3-old", "whisper"}
        )
    }
    table = {"gpt-6.9": entry("openai")}
    _, notes = made(table, names=names, retirements={"gpt-3-old": "2020-01-01"})
    assert notes == ["gpt-6.10: named by the package of openai, but without limits in any source"]


def test_a_price_is_of_a_million_tokens() -> None:
    costs: dict[str, Any] = {"input_cost_per_token": 7.5e-8, "cache_read_input_token_cost": 1.875e-8}
    record = read_record("gemini-9", "google", entry(**costs), {}, [])
    assert (record["input_price"], record["cached_input_price"]) == (0.075, 0.01875)


@pytest.mark.parametrize(
    ("provider", "hosts", "unknown"),
    [
        ("xai", [{}], ["vision", "documents"]),
        ("xai", [{"supports_vision": True}], ["documents"]),
        ("xai", [{}, {"supports_vision": False}], []),
        ("xai", [{}, {"supports_vision": False}, {"supports_vision": True}], ["vision", "documents"]),
        ("xai", [{"supports_vision": True}, {"supports_pdf_input": False}], []),
        ("openai", [{}], []),
    ],
)
def test_what_no_package_says_is_unknown(
    provider: str, hosts: list[dict[str, bool]], unknown: list[str]
) -> None:
    table = {
        f"host-{at}/x-1": entry() | {"supports_function_calling": True} | host
        for at, host in enumerate(hosts)
    }
    record = read_record("x-1", provider, table["host-0/x-1"], {}, [])
    note_unknown("x-1", record, table)
    assert record.get("unknown", []) == unknown


def test_literals_and_dates_of_the_packages() -> None:
    source = '''
Model: TypeAlias = Union[Literal["claude-a", "claude-b"], str]
DEPRECATED_MODELS = {"claude-a": "June 15th, 2026", "claude-b": "November 1st, 2024"}
"""Deprecated values:

- "gpt-a", "gpt-b": Announced shutdown date: 2027-04-01. See
  https://example.org.
- "gpt-c": Not a supported model ID.
"""
'''
    assert literals(source) == ["claude-a", "claude-b"]
    assert anthropic_retirements(source) == {"claude-a": "2026-06-15", "claude-b": "2024-11-01"}
    assert openai_retirements(source) == {"gpt-a": "2027-04-01", "gpt-b": "2027-04-01"}


def test_the_newest_wheel_of_a_package_counts(tmp_path: Path) -> None:
    for name in (
        "litellm-1.9.0-py3-none-any.whl",
        "litellm-1.10.0-py3-none-any.whl",
        "openai-3.0-py3-none-any.whl",
    ):
        (tmp_path / name).touch()
    assert {package: path.name for package, path in find_wheels(tmp_path).items()} == {
        "litellm": "litellm-1.10.0-py3-none-any.whl",
        "openai": "openai-3.0-py3-none-any.whl",
    }


# ---------------------------------------------------------------- changes and mistakes


ONE: dict[str, Any] = {"provider": "openai", "context_window": 1_000, "supports": ["tools"]}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": ONE}, {"a": ONE}, []),
        ({}, {"a": ONE}, ["models: + a (context_window 1000)"]),
        ({"a": ONE}, {}, ["models: - a"]),
        (
            {"a": ONE},
            {"a": ONE | {"max_output": 5, "supports": []}},
            ["models: a: max_output none → 5; supports ['tools'] → []"],
        ),
        ({"a": ONE | {"retires": "2030-01-01"}}, {"a": ONE}, ["models: a: retires 2030-01-01 → none"]),
    ],
)
def test_changes(before: dict[str, Any], after: dict[str, Any], lines: list[str]) -> None:
    assert changes({"models": before}, {"models": after}) == lines


def test_the_date_stays_while_nothing_changes() -> None:
    sources = Sources({}, {}, {}, {}, dict.fromkeys(PACKAGES, "1.0"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("update_models.build", lambda _: ({"a": ONE}, []))
        first, _ = renew({}, sources, "2030-01-01")
        second, _ = renew(first, sources, "2030-01-02")
        patch.setattr("update_models.build", lambda _: ({"a": ONE, "b": ONE}, []))
        third, _ = renew(first, sources, "2030-01-03")
    assert (first["date"], second, third["date"]) == ("2030-01-01", first, "2030-01-03")


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"max_output": 2_000}, "a: a size is not between 1 and the window of 1000"),
        ({"context_window": 0}, "a: a size is not between 1 and the window of 0"),
        ({"cache_minimum": 0}, "a: a size is not between 1 and the window of 1000"),
        ({"supports": ["magic"]}, "a: magic is not a feature"),
        ({"input_price": -1.0}, "a: a price is not positive"),
        (
            {"input_price": 1.0, "cached_input_price": 2.0},
            "a: reading from the cache costs more than the input",
        ),
        (
            {"cache_write_price": 2.0, "cache_write_1h_price": 1.0},
            "a: a write for an hour costs less than one for the short lifetime",
        ),
        ({"retires": "2026-1-1"}, "a: 2026-1-1 is not a date"),
        ({"colour": "red"}, "a: colour is not a field"),
    ],
)
def test_mistakes_are_reported(change: dict[str, Any], mistake: str) -> None:
    every = {str(number): ONE for number in range(40)}
    assert list(problems({"models": every})) == []
    assert list(problems({"models": every | {"a": ONE | change}})) == [mistake]


def test_a_registry_that_shrinks_is_a_mistake() -> None:
    assert list(problems({"models": {"a": ONE}})) == ["only 1 models; at least 40 are promised"]


def test_a_row_of_the_page() -> None:
    record = ONE | {
        "input_price": 0.5,
        "cache_minimum": 1_024,
        "retires": "2030-01-01",
        "source": "https://x.org/a",
        "long_context": {"above": 272_000, "input_price": 1.0, "output_price": 2.5},
        "price_factors": {"fast": 6.0},
    }
    expected = "|[a](https://x.org/a)|1,000|t|0.5/–/–/–/–|>272k: 1/2.5; fast ×6|1,024|2030-01-01|"
    assert row("a", record) == expected
    limits = {"context_window": 9_000, "max_input": 8_000, "max_output": 500}
    assert row("a", record | limits).split("|")[2] == "9,000/8,000/500"


def test_the_page_leaves_out_models_that_have_ended() -> None:
    ended = {"a": ONE | {"retires": "2026-01-01"}, "b": ONE | {"retires": "2030-01-01"}, "c": ONE}
    text = page({"version": "x 1", "date": "2026-11-26", "models": ended})
    assert re.findall(r"^\|(\w)\|", text, re.MULTILINE) == ["b", "c"]
    assert (
        "\n[`models`](configuration.md#models) of the settings adds models and corrects limits. 1 models"
        in text
    )


def test_without_packages_the_registry_is_checked_and_stays(tmp_path: Path) -> None:
    before = TARGET.read_bytes()
    command = [sys.executable, "scripts/update_models.py", "--from", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    lacking = ", ".join(PACKAGES)
    expected = f"models: not renewed, no package of {lacking} in {tmp_path.name} (`make models` fetches them)"
    assert lines[0] == expected
    assert (
        lines[-1] == f"models: {len(REGISTRY['models'])}, of {REGISTRY['date']}, from {REGISTRY['version']}"
    )
    assert TARGET.read_bytes() == before
