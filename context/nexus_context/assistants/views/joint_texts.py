"""Checks the instruction files that a program sends together, by `folder/prompt/joint`."""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import SentBlock, SentPart
from nexus_context.errors import Problem, Span
from nexus_context.folder.prompt.joint.checks import check_together
from nexus_context.folder.prompt.joint.texts import JointText

_USER_SCOPES = ("managed", "user", "memory")
_DIRECTORIES_OF_FILES = (".github", ".claude", ".cursor", ".codex", ".gemini", ".opencode")


def check_sent_instructions(blocks: tuple[SentBlock, ...], disk: Disk) -> Iterator[Problem]:
    """Report what is repeated or contradicted in the instruction files that a program sends with each
    request.
    """
    yield from check_together(_joint_texts(blocks, disk))


def _joint_texts(blocks: tuple[SentBlock, ...], disk: Disk) -> Iterator[JointText]:
    directories: dict[str, tuple[str, bool]] = {}
    real_paths: set[str] = set()
    for block in blocks:
        if block.kind != "instructions":
            continue
        for part in block.parts:
            text = disk.text(part.path) if part.path is not None else None
            if text is None or part.path is None or disk.real(part.path) in real_paths:
                continue
            real_paths.add(disk.real(part.path))
            directory = directories.get(part.importer or "") or _directory(part)
            directories[part.path] = directory
            yield JointText(part.path, text, (_sent_span(part, text),), *directory)


def _directory(part: SentPart) -> tuple[str, bool]:
    """The directory that a file is for, and whether the file is the user's own."""
    if part.scope in _USER_SCOPES or part.path is None:
        return "", True
    names = os.path.dirname(part.path).split(os.sep)
    end = next((number for number, name in enumerate(names) if name in _DIRECTORIES_OF_FILES), len(names))
    return os.sep.join(names[:end]), False


def _sent_span(part: SentPart, text: str) -> Span:
    """The span of a file's text that is sent: all of it, except an end that is cut off."""
    content = part.text[part.content.start : part.content.end]
    start = text.find(content) if content else -1
    if start >= 0:
        return Span(start, start + len(content))
    if part.cut is None:
        return Span(0, len(text))
    end = 0
    for _ in range(part.cut.first_line - 1):
        end = text.find("\n", end) + 1
    return Span(0, end)
