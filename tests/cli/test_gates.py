"""The GitHub Action and the hooks of pre-commit."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nexus_daemon.cli import parser

ROOT = Path(__file__).parents[2]
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="bash")


class Pull:
    """A pull request that adds ten words to AGENTS.md, checked out with its last commit alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        origin = root / "origin"
        origin.mkdir()
        self._git(origin, "init", "-q", "-b", "main")
        self._commit(origin, "Be brief.\n")
        self.base = self._git(origin, "rev-parse", "HEAD")
        self._commit(origin, "Be brief.\n" + "word " * 10)
        self._git(root, "clone", "-q", "--depth=1", origin.as_uri(), "work")

    def _git(self, folder: Path, *arguments: str) -> str:
        command = [*GIT, *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    def _commit(self, folder: Path, text: str) -> None:
        (folder / "AGENTS.md").write_text(text)
        self._git(folder, "add", "-A")
        self._git(folder, "commit", "-qm", "one")

    def run(self, **inputs: str) -> tuple[int, str, str]:
        """Exit code and output of the action's script, and the summary of the job."""
        values = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        values |= {"path": str(self.root / "work"), "base": self.base, **inputs}
        summary = self.root / "summary.md"
        variables = {f"NEXUS_{name.upper()}": value for name, value in values.items()}
        search = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environ = {**os.environ, "PATH": search, "HOME": str(self.root), "GITHUB_STEP_SUMMARY": str(summary)}
        command = ["bash", str(ROOT / "scripts/action.sh")]
        done = subprocess.run(
            command, cwd=self.root, env=environ | variables, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr, summary.read_text() if summary.exists() else ""


ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
GROWTH = "This change adds **11** tokens to every request of GitHub Copilot."


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    return Pull(tmp_path)


def test_what_a_pull_request_adds(pull: Pull) -> None:
    code, _, summary = pull.run(**{"for": "copilot"})
    assert (code, summary.splitlines()[0]) == (0, GROWTH)
    assert (pull.root / "nexus-diff.md").read_text() == summary


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"budget": "13"}, "more than the budget of 13."),
        ({"growth": "10"}, "11 tokens more in every request: more than the budget of 10."),
        ({"base": "0" * 40}, "is not a revision of"),
        ({"path": "nowhere"}, "nowhere does not exist."),
        ({"for": "somebody"}, "invalid choice: 'somebody'"),
    ],
)
def test_what_fails_the_job(pull: Pull, inputs: dict[str, str], message: str) -> None:
    code, printed, _ = pull.run(**{"for": "copilot", **inputs})
    assert code == 1
    assert message in printed


def test_a_push_has_nothing_to_compare_with(pull: Pull) -> None:
    code, printed, summary = pull.run(base="", budget="100000")
    assert (code, summary) == (0, "")
    assert not (pull.root / "nexus-diff.md").exists(), printed


def test_the_configuration_of_nexus_itself(pull: Pull) -> None:
    (pull.root / "work/.nexus3").mkdir()
    (pull.root / "work/.nexus3/config.json").write_text('{"provider": 1}')
    code, printed, _ = pull.run(**{"for": "nexus"})
    assert code == 1
    assert "::error" in printed


def test_every_input_reaches_the_script() -> None:
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("name") == "Check"]
    names = {f"NEXUS_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    assert {name: value for name, value in step["env"].items() if name != "ACTION"} == names
    used = set(re.findall(r"NEXUS_[A-Z]+", (ROOT / "scripts/action.sh").read_text()))
    assert used == set(names)


def test_the_hooks_run_commands_that_exist() -> None:
    for hook in HOOKS:
        program, *arguments = shlex.split(hook["entry"])
        assert program == "nexus"
        assert parser.parse(arguments).command == "check"


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("AGENTS.md", True),
        ("a/AGENTS.override.md", True),
        ("a/CLAUDE.local.md", True),
        (".nexus3/config.json", True),
        (".github/copilot-instructions.md", True),
        (".github/instructions/x.instructions.md", True),
        (".cursor/rules/a.mdc", True),
        ("opencode.jsonc", True),
        (".github/workflows/ci.yml", False),
        ("README.md", False),
        ("src/MYAGENTS.md", False),
    ],
)
def test_the_files_of_the_hooks(path: str, matches: bool) -> None:
    assert [bool(re.search(hook["files"], path)) for hook in HOOKS] == [matches, matches]
