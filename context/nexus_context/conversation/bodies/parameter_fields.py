"""Converts model parameters to fields of a provider's request, and reports those that the provider does not
accept.

1. Anthropic accepts a temperature from 0 to 1. From Claude 4.1 on, `top_p` is not allowed beside a
   temperature. From 4.7 on, `temperature`, `top_p` and `top_k` are not allowed at all.
2. Up to Claude 4.5, thinking needs a budget of at least LEAST_BUDGET that is less than `max_tokens`. It
   allows neither `temperature` nor `top_k`, and `top_p` only from LEAST_TOP_P on. From 4.6 on, the model
   decides how much to think, given an effort. From 4.7 on, it accepts no budget. From 5 on, it thinks unless
   it is told not to; 5.5, Fable and Mythos cannot be told that.
3. OpenAI's field for the level of thinking is `reasoning_effort`. A model that thinks accepts neither
   `temperature` nor `top_p`. GPT-5.1 to 5.6 can be told not to think, with the level off.
4. In chat completions beside tools, GPT-5.4 and 5.5 accept no effort, and later models accept only `none`.
   Responses accept every effort beside tools, and return a model's reasoning encrypted if the request asks
   for it.
5. Up to Gemini 2.5, thinking has a budget in the range of the model; a budget of 0 means no thinking, for
   models that can stop. From 3 on, thinking has a level. Only Flash up to 3.5 accepts `minimal`, 3.0 Pro does
   not accept `medium`, and no model can be told not to think.
6. A model with an unknown name is assumed to accept everything: proxies use names of their own.

Sources: the providers' parameter lists in their Python packages (openai 3.54, anthropic 2.12 with its limits
for requests without streaming, google-genai 3.4), the levels and budgets in the documentation of the Gemini
API, and the errors that servers return.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

LEAST_BUDGET = 1_024  # tokens
LEAST_TOP_P = 0.95
MOST_AT_ONCE = 21_333
"""Tokens of an answer that Anthropic's SDKs wait for without streaming: ten minutes at 128,000 an hour."""
MOST_AT_ONCE_OF_OPUS_4 = 8_192
"""The same for Claude Opus 4 and 4.1."""
BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 16_384, "high": 32_768}
"""Tokens of thinking for a level without a budget."""

GEMINI_BUDGETS = {"pro": (128, 32_768), "lite": (512, 24_576), "": (1, 24_576)}
"""The least and the most tokens of thinking of a Gemini 2.5, by a part of its name."""

Settings = dict[str, Any]

_NEWEST: tuple[int, int] = (99, 0)
_CLAUDE_VERSION = r"-v?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"
_GPT = r"gpt-(\d)(?:\.(\d+))?(?:-(.+))?$"


class _Gpt(NamedTuple):
    """A model of OpenAI that thinks: GPT-5 and later, and the o series as version (1, 0)."""

    version: tuple[int, int]
    variant: str

    @property
    def can_stop(self) -> bool:
        """Whether it can be told not to think."""
        major = self.version[0]
        return self.version >= (5, 1) and (major < 6 or self.variant in ("sol", "luna"))


_NO_VERSION: tuple[int, int] = (0, 0)


def openai(
    parameters: Mapping[str, Any],
    *,
    thinks: bool,
    model: str = "",
    tools: bool = False,
    limit: int | None = None,
) -> tuple[Settings, list[str]]:
    """Return the fields for chat completions, and a text for each parameter that is not sent or is changed.

    `thinks` is true if the model can be told how much to think, and `tools` if the request has tools. `limit`
    is the largest number of tokens of an answer, or None if it is unknown.
    """
    unsent: list[str] = []
    gpt = _gpt(model)
    effort = _effort(parameters, gpt, thinks, unsent)
    if tools and gpt is not None and gpt.version >= (5, 4):
        effort = _effort_beside_tools(effort, gpt, model, unsent)
    settings = _openai_sampling(parameters, gpt, effort, model=model, unsent=unsent)
    if parameters.get("max_tokens") is not None:
        settings["max_completion_tokens"] = _capped(parameters["max_tokens"], limit, unsent)
    if parameters.get("top_k") is not None:
        unsent.append("top_k: OpenAI does not accept it")
    if effort is not None:
        settings["reasoning_effort"] = effort
    return settings, unsent


