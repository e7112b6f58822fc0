"""The commands and what `nexus --help` says of each: data, so that naming a command imports none."""

COMMANDS = {
    "serve": "run the language server on standard input and output (for editors)",
    "check": "check a folder's configuration; exit code 1 if there are errors",
    "show": "print what the model will see in a folder",
    "tokens": "count the tokens of files",
    "sessions": "list, search, export, import, compact and verify conversations",
    "agents": "list, start, message and end the agents of a folder",
    "memory": "query, list and add to the memory of a folder's conversations",
    "knowledge": "search the knowledge base of a folder",
    "skill": "list, show and print the skills of a folder",
    "status": "show the state of a folder and of the ledger",
    "stop": "end the shared daemon",
    "init": "write .nexus3/ with templates",
    "schema": "print the JSON Schema of config.json or mcp.json",
}
"""Name → help line. The module of that name has `arguments` and `run`, and may have `EPILOG` and `take`."""
