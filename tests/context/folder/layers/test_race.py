"""Others change a folder while it is read: no text from outside gets in, and nothing raises."""

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.disk import files
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.knowledge import KnowledgeIndex, refresh, settings_of
from nexus_context.memory.knowledge.passage_index import Changed, Indexed
from nexus_context.turn import git
from support.fixture import write_file, write_fixture
from support.folders import load_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and FIFOs of POSIX")

FOLDER = "/home/work/app"
MARK = "from-outside"
SKILL = "---\nname: one\ndescription: {}\n---\n"
CONFIG = '{{"context": {{"include_readme": true, "sections": [{{"name": "{}", "file": "section.md"}}]}},\
 "memory": {{"knowledge": {{"paths": ["knowledge"]}}}}}}'
READ = {
    "AGENTS.md": "{}",
    "app/.nexus3/NEXUS.md": "{}\n@../docs/deep/a.md",
    "app/.nexus3/config.json": CONFIG,
    "app/.nexus3/SOUL.md": "{}",
    "app/.nexus3/skills/one/SKILL.md": SKILL,
    "app/docs/deep/a.md": "{}",
    "app/section.md": "{}",
    "app/README.md": "{}",
    "app/knowledge/below/a.md": "{}",
    "app/.git/HEAD": "ref: refs/heads/{}",
}
"""What is read of the folder, and the text, which has a mark."""

CALLS = ("stat", "lstat", "open", "fstat", "read", "readlink", "scandir", "access", "close")
ERRORS = (errno.EACCES, errno.EINVAL, errno.EIO, errno.ELOOP, errno.EMFILE, errno.ENOENT, errno.ESTALE)


class Folder:
    """A folder on the disk, everything that is read of it, and a similar folder outside."""

    def __init__(self, root: Path) -> None:
        self.inside, self.outside = root / "home/work", root / "outside"
        for top, mark in ((self.inside, "inside"), (self.outside, MARK)):
            for name, text in READ.items():
                write_file(top / name, text.format(mark))
        self.fixture = write_fixture("", root)
        self.first, _ = self.load(None)  # what a process loads once is loaded

    def load(self, previous: Snapshot | None) -> tuple[Snapshot, str]:
        """The folder's snapshot, and everything that was read of the folder as one text."""
        index = _Passages()
        with mock.patch.object(files, "SETTLED_NS", -(10**18)):  # what is unchanged is not read again
            snapshot = load_folder(self.fixture, FOLDER, previous=previous)
            settings, _ = settings_of(snapshot.layers, self.fixture.path("/home"))
            refresh(cast("KnowledgeIndex", index), settings)
            repository = git.find(self.fixture.path(FOLDER))
            head = "" if repository is None else str(git.read(repository))
        return snapshot, "\n".join(
            [snapshot.prompt.text, head, *index.texts, *snapshot.layers.texts.values()]
        )


