"""`nexus tokens`, `init`, `schema`, and the command line as a whole."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import main
from nexus_daemon.cli.commands import COMMANDS
from nexus_daemon.cli.folder import read
from nexus_daemon.process.version import __version__
from support.commands import run_nexus, use_home
from support.fixture import write_file

NAMES = ["NEXUS.md", "config.json", "mcp.json"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    use_home(monkeypatch, tmp_path)
    return home


# ---------------------------------------------------------------- a word that is no choice


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["chekc"], "check"),
        (["sesions", "list"], "sessions"),
        (["sessions", "lst"], "list"),
        (["skill", "shw", "x"], "show"),
        (["memory", "ad", "x"], "add"),
        (["check", "--level", "hnt"], "hint"),
        (["show", "--for", "cursr"], "cursor"),
        (["nothing-like-it"], None),
    ],
)
def test_a_misspelt_word(capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str | None) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    shown = capsys.readouterr().err
    assert f"did you mean {meant}?" in shown if meant else "invalid choice" in shown


# ---------------------------------------------------------------- a new folder

BEGINS = {
    "sessions list": "nexus sessions append main TEXT",
    "sessions list --assistants": "start one of them there",
    "sessions keep": "start one of them there",
    "memory list": "nexus memory add TEXT",
    "memory query": "nexus memory add TEXT",
    "agents list": "nexus agents spawn NAME",
    "skill list": ".nexus3/skills/NAME/SKILL.md",
    "knowledge query x": "memory.knowledge.paths",
    "show --for claude-code": "write CLAUDE.md",
    "show --for codex": "write AGENTS.md",
    "watch --once": "nexus sessions list --assistants --all",
}


@pytest.mark.parametrize("command", BEGINS)
def test_what_has_nothing_to_do_says_what_begins_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path / "state"))
    new = tmp_path / "new"
    new.mkdir()
    monkeypatch.chdir(new)
    _, shown, errors = run_nexus(capsys, *command.split())
    assert BEGINS[command] in shown + errors


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], "        2  {one}\n        6  {two}\n        8  total\ncounted with o200k_base\n"),
        (
            ["--encoding", "cl100k_base"],
            "        2  {one}\n        6  {two}\n        8  total\ncounted with cl100k_base\n",
        ),
    ],
)
def test_tokens_of_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], shown: str
) -> None:
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text("hello world")
    two.write_text("tiktoken is great!")
    expected = shown.format(one=one, two=two)
    assert run_nexus(capsys, "tokens", *arguments, str(one), str(two)) == (0, expected, "")


def test_tokens_of_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello world")))
    assert run_nexus(capsys, "tokens", "-") == (0, "        2  -\ncounted with o200k_base\n", "")


def test_an_estimate_says_that_it_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("hello world")
    code, shown, _ = run_nexus(capsys, "tokens", "--model", "claude-sonnet-4-5", str(file))
    assert (code, shown.replace(str(tmp_path), "")) == snapshot(
        (
            0,
            """\
≈        3  /file
counted with o200k_base × 1.18 (Claude), an estimate for this model
""",
        )
    )


def test_a_file_that_cannot_be_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fine = tmp_path / "fine"
    fine.write_text("hello world")
    code, shown, errors = run_nexus(capsys, "tokens", str(tmp_path / "missing"), str(fine))
    assert code == 1
    assert shown.replace(str(tmp_path), "") == snapshot("""\
        2  /fine
        2  total
counted with o200k_base
""")
    assert errors.replace(str(tmp_path), "") == snapshot("""\
