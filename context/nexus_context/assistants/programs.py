"""Lists the programs that Nexus knows. A new one is a room beside this module, and an entry in PROGRAMS.

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
    """A program that Nexus knows. `name` is its name in requests, `command` starts it.

    `client` is how the name that it gives itself as an MCP client begins, in lower case. `marks` are files
    and directories that show that a project is set up for it. In a directory above the folder only the marks
    in `inherited` count, or all if that is None.
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
        """Read the settings of the program that hold in a folder."""
        settings: AssistantSettings = self._load("settings").read_settings(disk, surroundings)
        return settings

    @property
    def settings_schema(self) -> dict[str, Any]:
        """The JSON Schema of the program's settings files, empty if their keys are not known."""
        schema: dict[str, Any] = self._load("settings").settings_schema()
        return schema

    @property
    def keys_schema(self) -> dict[str, Any]:
        """The JSON Schema of all known keys of the program's settings, also those that `settings_schema`
        leaves out because they are checked one by one.
        """
        module = self._load("settings")
        schema: dict[str, Any] = getattr(module, "keys_schema", module.settings_schema)()
        return schema

    @property
    def instructions(self) -> "InstructionReader":
        """Reads what the program sends of a folder's files."""
        reader: InstructionReader = self._load("rules").INSTRUCTIONS
        return reader

    @property
    def servers(self) -> "ServerReader":
        """Reads the MCP servers in the program's settings."""
        reader: ServerReader = self._load("mcp_servers").SERVERS
        return reader

    @property
    def sessions(self) -> "ProgramSessions":
        """Finds and follows the program's sessions. Ask only if `has_sessions` is true."""
        sessions: ProgramSessions = self._load("sessions").SESSIONS
        return sessions

    @property
    def format_reader(self) -> "FormatReader":
        """Reads the files of the program's sessions. Ask only if `has_sessions` is true."""
        reader: FormatReader = self._load("messages").READER
        return reader

    @property
    def permissions(self) -> "PermissionReader":
        """Reads what the program lets a model do. Ask only if `has_permissions` is true."""
        reader: PermissionReader = self._load("permissions").PERMISSIONS
        return reader

    @property
    def setup(self) -> "ProgramSetup":
        """Says what `nexus setup` writes for the program. Ask only if `has_setup` is true."""
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
    """Return the programs whose sessions Nexus may read, by name. Empty if the user has turned that off.

    Whatever lists session files, or watches for them, asks this first.
    """
    return WITH_SESSIONS if place.reads_conversations else {}
