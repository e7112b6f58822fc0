"""`nexus setup`: what it writes into the settings of each program, asks, refuses, and takes out again."""

import errno
import io
import json
import os
import shutil
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.programs import WITH_SETUP
from nexus_daemon.cli import output, setup
from support.commands import Output, run_nexus
from support.fixture import write_file

CLAUDE = ".claude/settings.json"
USER_FILES = {
    "claude-code": [".claude/settings.json", ".claude.json"],
    "codex": [".codex/config.toml"],
    "opencode": [".config/opencode/opencode.json", ".config/opencode/plugins/nexus.js"],
    "gemini": [".gemini/settings.json"],
}
PROJECT_FILES = {
    "claude-code": [".claude/settings.json", ".mcp.json"],
    "codex": [".codex/config.toml"],
    "opencode": ["opencode.json", ".opencode/plugins/nexus.js"],
    "gemini": [".gemini/settings.json"],
}
HAND_WRITTEN = """\
{
    "model": "opus",
    "hooks": {
        "Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ]
    },
    "statusLine": {"type": "command", "command": "my-line"}
}"""


class Home:
    """A user's home and a project, with the command line in them."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = directory / "home"
        self.project = directory / "company"
        self._capsys = capsys

    def run(self, *arguments: str) -> Output:
        """The exit code and the output of `nexus setup`."""
        return run_nexus(self._capsys, "setup", *arguments)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        write_file(path, text)
        return path

    def files(self) -> dict[str, bytes]:
        """The files of home and project, without those of Nexus itself."""
        roots = (self.path, self.project)
        paths = [path for root in roots for path in sorted(root.rglob("*")) if "state" not in path.parts]
        return {
            str(path.relative_to(self.path.parent)): b"directory" if path.is_dir() else path.read_bytes()
            for path in paths
        }


@pytest.fixture
def home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Home]:
    home = Home(tmp_path, capsys)
    bin_directory = tmp_path / "bin"
    for directory in (home.path, home.project, bin_directory):
        directory.mkdir()
    program = bin_directory / "nexus"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home.path))
    monkeypatch.setenv("USERPROFILE", str(home.path))
    monkeypatch.setenv("NEXUS_STATE", str(home.path / "state"))
    monkeypatch.setenv("PATH", str(bin_directory))
    monkeypatch.chdir(home.project)
    yield home


def value_of(path: Path) -> dict[str, Any]:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("assistant", sorted(WITH_SETUP))
def test_setup_then_undo_leaves_nothing(home: Home, assistant: str, scope: str) -> None:
    before = home.files()
    assert home.run(assistant, "--scope", scope, "--yes")[0] == 0
    root, names = (home.path, USER_FILES) if scope == "user" else (home.project, PROJECT_FILES)
    other = home.project if scope == "user" else home.path
    assert all((root / name).is_file() for name in names[assistant])
    assert [path for path in other.rglob("*") if "state" not in path.parts] == []
    assert home.run(assistant, "--scope", scope, "--undo", "--yes")[0] == 0
    assert home.files() == before


def test_settings_that_a_project_shares_name_no_path(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    code, _, errors = home.run("claude-code", "--scope", "project", "--yes")
    assert (code, "nexus is not on your PATH" in errors) == (0, True)
    commands = [
        group["hooks"][0]["command"]
        for groups in value_of(home.project / CLAUDE)["hooks"].values()
        for group in groups
    ]
    assert all(command.startswith("nexus hook ") for command in commands)


@pytest.mark.parametrize("variable", setup.ENVIRONMENTS)
@pytest.mark.parametrize(("scope", "begins_with_path"), [("user", True), ("project", False)])
def test_an_active_environment_is_named_by_its_path(
    home: Home, monkeypatch: pytest.MonkeyPatch, scope: str, begins_with_path: bool, variable: str
) -> None:
    """Another shell does not have it on its PATH."""
    command = shutil.which("nexus")
    assert command is not None
    monkeypatch.setenv(variable, str(Path(command).parent.parent))
    out = home.run("claude-code", "--scope", scope, "--dry-run").out
    assert (f'"command": "{command} statusline"' in out) == begins_with_path
    assert ('"command": "nexus statusline"' in out) != begins_with_path


def test_what_is_written_for_claude_code(home: Home) -> None:
    home.run("claude-code", "--yes")
    settings = value_of(home.path / CLAUDE)
    assert settings["statusLine"] == {"type": "command", "command": "nexus statusline"}
    assert {
        event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()
    } == snapshot(
        {
            "SessionStart": "nexus hook claude-code SessionStart",
            "SessionEnd": "nexus hook claude-code SessionEnd",
            "InstructionsLoaded": "nexus hook claude-code InstructionsLoaded",
            "PreCompact": "nexus hook claude-code PreCompact",
            "SubagentStop": "nexus hook claude-code SubagentStop",
            "Stop": "nexus hook claude-code Stop",
        }
    )
    assert value_of(home.path / ".claude.json") == snapshot(
        {"mcpServers": {"nexus": {"type": "stdio", "command": "nexus", "args": ["mcp"], "env": {}}}}
    )


def test_what_is_written_for_codex(home: Home) -> None:
    home.run("codex", "--yes", "--memory")
    settings = value_of(home.path / ".codex/config.toml")
    assert settings["mcp_servers"] == {"nexus": {"command": "nexus", "args": ["mcp"]}}
    assert {
        event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()
    } == snapshot(
        {
            "SessionStart": "nexus hook codex SessionStart",
            "SessionEnd": "nexus hook codex SessionEnd",
            "PreCompact": "nexus hook codex PreCompact",
            "PostCompact": "nexus hook codex PostCompact",
            "Stop": "nexus hook codex Stop",
            "UserPromptSubmit": "nexus hook codex UserPromptSubmit --memory",
        }
    )


def test_the_preview_is_a_diff(home: Home) -> None:
    home.write(".gemini/settings.json", '{\n  "apiKey": "AIzaSyA1234567890123456789012345678901"\n}\n')
    code, out, err = home.run("gemini", "--dry-run")
    assert (code, err) == (0, "")
    assert "AIzaSy" not in out
    assert out.splitlines()[-1].startswith("The hooks tell Nexus when a session starts")
    assert "\n".join(out.replace(str(home.path), "~").splitlines()[:12]) == snapshot("""\
