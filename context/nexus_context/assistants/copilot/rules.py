"""What GitHub Copilot in VS Code reads of a folder's files, by its documentation.

1. `.github/copilot-instructions.md`, and AGENTS.md and CLAUDE.md at the root of the workspace, with every
   request; no order is documented.
2. `.github/instructions/**/*.instructions.md`: with `applyTo: '**'` every request, with other globs those
   about
   matching files, without `applyTo` only where somebody attaches it.
3. Instructions of the user's profile of VS Code and of an organization are not files of the folder.

The texts around the files are not documented, so only the files' own are counted.
"""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    Assistant,
    AssistantSettings,
    IgnoredFile,
    InstructionReader,
    LaterFile,
    Rule,
    Sent,
    SentBlock,
    SentPart,
)
from nexus_context.config.globs import Globs, GlobsError
from nexus_context.errors import Span
from nexus_context.folder.layers.copilot import ALWAYS, DEEPEST, DIRECTORY, NO_FIELD, SUFFIX, read_header

PAGE = "https://code.visualstudio.com/docs/agent-customization/custom-instructions"
ALWAYS_NAMES = (ALWAYS, "AGENTS.md", "CLAUDE.md")

ASSISTANT = Assistant(
    name="copilot",
    title="GitHub Copilot",
    version="2026-11",
    verified="documentation",
    model="gpt-5",
    names=(*ALWAYS_NAMES, f"{DIRECTORY}/*{SUFFIX}"),
    reads="its own files, AGENTS.md and CLAUDE.md",
    rules=(
        Rule(".github/copilot-instructions.md of the workspace", PAGE),
        Rule("AGENTS.md at the workspace's root (`chat.useAgentsMdFile`)", PAGE),
        Rule("CLAUDE.md at the workspace's root (`chat.useClaudeMdFile`)", PAGE),
        Rule(".github/instructions/**/*.instructions.md by their `applyTo`", PAGE),
        Rule("nested AGENTS.md only with `chat.useNestedAgentsMdFiles`", PAGE),
    ),
)


def read_copilot(disk: Disk, settings: AssistantSettings) -> Sent:
    """What Copilot sends of a folder's files."""
    surroundings = settings.where
    parts, later, ignored = [], [], []
    for name in ALWAYS_NAMES:
        path = os.path.join(surroundings.folder, *name.split("/"))
        text = (disk.text(path) or "").removeprefix("\ufeff") if disk.is_file(path) else ""
        if text.strip():
            parts.append(SentPart(text, "project", path, content=Span(0, len(text))))
    for path in _instruction_files(disk, os.path.join(surroundings.folder, *DIRECTORY.split("/")), 0):
        text = (disk.text(path) or "").removeprefix("\ufeff")
        header = read_header(path, text)
        body = text[header.body.start : header.body.end]
        if header.applies_to is None:
            reason = "its front matter cannot be read." if not header.valid else f"{NO_FIELD}."
            ignored.append(IgnoredFile(path, f"It {reason}" if header.valid else reason.capitalize()))
        elif _is_everything(header.applies_to):
            parts.append(SentPart(body, "rule", path, content=Span(0, len(body))))
        else:
            later.append(LaterFile(path, "rule", f"with requests about files that match {header.applies_to}"))
    blocks = (SentBlock("instructions", "system", tuple(parts), complete=False),) if parts else ()
    return Sent(blocks, tuple(later), tuple(ignored))


def _is_everything(globs: str) -> bool:
    try:
        return Globs(globs).everything
    except GlobsError:
        return False


def _instruction_files(disk: Disk, directory: str, depth: int) -> Iterator[str]:
    for name, entry in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if entry in ("file", "link") and name.endswith(SUFFIX) and disk.is_file(path):
            yield path
        elif entry == "directory" and depth < DEEPEST:
            yield from _instruction_files(disk, path, depth + 1)


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT, read=read_copilot, own_place="/.github/", own_files="instructions of GitHub Copilot"
)
