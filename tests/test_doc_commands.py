"""Every command of the README and the docs runs, or a table says why it cannot here.

1. Commands of Nexus run in this process, each in the same fresh copy of the example workspace, whose user has
   sessions of Claude Code and Codex, a conversation `main` and MCP servers. NEEDS has what a page did before.
2. Those that never end, or need a model or a person (UNTRIED), are parsed as Nexus parses them.
3. Targets of `make` and options of the project's own programs exist. The rest is other people's programs.
"""

import argparse
import glob
import importlib
import io
import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from nexus_daemon.cli import main, output
from nexus_daemon.cli.commands import COMMANDS
from nexus_daemon.cli.parser import parse
from support import doc_pages
from support.assistant_transcripts import Codex, example_session, write
from support.commands import use_home
from support.json_lines import json_lines

ALL = list(
    {command.text: command for page in doc_pages.pages() for command in doc_pages.commands(page)}.values()
)
NEXUS = ("nexus", ".venv/bin/nexus")
UNTRIED = {
    "nexus watch": "runs until Ctrl-C",
    "nexus watch --format json": "runs until Ctrl-C",
    "nexus watch --assistant codex --session 01a2": "runs until Ctrl-C",
    "nexus logs --follow": "runs until Ctrl-C",
    "nexus chat": "talks to a provider; tests/cli/test_chat.py replays the page",
    "nexus chat -p 'Which files does the login touch?'": "talks to a provider",
    "git diff | nexus chat -p - --format json": "talks to a provider",
    "nexus agents spawn auth --cwd backend/auth-service --task 'Find the leak.' --run --max-usd 0.50": (
        "talks to a provider"
    ),
    "nexus agents follow auth": "runs until the agent ends",
    "nexus mcp login issues": "a person signs in with a browser",
    "nexus sessions verify --accept FILE": "FILE is a ledger that is not that of last time",
    "nexus sessions salvage FILE": "FILE is a damaged ledger; tests/cli/test_sessions.py has them",
}
"""Commands of Nexus that do not run here, with the reason."""
OTHERS = {
    'pip install "nexusd[anthropic]"': "needs the network",
    "pip install 'nexusd[mcp]'": "needs the network",
    'pip install "nexusd[embeddings]"': "needs the network",
    "pip install /path/to/the/clone && python -c 'import nexus_context; help(nexus_context)'": "the network",
    "pipx uninstall nexusd": "an installation",
    "export ANTHROPIC_API_KEY=…": "a key",
    "mkdir -p ~/.local/share/nvim/site/pack/nexus/start": "Neovim; tests/e2e/test_neovim.py runs the plugin",
    "ln -s /path/to/nexus/editors/neovim ~/.local/share/nvim/site/pack/nexus/start/nexus": "Neovim",
    "nvim +'helptags ALL' +quit": "Neovim",
}
"""Commands of other programs, with what they need."""
FILES = {
    "nexus check FILE": "CLAUDE.md",
    "nexus show --messages FILE": "chat.jsonl",
    "nexus sessions import FILE…": "chat.jsonl",
}
"""What stands for `FILE` in a command."""
SERVERS = {"github": "search_code", "notes": "find_notes"}
TRUSTED = ["trust"]
APPROVED = [*TRUSTED, "mcp approve {3} --yes"]
PARENT = ["agents spawn backend --cwd backend"]
NEEDS = {
    "nexus agents spawn": PARENT,
    "nexus agents message": [*PARENT, "agents spawn auth"],
    "nexus agents dispose": [*PARENT, "agents spawn auth"],
    "nexus mcp approve": TRUSTED,
    "nexus mcp tools": APPROVED,
    "nexus mcp call": APPROVED,
    "nexus mcp diff": APPROVED,
    "nexus mcp revoke": APPROVED,
    "nexus setup claude-code --undo": ["setup claude-code --yes"],
    "nexus sessions undo": ["sessions compact main"],
    "nexus sessions restore": ["sessions backup {state}/ledger.db.backups/2026-11-20.db"],
}
"""The beginning of a command → what was done before it; `{3}` is the command's fourth word."""


def nexus_part(text: str) -> list[str] | None:
    """The arguments of the command of Nexus in a line; None if there is none."""
    words = shlex.split(text)
    for place, word in enumerate(words):
        if word in NEXUS and (place == 0 or words[place - 1] in ("&&", "|", "--")):
            return words[place + 1 :]
    return None


@cache
def help_of(module: str) -> str:
    command = [sys.executable, "-m", module, "--help"]
    return subprocess.run(command, cwd=doc_pages.ROOT, capture_output=True, text=True, check=True).stdout


