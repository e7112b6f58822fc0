"""Reads an earlier summary, whoever wrote it, as items under the sections of our own summaries.

1. Headings begin a line: `#`, bold lines, and numbered titles that end with a colon (`6. All user
   messages:`). `summary_aliases` lists the titles that other programs use. Text under an unknown title, or
   under none, belongs to the section `state`.
2. An item begins with a list mark and includes the lines below it that are indented further. Without list
   marks, each line is an item. The indentation that all lines under a heading share does not count.
3. Code between fences is left out, because the files have it, unless it belongs to a user's message.
4. An item longer than LONGEST_ITEM is shortened, with a mark.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from nexus_context.conversation.shortening import shorten_text
from nexus_context.folder.prompt import texts

LONGEST_ITEM = 1_200
"""Characters of an item that is not a user's message."""
MOST_LINES = 20_000
VERBATIM = ("goal", "latest")


class Item(NamedTuple):
    """One item of a summary. `section` is the name of its section."""

    section: str
    text: str


def items_of(summary: str) -> Iterator[Item]:
    """Yield the items of a summary in order."""
    for section, lines in _blocks(summary.splitlines()[:MOST_LINES]):
        for text in _items(lines, verbatim=section in VERBATIM):
            if section not in VERBATIM:
                text = shorten_text(text, LONGEST_ITEM)
            yield Item(section, text)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines under each heading."""
    section, block, fenced = "state", [], False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        title = None if fenced else _title(line)
        if title is None:
            block.append(line)
            continue
        yield section, block
        section = _sections().get(title[0].strip(" :*").casefold(), "state")
        block = [f"- {title[1]}"] if title[1] else []
    yield section, block


def _title(line: str) -> tuple[str, str] | None:
    """The heading that a line is, and what follows it in the line; None for any other line."""
    match = _HEADING.match(line)
    if match is not None:
        return match["hashes"], ""
    match = _TITLE.match(line)
    if match is None:
        return None
    title = match["bold"] or match["numbered"]
    following_text = (match["rest"] or "").strip()
    if match["bold"] or not following_text or title.casefold() in _sections():
        return title, following_text
    return None


def _items(lines: Sequence[str], *, verbatim: bool) -> list[str]:
    """The items of the lines under one heading."""
    shared = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    items: list[str] = []
    fenced = False
    for line in lines:
        line = line[shared:]
        if line.startswith("  ") and items and verbatim:
            items[-1] += f"\n{line[2:]}"
            continue
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif line.strip() and not fenced:
            if line.startswith("  ") and items:
                items[-1] += f"\n{line[2:]}"
            else:
                items.append(_MARK.sub("", line, count=1))
    return [item.rstrip() for item in items if item.strip()]


@cache
def _sections() -> dict[str, str]:
    """Section by heading, in lower case."""
    sections = {}
    for line in texts.text("summary_headings").splitlines():
        section, _, heading = line.partition(": ")
        sections[heading.casefold()] = section
    for line in texts.text("summary_aliases").splitlines():
        section, _, headings = line.partition(": ")
        sections |= {heading.strip().casefold(): section for heading in headings.split(";")}
    return sections


_HEADING = re.compile(r"^#{1,6}[ \t]+(?:\d{1,2}[.)][ ])?(?P<hashes>[^\n]{1,200}?)[ #:]*$")
_TITLE = re.compile(
    r"^(?:(?:\d{1,2}[.)][ ]+)?\*\*(?P<bold>[^*\n]{1,80}?):?\*\*:?[ ]*$"
    r"|\d{1,2}[.)][ ]+(?P<numbered>[^:*\n]{1,60}):(?P<rest>[^\n]*)$)"
)
_MARK = re.compile(r"^[-*•+] ")
