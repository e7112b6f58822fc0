"""Print a JSON Schema, for an editor that has no Nexus plugin.

The schemas are generated from the models that check the files; each is the one that the daemon uses.
"""

import argparse

from nexus_context.config.check import CONFIG_SCHEMA, MCP_SCHEMA, schema_text
from nexus_daemon.cli import output

HELP = "print the JSON Schema of config.json or mcp.json"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file", nargs="?", choices=("config", "mcp"), default="config", help="default: config"
    )


def run(options: argparse.Namespace) -> int:
    output.data(schema_text(MCP_SCHEMA if options.file == "mcp" else CONFIG_SCHEMA))
    return 0
