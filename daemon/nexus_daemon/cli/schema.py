"""Print the JSON Schema of a configuration file, for editors without a Nexus plugin.

The daemon checks files against the same schema.
"""

import argparse

from nexus_context.config.check import CONFIG_SCHEMA, MCP_SCHEMA, schema_text
from nexus_daemon.cli import output


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file",
        nargs="?",
        choices=("config", "mcp"),
        default="config",
        help="config.json or mcp.json (default: config)",
    )


def run(options: argparse.Namespace) -> int:
    output.data(schema_text(MCP_SCHEMA if options.file == "mcp" else CONFIG_SCHEMA))
    return 0
