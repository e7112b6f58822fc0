"""Determines the model of a request, its limits and its counter, and what the model cannot take of a
request.
"""

from collections.abc import Mapping
from typing import Any

from nexus_context.config.features import FEATURES, Feature
from nexus_context.config.merge import Effective
from nexus_context.conversation.repair import Repair
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import ModelLimits, TokenCounter, counter_for, get_model_limits

NO_TOOLS = "{model} has no tools"
"""Why a tool is left out."""


def model_of(snapshot: Snapshot, requested: str | None) -> tuple[ModelLimits, TokenCounter]:
    """Return the limits and the counter of the requested model, or of the configured one if `requested` is
    None.
    """
    return model_in(snapshot.effective, requested)


def model_in(effective: Effective, requested: str | None = None) -> tuple[ModelLimits, TokenCounter]:
    """Return the limits and the counter of the requested model, or of the one that these settings name."""
    name = requested or effective.get("/provider/model")
    overrides = effective.get("/models") or {}
    return get_model_limits(name, overrides), counter_for(name, overrides)


def lacking(model: ModelLimits) -> list[Feature]:
    """Return the features that the model does not have."""
    return [feature for feature in FEATURES if not model.can(feature)]


def left_out_features(
    model: ModelLimits, left_out: Mapping[str, str], parameters: Mapping[str, Any]
) -> list[Repair]:
    """Return a repair for tool definitions, and one for a thinking setting, if they are left out because the
    model lacks the feature.
    """
    repairs = []
    reason = NO_TOOLS.format(model=model.given)
    names = [name for name, why in left_out.items() if why == reason]
    if names:
        text = f"{model.given} has no tools: {len(names)} tool definitions are left out."
        repairs.append(Repair("tools-unsupported", text))
    thinking = parameters.get("thinking") or {}
    wants = thinking.get("budget") is not None or thinking.get("level") not in (None, "off")
    if wants and not model.can("thinking"):
        repairs.append(
            Repair("thinking-unsupported", f"{model.given} has no thinking: the setting is left out.")
        )
    return repairs
