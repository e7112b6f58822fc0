"""Finds and follows the sessions that other assistants have on this machine, where they write them.

find             all sessions, by folder, from the ends of files
follow           one session: what is new, and its report
followers        the sessions that are followed now
conversations    all conversations in one list, with those in the ledger
in_use           the views of a folder that are in use, by its sessions and files
problems_in_use  the problems of the assistants that are in use

Each program's room says where it writes and what its records are; `sessions/` has what they share.

Nothing is ever written where another program writes. The formats are undocumented: each module names the
version of the program that showed them.
"""

from nexus_context.assistants.sessions.session_types import AssistantSession, Usage
from nexus_context.assistants.tracking.find import AssistantSessions, find_sessions

__all__ = ["AssistantSession", "AssistantSessions", "Usage", "find_sessions"]
