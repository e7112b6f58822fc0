"""Instruction files of one turn: for the files that it is about, and those that the editor attaches.

They are sent once, and not as what the user said.

1. Those of the folder that are for some files only (`applyTo`) are sent where a file of the turn fits.
2. A file that the prompt has is left out: by its real path, or by its text, as copies of one file are common.
3. The others stand in the last user message before what is remembered, each with a row of its own. The
   conversation never holds them, so that each request has them once.
   They stand in the order of their URIs, whatever order the editor has: what is sent is what was predicted.
4. Unsaved text counts: the client's own, else that of an open document, else the file on disk.
5. What cannot be read is reported and left out. So is a file of the folder, or of a directory above it in its
   repository, that the prompt must not have either: a link in a repository must not send its user's secrets.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nexus_context.config.globs import Globs
from nexus_context.errors import Span
from nexus_context.files import PROMPT_LIMIT, RealFiles, read_text, real_path
from nexus_context.layers.text_reader import forbidden_link
from nexus_context.layers.walk import within
from nexus_context.memory.item import BASE, MemoryItem
from nexus_context.prompt.blocks import Conditional
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol
from nexus_daemon.lsp import convert

BY_EDITOR, FOR_FILES = "Attached by the editor", "For these files"
"""What the labels of their rows begin with."""

Status = Literal["sent", "shortened", "in-prompt", "no-room", "unreadable", "not-applied"]


class _Outcome(NamedTuple):
    """What became of an instruction file so far. `applies_to` are its globs, `file` is one that fits."""

    uri: str
    label: str
    status: Status
    row: str
    applies_to: str | None = None
    file: str | None = None


class Attachments(NamedTuple):
    """The items to send, and what became of each file: the folder's own for some files, the editor's."""

    items: tuple[MemoryItem, ...] = ()
    instructions: tuple[_Outcome, ...] = ()
    statuses: tuple[_Outcome, ...] = ()


NONE = Attachments()


def read_attachments(
    snapshot: Snapshot,
    attachments: Sequence[protocol.Attachment],
    overlays: Mapping[str, str],
    files: Sequence[str] = (),
) -> Attachments:
    """Read what the prompt does not have. `files` are URIs of what the turn is about. Blocks on the disk."""
    conditional = snapshot.contents.conditional
    if not attachments and not conditional:
        return NONE
    prompt = snapshot.prompt
    present = {_real_path(fragment.path) for fragment in prompt.fragments if fragment.path is not None}
    items: list[MemoryItem] = []
    instructions: list[_Outcome] = []
    paths = [path for uri in files if (path := convert.uri_to_path(uri)) is not None]
    for each in conditional:
        outcome = _applied(snapshot, each, paths)
        instructions.append(outcome)
        if outcome.status == "sent":
            block = each.block
            said = "".join(piece.text for piece in block.pieces)
            source = block.pieces[0].source
            items.append(
                MemoryItem("instructions", outcome.row, said, BASE["instructions"], block.path, source)
            )
            present.update(_real_path(piece.path) for piece in block.pieces if piece.path is not None)
    statuses: list[_Outcome] = []
    by_uri = {attachment.uri: attachment for attachment in attachments}
    for attachment in sorted(by_uri.values(), key=lambda attachment: attachment.uri):
        attached = convert.uri_to_path(attachment.uri)
        label = attachment.uri if attached is None else _label(snapshot.folder, attached)
        row = f"{BY_EDITOR}: {label}"
        status: Status = "in-prompt"
        if attached is None or _real_path(attached) not in present:
            text = _text(snapshot, attachment, attached, overlays)
            if text is None:
                status = "unreadable"
            elif text.strip() not in prompt.text:  # nor is an empty one worth sending
                status = "sent"
                span = None if attached is None else Span(0, len(text))
                items.append(MemoryItem("instructions", row, text, BASE["instructions"], attached, span))
        if attached is not None:
            present.add(_real_path(attached))
        statuses.append(_Outcome(attachment.uri, label, status, row))
    return Attachments(tuple(items), tuple(instructions), tuple(statuses))


def _applied(snapshot: Snapshot, conditional: Conditional, paths: Sequence[str]) -> _Outcome:
    """Whether a file for some files only is for one of these."""
    path = conditional.block.path
    file = Globs(conditional.applies_to).matching(Path(each).as_posix() for each in paths)
    label = _label(snapshot.folder, path)
    return _Outcome(
        convert.path_to_uri(path),
        label,
        "not-applied" if file is None else "sent",
        f"{FOR_FILES}: {label}",
        conditional.applies_to,
        None if file is None else _label(snapshot.folder, file),
    )


def report_attachments(attachments: Attachments, memory: Mapping[str, Any]) -> dict[str, Any]:
    """What became of each file, as `metadata.instructions` and `metadata.attachments`.

    `memory` is the report on all items.
    """
    report = {
        "instructions": [_reported(outcome, memory) for outcome in attachments.instructions],
        "attachments": [_reported(outcome, memory) for outcome in attachments.statuses],
    }
    return {name: outcomes for name, outcomes in report.items() if outcomes}


def _reported(outcome: _Outcome, memory: Mapping[str, Any]) -> dict[str, str]:
    status = outcome.status
    if status == "sent" and outcome.row in memory.get("dropped", ()):
        status = "no-room"
    elif status == "sent" and outcome.row in memory.get("shortened", ()):
        status = "shortened"
    report = {"uri": outcome.uri, "label": outcome.label, "status": status}
    if outcome.applies_to is not None:
        report["appliesTo"] = outcome.applies_to
    return report | ({"file": outcome.file} if outcome.file is not None else {})


def _label(folder: str, path: str) -> str:
    """The path as people read it in a folder: relative where it lies in it."""
    inside = path.startswith(folder.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, folder) if inside else path


def _text(
    snapshot: Snapshot, attachment: protocol.Attachment, path: str | None, overlays: Mapping[str, str]
) -> str | None:
    if path is None:
        return attachment.text
    tree, real = _tree(snapshot, path), _real_path(path)
    if tree is not None and _refused(snapshot, path, real, tree):
        return None
    if attachment.text is not None:
        return attachment.text
    if path in overlays:
        return overlays[path]
    if tree is None:
        return read_text(path, limit=PROMPT_LIMIT).text
    files = RealFiles()  # what is read is the file that was decided about
    try:
        return files.read(path, real, limit=PROMPT_LIMIT).text
    finally:
        files.close()


def _tree(snapshot: Snapshot, path: str) -> str | None:
    """The directory that a file of a workspace must be in: the folder, or one above it in its repository."""
    directories = (snapshot.layers.root, *(directory for directory, _ in snapshot.layers.reach.directories))
    return next((directory for directory in directories if within(path, directory)), None)


def _refused(snapshot: Snapshot, path: str, real: str, tree: str) -> bool:
    """Whether the prompt must not have a file."""
    if any(skipped.path == path for skipped in snapshot.layers.skipped):
        return True
    return forbidden_link(path, real, tree, _real_path(tree)) is not None


def _real_path(path: str) -> str:
    try:
        return real_path(path)
    except (OSError, ValueError):
        return path
