"""Reads the state of a git working tree, for the last user message, never for the system prompt.

`read` reads files only and starts no process. It finds branch and operation:

1. The repository is that of the nearest directory, from the folder upwards, that has `.git`: a directory, or
   a file that names one (worktrees, submodules). Above the folder, neither the directory nor `.git` may
   belong to another user, because `/tmp/.git` is easily planted.
2. Only HEAD is read, and the existence of certain names is checked. The content of HEAD counts only if git
   could have written it and if it lies in git's directory, so that a foreign repository cannot leak other
   text.

`look` asks git for the rest. It starts a process, so call it only for folders that the user trusts:

3. Nothing that a repository's own configuration names is run: no file-system monitor, no hooks, no filters,
   no transports, no status of submodules. Filters are listed first, and each is switched off by name; if that
   is impossible, git is not run further.
4. Git must name the repository that was found by reading files. If it names another (another working tree in
   its settings, a bare repository in a directory), git is not run further.
5. Nothing is written: no lock is taken, the index stays as it is.
6. The variables `GIT_*` of the environment do not count; git is found on PATH, by an absolute path.
7. Only what lies beneath the folder is included. What git does not answer in time stays unknown.

The model sees at most MOST_LINES lines (`lines`):

8. First the branch, its upstream and the operation in progress; then the numbers of changed files; then the
   first of them in git's short status: conflicts, then tracked files, then untracked ones.
9. Other people choose the names, so an unprintable character becomes U+FFFD, and a name is cut to MAX_NAME
   characters.
"""

# paths are text here, as in `layers`

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nexus_context.disk.files import RealFiles, exists, is_dir, read_text, real_path, which
from nexus_context.disk.ownership import trusted_directory, trusted_file, trusted_read
from nexus_context.folder.layers.walk import within
from nexus_context.folder.prompt import texts

MOST_LINES = 20
MOST_FILES = MOST_LINES - 3  # besides the branch, the numbers and the number of further files
MAX_NAME = 160  # characters of a file's or a branch's name
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

POLL_S = 0.05

_OFF = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.sshCommand=false",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)

_STATUS = (
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--no-renames",
    "--untracked-files=normal",
    "--ignore-submodules=dirty",
    "--",
    ".",
)

_WHICH = ("rev-parse", "--show-toplevel", "--absolute-git-dir")
_FILTERS = ("config", "--null", "--name-only", "--get-regexp", r"^filter\.")

_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}

_FIELDS = {b"1": 8, b"u": 10, b"?": 1}  # blanks before the path


class Changes(msgspec.Struct, frozen=True):
    """The numbers of changed files, and the first of these files as lines such as ` M src/a.py`.

    A staged file that was changed again counts in `staged` and in `unstaged`, but only once in `total`.
    """

    total: int = 0
    staged: int = 0
    unstaged: int = 0
    untracked: int = 0
    conflicts: int = 0
    files: tuple[str, ...] = ()


class GitState(msgspec.Struct, frozen=True):
    """The state of a working tree, as far as it is known.

    `branch` is None if no branch is checked out; then `commit` is the beginning of the commit's name.
    `unborn` is true if the branch has no commit yet. `ahead` and `behind` are None if there is no upstream to
    compare with. `operation` is rebase, merge, cherry-pick, revert or bisect. `changes` is None if the
    changes are unknown. `slow` is true if git did not answer in time.
    """

    branch: str | None = None
    commit: str | None = None
    unborn: bool = False
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None
    operation: str | None = None
    changes: Changes | None = None
    slow: bool = False


class Repository(NamedTuple):
    """The place of a repository. `top` is the directory with `.git`, and `directory` the one with git's own
    files; both are absolute.

    `strict` is true if `top` is above the folder. Then its files must belong to this user or root.
    """

    top: str
    directory: str
    strict: bool = False


def find(folder: str) -> Repository | None:
    """Return the repository that contains an absolute path. Return None if there is none, or if it may not be
    read.
    """
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
    """Return the branch or commit and the operation in progress, without starting git. Branch and commit are
    None if HEAD is unusable.
    """
    operation = next(
        (
            name_of_operation
            for name, name_of_operation in _OPERATIONS
            if exists(os.path.join(repository.directory, name))
        ),
        None,
    )
    head = _read_head(repository)
    if _COMMIT.match(head):
        return GitState(commit=head[:SHORT], operation=operation)
    ref = _REF.match(head)
    if ref is None or ref[1] == _PLACEHOLDER:
        return GitState(operation=operation)
    name = ref[1].removeprefix(_BRANCHES)
    return GitState(branch=name, operation=operation)


