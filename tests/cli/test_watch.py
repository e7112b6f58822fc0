"""`nexus watch`: the session of another assistant in a folder, as a picture, as lines, as JSON."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import assistant_report
from support.assistant_transcripts import Claude, Codex, example_session, lines, write
from support.commands import run_nexus

BLANKS = re.compile(r"(?<=\S) {2,}|─{5,}")
posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and Ctrl-C of POSIX")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "NEXUS_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "shop").mkdir()
    return tmp_path


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code, out, errors = run_nexus(capsys, "watch", str(home / "shop"), *arguments)
        text = "".join(f"{line.rstrip()}\n" for line in out.replace(str(home), "~").splitlines())
        return code, text, errors.replace(str(home), "~")

    return call


def test_all_of_a_session(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    claude, records = example_session(str(home / "shop"))
    write(claude.path(home), records, minute=14)
    monkeypatch.setenv("COLUMNS", "300")
    code, out, errors = run("--once")
    assert (code, errors) == (0, "")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d|\d\d:\d\d:\d\d", "TIME", out)
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", text)
    text = text.replace("; ", ";\n").replace(" again, ", " again,\n")
    text = re.sub(r"\$[\d.]+$", "$N", text, flags=re.MULTILINE)  # it depends on the length of the path
    assert BLANKS.sub("  ", text) == snapshot("""\
Claude Code  Never change a published price. Where is the total cached?
claude-sonnet-4-5 · 2.1.330 · ~/shop
19,410 of 200,000 (10%) tokens

  in the window  what  tokens  share
   \n\
  the program's prompt  ≈19,392  100%  ████████████
  instructions  …/CLAUDE.md  ≈7  0%  ▏
  your messages  ≈1  0%  ▏
  summary  ≈10  0%  ▏

 cache  93% of the last request came from the cache;
it went cold at TIME
            the next turn sends 19,435 tokens: $0.0059 from a warm cache, $0.0729 from a cold one
 missed  TIME  the first request: 22,010 tokens written, $0.0759 more than from the cache
            TIME  nothing was sent for 11:00 min: 22,900 tokens written again,
$0.0790 more than from the cache
            TIME  the compaction: 1,410 tokens written again,
$0.0049 more than from the cache
 cost  at least $0.19 by list prices of DATE;
$0.0839 for misses of the cache;
87,340 tokens sent, 46% of it from the cache, 215 answered
            not included: the request for a summary, which the program does not record (1 request)
 compacted  TIME, by hand: 23,040 → 19,410 tokens
 dropped  2 instructions: “Never change a published price.”, “Fix SHOP-4711.”
            1 path: src/total_cache.py
            3 names: SHOP-4711, cached_total, 300

  tool  calls  failed  tokens  in the window  cost
   \n\
  Read  1  –  ≈499  –  $N
  tickets: find_ticket  1  –  ≈264  –  $N

