"""The approvals in the user's state directory, and what servers offered, read and written."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from nexus_context.disk import files
from nexus_context.servers.approvals import (
    Approval,
    Approvals,
    approvals_file,
    definitions_file,
    parse_approvals,
)
from nexus_context.servers.definitions import MOST_BYTES, ServerDefinitions
from nexus_context.servers.launch import Launch
from nexus_context.text.decoding import decode_as
from nexus_daemon.process.state_files import locked, write_file


def read_approvals(environ: Mapping[str, str]) -> Approvals:
    """What the user approved. NoStateDirectoryError if there is no place for it."""
    return parse_approvals(files.read_text(approvals_file(environ), limit=files.PROMPT_LIMIT).text)


def approve(environ: Mapping[str, str], launch: Launch, pin: str | None) -> Approvals:
    """Let a launch start; `pin` is what it may offer, None as long as nobody knows. OSError as below."""
    return _change(environ, lambda before: before.with_approval(launch.hash, _approval(launch, pin)))


def keep_pin(environ: Mapping[str, str], launch: Launch, pin: str) -> Approvals:
    """Keep what a server offered when it was first started. OSError if that cannot be written."""

    def change(before: Approvals) -> Approvals:
        approval = before.servers.get(launch.hash)
        if approval is None:
            approval = msgspec.structs.replace(_approval(launch, None), may_start=False)
        return before.with_approval(launch.hash, msgspec.structs.replace(approval, pin=pin))

    return _change(environ, change)


def revoke(environ: Mapping[str, str], launch: Launch) -> Approvals:
    """Let a launch start no more, and forget what it offered. OSError if that cannot be written."""
    return _change(environ, lambda before: before.without(launch.hash))


def read_definitions(environ: Mapping[str, str], launch: Launch) -> ServerDefinitions | None:
    """What the server of a launch offered when its pin was kept; None if that is not known."""
    path = definitions_file(environ, launch.hash)
    text = files.read_text(path, limit=2 * MOST_BYTES).text
    try:
        return None if text is None else decode_as(text.encode(), ServerDefinitions)
    except msgspec.MsgspecError:
        return None


def keep_definitions(environ: Mapping[str, str], launch: Launch, definitions: ServerDefinitions) -> None:
    """Keep what a server offers, to compare with it later. OSError if that cannot be written."""
    write_file(definitions_file(environ, launch.hash), msgspec.json.encode(definitions))


def _approval(launch: Launch, pin: str | None) -> Approval:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Approval(launch.name, launch.text, now, pin=pin)


def _change(environ: Mapping[str, str], change: Callable[[Approvals], Approvals]) -> Approvals:
    """Read, change and write the file, one process at a time."""
    path = approvals_file(environ)
    with locked(f"{path}.lock"):
        changed = change(read_approvals(environ))
        write_file(path, msgspec.json.format(msgspec.json.encode(changed), indent=1) + b"\n")
    return changed
