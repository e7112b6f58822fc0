"""The programs that Nexus knows. A new one is a room beside this module, and an entry in PROGRAMS.

The modules of a room that others ask for, each imported when it is needed:

settings      read_settings: its settings as it computes them, with what it refuses; settings_schema: its keys
rules         INSTRUCTIONS: what the program sends of a folder's files
mcp_servers   SERVERS: which MCP servers its settings name
sessions      SESSIONS: where its sessions are, and how one is followed (`has_sessions`)
setup         SETUP: what connects it to Nexus (`has_setup`)
messages      READER: its records as messages (`has_sessions`)
permissions   PERMISSIONS: what it lets a model do (`has_permissions`)
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:  # the rooms import what they need
    from nexus_context.assistants.permissions.decision import PermissionReader
    from nexus_context.assistants.reading.disk import Disk
    from nexus_context.assistants.reading.profile_types import (
        AssistantSettings,
        InstructionReader,
        ServerReader,
        Surroundings,
    )
    from nexus_context.assistants.sessions.program import ProgramSessions
    from nexus_context.assistants.sessions.session_types import Place
    from nexus_context.assistants.setup.setup_types import ProgramSetup
    from nexus_context.assistants.transcripts.conversation import FormatReader


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program by its name in requests. `command` starts it.

    `client` is how the name begins, in lower case, that it gives itself as an MCP client. `marks` are files
    and directories by which one sees that a project is set up for it. Of those in directories above a folder
    it heeds `inherited` there, or all.
    """

    name: str
    title: str
    command: str
    client: str
    marks: tuple[str, ...]
    inherited: tuple[str, ...] | None = None
    has_sessions: bool = False
    has_setup: bool = False
    has_permissions: bool = False

    def settings(self, disk: "Disk", surroundings: "Surroundings") -> "AssistantSettings":
        """Its settings in a folder, as it computes them."""
        settings: AssistantSettings = self._load("settings").read_settings(disk, surroundings)
        return settings

    @property
    def settings_schema(self) -> dict[str, Any]:
        """The keys of its settings files as a JSON Schema, empty if they are not known."""
        schema: dict[str, Any] = self._load("settings").settings_schema()
        return schema

    @property
    def keys_schema(self) -> dict[str, Any]:
        """As `settings_schema`, with all that is known of values that are checked one by one."""
        module = self._load("settings")
        schema: dict[str, Any] = getattr(module, "keys_schema", module.settings_schema)()
        return schema

    @property
    def instructions(self) -> "InstructionReader":
        """What it sends of a folder's files."""
        reader: InstructionReader = self._load("rules").INSTRUCTIONS
        return reader

    @property
    def servers(self) -> "ServerReader":
        """The MCP servers of its settings."""
        reader: ServerReader = self._load("mcp_servers").SERVERS
        return reader

    @property
    def sessions(self) -> "ProgramSessions":
        """Its sessions, if it has any."""
        sessions: ProgramSessions = self._load("sessions").SESSIONS
        return sessions

    @property
    def format_reader(self) -> "FormatReader":
        """What reads the files of its sessions, if it has any."""
        reader: FormatReader = self._load("messages").READER
        return reader

    @property
    def permissions(self) -> "PermissionReader":
        """What it lets a model do, if that is known."""
        reader: PermissionReader = self._load("permissions").PERMISSIONS
        return reader

    @property
    def setup(self) -> "ProgramSetup":
        """What `nexus setup` writes for it, if that knows it."""
        setup: ProgramSetup = self._load("setup").SETUP
        return setup

    def _load(self, module: str) -> Any:
        return _module(self.name.replace("-", "_"), module)


@cache
def _module(room: str, name: str) -> Any:
    return import_module(f"nexus_context.assistants.{room}.{name}")


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program(
            name="claude-code",
            title="Claude Code",
            command="claude",
            client="claude-code",
            marks=("CLAUDE.md", "CLAUDE.local.md", ".claude", ".mcp.json"),
            has_sessions=True,
            has_setup=True,
            has_permissions=True,
        ),
        Program(
            name="codex",
            title="Codex",
            command="codex",
            client="codex",
            marks=("AGENTS.md", "AGENTS.override.md", ".codex"),
            has_sessions=True,
            has_setup=True,
            has_permissions=True,
        ),
        Program(
            name="opencode",
            title="opencode",
            command="opencode",
            client="opencode",
            marks=("opencode.json", "opencode.jsonc", ".opencode"),
            has_sessions=True,
            has_setup=True,
            has_permissions=True,
        ),
        Program(
            name="gemini",
            title="Gemini CLI",
            command="gemini",
            client="gemini-cli",
            marks=(
                "GEMINI.md",  # what else is in .gemini is of the reviewer on GitHub
                *(f".gemini/{name}" for name in ("settings.json", "GEMINI.md", ".env", "system.md")),
                *(f".gemini/{name}" for name in ("agents", "commands", "extensions", "policies", "skills")),
            ),
            inherited=("GEMINI.md",),
            has_sessions=True,
            has_setup=True,
            has_permissions=True,
        ),
        Program(
            name="copilot",
            title="GitHub Copilot",
            command="code",
            client="visual studio code",
            marks=(
                ".github/copilot-instructions.md",
                *(f".github/{name}" for name in ("instructions", "prompts", "agents", "chatmodes", "skills")),
                ".vscode/mcp.json",
            ),
            inherited=(),
        ),
        Program(
            name="cursor",
            title="Cursor",
            command="cursor",
            client="cursor",
            marks=(".cursor", ".cursorrules"),
            inherited=(),
        ),
    )
}
"""By name, in the order of columns."""
WITH_SESSIONS: Mapping[str, Program] = {
    name: program for name, program in PROGRAMS.items() if program.has_sessions
}
WITH_SETUP: Mapping[str, Program] = {name: program for name, program in PROGRAMS.items() if program.has_setup}


def readable_programs(place: "Place") -> Mapping[str, Program]:
    """The programs whose sessions Nexus may read: none if the user has turned that off.

    Whatever lists session files, or watches for them, asks this first.
    """
    return WITH_SESSIONS if place.reads_conversations else {}
