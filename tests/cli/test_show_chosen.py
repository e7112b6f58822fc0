"""`nexus show` without `--for`: a person sees the view that is chosen here, and a script Nexus's own."""

from pathlib import Path

import pytest

from nexus_daemon.cli import output
from support.assistant_logs import ClaudeLog
from support.commands import Output, run_nexus, use_home

STARTED = 1_795_169_000.0  # 2026-11-20T10:03:20Z, minutes after the first records of a ClaudeLog


class Shell:
    """A person's terminal, or a script, in the folder `shop`."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.home, self.folder = root / "home", root / "shop"
        self.folder.mkdir()
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def show(self, *arguments: str, person: bool = True) -> Output:
        self._monkeypatch.setattr(output, "is_read_by_person", lambda: person)
        return run_nexus(self._capsys, "show", str(self.folder), *arguments, root=str(self.folder.parent))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    use_home(monkeypatch, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    return Shell(tmp_path, monkeypatch, capsys)


def test_the_first_line_says_which_view_it_is_and_why(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.write("CLAUDE.md", "Use tabs.\n")
    shell.write("AGENTS.md", "Be brief.\n")
    first, rest = shell.show().out.split("\n", 1)
    assert first == (
        "Claude Code: `claude` is not on the PATH, but CLAUDE.md is here. "
        "--for nexus shows Nexus, --for all who reads what."
    )
    assert rest == shell.show("--for", "claude-code").out
    log = ClaudeLog(shell.home, "s1", folder=str(shell.folder))
    log.user("Fix the login.")
    log.answer("It is fixed.")
    monkeypatch.setattr("time.time", lambda: STARTED)
    assert shell.show("--layers").out.startswith("Claude Code: it runs here. --for nexus shows Nexus, ")
    shell.write(".nexus3/config.json", '{"views": {"show": "codex"}}')
    assert shell.show("--tokens").out.startswith("Codex: the setting `views.show` names it. --for nexus ")


def test_nexus_says_so_beside_others(shell: Shell) -> None:
    shell.write("CLAUDE.md", "Use tabs.\n")
    shell.write("NEXUS.md", "Use spaces.\n")
    first, rest = shell.show().out.split("\n", 1)
    assert first == "Nexus: NEXUS.md is here. --for claude-code shows Claude Code, --for all who reads what."
    assert rest == shell.show("--for", "nexus").out


def test_nothing_changes_where_no_other_program_is_in_use(shell: Shell) -> None:
    empty = shell.show()
    assert empty == shell.show("--for", "nexus") == shell.show(person=False)
    shell.write(".nexus3/NEXUS.md", "Use spaces.\n")
    assert shell.show() == shell.show(person=False)
    assert "Use spaces." in shell.show().out


@pytest.mark.parametrize(
    "options",
    [
        ("--message", "Why?"),
        ("--model", "gpt-4o"),
        ("--budget", "90000"),
        ("--role", "worker"),
        ("--memory",),
        ("--skill", "none"),
        ("--format", "json"),
        ("--format", "openai", "--model", "gpt-4o"),
        ("--for", "nexus"),
        ("--for", "nexus", "--message", "Why?"),
    ],
    ids=" ".join,
)
def test_an_option_of_nexus_means_nexus(shell: Shell, options: tuple[str, ...]) -> None:
    shell.write("CLAUDE.md", "Use tabs.\n")
    person, script = shell.show(*options), shell.show(*options, person=False)
    assert "Claude Code" not in person.out
    assert (person.code, len(person.out)) == (script.code, len(script.out))  # the time may differ


@pytest.mark.parametrize("options", [(), ("--tokens",), ("--source",), ("--layers",)], ids=" ".join)
def test_a_script_gets_what_it_got(shell: Shell, options: tuple[str, ...]) -> None:
    shell.write("CLAUDE.md", "Use tabs.\n")
    script, nexus = shell.show(*options, person=False), shell.show(*options, "--for", "nexus")
    assert (script.code, script.out) == (nexus.code, nexus.out)
    assert script.err.replace(nexus.err, "") == (
        "nexus show: this is Nexus's own prompt. Claude Code: `claude` is not on the PATH, but CLAUDE.md is "
        "here; --for claude-code shows what it reads.\n"
    )


def test_only_text_and_json_go_with_another_assistant(shell: Shell) -> None:
    refused = shell.show("--for", "codex", "--format", "openai")
    assert (refused.code, refused.err) == (
        2,
        "nexus show: --format openai is a request of Nexus; --for has text and json.\n",
    )
