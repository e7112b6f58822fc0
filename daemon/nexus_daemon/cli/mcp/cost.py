"""Counts what the tools of `nexus mcp` cost in every request of an assistant."""

import json
from typing import Any

from nexus_context.assistants.views.profile import ASSISTANTS
from nexus_context.tokens import counter_for
from nexus_daemon.cli import output
from nexus_daemon.shared.mcp_server import definitions

COUNTED_FOR = ("claude-code", "codex")


def print_cost(*, as_json: bool) -> int:
    """Print the tokens of each tool for the models of COUNTED_FOR; return the exit code."""
    rows = cost()
    if as_json:
        output.json_value(rows)
        return 0
    for row in rows:
        counts = "  ".join(f"{count['mark'] + format(count['tokens'], ','):>7}" for count in row["counts"])
        output.line(f"{counts}  {row['name']}")
    titles = "  ".join(f"{count['assistant']} ({count['counter']})" for count in rows[-1]["counts"])
    output.line(f"tokens in every request of: {titles}")
    return 0


def cost() -> list[dict[str, Any]]:
    """Return a row for each tool, one for the instructions, and two for the totals.

    The last total includes the tools that write.
    """
    tools = definitions.definitions(writes=True)
    texts = {tool["name"]: model_text(tool) for tool in tools}
    texts = {"instructions": definitions.instructions(), **texts}
    rows = [{"name": name, "counts": _counts([text])} for name, text in texts.items()]
    reading = [text for name, text in texts.items() if name not in definitions.WRITING]
    return [
        *rows,
        {"name": "total", "counts": _counts(reading)},
        {"name": "total with --write", "counts": _counts(list(texts.values()))},
    ]


def model_text(tool: dict[str, Any]) -> str:
    """Return the part of a tool definition that a model gets: its full name, description and schema."""
    definition = {
        "name": f"mcp__nexus__{tool['name']}",
        "description": tool["description"],
        "input_schema": tool["inputSchema"],
    }
    return json.dumps(definition, ensure_ascii=False)


def _counts(texts: list[str]) -> list[dict[str, Any]]:
    counts = []
    for assistant in ASSISTANTS:
        if assistant.name in COUNTED_FOR:
            counter = counter_for(assistant.model)
            tokens = sum(map(counter.count, texts))
            mark = "" if counter.exact else "≈"
            counts.append(
                {"assistant": assistant.title, "counter": counter.name, "tokens": tokens, "mark": mark}
            )
    return counts
