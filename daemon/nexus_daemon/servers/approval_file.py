"""Read and write the approvals in the user's state directory, and what servers offered."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from errno import EIO
from typing import Any

import msgspec

from nexus_context.disk import files
from nexus_context.servers.approvals import (
    Approval,
    Approvals,
    approvals_file,
    definitions_file,
    parse_approvals,
)
from nexus_context.servers.changes import ReviewedDefinitions, review
from nexus_context.servers.definitions import MOST_BYTES, DefinitionsError, ServerDefinitions
from nexus_context.servers.launch import Launch
from nexus_context.text.decoding import decode_as
from nexus_daemon.process.state_files import locked, write_file

LARGEST = 16 << 20  # bytes of the file of approvals
_NOTHING = msgspec.json.format(msgspec.json.encode(Approvals()), indent=1).decode()
MOST_KEPT = 200  # files whose contents are remembered

_contents: dict[str, tuple[tuple[int, ...], Any]] = {}  # by path, with the stamp of the file


def read_approvals(environ: Mapping[str, str]) -> Approvals:
    """Read the user's approvals. NoStateDirectoryError if there is no state directory."""
    approvals: Approvals = _read(approvals_file(environ), parse_approvals)
    return approvals


def approve(environ: Mapping[str, str], launch: Launch, pin: str | None) -> Approvals:
    """Allow a launch to start. `pin` identifies the approved definitions; None keeps the pin that is stored.

    OSError if the approval cannot be written.
    """

    def change(approvals: Approvals) -> Approvals:
        approved_pin = pin if pin is not None else approvals.pin_of(launch.hash)
        return approvals.with_approval(launch.hash, _approval(launch, approved_pin))

    return _change(environ, change)


def keep_first(environ: Mapping[str, str], launch: Launch, offered: ReviewedDefinitions) -> None:
    """Store what a server offered when it was first started, unless that is stored.

    OSError if it cannot be written.
    """

    def change(approvals: Approvals) -> Approvals:
        approval = approvals.servers.get(launch.hash)
        if approval is not None and approval.pin is not None:
            return approvals
        keep_definitions(environ, launch, offered.definitions)
        if approval is None:
            approval = msgspec.structs.replace(_approval(launch, None), may_start=False)
        return approvals.with_approval(launch.hash, msgspec.structs.replace(approval, pin=offered.pin))

    _change(environ, change)


def revoke(environ: Mapping[str, str], launch: Launch) -> Approvals:
    """Withdraw the approval of a launch, and delete what its server offered.

    OSError if that cannot be written.
    """
    with suppress(FileNotFoundError):
        os.unlink(definitions_file(environ, launch.hash))
    return _change(environ, lambda approvals: approvals.without(launch.hash))


def read_definitions(environ: Mapping[str, str], launch_hash: str) -> ReviewedDefinitions | None:
    """Read the definitions that the server of a launch offered when they were stored.

    None if there are none.
    """
    definitions: ReviewedDefinitions | None = _read(
        definitions_file(environ, launch_hash), _parse_definitions
    )
    return definitions


def _parse_definitions(text: str | None) -> ReviewedDefinitions | None:
    try:
        return None if text is None else review(decode_as(text.encode(), ServerDefinitions))
    except (msgspec.MsgspecError, DefinitionsError):
        return None


def _read(path: str, parse: Callable[[str | None], Any]) -> Any:
    """Read and parse a file. An unchanged file is not parsed again."""
    stamp = files.file_stamp(path)
    if stamp is None:
        return parse(None)
    cached = _contents.get(path)
    if cached is not None and cached[0] == stamp:
        return cached[1]
    value = parse(files.read_text(path, limit=2 * MOST_BYTES).text)
    if len(_contents) >= MOST_KEPT:
        _contents.clear()
    _contents[path] = stamp, value
    return value


def keep_definitions(environ: Mapping[str, str], launch: Launch, definitions: ServerDefinitions) -> None:
    """Store what a server offers, to compare with it later. OSError if it cannot be written."""
    write_file(definitions_file(environ, launch.hash), msgspec.json.encode(definitions))


def _approval(launch: Launch, pin: str | None) -> Approval:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Approval(launch.name, launch.text, now, pin=pin)


def _change(environ: Mapping[str, str], change: Callable[[Approvals], Approvals]) -> Approvals:
    """Read, change and write the file, one process at a time."""
    path = approvals_file(environ)
    with locked(f"{path}.lock"):
        text = files.read_text(path, limit=LARGEST).text
        approvals = parse_approvals(text)
        if text is None and files.exists(path):
            raise OSError(EIO, f"{path} cannot be read")
        if text is not None and not approvals.servers and text.strip() not in ("", _NOTHING):
            os.replace(path, f"{path}.broken")  # what the user approved may still be read there
        changed = change(approvals)
        if changed is not approvals:
            write_file(path, msgspec.json.format(msgspec.json.encode(changed), indent=1) + b"\n")
    return changed
