"""Facts of models from the providers' public documentation, which the registries on PyPI lack.

A record of a registry wins over one here. Each has its page, which the data file names. `like` is another
model of the registry whose other limits and features the page says it shares.
"""

from typing import Any, NamedTuple

READ = "2026-11-23"
"""The day on which the pages were read."""

CLAUDE_DOCS = "https://platform.claude.com/docs/en"
OPENAI_DOCS = "https://developers.openai.com/api/docs"
GOOGLE_DOCS = "https://ai.google.dev/gemini-api/docs"
CLOUD_DOCS = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/models"
FIREBASE_DOCS = "https://firebase.google.com/docs/ai-logic"


class Documented(NamedTuple):
    """One model: whose limits and features it shares, what differs, and the page."""

    like: str | None
    record: dict[str, Any]
    source: str


_GEMINI_FEATURES = ["tools", "parallel_tools", "vision", "documents", "prompt_caching", "json"]


def _claude(sibling: str) -> Documented:
    prices = {"input_price": 8.0, "cached_input_price": 0.2, "output_price": 40.0}
    writes = {"cache_write_price": 10.0, "cache_write_1h_price": 16.0}
    page = f"{CLAUDE_DOCS}/models/fable-5-2/whats-new-fable-5-2"
    return Documented(sibling, prices | writes, page)


def _gpt(sibling: str, name: str, **prices: float) -> Documented:
    return Documented(sibling, prices, f"{OPENAI_DOCS}/models/{name}")


def _gemini(window: int, retires: str, source: str, **prices: float) -> Documented:
    limits = {"provider": "google", "context_window": window, "max_output": 8_192}
    return Documented(None, limits | {"supports": _GEMINI_FEATURES} | prices | {"retires": retires}, source)


MODELS: dict[str, Documented] = {
    "claude-fable-5-2": _claude("claude-fable-5-1"),
    "claude-mythos-5-2": _claude("claude-mythos-5-1"),
    "gpt-6.2-astra": _gpt(
        "gpt-6-astra",
        "gpt-6.2-astra",
        input_price=8.0,
        cached_input_price=0.4,
        output_price=40.0,
        cache_write_price=10.0,
    ),
    "gpt-6.2-sol": _gpt("gpt-6.1-sol", "gpt-6.2-sol"),
    "gemini-4-carbon": Documented("gemini-4-argon", {}, f"{CLOUD_DOCS}/gemini/4-carbon"),
    "gemini-4-hydrogen": Documented(
        "gemini-4-argon",
        {"input_price": 1.5, "cached_input_price": 0.075, "output_price": 7.5},
        f"{CLOUD_DOCS}/gemini/4-hydrogen",
    ),
    "gemini-2.0-flash": _gemini(
        1_048_576,
        "2026-06-01",
        f"{GOOGLE_DOCS}/deprecations",
        input_price=0.1,
        cached_input_price=0.025,
        output_price=0.4,
    ),
    "gemini-2.0-flash-lite": _gemini(
        1_048_576, "2026-06-01", f"{GOOGLE_DOCS}/deprecations", input_price=0.075, output_price=0.3
    ),
    "gemini-1.5-pro": _gemini(
        2_097_152,
        "2025-09-24",
        f"{FIREBASE_DOCS}/models",
        input_price=1.25,
        cached_input_price=0.3125,
        output_price=5.0,
    ),
    "gemini-1.5-flash": _gemini(
        1_048_576,
        "2025-09-24",
        f"{FIREBASE_DOCS}/models",
        input_price=0.075,
        cached_input_price=0.01875,
        output_price=0.3,
    ),
}

RETIRES = {
    "gemini-2.5-pro": "2026-12-01",
    "gemini-2.5-flash": "2026-12-01",
    "gemini-3.1-flash-lite": "2027-05-07",
}
"""Shutdown dates of Google's page "Gemini deprecations"; those of other providers are in their packages."""

CACHE_MINIMUM = {
    "openai": (r"(?!gpt-oss)", 1_024),  # guide "Prompt caching": 1,024 tokens or more
    "anthropic": (r"claude-(opus-4|sonnet-4|3-7-sonnet|3-5-sonnet|3-opus)$", 1_024),  # page "Prompt caching"
    "google": (r"gemini-2\.5-flash$", 2_048),  # page "Context caching"
}
"""Shortest cached prefix in tokens, by provider and pattern of names, where no registry has it."""

CLAUDE_WRITE = {"cache_write_price": 1.25, "cache_write_1h_price": 2.0}
"""Anthropic, "Prompt caching": a write for 5 minutes, and for an hour, relative to the input price."""

FACTORS = {name: {"fast": 6.0} for name in ("claude-opus-4-6", "claude-opus-4-7")}
"""Anthropic, "Fast mode": all prices of a request in it, relative to the usual ones."""

LONG_CONTEXT = dict.fromkeys(("claude-sonnet-4", "claude-sonnet-4-5"), (200000, 2.0, 1.5))
"""Anthropic, "Long context pricing": beyond so many input tokens, the prices of input and of output."""
