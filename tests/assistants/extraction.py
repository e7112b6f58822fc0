"""What a real request says of the folder's files: its instruction text, and the lines on skills and agents.

1. The instruction text is taken between the assistant's own texts, never by what a profile expects.
2. Lists of skills and agents also hold the assistant's own; those of a request from an empty folder are left
   out.
   Codex names directories of skills by a table; its own are in `.system`.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

CLAUDE_START = "<system-reminder>\nCodebase and user instructions are shown below."
CLAUDE_STYLE = re.compile(r"<system-reminder>\n# Output Style: .*?\n</system-reminder>", re.DOTALL)
CODEX_START = "# AGENTS.md instructions"
GEMINI_START = "<loaded_context>\n"
GEMINI_USER_START = re.compile(r"<loaded_context>\n<(?:extension|project)_context>\n")
OPENCODE_START = "\n</env>\n"
OPENCODE_END = re.compile(r"\n?Skills provide specialized instructions and workflows for specific tasks\.\n")
OPENCODE_AGENTS = "Available agent types and the tools they have access to:\n"
CLAUDE_LINE = re.compile(r"^- [^\n]+", re.MULTILINE)
CODEX_LINE = re.compile(r"^- [^\n]+ \(file: [^\n]+\)$", re.MULTILINE)
CODEX_ROOT = re.compile(r"^- `(\w+)` = `([^`\n]+)`$", re.MULTILINE)
CODEX_PATH = re.compile(r"\(file: (r\d+)/")
CODEX_OWN = "/skills/.system/"
CODEX_ROLES = "\nAvailable roles:\n"
CODEX_OWN_ROLES = ("default: {", "explorer: {", "worker: {")
CODEX_ROLE = re.compile(r"^[^\n]+: \{\n.*?\n\}$", re.MULTILINE | re.DOTALL)
OPENCODE_LINE = re.compile(r"^  <skill>\n.*?^  </skill>$", re.MULTILINE | re.DOTALL)


class TextBlock(NamedTuple):
    """A text of a request and its place: `system`, or the role of its message."""

    place: str
    text: str


class Extract(NamedTuple):
    """What a request says of files. `instructions` is None if it has none; several places are joined."""

    place: str | None
    instructions: str | None
    entries: tuple[str, ...]


def blocks_of(body: dict[str, Any]) -> Iterator[TextBlock]:
    """All texts of a request, in order, of any of the APIs."""
    system = body.get("system")
    if isinstance(system, str):
        yield TextBlock("system", system)
    for part in system if isinstance(system, list) else ():
        yield TextBlock("system", part["text"])
    if isinstance(body.get("instructions"), str):
        yield TextBlock("system", body["instructions"])
    for part in body.get("systemInstruction", {}).get("parts", ()):
        yield TextBlock("system", part["text"])
    for message in body.get("contents", ()):
        for part in message["parts"]:
            if "text" in part:
                yield TextBlock(message["role"], part["text"])
    for message in body.get("messages") or body.get("input") or ():
        content = message.get("content")
        if isinstance(content, str):
            yield TextBlock(message["role"], content)
        for part in content if isinstance(content, list) else ():
            if isinstance(part.get("text"), str):
                yield TextBlock(message["role"], part["text"])
    yield from (TextBlock("tools", text) for text in _texts_in(body.get("tools")) if CODEX_ROLES in text)


def _texts_in(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        yield from _texts_in(member)


def extract(assistant: str, body: dict[str, Any]) -> Extract:
    """The instructions of a request of an assistant, and its entries of skills and agents."""
    readers = {"claude-code": _claude, "codex": _codex, "opencode": _opencode, "gemini": _gemini}
    found = readers[assistant](list(blocks_of(body)))
    return (
        found._replace(entries=(*found.entries, *_opencode_agents(body)))
        if assistant == "opencode"
        else found
    )


def _claude(blocks: list[TextBlock]) -> Extract:
    place, text = _first(blocks, CLAUDE_START)
    for block in blocks:
        if style := CLAUDE_STYLE.search(block.text):
            place, text = "+".join(filter(None, (place, block.place))), f"{text or ''}{style[0]}"
    lists = [
        section
        for block in blocks
        for section in re.findall(r"<system-reminder>\n(.*?)\n</system-reminder>", block.text, re.DOTALL)
        if section.startswith(("The following skills are available", "Available agent types"))
    ]
    entries = tuple(line for section in lists for line in CLAUDE_LINE.findall(section))
    return Extract(place, None if text is None else text.rstrip("\n"), entries)


def _codex(blocks: list[TextBlock]) -> Extract:
    """Developer instructions follow the system prompt, before texts that a tag opens."""
    place, text = _first([block for block in blocks if block.place == "user"], CODEX_START)
    second = blocks[1] if len(blocks) > 1 else TextBlock("", "")
    if second.place == "developer" and not second.text.startswith("<"):
        place, text = "+".join(filter(None, ("developer", place))), second.text + (text or "")
    skills = "".join(block.text for block in blocks if block.text.startswith("<skills_instructions>"))
    roots = dict(CODEX_ROOT.findall(skills))
    lines = (
        CODEX_PATH.sub(lambda match: f"(file: {roots.get(match[1], match[1])}/", line)
        for line in CODEX_LINE.findall(skills)
    )
    tools = next((block.text for block in blocks if block.place == "tools"), "")
    listed = CODEX_ROLE.findall(tools.partition(CODEX_ROLES)[2])
    roles = [role for role in listed if not role.startswith(CODEX_OWN_ROLES)]
    return Extract(place, text, (*(line for line in lines if CODEX_OWN not in line), *roles))


def _opencode(blocks: list[TextBlock]) -> Extract:
    text = "\n".join(block.text for block in blocks if block.place == "system").partition(OPENCODE_START)[2]
    ends = [match.start() for match in OPENCODE_END.finditer(text)]
    instructions = text[: ends[-1]] if ends else text
    skills = text[ends[-1] :] if ends else ""
    return Extract(
        "system" if instructions else None, instructions or None, tuple(OPENCODE_LINE.findall(skills))
    )


def _opencode_agents(body: dict[str, Any]) -> Iterator[str]:
    """The agents that the description of the tool `task` lists."""
    for tool in body.get("tools", ()):
        if tool.get("function", {}).get("name") == "task":
            listed = tool["function"]["description"].partition(OPENCODE_AGENTS)[2]
            yield from re.findall(r"^- [^\n]+", listed, re.MULTILINE)


def _gemini(blocks: list[TextBlock]) -> Extract:
    texts: dict[str, str] = {}
    for block in blocks:
        if block.place == "system" and GEMINI_START in block.text:
            texts["system"] = GEMINI_START + block.text.rpartition(GEMINI_START)[2]
        elif block.place == "user" and block.text.startswith("<session_context>"):
            start = GEMINI_USER_START.search(block.text)
            if start is not None:
                texts["user"] = block.text[start.start() :].removesuffix("\n</session_context>")
    return Extract("+".join(texts) or None, "".join(texts.values()) or None, ())


def _first(blocks: list[TextBlock], start: str) -> tuple[str | None, str | None]:
    return next(((block.place, block.text) for block in blocks if block.text.startswith(start)), (None, None))
