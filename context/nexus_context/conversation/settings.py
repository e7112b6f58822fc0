"""Model parameters as fields of a provider's request, and the names of those that it cannot take.

Anthropic: thinking needs a budget of at least LEAST_BUDGET below `max_tokens`, and allows no `temperature`
and `top_k`, and `top_p` only from LEAST_TOP_P on. OpenAI: the level of thinking is `reasoning_effort`.
"""

from collections.abc import Mapping
from typing import Any

LEAST_BUDGET = 1_024  # tokens
LEAST_TOP_P = 0.95
BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 16_384, "high": 32_768}
"""Tokens of thinking for a level without a budget of its own."""

Settings = dict[str, Any]


def openai(parameters: Mapping[str, Any], *, thinks: bool) -> tuple[Settings, list[str]]:
    """Fields for chat completions. `thinks` says whether the model can be told how much to think."""
    settings: Settings = {}
    for name, theirs in (
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("max_tokens", "max_completion_tokens"),
    ):
        if parameters.get(name) is not None:
            settings[theirs] = parameters[name]
    unsent = ["top_k"] if parameters.get("top_k") is not None else []
    level, budget = _thinking(parameters)
    if thinks and level in BUDGETS:
        settings["reasoning_effort"] = level
    elif level is not None:
        unsent.append("thinking.level")
    if budget is not None:
        unsent.append("thinking.budget")
    return settings, unsent


def anthropic(parameters: Mapping[str, Any], *, max_output: int, thinks: bool) -> tuple[Settings, list[str]]:
    """Fields for messages. `max_output` is sent where no `max_tokens` is set: it is required."""
    most = parameters.get("max_tokens") or max_output
    settings: Settings = {"max_tokens": most}
    unsent: list[str] = []
    level, budget = _thinking(parameters)
    wanted = (level is not None or budget is not None) and level != "off"
    tokens = min(budget or BUDGETS.get(level or "", 0), most - 1)
    thinking = wanted and thinks and tokens >= LEAST_BUDGET
    if thinking:
        settings["thinking"] = {"type": "enabled", "budget_tokens": tokens}
    elif wanted:
        unsent.append("thinking")
    for name in ("temperature", "top_p", "top_k"):
        value = parameters.get(name)
        if value is None:
            continue
        if thinking and not (name == "top_p" and value >= LEAST_TOP_P):
            unsent.append(name)
        else:
            settings[name] = value
    return settings, unsent


def _thinking(parameters: Mapping[str, Any]) -> tuple[str | None, int | None]:
    given = parameters.get("thinking") or {}
    return given.get("level"), given.get("budget")
