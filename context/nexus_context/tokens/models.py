"""Looks up the limits of a model in a dated data file, and chooses the counter that fits the model.

1. A name is looked up as it is, then without its decoration: provider prefix (`anthropic/`,
   `models/`, `us.anthropic.`), `@20250514`, `-20250514`, `-2024-08-06`, `-latest`, `-preview-05-06`,
   `-0613`, `-v1:0`, `:free`; dots between digits may stand for dashes (`claude-opus-4.5`). Claude Code's own
   names are those of its models: `opus`, `sonnet[1m]`, `claude-opus-4-6-fast`. `[1m]` states the window.
2. The configuration's `models` section overrides single fields, and adds models.
3. A name that is not found has a window of UNKNOWN_WINDOW, and `known` is False.
4. A model is assumed to have all features if nothing states its features, because proxies use names of their
   own. Likewise it is assumed to take tools, images or documents if its record says nothing about them
   (`unknown`).
5. The tokenizer depends on the name alone, so it is right for models that are not in the file, too.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from nexus_context.config.features import FEATURES, Feature
from nexus_context.text.decoding import decode_as
from nexus_context.tokens.counter import (
    AdditiveCounter,
    ScaledCounter,
    SimpleTokenCounter,
    TiktokenCounter,
    TokenCounter,
)
from nexus_context.tokens.families import Family, family_of

UNKNOWN_WINDOW = 128_000  # tokens
MILLION = 1_000_000

Lifetime = Literal["5m", "1h"]
"""How long a provider is asked to keep what it caches; a longer time costs more to write."""


class LongContextPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices that apply to all tokens of a request that sends more than `above` tokens. A price that is None
    is the same as for a shorter request.
    """

    above: int
    input_price: float | None = None
    cached_input_price: float | None = None
    output_price: float | None = None
    cache_write_price: float | None = None
    cache_write_1h_price: float | None = None


class ModelLimits(msgspec.Struct, frozen=True):
    """The limits and prices of a model. Sizes are in tokens, prices in US dollars per million tokens.

    `given` is the requested name, as a provider spells it, and `name` is the name in the registry.
    `context_window` is input and output together; `max_input` may be less. `known` is false if these sizes
    are a guess. `features_known` is false if nothing states which features the model supports. `family` says
    how its tokens are counted.

    `cache_write_price` is for the provider's short cache lifetime (5 minutes, at OpenAI 30),
    `cache_write_1h_price` for an hour. `long_context` has the prices of long requests. `price_factors` are
    multipliers of all prices: for a tier of service, for "fast", or for a place. `search_price` is the price
    of one web search. `cache_minimum` is the length of the shortest prefix that is cached, and `retires` is
    the ISO date of the provider's shutdown of the model.
    """

    given: str
    name: str
    provider: str | None
    context_window: int
    max_input: int
    max_output: int | None
    supports: tuple[str, ...]
    known: bool
    family: Family
    input_price: float | None = None
    cached_input_price: float | None = None
    output_price: float | None = None
    cache_write_price: float | None = None
    cache_write_1h_price: float | None = None
    long_context: LongContextPrices | None = None
    price_factors: dict[str, float] = {}
    search_price: float | None = None
    cache_minimum: int | None = None
    retires: str | None = None
    features_known: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def encoding(self) -> str:
        """The name of the vocabulary that the model's counter needs."""
        return self.family.encoding

    def write_price(self, lifetime: Lifetime) -> float | None:
        """Return the price of writing a token to the cache. It is the input price if writing has no price of
        its own.
        """
        hour_price = self.cache_write_1h_price if lifetime == "1h" else None
        return hour_price or self.cache_write_price or self.input_price

    def can(self, feature: Feature) -> bool:
        """Whether the model has a feature. True if nothing says whether it has it (rule 4)."""
        return not self.features_known or feature in self.supports or feature in self.unknown

    def limit(self, max_tokens: int | None) -> int:
        """Return the context window, or `max_tokens` if that is smaller. For an unknown model, `max_tokens`
        counts even if it is larger.
        """
        if max_tokens is None:
            return self.context_window
        return min(max_tokens, self.context_window) if self.known else max_tokens

    def available(self, max_tokens: int | None, reserved: int) -> int:
        """Return the tokens that a request may take: the window minus `reserved`, but no more than the
        model's maximum input.

        The result is at least 0.
        """
        limit = self.limit(max_tokens)
        max_input = self.max_input if self.known else limit  # a guess does not narrow the input
        return max(min(limit - reserved, max_input), 0)


