"""What git itself tells of a working tree. It starts a process, so only for folders that the user trusts.

1. Nothing that a repository's own configuration names is run: no file-system monitor, no hooks, no filters,
   no transports, no status of submodules. Filters are listed first, and each is switched off by name; if that
   is impossible, git is not run further.
2. Git must name the repository that was found by reading files. If it names another (another working tree in
   its settings, a bare repository in a directory), git is not run further.
3. Nothing is written: no lock is taken, the index stays as it is.
4. The variables `GIT_*` of the environment do not count; git is found on PATH, by an absolute path.
5. Only what lies beneath the folder is included. What git does not answer in time is unknown.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from nexus_context.assembly.git.folder import SHORT, Repository, find, read
from nexus_context.assembly.git.state import MOST_FILES, Changes, GitState, visible_name
from nexus_context.files import real_path, which

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


class _LateError(Exception):
    """Git did not answer in time."""


def look(
    folder: str,
    *,
    environ: Mapping[str, str],
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
) -> GitState | None:
    """The state of the working tree that contains an absolute path; None if there is none. Blocks.

    Only for folders that the user trusts. `environ` is git's environment. What git does not answer within
    `timeout_s`, or before `stopped` returns true, is left out.
    """
    repository = find(folder)
    if repository is None:
        return None
    head_state = read(repository)
    program = which("git", search=environ.get("PATH", ""))
    if program is None:
        return head_state
    until = time.monotonic() + timeout_s
    run = _Git(program, folder, environ, lambda: stopped() or time.monotonic() > until)
    try:
        output = _status(run, repository)
    except _LateError:
        return msgspec.structs.replace(head_state, slow=True)
    return head_state if output is None else _parsed(output, head_state, _prefix(repository, folder))


def _status(run: "_Git", repository: Repository) -> bytes | None:
    if not _is_meant(repository, run(_WHICH)):
        return None
    settings = _filters_off(run(_FILTERS))
    return None if settings is None else run(_STATUS, settings)


def _is_meant(repository: Repository, output: bytes | None) -> bool:
    """Whether git names this repository and its working tree."""
    paths = [] if output is None else os.fsdecode(output).removesuffix("\n").split("\n")
    meant = [real_path(os.path.normpath(path)) for path in paths]
    return meant == [real_path(path) for path in (repository.top, repository.directory)]


class _Git:
    """Runs git in a folder. Returns its output, or None if it failed; raises _LateError if it took
    too long.
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
                        raise _LateError from None
                else:
                    failed = process.returncode not in (0, 1) or (process.returncode == 1 and output)
                    return None if failed else output


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
    """The folder's path from the top of the working tree, as git writes it: with `/`, and one at its end."""
    below = os.path.relpath(real_path(folder), repository.top)
    return "" if below == os.curdir else below.replace(os.sep, "/") + "/"


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


_FIELDS = {b"1": 8, b"u": 10, b"?": 1}  # blanks before the path


def _changes(entries: Sequence[bytes], prefix: str) -> Changes:
    staged = unstaged = untracked = conflicts = 0
    first: dict[bytes, list[bytes]] = {kind: [] for kind in (b"u", b"1", b"?")}
    for entry in entries:
        kind = entry[:1]
        if kind not in first:
            continue
        if kind == b"u":
            conflicts += 1
        elif kind == b"?":
            untracked += 1
        else:
            staged += entry[2:3] != b"."
            unstaged += entry[3:4] != b"."
        if len(first[kind]) < MOST_FILES:
            first[kind].append(entry)
    total = sum(1 for entry in entries if entry[:1] in first)
    shown_first = [*first[b"u"], *first[b"1"], *first[b"?"]][:MOST_FILES]
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
