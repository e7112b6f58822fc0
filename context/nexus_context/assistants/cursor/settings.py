"""Where the program runs: of its settings, only the variables count."""

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantSettings, Surroundings


def read_settings(_: Disk, surroundings: Surroundings) -> AssistantSettings:
    """The settings in a folder."""
    return AssistantSettings(surroundings)
