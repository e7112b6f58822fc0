"""Make context/nexus_context/tokens/data/models.json from the wheels of litellm and genai-prices.

    pip download --no-deps litellm genai-prices
    python scripts/update_models.py litellm-*.whl genai_prices-*.whl

1. Names, maximum input and output, abilities and prices are litellm's. Chat models of the makers
   themselves are taken, one name a model; EARLIER adds models that people still have in their files.
2. litellm gives the maximum input only. The total window is genai-prices', where that is input and output
   together, for the model itself or for one of the same maker with the same two limits; else it is the
   maximum input.
3. `-latest` is taken off a name where the name without it means the same limits.
4. Windows on which the two disagree by more than a rounding are printed.

Nothing of either package is imported or run: litellm's table is JSON, genai-prices' is read as syntax.
"""

import argparse
import ast
import datetime
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "context/nexus_context/tokens/data/models.json"

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
    r"-vl-|mamba|ministral-3-|grok-4\.20-|mistral-(large|medium|small)-\d{4}$|-4-0$|medium-3-5$|"
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

CORRECTIONS = {
    "claude-3-5-haiku": "vision",
    "claude-3-7-sonnet": "documents",
    "open-mistral-nemo": "tools",
}
"""What the providers' own documentation says beyond litellm's table."""

PRICES = {
    "input_price": "input_cost_per_token",
    "cached_input_price": "cache_read_input_token_cost",
    "output_price": "output_cost_per_token",
}


ROUNDING = 0.06  # 1,000,000 for 1,048,576


def main() -> int:
    """Write the registry; 0, or 1 when it would shrink below what is promised."""
    parser = argparse.ArgumentParser(description="Make the model registry's data file.")
    parser.add_argument("litellm", type=Path, help="wheel of litellm, or its JSON table")
    parser.add_argument("genai_prices", type=Path, help="wheel of genai-prices")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    arguments = parser.parse_args()

    table = read_litellm(arguments.litellm)
    windows = read_windows(arguments.genai_prices)
    models = select(table, windows)
    registry = {
        "source": "PyPI wheels of litellm (limits, prices) and genai-prices (total windows)",
        "version": f"litellm {version(arguments.litellm)}, genai-prices {version(arguments.genai_prices)}",
        "date": arguments.date,
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(record)}" for name, record in models.items()]
    head = json.dumps(registry, indent=1)[:-2]
    TARGET.write_text(f'{head},\n "models": {{\n' + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")
    sys.stdout.write(f"{len(models)} models, {TARGET.stat().st_size} bytes, in {TARGET}\n")
    return 0 if len(models) >= 40 else 1


def select(table: dict[str, Any], windows: dict[str, dict[str, int]]) -> dict[str, dict[str, Any]]:
    """The registry's records by name, in the order of PROVIDERS, then by name."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for key, entry in table.items():
        name = key.rpartition("/")[2].lower()
        if entry.get("litellm_provider") not in PROVIDERS or entry.get("mode") not in ("chat", "responses"):
            continue
        provider, wanted, peer = PROVIDERS[entry["litellm_provider"]]
        if not re.match(wanted, name) or LEFT_OUT.search(name) or not entry.get("max_input_tokens"):
            continue
        found[rank(provider), name] = record(name, provider, entry, windows.get(peer, {}))
    for place, name in list(found):
        base = (place, name.removesuffix("-latest"))
        if base[1] != name and found.get(base, found[place, name]) == found[place, name]:
            found[base] = found.pop((place, name))
    for name, key in EARLIER.items():
        provider = "anthropic" if "claude" in name else "xai" if "grok" in name else "openai"
        found.setdefault((rank(provider), name), record(name, provider, table[key], {}))
    widen_siblings(list(found.values()))
    return {name: found[place, name] for place, name in sorted(found)}


def record(name: str, provider: str, entry: dict[str, Any], windows: dict[str, int]) -> dict[str, Any]:
    """One model's record; absent fields are left out, and so is a maximum input that is the window."""
    max_input = entry["max_input_tokens"]
    made: dict[str, Any] = {"provider": provider, "context_window": max_input}
    if entry.get("max_output_tokens"):
        made["max_output"] = entry["max_output_tokens"]
        if windows.get(name) == max_input + made["max_output"]:
            made |= {"context_window": windows[name], "max_input": max_input}
        elif abs(windows.get(name, max_input) - max_input) > ROUNDING * max_input:
            sys.stdout.write(
                f"{name}: litellm has {max_input} in, genai-prices {windows[name]}; litellm's is used\n"
            )
    made["supports"] = [
        ours for theirs, ours in ABILITIES.items() if entry.get(theirs) or CORRECTIONS.get(name) == ours
    ]
    made |= {ours: round(entry[theirs] * 1e6, 4) for ours, theirs in PRICES.items() if entry.get(theirs)}
    if entry.get("prompt_cache_min_tokens"):
        made["cache_minimum"] = int(entry["prompt_cache_min_tokens"])
    if entry.get("deprecation_date"):
        made["retires"] = entry["deprecation_date"]
    return made


def widen_siblings(records: list[dict[str, Any]]) -> None:
    """Give the total window to models of a maker with the same two limits as one whose window is known."""
    known = {
        (made["provider"], made["max_input"], made["max_output"]): made["context_window"]
        for made in records
        if "max_input" in made
    }
    for made in records:
        window = known.get((made["provider"], made["context_window"], made.get("max_output")))
        if window and "max_input" not in made:
            made |= {"context_window": window, "max_input": made["context_window"]}


def rank(provider: str) -> int:
    """Place of one of our providers."""
    return list(dict.fromkeys(ours for ours, _, _ in PROVIDERS.values())).index(provider)


def read_litellm(path: Path) -> dict[str, Any]:
    """The table, from the wheel or from the JSON file itself."""
    if path.suffix == ".json":
        return dict(json.loads(path.read_bytes()))
    with zipfile.ZipFile(path) as wheel:
        return dict(json.loads(wheel.read("litellm/model_prices_and_context_window_backup.json")))


def read_windows(path: Path) -> dict[str, dict[str, int]]:
    """Total windows by provider and model, from the literals of genai_prices/data.py."""
    with zipfile.ZipFile(path) as wheel:
        tree = ast.parse(wheel.read("genai_prices/data.py"))
    windows: dict[str, dict[str, int]] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Provider":
            fields = {keyword.arg: keyword.value for keyword in call.keywords}
            models = windows.setdefault(ast.literal_eval(fields["id"]), {})
            for model in fields["models"].elts if isinstance(fields["models"], ast.List) else []:
                if isinstance(model, ast.Call):
                    values = {keyword.arg: keyword.value for keyword in model.keywords}
                    if "context_window" in values and ast.literal_eval(values["context_window"]):
                        models[ast.literal_eval(values["id"])] = ast.literal_eval(values["context_window"])
    return windows


def version(path: Path) -> str:
    """The version in a wheel's file name."""
    return path.name.split("-")[1] if path.suffix == ".whl" else "of unknown version"


if __name__ == "__main__":
    sys.exit(main())
