"""Decides whether Nexus reads the conversations of other programs, by the setting `views.conversations`."""

from nexus_context.config.merge import Effective
from nexus_context.text.lines import LineIndex

NOT_READ = "The setting views.conversations is off: Nexus does not read the conversations of other programs."
"""What is said where they would be listed."""


def reads_conversations(settings: Effective) -> bool:
    """Whether the settings of a folder let Nexus open and list the session files of other programs."""
    return settings.get("/views/conversations") is not False


def explain_not_read(settings: Effective) -> str:
    """Return the sentence NOT_READ, with the file and line that turn reading off if a file does."""
    for source in reversed(settings.provenance.get("/views/conversations", ())):
        if source.wins and source.document is not None:
            line = LineIndex(source.document.text).position(source.span.start)[0]
            return f"{NOT_READ} See {source.path}:{line + 1}."
    return NOT_READ
