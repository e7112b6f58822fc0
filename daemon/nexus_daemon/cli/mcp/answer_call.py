"""Answers the call of a tool: `nexus mcp --tool`, in the shared daemon or in the process of the server.

1. What a model does wrong is a result with `isError`, and says what to do; so is what cannot be answered.
2. A path that leads out of the folders of the server, also through links, is refused.
3. Secrets are covered, and what could steer a terminal is made visible. An answer has at most `--max-tokens`
   tokens; the last line names the next page.
"""

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from nexus_context.disk import cancellation
from nexus_context.disk.files import exists, is_dir, real_path
from nexus_context.errors import RequestError
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.mcp.call_scope import CallScope
from nexus_daemon.cli.mcp.pages import ToolAnswer, page_text
from nexus_daemon.shared.mcp_server import definitions
from nexus_daemon.shared.mcp_server.workspace_folders import is_beneath

AnswerTool = Callable[[CallScope], ToolAnswer]


def print_answer(options: argparse.Namespace) -> int:
    """Print the answer to the call of `options`; return the exit code.

    It is printed as text, or with `--json` as the result of `tools/call`.
    """
    text, is_error = answer(options)
    if options.json:
        result = {"content": [{"type": "text", "text": text}], "isError": is_error}
        output.json_text(json.dumps(result) + "\n")
        return 0
    output.page(f"{text}\n")
    return 1 if is_error else 0


def answer(options: argparse.Namespace) -> tuple[str, bool]:
    """Return the text of the answer, and whether it is an error."""
    try:
        arguments = _arguments(options.tool, options.arguments)
        scope = _scope(options, arguments)
        tool = _tool(options.tool)
        cancellation.check()
        tool_answer = tool(scope)
        text = page_text(
            tool_answer, assistant=scope.assistant, most=options.max_tokens, page=arguments.get("page", 1)
        )
    except RequestError as error:
        return visible(redact(str(error))), True
    return text, False


def _tool(name: str) -> AnswerTool:
    """The function of a tool; each module is imported on first use."""
    if name == "show_context":
        from nexus_daemon.cli.mcp.context_tool import show_context

        return show_context
    if name == "check_configuration":
        from nexus_daemon.cli.mcp.check_tool import check_configuration

        return check_configuration
    if name == "search_knowledge":
        from nexus_daemon.cli.mcp.knowledge_tool import search_knowledge

        return search_knowledge
    from nexus_daemon.cli.mcp import conversation_tools

    tools: dict[str, AnswerTool] = {
        "search_conversations": conversation_tools.search_conversations,
        "query_memory": conversation_tools.query_memory,
        "add_memory": conversation_tools.add_memory,
    }
    return tools[name]


# ---------------------------------------------------------------- arguments


def _arguments(tool: str, text: str) -> dict[str, Any]:
    """The arguments of a call, checked; RequestError names the argument."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(f"The arguments are not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise _bad("The arguments must be a JSON object.")
    schemas = definitions.argument_schemas(tool)
    values = {name: value for name, value in values.items() if value is not None}
    for name, value in values.items():
        if name not in schemas:
            raise _bad(f"{tool} has no argument {name[:60]!r}. It has: {', '.join(schemas)}.")
        _check_value(tool, name, value)
    for name in definitions.required_arguments(tool):
        if not str(values.get(name, "")).strip():
            raise _bad(f"{tool} needs `{name}`.")
    return values


def _check_value(tool: str, name: str, value: Any) -> None:
    schema = definitions.argument_schemas(tool)[name]
    if schema["type"] == "integer":
        if isinstance(value, bool) or not isinstance(value, int):
            raise _bad(f"`{name}` of {tool} must be a whole number.")
        if not 1 <= value <= definitions.MOST_NUMBER:
            raise _bad(f"`{name}` of {tool} must be from 1 to {definitions.MOST_NUMBER:,}.")
        return
    if not isinstance(value, str):
        raise _bad(f"`{name}` of {tool} must be a string.")
    choices = definitions.ASSISTANTS if name == "assistant" else schema.get("enum")
    if choices is not None and value not in choices:
        raise _bad(f"`{name}` of {tool} is {value[:60]!r}. It must be one of: {', '.join(choices)}.")
    if len(value) > definitions.LONGEST_TEXT:
        limit = f"{definitions.LONGEST_TEXT:,} characters"
        raise _bad(f"`{name}` of {tool} has {len(value):,} characters. It may have {limit}.")


def _scope(options: argparse.Namespace, arguments: dict[str, Any]) -> CallScope:
    absolute = invocation.current().absolute
    folders = [absolute(folder) for folder in options.folder or ["."]]
    for folder in folders[:1]:
        if not is_dir(folder):
            raise RequestError(f"The workspace {folder} is not a directory any more.", code="unknown-folder")
    roots = [real_path(folder) for folder in folders if is_dir(folder)]
    path_argument = arguments.get("path", ".")
    if "\0" in path_argument:
        raise _bad("`path` has a NUL character, which no path can have.")
    path = real_path(
        os.path.join(
            roots[0], os.path.expanduser(path_argument) if path_argument.startswith("~/") else path_argument
        )
    )
    root = next((candidate for candidate in roots if is_beneath(path, candidate)), None)
    if root is None:
        raise _bad(f"`path` leads out of the workspace, {', '.join(roots)}. Name a path in it.")
    if not exists(path):
        raise _bad(f"`path` {path_argument[:200]!r} does not exist in {root}.")
    return CallScope(folder=root, path=path, assistant=options.assistant, arguments=arguments)


def _bad(message: str) -> RequestError:
    return RequestError(message, code="bad-argument")
