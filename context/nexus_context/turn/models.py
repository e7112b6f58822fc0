"""The model of a request: its limits, its counter, and what of a request it cannot take."""

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
    """The limits and the counter of the requested model, else of the configured one."""
    return model_in(snapshot.effective, requested)


def model_in(effective: Effective, requested: str | None = None) -> tuple[ModelLimits, TokenCounter]:
    """As `model_of`, for settings."""
    name = requested or effective.get("/provider/model")
    overrides = effective.get("/models") or {}
    return get_model_limits(name, overrides), counter_for(name, overrides)


def lacking(model: ModelLimits) -> list[Feature]:
    """The features that the model does not have."""
    return [feature for feature in FEATURES if not model.can(feature)]


def left_out_features(
    model: ModelLimits, left_out: Mapping[str, str], parameters: Mapping[str, Any]
) -> list[Repair]:
    """Repairs for tool definitions and a thinking budget that the model lacks the feature for."""
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