def openai_responses(
    parameters: Mapping[str, Any], *, thinks: bool, model: str = "", limit: int | None = None
) -> tuple[Settings, list[str]]:
    """Return the fields for responses, and a text for each parameter that is not sent or is changed. `thinks`
    and `limit` mean the same as in `openai`.
    """
    unsent: list[str] = []
    gpt = _gpt(model)
    effort = _effort(parameters, gpt, thinks, unsent)
    settings = _openai_sampling(parameters, gpt, effort, model=model, unsent=unsent)
    if parameters.get("max_tokens") is not None:
        settings["max_output_tokens"] = _capped(parameters["max_tokens"], limit, unsent)
    if parameters.get("top_k") is not None:
        unsent.append("top_k: OpenAI does not accept it")
    if effort is not None:
        settings["reasoning"] = {"effort": effort}
    if gpt is not None or effort is not None:
        settings["include"] = ["reasoning.encrypted_content"]
    return settings, unsent


def gemini(
    parameters: Mapping[str, Any], *, thinks: bool, model: str = "", limit: int | None = None
) -> tuple[Settings, list[str]]:
    """Return the fields for `generateContent`, and a text for each parameter that is not sent or is changed.
    `thinks` and `limit` mean the same as in `openai`.
    """
    unsent: list[str] = []
    config = {
        field: parameters[name]
        for name, field in (("temperature", "temperature"), ("top_p", "topP"), ("top_k", "topK"))
        if parameters.get(name) is not None
    }
    if parameters.get("max_tokens") is not None:
        config["maxOutputTokens"] = _capped(parameters["max_tokens"], limit, unsent)
    level, budget = _thinking(parameters)
    if (level is not None or budget is not None) and not thinks:
        if level != "off":
            unsent.append("thinking: the model does not support it")
    elif level is not None or budget is not None:
        version = gemini_version(model) or _NEWEST
        choose = _gemini_level if version >= (3, 0) else _gemini_budget
        thinking = choose(level, budget, model, unsent)
        if thinking:
            config["thinkingConfig"] = thinking
    return ({"generationConfig": config} if config else {}), unsent


def anthropic(
    parameters: Mapping[str, Any],
    *,
    max_output: int,
    thinks: bool,
    model: str = "",
    limit: int | None = None,
) -> tuple[Settings, list[str]]:
    """Return the fields for messages, and a text for each parameter that is not sent or is changed.

    `max_output` is sent if the parameter `max_tokens` is not set, because the provider requires a value. It
    is reduced to what the SDKs take without streaming, unless thinking needs more. `limit` is the largest
    number of tokens of an answer, or None if it is unknown.
    """
    unsent: list[str] = []
    version = claude_version(model) or _NO_VERSION
    level, budget = _thinking(parameters)
    is_opus = "opus" in model.lower() and (4, 0) <= version <= (4, 1)
    at_once = MOST_AT_ONCE_OF_OPUS_4 if is_opus else MOST_AT_ONCE
    if max(budget or 0, BUDGETS.get(level or "", 0) if version < (4, 6) else 0) < at_once:
        max_output = min(max_output, at_once)
    max_tokens = _capped(parameters.get("max_tokens") or max_output, limit, unsent)
    settings: Settings = {"max_tokens": max_tokens}
    thinks_now = (level is not None or budget is not None) and level != "off"
    if thinks_now and not thinks:
        unsent.append("thinking: the model does not support it")
    elif thinks_now and (version >= (4, 7) or (version >= (4, 6) and budget is None)):
        settings["thinking"] = {"type": "adaptive"}
        if level is not None:
            settings["output_config"] = {"effort": "low" if level == "minimal" else level}
        if budget is not None:
            unsent.append(f"thinking.budget: {model} decides by itself how much it thinks")
    elif thinks_now:
        tokens = min(budget or BUDGETS.get(level or "", 0), max_tokens - 1)
        if tokens >= LEAST_BUDGET:
            settings["thinking"] = {"type": "enabled", "budget_tokens": tokens}
        else:
            unsent.append(
                f"thinking: it needs at least {LEAST_BUDGET} tokens, but max_tokens is {max_tokens}"
            )
    elif level == "off" and thinks and version >= (5, 0):
        if version >= (5, 5) or re.search("fable|mythos", model.lower()):
            unsent.append(f"thinking.level: {model} always thinks")
        else:
            settings["thinking"] = {"type": "disabled"}
    _sample(parameters, settings, unsent, model=model, version=version)
    return settings, unsent