def look(
    folder: str,
    *,
    environ: Mapping[str, str],
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
) -> GitState | None:
    """Return the state of the working tree that contains an absolute path, or None if there is none. This
    runs git and blocks.

    Call it only for folders that the user trusts. `environ` is git's environment. What git does not answer
    within `timeout_s`, or before `stopped` returns true, is left out.
    """
    repository = find(folder)
    if repository is None:
        return None
    head_state = read(repository)
    program = which("git", search=environ.get("PATH", ""))
    if program is None:
        return head_state
    until = time.monotonic() + timeout_s
    run = Git(program, folder, environ, lambda: stopped() or time.monotonic() > until)
    try:
        output = _status(run, repository)
    except LateError:
        return msgspec.structs.replace(head_state, slow=True)
    return head_state if output is None else _parsed(output, head_state, _prefix(repository, folder))


def lines(state: GitState) -> list[str]:
    """Return the lines that a model sees. The list is empty if nothing is known."""
    templates = texts.table("event_git")
    changes = state.changes
    state_lines = [", ".join(_head(state, templates))] if state.branch or state.commit else []
    if changes is None:
        return [*state_lines, templates["slow"]] if state.slow else state_lines
    if not changes.total:
        return [*state_lines, templates["clean"]]
    counted = ((name, getattr(changes, name)) for name in ("staged", "unstaged", "untracked", "conflicts"))
    counts = ", ".join(templates[name].format(count=f"{count:,}") for name, count in counted if count)
    state_lines.append(templates["changed"].format(counts=counts))
    state_lines.extend(changes.files[:MOST_FILES])
    more = changes.total - len(changes.files[:MOST_FILES])
    return [*state_lines, templates["more"].format(count=f"{more:,}")] if more else state_lines


class LateError(Exception):
    """Git did not answer in time."""


class Git:
    """Runs git in a folder. A call returns git's output, or None if git failed, and raises LateError if
    `late` returns true first.
    """

    def __init__(
        self, program: str, folder: str, environ: Mapping[str, str], late: Callable[[], bool]
    ) -> None:
        self._program = program
        self._folder = folder
        variables = {name: value for name, value in environ.items() if not name.upper().startswith("GIT_")}
        self._environ = {**variables, **_ENVIRONMENT}
        self._late = late

    def __call__(self, arguments: Sequence[str], settings: Sequence[str] = ()) -> bytes | None:
        import subprocess  # not at import: most turns start no process

        options = [word for setting in (*_OFF, *settings) for word in ("-c", setting)]
        try:
            process = subprocess.Popen(
                [self._program, "--no-optional-locks", *options, *arguments],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError):
            return None
        with process:
            while True:
                try:
                    output, _ = process.communicate(timeout=POLL_S)
                except subprocess.TimeoutExpired:
                    if self._late():
                        process.kill()
                        raise LateError from None
                else:
                    failed = process.returncode not in (0, 1) or (process.returncode == 1 and output)
                    return None if failed else output


def visible_name(name: str) -> str:
    """Return a name as it is shown by rule 9: without unprintable characters, and not too long."""
    plain = (
        name
        if name.isprintable()
        else "".join(character if character.isprintable() else "\ufffd" for character in name)
    )
    return plain if len(plain) <= MAX_NAME else f"{plain[: MAX_NAME - 1]}…"


def _head(state: GitState, templates: dict[str, str]) -> Iterator[str]:
    if state.branch is None:
        yield templates["detached"].format(commit=state.commit)
    else:
        yield templates["unborn" if state.unborn else "branch"].format(branch=visible_name(state.branch))
    if state.upstream is not None:
        apart = [
            templates[name].format(count=f"{count:,}")
            for name, count in (("ahead", state.ahead), ("behind", state.behind))
            if count
        ]
        is_counted = state.ahead is not None and state.behind is not None
        how = ", ".join(apart) or (templates["even"] if is_counted else "")
        yield templates["upstream"].format(upstream=visible_name(state.upstream)) + (
            f" ({how})" if how else ""
        )
    if state.operation is not None:
        yield templates["operation"].format(operation=state.operation)


