"""A command that runs for another process prints the same bytes as in that process, and leaks nothing."""

import gc
import locale
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nexus_context.disk import containment
from nexus_daemon.cli import main, output, tokens, warm
from nexus_daemon.cli.commands import WARM, may_run_warm
from nexus_daemon.cli.invocation import current
from nexus_daemon.shared.command_runner import CommandRequest
from support import hostile
from support.fixture import write_fixture
from support.warm import Printed, request, run_process, run_warm

terminal = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")

BROKEN = """
//- /home/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "context": {"git": true}}
//- /home/a/.nexus3/config.json
{"provider": {"name": "openai",}, "tools": 1}
//- /home/a/.nexus3/skills/größe/SKILL.md
---
name: größe
---
//- /home/a/NEXUS.md
# Regeln — 規則 🧪
Sag „ja“. @nicht-da.md
//- /home/a/sub/AGENTS.md
Be brief.
//- /home/r/AGENTS.md
Grüße.
"""
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b")
HERE: list[tuple[str, ...]] = [
    ("overview",),
    ("overview", "a"),
    ("check",),
    ("check", ".", "--format", "json"),
    ("check", "a/sub", "--format", "github", "--strict", "--level", "hint"),
    ("check", "a/.nexus3/config.json"),
    ("check", "a", "--format", "sarif"),
    ("check", "a/nowhere"),
    ("show", "a"),
    ("show", "a", "--source", "--message", "Grüße 🧪"),
    ("show", "a/sub", "--tokens", "--model", "claude-sonnet-4-5"),
    ("show", "a", "--format", "anthropic", "--model", "gpt-4o"),
    ("show", "a", "--layers"),
    ("show", "a/sub", "--for", "codex", "--source"),
    ("show", "a", "--for", "all"),
    ("show", "a", "--for", "claude-code", "--format", "json"),
    ("check", "a/sub", "--for", "all", "--level", "hint"),
    ("check", "a", "--for", "codex", "--format", "github", "--level", "hint"),
    ("check", "a/sub", "--for", "all", "--budget", "0"),
    ("explain", "--folder", "a", "git push"),
    ("explain", "--folder", "a", "NEXUS.md:1", "--for", "all"),
    ("explain", "--folder", "a", "/context/max_tokens"),
    ("explain", "--folder", "a", "mcp:nope", "--for", "nexus"),
    ("diff", "HEAD", "a"),
    ("diff", "HEAD", "r", "--format", "markdown"),
    ("tokens", "a/NEXUS.md", "a/../a/sub/AGENTS.md", "none"),
    ("tokens", "--accuracy"),
    ("tokens", "--accuracy", "--json"),
    ("skill", "list", "--folder", "a"),
    ("skill", "show", "größe", "--folder", "a", "--json"),
    ("skill", "use", "nope", "--folder", "a"),
    ("memory", "list", "--folder", "a"),
    ("memory", "query", "ja", "--folder", "a"),
    ("mcp", "--tool", "show_context", "--folder", "a"),
    ("mcp", "--tool", "show_context", "--folder", "a/sub", "--for", "codex", "--json"),
    ("mcp", "--tool", "check_configuration", "--folder", "a", "--max-tokens", "200"),
    ("mcp", "--tool", "search_conversations", "--folder", "a", "--arguments", '{"query": "ja"}'),
    ("mcp", "--tool", "query_memory", "--folder", "a", "--arguments", "{"),
    ("mcp", "--tool", "search_knowledge", "--folder", "a", "--arguments", '{"query": "Grüße"}'),
    ("sessions", "list", "--folder", "a"),
    ("sessions", "list", "--all", "--json"),
    ("sessions", "list", "--assistants", "--all"),
    ("sessions", "show", "main", "--folder", "a"),
    ("sessions", "search", "ja", "-nein", "--folder", "a"),
]
COLOURS = {"TERM": "xterm-256color", "NO_COLOR": "", "COLORTERM": "truecolor"}


def check(
    work: str | Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    *,
    size: tuple[int, int] | None = None,
) -> Printed:
    """Compare a warm command with a process; they may print the time, so it runs before and after."""
    command = request(work, environ, arguments, size=size)
    before = run_warm(command)
    process = run_process(work, environ, arguments, size=size)
    assert process == before or process == run_warm(command), arguments
    return process


def plain(root: Path, **more: str) -> dict[str, str]:
    environ = hostile.environ(root)
    del environ["COLUMNS"]
    return {**environ, "NEXUS_DAEMON": "off", **more}


# ---------------------------------------------------------------- the same bytes