def get_model_limits(
    model: str | None, overrides: Mapping[str, Mapping[str, Any]] | None = None
) -> ModelLimits:
    """Return the limits of `model`. `overrides` is the `models` section of the configuration; nothing is
    raised for an unknown model.
    """
    return _find_limits(model or "", overrides) if overrides else _known_limits(model or "")


@functools.lru_cache(maxsize=1_000)
def _known_limits(requested: str) -> ModelLimits:
    """The limits that the registry has, or guesses: they are asked for with each request of a session."""
    return _find_limits(requested, {})


def _find_limits(requested: str, overrides: Mapping[str, Mapping[str, Any]]) -> ModelLimits:
    names = list(candidates(requested))
    models = _registry().models if requested else {}  # most folders set no model
    record = next((models[name] for name in names if name in models), None)
    canonical = next((name for name in names if name in models), requested)
    changes = _override(names, requested, canonical, overrides)
    family = family_of(names[0])
    is_million = record is not None and "[1m]" in requested.lower()
    stated = max(record.context_window, MILLION) if record and is_million else None
    window = changes.get("context_window") or stated or (record.context_window if record else UNKNOWN_WINDOW)
    max_input = changes.get("max_input") or (
        record.max_input
        if record and record.max_input and not is_million and not changes.get("context_window")
        else window
    )
    return ModelLimits(
        given=requested,
        name=canonical,
        provider=changes.get("provider", record.provider if record else None),
        context_window=window,
        max_input=min(max_input, window),
        max_output=changes.get("max_output", record.max_output if record else None),
        supports=tuple(changes.get("supports", record.supports if record else ())),
        known=record is not None or "context_window" in changes,
        family=family,
        input_price=record.input_price if record else None,
        cached_input_price=record.cached_input_price if record else None,
        output_price=record.output_price if record else None,
        cache_write_price=record.cache_write_price if record else None,
        cache_write_1h_price=record.cache_write_1h_price if record else None,
        long_context=record.long_context if record else None,
        price_factors=record.price_factors if record else {},
        search_price=record.search_price if record else None,
        cache_minimum=record.cache_minimum if record else None,
        retires=record.retires if record else None,
        features_known=record is not None or "supports" in changes,
        unknown=record.unknown if record and "supports" not in changes else (),
    )


def supports_feature(
    model: str | None, feature: Feature, overrides: Mapping[str, Mapping[str, Any]] | None = None
) -> bool:
    """Whether a model has a feature. True if nothing says whether it has it, as for an unknown model.

    Raise ValueError if `feature` is not one of `FEATURES`.
    """
    if feature not in FEATURES:
        raise ValueError(f"There is no feature {feature!r}. Known: {', '.join(FEATURES)}.")
    return get_model_limits(model, overrides).can(feature)


