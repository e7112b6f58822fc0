"""How much is remembered: the section `memory` of config.json."""

from collections.abc import Mapping
from typing import Any

import msgspec


class MemorySettings(msgspec.Struct, frozen=True):
    """Limits of the levels; 0 switches one off."""

    l1_messages: int = 6  # newest messages of the session, which are always included
    l2_limit: int = 20  # important turns that the working memory keeps
    l3_limit: int = 10  # summaries that are kept


def settings_of(section: Mapping[str, Any]) -> MemorySettings:
    """The settings of a checked section of config.json, completed by the defaults."""
    values = {
        name: section[name] for name in MemorySettings.__struct_fields__ if section.get(name) is not None
    }
    return msgspec.convert(values, MemorySettings)
