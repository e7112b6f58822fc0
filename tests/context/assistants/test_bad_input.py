"""Whatever is in the place of a program's file: its profile is there, soon, and places lie in their texts."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.profile_types import Profile, Surroundings
from nexus_context.assistants.reading.toml import MOST_NAMES
from nexus_context.assistants.views.profile import read_profile

LONGEST_S = 3.0
"""Twenty times what the slowest takes; what grows with a square takes minutes."""

FILES = {
    "claude-code": "~/.claude.json ~/.claude/settings.json .claude/settings.json .mcp.json CLAUDE.md"
    " .claude/rules/a.md .claude/agents/a.md .claude/skills/s/SKILL.md .claude/commands/c.md"
    " .claude/output-styles/o.md",
    "codex": "~/.codex/config.toml .codex/config.toml .codex/agents/a.toml AGENTS.md"
    " .agents/skills/s/SKILL.md",
    "opencode": "~/.config/opencode/opencode.json opencode.json .opencode/agent/a.md .opencode/command/c.md"
    " .opencode/skills/s/SKILL.md",
    "gemini": "~/.gemini/settings.json .gemini/settings.json GEMINI.md"
    " .gemini/extensions/x/gemini-extension.json",
    "copilot": ".vscode/settings.json .vscode/mcp.json .github/copilot-instructions.md"
    " .github/instructions/a.instructions.md",
    "cursor": "~/.cursor/mcp.json .cursor/mcp.json .cursor/rules/a.mdc .cursorrules",
}
PLACES = [(program, name) for program, names in FILES.items() for name in names.split()]
GLOB = "{a,b}" * 30 + "/**" * 20 + "*a" * 30
_LAUGHS = "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS = {
    "a bomb of anchors": f"---\na: &a [x,x,x]\n{_LAUGHS}description: *i\n---\nText.\n",
    "globs": f'---\npaths: "{GLOB}"\nglobs: "{GLOB}"\napplyTo: "{GLOB}"\ndescription: d\n---\nText.\n',
    "globs in settings": f'{{"claudeMdExcludes": ["/{GLOB}"], "instructions": ["{GLOB}"], '
    f'"chat.instructionsFilesLocations": {{"{GLOB}": true}}, '
    f'"permission": {{"skill": {{"{GLOB}": "deny"}}}}, '
    '"deniedMcpServers": [{"serverUrl": "'
    + "*a" * 50
    + 'b"}], "mcpServers": {"a": {"url": "'
    + "a" * 90
    + '"}}}',
    "arrays": "[" * 50_000,
    "objects": '{"a":' * 50_000,
    "tables of TOML": f"a = {'[' * 20_000}",
    "names of TOML": f"{'.'.join(['a'] * 20_000)} = 1",
    "tables twice": "[a]\nb = 1\n[a]\nb = 2\n",
    "digits": f"a = {'9' * 50_000}",
    "digits of JSON": f'{{"a": {"9" * 50_000}}}',
    "half a character": '{"\\ud800": {"command": "\\ud800"}, '
    '"mcpServers": {"\\ud800": {"command": "\\ud800"}}}',
    "other types": '{"mcpServers": [], "env": 5, "permissions": [], "hooks": "x", "mcp": 5, "agent": []}',
    "nulls": '{"mcpServers": null, "env": null, "permissions": null, "mcp": null, "context": null}',
    "imports": "@" + " @".join(f"x{number}.md" for number in range(1_500)),
    "marks": "<!--" * 5_000 + "`" * 5_000 + "@" * 5_000 + "---\n" * 500,
    "NUL": "\0" * 100,
    "nothing": "",
}


def bind(path: Path) -> None:
    """A socket; where its path is too long for one, nothing."""
    with socket.socket(socket.AF_UNIX) as one:
        if len(str(path)) < 100:
            one.bind(str(path))


def foreign(path: Path) -> None:
    """A file of another user, which a program that runs as this one reads, or does not."""
    path.write_text("{}")
    if os.geteuid() == 0:
        os.chown(path, 65_534, 65_534)
    path.chmod(0)


THINGS: dict[str, Callable[[Path], object]] = {
    "a directory": lambda path: path.mkdir(),
    "a FIFO": lambda path: os.mkfifo(path),
    "a socket": bind,
    "a loop": lambda path: path.symlink_to(path.name),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "another user's": foreign,
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 10),
    "UTF-16": lambda path: path.write_bytes('{"a": 1}'.encode("utf-16")),
}


def place(root: Path, name: str) -> Path:
    """The path of a file of the user's (`~`) or of the folder; its directory is there."""
    path = root / ("home" if name.startswith("~/") else "home/w") / name.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def check(program: str, root: Path) -> Profile:
    """Read a profile, in time; each problem is in its file."""
    (root / "home/w").mkdir(parents=True, exist_ok=True)
    surroundings = Surroundings(str(root / "home/w"), str(root / "home"), {}, trusted=True)
    start = time.thread_time()  # other tests run beside
    profile = read_profile(program, surroundings, counted=False)
    assert time.thread_time() - start < LONGEST_S
    for problem in profile.problems:
        text = profile.texts.get(problem.path, "")
        assert problem.span == (0, 0) or 0 <= problem.span.start <= problem.span.end <= len(text)
        assert problem.code.startswith("assistant.")
        assert problem.message.endswith((".", "?")), problem.message
    return profile


