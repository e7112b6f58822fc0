"""The generated parts of docs/assistants.md.

The rules are those of the profiles, the costs those of the definitions of `nexus mcp`.
"""

import re
from pathlib import Path

from msgspec.structs import replace

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.profile_types import Assistant, Rule
from nexus_context.assistants.views.profile import ASSISTANTS
from nexus_daemon.cli.mcp import cost
from nexus_daemon.shared.mcp_server import definitions

PAGE = Path(__file__).resolve().parents[1] / "docs" / "assistants.md"
RULES = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- end of rules -->)", re.DOTALL)
PATH = re.compile(
    r"(?<![`\w/.])(?:[~$.]?[\w.*~$-]+/[\w./*-]*\w|[\w.]+\.(?:md|json)|\.(?:git|cursorrules|md))(?![\w`])"
)
TOOLS = re.compile(r"(?<=<!-- tools -->\n).*?(?=<!-- end of tools -->)", re.DOTALL)
VERIFIED = {
    "run": "{title} {version}, by its own requests",
    "documentation": "{title}, by documentation of {version}",
}


def page(text: str) -> str:
    """The page with the present rules and costs."""
    text = TOOLS.sub(lambda _: f"\n{_costs()}\n\n", text)
    return RULES.sub(lambda _: "\n" + "\n".join(map(_section, ASSISTANTS)) + "\n", text)


def _costs() -> str:
    rows = cost.cost()
    titles = " | ".join(each["assistant"] for each in rows[0]["counts"])
    lines = [f"| Tokens | {titles} |", f"|---|{'--:|' * len(rows[0]['counts'])}"]
    for row in rows:
        counts = " | ".join(f"{each['mark']}{each['tokens']:,}" for each in row["counts"])
        name = f"`{row['name']}`" if row["name"] in definitions.NAMES else row["name"]
        lines.append(f"| {name} | {counts} |")
    return "\n".join(lines)


def _section(assistant: Assistant) -> str:
    rules = "\n".join(f"- {_sentence(rule.text)} ({_source(rule.source)})" for rule in _rules(assistant))
    heading = VERIFIED[assistant.verified].format(title=assistant.title, version=assistant.version)
    return f"### {heading}\n\n{rules}\n"


def _rules(assistant: Assistant) -> tuple[Rule, ...]:
    servers = PROGRAMS[assistant.name].servers.rules
    return (*assistant.rules, *(replace(rule, text=f"MCP servers: {rule.text}") for rule in servers))


def _sentence(text: str) -> str:
    text = f"{text[0].upper()}{text[1:]}" if text[0].isalpha() else text
    return PATH.sub(lambda match: f"`{match[0]}`", text)


def _source(source: str) -> str:
    return f"[documentation]({source})" if source.startswith("https://") else source
