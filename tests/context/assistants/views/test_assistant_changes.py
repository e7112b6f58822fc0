"""What a change costs in every request: the folder at a revision is read as if that were checked out."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.profile_types import Profile, Surroundings
from nexus_context.assistants.views.changes import (
    FileChange,
    RevisionChanges,
    RevisionDisk,
    RevisionError,
    compare_with_revision,
)
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_fixture

FOLDER = """
//- /home/.claude/CLAUDE.md
Mine.
//- /home/repo/.gitignore
CLAUDE.local.md
/cache/
//- /home/repo/CLAUDE.md
The gate is green. @docs/style.md @docs/ünï.md
//- /home/repo/CLAUDE.local.md
Only here.
//- /home/repo/AGENTS.md
Agents.
//- /home/repo/docs/style.md
Tabs.
//- /home/repo/docs/ünï.md
Umlauts.
//- /home/repo/.claude/rules/one.md
Rule one.
//- /home/repo/.claude/skills/dance/SKILL.md
---
name: dance
description: How to dance.
---
Left, right.
//- /home/repo/.github/copilot-instructions.md
Copilot.
//- /home/repo/.cursor/rules/all.mdc
---
alwaysApply: true
---
Cursor.
//- /home/repo/packages/api/AGENTS.md
Below.
//- /home/repo/cache/CLAUDE.md
Ignored.
"""
FIXED = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Repo:
    """A repository with one commit."""

    def __init__(self, root: Path) -> None:
        tree = write_fixture(FOLDER, root.resolve())
        self.top = Path(tree.path("/home/repo"))
        self.home = tree.path("/home")
        (self.top / "linked.md").symlink_to("docs/style.md")
        self.environ = {"PATH": os.environ["PATH"], "HOME": self.home}
        self.git("init", "-q", "-b", "main")
        self.commit()

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.top, env={**self.environ, **FIXED}, check=True)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "one")

    def surroundings(self, folder: str = ".") -> Surroundings:
        return Surroundings(str(self.top / folder), self.home, self.environ)

    def profiles(self, folder: str = ".") -> list[Profile]:
        return [read_profile(name, self.surroundings(folder)) for name in tuple(PROGRAMS)]

    def changes(self, revision: str = "HEAD", *, folder: str = ".") -> RevisionChanges:
        return compare_with_revision(self.surroundings(folder), revision, tuple(PROGRAMS))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def write(path: str, text: str) -> Callable[[Path], object]:
    def change(top: Path) -> None:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).unlink(missing_ok=True)
        (top / path).write_text(text)

    return change


def remove(path: str) -> Callable[[Path], object]:
    return lambda top: shutil.rmtree(top / path) if (top / path).is_dir() else (top / path).unlink()


def link(path: str, target: str) -> Callable[[Path], object]:
    def change(top: Path) -> None:
        (top / path).unlink(missing_ok=True)
        (top / path).symlink_to(target)

    return change


CHANGES = {
    "nothing": [],
    "edit": [write("CLAUDE.md", "Another."), write("docs/style.md", "Blanks, " * 50)],
    "new files": [write(".claude/rules/two.md", "Rule two."), write("packages/CLAUDE.md", "New.")],
    "a new directory": [remove(".claude"), write("GEMINI.md", "New.")],
    "removed": [remove("CLAUDE.md"), remove("docs"), remove("AGENTS.md")],
    "a file becomes a directory": [remove("AGENTS.md"), write("AGENTS.md/inner.md", "x")],
    "a directory becomes a file": [remove("docs"), write("docs", "x")],
    "a file becomes a link": [link("AGENTS.md", "CLAUDE.md"), link("docs/style.md", "/etc/passwd")],
    "a link becomes a file": [write("linked.md", "File.")],
    "an import that was not there": [write("docs/ünï.md", "@later.md"), write("docs/later.md", "Later.")],
    "settings": [write(".codex/config.toml", "project_doc_max_bytes = 3")],
}


@pytest.mark.parametrize("folder", [".", "packages/api"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_the_revision_is_read_as_if_it_were_checked_out(
    repo: Repo, changes: list[Callable[[Path], object]], folder: str
) -> None:
    before = repo.profiles(folder)
    for change in changes:
        change(repo.top)
    if not (repo.top / folder).is_dir():
        pytest.fail("the folder itself has to stay")
    assistants = repo.changes(folder=folder).assistants
    assert [each.before.blocks for each in assistants] == [profile.blocks for profile in before]
    assert [each.before.later for each in assistants] == [profile.later for profile in before]
    assert [each.after.blocks for each in assistants] == [profile.blocks for profile in repo.profiles(folder)]


def test_links_of_the_revision_are_followed_in_it(repo: Repo) -> None:
    (repo.top / "CLAUDE.md").unlink()
    (repo.top / "CLAUDE.md").symlink_to("linked.md")
    (repo.top / "parts").symlink_to("docs")
    repo.commit()
    (repo.top / "docs/style.md").write_text("Changed.")
    (repo.top / "CLAUDE.md").unlink()
    (repo.top / "parts").unlink()
    disk = RevisionDisk(str(repo.top), "HEAD", repo.environ)
    assert disk.text(str(repo.top / "CLAUDE.md")) == "Tabs.\n"
    assert disk.text(str(repo.top / "parts/style.md")) == "Tabs.\n"
    assert disk.real(str(repo.top / "parts/style.md")) == str(repo.top / "docs/style.md")
    assert disk.is_directory(str(repo.top / "parts"))


def test_links_in_a_circle_end(repo: Repo) -> None:
    (repo.top / "a").symlink_to("b")
    (repo.top / "b").symlink_to("a")
    repo.commit()
    disk, path = RevisionDisk(str(repo.top), "HEAD", repo.environ), str(repo.top / "a")
    assert (disk.data(path), disk.is_file(path), disk.exists(path)) == (None, False, False)


def test_what_git_ignores_is_the_same_on_both_sides(repo: Repo) -> None:
    (repo.top / "CLAUDE.local.md").write_text("Longer than before, and nobody else's.")
    changes = repo.changes()
    assert [each.growth for each in changes.assistants] == [0] * len(tuple(PROGRAMS))
    assert "nobody else's" in changes.assistants[0].before.blocks[0].text


def test_the_changes_of_files(repo: Repo) -> None:
    (repo.top / "AGENTS.md").write_text("Agents. " * 100)
    (repo.top / "packages/api/AGENTS.md").write_text("Deeper. " * 10)
    codex = repo.changes(folder="packages/api").assistants[list(PROGRAMS).index("codex")]
    top, below = str(repo.top / "AGENTS.md"), str(repo.top / "packages/api/AGENTS.md")
    assert [(one.path, one.before < one.after) for one in codex.files] == [(top, True), (below, True)]
    assert sum(one.after - one.before for one in codex.files) == codex.growth > 0
    assert all(isinstance(one, FileChange) for one in codex.files)


def test_a_file_that_is_sent_as_before_has_no_change(repo: Repo) -> None:
    path = repo.top / "CLAUDE.md"
    text = path.read_text()
    for length in range(1, 30):  # estimates are rounded: some of these shift the next file's by one
        path.write_text(f"{'x' * length}\n{text}")
        for change in repo.changes("main").assistants:
            assert {one.path for one in change.files} <= {str(path)}


@pytest.mark.parametrize("revision", ["main", "HEAD~0", "main^{tree}"])
def test_a_name_of_a_revision(repo: Repo, revision: str) -> None:
    assert all(each.growth == 0 for each in repo.changes(revision).assistants)


@pytest.mark.parametrize("revision", ["other", "--all", "", "HEAD:CLAUDE.md", "main\0x"])
def test_what_is_no_revision(repo: Repo, revision: str) -> None:
    with pytest.raises(RevisionError, match="is not a revision of"):
        repo.changes(revision)


def test_no_repository(tmp_path: Path) -> None:
    surroundings = Surroundings(str(tmp_path), str(tmp_path), {"PATH": os.environ["PATH"]})
    with pytest.raises(RevisionError, match="is not in a git repository"):
        compare_with_revision(surroundings, "HEAD", ["codex"])


def test_no_git(repo: Repo) -> None:
    repo.environ["PATH"] = str(repo.top)
    with pytest.raises(RevisionError, match="git is not on PATH"):
        repo.changes()


def test_nothing_that_the_repository_configures_is_run(repo: Repo) -> None:
    trap = repo.top / "trap"
    trap.write_text("#!/bin/sh\ntouch sprung\ncat\n")
    trap.chmod(0o755)
    (repo.top / ".gitattributes").write_text("*.md filter=trap diff=trap\n")
    for name in ("core.fsmonitor", "filter.trap.smudge", "filter.trap.clean", "diff.trap.textconv"):
        repo.git("config", name, str(trap))
    (repo.top / "CLAUDE.md").write_text("Changed.")
    assert repo.changes().assistants[0].growth != 0
    assert not (repo.top / "sprung").exists()