nexus tokens: /missing: The file does not exist.
""")


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        (["docs"], ["docs/a.md", "docs/sub/b.txt", "docs/sub/.c"]),
        (["docs/"], ["docs/a.md", "docs/sub/b.txt", "docs/sub/.c"]),
        (["."], ["d.md", "docs/a.md", "docs/sub/b.txt", "docs/sub/.c"]),
        (["docs/*.md"], ["docs/a.md"]),
        (["docs/*"], ["docs/a.md", "docs/sub/b.txt", "docs/sub/.c"]),
        (["**/*.txt"], ["docs/sub/b.txt"]),
        (["d.md", "docs/sub"], ["d.md", "docs/sub/b.txt", "docs/sub/.c"]),
        (["docs", "docs/a.md"], ["docs/a.md", "docs/sub/b.txt", "docs/sub/.c"]),
        (["docs/image.png"], ["docs/image.png"]),
        (["docs/[0-9]*"], []),
        (["docs/.git"], ["docs/.git/HEAD"]),
    ],
)
def test_tokens_of_all_below(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    counted: list[str],
) -> None:
    for name in (
        "docs/a.md",
        "docs/sub/b.txt",
        "docs/sub/.c",
        "docs/.git/HEAD",
        "docs/node_modules/x",
        "d.md",
    ):
        write_file(tmp_path / name, "hello world")
    (tmp_path / "docs" / "image.png").write_bytes(b"\x89PNG\0\0")
    monkeypatch.chdir(tmp_path)
    code, shown, errors = run_nexus(capsys, "tokens", *arguments)
    names = [line.split("  ")[-1] for line in shown.splitlines()[:-1]]
    several = len(arguments) > 1 or len(counted) > 1
    assert (code, sorted(names)) == (0 if counted else 1, sorted([*counted, "total"] if several else counted))
    assert ("there is no text file" in errors) is not bool(counted)


@pytest.mark.parametrize(
    ("data", "count", "why"),
    [
        ("hello world".encode("utf-16"), 2, "The file is encoded in UTF-16-LE, not UTF-8."),
        (b"hello w\xf6rld", 4, "The file is not UTF-8: byte 0xF6 at byte 7"),
    ],
)
def test_a_count_of_what_is_not_utf8_is_not_exact(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    data: bytes,
    count: int,
    why: str,
) -> None:
    fine, odd = tmp_path / "fine", tmp_path / "odd"
    fine.write_text("hello world")
    odd.write_bytes(data)
    code, shown, errors = run_nexus(capsys, "tokens", str(fine), str(odd))
    assert (code, shown.splitlines()) == (
        0,
        [
            f"        2  {fine}",
            f"≈        {count}  {odd}",
            f"≈        {count + 2}  total",
            "counted with o200k_base",
        ],
    )
    assert errors.startswith(f"nexus tokens: {odd}: {why}")
    assert errors.endswith("The count is an estimate: it covers only what could be read.\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run_nexus(capsys, "tokens", "-") == (
        0,
        f"≈        {count}  -\ncounted with o200k_base\n",
        errors.replace(str(odd), "-"),
    )


# ---------------------------------------------------------------- init


def test_init(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / ".nexus3" / name for name in NAMES]
    assert run_nexus(capsys, "init", str(tmp_path)) == (
        0,
        "".join(f"created  {path}\n" for path in paths),
        "",
    )
    paths[0].write_text("Mine.")
    assert run_nexus(capsys, "init", str(tmp_path)) == (
        0,
        "".join(f"exists   {path}\n" for path in paths),
        "",
    )
    assert paths[0].read_text() == "Mine."
    assert run_nexus(capsys, "check", str(tmp_path))[0] == 0


@pytest.mark.parametrize("instructions", ["", "# Mine\nAnswer in one sentence.\n"], ids=["none", "some"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_fresh_init_costs_nothing_and_gives_no_diagnostics(
    tmp_path: Path, instructions: str, line_end: str
) -> None:
    if instructions:
        (tmp_path / "AGENTS.md").write_text(instructions)
    before = read(tmp_path)
    main(["init", str(tmp_path)])
    written = tmp_path / ".nexus3" / "NEXUS.md"
    written.write_text(written.read_text(), newline=line_end)
    after = read(tmp_path)
    assert {problem.code for problem in after.problems} <= {"layer.line-endings"}
    assert instructions.strip() in after.prompt.text
    assert "## Overview" not in after.prompt.text
    assert instructions or after.prompt.text == before.prompt.text
    written.write_text(written.read_text().replace("## Key Files\n", "## Key Files\nLook at main.py.\n"))
    filled = read(tmp_path)
    assert filled.problems == after.problems or line_end == "\r\n"
    assert "Look at main.py." in filled.prompt.text


def test_init_adopts_servers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / ".mcp.json"
    source.write_text('{"mcpServers": {"db": {"command": "db", "env": {"PGPASSWORD": "hunter2"}}}}')
    paths = [tmp_path / ".nexus3" / name for name in ("NEXUS.md", "config.json", "mcp.json")]
    adopted = f"adopted  db from {source}: set PGPASSWORD, the values stay in that file\n"
    shown = "".join(f"would create  {path}\n" for path in paths) + adopted
    assert run_nexus(capsys, "init", "--adopt", "--dry-run", str(tmp_path)) == (0, shown, "")
    assert not (tmp_path / ".nexus3").exists()
    created = "".join(f"created  {path}\n" for path in paths) + adopted
    assert run_nexus(capsys, "init", "--adopt", str(tmp_path)) == (0, created, "")
    assert json.loads(paths[2].read_text()) == {
        "servers": [{"name": "db", "command": ["db"], "env": {"PGPASSWORD": "${PGPASSWORD}"}}]
    }
    left = f"left     all servers in {source}: {paths[2]} exists already, and is never changed.\n"
    existing = "".join(f"exists   {path}\n" for path in paths)
    assert run_nexus(capsys, "init", "--adopt", str(tmp_path)) == (0, existing + left, "")
    assert run_nexus(capsys, "init", "--global", "--adopt")[0] == 2


def test_init_adopts_servers_into_an_untouched_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_nexus(capsys, "init", str(tmp_path))[0] == 0
    source, target = tmp_path / ".mcp.json", tmp_path / ".nexus3" / "mcp.json"
    source.write_text('{"mcpServers": {"db": {"command": "db"}}}')
    existing = "".join(f"exists   {target.with_name(name)}\n" for name in ("NEXUS.md", "config.json"))
    adopted = f"adopted  db from {source}\n"
    dry = f"would replace  {target}\n{existing}{adopted}"
    assert run_nexus(capsys, "init", "--adopt", "--dry-run", str(tmp_path)) == (0, dry, "")
    done = f"replaced  {target}\n{existing}{adopted}"
    assert run_nexus(capsys, "init", "--adopt", str(tmp_path)) == (0, done, "")
    assert json.loads(target.read_text()) == {"servers": [{"name": "db", "command": ["db"]}]}
    assert "is never changed" in run_nexus(capsys, "init", "--adopt", str(tmp_path))[1]


def test_init_of_what_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, errors = run_nexus(capsys, "init", str(tmp_path / "missing"))
    assert (code, errors.replace(str(tmp_path), "")) == snapshot(
        (2, "nexus init: /missing is not a directory.\n")
    )
    (tmp_path / ".nexus3").write_text("a file")
    code, _, errors = run_nexus(capsys, "init", str(tmp_path))
    assert (code, errors.replace(str(tmp_path), "")) == snapshot(
        (1, "nexus init: Cannot write /.nexus3: File exists. Is the folder writable?\n")
    )


@pytest.mark.parametrize("command", [["init", "--global"], ["--init-global"]])
def test_init_global(home: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    directory = home / ".nexus3"
    code, shown, _ = run_nexus(capsys, *command)
    assert (code, shown) == (0, "".join(f"created  {directory / name}\n" for name in NAMES))
    (directory / "NEXUS.md").write_text("Mine.")
    code, shown, errors = run_nexus(capsys, *command)
    assert (code, shown) == (1, "")
    assert errors.replace(str(home), "") == snapshot(
        "nexus init: /.nexus3 exists already. Use --force to replace its files.\n"
    )
    assert (directory / "NEXUS.md").read_text() == "Mine."
    (directory / "more.md").write_text("Kept.")
    code, shown, _ = run_nexus(capsys, *command, "--force")
    assert (code, shown.count("created")) == (0, 3)
    assert "Mine." not in (directory / "NEXUS.md").read_text()
    assert (directory / "more.md").read_text() == "Kept."


def test_init_global_where_nexus_home_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_HOME", str(tmp_path / "elsewhere"))
    assert run_nexus(capsys, "init", "--global")[0] == 0
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == sorted(NAMES)


def test_force_is_for_the_global_directory_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, errors = run_nexus(capsys, "init", "--force", str(tmp_path))
    assert (code, errors) == snapshot(
        (2, "nexus init: --force needs --global: a project's files are never replaced.\n")
    )
    assert not (tmp_path / ".nexus3").exists()


# ---------------------------------------------------------------- schema, help


@pytest.mark.parametrize("arguments", [[], ["config"], ["mcp"]])
def test_schema(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, shown, _ = run_nexus(capsys, "schema", *arguments)
    schema = json.loads(shown)
    assert (code, "json-schema.org" in schema["$schema"]) == (0, True)
    known = {"servers", "mcpServers"} if arguments == ["mcp"] else {"provider", "context", "tools"}
    assert known <= {key for part in [schema, *schema.get("anyOf", [])] for key in part.get("properties", {})}


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line[2:3].isalpha()]
    assert sorted(name for name in listed if name in COMMANDS) == sorted(COMMANDS)
    assert "\x1b" not in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: nexus {command}")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"nexus {__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_version_that_cannot_be_written() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-P", "-m", "nexus_daemon", "--version"]
        done = subprocess.run(
            command, env=environ, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode != 0
    assert "No space left on device" in done.stderr


def test_the_installed_command(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello world")
    nexus = Path(sys.executable).parent / "nexus"
    done = subprocess.run(
        [str(nexus), "tokens", "file", "-"],
        cwd=tmp_path,
        input="hello",
        env={**os.environ, "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot("""\
        2  file
        1  -
        3  total
counted with o200k_base
""")
