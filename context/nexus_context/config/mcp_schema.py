"""Defines the JSON Schema of MCP files: three forms, each with the keys that its tool documents.

- list `servers`: Nexus's own.
- object `servers`, with `inputs`: VS Code's mcp.json (its configuration reference, mcpConfiguration.ts).
- object `mcpServers`: Claude Code, and the keys that Cursor, Cline, Kilo Code and Copilot CLI add to it.
"""

from typing import Any

from nexus_context.config.fast_check import COMMENT_PREFIX

Node = dict[str, Any]

COMMENTS: Node = {f"^{COMMENT_PREFIX}": {}}


def mcp_schema() -> Node:
    """Return the schema of mcp.json in any of its forms (draft-07).

    `definitions` holds the schema of one server of each form.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "MCP servers",
        "description": "MCP servers: a list, VS Code's `servers` object or Claude's `mcpServers` object.",
        "type": "object",
        "properties": {
            "$schema": {"type": "string", "description": "The JSON Schema of this file, for editors."},
            "servers": {
                "description": "The servers: a list, or an object by name.",
                "type": ["array", "object"],
                "items": {"$ref": "#/definitions/listServer"},
                "patternProperties": COMMENTS,
                "additionalProperties": {"$ref": "#/definitions/vscodeServer"},
            },
            "mcpServers": {
                "description": "The servers by name; counts before `servers`.",
                "type": "object",
                "patternProperties": COMMENTS,
                "additionalProperties": {"$ref": "#/definitions/claudeServer"},
            },
            "inputs": {
                "description": "Values that are asked for, referred to as `${input:id}`.",
                "type": "array",
                "items": {"$ref": "#/definitions/input"},
            },
            "sandbox": {"description": "VS Code's sandbox of the servers.", "type": "object"},
        },
        "patternProperties": COMMENTS,
        "additionalProperties": False,
        "definitions": {
            "listServer": _server(_LIST_KEYS, required=["name"]),
            "vscodeServer": _server(_VSCODE_KEYS),
            "claudeServer": _server(_CLAUDE_KEYS),
            "input": {
                "type": "object",
                "required": ["id"],
                "properties": {"id": _text("The name used in `${input:id}`.")},
            },
        },
    }


def _server(extra: Node, *, required: list[str] | None = None) -> Node:
    node: Node = {"type": "object", "properties": _KEYS | extra, "patternProperties": COMMENTS}
    node["additionalProperties"] = False
    return node | {"required": required} if required else node


def _text(description: str) -> Node:
    return {"description": description, "type": "string", "minLength": 1}


def _flag(description: str) -> Node:
    return {"description": description, "type": "boolean"}


def _texts(description: str) -> Node:
    return {"description": description, "type": "array", "items": {"type": "string"}}


def _map(description: str, types: str | list[str]) -> Node:
    node: Node = {"description": description, "type": "object", "patternProperties": COMMENTS}
    return node | {"additionalProperties": {"type": types}}


def _type(*names: str) -> Node:
    return {
        "description": "How the server is reached; found from `command` or `url`.",
        "enum": list(names),
    } | {"type": "string"}


_KEYS: Node = {
    "type": _type("stdio", "http", "sse", "streamable-http"),
    "command": {
        "description": "The program that is started: its name, or a list with its first arguments.",
        "type": ["string", "array"],
        "minLength": 1,
        "items": {"type": "string"},
    },
    "args": _texts("Arguments of the program."),
    "url": _text("The address of a server that is running already."),
    "env": _map("Environment variables of the program.", "string"),
    "headers": _map("HTTP headers of each request.", "string"),
    "cwd": _text("The program's working directory; relative to the directory of the layer."),
    "enabled": {"description": "Whether the server is offered.", "type": "boolean", "default": True},
}

_LIST_KEYS: Node = {
    "name": _text("The server's name."),
    "description": _text("What the server is for."),
}

_VSCODE_KEYS: Node = {
    "env": _map("Environment variables of the program.", ["string", "number", "null"]),
    "envFile": _text("A file of more environment variables."),
    "dev": {"description": "VS Code's development mode.", "type": "object"},
    "oauth": {"description": "How to sign in.", "type": "object"},
    "gallery": {"description": "Where VS Code installed the server from.", "type": ["string", "boolean"]},
    "version": _text("The version that VS Code installed."),
    "sandboxEnabled": _flag("Whether VS Code runs the server in a sandbox."),
}

_CLAUDE_KEYS: Node = {
    "type": _type("stdio", "http", "sse", "streamable-http", "streamableHttp", "local", "ws", "sdk"),
    "transport": _type("stdio", "http", "sse", "streamable-http"),
    "name": _text("A name to show."),
    "description": _text("What the server is for."),
    "disabled": _flag("Whether the server is switched off."),
    "timeout": {"description": "How long an answer may take.", "type": "number", "minimum": 0},
    "startup_timeout": {"description": "How long the start may take.", "type": "number", "minimum": 0},
    "alwaysAllow": _texts("Tools that run without a question (Kilo Code, Roo Code)."),
    "autoApprove": _texts("Tools that run without a question (Cline)."),
    "disabledTools": _texts("Tools that are not offered."),
    "tools": {"description": "Tools that are offered (Copilot CLI).", "type": ["array", "object"]},
    "alwaysLoad": _flag("Whether the tools are listed at once (Claude Code)."),
    "headersHelper": _text("A program that prints headers (Claude Code)."),
    "oauth": {"description": "How to sign in (Claude Code).", "type": ["object", "boolean"]},
    "auth": {"description": "How to sign in (Cursor).", "type": ["object", "string"]},
    "envFile": _text("A file of more environment variables (Cursor)."),
}
