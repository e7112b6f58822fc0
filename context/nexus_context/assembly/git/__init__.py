"""The state of a git working tree, for the last user message, never for the system prompt.

Reading order: state (the text of a turn), folder (what files tell), status (what git tells).
"""

from nexus_context.assembly.git.folder import Repository, find, read
from nexus_context.assembly.git.state import Changes, GitState
from nexus_context.assembly.git.status import look

__all__ = ["Changes", "GitState", "Repository", "find", "look", "read"]
