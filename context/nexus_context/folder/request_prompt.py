"""Renders the prompt of one request from what a snapshot has gathered. Nothing here reads a file."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict, Unpack

import msgspec

from nexus_context.config.merge import Effective
from nexus_context.config.picked_model import ModelChoice, with_choice
from nexus_context.folder.layers.layer_types import LayerSkill
from nexus_context.folder.prompt import sections
from nexus_context.folder.prompt.render import Prompt, render
from nexus_context.folder.prompt.sections import PromptFacts, activated_skills
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens.models import get_model_limits


class PromptOptions(TypedDict, total=False):
    """What one request changes in the prompt.

    `tools` are the names and descriptions of the request's tools. `skip_skills` leaves out all skills;
    `skill_filter` leaves out all but those that these names or patterns match. The prompt contains the texts
    of `skills`. `timezone` is that of the date, in place of the settings'.
    """

    model: str | None
    additional: str | None
    now: datetime | None
    timezone: str | None
    skip_skills: bool
    skill_filter: Sequence[str] | None
    skills: Sequence[str]
    tools: Sequence[tuple[str, str]]


def prompt_for(snapshot: Snapshot, **options: Unpack[PromptOptions]) -> Prompt:
    """Return the prompt of one request. It holds the date only with `datetime.placement = system`.

    Raises RequestError for an active skill that the folder does not have or the request leaves out.
    """
    skill_filter = options.get("skill_filter")
    has_date = options.get("now") is not None and is_dated(snapshot.effective)
    changes = [options.get(name) for name in ("model", "additional", "skip_skills", "skills", "tools")]
    if snapshot.is_fixed or not (has_date or skill_filter is not None or any(changes)):
        return snapshot.prompt
    facts = PromptFacts(
        model=options.get("model"),
        window=window_of(snapshot.effective, options.get("model")),
        additional=options.get("additional"),
        now=options.get("now"),
        timezone=options.get("timezone"),
        skip_skills=options.get("skip_skills", False),
        skill_filter=None if skill_filter is None else tuple(skill_filter),
        skills=tuple(options.get("skills", ())),
        tools=tuple(options.get("tools", ())),
    )
    return render(snapshot.layers, snapshot.contents, environment=snapshot.environment, facts=facts)


def active_skills(
    snapshot: Snapshot,
    names: Sequence[str],
    *,
    skip_skills: bool = False,
    skill_filter: Sequence[str] | None = None,
) -> tuple[LayerSkill, ...]:
    """Return the active skills of a request, in the order of the prompt. RequestError as for `prompt_for`."""
    only = None if skill_filter is None else tuple(skill_filter)
    facts = PromptFacts(skip_skills=skip_skills, skill_filter=only, skills=tuple(names))
    return activated_skills(snapshot.layers, facts)


def offered_skills(
    snapshot: Snapshot, *, skill_filter: Sequence[str] | None = None
) -> tuple[LayerSkill, ...]:
    """Return the skills that a request lists in the prompt, in its order."""
    only = None if skill_filter is None else tuple(skill_filter)
    return tuple(sections.offered_skills(snapshot.layers, PromptFacts(skill_filter=only)))


def skill_text(snapshot: Snapshot, name: str) -> str:
    """Return the text of a skill as the prompt has it while the skill is active.

    RequestError, code unknown-skill, if the folder does not have it.
    """
    skills = active_skills(snapshot, [name])
    return "".join(
        piece.text for part in sections.skill_bodies(snapshot.layers, skills) for piece in part.pieces
    )


def for_choice(snapshot: Snapshot, choice: ModelChoice | None) -> Snapshot:
    """Return the snapshot for another picked model, which has other settings and another prompt.

    If `choice` is None, the snapshot stays as it is. Problems and revision stay the same. Reads no file.
    """
    if choice is None or choice == snapshot.choice:
        return snapshot
    effective = with_choice(snapshot.effective, choice)
    if effective is snapshot.effective:
        return msgspec.structs.replace(snapshot, choice=choice)
    layers = msgspec.structs.replace(snapshot.layers, effective=effective)
    prompt = snapshot.prompt
    if not snapshot.is_fixed:
        facts = PromptFacts(window=window_of(effective, None))
        prompt = render(layers, snapshot.contents, environment=snapshot.environment, facts=facts)
    return msgspec.structs.replace(snapshot, layers=layers, prompt=prompt, choice=choice)


def window_of(effective: Effective, requested: str | None) -> int | None:
    """Return the size of the context window in tokens. None if the model or its window is unknown.

    `requested` is the model of the request, or None for that of the settings.
    """
    limit = effective.get("/context/max_tokens")
    name = requested or effective.get("/provider/model")
    if limit is not None or name is None:
        return limit if isinstance(limit, int) else None
    limits = get_model_limits(name, effective.get("/models") or {})
    return limits.context_window if limits.known else None


def is_dated(effective: Effective) -> bool:
    """Whether the system prompt holds the date."""
    return (effective.get("/context/datetime") or {}).get("placement") == "system"
