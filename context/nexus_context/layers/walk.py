"""Which directories are layers of a folder, and which are not, and why.

1. Ancestors are the directories above the folder as its path is written, up to the depth.
2. The walk ends at the home directory, which is no ancestor itself: directories that hold it belong to the
   system. It ends at the root, and at a directory that another user could have written to.
3. One real directory is one layer. A `.nexus3` that is the global directory counts as global only; the
   directory's own files still count.
4. The folder itself is trusted by being opened, but a `.nexus3` in it that is less to be trusted is not.
5. In a directory that is writable for everyone and sticky (/tmp) every single file is examined; for an
   ancestor, everywhere.
6. Two ancestors of one name are told apart by the names above them: `ancestor:x`, `ancestor:a/x`.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Callable, Mapping

import msgspec

from nexus_context.files import exists, is_dir, shared_directory, trusted_directory
from nexus_context.layers.model import ANCESTOR_PREFIX, DEFAULTS, GLOBAL, LOCAL, Skipped

CONFIG_DIRECTORY = ".nexus3"

RealPath = Callable[[str], str]
"""A path with its symbolic links resolved; the answers are kept for one load, which asks often."""


class Place(msgspec.Struct, frozen=True):
    """A directory that may be a layer.

    `config_directory` None: its `.nexus3` is not to be read. `strict`: each file must belong to this user or
    root. `optional`: it is a layer only if it has an instruction file.
    """

    name: str
    directory: str
    config_directory: str | None
    strict: bool = False
    optional: bool = False

    @property
    def in_workspace(self) -> bool:
        """Whether the place comes with a workspace, not with the user or the installation."""
        return self.name not in (DEFAULTS, GLOBAL)


def local_place(folder: str, home: str, real_path: RealPath) -> tuple[Place | None, list[Skipped]]:
    """The folder's own place, None where the folder is the global directory."""
    skipped: list[Skipped] = []
    if real_path(folder) == real_path(home):
        return None, [Skipped(folder, "is read already: it is the global layer")]
    config = os.path.join(folder, CONFIG_DIRECTORY)
    trusted = trusted_directory(folder) is None
    usable = _config_directory(config, home, real_path, skipped, examine=trusted)
    return Place(LOCAL, folder, usable, strict=trusted and shared_directory(folder)), skipped


def examined(name: str, directory: str, path: str) -> bool:
    """Whether a file that is read for the layer `name` of `directory` must belong to this user or root."""
    if name == LOCAL:
        # the folder itself is trusted by being opened, a shared directory in it is not
        return shared_directory(os.path.dirname(path)) or (
            shared_directory(directory) and trusted_directory(directory) is None
        )
    return name.startswith(ANCESTOR_PREFIX)


def global_directory(environ: Mapping[str, str]) -> str:
    """The global layer's directory, absolute: NEXUS_HOME, else `.nexus3` in the user's home directory.

    A relative NEXUS_HOME is one of the user's home directory, as is one that starts with `~/`: the process's
    working directory never matters.
    """
    home = user_home(environ)
    given = environ.get("NEXUS_HOME") or CONFIG_DIRECTORY
    given = "." if given == "~" else given.removeprefix("~/")
    return os.path.normpath(os.path.join(home, given))


def user_home(environ: Mapping[str, str]) -> str:
    """The user's home directory, absolute: by the environment, else by the user database."""
    given = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return given if os.path.isabs(given) else os.path.abspath(os.path.expanduser("~"))


def ancestor_places(
    folder: str,
    *,
    depth: int,
    home: str,
    user_home: str,
    overlays: Mapping[str, str],
    real_path: RealPath,
) -> tuple[list[Place], list[Skipped]]:
    """The directories above the folder that may be layers, farthest first; and what is not read."""
    skipped: list[Skipped] = []
    found: list[Place] = []
    seen = {real_path(folder): "the folder itself", real_path(home): "the global layer"}
    current = folder
    for _ in range(depth):
        parent = os.path.dirname(current)
        if parent == current:  # the folder is the root
            break
        reason = _stop(current, parent, user_home, real_path)
        if reason is not None:
            skipped.append(Skipped(parent, reason))
            break
        current = parent
        real = real_path(parent)
        if real in seen:
            skipped.append(Skipped(parent, f"is read already: it is {seen[real]}"))
            continue
        seen[real] = f"the ancestor {parent}"
        name = _name(parent, {place.name for place in found})
        found.append(_ancestor(name, parent, home, overlays, real_path, skipped))
    return found[::-1], skipped


def _name(directory: str, taken: set[str]) -> str:
    """The directory's name, with as many of those above it as it takes to be the only one of its kind."""
    above, shown = os.path.split(directory)
    while ANCESTOR_PREFIX + shown in taken:
        above, more = os.path.split(above)
        if not more:
            return ANCESTOR_PREFIX + directory
        shown = f"{more}/{shown}"
    return ANCESTOR_PREFIX + shown


def _ancestor(
    name: str,
    directory: str,
    home: str,
    overlays: Mapping[str, str],
    real_path: RealPath,
    skipped: list[Skipped],
) -> Place:
    config = os.path.join(directory, CONFIG_DIRECTORY)
    usable = _config_directory(config, home, real_path, skipped, examine=True)
    present = usable is not None and (
        is_dir(config) or any(path.startswith(config + os.sep) for path in overlays)
    )
    return Place(name, directory, usable, strict=True, optional=not present)


def _config_directory(
    path: str, home: str, real_path: RealPath, skipped: list[Skipped], *, examine: bool
) -> str | None:
    """The `.nexus3` directory if it may be read; one that does not exist may."""
    if not exists(path):
        return path
    if real_path(path) == real_path(home):
        skipped.append(Skipped(path, "is read already: it is the global layer"))
        return None
    reason = trusted_directory(path) if examine else None
    if reason is None and not within(real_path(path), real_path(os.path.dirname(path))):
        reason = "is a symbolic link that leads out of its directory"
    if reason is not None:
        skipped.append(Skipped(path, reason))
        return None
    return path


def within(real: str, real_root: str) -> bool:
    """Whether a real path is `real_root` or lies under it, by whole path components."""
    real, real_root = os.path.normcase(real), os.path.normcase(real_root)
    return real == real_root or real.startswith(real_root.rstrip(os.sep) + os.sep)


def _stop(current: str, parent: str, user_home: str, real_path: RealPath) -> str | None:
    """Reason why the walk ends below `parent`, or None."""
    if os.path.dirname(parent) == parent:
        return "is the root of the file system"
    home = real_path(user_home)
    if home == real_path(parent):
        return "is the home directory"
    if within(home, real_path(parent)) or within(home, real_path(current)):
        return "is above the home directory"
    return trusted_directory(parent)
