"""Records of the model registry, from what the sources say.

1. Names, maximum input and output, abilities and prices are litellm's. Chat models of the makers
   themselves are taken, one name a model; EARLIER adds models that people still have in their files.
2. litellm gives the maximum input only. The total window is genai-prices', where that is input and output
   together, for the model itself or for one of the same maker with the same two limits; else it is the
   maximum input.
3. `-latest` is taken off a name where the name without it means the same limits.
4. `documented_models` adds models that litellm lacks, and rules of the documentation that hold for all models
   of a provider: the shortest prefix that is cached, the price of a write.
5. The day on which a model is shut down is the provider's own, else litellm's.
6. What else changes a price: `long_context` has the prices of a request beyond a length, `price_factors` what
   a tier, fast mode or a place multiply all prices by, `search_price` a web search on the provider's servers.
7. Windows on which litellm and genai-prices disagree by more than a rounding are reported.
"""

import re
from typing import Any

from documented_models import CACHE_MINIMUM, CLAUDE_WRITE, FACTORS, LONG_CONTEXT, MODELS, RETIRES
from model_sources import Sources
from nexus_context.tokens.models import candidates

Record = dict[str, Any]

# litellm's provider → ours, the names to take, genai-prices' provider
PROVIDERS = {
    "anthropic": ("anthropic", r"claude-", "anthropic"),
    "openai": ("openai", r"gpt-[3456]|o[134](-|$)", "openai"),
    "gemini": ("google", r"gemini-\d|gemma-[34]", "google"),
    "xai": ("xai", r"grok-", "x-ai"),
    "mistral": ("mistral", r"(open-)?mistral-|codestral|devstral|magistral|ministral|pixtral", "mistral"),
    "deepseek": ("deepseek", r"deepseek-", "deepseek"),
    "meta_llama": ("meta", r"llama-", "meta"),
    "meta": ("meta", r"muse-", "meta"),
    "dashscope": ("qwen", r"qw", "qwen"),
    "moonshot": ("moonshot", r"kimi-", "moonshotai"),
    "zai": ("zai", r"glm-", "zai"),
}

# not chat models of general use, previews of a day, and second names of a model
LEFT_OUT = re.compile(
    r"audio|tts|image|search|realtime|deep-research|robotics|computer-use|omni|embed|moderation|vision|"
    r"cyber|rosalind|-law|-exp|experimental|beta|multi-agent|gv2|customtools|contributor|mistral-code|vibe|"
    r"transcribe|gpt-5\.1-mini|-vl-|mamba|ministral-3-|grok-4\.20-|mistral-(large|medium|small)-\d{4}$|-4-0$|medium-3-5$|"
    r"-\d{8}$|-\d{4}-\d\d-\d\d$|-\d{4}$"
)

# our name → litellm's key at a host of it: models that litellm no longer lists under their makers
EARLIER = {
    "claude-opus-4-1": "anthropic.claude-opus-4-1-20250805-v1:0",
    "claude-opus-4": "anthropic.claude-opus-4-20250514-v1:0",
    "claude-sonnet-4": "anthropic.claude-sonnet-4-20250514-v1:0",
    "claude-3-7-sonnet": "vercel_ai_gateway/anthropic/claude-3-7-sonnet",
    "claude-3-5-sonnet": "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "claude-3-5-haiku": "anthropic.claude-3-5-haiku-20241022-v1:0",
    "claude-3-opus": "anthropic.claude-3-opus-20240229-v1:0",
    "claude-3-haiku": "vertex_ai/claude-3-haiku",
    "gpt-4-32k": "azure/gpt-4-32k",
    "gpt-4-0125-preview": "azure/gpt-4-0125-preview",
    "gpt-4.5-preview": "azure/gpt-4.5-preview",
    "gpt-oss-120b": "groq/openai/gpt-oss-120b",
    "gpt-oss-20b": "groq/openai/gpt-oss-20b",
    "o1-mini": "azure/o1-mini",
    "grok-4": "vercel_ai_gateway/xai/grok-4",
    "grok-3": "vercel_ai_gateway/xai/grok-3",
    "grok-3-mini": "vercel_ai_gateway/xai/grok-3-mini",
}

ABILITIES = {
    "supports_function_calling": "tools",
    "supports_parallel_function_calling": "parallel_tools",
    "supports_vision": "vision",
    "supports_pdf_input": "documents",
    "supports_prompt_caching": "prompt_caching",
    "supports_reasoning": "thinking",
    "supports_response_schema": "json",
}

INPUTS = ("supports_function_calling", "supports_vision", "supports_pdf_input")
"""What a message can hold. litellm states all of it for MAKERS' models; of others it may just not know."""

MAKERS = frozenset(("openai", "anthropic", "google"))

UNCACHED = re.compile(r"gpt-3\.5|gpt-4(-|$)")
"""Models that litellm gives a prompt cache. OpenAI's guide has one for gpt-4o and newer models only."""