""")


def test_as_json(home: Path, run: Run) -> None:
    claude, records = example_session(str(home / "shop"))
    write(claude.path(home), records, minute=14)
    _, out, _ = run("--once", "--format", "json")
    value = json.loads(out)
    assert (value["session"]["id"], value["context"]["used"]) == (claude.session, 19_410)
    assert value["compactions"][0]["dropped"]["counts"]["instructions"] >= 1


def test_which_session(home: Path, run: Run) -> None:
    folder = str(home / "shop")
    claude, codex = Claude(folder), Codex(folder)
    write(claude.path(home), [claude.asks("One"), *claude.answers("A", write=9)], minute=1)
    codex.minute = 5
    write(codex.path(home), [*codex.begins(), codex.says("Two"), *codex.uses(500)], minute=5)
    assert "Two" in run("--once")[1]
    assert "One" in run("--once", "--assistant", "claude-code")[1]
    assert "One" in run("--once", "--session", claude.session[:6])[1]
    code, out, errors = run("--once", "--session", "zz")
    assert (code, out) == (1, "")
    assert errors.startswith(
        "nexus watch: Claude Code, Codex, opencode and Gemini CLI have no session zz in ~/shop;"
    )


def test_the_beginning_of_several_ids_lists_them(home: Path, run: Run) -> None:
    ids = ("11111111-a", "11111111-b", "11111111")
    for minute, session in enumerate(ids[:2]):
        claude = Claude(str(home / "shop"), session=session)
        write(claude.path(home), [claude.asks(session), *claude.answers("A", write=9)], minute=minute)
    code, out, errors = run("--once", "--session", "1111")
    assert (code, out, errors) == (1, "", f"nexus watch: 2 sessions begin with 1111: {ids[0]}, {ids[1]}\n")
    assert "11111111-a" in run("--once", "--session", "11111111-a")[1]
    claude = Claude(str(home / "shop"), session=ids[2])
    write(claude.path(home), [claude.asks("whole"), *claude.answers("A", write=9)], minute=3)
    assert "whole" in run("--once", "--session", "11111111")[1]


def test_no_session(run: Run) -> None:
    code, out, errors = run("--once", "--assistant", "codex")
    assert (code, out) == (1, "")
    assert errors.startswith("nexus watch: Codex has no session in ~/shop;")


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_it_fits_every_terminal(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    claude, records = example_session(str(home / "shop"))
    write(claude.path(home), records)
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run("--once")
    assert max(map(len, out.splitlines())) <= columns
    monkeypatch.setenv("COLUMNS", "200")
    _, wide, _ = run("--once")
    assert set(re.findall(r"≈[\d,]+", out)) <= set(re.findall(r"≈[\d,]+", wide))  # no figure is cut


def test_what_others_wrote_cannot_steer_the_terminal(home: Path, run: Run) -> None:
    claude = Claude(str(home / "shop"), model="m\x1b[2J")
    block = {"type": "tool_use", "id": "t", "name": "Evil\x1b]0;x\x07", "input": {}}
    records = [claude.asks("Hi\x1b[31m"), *claude.answers(block, write=9_000)]
    write(claude.path(home), [*records, claude.returns("t", "x")])
    _, out, _ = run("--once")
    assert "\x1b" not in out
    assert "\x07" not in out


@contextmanager
def watch_process(home: Path, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "nexus_daemon", "watch", str(home / "shop"), *arguments]
    environ = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": "1", "NEXUS_STATE": str(home / "state")}
    with subprocess.Popen(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # if the test failed before it ended


@posix
def test_each_change_is_a_line(home: Path) -> None:
    claude = Claude(str(home / "shop"))
    path = write(claude.path(home), [claude.asks("Hi"), *claude.answers("A", write=9_000)])
    with watch_process(home) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        claude.minute = 7
        with path.open("ab") as file:
            file.write(lines(claude.answers("B", write=9_100)))
        second = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=10)
    assert (process.returncode, out, errors) == (0, "", "")
    clock = re.compile(r"^\d\d:\d\d:\d\d · claude-code · eccfd4a0 · ")
    assert clock.sub("", first) == (
        "9,010 of 200,000 (5%) · 0% cached · $0.0341 · "
        "cache missed: the first request: 9,010 tokens written\n"
    )
    assert clock.sub("", second) == (
        "9,110 of 200,000 (5%) · 0% cached · $0.0685 · "
        "cache missed: nothing was sent for 7:00 min: 9,000 tokens written again\n"
    )


@posix
def test_a_session_that_begins_later_is_watched(home: Path) -> None:
    claude = Claude(str(home / "shop"))
    with watch_process(home, "--format", "json") as process:
        time.sleep(1)
        write(claude.path(home), [claude.asks("Hi"), *claude.answers("A", write=9_000)])
        assert process.stdout is not None
        value: Any = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert (value["session"]["title"], process.returncode) == ("Hi", 0)


@posix
def test_an_old_session_that_goes_on_is_shown_at_once(home: Path) -> None:
    """Its directory is that of a day on which no session of Codex begins any more."""
    codex = Codex(str(home / "shop"))
    path = write(codex.path(home), [*codex.begins(), codex.says("One"), *codex.uses(500)])
    with watch_process(home, "--session", codex.session) as process:
        assert process.stdout is not None
        assert "500 of" in process.stdout.readline()
        time.sleep(1)  # until it is watched
        with path.open("ab") as file:
            file.write(lines(codex.uses(700)))
        readable = select.poll()
        readable.register(process.stdout, select.POLLIN)
        assert readable.poll(10_000)
        assert "700 of" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


@posix
@pytest.mark.parametrize("begins", [True, False])
def test_it_ends_when_its_reader_goes(home: Path, begins: bool) -> None:
    """As in `nexus watch | head -1`: no change is needed to notice that, nor a session."""
    claude = Claude(str(home / "shop"))
    if begins:
        write(claude.path(home), [claude.asks("Hi"), *claude.answers("A", write=9_000)])
    with watch_process(home) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if begins:
            assert "9,010 of 200,000" in process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(10) == 0
        assert errors == "" if begins else errors.endswith("Waiting for one.\n")


@posix
def test_on_a_terminal_only_changes_are_drawn_and_ctrl_c_ends(home: Path) -> None:
    import pty

    claude = Claude(str(home / "shop"))
    path = write(claude.path(home), [claude.asks("Hi"), *claude.answers("A", write=9_000)])
    child, terminal = pty.fork()
    if not child:
        environ = {**os.environ, "HOME": str(home), "TERM": "xterm-256color", "NEXUS_STATE": str(home / "s")}
        command = [sys.executable, "-m", "nexus_daemon", "watch", str(home / "shop")]
        os.execve(sys.executable, command, environ)  # noqa: S606 - the child on the terminal

    poll = select.poll()  # `select` takes descriptors below 1,024 only
    poll.register(terminal, select.POLLIN)

    def read_until(text: bytes, seconds: float = 15) -> bytes:
        data, end = b"", time.monotonic() + seconds
        while text not in data and time.monotonic() < end:
            if poll.poll(50):
                try:
                    data += os.read(terminal, 65_536)
                except OSError:  # it has ended
                    break
        return data

    assert b"9,010 of 200,000" in read_until(b"answered")
    assert b"9,010 of" not in read_until(b"\0", 1.3)  # the rest of the picture, and no other one
    with path.open("ab") as file:
        file.write(lines(claude.answers("B", read=9_000, write=500)))
    assert b"9,510 of 200,000" in read_until(b"9,510 of")
    read_until(b"\0", 0.5)
    os.write(terminal, b"\x03")
    assert read_until(b"\0").endswith(b"\x1b[?25h")  # the cursor is there again
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (61, "1:01 min"), (3_600, "1 h 00 min"), (7_384, "2 h 03 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert assistant_report._duration(seconds) == text  # noqa: SLF001 - a table is clearest
