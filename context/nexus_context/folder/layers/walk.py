"""Decides which directories are layers of a folder, and which are not, and why.

1. Ancestors are the directories above the folder as its path is written, up to the depth.
2. The walk ends at the home directory, which is not an ancestor itself: directories that contain it belong to
   the system. It also ends at the root, and at a directory that another user could have written to.
3. One real directory is one layer. A `.nexus3` that is the global directory counts as global only; the
   directory's own files still count.
4. Opening a folder means trusting it, but not a `.nexus3` in it that other users could have written. One that
   cannot be entered, or leads out of its directory, is always reported; one of another user only in the
   opened folder, since anybody can create one above it.
5. In a directory that is writable for everyone and sticky (/tmp), each file is examined; in an ancestor,
   always.
6. Ancestors that share a name are told apart by the names above them: `ancestor:x`, `ancestor:a/x`.
7. The ancestors of a directory in an opened folder are the directories between the two, and the folder's own
   ancestors. The former are trusted like the folder if they belong to its owner, and their files may name
   anything in the folder.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Callable, Mapping

import msgspec

from nexus_context.disk.files import exists, is_dir, is_link, real_path
from nexus_context.disk.ownership import (
    DirectoryFault,
    directory_fault,
    foreign,
    owned_alike,
    shared_directory,
    trusted_directory,
)
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.layer_types import ANCESTOR_PREFIX, DEFAULTS, GLOBAL, LOCAL, Skipped

CONFIG_DIRECTORY = ".nexus3"
GIT = ".git"
ASSISTANT_DIRECTORIES = (CONFIG_DIRECTORY, ".claude", ".agents", ".github", ".cursor")
"""Hidden directories that a workspace may import files from."""

RealPath = Callable[[str], str]
"""Resolves the symbolic links of a path; the answers are cached for one load."""


PLAIN = os.name == "posix"  # only a symbolic link can lead elsewhere
LONG = 400  # characters: every directory of a path is a nested call


class RealPaths(dict[str, str]):
    """Maps each path to its resolved path (`files.real_path`), which is worked out on first use.

    ValueError if no file can have the path.
    """

    def __missing__(self, path: str) -> str:
        parent, name = os.path.split(path)
        real = None
        if PLAIN and name not in ("", ".", "..") and len(path) < LONG and "\0" not in name:
            joined = os.path.join(self[parent], name)
            real = None if is_link(joined) else joined
        self[path] = real = real_path(path) if real is None else real
        return real


class LayerPlace(msgspec.Struct, frozen=True):
    """A directory that may be a layer.

    `config_directory` is None if its `.nexus3` must not be read. If `strict`, each file must belong to this
    user or root. If `optional`, it is a layer only if it has an instruction file. `opened` is the opened
    folder that is or contains the directory, or None if there is none. `repository` is true for an ancestor
    with a `.git`.
    """

    name: str
    directory: str
    config_directory: str | None
    strict: bool = False
    optional: bool = False
    opened: str | None = None
    repository: bool = False

    @property
    def in_workspace(self) -> bool:
        """Whether the place comes with a workspace, not with the user or the installation."""
        return self.name not in (DEFAULTS, GLOBAL)

    @property
    def tree(self) -> str:
        """The directory that must contain everything that the place's files name."""
        return self.opened or self.directory


def needs_examination(path: str, *, strict: bool) -> bool:
    """Whether a file that a workspace's layer names must belong to this user or root.

    `strict` is true if the layer's own files must. Opening a folder means trusting it, but not a shared
    directory in it.
    """
    return strict or shared_directory(os.path.dirname(path))


