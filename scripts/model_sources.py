"""Readers of the packages that the model registry is made from. Nothing of a package is imported or run.

litellm's table is JSON; the others are read as syntax. A source is a wheel, as `pip download` leaves it.
"""

import ast
import datetime
import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("litellm", "genai_prices", "openai", "anthropic", "google_genai")


class Sources(NamedTuple):
    """What the packages say.

    `table` is litellm's, by its own names; `windows` are total windows by provider and model; `names` are the
    models that a provider's package names; `retirements` are ISO dates by name; `versions` are the packages'.
    """

    table: dict[str, Any]
    windows: dict[str, dict[str, int]]
    names: dict[str, frozenset[str]]
    retirements: dict[str, str]
    versions: dict[str, str]


def find_wheels(folder: Path) -> dict[str, Path]:
    """The newest wheel of each package in a folder, by package."""
    wheels: dict[str, Path] = {}
    for package in PACKAGES:
        candidates = sorted(folder.glob(f"{package}-*.whl"), key=lambda path: _number(version_of(path)))
        if candidates:
            wheels[package] = candidates[-1]
    return wheels


def read_sources(wheels: dict[str, Path]) -> Sources:
    """Everything that the wheels of all PACKAGES say."""
    openai = _text(wheels["openai"], "openai/types/shared/chat_model.py")
    gemini = _text(wheels["google_genai"], "google/genai/_gaos/types/interactions/model.py")
    claude = _text(wheels["anthropic"], "anthropic/types/model_param.py")
    deprecated = _text(wheels["anthropic"], "anthropic/resources/messages/messages.py")
    return Sources(
        table=dict(
            json.loads(_text(wheels["litellm"], "litellm/model_prices_and_context_window_backup.json"))
        ),
        windows=read_windows(_text(wheels["genai_prices"], "genai_prices/data.py")),
        names={
            "openai": frozenset(literals(openai)),
            "anthropic": frozenset(literals(claude)),
            "google": frozenset(literals(gemini)),
        },
        retirements=openai_retirements(openai) | anthropic_retirements(deprecated),
        versions={package: version_of(path) for package, path in wheels.items()},
    )


def read_windows(source: str) -> dict[str, dict[str, int]]:
    """Total windows by provider and model, from the literals of genai_prices/data.py."""
    windows: dict[str, dict[str, int]] = {}
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Provider":
            fields = {keyword.arg: keyword.value for keyword in call.keywords}
            models = windows.setdefault(ast.literal_eval(fields["id"]), {})
            for model in fields["models"].elts if isinstance(fields["models"], ast.List) else []:
                if isinstance(model, ast.Call):
                    values = {keyword.arg: keyword.value for keyword in model.keywords}
                    if "context_window" in values and ast.literal_eval(values["context_window"]):
                        models[ast.literal_eval(values["id"])] = ast.literal_eval(values["context_window"])
    return windows


def literals(source: str) -> list[str]:
    """The strings of all `Literal[…]` in a module."""
    return [
        element.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
        for element in ast.walk(node.slice)
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    ]


def openai_retirements(source: str) -> dict[str, str]:
    """Shutdown dates from the documentation of `ChatModel`: a list of names, then a date."""
    text = " ".join(source.split())
    found: dict[str, str] = {}
    for names, date in re.findall(
        r'- ((?:"[^"]+"(?:, )?)+): Announced shutdown date: (\d{4}-\d\d-\d\d)', text
    ):
        found |= dict.fromkeys(re.findall(r'"([^"]+)"', names), date)
    return found


def anthropic_retirements(source: str) -> dict[str, str]:
    """Retirement dates from `DEPRECATED_MODELS`, written as "June 15th, 2026"."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "DEPRECATED_MODELS" for target in node.targets
        ):
            return {name: _iso(day) for name, day in ast.literal_eval(node.value).items()}
    return {}


def version_of(path: Path) -> str:
    """The version in a wheel's file name."""
    return path.name.split("-")[1]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _iso(day: str) -> str:
    plain = re.sub(r"(\d)(st|nd|rd|th)", r"\1", day)
    return datetime.datetime.strptime(plain, "%B %d, %Y").date().isoformat()  # a date only


def _text(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()
