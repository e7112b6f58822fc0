"""Computes what the changes since a git revision cost in every request of other assistants.

1. At the revision, a file has the content that git stored. A file is new if git did not know it then, and
   knows it or would add it now. Files that git ignores, and those outside of the working tree, are the same
   on both sides.
2. Git is run as in `turn.git`: nothing that the repository configures is run, and so no filter either. If git
   stores a file in another form (Git LFS), this form counts at the revision.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Profile, Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.disk.files import Entry, which
from nexus_context.turn.git import Git, find

_LINK = "120000"
_SUBMODULE = "commit"
_MOST_LINKS = 40


class RevisionError(Exception):
    """A git revision cannot be read. The text says why, and what helps."""


class FileChange(msgspec.Struct, frozen=True):
    """A file whose part in every request has changed. `before` and `after` are its tokens."""

    path: str
    before: int
    after: int


class AssistantChange(msgspec.Struct, frozen=True):
    """What an assistant read at a revision (`before`), and what it reads now (`after`)."""

    before: Profile
    after: Profile

    @property
    def growth(self) -> int:
        """How many tokens more each request has now than at the revision."""
        return self.after.total - self.before.total

    @property
    def files(self) -> tuple[FileChange, ...]:
        """The files whose tokens have changed, the largest change first.

        A file whose sent text is the same is left out, although an estimate of it can differ by one token.
        """
        before, after = _tokens(self.before), _tokens(self.after)
        texts, new_texts = _texts(self.before), _texts(self.after)
        paths = [path for path in {**before, **after} if texts.get(path) != new_texts.get(path)]
        changes = (FileChange(path, before.get(path, 0), after.get(path, 0)) for path in paths)
        return tuple(
            sorted(
                (change for change in changes if change.before != change.after),
                key=lambda change: (-abs(change.after - change.before), change.path),
            )
        )


class RevisionChanges(msgspec.Struct, frozen=True):
    """The changes of each assistant. `top` is the root of the working tree."""

    top: str
    assistants: tuple[AssistantChange, ...]


def compare_with_revision(surroundings: Surroundings, revision: str, names: Sequence[str]) -> RevisionChanges:
    """Compare what assistants read in a folder now with what they read there at a revision. Raise
    RevisionError if it cannot be read.
    """
    now = Disk()
    then = RevisionDisk(now.real(surroundings.folder), revision, surroundings.environ)
    changes = (
        AssistantChange(
            read_profile(name, surroundings, disk=then), read_profile(name, surroundings, disk=now)
        )
        for name in names
    )
    return RevisionChanges(then.top, tuple(changes))


def _tokens(profile: Profile) -> dict[str, int]:
    """The tokens of each file in every request."""
    tokens: dict[str, int] = {}
    for part in profile.parts:
        if part.path is not None:
            tokens[part.path] = tokens.get(part.path, 0) + part.tokens
    return tokens


def _texts(profile: Profile) -> dict[str, list[str]]:
    """What is sent of each file."""
    texts: dict[str, list[str]] = {}
    for part in profile.parts:
        if part.path is not None:
            texts.setdefault(part.path, []).append(part.text)
    return texts


class RevisionDisk(Disk):
    """Reads the disk as if the working tree still had a revision (rule 1)."""

    def __init__(self, folder: str, revision: str, environ: Mapping[str, str]) -> None:
        super().__init__()
        repository = find(folder)
        program = which("git", search=environ.get("PATH", ""))
        if repository is None or program is None:
            reason = "git is not on PATH" if program is None else f"{folder} is not in a git repository"
            raise RevisionError(f"{reason}, so there is no {revision} to compare with.")
        self.top = repository.top
        self._git = Git(program, self.top, environ, lambda: False)
        tree = self._run(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{tree}}"])
        if not tree:
            advice = "Commit something first" if revision == "HEAD" else "Fetch it, or correct the name"
            raise RevisionError(f"{revision!r} is not a revision of {self.top}. {advice}.")
        self._blobs: dict[str, tuple[str, str]] = {}  # path → mode and name of the object
        self._children: dict[str, dict[str, Entry]] = {self.top: {}}
        for line in self._run(["ls-tree", "-r", "-z", "--full-tree", tree.decode().strip()]).split(b"\0"):
            self._add(line)
        file_listing = self._run(
            ["ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard"]
        )
        self._known = {
            os.path.join(self.top, os.fsdecode(name)) for name in file_listing.split(b"\0") if name
        }
        self._known_directories = {
            directory for path in self._known for directory in _directories_above(path, self.top)
        }

    def data(self, path: str) -> bytes | None:
        path = self.real(path)
        if self._is_link(path):  # one of a circle
            return None
        if path not in self._blobs:
            return super().data(path) if self._is_unchanged(path) else None
        if path not in self._data:
            self._data[path] = self._git(["cat-file", "blob", self._blobs[path][1]])
        return self._data[path]

    def is_file(self, path: str) -> bool:
        path = self.real(path)
        if path in self._blobs:
            return not self._is_link(path)
        return self._is_unchanged(path) and super().is_file(path)

    def is_directory(self, path: str) -> bool:
        path = self.real(path)
        return path in self._children or (self._is_unchanged(path) and super().is_directory(path))

    def exists(self, path: str) -> bool:
        return self.is_file(path) or self.is_directory(path)

    def real(self, path: str) -> str:
        path = os.path.normpath(path)
        for _ in range(_MOST_LINKS):
            link = next(
                (
                    candidate
                    for candidate in (path, *_directories_above(path, self.top))
                    if self._is_link(candidate)
                ),
                None,
            )
            if link is None:
                break
            target = os.fsdecode(self._git(["cat-file", "blob", self._blobs[link][1]]) or b"")
            relative_path = os.path.relpath(path, link)
            path = os.path.normpath(os.path.join(os.path.dirname(link), target, relative_path))
        return super().real(path) if self._is_unchanged(path) else path

    def entries(self, path: str) -> list[tuple[str, Entry]]:
        path = self.real(path)
        revision_entries = self._children.get(path, {})
        current_entries = super().entries(path) if path in self._children or self._is_unchanged(path) else []
        new_entries = [
            entry
            for entry in current_entries
            if entry[0] not in revision_entries and self._is_unchanged(os.path.join(path, entry[0]))
        ]
        return [*revision_entries.items(), *new_entries]

    def _run(self, arguments: Sequence[str]) -> bytes:
        return self._git(arguments) or b""

    def _add(self, line: bytes) -> None:
        """Take in a line of `git ls-tree`: mode, kind, object, tab, path."""
        header, _, name = line.partition(b"\t")
        mode, kind, identifier = header.decode().split() if name else ("", _SUBMODULE, "")
        if kind == _SUBMODULE:
            return
        path = os.path.join(self.top, os.fsdecode(name))
        self._blobs[path] = (mode, identifier)
        entry: Entry = "link" if mode == _LINK else "file"
        for directory in _directories_above(path, self.top):
            children = self._children.setdefault(directory, {})
            children[os.path.basename(path)] = entry
            path, entry = directory, "directory"

    def _is_link(self, path: str) -> bool:
        return path in self._blobs and self._blobs[path][0] == _LINK

    def _is_unchanged(self, path: str) -> bool:
        """Whether a path that the revision does not have is the same on both sides."""
        return path not in self._known and path not in self._known_directories and path not in self._blobs


def _directories_above(path: str, root: str) -> Iterator[str]:
    """The directories from a path up to the root, if it is inside."""
    while path.startswith(root.rstrip(os.sep) + os.sep) and path != root:
        path = os.path.dirname(path)
        yield path
