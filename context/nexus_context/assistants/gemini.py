"""What Gemini CLI reads of a folder's files, by its documentation.

1. ~/.gemini/GEMINI.md, then GEMINI.md of each directory from the root of the project (`.git`) down to the
   folder. `context.fileName` of its settings gives other names; all of them are read.
2. `@path` imports a file in its place: relative to the importing file, at most DEEPEST deep, outside of code.
3. A file below the folder follows when a tool first uses its directory.

The texts around the files are not documented, so only the files' own are counted.
"""

import os
import re
from collections.abc import Iterator

from nexus_context.assistants.disk import Disk
from nexus_context.assistants.model import (
    Assistant,
    Rule,
    Scope,
    Sent,
    SentBlock,
    SentPart,
    Surroundings,
)
from nexus_context.assistants.settings import read_json, texts_of
from nexus_context.assistants.working_tree import parents
from nexus_context.errors import Problem, Severity, Span
from nexus_context.prompt.markdown import code_ranges

PAGE = "https://geminicli.com/docs/cli/gemini-md"
IMPORT_PAGE = "https://geminicli.com/docs/reference/memport"
NAME = "GEMINI.md"
DEEPEST = 5
_IMPORT = re.compile(r"(?<!\S)@((?:\.{1,2}/|/|[A-Za-z])[^\s]*)")

ASSISTANT = Assistant(
    name="gemini",
    title="Gemini CLI",
    version="2026-11",
    verified="documentation",
    model="gemini-2.5-pro",
    names=(NAME,),
    reads="GEMINI.md",
    rules=(
        Rule("~/.gemini/GEMINI.md", PAGE),
        Rule("GEMINI.md from the root of the project (.git) down to the folder", PAGE),
        Rule("other names by `context.fileName` in .gemini/settings.json", PAGE),
        Rule("imports `@path` in their place, at most 5 deep", IMPORT_PAGE),
        Rule("a nested GEMINI.md follows the first use of its directory", PAGE),
    ),
)


def read_gemini(disk: Disk, surroundings: Surroundings) -> Sent:
    """What Gemini CLI sends of a folder's files."""
    home = os.path.join(surroundings.user_home, ".gemini")
    names = gemini_names(disk, surroundings)
    files: list[tuple[str, Scope]] = [(os.path.join(home, name), "user") for name in names]
    chain = parents(surroundings.folder)
    root = next((each for each in chain if disk.exists(os.path.join(each, ".git"))), surroundings.folder)
    for directory in reversed(chain[: chain.index(root) + 1]):
        scope: Scope = "project" if directory == surroundings.folder else "parent"
        files.extend((os.path.join(directory, name), scope) for name in names)
    problems: list[Problem] = []
    parts: list[SentPart] = []
    for path, scope in files:
        if disk.is_file(path):
            parts.extend(_expanded(disk, path, scope, visited=(), problems=problems))
    blocks = (SentBlock("instructions", "system", tuple(parts), complete=False),) if parts else ()
    return Sent(blocks, problems=tuple(problems))


def gemini_names(disk: Disk, surroundings: Surroundings) -> list[str]:
    """The names of its files, by the settings of the user and the folder."""
    names = [NAME]
    for directory in (surroundings.user_home, surroundings.folder):
        context = read_json(disk, os.path.join(directory, ".gemini", "settings.json")).get("context")
        value = context.get("fileName") if isinstance(context, dict) else None
        names = [value] if isinstance(value, str) else texts_of(value) or names
    return names


def _expanded(
    disk: Disk, path: str, scope: Scope, *, visited: tuple[str, ...], problems: list[Problem]
) -> Iterator[SentPart]:
    """A file with its imports in place, as parts."""
    text = (disk.text(path) or "").removeprefix("\ufeff")
    code = code_ranges(text)
    importer = visited[-1] if visited else None
    position = 0
    for match in _IMPORT.finditer(text):
        if any(span.start <= match.start() < span.end for span in code):
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
        message = None
        if target in (*visited, path):
            message = f"{target} imports this file; Gemini CLI leaves out the second copy."
        elif not disk.is_file(target):
            message = None if "/" not in match[1] else f"{target} does not exist. Correct the path."
        elif len(visited) + 1 >= DEEPEST:
            message = f"Gemini CLI reads imports {DEEPEST} deep; this one is deeper."
        else:
            yield from _part(path, text[position : match.start()], scope, importer)
            yield from _expanded(disk, target, "import", visited=(*visited, path), problems=problems)
            position = match.end()
        if message is not None:
            place = Span(*match.span())
            problems.append(Problem(path, place, "assistant.import", Severity.WARNING, message=message))
    yield from _part(path, text[position:], scope, importer)


def _part(path: str, text: str, scope: Scope, importer: str | None) -> Iterator[SentPart]:
    if text.strip():
        yield SentPart(text, scope, path, content=Span(0, len(text)), importer=importer)
