"""The programs whose sessions are read: how each is found, watched and followed. A new one is added here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os.path import join
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.assistants.claude_code import session_files as claude_code
from nexus_context.assistants.claude_code.sub_agents import (
    FollowedClaudeCode,
    agents_directory,
    is_agent,
    list_agents,
    list_files,
)
from nexus_context.assistants.codex import session_files as codex
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.codex.steps import CodexSteps
from nexus_context.assistants.gemini import session_files as gemini
from nexus_context.assistants.gemini.records import GeminiRecord
from nexus_context.assistants.gemini.steps import GeminiSteps
from nexus_context.assistants.opencode import session_files as opencode
from nexus_context.assistants.opencode.database import FollowedDatabase
from nexus_context.assistants.sessions.followed import FollowedFile, FollowedSession
from nexus_context.assistants.sessions.model import AssistantSession, Place, SessionSource

if TYPE_CHECKING:
    from nexus_context.assistants.sessions.record_format import RecordFormat

Sources = Callable[[Place, str | None], Iterator[SessionSource]]


def _no_format() -> "RecordFormat[Any]":
    raise ValueError("a database has no records of this kind")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has sessions.

    `list_sources` lists where those of a folder are, or all of them. `root_of` is the directory that holds
    them, `watched` reads the paths where those of a folder appear or change: a directory, with a separator at
    its end, or a file. `follow` reads a session as it grows. `list_files` lists the files of sessions and of
    sub-agents, `list_agents` those of the sub-agents of a session's file, which `agents_directory` has;
    `is_agent` tells them from others.
    `record_format` imports the format of their records. `shares_file`: one file has all sessions, as rows.
    """

    name: str
    title: str
    list_sources: Sources
    root_of: Callable[[Place], str]
    watched: Callable[[Place, str], Iterable[str]]
    follow: Callable[[AssistantSession], FollowedSession]
    record_format: "Callable[[], RecordFormat[Any]]" = _no_format
    list_files: Callable[[Place, str | None], Iterator[str]]
    list_agents: Callable[[str], Iterable[str]] = lambda _: ()
    is_agent: Callable[[str], bool] = lambda _: False
    agents_directory: Callable[[str], str] | None = None
    shares_file: bool = False


def _codex_instructions(folder: str) -> Iterable[str]:
    """The files that Codex calls by their folder."""
    return (join(folder, name) for name in ("AGENTS.override.md", "AGENTS.md"))


def _list_sources(list_sources: Sources, place: Place, folder: str | None) -> Iterator[str]:
    return (source.path for source in list_sources(place, folder))


def _claude_code_format() -> "RecordFormat[Any]":
    from nexus_context.assistants.claude_code.record_format import FORMAT  # reports need none

    return FORMAT


def _codex_format() -> "RecordFormat[Any]":
    from nexus_context.assistants.codex.record_format import FORMAT  # as above

    return FORMAT


def _gemini_format() -> "RecordFormat[Any]":
    from nexus_context.assistants.gemini.record_format import FORMAT  # as above

    return FORMAT


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program(
            name=claude_code.NAME,
            title="Claude Code",
            list_sources=claude_code.sources,
            root_of=claude_code.root_of,
            watched=claude_code.watched,
            follow=lambda session: FollowedClaudeCode(session.path),
            record_format=_claude_code_format,
            list_files=list_files,
            list_agents=list_agents,
            is_agent=is_agent,
            agents_directory=agents_directory,
        ),
        Program(
            name=codex.NAME,
            title="Codex",
            list_sources=codex.sources,
            root_of=codex.root_of,
            watched=codex.watched,
            follow=lambda session: FollowedFile(
                session.path, CodexRecord, CodexSteps, list_instructions=_codex_instructions
            ),
            record_format=_codex_format,
            list_files=partial(_list_sources, codex.sources),
        ),
        Program(
            name=opencode.NAME,
            title="opencode",
            list_sources=opencode.sources,
            root_of=opencode.root_of,
            watched=opencode.watched,
            follow=lambda session: FollowedDatabase(session.path, session.id),
            list_files=partial(_list_sources, opencode.sources),
            shares_file=True,
        ),
        Program(
            name=gemini.NAME,
            title="Gemini CLI",
            list_sources=gemini.sources,
            root_of=gemini.root_of,
            watched=gemini.watched,
            follow=lambda session: FollowedFile(session.path, GeminiRecord, GeminiSteps),
            record_format=_gemini_format,
            list_files=gemini.list_files,
        ),
    )
}
