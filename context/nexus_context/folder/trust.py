"""Knows which folders the user trusts. Only for these may programs be started and connections be made.

`nexus trust` keeps them in a file in the user's state directory. A trusted folder covers what is beneath it.
"""

import os
from collections.abc import Collection, Mapping

import msgspec

from nexus_context.disk.user_state import state_directory
from nexus_context.folder.layers.walk import within
from nexus_context.text.decoding import decode_as

NAME = os.path.join(
    "trust", "folders.json"
)  # the directory around it is watched, and the ledger's is never quiet


class TrustedFolders(msgspec.Struct, frozen=True):
    """The contents of the trust file: absolute paths without links, sorted."""

    folders: tuple[str, ...] = ()


def trust_file(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the trust file. NoStateDirectoryError if nothing says where it is."""
    return os.path.join(state_directory(environ), NAME)


def trusted_folders(text: str | None) -> tuple[str, ...]:
    """Return the folders that a text of the trust file lists. A damaged or missing file lists none."""
    try:
        return decode_as((text or "").encode("utf-8", "replace"), TrustedFolders).folders
    except msgspec.MsgspecError:
        return ()


def covers(folders: Collection[str], real: str) -> bool:
    """Whether one of the folders is the path `real`, which has no links, or contains it."""
    return any(within(real, folder) for folder in folders)