@pytest.mark.parametrize(("program", "name"), PLACES)
def test_a_text(program: str, name: str, tmp_path: Path) -> None:
    for number, text in enumerate(TEXTS.values()):
        place(tmp_path / str(number), name).write_text(text, encoding="utf-8", errors="surrogatepass")
        check(program, tmp_path / str(number))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="files of POSIX")
@pytest.mark.parametrize(("program", "name"), PLACES)
def test_what_is_no_file(program: str, name: str, tmp_path: Path) -> None:
    for number, make in enumerate(THINGS.values()):
        path = place(tmp_path / str(number), name)
        make(path)
        check(program, tmp_path / str(number))
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)


SETTINGS = {
    "claude-code": (
        ".claude/settings.json",
        '{"env": {"A": "é😀"}, "permissions": {"deny": ["Read(.env)"]}, "claudeMdExcludes": ["/x/**"]}',
    ),
    "codex": (
        ".codex/config.toml",
        'model = "é"\npersonality = 5\n[mcp_servers."a.b"]\ncommand = """x\ny"""\nargs = ["a", {}]\n',
    ),
    "opencode": ("opencode.json", '{/* é */ "mcp": {"a": {"type": "local", "command": ["x"]}}, // y\n}'),
    "gemini": (
        ".gemini/settings.json",
        '{"context": {"fileName": ["A.md", "é.md"]}, "mcpServers": {"a": {}}}',
    ),
    "copilot": (".vscode/mcp.json", '{"servers": {"a": {"command": "${input:é}"}}, "inputs": []}'),
    "cursor": (".cursor/mcp.json", '{"mcpServers": {"é": {"command": "x", "env": {"A": "${env:B}"}}}}'),
}


@pytest.mark.parametrize("program", SETTINGS)
def test_settings_that_are_cut_at_every_byte(program: str, tmp_path: Path) -> None:
    name, text = SETTINGS[program]
    path, data = place(tmp_path, name), text.encode()
    for end in range(len(data) + 1):
        path.write_bytes(data[:end])
        check(program, tmp_path)


READ_BY_ALL = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".claude/rules/a.md", ".github/copilot-instructions.md")


@pytest.mark.parametrize("program", PROGRAMS)
def test_imports_in_a_circle_through_files_of_other_programs(program: str, tmp_path: Path) -> None:
    imports = " ".join(f"@./{name} @../{name} @../../{name}" for name in READ_BY_ALL)
    for name in READ_BY_ALL:
        place(tmp_path, name).write_text(f"Text of {name}. {imports}\n")
    profile = check(program, tmp_path)
    assert profile.blocks
    assert len(profile.blocks[0].text) < 1_000_000


def test_a_key_with_many_names_is_told(tmp_path: Path) -> None:
    path = place(tmp_path, ".codex/config.toml")
    path.write_text(f"model = '{'.'.join(['a'] * 200)}'  # {'.'.join(['a'] * 200)}\n")
    assert check("codex", tmp_path).problems == ()
    for count, stops in ((MOST_NAMES, False), (MOST_NAMES + 1, True)):
        path.write_text(f"desktop.{'.'.join(['a'] * (count - 1))} = 1\n")
        messages = [each.message for each in check("codex", tmp_path).problems]
        assert any("more than 100 names" in each for each in messages) == stops
