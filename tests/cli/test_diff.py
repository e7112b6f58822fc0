"""`nexus diff` and `nexus check --budget`: what they print, and when they fail."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import diff, main
from support.commands import run_nexus, use_home

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


class Repo:
    """A repository with an AGENTS.md, and what a command says of it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.top = root / "repo"
        self.top.mkdir()
        self._capsys = capsys
        self.write("AGENTS.md", "Be brief.\n")
        self._git("init", "-q", "-b", "main")
        self.commit()

    def commit(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-qm", "one")

    def _git(self, *arguments: str) -> None:
        subprocess.run([*GIT, *arguments], cwd=self.top, check=True)

    def write(self, name: str, text: str) -> None:
        (self.top / name).parent.mkdir(exist_ok=True)
        (self.top / name).write_text(text)

    def run(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        code, out, errors = run_nexus(self._capsys, command, *arguments)
        top = os.path.realpath(self.top)
        lines = "".join(f"{line.rstrip()}\n" for line in out.splitlines())
        return code, lines.replace(top, "/repo"), errors.replace(top, "/repo")

    def diff(self, *arguments: str) -> tuple[int, str, str]:
        return self.run("diff", "HEAD", str(self.top), *arguments)

    def check(self, *arguments: str) -> tuple[int, str]:
        code, _, errors = self.run("check", str(self.top), *arguments)
        return code, errors


@pytest.fixture
def repo(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Repo:
    use_home(monkeypatch, tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return Repo(tmp_path, capsys)


@pytest.fixture
def grown(repo: Repo) -> Repo:
    """With ten words more."""
    repo.write("AGENTS.md", "Be brief.\n" + "word " * 10)
    return repo


def test_nothing_changed(repo: Repo) -> None:
    assert repo.diff("--format", "markdown") == (0, "The requests of assistants do not change.\n", "")
    assert repo.diff("--for", "copilot")[1].endswith("\n\nNo request changes.\n")


def test_a_comment_for_a_pull_request(grown: Repo) -> None:
    code, out, errors = grown.diff("--for", "copilot", "--format", "markdown")
    assert (code, errors) == (0, "")
    assert out == (
        "This change adds **11** tokens to every request of GitHub Copilot.\n"
        "\n"
        "| Assistant | Before | Now | Change |\n"
        "| --- | --: | --: | --: |\n"
        "| GitHub Copilot | 3 | 14 | +11 |\n"
        "\n"
        "| File | GitHub Copilot |\n"
        "| --- | --: |\n"
        "| `AGENTS.md` | +11 |\n"
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [("a`b.md", "`a'b.md`"), ("a|b.md", "`a\\|b.md`"), ("plain.md", "`plain.md`")],
)
def test_a_name_in_a_table(name: str, code: str) -> None:
    assert diff._code(name) == code  # noqa: SLF001 - such names reach it from imports only


def test_a_saving(repo: Repo) -> None:
    (repo.top / "AGENTS.md").unlink()
    code, out, _ = repo.diff("--format", "markdown", "--for", "copilot")
    assert code == 0
    assert out.startswith("This change removes **3** tokens from every request of GitHub Copilot.\n")


def test_a_saving_of_one_assistant_beside_others_that_read_the_same(repo: Repo) -> None:
    repo.write(".github/copilot-instructions.md", "Be quick.\n")
    repo.commit()
    (repo.top / ".github/copilot-instructions.md").unlink()
    out = repo.diff("--format", "markdown")[1]
    assert out.startswith("This change removes **3** tokens from every request of GitHub Copilot.\n"), out


def test_other_words_of_the_same_size(repo: Repo) -> None:
    repo.write("AGENTS.md", "Be quick.\n")
    expected = "The requests of assistants do not change.\n"
    assert repo.diff("--format", "markdown", "--for", "copilot")[1] == expected


def test_the_tables_of_a_terminal(grown: Repo) -> None:
    assert grown.diff("--for", "copilot") == snapshot(
        (
            0,
            """\

  assistant        before   now   change
 ────────────────────────────────────────
  GitHub Copilot        3    14      +11


  file        GitHub Copilot
 ────────────────────────────
  AGENTS.md              +11

""",
            "",
        )
    )


def test_json(grown: Repo) -> None:
    values: Any = json.loads(grown.diff("--for", "copilot", "--format", "json")[1])
    assert values == {
        "base": "HEAD",
        "assistants": [
            {
                "assistant": "copilot",
                "version": "2026-11",
                "exact": True,
                "before": 3,
                "after": 14,
                "files": [{"path": "/repo/AGENTS.md", "before": 3, "after": 14}],
            }
        ],
    }


def more(command: str, budget: int) -> str:
    text = "GitHub Copilot reads 11 tokens more in every request"
    return f"nexus {command}: {text}: more than the budget of {budget}.\n"


@pytest.mark.parametrize(
    ("budget", "code", "errors"),
    [("11", 0, ""), ("10", 1, more("diff", 10)), ("1,000", 0, ""), ("0", 1, more("diff", 0))],
)
def test_the_budget_of_a_change(grown: Repo, budget: str, code: int, errors: str) -> None:
    result = grown.diff("--for", "copilot", "--budget", budget)
    assert (result[0], result[2]) == (code, errors)


TOO_MUCH = (
    "nexus check: GitHub Copilot reads 14 tokens of files in every request: more than the budget of 13.\n"
)
UNKNOWN = "nexus check: 'none' is not a revision of /repo. Fetch it, or correct the name.\n"
WITHOUT_FOR = "nexus check: --budget and --since go with --for: they are about another assistant.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "errors"),
    [
        ("--for copilot --budget 14", 0, ""),
        ("--for copilot --budget 13", 1, TOO_MUCH),
        ("--for copilot --budget 11 --since HEAD", 0, ""),
        ("--for copilot --budget 10 --since HEAD", 1, more("check", 10)),
        ("--for copilot --budget 10 --since none", 2, UNKNOWN),
        ("--for copilot --since HEAD", 2, "nexus check: --since goes with --budget.\n"),
        ("--budget 9", 2, WITHOUT_FOR),
        ("--since HEAD", 2, WITHOUT_FOR),
    ],
)
def test_the_budget_of_a_check(grown: Repo, arguments: str, code: int, errors: str) -> None:
    assert grown.check(*arguments.split()) == (code, errors)


def test_wrong_usage(repo: Repo, tmp_path: Path) -> None:
    assert repo.run("diff", "other", str(repo.top)) == (
        2,
        "",
        "nexus diff: 'other' is not a revision of /repo. Fetch it, or correct the name.\n",
    )
    code, _, errors = repo.run("diff", "HEAD", str(tmp_path / "none"))
    assert (code, errors) == (2, f"nexus diff: {tmp_path}/none does not exist.\n")
    with pytest.raises(SystemExit):
        repo.diff("--budget", "many")


def test_without_a_revision_it_compares_with_what_is_committed(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("AGENTS.md", "Be brief. Answer in one sentence.\n")
    monkeypatch.chdir(repo.top)
    assert repo.run("diff") == repo.run("diff", "HEAD")
    assert json.loads(repo.run("diff", "--format", "json")[1])["base"] == "HEAD"


def test_a_repository_without_a_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([*GIT, "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    assert main(["diff"]) == 2
    assert "Commit something first." in capsys.readouterr().err
