"""docs/models.md: the models of the registry, as a page."""

from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]

_INTRODUCTION = """# Models

Nexus knows these models: how much fits, what a token costs, what a model takes, and from which length on its
provider caches a prefix. A name may have a provider's prefix, a date or `-latest`:
`anthropic/claude-sonnet-4-20250514` is `claude-sonnet-4`. A model that is not listed has a window of 128,000
tokens, marked as a guess. The section [`models`](configuration.md#models) of the settings adds models and
corrects single limits.

The table is made from {version} ({date}),
and from the providers' documentation where a row has a link. `make generate` writes it;
[CONTRIBUTING](../CONTRIBUTING.md#the-model-registry) says how to renew it.

Window, input and output are in tokens; prices are in US dollars per million tokens. *Other prices* has what
changes all of them: beyond a length of the request (input, cached, output), in a tier of service, in fast
mode, if the request is kept in a country; `search` is the price of a web search. *Minimum* is the shortest
prefix that is cached; *write* is the price of writing it for the provider's short lifetime (5 minutes at
Anthropic, 30 at OpenAI), *1 h* for an hour. *Until* is the day on which the provider shuts the model down, or
shut it down. A question mark stands behind what no package says of a model: it is sent.
"""

_HEADS = (
    ("Model", ":---"),
    ("Window", "---:"),
    ("Input", "---:"),
    ("Output", "---:"),
    ("Takes", ":---"),
    ("In", "---:"),
    ("Cached", "---:"),
    ("Write", "---:"),
    ("1 h", "---:"),
    ("Out", "---:"),
    ("Other prices", ":---"),
    ("Minimum", "---:"),
    ("Until", ":---"),
)
_NAMES = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "google": "Google",
    "xai": "xAI",
    "mistral": "Mistral",
    "deepseek": "DeepSeek",
    "meta": "Meta",
    "qwen": "Qwen",
    "moonshot": "Moonshot",
    "zai": "Z.ai",
}


def page(registry: Record) -> str:
    """The page of a registry."""
    parts = [_INTRODUCTION.format(version=registry["version"], date=registry["date"])]
    for provider, title in _NAMES.items():
        rows = [
            row(name, record) for name, record in registry["models"].items() if record["provider"] == provider
        ]
        heads = [
            f"| {' | '.join(head for head, _ in _HEADS)} |",
            f"| {' | '.join(line for _, line in _HEADS)} |",
        ]
        parts.append("\n".join([f"## {title}\n", *heads, *rows, ""]))
    return "\n".join(parts)


def surcharges(record: Record) -> Iterator[str]:
    """What changes a model's prices, each in a few words."""
    if "long_context" in record:
        long = record["long_context"]
        prices = [
            long[name] for name in ("input_price", "cached_input_price", "output_price") if name in long
        ]
        yield f"> {long['above'] // 1_000}k: {' / '.join(f'{price:g}' for price in prices)}"
    yield from (f"{name} × {factor:g}" for name, factor in record.get("price_factors", {}).items())
    if "search_price" in record:
        yield f"search {record['search_price']:g}"


def row(name: str, record: Record) -> str:
    """One model's row."""
    prices = (
        "input_price",
        "cached_input_price",
        "cache_write_price",
        "cache_write_1h_price",
        "output_price",
    )
    cells = (
        f"[{name}]({record['source']})" if "source" in record else name,
        f"{record['context_window']:,}",
        f"{record.get('max_input', record['context_window']):,}",
        f"{record['max_output']:,}" if "max_output" in record else "",
        ", ".join([*record["supports"], *(f"{feature}?" for feature in record.get("unknown", ()))]),
        *(f"{record[price]:g}" if price in record else "" for price in prices),
        "; ".join(surcharges(record)),
        f"{record['cache_minimum']:,}" if "cache_minimum" in record else "",
        record.get("retires", ""),
    )
    return f"| {' | '.join(cells)} |"