def counter_for(model: str | None, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> TokenCounter:
    """Return the counter for `model`. It is exact if the model's tokenizer is public, else it is the o200k
    count times a factor.
    """
    return _counter(get_model_limits(model, overrides).family)


def get_token_counter(
    use_tiktoken: bool = True, *, model: str | None = None, encoding: str | None = None
) -> TokenCounter:
    """Return the counter for an `encoding`, else the one for a `model`, else one for cl100k_base. If
    `use_tiktoken` is false, return one that counts characters.

    Raise ValueError for an unknown encoding.
    """
    if not use_tiktoken:
        return SimpleTokenCounter()
    if encoding is not None:
        return TiktokenCounter(encoding)
    return counter_for(model) if model is not None else TiktokenCounter()


def model_names() -> tuple[str, ...]:
    """Return the names in the registry in its order: by provider, then by name."""
    return tuple(_registry().models)


def prices_date() -> str:
    """Return the day of the registry's prices, in ISO 8601."""
    return _registry().date


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: str
    context_window: int
    max_input: int | None = None  # absent: the window
    max_output: int | None = None
    supports: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    input_price: float | None = None
    cached_input_price: float | None = None
    output_price: float | None = None
    cache_write_price: float | None = None
    cache_write_1h_price: float | None = None
    long_context: LongContextPrices | None = None
    price_factors: dict[str, float] = {}
    search_price: float | None = None
    cache_minimum: int | None = None
    retires: str | None = None
    source: str | None = None  # the page of the documentation, where no package has the model


class _Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    version: str
    date: str
    models: dict[str, _Record]


@functools.cache
def _registry() -> _Registry:
    import pkgutil

    registry: _Registry = decode_as(
        pkgutil.get_data("nexus_context.tokens", "data/models.json") or b"", _Registry
    )
    return registry


# Patterns are strings: re compiles and keeps them on first use, not at import.
# Removed from the end, one after the other. A bare four-digit suffix is a month and a day or a year and a
# month (gpt-4-0613, codestral-2508).
_SUFFIX = (
    r"(?: -v\d+(?::\d+)? | :[a-z0-9.-]+ | @[a-z0-9-]+ | -\d{8} | -\d{4}-\d\d-\d\d | -latest | -default"
    r"| -preview(?:-\d\d-(?:\d{4}|\d\d))? | -exp | -\d{4} )$"
)
_VENDOR = (
    r"^(?:databricks-|(?:(?:us|us-gov|eu|apac|jp|au|ca|global)\.)?"
    r"(?:anthropic|meta|mistral|deepseek|openai|qwen|xai)\.)"
)
_FAMILIES = ("opus", "sonnet", "haiku", "fable")  # by which Claude Code calls the latest model
_LONGEST_NAME = 200  # code points; no model name is longer


def candidates(model: str) -> Iterator[str]:
    """Yield the names under which to look up a model in the registry, the longest first."""
    name = model[:_LONGEST_NAME].strip().lower()
    name = name.rpartition("/")[2]
    if not name:
        yield name
        return
    name = re.sub(_VENDOR, "", re.sub(r"\[[^\]]*\]$", "", name))
    if name.removesuffix("plan") in _FAMILIES:
        name = _latest_claude(name.removesuffix("plan"))
    while True:
        yield name
        dashed = re.sub(r"(?<=\d)\.(?=\d)", "-", name)
        if dashed != name:
            yield dashed
        if name.endswith("-0") and name.startswith("claude-"):
            yield name[:-2]  # claude-opus-4-0, an alias of claude-opus-4
        shorter = re.sub(_SUFFIX, "", name, flags=re.VERBOSE)
        if name.startswith("claude-"):
            shorter = shorter.removesuffix("-fast")
        if shorter == name:
            return
        name = shorter


@functools.cache
def _latest_claude(family: str) -> str:
    """The registry's latest model of a family of Claude."""
    pattern = re.compile(rf"claude-{family}-(\d+)(?:-(\d+))?")
    versions = [
        (int(version_match[1]), int(version_match[2] or 0), name)
        for name in model_names()
        if (version_match := pattern.fullmatch(name))
    ]
    return max(versions)[2] if versions else family


def _override(
    names: list[str], requested: str, canonical: str, overrides: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    for name in (requested, *names, canonical):
        if name in overrides:
            return {key: value for key, value in overrides[name].items() if value is not None}
    return {}


@functools.cache
def _counter(family: Family) -> AdditiveCounter:
    counter = TiktokenCounter(family.encoding, family=family)
    return counter if family.exact else ScaledCounter(counter, family.factor, family=family)
