"""Lists the commands: what `nexus --help` says of each, and which the shared daemon runs.

Imports none of them.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OVERVIEW = "overview"
"""What `nexus` runs without a command, and for a folder."""

COMMANDS = {
    OVERVIEW: "show who is in use in a folder, what they read and what is wrong (as nexus [FOLDER])",
    "serve": "run the language server on standard input and output (for editors)",
    "check": "check a folder's configuration; exit code 1 if there are errors",
    "diff": "show what the changes since a git revision cost in other assistants' requests",
    "show": "print what the model will see in a folder",
    "explain": "say what assistants do with a call, a setting, a line of a file or an MCP server, and why",
    "tokens": "count the tokens of files",
    "sessions": "list, search, export, import, compact and verify conversations",
    "watch": "watch the session that another assistant has in a folder",
    "chat": "talk to the configured provider's model with a folder's context, tools and agents",
    "agents": "list, start, run, follow, message and end the agents of a folder",
    "memory": "query, list and add to the memory of a folder's conversations",
    "knowledge": "search the knowledge base of a folder",
    "skill": "list, show and print the skills of a folder",
    "mcp": "serve what Nexus knows of a folder to other assistants (MCP); list, approve and call MCP servers",
    "setup": "write Nexus into the settings of Claude Code, Codex, opencode or Gemini CLI, or take it out",
    "hook": "answer a hook of another assistant (its settings call this)",
    "statusline": "print the status line of Claude Code",
    "trust": "trust a folder, so that programs may run there, or list the trusted folders",
    "status": "show the state of a folder and of the ledger",
    "stop": "end the shared daemon",
    "logs": "show and follow the log",
    "doctor": "check the installation, collect what a bug report needs, record a trace",
    "init": "write .nexus3/ with templates",
    "schema": "print the JSON Schema of config.json or mcp.json",
}
"""Name → help line. The module of that name has `arguments` and `run`, and may have `EPILOG` and `take`."""

GROUPS = {
    "What assistants read, and what it costs": (OVERVIEW, "show", "check", "diff", "tokens"),
    "What they may do": ("explain", "trust"),
    "What they have done": ("watch", "sessions", "memory", "knowledge"),
    "Connect them with Nexus": ("setup", "mcp", "statusline", "hook"),
    "Nexus's own chat": ("init", "chat", "agents", "skill", "schema"),
    "The language server": ("serve", "status", "logs", "doctor", "stop"),
}
"""The commands by what people want to do."""

WARM = {
    OVERVIEW: None,
    "check": None,
    "show": None,
    "diff": None,
    "explain": None,
    "tokens": None,
    "skill": None,
    "sessions": ("list", "show", "search"),
    "memory": ("query", "list"),
    "mcp": ("--tool",),
}
"""Commands that only read, and so may run in the shared daemon: all their actions, or these."""


def may_run_warm(arguments: "Sequence[str]") -> bool:
    """Whether the shared daemon may run a command line.

    It may if that only reads, and not from standard input.
    """
    command = arguments[0] if arguments else OVERVIEW
    if command not in WARM or any(_is_local(argument) for argument in arguments):
        return False
    actions = WARM[command]
    return actions is None or (len(arguments) > 1 and arguments[1] in actions)


def _is_local(argument: str) -> bool:
    return argument in ("-", "-h", "--help") or argument.endswith("=-")