CORRECTIONS = {
    "claude-3-5-haiku": "vision",
    "claude-3-7-sonnet": "documents",
    "claude-3-haiku": "prompt_caching",
    "claude-3-opus": "prompt_caching",
    "open-mistral-nemo": "tools",
}
"""What the providers' own documentation says beyond litellm's table."""

PRICES = {
    "input_price": "input_cost_per_token",
    "cached_input_price": "cache_read_input_token_cost",
    "output_price": "output_cost_per_token",
    "cache_write_price": "cache_creation_input_token_cost",
    "cache_write_1h_price": "cache_creation_input_token_cost_above_1hr",
}


TIERS = {"priority": "_priority", "flex": "_flex", "batch": "_batches"}
"""Tiers of service, and how litellm's names of their prices end."""

FIELDS = (
    "provider",
    "context_window",
    "max_input",
    "max_output",
    "supports",
    "unknown",
    *PRICES,
    "long_context",
    "price_factors",
    "search_price",
    "cache_minimum",
    "retires",
    "source",
)
"""The fields of a record, in the order of the file."""

ROUNDING = 0.06  # 1,000,000 for 1,048,576
OLDEST = "2026-01-01"  # models that were shut down earlier need not be in the registry


def build(sources: Sources) -> tuple[dict[str, Record], list[str]]:
    """The registry's records by name, in the order of PROVIDERS, then by name; and what is worth a look."""
    notes: list[str] = []
    records: dict[tuple[int, str], Record] = {}
    for key, entry in sources.table.items():
        name = key.rpartition("/")[2].lower()
        if entry.get("litellm_provider") not in PROVIDERS or entry.get("mode") not in ("chat", "responses"):
            continue
        provider, pattern, peer = PROVIDERS[entry["litellm_provider"]]
        if not re.match(pattern, name) or LEFT_OUT.search(name) or not entry.get("max_input_tokens"):
            continue
        windows = sources.windows.get(peer, {})
        records[rank(provider), name] = read_record(name, provider, entry, windows, notes)
    for place, name in list(records):
        base = (place, name.removesuffix("-latest"))
        if base[1] != name and records.get(base, records[place, name]) == records[place, name]:
            records[base] = records.pop((place, name))
    for name, key in EARLIER.items():
        provider = "anthropic" if "claude" in name else "xai" if "grok" in name else "openai"
        if (rank(provider), name) not in records and key in sources.table:
            records[rank(provider), name] = read_record(name, provider, sources.table[key], {}, notes)
    for (_, name), record in records.items():
        note_unknown(name, record, sources.table)
    widen_siblings(list(records.values()))
    add_documented(records)
    for (_, name), record in records.items():
        complete(name, record, sources.retirements)
    ordered = {name: records[place, name] for place, name in sorted(records)}
    return ordered, [*dict.fromkeys(notes), *unknown_names(sources, ordered)]


def read_record(name: str, provider: str, entry: Record, windows: dict[str, int], notes: list[str]) -> Record:
    """One model's record; absent fields are left out, and so is a maximum input that is the window."""
    max_input = entry["max_input_tokens"]
    record: Record = {"provider": provider, "context_window": max_input}
    if entry.get("max_output_tokens"):
        record["max_output"] = entry["max_output_tokens"]
        window = windows.get(name, max_input)
        if window == max_input + record["max_output"]:
            record |= {"context_window": window, "max_input": max_input}
        elif abs(window - max_input) > ROUNDING * max_input:
            notes.append(f"{name}: litellm has {max_input} in, genai-prices {window}; litellm's is used")
    record["supports"] = [
        ours
        for theirs, ours in ABILITIES.items()
        if (entry.get(theirs) or CORRECTIONS.get(name) == ours)
        and not (ours == "prompt_caching" and UNCACHED.match(name))
    ]
    record |= {ours: round(entry[theirs] * 1e6, 6) for ours, theirs in PRICES.items() if entry.get(theirs)}
    record |= read_surcharges(provider, entry)
    if entry.get("prompt_cache_min_tokens"):
        record["cache_minimum"] = int(entry["prompt_cache_min_tokens"])
    if entry.get("deprecation_date"):
        record["retires"] = entry["deprecation_date"]
    return record


