"""What is asked of a program that has sessions: where they are, and how one is followed."""

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
    """The sessions of a program.

    `list_sources` lists where those of some folders are, or all of them. `root_of` is the directory that
    holds them, `watched` reads the paths where those of a folder appear or change: a directory, with a
    separator at its end, or a file. `follow` reads a session as it grows. `list_files` lists the files of
    sessions and of sub-agents, `list_agents` those of the sub-agents of a session's file, which
    `agents_directory` has; `is_agent` tells them from others. `link_forks` finds which of the sessions is a
    fork of another one. `record_format` imports the format of their records. `shares_file`: one file has all
    sessions, as rows.
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