--- ~/.gemini/settings.json
+++ ~/.gemini/settings.json
@@ -1,3 +1,49 @@
 {
-  "apiKey": "**************************************"
+  "apiKey": "**************************************",
+  "hooks": {
+    "SessionStart": [
+      {
+        "hooks": [
+          {
+            "type": "command",\
""")
    assert value_of(home.path / ".gemini/settings.json") == {
        "apiKey": "AIzaSyA1234567890123456789012345678901"
    }


def test_hand_written_settings_survive(home: Home) -> None:
    path = home.write(CLAUDE, HAND_WRITTEN)
    code, _, err = home.run("claude-code", "--yes")
    assert code == 0
    assert err == (
        f"nexus setup: {path}: your status line stays as it is. To have that of Nexus, set its command to "
        "`nexus statusline`, or remove it and run this again.\n"
    )
    settings = value_of(path)
    assert settings["statusLine"]["command"] == "my-line"
    assert [group["hooks"][0]["command"] for group in settings["hooks"]["Stop"]] == [
        "say done",
        "nexus hook claude-code Stop",
    ]
    assert home.run("claude-code", "--undo", "--yes")[0] == 0
    assert path.read_text() == HAND_WRITTEN


def test_a_second_setup_changes_nothing(home: Home) -> None:
    home.write(CLAUDE, HAND_WRITTEN)
    home.run("claude-code", "--yes")
    before = home.files()
    code, out, _ = home.run("claude-code")
    assert (code, out) == (0, "Claude Code is set up already.\n")
    assert home.files() == before


def test_what_a_program_moved_stays_where_it_is(home: Home) -> None:
    home.run("claude-code", "--yes")
    path = home.path / ".claude.json"
    moved = {"first": 1, **value_of(path), "last": {}}
    path.write_text(json.dumps(moved, indent=4))
    code, out, _ = home.run("claude-code")
    assert (code, out) == (0, "Claude Code is set up already.\n")
    home.run("claude-code", "--undo", "--yes")
    assert path.read_text() == '{\n    "first": 1,\n    "last": {}\n}'


def test_a_later_setup_updates_the_entries(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write(CLAUDE, HAND_WRITTEN)
    home.run("claude-code", "--yes", "--memory")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", str(home.path.parent / "bin" / "python"))
    home.run("claude-code", "--yes")
    hooks = value_of(path)["hooks"]
    assert [len(groups) for groups in hooks.values()] == [2, 1, 1, 1, 1, 1]
    assert "UserPromptSubmit" not in hooks
    program = home.path.parent / "bin" / "nexus"
    assert hooks["PreCompact"][0]["hooks"][0]["command"] == f"{program} hook claude-code PreCompact"
    home.run("claude-code", "--undo", "--yes")
    assert path.read_text() == HAND_WRITTEN


def test_hooks_of_ours_that_the_user_wrote_are_not_doubled(home: Home) -> None:
    handler = '{"type": "command", "command": "/opt/nexus hook claude-code Stop"}'
    text = f'{{"hooks": {{"Stop": [{{"hooks": [{handler}]}}]}}}}'
    path = home.write(CLAUDE, text)
    home.run("claude-code", "--yes")
    assert len(value_of(path)["hooks"]["Stop"]) == 1
    home.run("claude-code", "--undo", "--yes")
    assert path.read_text() == text


def test_undo_without_a_record(home: Home) -> None:
    path = home.write(CLAUDE, HAND_WRITTEN)
    home.run("claude-code", "--yes")
    (home.path / "state" / "setup.json").unlink()
    code, _, err = home.run("claude-code", "--undo", "--yes")
    assert code == 0
    assert "no record of a setup" in err
    assert value_of(path) == {**json.loads(HAND_WRITTEN), "hooks": value_of(path)["hooks"]}
    assert "nexus" not in path.read_text()


def test_a_record_that_is_broken(home: Home) -> None:
    home.run("claude-code", "--yes")
    (home.path / "state" / "setup.json").write_text("{")
    code, _, err = home.run("claude-code", "--undo", "--yes")
    assert code == 1
    assert "it says how to undo a setup" in err


@pytest.mark.parametrize(
    ("assistant", "name", "text", "message"),
    [
        ("claude-code", CLAUDE, '{"a": 1,\n "b" 2}', ":2:"),
        ("claude-code", CLAUDE, "[]", ":1: The settings are not an object."),
        ("claude-code", ".claude.json", '{"mcpServers": []}', "`mcpServers` is not an object."),
        ("codex", ".codex/config.toml", "a = 1\nb = = 2\n", ":2:5: Invalid value."),
        ("gemini", ".gemini/settings.json", "{\n\n}}", ":3:2:"),
    ],
)
def test_broken_settings_stay_as_they_are(
    home: Home, assistant: str, name: str, text: str, message: str
) -> None:
    path = home.write(name, text)
    before = home.files()
    code, out, err = home.run(assistant, "--yes")
    assert (code, out) == (1, "")
    assert str(path) + message in err or (str(path) in err and message in err)
    assert home.files() == before


def test_settings_that_are_not_utf8(home: Home) -> None:
    path = home.path / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(b'{\n"a": "\xff"}')
    assert home.run("gemini", "--yes") == (
        1,
        "",
        f"nexus setup: {path}:2: This is not UTF-8. Nothing was written: fix the file first.\n",
    )


@pytest.mark.parametrize(("text", "noun"), [("// x\n{}\n", "comment"), ('{"a": 1,}', "trailing comma")])
def test_settings_that_claude_code_does_not_load(home: Home, text: str, noun: str) -> None:
    path = home.write(CLAUDE, text)
    code, _, err = home.run("claude-code", "--yes")
    assert code == 0
    assert f"{path}:1: the program does not load a file with a {noun}" in err
    home.run("claude-code", "--undo", "--yes")
    assert path.read_text() == text


def test_without_a_terminal_it_writes_nothing(home: Home) -> None:
    before = home.files()
    code, _, err = home.run("claude-code")
    assert (code, err) == (
        1,
        "nexus setup: it asks for confirmation, which needs a terminal; use --yes to write without it.\n",
    )
    assert home.files() == before


@pytest.mark.parametrize(("answer", "is_written"), [("y\n", True), ("n\n", False), ("", False)])
def test_it_asks(home: Home, monkeypatch: pytest.MonkeyPatch, answer: str, is_written: bool) -> None:
    monkeypatch.setattr(output, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    code, _, err = home.run("gemini")
    assert err.endswith("Write this? [y/N] " + ("" if is_written else "nexus setup: nothing was changed.\n"))
    assert (code == 0, (home.path / ".gemini/settings.json").exists()) == (is_written, is_written)


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.write(CLAUDE, "{}\n")

    class Typing(io.StringIO):
        def readline(self, *_: Any) -> str:  # type: ignore[override]
            path.write_text('{"model": "opus"}\n')
            return "y\n"

    monkeypatch.setattr(output, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", Typing())
    code, _, err = home.run("claude-code")
    assert code == 1
    assert f"{path} was changed meanwhile, and stays as it is. Run this again." in err
    assert path.read_text() == '{"model": "opus"}\n'


def test_links_and_permissions_are_kept(home: Home) -> None:
    target = home.path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text("{}\n")
    target.chmod(0o640)
    link = home.path / CLAUDE
    link.parent.mkdir()
    link.symlink_to(target)
    for options in ((), ("--undo",)):
        assert home.run("claude-code", "--yes", *options)[0] == 0
        assert link.is_symlink()
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.read_text() == "{}\n"
    assert sorted(path.name for path in target.parent.iterdir()) == ["claude.json"]


def test_a_full_disk(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write(CLAUDE, "{}\n")
    home.run("claude-code", "--yes")
    home.run("claude-code", "--undo", "--yes")
    before = home.files()

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    code, _, err = home.run("claude-code", "--yes")
    assert code == 1
    assert err.endswith("setup.json cannot be written: No space left on device. Nothing was written.\n")
    assert home.files() == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["settings.json"]
    assert [each.name for each in (home.path / "state").iterdir()] == ["setup.json"]


def test_a_plugin_of_the_user_stays(home: Home) -> None:
    path = home.write(".config/opencode/plugins/nexus.js", "// mine\n")
    code, _, err = home.run("opencode", "--yes")
    assert code == 0
    assert f"{path}: a file of this name is there, and stays." in err
    home.run("opencode", "--undo", "--yes")
    assert path.read_text() == "// mine\n"


def test_a_plugin_that_was_changed_since_stays(home: Home) -> None:
    home.run("opencode", "--yes")
    path = home.path / ".config/opencode/plugins/nexus.js"
    path.write_text("// changed\n")
    _, _, err = home.run("opencode", "--undo", "--yes")
    assert "was changed since, and stays: remove it by hand." in err
    assert path.read_text() == "// changed\n"


def test_what_programs_name_otherwise(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home.path / name))
    for assistant in WITH_SETUP:
        home.run(assistant, "--yes")
    names = sorted(str(path.relative_to(home.path)) for path in home.path.rglob("*") if path.is_file())
    assert names == snapshot(
        [
            ".gemini/settings.json",
            "CLAUDE_CONFIG_DIR/.claude.json",
            "CLAUDE_CONFIG_DIR/settings.json",
            "CODEX_HOME/config.toml",
            "XDG_CONFIG_HOME/opencode/opencode.json",
            "XDG_CONFIG_HOME/opencode/plugins/nexus.js",
            "state/setup.json",
        ]
    )


def test_memory_needs_a_hook_for_prompts(home: Home) -> None:
    assert home.run("opencode", "--memory")[0] == 2
