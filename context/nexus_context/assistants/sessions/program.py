"""Defines what a program that has sessions must answer: where they are, and how one is followed."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.assistants.sessions.followed import FollowedSession
from nexus_context.assistants.sessions.session_types import AssistantSession, Folders, Place, SessionSource

if TYPE_CHECKING:
    from nexus_context.assistants.sessions.record_format import RecordFormat


def _no_format() -> "RecordFormat[Any]":
    raise ValueError("a database has no records of this kind")


class ProgramSessions(msgspec.Struct, frozen=True, kw_only=True):
    """Finds and follows the sessions of a program.

    `list_sources` lists the sessions of some folders, or of all. `root_of` returns the directory that holds
    all sessions. `watched` returns the paths where the sessions of a folder appear or change; a directory
    ends with a separator. `follow` reads a session as it grows. `list_files` lists the files of sessions and
    of sub-agents. `list_agents` lists the files of the sub-agents of a session's file, and `agents_directory`
    returns the directory that has them; `is_agent` tells whether a file is one of them. `link_forks` sets the
    origins of those sessions that are forks. `record_format` imports the format of the records. `shares_file`
    is true if one file has all sessions, as rows.
    """

    list_sources: Callable[[Place, Folders], Iterator[SessionSource]]
    root_of: Callable[[Place], str]
    watched: Callable[[Place, str], Iterable[str]]
    follow: Callable[[AssistantSession], FollowedSession]
    list_files: Callable[[Place, Folders], Iterator[str]]
    record_format: "Callable[[], RecordFormat[Any]]" = _no_format
    list_agents: Callable[[str], Iterable[str]] = lambda _: ()
    is_agent: Callable[[str], bool] = lambda _: False
    agents_directory: Callable[[str], str] | None = None
    link_forks: Callable[[list[AssistantSession]], list[AssistantSession]] = lambda sessions: sessions
    shares_file: bool = False
