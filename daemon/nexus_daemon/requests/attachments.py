"""Instruction files that an editor attaches to a turn by itself: sent once, and not as what the user said.

1. A file that the prompt has is left out: by its real path, or by its text, as copies of one file are common.
2. The others stand in the last user message before what is remembered, each with a row of its own. The
   conversation never holds them, so that each request has them once.
3. Unsaved text counts: the client's own, else that of an open document, else the file on disk.
4. What cannot be read is reported and left out. So is a file of the folder, or of a directory above it in its
   repository, that the prompt must not have either: a link in a repository must not send its user's secrets.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from nexus_context.errors import Span
from nexus_context.files import PROMPT_LIMIT, RealFiles, read_text, real_path
from nexus_context.layers.reading import forbidden_link
from nexus_context.layers.walk import within
from nexus_context.memory.item import BASE, Item
from nexus_context.snapshot import Snapshot
from nexus_daemon import convert, protocol

Status = Literal["sent", "shortened", "in-prompt", "no-room", "unreadable"]


class Attachments(NamedTuple):
    """The items to send, and for each attachment's URI its label and what became of it so far."""

    items: tuple[Item, ...] = ()
    statuses: tuple[tuple[str, str, Status], ...] = ()


NONE = Attachments()


def read_attachments(
    snapshot: Snapshot, attachments: Sequence[protocol.Attachment], overlays: Mapping[str, str]
) -> Attachments:
    """Read what the prompt does not have. Blocks on the disk."""
    if not attachments:
        return NONE
    prompt = snapshot.prompt
    present = {_real_path(fragment.path) for fragment in prompt.fragments if fragment.path is not None}
    items: list[Item] = []
    statuses: list[tuple[str, str, Status]] = []
    for attachment in {attachment.uri: attachment for attachment in attachments}.values():
        path = convert.uri_to_path(attachment.uri)
        label = attachment.uri if path is None else _label(snapshot.folder, path)
        status: Status = "in-prompt"
        if path is None or _real_path(path) not in present:
            text = _text(snapshot, attachment, path, overlays)
            if text is None:
                status = "unreadable"
            elif text.strip() not in prompt.text:  # nor is an empty one worth sending
                status = "sent"
                span = None if path is None else Span(0, len(text))
                items.append(Item("instructions", label, text, BASE["instructions"], path, span))
        if path is not None:
            present.add(_real_path(path))
        statuses.append((attachment.uri, label, status))
    return Attachments(tuple(items), tuple(statuses))


def report_attachments(attachments: Attachments, memory: Mapping[str, Any]) -> list[dict[str, str]]:
    """What became of each attachment, as `metadata.attachments`. `memory` is the report on all items."""
    dropped, shortened = memory.get("dropped", ()), memory.get("shortened", ())
    report = []
    for uri, label, status in attachments.statuses:
        if status == "sent":
            status = "no-room" if label in dropped else "shortened" if label in shortened else "sent"
        report.append({"uri": uri, "label": label, "status": status})
    return report


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
