"""Computes what one assistant reads in a folder: its parts with their tokens, what it reads later or never,
and why.

1. The module of each assistant says what is sent. Here tokens are counted: each block as a whole, its parts
   as differences, so that they sum to it exactly.
2. Every instruction file around the folder that the assistant does not send gets a reason: one of the
   assistant's module, else one that follows from the names that the assistant reads. It is a problem only if
   the assistant is set up, that is, if the project has files of its own for it.
3. It is no problem if the assistant has the text all the same: if it sends a file with the same bytes, or if
   the file is only an import of a file that it sends. Nor is it one if the file is a template for other
   projects.
"""

import os
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import accumulate

from msgspec.structs import replace

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import MOST_BYTES, Disk
from nexus_context.assistants.reading.profile_types import (
    NESTED_WHEN,
    Assistant,
    IgnoredFile,
    InstructionReader,
    LaterFile,
    Profile,
    Sent,
    SentBlock,
    Surroundings,
)
from nexus_context.assistants.reading.working_tree import is_within
from nexus_context.assistants.views.instruction_files import InstructionFiles, find_instruction_files
from nexus_context.assistants.views.joint_texts import check_sent_instructions
from nexus_context.assistants.views.mcp_servers import read_servers
from nexus_context.assistants.views.set_up import is_set_up, project_of
from nexus_context.errors import Problem, Severity, Span
from nexus_context.tokens import TokenCounter, count_spans, counter_for

ASSISTANTS: tuple[Assistant, ...] = tuple(program.instructions.assistant for program in PROGRAMS.values())
_LONGEST_IMPORT = 200  # bytes of a file that is an import and nothing else
_TEMPLATES = re.compile(r"(?:^|/)(?:[^/]*[_.-])?(?:templates?|skeleton|assets)/")
"""Directories of files for other projects, or for those to be made."""


def read_profile(
    name: str,
    surroundings: Surroundings,
    *,
    disk: Disk | None = None,
    around: InstructionFiles | None = None,
    counted: bool = True,
) -> Profile:
    """Compute what an assistant reads in a folder. Raise KeyError for a name that is not in PROGRAMS.

    Without `counted`, all tokens are 0: counting takes longer than the rest, and some callers want only the
    problems.
    """
    disk = disk or Disk()
    surroundings = replace(surroundings, folder=disk.real(surroundings.folder))
    program = PROGRAMS[name]
    settings = program.settings(disk.anew(), surroundings)  # which leaves the files their share
    assistant = program.instructions.assistant
    sent = Sent(()) if settings.stop else program.instructions.read(disk, settings)
    counter = counter_for(assistant.model)
    blocks = tuple(_counted(block, counter) for block in sent.blocks) if counted else sent.blocks
    files = around or find_instruction_files(disk, surroundings)
    paths = {part.path for block in blocks for part in block.parts if part.path is not None}
    later = _later(sent, files, folder=surroundings.folder, paths=paths)
    ignored = (
        ()
        if settings.stop
        else tuple(
            _ignored(
                assistant,
                sent,
                files,
                disk=disk,
                paths=paths | {file.path for file in later},
                folder=surroundings.folder,
            )
        )
    )
    explained = {problem.path for problem in (*settings.problems, *sent.problems)}
    project = project_of(surroundings, disk)
    parts = [part for block in blocks for part in block.parts]
    # files above the project decide what is read in it, as those of the project do
    is_here = is_set_up(name, surroundings.folder, disk, project) or any(
        part.scope == "parent" for part in parts
    )
    scopes = {part.scope for part in parts if part.path is None or project.contains(part.path)}
    scopes |= {file.scope for file in later if project.contains(file.path)}
    unexplained = tuple(file for file in ignored if is_here and file.path not in explained)
    replaced_servers: list[Problem] = []
    servers = read_servers(name, settings, disk.anew(), problems=replaced_servers)
    return Profile(
        assistant=assistant,
        folder=surroundings.folder,
        user_home=surroundings.user_home,
        blocks=blocks,
        later=tuple(
            replace(file, tokens=counter.count(disk.text(file.path) or "") if counted else 0)
            for file in later
        ),
        ignored=ignored,
        problems=(
            *settings.problems,
            *sent.problems,
            *replaced_servers,
            *_refused_problems(disk),
            *_unread_problems(assistant, scopes, unexplained, surroundings),
            *check_sent_instructions(sent.blocks, disk),
        ),
        texts={**disk.texts, **settings.texts},
        total=sum(part.tokens for block in blocks for part in block.parts),
        exact=counter.exact,
        counter=counter.name,
        servers=servers,
        own_tokens=None if settings.stop or sent.changes_own else assistant.own_tokens,
    )


def _counted(block: SentBlock, counter: TokenCounter) -> SentBlock:
    cuts = [0, *accumulate(len(part.text) for part in block.parts)]
    counts = count_spans(counter, block.text, cuts)
    parts = (replace(part, tokens=tokens) for part, tokens in zip(block.parts, counts, strict=True))
    return replace(block, parts=tuple(parts))


def _later(sent: Sent, files: InstructionFiles, *, folder: str, paths: set[str]) -> list[LaterFile]:
    """The files that are sent when something happens: rules, nested files, and texts of skills and agents."""
    later = {file.path: file for file in sent.later}
    for path in files.nested:
        if os.path.basename(path) in sent.nested_names and path not in paths and is_within(path, folder):
            later.setdefault(path, LaterFile(path, "nested", NESTED_WHEN))
    for block in sent.blocks:
        if block.kind != "instructions":
            when = "when the model calls it; until then only its name and description"
            for part in block.parts:
                if part.path is not None and part.scope in ("skill", "agent"):
                    later.setdefault(part.path, LaterFile(part.path, part.scope, when))
    return list(later.values())