def _read_head(repository: Repository) -> str:
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
        parent = os.path.dirname(directory)
        if parent == directory:
            return
        directory = parent


def _directory(top: str, dot: str) -> str | None:
    if is_dir(dot):
        return dot
    content = (read_text(dot, limit=LIMIT).text or "").rstrip("\r\n")
    if not content.startswith("gitdir:") or "\0" in content:
        return None
    named = os.path.normpath(os.path.join(top, content.removeprefix("gitdir:").strip()))
    return named if is_dir(named) else None


def _status(run: "Git", repository: Repository) -> bytes | None:
    if not _is_meant(repository, run(_WHICH)):
        return None
    settings = _filters_off(run(_FILTERS))
    return None if settings is None else run(_STATUS, settings)


def _is_meant(repository: Repository, output: bytes | None) -> bool:
    """Whether git names this repository and its working tree."""
    paths = [] if output is None else os.fsdecode(output).removesuffix("\n").split("\n")
    meant = [real_path(os.path.normpath(path)) for path in paths]
    return meant == [real_path(path) for path in (repository.top, repository.directory)]


def _filters_off(names: bytes | None) -> list[str] | None:
    """Settings that switch off every filter; None where one of them has a name that cannot be given."""
    if names is None:
        return None
    filters = {name.rpartition(b".")[0] for name in names.split(b"\0") if name.count(b".") > 1}
    if any(b"=" in name or b"\n" in name for name in filters):
        return None
    off = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    return [f"{os.fsdecode(name)}.{key}={value}" for name in sorted(filters) for key, value in off]


def _prefix(repository: Repository, folder: str) -> str:
    """The folder's path in the working tree as git writes it: with `/` between and at the end."""
    relative_path = os.path.relpath(real_path(folder), repository.top)
    return "" if relative_path == os.curdir else relative_path.replace(os.sep, "/") + "/"


def _parsed(output: bytes, head_state: GitState, prefix: str) -> GitState:
    """The state by `git status --porcelain=v2 --branch -z`."""
    entries = output.split(b"\0")
    headers: dict[str, str] = {}
    for entry in entries:
        if entry.startswith(b"# "):
            name, _, value = entry[2:].decode("utf-8", "replace").partition(" ")
            headers[name] = value
    branch, oid = headers.get("branch.head", head_state.branch), headers.get("branch.oid", "")
    detached = branch == "(detached)"
    apart = headers.get("branch.ab", "").split()
    return msgspec.structs.replace(
        head_state,
        branch=None if detached else branch,
        commit=oid[:SHORT] if detached else None,
        unborn=oid == "(initial)",
        upstream=headers.get("branch.upstream"),
        ahead=int(apart[0]) if len(apart) == 2 else None,
        behind=-int(apart[1]) if len(apart) == 2 else None,
        changes=_changes(entries, prefix),
    )


def _changes(entries: Sequence[bytes], prefix: str) -> Changes:
    staged = unstaged = untracked = conflicts = 0
    first_entries: dict[bytes, list[bytes]] = {kind: [] for kind in (b"u", b"1", b"?")}
    for entry in entries:
        kind = entry[:1]
        if kind not in first_entries:
            continue
        if kind == b"u":
            conflicts += 1
        elif kind == b"?":
            untracked += 1
        else:
            staged += entry[2:3] != b"."
            unstaged += entry[3:4] != b"."
        if len(first_entries[kind]) < MOST_FILES:
            first_entries[kind].append(entry)
    total = sum(1 for entry in entries if entry[:1] in first_entries)
    shown_first = [*first_entries[b"u"], *first_entries[b"1"], *first_entries[b"?"]][:MOST_FILES]
    return Changes(
        total, staged, unstaged, untracked, conflicts=conflicts, files=tuple(_lines(shown_first, prefix))
    )


def _lines(entries: Sequence[bytes], prefix: str) -> Iterator[str]:
    """Entries as lines of git's short status, with paths from the folder."""
    for entry in entries:
        kind = entry[:1]
        path = entry.split(b" ", _FIELDS[kind])[-1].decode("utf-8", "replace")
        code = "??" if kind == b"?" else entry[2:4].decode("ascii", "replace").replace(".", " ")
        yield f"{code} {visible_name(path.removeprefix(prefix))}"
