"""The text of a turn about a git working tree, in at most MOST_LINES lines.

1. First the branch, its upstream and the operation in progress; then the numbers of changed files; then the
   first of them in git's short status: conflicts, then tracked files, then untracked ones.
2. Others choose the names: an unprintable character becomes U+FFFD, and a name has at most MAX_NAME
   characters.
"""

from collections.abc import Iterator

import msgspec

from nexus_context.memory.item import table

MOST_LINES = 20
MOST_FILES = MOST_LINES - 3  # besides the branch, the numbers and the number of further files
MAX_NAME = 160  # characters of a file's or a branch's name


class Changes(msgspec.Struct, frozen=True):
    """Numbers of changed files, and the first of them as lines such as ` M src/a.py`.

    A staged file that was changed again counts in both; `total` counts it once.
    """

    total: int = 0
    staged: int = 0
    unstaged: int = 0
    untracked: int = 0
    conflicts: int = 0
    files: tuple[str, ...] = ()


class GitState(msgspec.Struct, frozen=True):
    """A working tree, as far as it is known.

    `branch` is None if none is checked out: then `commit` is the beginning of the commit's name. `unborn`:
    the branch has no commit. `ahead` and `behind` are None without an upstream to compare with. `operation`
    is rebase, merge, cherry-pick, revert or bisect. `changes` is None if they are unknown; `slow`: git is
    still collecting them.
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


def lines(state: GitState) -> list[str]:
    """The lines that a model sees; empty if nothing is known."""
    templates = table("event_git")
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


def visible_name(name: str) -> str:
    """A name by rule 2."""
    plain = name if name.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in name)
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