def _ignored(
    assistant: Assistant, sent: Sent, files: InstructionFiles, *, disk: Disk, paths: set[str], folder: str
) -> Iterator[IgnoredFile]:
    reasons = {file.path: file for file in sent.ignored if file.path not in paths}
    real_paths = {disk.real(path) for path in paths}
    sent_texts = _TextFinder(disk, paths)
    for path in (*files.around, *files.nested):
        if path in paths or (path not in reasons and disk.real(path) in real_paths):
            continue
        ignored = reasons.pop(path, None)
        duplicate = _explain_same_text(path, sent_texts, paths, disk=disk)
        yield duplicate or ignored or _explain_unread(assistant, sent, path, folder)
    yield from reasons.values()


class _TextFinder:
    """Finds a file with the same text as another; reads only files of the same size."""

    def __init__(self, disk: Disk, paths: Iterable[str]) -> None:
        self._disk = disk
        self._by_size: dict[int | None, list[str]] = {}
        for path in sorted(paths):
            self._by_size.setdefault(disk.size(path), []).append(path)
        self._by_text: dict[int, dict[bytes | None, str]] = {}

    def find(self, path: str) -> str | None:
        """Find the first file with the same bytes as `path`; None also if `path` is empty."""
        size = self._disk.size(path)
        if not size or size not in self._by_size:
            return None
        if size not in self._by_text:
            same_size = reversed(self._by_size[size])
            self._by_text[size] = {self._disk.data(other_path): other_path for other_path in same_size}
        data = self._disk.data(path)
        return None if data is None else self._by_text[size].get(data)


def _explain_same_text(
    path: str, sent_texts: _TextFinder, paths: AbstractSet[str], *, disk: Disk
) -> IgnoredFile | None:
    """Explain an unread file that repeats a sent file or only imports it; None for other files."""
    size, directory = disk.size(path), os.path.dirname(path)
    if not size:
        return None
    same_text_path = sent_texts.find(path)
    if same_text_path is not None:
        reason = f"It has the same text as {os.path.relpath(same_text_path, directory)}, which is read."
        return IgnoredFile(path, reason, is_problem=False)
    text = (disk.text(path) or "").strip() if size < _LONGEST_IMPORT else ""
    target = os.path.normpath(os.path.join(directory, text.removeprefix("@")))
    if text.startswith("@") and target in paths:
        reason = f"It only imports {os.path.relpath(target, directory)}, which is read."
        return IgnoredFile(path, reason, is_problem=False)
    return None


def _explain_unread(assistant: Assistant, sent: Sent, path: str, folder: str) -> IgnoredFile:
    """Explain why an assistant does not send a file that its own module does not list."""
    name = os.path.basename(path)
    owner = _owner(path)
    if owner is not None and owner.assistant is not assistant:
        return IgnoredFile(path, f"{assistant.title} reads {assistant.reads}, not {owner.own_files}.")
    explained = sent.explain_unread(path)
    if explained is not None:
        return explained
    reason = f"{assistant.title} reads {assistant.reads}, not {name}."
    if any(read_name.rpartition("/")[2] == name for read_name in assistant.names):
        reason = f"{assistant.title} does not read {name} in this place."
        if is_within(os.path.dirname(path), folder):
            reason = f"{assistant.title} reads {name} of the folder where it runs, not of those below."
    return IgnoredFile(path, reason)


@cache
def _own_places() -> tuple[tuple[str, InstructionReader], ...]:
    readers = (program.instructions for program in PROGRAMS.values())
    return tuple((reader.own_place, reader) for reader in readers)


def _owner(path: str) -> InstructionReader | None:
    """The assistant whose own place a file is in, None for other files."""
    path = path.replace(os.sep, "/")
    return next((reader for own_place, reader in _own_places() if own_place in path), None)


def _refused_problems(disk: Disk) -> Iterator[Problem]:
    """Files that Nexus itself does not read, so that what it says of them is incomplete."""
    for path in disk.refused:
        message = f"Nexus reads {MOST_BYTES >> 20} MiB of all files together, and so not this one."
        yield Problem(path, Span(0, 0), "assistant.too-large", Severity.WARNING, message=message)


def _unread_problems(
    assistant: Assistant,
    scopes: AbstractSet[str],
    ignored: tuple[IgnoredFile, ...],
    surroundings: Surroundings,
) -> Iterator[Problem]:
    """Files of the folder itself that are not read, but those of other assistants.

    The first is a warning if nothing of the project is read.
    """
    reads_project = scopes & {"project", "parent", "local"}
    severity = Severity.INFORMATION if reads_project else Severity.WARNING
    for file in ignored:
        owner = _owner(file.path)
        relative_path = file.path.removeprefix(surroundings.folder).replace(os.sep, "/")
        is_inside = is_within(file.path, surroundings.folder)
        if not file.is_problem or not is_inside or _TEMPLATES.search(relative_path):
            continue
        if owner is None or owner.assistant is assistant:
            message = f"{assistant.title} does not read this file. {file.reason}"
            yield Problem(file.path, Span(0, 0), "assistant.unread", severity, message=message)
            severity = Severity.INFORMATION
