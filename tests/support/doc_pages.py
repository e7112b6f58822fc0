"""The pages that readers of the repository open, as Markdown: prose, headings, links and blocks of code."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = (
    "*.md",
    "docs/**/*.md",
    "benchmarks/*.md",
    "changes/README.md",
    "editors/*/README.md",
    "vscode-extension/*.md",
    "vscode-extension/walkthrough/*.md",
)
FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*(\w*)")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
HEADING = re.compile(r"#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)
LINK = re.compile(r"\]\(\s*<?([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)?)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
ATTRIBUTE = re.compile(r"<[^>]*\b(?:href|src)=\"([^\"]+)\"")
NAMED = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
TEXT_OF_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
UNNAMED = re.compile(r"[^\w\- ]")
SHELLS = {"indented", "", "sh", "bash", "shell", "console", "text"}
PROMPT = "$ "
PROGRAM = re.compile(
    r"(?:\.venv/bin/)?(?:nexus|python|make|pip|pipx|uvx|git|npm|npx|node|bash|cd|curl|export|mkdir|ln|nvim"
    r"|claude|codex|gemini|opencode)(?: |$)"
)
INLINE = re.compile(r"(?<!`)`(nexus [^`\n]+)`(?!`)")


class Block(NamedTuple):
    """A block of code: the page that has it, the number of its first line, and its language."""

    page: Path
    line: int
    language: str
    """Empty where none is named; `indented` for lines behind four spaces."""
    lines: tuple[str, ...]


def pages() -> list[Path]:
    return sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    kept, fence = [], ""
    for line in text.splitlines():
        match = FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif match:
            fence = match[1]
        else:
            kept.append(line)
    return "\n".join(kept)


def links(text: str) -> list[str]:
    """The targets of all links and pictures of a page."""
    plain = CODE.sub("", prose(text))
    return [target for pattern in (LINK, DEFINITION, ATTRIBUTE) for target in pattern.findall(plain)]


def anchors(text: str) -> set[str]:
    """What a link to a page may name behind `#`: GitHub's anchors of its headings, and named places."""
    found: set[str] = set(NAMED.findall(text))
    counts: Counter[str] = Counter()
    for heading in HEADING.findall(prose(text)):
        plain = TEXT_OF_LINK.sub(r"\1", heading).strip().lower()
        anchor = UNNAMED.sub("", plain).replace(" ", "-")
        found.add(f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
        counts[anchor] += 1
    return found


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of code of a page, fenced ones and indented ones."""
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        begin = number
        number += 1
        match = FENCE.match(lines[begin])
        if match:
            while number < len(lines) and lines[number].strip() != match[1]:
                number += 1
            yield Block(page, begin + 2, match[2], tuple(lines[begin + 1 : number]))
            number += 1
        elif lines[begin].startswith("    ") and (begin == 0 or not lines[begin - 1].strip()):
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                number += 1
            yield Block(page, begin + 1, "indented", tuple(line[4:] for line in lines[begin:number]))


class Command(NamedTuple):
    """A line for a shell: where it stands, what it says, and its comment."""

    page: Path
    line: int
    text: str
    comment: str


def commands(page: Path) -> Iterator[Command]:
    """The command lines in the blocks of a page: those behind a prompt, or all that begin with a program."""
    for block in blocks(page):
        if block.language not in SHELLS:
            continue
        has_prompt = any(line.startswith(PROMPT) for line in block.lines)
        for number, line in enumerate(block.lines, block.line):
            text, _, comment = line.removeprefix(PROMPT).partition(" # ")
            text = text.strip()
            is_output = not line.startswith(PROMPT) if has_prompt else block.language == "text"
            if not is_output and PROGRAM.match(text):
                yield Command(page, number, text, comment)


def inline_commands(text: str) -> list[str]:
    """What the prose of a page calls a command of Nexus, perhaps with placeholders."""
    return INLINE.findall(prose(text))
