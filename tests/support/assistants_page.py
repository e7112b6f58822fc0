"""The rules in docs/assistants.md, from the data of the profiles: `python -m support.assistants_page`."""

import re
from pathlib import Path

from nexus_context.assistants.model import Assistant
from nexus_context.assistants.profile import ASSISTANTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "assistants.md"
RULES = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- end of rules -->)", re.DOTALL)
PATH = re.compile(
    r"(?<![`\w/.])(?:[~$.]?[\w.*~$-]+/[\w./*-]*\w|[\w.]+\.(?:md|json)|\.(?:git|cursorrules|md))(?![\w`])"
)
VERIFIED = {
    "run": "{title} {version}, by its own requests",
    "documentation": "{title}, by documentation of {version}",
}


def page(text: str) -> str:
    """The page with the present rules."""
    return RULES.sub(lambda _: "\n" + "\n".join(map(_section, ASSISTANTS)) + "\n", text)


def _section(assistant: Assistant) -> str:
    rules = "\n".join(f"- {_sentence(rule.text)} ({_source(rule.source)})" for rule in assistant.rules)
    heading = VERIFIED[assistant.verified].format(title=assistant.title, version=assistant.version)
    return f"### {heading}\n\n{rules}\n"


def _sentence(text: str) -> str:
    text = f"{text[0].upper()}{text[1:]}" if text[0].isalpha() else text
    return PATH.sub(lambda match: f"`{match[0]}`", text)


def _source(source: str) -> str:
    return f"[documentation]({source})" if source.startswith("https://") else source


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
