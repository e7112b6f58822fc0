"""Keeps what the user approved: which servers may start, and what they offered then.

1. An approval is bound to the hash of a launch, and counts for that launch in every folder. Another argument,
   directory, value or program is another launch.
2. It keeps the pin of what the server offered when it was approved, or when it was first started after that.
   A server that offers something else may not be called until the user has approved the change.
3. A server of the user's own file needs no approval to start. Its pin is kept all the same.
4. What is stored is for people to read: names, the command with its secrets covered, the time.
5. Two launches are of the same program if their commands differ only in absolute paths that follow a package,
   a script's name or another word. That is good enough to estimate a cost, and for nothing else.
"""

import os
import shlex
from collections.abc import Mapping

import msgspec

from nexus_context.disk.user_state import state_directory
from nexus_context.text.decoding import decode_as

NAME = os.path.join("trust", "servers.json")
DEFINITIONS = os.path.join("trust", "definitions")
"""The directory of what servers offered, a file for each launch."""


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """One approved launch.

    `command` is the text that a person was shown; `approved` is the time, UTC, ISO 8601. `may_start` is False
    if only the pin is kept, for a server of the user's own file.
    """

    name: str
    command: str
    approved: str
    may_start: bool = True
    pin: str | None = None


class Approvals(msgspec.Struct, frozen=True):
    """The contents of the approvals file. `servers` maps the hash of a launch to its approval."""

    servers: dict[str, Approval] = {}

    def allows(self, launch_hash: str) -> bool:
        """Whether the user has approved this launch."""
        approval = self.servers.get(launch_hash)
        return approval is not None and approval.may_start

    def pin_of(self, launch_hash: str) -> str | None:
        """Return the pin of what the server may offer. None if nothing is known yet."""
        approval = self.servers.get(launch_hash)
        return None if approval is None else approval.pin

    def launch_of_program(self, command: str) -> str | None:
        """Return the hash of the newest launch of the same program that has a pin (rule 5), or None."""
        program = _program(command)
        hashes = (
            (approval.approved, key)
            for key, approval in self.servers.items()
            if approval.pin is not None and _program(approval.command) == program
        )
        return max(hashes, default=(None, None))[1]

    def with_approval(self, launch_hash: str, approval: Approval) -> "Approvals":
        return Approvals({**self.servers, launch_hash: approval})

    def without(self, launch_hash: str) -> "Approvals":
        return Approvals({key: approved for key, approved in self.servers.items() if key != launch_hash})


def approvals_file(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the approvals file. NoStateDirectoryError if nothing says where it is."""
    return os.path.join(state_directory(environ), NAME)


def definitions_file(environ: Mapping[str, str], launch_hash: str) -> str:
    """Return the absolute path of the file with what the server of a launch offered.

    NoStateDirectoryError if nothing says where it is.
    """
    return os.path.join(state_directory(environ), DEFINITIONS, f"{launch_hash}.json")


def _program(command: str) -> tuple[str, ...]:
    """The words of a command that tell what it runs, whatever the folder is."""
    try:
        program, *words = shlex.split(command)
    except ValueError:  # no word, or a quote that does not end
        return (command,)
    named = [word for word in words if not word.startswith("/")]
    says_program = any(not word.startswith("-") for word in named)
    return (program, *(named if says_program else words))


def parse_approvals(text: str | None) -> Approvals:
    """Parse the text of the approvals file.

    A damaged or missing file has no approvals, so every server asks again.
    """
    try:
        return decode_as((text or "").encode("utf-8", "replace"), Approvals)
    except msgspec.MsgspecError:
        return Approvals()
