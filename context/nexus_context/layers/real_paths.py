"""Paths with their symbolic links resolved, each worked out once, from that of the directory above."""

import os

from nexus_context.files import is_link, real_path

PLAIN = os.name == "posix"  # where nothing but a symbolic link can lead elsewhere
LONG = 400  # characters: every directory of a path is a call within a call


class RealPaths(dict[str, str]):
    """What `files.real_path` says of each path; ValueError as there."""

    def __missing__(self, path: str) -> str:
        above, name = os.path.split(path)
        real = None
        if PLAIN and name not in ("", ".", "..") and len(path) < LONG and "\0" not in name:
            there = os.path.join(self[above], name)
            real = None if is_link(there) else there
        self[path] = real = real_path(path) if real is None else real
        return real