def takes_prefill(model: str) -> bool:
    """Whether a model of Anthropic continues an assistant message at the end of a conversation."""
    version = claude_version(model)
    return version is None or version < (4, 6)


def takes_system_messages(model: str) -> bool:
    """Whether a model of Anthropic takes system messages inside the conversation. Models from Opus 4.8
    on do.
    """
    version = claude_version(model)
    return version is not None and version >= (4, 8) and "preview" not in model.lower()


def checks_reasoning(model: str) -> bool:
    """Whether a model of Anthropic refuses reasoning if the messages that it is bound to have changed.

    Fable and Mythos do so from version 5.1 on, the other models from 5.5 on.
    """
    version, name = claude_version(model), model.lower()
    return version is not None and version >= ((5, 1) if "fable" in name or "mythos" in name else (5, 5))


def takes_reasoning_content(model: str) -> bool:
    """Whether a model wants its own `reasoning_content` back in later requests.

    Sources: "Thinking mode" in DeepSeek's documentation (with tool calls, a request without it is refused),
    "Kimi K2 Thinking" in Moonshot's, "Preserved thinking" in that of Z.AI.
    """
    name = model.lower().rpartition("/")[2]
    return name.startswith(("deepseek-", "kimi-k", "glm-4.", "glm-5"))


def takes_breakpoints(model: str) -> bool:
    """Whether a model of OpenAI takes explicit cache breakpoints. Models from GPT-5.6 on do."""
    gpt = _gpt(model)
    return gpt is not None and gpt.version >= (5, 6)


def searches_tools(form: str, model: str) -> bool:
    """Whether a provider searches deferred tools for a model. Anthropic does from Claude 4 on, OpenAI from
    GPT-5.4 on.
    """
    if form == "anthropic":
        version = claude_version(model)
        return version is not None and version >= (4, 0)
    gpt = _gpt(model) if form == "openai-responses" else None
    return gpt is not None and gpt.version >= (5, 4)


def gemini_version(model: str) -> tuple[int, int] | None:
    """Return the version of a Gemini model. Return None for other models, or if the name has no version."""
    match = re.search(r"gemini-(\d+)(?:\.(\d+))?", model.lower())
    return (int(match[1]), int(match[2] or 0)) if match else None


def claude_version(model: str) -> tuple[int, int] | None:
    """Return the version of a Claude model, or the newest version if its name has none. Return None for other
    models.
    """
    name = model.lower()
    if "claude" not in name:
        return None
    match = re.search(_CLAUDE_VERSION, name[name.index("claude") :])
    if match is None:
        return (1, 0) if "instant" in name else _NEWEST
    return int(match[1]), int(match[2] or 0)


def _sample(
    parameters: Mapping[str, Any],
    settings: Settings,
    unsent: list[str],
    *,
    model: str,
    version: tuple[int, int],
) -> None:
    """Add the sampling parameters that Anthropic accepts to `settings`."""
    thinking = settings.get("thinking", {}).get("type") in ("enabled", "adaptive")
    for name in ("temperature", "top_p", "top_k"):
        value = parameters.get(name)
        if value is None:
            continue
        if version >= (4, 7):
            unsent.append(f"{name}: {model} does not accept it")
        elif thinking and not (name == "top_p" and value >= LEAST_TOP_P):
            unsent.append(f"{name}: not accepted beside thinking")
        elif name == "temperature" and value > 1:
            unsent.append(f"temperature {value}: Anthropic accepts 0 to 1")
        elif name == "top_p" and version >= (4, 1) and "temperature" in settings:
            unsent.append(f"top_p: {model} does not accept it beside a temperature")
        else:
            settings[name] = value


def _openai_sampling(
    parameters: Mapping[str, Any], gpt: _Gpt | None, effort: str | None, *, model: str, unsent: list[str]
) -> Settings:
    """The sampling parameters of a model of OpenAI: none while it thinks."""
    silent = gpt is None or (gpt.can_stop and (effort == "none" or (effort is None and gpt.version < (5, 5))))
    settings: Settings = {}
    for name in ("temperature", "top_p"):
        if parameters.get(name) is None:
            continue
        if silent:
            settings[name] = parameters[name]
        else:
            unsent.append(f"{name}: {model} does not accept it while thinking")
    return settings