@pytest.mark.timeout(300)  # a process for each command, on however busy a machine
def test_broken_files_and_other_scripts(tmp_path: Path) -> None:
    tree = write_fixture(BROKEN, tmp_path)
    environ = plain(tmp_path, NEXUS_HOME=tree.path("/home/.nexus3"), HOME=tree.path("/home"))
    for arguments in (("init", "-q"), ("add", "-A"), (*AUTHOR, "commit", "-qm", "one")):
        subprocess.run(["git", *arguments], cwd=tree.path("/home/r"), check=True)
    Path(tree.path("/home/r/AGENTS.md")).write_text("Grüße 🧪 " * 20)
    codes = [check(tree.path("/home"), environ, arguments).code for arguments in HERE]
    assert set(codes) == {0, 1, 2}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(2))
def test_names_and_texts_that_steer_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    work = hostile.folder(tmp_path)
    environ = plain(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    main(("sessions", "import", str(work / f"{hostile.NAME}.jsonl"), "--folder", str(work)))
    warm_commands = [one for one in hostile.commands(work, tmp_path) if may_run_warm(one)]
    compared = [one for one in warm_commands[part::2] if not is_wrong_usage(work, environ, one)]
    assert len(compared) > 10
    for arguments in compared:
        check(work, environ, arguments)


def is_wrong_usage(work: Path, environ: Mapping[str, str], arguments: Sequence[str]) -> bool:
    """Whether the process itself says that the command line is wrong."""
    return run_warm(request(work, environ, arguments)) == (None, b"", b"")


@terminal
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("size", "variables"),
    [
        ((80, 24), COLOURS),
        ((31, 10), COLOURS),
        ((200, 50), {**COLOURS, "NO_COLOR": "1"}),
        ((0, 0), COLOURS),
        ((60, 24), {**COLOURS, "COLUMNS": "97"}),
        ((60, 24), {**COLOURS, "COLUMNS": "x", "TERM": "dumb"}),
    ],
)
def test_the_width_and_colours_of_a_terminal(
    tmp_path: Path, size: tuple[int, int], variables: dict[str, str]
) -> None:
    tree = write_fixture(BROKEN, tmp_path)
    environ = plain(tmp_path, NEXUS_HOME=tree.path("/home/.nexus3"), HOME=tree.path("/home"), **variables)
    for arguments in (("show", "a", "--tokens"), ("check", "a"), ("show", "a/sub", "--layers")):
        check(tree.path("/home"), environ, arguments, size=size)


@terminal
@pytest.mark.parametrize("variables", [{"FORCE_COLOR": "1"}, {"COLUMNS": "50"}, {"TTY_COMPATIBLE": "1"}])
def test_variables_that_describe_a_terminal(tmp_path: Path, variables: dict[str, str]) -> None:
    tree = write_fixture(BROKEN, tmp_path)
    environ = plain(tmp_path, NEXUS_HOME=tree.path("/home/.nexus3"), HOME=tree.path("/home"))
    environ |= {**COLOURS, **variables}
    check(tree.path("/home"), environ, ("show", "a", "--tokens"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_characters_that_the_output_lacks(tmp_path: Path, encoding: str) -> None:
    tree = write_fixture(BROKEN, tmp_path)
    environ = plain(tmp_path, NEXUS_HOME=tree.path("/home/.nexus3"), HOME=tree.path("/home"))
    arguments = ("show", "a", "--source", "--model", "größe")
    command = request(tree.path("/home"), environ, arguments)
    command = command._replace(
        stdout=command.stdout._replace(encoding=encoding), stderr=command.stderr._replace(encoding=encoding)
    )
    variables = {**environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    process = run_process(tree.path("/home"), variables, arguments)
    assert run_warm(command) == process
    assert process.out


# ---------------------------------------------------------------- what runs where


@pytest.mark.parametrize(
    ("line", "is_warm"),
    [
        ("check", True),
        ("check a --format json", True),
        ("show --session main", True),
        ("show --messages -", False),
        ("show --messages=-", False),
        ("tokens a -", False),
        ("check --help", False),
        ("sessions list", True),
        ("sessions --help", False),
        ("sessions", False),
        ("sessions export main", False),
        ("sessions delete main", False),
        ("memory query ja", True),
        ("memory add note", False),
        ("agents list", False),
        ("knowledge query ja", False),
        ("init", False),
        ("serve", False),
        ("stop", False),
        ("status", False),
        ("--version", False),
        ("", True),
    ],
)
def test_commands_that_read_run_warm(line: str, is_warm: bool) -> None:
    assert may_run_warm(line.split()) is is_warm


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--hel"),
        ("check", "--nope"),
        ("check", "--format", "x"),
        ("show", "--budget", "0"),
        ("skill",),
        ("sessions", "list", "-x"),
        ("sessions", "delete", "main"),
        ("init",),
        ("show", "--messages", "-"),
    ],
)
def test_the_process_itself_says_what_is_wrong(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run_warm(request(tmp_path, plain(tmp_path), arguments)) == (None, b"", b"")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "change",
    [
        {"environ": {"TZ": "Pacific/Kiritimati"}},
        {"environ": {"HOME": "home"}},
        {"environ": {"HOME": ""}},
        {"cwd": "work"},
        {"environ": {"PATH": f"{os.environ['PATH']}{os.pathsep}"}},
        {"environ": {"PATH": "bin"}},
        {"encoding": "latin-1"},
        {"program": "30b0000 /elsewhere"},
    ],
)
def test_a_process_that_is_not_alike(tmp_path: Path, change: dict[str, Any]) -> None:
    environ = {**plain(tmp_path), **change.pop("environ", {})}
    command = request(tmp_path, environ, ("check",))._replace(**change)
    assert run_warm(command) == (None, b"", b"")


def test_a_bug_is_left_to_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "NEXUS.md").write_text("Be brief.")
    command = request(tmp_path, plain(tmp_path), ("check",))
    assert run_warm(command).code == 0
    monkeypatch.setattr("nexus_context.folder.layers.text_reader.Reading.read", None)
    containment.logged_places.clear()
    assert run_warm(command) == (None, b"", b"")