class Scratch:
    """The home of a user with the example workspace. `fill` makes it; `restore` puts all of it back."""

    def __init__(self, root: Path) -> None:
        self.root, self.copy = root / "root", root / "copy"
        self.home = self.root / "home"
        self.company = self.home / "company"

    def fill(self) -> None:
        shutil.copytree(doc_pages.ROOT / "examples" / "home", self.home)
        shutil.copytree(doc_pages.ROOT / "examples" / "company", self.company)
        files = {
            "CLAUDE.md": "Keep the build green.\n" * 20,
            "packages/api/AGENTS.md": "Answer with JSON.\n" * 20,
            "deploy.sh": "npm test\n",
            "docs/deploy.md": "# Deploy\n\nTo roll back, run `make rollback`.\n",
            "chat.jsonl": json_lines([{"role": "user", "content": "Is the harbour full?"}]),
            "tools.json": json.dumps([{"name": "search", "description": "Find a text.", "inputSchema": {}}]),
            ".gitignore": "chat.jsonl\n",
            ".claude/settings.json": json.dumps({"permissions": {"deny": ["Bash(git push --force:*)"]}}),
            ".nexus3/skills/pdf-forms/SKILL.md": "---\nname: pdf-forms\ndescription: Forms.\n---\nFill.\n",
            "backend/auth/AGENTS.md": "Compare secrets in constant time.\n",
            ".mcp.json": json.dumps({"mcpServers": {name: self.server(name) for name in SERVERS}}),
            "../my/project/AGENTS.md": "Be brief.\n",
            "../shop/AGENTS.md": "Be brief.\n",
        }
        for name, text in files.items():
            path = self.company / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        settings = self.company / ".nexus3" / "config.json"
        text = json.loads(settings.read_text(encoding="utf-8"))
        settings.write_text(
            json.dumps({**text, "memory": {"knowledge": {"paths": ["docs"]}}}), encoding="utf-8"
        )
        for directory in (self.home / "backups", self.root / "state" / "ledger.db.backups"):
            directory.mkdir(parents=True)
        claude, records = example_session(str(self.company))
        write(claude.path(self.home), records)
        for name in ("019a2b3c", "5f3a"):
            codex = Codex(str(self.home / "shop"), session=name)
            path = codex.path(self.home)
            if name == "5f3a":
                path = self.home / ".codex/sessions/2026/03/01/rollout-2026-03-01T08-00-00-5f3a.jsonl"
            write(path, [*codex.begins(), codex.says("What is a harbour?"), *codex.uses(100)])
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", ".")
        self.git(
            "-c", "user.name=Ana", "-c", "user.email=ana@example.com", "commit", "--quiet", "-m", "Begin."
        )
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        (self.company / "AGENTS.md").write_text("Answer shortly.\n" * 20, encoding="utf-8")

    def server(self, name: str) -> dict[str, object]:
        """The entry of an MCP server with one tool."""
        directory = self.home / "servers" / name
        directory.mkdir(parents=True)
        program = directory / "server.py"
        shutil.copy(doc_pages.ROOT / "tests" / "support" / "mcp_old_server.py", program)
        (directory / "tools.json").write_text(
            json.dumps({SERVERS[name]: "Finds something."}), encoding="utf-8"
        )
        return {"command": sys.executable, "args": [str(program), str(directory)]}

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.company, check=True)

    def keep(self) -> None:
        shutil.copytree(self.root, self.copy, symlinks=True)

    def restore(self) -> None:
        for path in self.root.rglob("*"):
            if not path.is_symlink():  # git's objects are read-only, which Windows does not remove
                path.chmod(path.stat().st_mode | stat.S_IWRITE)
        shutil.rmtree(self.root)
        shutil.copytree(self.copy, self.root, symlinks=True)

    def arguments(self, text: str) -> list[str]:
        """The arguments of a command line as a shell hands them on."""
        words = []
        for word in nexus_part(text.replace("FILE…", "FILE").replace("FILE", FILES.get(text, "FILE"))) or ():
            is_quoted = f"'{word}'" in text
            path = word.replace("~/", f"{self.home}/", 1) if word.startswith("~/") else word
            words += sorted(glob.glob(path)) if "*" in word and not is_quoted else [path]
        return words


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    root = tmp_path_factory.mktemp("commands").resolve()
    scratch = Scratch(root)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use(scratch, monkeypatch, fill=True)
        assert main(["sessions", "append", "main", "Where is the harbour?"]) == 0
        for number in range(12):
            text = f"The file docs/page{number}.md speaks of a harbour. " * 40
            role = ("assistant", "user")[number % 2]
            assert main(["sessions", "append", "main", text, "--role", role]) == 0
    scratch.keep()
    yield scratch


def use(scratch: Scratch, monkeypatch: pytest.MonkeyPatch, *, fill: bool = False) -> None:
    use_home(monkeypatch, scratch.root)
    if fill:
        scratch.fill()
    monkeypatch.chdir(scratch.company)