def _gemini_level(level: str | None, budget: int | None, model: str, unsent: list[str]) -> Settings:
    """How much Gemini 3 and later think."""
    if level is None:
        return {"thinkingBudget": budget}
    if budget is not None:
        unsent.append(f"thinking.budget: {model} does not accept it beside a level")
    version, is_pro = gemini_version(model) or _NEWEST, "pro" in model.lower()
    sent_level = level
    if level in ("off", "minimal") and (is_pro or version > (3, 5)):
        sent_level = "low"
    elif level == "off":
        sent_level = "minimal"
    elif level == "medium" and is_pro and version == (3, 0):
        sent_level = "high"
    if sent_level != level:
        unsent.append(f"thinking.level {level}: {model} does not accept it; {sent_level} is sent instead")
    return {"thinkingLevel": sent_level.upper()}


def _gemini_budget(level: str | None, budget: int | None, model: str, unsent: list[str]) -> Settings:
    """How much Gemini 2.5 thinks."""
    name = model.lower()
    least_budget, most_budget = next(
        limits for name_part, limits in GEMINI_BUDGETS.items() if name_part in name
    )
    if level == "off":
        if least_budget == GEMINI_BUDGETS["pro"][0]:
            unsent.append("thinking.level: the model cannot be told not to think")
            return {}
        return {"thinkingBudget": 0}
    stated = budget if budget is not None else BUDGETS[level or ""]
    tokens = min(max(stated, least_budget), most_budget)
    if budget is not None and tokens != budget:
        unsent.append(
            f"thinking.budget {budget}: {model} accepts {least_budget} to {most_budget}; "
            f"{tokens} is sent instead"
        )
    return {"thinkingBudget": tokens}


def _effort(parameters: Mapping[str, Any], gpt: _Gpt | None, thinks: bool, unsent: list[str]) -> str | None:
    """The effort of a model of OpenAI, if it accepts one."""
    level, budget = _thinking(parameters)
    if budget is not None:
        unsent.append("thinking.budget: OpenAI accepts only a level")
    if level is None:
        return None
    if level == "off":
        if gpt is not None and gpt.can_stop:
            return "none"
        if gpt is not None or thinks:
            unsent.append("thinking.level: the model cannot be told not to think")
        return None
    if level not in BUDGETS or not (thinks or gpt is not None):
        unsent.append("thinking.level: the model cannot be told how much to think")
        return None
    if level == "minimal" and gpt is not None and gpt.version != (5, 0):
        unsent.append("thinking.level minimal: the lowest level of the model is low, which is sent instead")
        return "low"
    return str(level)


def _effort_beside_tools(effort: str | None, gpt: _Gpt, model: str, unsent: list[str]) -> str | None:
    if effort not in (None, "none"):
        unsent.append(f"thinking.level: {model} does not accept it beside tools in chat completions")
    if gpt.version < (5, 6) or not gpt.can_stop:
        return None
    if effort is None:
        unsent.append(f"thinking: {model} does not think beside tools in chat completions")
    return "none"


def _capped(tokens: int, limit: int | None, unsent: list[str]) -> int:
    """The most tokens of an answer, capped at the limit of the model."""
    if limit is None or tokens <= limit:
        return tokens
    unsent.append(f"max_tokens {tokens}: the maximum of the model is {limit}, which is sent instead")
    return limit


def _gpt(model: str) -> _Gpt | None:
    """The model of OpenAI that thinks; None for others."""
    name = model.lower().rpartition("/")[2]
    if re.match(r"o\d+(?:-|$)", name):
        return _Gpt((1, 0), "")
    match = re.match(_GPT, name)
    if match is None or int(match[1]) < 5:
        return None
    variant = match[3] or ""
    if variant.startswith("chat") and match[2] is None:
        return None
    return _Gpt((int(match[1]), int(match[2] or 0)), re.sub(r"-\d{4}-\d\d-\d\d$", "", variant))


def _thinking(parameters: Mapping[str, Any]) -> tuple[str | None, int | None]:
    thinking = parameters.get("thinking") or {}
    return thinking.get("level"), thinking.get("budget")
