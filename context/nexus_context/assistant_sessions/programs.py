"""The programs whose sessions are read: how each is found, watched and followed. A new one is added here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os.path import join

import msgspec

from nexus_context.assistant_sessions import claude_code, codex, opencode
from nexus_context.assistant_sessions.claude_code_agents import FollowedClaudeCode, agents_directory
from nexus_context.assistant_sessions.codex_steps import CodexSteps
from nexus_context.assistant_sessions.followed import FollowedFile, FollowedSession
from nexus_context.assistant_sessions.model import AssistantSession, Place, SessionSource
from nexus_context.assistant_sessions.opencode_database import FollowedDatabase


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has sessions.

    `list_sources` lists where those of a folder are, or all of them. `root_of` is the directory that holds
    them, `watched` the paths where those of a folder appear or change now: a directory, with a separator at
    its end, or a file. `follow` reads a session as it grows. `agents_directory` has the files of the
    sub-agents of a session's file. `shares_file`: one file has all sessions.
    """

    name: str
    title: str
    list_sources: Callable[[Place, str | None], Iterator[SessionSource]]
    root_of: Callable[[Place], str]
    watched: Callable[[Place, str], Iterable[str]]
    follow: Callable[[AssistantSession], FollowedSession]
    agents_directory: Callable[[str], str] | None = None
    shares_file: bool = False


def _codex_instructions(folder: str) -> Iterable[str]:
    """The files that Codex calls by their folder."""
    return (join(folder, name) for name in ("AGENTS.override.md", "AGENTS.md"))


_follow_codex = partial(FollowedFile, steps=CodexSteps, list_instructions=_codex_instructions)

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
            agents_directory=agents_directory,
        ),
        Program(
            name=codex.NAME,
            title="Codex",
            list_sources=codex.sources,
            root_of=codex.root_of,
            watched=codex.watched,
            follow=lambda session: _follow_codex(session.path),
        ),
        Program(
            name=opencode.NAME,
            title="opencode",
            list_sources=opencode.sources,
            root_of=opencode.root_of,
            watched=opencode.watched,
            follow=lambda session: FollowedDatabase(session.path, session.id),
            shares_file=True,
        ),
    )
}