def global_directory(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the global layer's directory.

    It is NEXUS_HOME, else `.nexus3` in the user's home directory. A relative NEXUS_HOME is relative to the
    user's home directory, as is one that starts with `~/`: the process's working directory never matters.
    """
    home = user_home(environ)
    directory = environ.get("NEXUS_HOME") or CONFIG_DIRECTORY
    directory = "." if directory == "~" else directory.removeprefix("~/")
    return os.path.normpath(os.path.join(home, directory))


def user_home(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the user's home directory.

    It comes from the environment, or else from the user database.
    """
    directory = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return directory if os.path.isabs(directory) else os.path.abspath(os.path.expanduser("~"))


class Walk:
    """Walks up from a directory: first within the opened folder, then above it.

    What is not read is in `skipped`, and in `problems` if the user should fix it. `stop` is the directory at
    which the walk ended before the requested depth.
    """

    def __init__(
        self, *, home: str, user_home: str, overlays: Mapping[str, str], real_path: RealPath
    ) -> None:
        self.skipped: list[Skipped] = []
        self.problems: list[Problem] = []
        self.stop: Skipped | None = None
        self._home = home
        self._user_home = user_home
        self._overlays = overlays
        self._real_path = real_path
        self._seen = {real_path(home): "the global layer"}
        self._names: set[str] = set()

    def opened(self, folder: str, root: str) -> list[LayerPlace]:
        """Return the places of a directory and of those above it up to the opened folder, farthest first.

        `root` is the path of the opened folder, with which the path of the directory begins.
        """
        places = []
        current, name = folder, LOCAL
        while True:
            if self._is_new(current, "the folder itself" if current == folder else f"the ancestor {current}"):
                places.append(self._opened(name or self._name(current), current, root))
            if current in (root, os.path.dirname(current)):
                return places[::-1]
            current, name = os.path.dirname(current), ""

    def above(self, root: str, depth: int) -> list[LayerPlace]:
        """Return the places of up to `depth` directories above the opened folder, farthest first."""
        places: list[LayerPlace] = []
        current = root
        for _ in range(depth):
            parent = os.path.dirname(current)
            if parent == current:  # the folder is the root of the file system
                break
            reason = _stop(current, parent, self._user_home, self._real_path)
            if reason is not None:
                self.stop = Skipped(parent, reason)
                self.skipped.append(self.stop)
                break
            current = parent
            if self._is_new(parent, f"the ancestor {parent}"):
                config = self._config_directory(parent, examine=True, opened=False)
                optional = not self._has(parent, config)
                repository = exists(os.path.join(parent, GIT))
                name = self._name(parent)
                places.append(
                    LayerPlace(name, parent, config, strict=True, optional=optional, repository=repository)
                )
        return places[::-1]

    def up_to_repository(self, root: str, max_above: int) -> list[str]:
        """Return the opened folder and the directories above it, up to the first with a `.git`.

        At most `max_above` are above the folder. The search ends below the home directory: a repository there
        (dotfiles) is not the folder's.
        """
        directories: list[str] = []
        home, current = self._real_path(self._user_home), root
        while len(directories) <= max_above and not within(home, self._real_path(current)):
            directories.append(current)
            if exists(os.path.join(current, GIT)) or current == os.path.dirname(current):
                break
            current = os.path.dirname(current)
        return directories

    def user_directory(self) -> str | None:
        """Return the global directory. None if it exists and cannot be entered."""
        fault = directory_fault(self._home) if exists(self._home) else None
        if fault is not None:
            self._leave_out(self._home, fault)
        return None if fault is not None else self._home

    def _is_new(self, directory: str, called: str) -> bool:
        real = self._real_path(directory)
        name_before = self._seen.setdefault(real, called)
        if name_before != called:
            self.skipped.append(Skipped(directory, f"is read already: it is {name_before}"))
        return name_before == called

    def _opened(self, name: str, directory: str, root: str) -> LayerPlace:
        trusted = trusted_directory(directory) is None
        strict = trusted and shared_directory(directory)
        if not trusted and directory != root and not owned_alike(directory, root):  # others may write there
            trusted = strict = True
        config = self._config_directory(directory, examine=trusted, opened=True)
        optional = name != LOCAL and not self._has(directory, config)
        return LayerPlace(name, directory, config, strict=strict, optional=optional, opened=root)

    def root_of(self, opened: list[LayerPlace], root: str) -> LayerPlace | None:
        """Return the place of the opened folder, whose path may differ from `root` by a link.

        None if there is none.
        """
        real = self._real_path(root)
        return next((place for place in opened if self._real_path(place.directory) == real), None)

    def _name(self, directory: str) -> str:
        """The directory's name, with as many of the names above it as make it unique."""
        parent, name = os.path.split(directory)
        while ANCESTOR_PREFIX + name in self._names:
            parent, outer_name = os.path.split(parent)
            name = f"{outer_name}/{name}" if outer_name else directory
        self._names.add(ANCESTOR_PREFIX + name)
        return ANCESTOR_PREFIX + name

    def _config_directory(self, directory: str, *, examine: bool, opened: bool) -> str | None:
        """The `.nexus3` directory if it may be read; a missing one may."""
        path = os.path.join(directory, CONFIG_DIRECTORY)
        if not exists(path):
            return path
        if self._real_path(path) == self._real_path(self._home):
            self.skipped.append(Skipped(path, "is read already: it is the global layer"))
            return None
        reason = foreign(path) if examine else None
        if reason is None:
            fault = directory_fault(path) or self._leads_out(path, directory)
            if fault is not None:
                self._leave_out(path, fault)
                return None
        if reason is None and examine:
            reason = trusted_directory(path)
        if reason is None:
            return path
        if opened:
            self._leave_out(path, DirectoryFault("layer.refused", reason, _TAKE_OVER))
        else:
            self.skipped.append(Skipped(path, reason))
        return None

    def _leads_out(self, path: str, directory: str) -> DirectoryFault | None:
        if within(self._real_path(path), self._real_path(directory)):
            return None
        reason = "is a symbolic link that leads out of its directory"
        return DirectoryFault("layer.refused", reason, "Replace it by a directory or remove it.")

    def _leave_out(self, path: str, fault: DirectoryFault) -> None:
        severity = Severity.WARNING if fault.code == "layer.refused" else Severity.ERROR
        message = f"Nothing in here is read: it {fault.reason}. {fault.advice}"
        self.skipped.append(Skipped(path, fault.reason))
        self.problems.append(Problem(path, Span(0, 0), fault.code, severity, message=message))

    def _has(self, directory: str, config: str | None) -> bool:
        """Whether a readable `.nexus3` exists on the disk or in an editor."""
        prefix = os.path.join(directory, CONFIG_DIRECTORY, "")
        return config is not None and (
            is_dir(config) or any(overlay_path.startswith(prefix) for overlay_path in self._overlays)
        )


_TAKE_OVER = "Make it your own and let nobody else write to it (chown, chmod go-w), or remove it."


def within(real: str, real_root: str) -> bool:
    """Whether a real path is `real_root` or lies under it. Whole names are compared."""
    real, real_root = os.path.normcase(real), os.path.normcase(real_root)
    return real == real_root or real.startswith(real_root.rstrip(os.sep) + os.sep)


def _stop(current: str, parent: str, user_home: str, real_path: RealPath) -> str | None:
    """Why the walk ends below `parent`, or None."""
    if os.path.dirname(parent) == parent:
        return "is the root of the file system"
    home = real_path(user_home)
    if home == real_path(parent):
        return "is the home directory"
    if within(home, real_path(parent)) or within(home, real_path(current)):
        return "is above the home directory"
    return trusted_directory(parent)
