"""What a real request says of the folder's files: its instruction text, and the lines on skills and agents.

1. The instruction text is taken between the assistant's own texts, never by what a profile expects.
2. Lists of skills and agents also hold the assistant's own; those of a request from an empty folder are left
   out, also where a setting shortens them. An entry has all its lines.
   Codex names directories of skills by a table; its own are in `.system`.
3. A line of the rest that holds a text of the folder's files is unexplained.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

CLAUDE_START = "<system-reminder>\nCodebase and user instructions are shown below."
CLAUDE_STYLE = re.compile(r"<system-reminder>\n# Output Style: .*?\n</system-reminder>", re.DOTALL)
CODEX_START = "# AGENTS.md instructions"
GEMINI_START = "<loaded_context>\n"
GEMINI_USER_START = re.compile(r"<loaded_context>\n<(?:extension|project)_context>\n")
OPENCODE_START = "\n</env>\n"
OPENCODE_END = re.compile(r"\n?Skills provide specialized instructions and workflows for specific tasks\.\n")
OPENCODE_AGENTS = "Available agent types and the tools they have access to:\n"
CLAUDE_END = "\n\nWhen you launch multiple agents"
LISTED = re.compile(r"^- .*?(?=\n- |\Z)", re.MULTILINE | re.DOTALL)
CODEX_LINE = re.compile(r"^- [^\n]+ \(file: [^\n]+\)$", re.MULTILINE)
CODEX_ROOT = re.compile(r"^- `(\w+)` = `([^`\n]+)`$", re.MULTILINE)
CODEX_PATH = re.compile(r"\(file: (r\d+)/")
CODEX_OWN = "/skills/.system/"
CODEX_ROLES = "\nAvailable roles:\n"
CODEX_OWN_ROLES = (
    "default: {\nDefault agent.",
    "explorer: {\nUse `explorer`",
    "worker: {\nUse for execution",
)
CODEX_ROLE = re.compile(r"^[^\n]+: \{\n.*?\n\}$", re.MULTILINE | re.DOTALL)
SKILL_ELEMENT = re.compile(r"^  <skill>\n.*?^  </skill>$", re.MULTILINE | re.DOTALL)
GEMINI_AGENTS = "\nThe following sub-agents are available:\n\n"
GEMINI_AGENTS_END = "\n\nRemember that the closest relevant sub-agent"
NAMES_OF_FILES = ("\u2502", "\u251c", "\u2514", "?? ")
"""How the lines begin that have the names in the folder: of Gemini CLI, and of git."""
SWITCHES = ("true", "false", "null", "danger-full-access")
"""Values that choose a text of the program's own."""
SHORTEST = 4  # characters of a text of a file that is looked for
VALUE = re.compile(r"[\w\"-]+ ?[:=] ?(.+)")


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
    sections = (section.partition(CLAUDE_END)[0] for section in lists)
    entries = tuple(entry for section in sections for entry in LISTED.findall(section))
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
        "system" if instructions else None, instructions or None, tuple(SKILL_ELEMENT.findall(skills))
    )


def _opencode_agents(body: dict[str, Any]) -> Iterator[str]:
    """The agents that the description of the tool `task` lists."""
    for tool in body.get("tools", ()):
        if tool.get("function", {}).get("name") == "task":
            listed = tool["function"]["description"].partition(OPENCODE_AGENTS)[2]
            yield from LISTED.findall(listed)


def _gemini(blocks: list[TextBlock]) -> Extract:
    texts: dict[str, str] = {}
    for block in blocks:
        if block.place == "system" and GEMINI_START in block.text:
            texts["system"] = GEMINI_START + block.text.rpartition(GEMINI_START)[2]
        elif block.place == "user" and block.text.startswith("<session_context>"):
            start = GEMINI_USER_START.search(block.text)
            if start is not None:
                texts["user"] = block.text[start.start() :].removesuffix("\n</session_context>")
    system = "\n".join(block.text for block in blocks if block.place == "system")
    agents = system.partition(GEMINI_AGENTS)[2].partition(GEMINI_AGENTS_END)[0]
    entries = (*LISTED.findall(agents), *SKILL_ELEMENT.findall(system))
    return Extract("+".join(texts) or None, "".join(texts.values()) or None, entries)


def without_own(extract: Extract, own: tuple[str, ...]) -> Extract:
    """An extract without the entries that a program lists in an empty folder, whole or shortened."""
    names = {entry.partition(":")[0] for entry in own}
    return extract._replace(
        entries=tuple(
            entry
            for entry in extract.entries
            if entry not in own
            and entry not in names
            and not (entry.endswith("\u2026") and any(each.startswith(entry[:-1]) for each in own))
        )
    )


def unexplained_lines(
    body: dict[str, Any], empty: Sequence[dict[str, Any]], extract: Extract, files: Iterable[str]
) -> list[str]:
    """The lines of a request that an empty folder's does not have, no extract, but a file of the folder."""
    known = (*_texts_in(list(empty)), extract.instructions or "", *extract.entries)
    explained = {_without_path(line) for text in known for line in text.split("\n")}
    texts = {text for file in files for line in file.split("\n") for text in _values_of(line.strip())}
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in sorted(texts)) or r"\Z.")
    return [
        line
        for text in _texts_in({**body, "metadata": None, "client_metadata": None})
        for line in text.split("\n")
        if _without_path(line) not in explained
        and not line.lstrip().startswith(NAMES_OF_FILES)
        and pattern.search(line)
    ]


def _without_path(line: str) -> str:
    """A line of Codex's list of skills without the path, which it shortens."""
    return line.rpartition(" (file: ")[0] or line


def _values_of(line: str) -> Iterator[str]:
    """A line of a file, and the value that it gives a field."""
    match = VALUE.fullmatch(line)
    for text in (line, match[1].strip("\"'") if match else ""):
        if len(text) >= SHORTEST and text not in SWITCHES:
            yield text


def _first(blocks: list[TextBlock], start: str) -> tuple[str | None, str | None]:
    return next(((block.place, block.text) for block in blocks if block.text.startswith(start)), (None, None))