class _Passages:
    """An empty index that keeps what is written to it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def indexed_files(self) -> dict[str, Indexed]:
        return {}

    def write(self, changed: Collection[Changed], _removed: Collection[str]) -> None:
        self.texts += [passage.text for each in changed for passage in each.passages or ()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("race"))


@contextmanager
def before_calls(act: Callable[[int], None], names: Collection[str] = ()) -> Iterator[None]:
    """Do something before each system call, by its number; with `names`, only before calls about
    one of them.
    """
    count, close = 0, os.close

    def called(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        nonlocal count
        if not names or any(name in str(arguments[0]).split("/") for name in names):
            count += 1
            try:
                act(count)
            except OSError:
                if call is close:
                    close(*arguments)  # one that fails has closed all the same
                raise
        return call(*arguments, **options)

    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(mock.patch.object(os, name, partial(called, getattr(os, name))))
        yield


def check(folder: Folder, name: str, kind: str, moments: Collection[int], *, again: bool = False) -> int:
    """Replace a file at these moments, then restore it; returns the number of moments."""
    path = folder.inside / name
    victim = path if kind != "directory above" else path.parent
    beside = folder.inside.parent / "beside"
    STAND_INS[kind](beside, folder.outside / victim.relative_to(folder.inside))
    swapped, last = False, 0

    def swap(moment: int) -> None:
        nonlocal swapped, last
        last = moment
        if moment in moments:
            swapped = not swapped
            _exchange(victim, beside)

    try:
        with before_calls(swap, victim.relative_to(folder.inside).parts[-1:]):
            snapshot, text = folder.load(folder.first if again else None)
        assert MARK not in text
        assert MARK not in str(snapshot.effective.values)
    finally:
        if swapped:
            _exchange(victim, beside)
        shutil.rmtree(beside) if beside.is_dir() and not beside.is_symlink() else beside.unlink()
    return last


STAND_INS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda path, outside: path.symlink_to(outside),
    "directory above": lambda path, outside: path.symlink_to(outside),
    "loop": lambda path, _: path.symlink_to(path),
    "FIFO": lambda path, _: os.mkfifo(path),
    "directory": lambda path, _: path.mkdir(),
}


def _exchange(one: Path, other: Path) -> None:
    spare = other.with_name("spare")
    for path, target in ((one, spare), (other, one), (spare, other)):
        path.rename(target)


CASES = [
    (name, kind)
    for name in READ
    for kind in STAND_INS
    # whoever opens a folder that is a link means what it leads to; git's directory may lie anywhere
    if kind != "directory above" or os.path.dirname(name) not in ("", "app", "app/.git")
]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_swapped_at_any_moment(folder: Folder, name: str, kind: str, again: bool) -> None:
    last = check(folder, name, kind, (), again=again)
    assert last > 2
    for moment in range(1, last + 1):
        check(folder, name, kind, {moment}, again=again)
        check(folder, name, kind, {moment, moment + 1}, again=again)
    check(folder, name, kind, range(1, 1000), again=again)  # at every one of them


@given(st.sampled_from(CASES), st.sets(st.integers(1, 40)), st.booleans())
def test_swapped_to_and_fro(folder: Folder, case: tuple[str, str], moments: set[int], again: bool) -> None:
    check(folder, *case, moments, again=again)


@given(
    st.dictionaries(st.integers(1, 400), st.sampled_from(ERRORS), max_size=8),
    st.sampled_from([1, 1, 1, 2, 7]),
    st.booleans(),
)
def test_any_call_may_fail(folder: Folder, failing: dict[int, int], every: int, again: bool) -> None:
    def fail(number: int) -> None:
        code = failing.get(number) or (errno.EIO if every > 1 and number % every == 0 else None)
        if code is not None:
            raise OSError(code, os.strerror(code))

    with before_calls(fail):
        _, text = folder.load(folder.first if again else None)
    assert MARK not in text


@pytest.mark.parametrize("code", ERRORS)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_always_fails(folder: Folder, call: str, code: int) -> None:
    close = os.close

    def fail(*arguments: Any, **_: Any) -> None:
        if call == "close":
            close(*arguments)  # one that fails has closed all the same
        raise OSError(code, os.strerror(code))

    with mock.patch.object(os, call, fail):
        texts = [folder.load(previous)[1] for previous in (None, folder.first)]
    assert not any(MARK in text for text in texts)


def test_an_earlier_text_counts_only_for_the_file_that_it_is_of(tmp_path: Path) -> None:
    """A README that led out was read to report that; another file is there now, whether reported or not."""
    fixture = write_fixture(
        f"""
        //- {FOLDER}/.nexus3/config.json
        {{"context": {{"include_readme": true}}}}
        //- {FOLDER}/AGENTS.md
        Rules.
        //- /outside.md
        {MARK}
        """,
        tmp_path,
    )
    readme, rules = (Path(fixture.path(f"{FOLDER}/{name}")) for name in ("README.md", "AGENTS.md"))
    readme.symlink_to(fixture.path("/outside.md"))
    first = load_folder(fixture, FOLDER)
    readme.unlink()
    readme.write_text("<within>")
    rules.write_text("Rules.\n@README.md")
    second = load_folder(fixture, FOLDER, previous=first, changed=frozenset({str(rules)}))
    assert MARK not in second.prompt.text
    assert "<within>" in second.prompt.text
