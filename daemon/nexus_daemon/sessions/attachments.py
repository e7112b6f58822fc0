"""Send instruction files with one turn: those for the files that the turn is about, and those of the editor.

They are sent once, and not as the user's words.

1. A file of the folder that is for some files only (`applyTo`) is sent if it applies to a file of the turn.
2. A file that the prompt contains is left out. It is recognized by its real path and by its text, since
   copies of one file are common.
3. The other files stand in the last user message, before the memory, each with a row of its own. They are not
   part of the conversation, so each request has them once. They are in the order of their URIs, whatever
   order the editor uses, so what is sent equals what was predicted.
4. Unsaved text wins: the client's own, else that of an open document, else the file on disk.
5. A file that cannot be read is reported and left out. So is a file of the folder, or of a directory above it
   in its repository, that the prompt must not contain: a link in a repository must not send its user's
   secrets.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nexus_context.config.globs import Globs
from nexus_context.disk.files import PROMPT_LIMIT, RealFiles, read_text, real_path
from nexus_context.errors import Span
from nexus_context.folder.layers.text_reader import forbidden_link
from nexus_context.folder.layers.walk import within
from nexus_context.folder.prompt.blocks import Conditional
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.item import BASE, MemoryItem
from nexus_daemon import protocol
from nexus_daemon.lsp import convert

BY_EDITOR, FOR_FILES = "Attached by the editor", "For these files"
"""The beginnings of their rows' labels."""

Status = Literal["sent", "shortened", "in-prompt", "no-room", "unreadable", "not-applied"]


class _Outcome(NamedTuple):
    """The outcome for one instruction file. `applies_to` are its globs, `file` is one that they match."""

    uri: str
    label: str
    status: Status
    row: str
    applies_to: str | None = None
    file: str | None = None


class Attachments(NamedTuple):
    """The items to send, and the outcome for each file of the folder and of the editor."""

    items: tuple[MemoryItem, ...] = ()
    instructions: tuple[_Outcome, ...] = ()  # the folder's, for some files only
    statuses: tuple[_Outcome, ...] = ()  # the editor's


NO_ATTACHMENTS = Attachments()


def read_attachments(
    snapshot: Snapshot,
    attachments: Sequence[protocol.Attachment],
    overlays: Mapping[str, str],
    files: Sequence[str] = (),
) -> Attachments:
    """Read the files that the prompt does not contain yet. Blocks on the disk.

    `files` are the URIs of the files that the turn is about; `overlays` has unsaved texts by path.
    """
    conditional = snapshot.contents.conditional
    if not attachments and not conditional:
        return NO_ATTACHMENTS
    prompt = snapshot.prompt
    present_paths = {_real_path(fragment.path) for fragment in prompt.fragments if fragment.path is not None}
    items: list[MemoryItem] = []
    instructions: list[_Outcome] = []
    paths = [path for uri in files if (path := convert.uri_to_path(uri)) is not None]
    for conditional_file in conditional:
        outcome = _applied(snapshot, conditional_file, paths)
        instructions.append(outcome)
        if outcome.status == "sent":
            block = conditional_file.block
            text = "".join(piece.text for piece in block.pieces)
            items.append(_item(outcome.row, text, block.path, block.pieces[0].source))
            present_paths.update(_real_path(piece.path) for piece in block.pieces if piece.path is not None)
    statuses: list[_Outcome] = []
    by_uri = {attachment.uri: attachment for attachment in attachments}
    for attachment in sorted(by_uri.values(), key=lambda attachment: attachment.uri):
        attached = convert.uri_to_path(attachment.uri)
        label = attachment.uri if attached is None else _label(snapshot.folder, attached)
        row = f"{BY_EDITOR}: {label}"
        status: Status = "in-prompt"
        if attached is None or _real_path(attached) not in present_paths:
            attached_text = _text(snapshot, attachment, attached, overlays)
            if attached_text is None:
                status = "unreadable"
            elif attached_text.strip() not in prompt.text:  # that of an empty file always is
                status = "sent"
                span = None if attached is None else Span(0, len(attached_text))
                items.append(_item(row, attached_text, attached, span))
        if attached is not None:
            present_paths.add(_real_path(attached))
        statuses.append(_Outcome(attachment.uri, label, status, row))
    return Attachments(tuple(items), tuple(instructions), tuple(statuses))


def _item(row: str, text: str, path: str | None, span: Span | None) -> MemoryItem:
    return MemoryItem("instructions", row, text, BASE["instructions"], path=path, span=span)


def _applied(snapshot: Snapshot, conditional: Conditional, paths: Sequence[str]) -> _Outcome:
    """Whether a conditional file applies to one of these paths."""
    path = conditional.block.path
    file = Globs(conditional.applies_to).matching(Path(turn_path).as_posix() for turn_path in paths)
    label = _label(snapshot.folder, path)
    return _Outcome(
        uri=convert.path_to_uri(path),
        label=label,
        status="not-applied" if file is None else "sent",
        row=f"{FOR_FILES}: {label}",
        applies_to=conditional.applies_to,
        file=None if file is None else _label(snapshot.folder, file),
    )


def report_attachments(attachments: Attachments, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Build `metadata.instructions` and `metadata.attachments`: the outcome for each file.

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
    """The path as people write it: relative if it is in the folder."""
    return os.path.relpath(path, folder) if within(path, folder) else path


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
    files = RealFiles()  # reads the very file that was checked
    try:
        return files.read(path, real, limit=PROMPT_LIMIT).text
    finally:
        files.close()


def _tree(snapshot: Snapshot, path: str) -> str | None:
    """The directory that a workspace file must not leave: the folder, or one above it in its repository."""
    directories = (snapshot.layers.root, *(directory for directory, _ in snapshot.layers.reach.directories))
    return next((directory for directory in directories if within(path, directory)), None)


def _refused(snapshot: Snapshot, path: str, real: str, tree: str) -> bool:
    """Whether the prompt must not contain a file."""
    if any(skipped.path == path for skipped in snapshot.layers.skipped):
        return True
    return forbidden_link(path, real, tree, _real_path(tree)) is not None


def _real_path(path: str) -> str:
    try:
        return real_path(path)
    except (OSError, ValueError):
        return path
