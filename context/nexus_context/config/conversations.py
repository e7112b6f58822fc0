"""Whether Nexus reads the conversations of other programs: the setting `views.conversations`."""

from nexus_context.config.merge import Effective

NOT_READ = "The setting views.conversations is off: Nexus does not read the conversations of other programs."
"""What is said where they would be listed."""


def reads_conversations(settings: Effective) -> bool:
    """Whether the settings of a folder let Nexus open and list the session files of other programs."""
    return settings.get("/views/conversations") is not False