@pytest.fixture
def scratch(filled: Scratch, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    filled.restore()
    use(filled, monkeypatch)
    monkeypatch.setattr(output, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    return filled


def tried() -> list[str]:
    return [
        command.text for command in ALL if nexus_part(command.text) is not None and is_tried(command.text)
    ]


def is_tried(text: str) -> bool:
    return text not in UNTRIED and text not in OTHERS


@pytest.mark.parametrize("text", tried())
def test_a_command_of_nexus_runs(text: str, scratch: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    needs = next((needs for head, needs in NEEDS.items() if text.startswith(head)), [])
    for line in needs:
        before = shlex.split(line.format(*text.split(), state=scratch.root / "state"))
        assert main(before) == 0, capsys.readouterr()
    code = main(scratch.arguments(text))
    out, err = capsys.readouterr()
    assert code == 0, out + err
    assert "Traceback" not in err


@pytest.mark.parametrize("text", [*UNTRIED, *(text for text in OTHERS if nexus_part(text))])
def test_a_command_that_does_not_run_here_has_right_arguments(text: str) -> None:
    arguments = nexus_part(text)
    assert arguments is not None
    assert parse(arguments).command == arguments[0]


def test_every_command_is_tried_or_a_table_says_why_not() -> None:
    texts = {command.text for command in ALL}
    own = ("make ", "python -m ", ".venv/bin/python -m ")
    untold = [
        f"{command.page.name}:{command.line}: {command.text}"
        for command in ALL
        if is_tried(command.text) and nexus_part(command.text) is None and not command.text.startswith(own)
    ]
    assert untold == []
    assert ({*UNTRIED, *OTHERS, *FILES} - texts) == set()


def test_the_targets_and_variables_of_make_exist() -> None:
    makefile = (doc_pages.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    for text in (command.text for command in ALL if command.text.startswith("make ")):
        for word in shlex.split(text)[1:]:
            name, is_variable, _ = word.partition("=")
            assert f"$({name})" in makefile if is_variable else word in targets, text


@pytest.mark.parametrize("text", [command.text for command in ALL if "python -m " in command.text])
def test_the_options_of_the_own_programs_exist(text: str) -> None:
    module, *arguments = shlex.split(text)[2:]
    if module == "pytest":
        assert [word for word in arguments if not (doc_pages.ROOT / word).exists()] == []
        return
    options = {word for word in arguments if word.startswith("--")}
    assert options - set(re.findall(r"--\w+", help_of(module))) == set()


def test_what_prose_calls_a_command_is_one() -> None:
    """Its action and options, too; the rest may be placeholders."""
    wrong = []
    for page in doc_pages.pages():
        for text in doc_pages.inline_commands(page.read_text(encoding="utf-8")):
            name, *words = text.split()[1:]
            if name[0].isdecimal() or name.startswith("-"):  # a status bar, or an option of `nexus` itself
                continue
            if name not in COMMANDS or not is_right(name, words):
                wrong.append(f"{page.name}: {text}")
    assert wrong == []


def test_a_command_of_prose_that_is_wrong_is_noticed() -> None:
    assert is_right("sessions", ["list,", "show", "--all"])
    assert is_right("serve", ["--remote=auto"])
    assert not is_right("sessions", ["lists"])
    assert not is_right("show", ["--sesion", "NAME"])


def test_the_options_that_a_comment_names_exist() -> None:
    wrong = []
    for page in doc_pages.pages():
        for command in doc_pages.commands(page):
            named = re.findall(r"nexus ([a-z]+)", f"{command.text} # {command.comment}")
            options = re.findall(r"--[a-z][\w-]*", command.comment)
            if named and not any(is_right(name, options) for name in named):
                wrong.append(f"{page.name}:{command.line}: {command.comment}")
    assert wrong == []


def is_right(name: str, words: list[str]) -> bool:
    """Whether a command has the action that its first word names, and these options."""
    actions, options = words_of(name)
    first = words[0].strip(",") if words else ""
    is_action = not actions or not re.fullmatch("[a-z]+", first) or first in actions
    named = {word.strip("[]").partition("=")[0] for word in words if word.strip("[").startswith("--")}
    return is_action and named <= options


@cache
def words_of(name: str) -> tuple[set[str], set[str]]:
    """The actions of a command; the options of it and of them."""
    command = argparse.ArgumentParser()
    importlib.import_module(f"nexus_daemon.cli.{name}").arguments(command)
    actions: set[str] = set()
    options: set[str] = set()
    parsers = [command]
    for parser in parsers:
        for action in parser._actions:  # noqa: SLF001 - argparse has no other way
            options |= {*action.option_strings}
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                actions |= {*action.choices}
                parsers += action.choices.values()
    return actions, options