def read_surcharges(provider: str, entry: Record) -> Record:
    """What changes the prices of a request, as far as litellm says it (rule 6)."""
    surcharges: Record = {}
    above = [
        match for key in entry if (match := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key))
    ]
    if above:
        beyond = min(int(match[1]) for match in above)
        end = f"_above_{beyond}k_tokens"
        prices = {ours: entry[theirs + end] for ours, theirs in PRICES.items() if entry.get(theirs + end)}
        long = {ours: round(price * 1e6, 6) for ours, price in prices.items() if price}
        surcharges |= {"long_context": {"above": beyond * 1_000} | long} if long else {}
    price = PRICES["input_price"]
    factors = {
        tier: round(entry[price + end] / entry[price], 4)
        for tier, end in TIERS.items()
        if entry.get(price) and entry.get(price + end)
    }
    factors |= entry.get("provider_specific_entry") or {} if provider == "anthropic" else {}
    searches = entry.get("search_context_cost_per_query") or {}
    if provider == "anthropic" and searches:
        surcharges["search_price"] = searches["search_context_size_medium"]
    return surcharges | ({"price_factors": factors} if factors else {})


def note_unknown(name: str, record: Record, table: dict[str, Any]) -> None:
    """Note the INPUTS that a model may take: neither its record nor that of another host says."""
    if record["provider"] in MAKERS:
        return
    hosts = [entry for key, entry in table.items() if key.rpartition("/")[2].lower() == name]
    stated = {theirs: {entry.get(theirs) for entry in hosts} for theirs in INPUTS}
    unknown = [
        ABILITIES[theirs]
        for theirs in INPUTS
        if ABILITIES[theirs] not in record["supports"]
        and (True in stated[theirs] or False not in stated[theirs])
    ]
    if "vision" not in [*record["supports"], *unknown]:  # who sees nothing reads no PDF
        unknown = [feature for feature in unknown if feature != "documents"]
    record |= {"unknown": unknown} if unknown else {}


def widen_siblings(records: list[Record]) -> None:
    """Give the total window to models of a maker with the same two limits as one whose window is known."""
    windows = {
        (record["provider"], record["max_input"], record["max_output"]): record["context_window"]
        for record in records
        if "max_input" in record
    }
    for record in records:
        window = windows.get((record["provider"], record["context_window"], record.get("max_output")))
        if window and "max_input" not in record:
            record |= {"context_window": window, "max_input": record["context_window"]}


def add_documented(records: dict[tuple[int, str], Record]) -> None:
    """Add the models that only the documentation has."""
    by_name = {name: record for (_, name), record in records.items()}
    for name, (like, own, source) in MODELS.items():
        if name not in by_name:
            shared = by_name[like] if like else {}
            record = shared | own | {"source": source}
            if "long_context" in shared:  # what it adds to the usual prices is the same
                long = shared["long_context"]
                record["long_context"] = long | {
                    price: round(long[price] / shared[price] * record[price], 6)
                    for price in PRICES
                    if price in long
                }
            records[rank(record["provider"]), name] = {
                field: record[field] for field in FIELDS if field in record
            }


def complete(name: str, record: Record, retirements: dict[str, str]) -> None:
    """Add what the documentation says of all models of a provider, and the provider's own shutdown date."""
    caches = "prompt_caching" in record["supports"]
    pattern, minimum = CACHE_MINIMUM.get(record["provider"], ("$^", 0))
    if caches and re.match(pattern, name):
        record.setdefault("cache_minimum", minimum)
    if caches and record["provider"] == "anthropic" and "input_price" in record:
        for field, factor in CLAUDE_WRITE.items():
            record.setdefault(field, round(record["input_price"] * factor, 6))
    if name in FACTORS:
        record["price_factors"] = record.get("price_factors", {}) | FACTORS[name]
    if name in LONG_CONTEXT:
        above, of_input, of_output = LONG_CONTEXT[name]
        record.setdefault(
            "long_context",
            {"above": above}
            | {
                price: round(record[price] * (of_output if price == "output_price" else of_input), 6)
                for price in PRICES
                if price in record
            },
        )
    dates = {_undated(dated): date for dated, date in retirements.items()} | retirements | RETIRES
    if name in dates:
        record["retires"] = dates[name]
    ordered = {field: record[field] for field in FIELDS if field in record}
    record.clear()
    record |= ordered


def unknown_names(sources: Sources, records: dict[str, Record]) -> list[str]:
    """The models that a provider's package names and the registry lacks, but for those that it leaves out."""
    notes = []
    patterns = {provider: pattern for provider, pattern, _ in PROVIDERS.values()}
    for provider, names in sources.names.items():
        for name in sorted(names):
            retired = sources.retirements.get(name, "9")
            skipped = not re.match(patterns[provider], name) or LEFT_OUT.search(name) or retired < OLDEST
            if not skipped and not any(candidate in records for candidate in candidates(name)):
                notes.append(f"{name}: named by the package of {provider}, but without limits in any source")
    return notes


def rank(provider: str) -> int:
    """Place of one of our providers."""
    return list(dict.fromkeys(ours for ours, _, _ in PROVIDERS.values())).index(provider)


def _undated(name: str) -> str:
    """A name without its date, `-latest` and the `-0` of Claude 4."""
    return re.sub(r"(-\d{8}|-\d{4}-\d\d-\d\d|-latest|(?<=-4)-0)$", "", name)
