"""Renew the model registry from packages on the disk, check it, and write its page: part of `make generate`.

    make models      # fetches the newest packages into .registries, then this
    python scripts/update_models.py [--from FOLDER] [--date DATE]

1. With the wheels of all packages in the folder, context/nexus_context/tokens/data/models.json is made anew
   (`model_records`); what differs from the committed file is printed. Without them the file stays.
2. The registry is checked: sizes, prices, features, dates.
3. docs/models.md is written from it.

It needs no network. The date of a registry without a change stays.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import documented_models
from model_records import FIELDS, PRICES, build
from model_sources import PACKAGES, Sources, find_wheels, read_sources
from models_page import page
from nexus_context.config.features import FEATURES

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "context/nexus_context/tokens/data/models.json"
PAGE = ROOT / "docs/models.md"
LEAST_MODELS = 40
SOURCE = (
    "PyPI wheels of litellm (limits, prices), genai-prices (total windows), openai, anthropic and "
    "google-genai (names, shutdown dates); the providers' documentation, read on {read}, where a model has a "
    "source"
)

Registry = dict[str, Any]


def main() -> int:
    """Renew, check, write; 0, or 1 if the registry has a mistake."""
    parser = argparse.ArgumentParser(description="Renew the model registry.")
    parser.add_argument("--from", dest="folder", type=Path, default=ROOT / ".registries", help="the wheels")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    options = parser.parse_args()

    registry: Registry = json.loads(TARGET.read_bytes())
    wheels = find_wheels(options.folder)
    if len(wheels) == len(PACKAGES):
        registry, notes = renew(registry, read_sources(wheels), options.date)
        TARGET.write_text(as_json(registry), encoding="utf-8")
        say([f"note: {note}" for note in notes])
    else:
        lacking = ", ".join(package for package in PACKAGES if package not in wheels)
        place = f"{options.folder.name} (`make models` fetches them)"
        say([f"models: not renewed, no package of {lacking} in {place}"])
    say(changes(committed(), registry) or ["models: as committed"])
    mistakes = list(problems(registry))
    say([f"mistake: {mistake}" for mistake in mistakes])
    if not mistakes:
        PAGE.write_text(page(registry), encoding="utf-8")
    say([f"models: {len(registry['models'])}, of {registry['date']}, from {registry['version']}"])
    return 1 if mistakes else 0


def renew(registry: Registry, sources: Sources, date: str) -> tuple[Registry, list[str]]:
    """The registry that the sources make, and what is worth a look. Without a change its date stays."""
    models, notes = build(sources)
    versions = ", ".join(
        f"{package.replace('_', '-')} {version}" for package, version in sources.versions.items()
    )
    renewed: Registry = {
        "source": SOURCE.format(read=documented_models.READ),
        "version": versions,
        "date": date,
    }
    renewed = renewed | {"models": models}
    same = {**registry, "date": date} == renewed
    return (registry if same else renewed), notes


def changes(before: Registry, after: Registry) -> list[str]:
    """What differs between two registries, a line for each model."""
    old, new = before.get("models", {}), after["models"]
    lines = [
        f"models: {field} is now {after[field]}"
        for field in ("version", "date")
        if before.get(field) != after.get(field)
    ]
    for name in [*new, *(name for name in old if name not in new)]:
        if name not in new:
            lines.append(f"models: - {name}")
        elif name not in old:
            lines.append(f"models: + {name} ({', '.join(fields(new[name]))})")
        elif old[name] != new[name]:
            differences = [
                f"{field} {old[name].get(field, 'none')} → {new[name].get(field, 'none')}"
                for field in FIELDS
                if old[name].get(field) != new[name].get(field)
            ]
            lines.append(f"models: {name}: {'; '.join(differences)}")
    return lines


def fields(record: dict[str, Any]) -> Iterator[str]:
    """The fields of a new model, for people."""
    yield from (
        f"{field} {record[field]}" for field in ("context_window", "max_output", "retires") if field in record
    )


def problems(registry: Registry) -> Iterator[str]:
    """What is wrong with a registry."""
    models = registry["models"]
    if len(models) < LEAST_MODELS:
        yield f"only {len(models)} models; at least {LEAST_MODELS} are promised"
    for name, record in models.items():
        for field in record:
            if field not in FIELDS:
                yield f"{name}: {field} is not a field"
        window = record.get("context_window", 0)
        sizes = [record[field] for field in ("max_input", "max_output", "cache_minimum") if field in record]
        if not all(0 < size <= window for size in [*sizes, window]):
            yield f"{name}: a size is not between 1 and the window of {window}"
        features = [*record.get("supports", ()), *record.get("unknown", ())]
        if mistaken := [feature for feature in features if feature not in FEATURES]:
            yield f"{name}: {', '.join(mistaken)} is not a feature"
        if not all(record.get(price, 1) > 0 for price in PRICES):
            yield f"{name}: a price is not positive"
        if record.get("cached_input_price", 0) > record.get("input_price", 0) > 0:
            yield f"{name}: reading from the cache costs more than the input"
        if record.get("cache_write_1h_price", 1e9) < record.get("cache_write_price", 0):
            yield f"{name}: a write for an hour costs less than one for the short lifetime"
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", record.get("retires", "2000-01-01")):
            yield f"{name}: {record['retires']} is not a date"


def as_json(registry: Registry) -> str:
    """The file: a line for each model."""
    head = json.dumps({key: value for key, value in registry.items() if key != "models"}, indent=1)[:-2]
    lines = [f"  {json.dumps(name)}: {json.dumps(record)}" for name, record in registry["models"].items()]
    return f'{head},\n "models": {{\n' + ",\n".join(lines) + "\n }\n}\n"


def committed() -> Registry:
    """The registry of the last commit; {} outside a repository."""
    place = f"HEAD:{TARGET.relative_to(ROOT).as_posix()}"
    shown = subprocess.run(["git", "show", place], cwd=ROOT, capture_output=True, check=False)
    return dict(json.loads(shown.stdout)) if shown.returncode == 0 else {}


def say(lines: list[str]) -> None:
    """Print lines."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
