"""The git repository of a folder, and what a few of its files tell. No process is started.

1. The repository is that of the nearest directory, from the folder upwards, that has `.git`: a directory, or
   a file that names one (worktrees, submodules). Above the folder neither may be another user's: `/tmp/.git`
   is easily planted.
2. Only HEAD is read, and the existence of certain names checked. The content of HEAD counts only if git could
   have written it, and if it lies in git's directory, so that a foreign repository cannot leak other text.
"""

# paths are text here, as in `layers`

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assembly.git.state import GitState
from nexus_context.files import RealFiles, exists, is_dir, read_text, real_path
from nexus_context.layers.walk import within
from nexus_context.ownership import trusted_directory, trusted_file, trusted_read

SHORT = 10  # characters of a commit's name
LIMIT = 4096  # bytes of HEAD and of a `.git` file

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_REF = re.compile(r"ref:[ \t]*(refs/[^\x00-\x20\x7f~^:?*\[\\]{1,250})\Z")
_BRANCHES = "refs/heads/"
_PLACEHOLDER = "refs/heads/.invalid"  # HEAD of a repository that keeps its refs in one file (reftable)
_OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)


class Repository(NamedTuple):
    """`top` is the directory with `.git`, `directory` the one with git's own files; both absolute.

    `strict`: it is above the folder, and its files must belong to this user or root.
    """

    top: str
    directory: str
    strict: bool = False


def find(folder: str) -> Repository | None:
    """The repository that contains an absolute path; None if there is none that may be read."""
    try:
        start = real_path(folder)
    except ValueError:
        return None
    for top in _upwards(start):
        dot = os.path.join(top, ".git")
        if not exists(dot):
            continue
        if top != start and (trusted_directory(top) or trusted_file(dot)):
            return None
        directory = _directory(top, dot)
        return None if directory is None else Repository(top, directory, strict=top != start)
    return None


def read(repository: Repository) -> GitState:
    """Branch or commit, and the operation in progress; an empty state if HEAD is not usable."""
    operation = next(
        (
            name_of_operation
            for name, name_of_operation in _OPERATIONS
            if exists(os.path.join(repository.directory, name))
        ),
        None,
    )
    head = _head(repository)
    if _COMMIT.match(head):
        return GitState(commit=head[:SHORT], operation=operation)
    ref = _REF.match(head)
    if ref is None or ref[1] == _PLACEHOLDER:
        return GitState(operation=operation)
    name = ref[1].removeprefix(_BRANCHES)
    return GitState(branch=name, operation=operation)


def _head(repository: Repository) -> str:
    """The content of HEAD; empty if it is not one of git's own files."""
    path = os.path.join(repository.directory, "HEAD")
    real = real_path(path)
    if not within(real, real_path(repository.directory)):
        return ""
    read = RealFiles().read(path, real, limit=LIMIT)
    if repository.strict and trusted_read(read):
        return ""
    return (read.text or "").rstrip("\r\n")


def _upwards(directory: str) -> Iterator[str]:
    while True:
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above


def _directory(top: str, dot: str) -> str | None:
    if is_dir(dot):
        return dot
    content = (read_text(dot, limit=LIMIT).text or "").rstrip("\r\n")
    if not content.startswith("gitdir:") or "\0" in content:
        return None
    named = os.path.normpath(os.path.join(top, content.removeprefix("gitdir:").strip()))
    return named if is_dir(named) else None