def test_what_a_failed_command_printed_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        output.line("half of it")
        raise ValueError

    monkeypatch.setattr(tokens, "run", fail)
    sent: list[bytes] = []
    with pytest.raises(ValueError, match=r"^$"):
        warm.run_for(request(tmp_path, plain(tmp_path), ("tokens", "x")), lambda _, data: sent.append(data))
    gc.collect()
    assert sent == []


# ---------------------------------------------------------------- beside others


def process_state() -> list[object]:
    """What belongs to the whole process, and no command may change."""
    root = logging.getLogger()
    signals = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    streams = (sys.stdin, sys.stdout, sys.stderr)
    umask = os.umask(0o077)
    os.umask(umask)
    return [
        os.getcwd(),
        dict(os.environ),
        list(sys.argv),
        list(sys.path),
        streams,
        list(warnings.filters),
        locale.setlocale(locale.LC_ALL),
        umask,
        signals,
        (list(root.handlers), list(root.filters), root.level),
        (time.tzname, threading.current_thread().name, sys.getswitchinterval()),
        current(),
    ]


@pytest.mark.timeout(120)
def test_two_commands_at_the_same_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requests: list[CommandRequest] = []
    for name, columns in (("one", "60"), ("two", "90")):
        tree = write_fixture(BROKEN.replace("Be brief.", f"I am {name}."), tmp_path / name)
        environ = plain(
            tmp_path / name, NEXUS_HOME=tree.path("/home/.nexus3"), HOME=tree.path("/home"), COLUMNS=columns
        )
        lines = (("check", "a", "--format", "json"), ("show", "a/sub", "--tokens"), ("show", "a", "--layers"))
        requests += [request(tree.path("/home"), environ, arguments) for arguments in lines]
    alone = [run_warm(one) for one in requests]
    assert len({printed.out for printed in alone}) == len(requests)
    before = process_state()
    together: dict[tuple[int, int], Printed] = {}
    barrier = threading.Barrier(len(requests))

    def run(index: int) -> None:
        for turn in range(3):
            barrier.wait()
            together[index, turn] = run_warm(requests[index])

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {(index, turn): printed for index, printed in enumerate(alone) for turn in range(3)}
    assert together == expected
    assert process_state() == before
    assert capfd.readouterr() == ("", "")


def test_a_note_of_an_assistant_is_not_written_by_the_daemon(tmp_path: Path) -> None:
    words = ("mcp", "--tool", "add_memory", "--write", "--arguments", '{"text": "x"}')
    assert run_warm(request(tmp_path, plain(tmp_path), words)) == (None, b"", b"")
    assert not list(tmp_path.rglob("ledger.db"))


def test_every_warm_command_is_compared_with_a_process() -> None:
    compared = {(one[0], one[1] if WARM[one[0]] else "") for one in HERE}
    expected = {(name, action) for name, actions in WARM.items() for action in actions or ("",)}
    assert compared == expected
