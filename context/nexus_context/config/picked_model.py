"""Puts the model that the user picked in the editor above the settings of all files.

1. It counts where the settings leave the model to the editor (`provider.name`). Another provider runs the
   model that the settings name, whatever was picked.
2. It replaces `provider.model`. Its window becomes `context.max_tokens`, unless the settings allow less.
3. A choice without a model means the model of the settings: nothing is replaced.
"""

import msgspec

from nexus_context.config.merge import Effective, replaced
from nexus_context.text.json import parse_pointer

EDITOR = "editor"
"""The provider whose model the user picks in the editor."""
PICKED = "picked"
"""The layer name of a picked model's settings."""

PROVIDER = "/provider/name"
MODEL = "/provider/model"
MAX_TOKENS = "/context/max_tokens"


class ModelChoice(msgspec.Struct, frozen=True):
    """What the user picked. `model` is the name of a model, or None for that of the settings.

    `max_tokens` is the size of its window, or None if it is not known.
    """

    model: str | None = None
    max_tokens: int | None = None


def leaves_model_to_editor(effective: Effective) -> bool:
    """Whether the settings leave the model to the editor, so that a picked model counts (rule 1)."""
    return bool(effective.get(PROVIDER) == EDITOR)


def with_choice(effective: Effective, choice: ModelChoice | None) -> Effective:
    """Return the settings with a choice in force, in place of any earlier one.

    If the choice is None, or if nothing changes, the result is the same object.
    """
    if choice is None or not leaves_model_to_editor(effective):
        return effective
    alone = without_choice(effective)
    if choice.model is None:
        return alone
    limits = [limit for limit in (alone.get(MAX_TOKENS), choice.max_tokens) if isinstance(limit, int)]
    return replaced(alone, PICKED, {MODEL: choice.model, MAX_TOKENS: min(limits, default=None)})


def without_choice(effective: Effective) -> Effective:
    """Return the settings without any picked model. If none is in force, that is the same object."""
    values, provenance = dict(effective.values), dict(effective.provenance)
    for pointer in (MODEL, MAX_TOKENS):
        chain = provenance.get(pointer, ())
        entries = tuple(entry for entry in chain if entry.layer != PICKED)
        if len(entries) == len(chain):
            continue
        section, name = (str(step) for step in parse_pointer(pointer))
        values[section] = {key: value for key, value in values[section].items() if key != name}
        del provenance[pointer]
        winner = next(
            (number for number in reversed(range(len(entries))) if not entries[number].ignored), None
        )
        if winner is not None:
            values[section][name] = entries[winner].value
        if entries:
            provenance[pointer] = tuple(
                msgspec.structs.replace(entry, wins=number == winner) for number, entry in enumerate(entries)
            )
    return effective if provenance == effective.provenance else Effective(values, provenance)
