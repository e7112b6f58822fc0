"""Tells Nexus how to find, read and follow the sessions of Claude Code."""

from typing import TYPE_CHECKING, Any

from nexus_context.assistants.claude_code import forks, session_files, sub_agents
from nexus_context.assistants.sessions.program import ProgramSessions

if TYPE_CHECKING:
    from nexus_context.assistants.sessions.record_format import RecordFormat


def _record_format() -> "RecordFormat[Any]":
    from nexus_context.assistants.claude_code.record_format import FORMAT  # reports need none

    return FORMAT


SESSIONS = ProgramSessions(
    list_sources=session_files.sources,
    root_of=session_files.root_of,
    watched=session_files.watched,
    follow=lambda session: sub_agents.FollowedClaudeCode(session.path, session.fork_of),
    list_files=sub_agents.list_files,
    record_format=_record_format,
    list_agents=sub_agents.list_agents,
    is_agent=sub_agents.is_agent,
    agents_directory=sub_agents.agents_directory,
    link_forks=forks.link_forks,
)
