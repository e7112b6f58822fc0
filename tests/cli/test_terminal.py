"""Whatever is in names and texts, no output steers a terminal or a workflow, and data stay exact."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_daemon.cli import main
from nexus_daemon.cli.folder import read
from support import hostile

terminal = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in hostile.environ(tmp_path).items():
        monkeypatch.setenv(name, value)
    return hostile.folder(tmp_path)


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """What a command in a pipe prints, on both streams."""
    with contextlib.suppress(SystemExit):
        main(arguments)
    return capsys.readouterr()


@terminal
@pytest.mark.timeout(300)  # a process for each command, on however busy a machine
@pytest.mark.parametrize("part", range(4))
def test_no_command_steers_a_terminal(work: Path, tmp_path: Path, part: int) -> None:
    chat = str(work / f"{hostile.NAME}.jsonl")
    assert main(("sessions", "import", chat, "--folder", str(work))) == 0
    for arguments in hostile.commands(work, tmp_path)[part::4]:
        shown = hostile.on_a_terminal(arguments, hostile.environ(tmp_path))
        assert (hostile.steered(shown), bool(shown)) == ([], True), arguments


@terminal
@pytest.mark.parametrize("arguments", [("show", "--layers"), ("show", "--tokens"), ("sessions", "list")])
def test_colours_are_the_only_sequences(work: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = (str(work),) if arguments[0] == "show" else ("--folder", str(work))
    chat = str(work / f"{hostile.NAME}.jsonl")
    assert main(("sessions", "import", chat, "--folder", str(work))) == 0
    env = hostile.environ(tmp_path, TERM="xterm-256color")
    del env["NO_COLOR"]
    shown = hostile.on_a_terminal((*arguments, *place), env)
    assert "\x1b[" in shown
    assert hostile.steered(shown, coloured=True) == []
    assert "\x1b[8m" not in shown


def test_pipes_for_people_hold_no_controls_and_no_workflow_commands(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in hostile.commands(work, tmp_path):
        out, err = check(capsys, *arguments)
        assert (hostile.steered(err), hostile.COMMANDS.findall(err)) == ([], []), arguments
        is_data = arguments[0] == "show" and not {"--layers", "--tokens", "--messages"} & set(arguments)
        if "github" in arguments:
            assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in out.splitlines())
            assert hostile.steered(out) == []
        elif not is_data and arguments[:2] != ("sessions", "export"):
            assert (hostile.steered(out), hostile.COMMANDS.findall(out)) == ([], []), arguments


def test_a_prompt_in_a_pipe_is_exact(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = read(work).prompt.text
    assert hostile.CLIPBOARD in prompt and "\n::error" in prompt
    assert check(capsys, "show", str(work))[0] == prompt + "\n"
    said, _ = check(capsys, "show", str(work), "--message", hostile.PAYLOAD)
    assert said.startswith(prompt) and hostile.PAYLOAD.strip() in said


def test_json_is_equal_in_value_and_harmless(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = read(work).prompt.text
    shown, _ = check(capsys, "show", str(work), "--format", "json")
    assert json.loads(shown)["systemPrompt"] == prompt
    assert (hostile.steered(shown), hostile.COMMANDS.findall(shown)) == ([], [])


def test_exports_in_a_pipe_are_exact(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat = work / f"{hostile.NAME}.jsonl"
    here = ("--folder", str(work))
    check(capsys, "sessions", "import", str(chat), *here)
    session = json.loads(check(capsys, "sessions", "list", "--json", *here)[0])["sessions"][0]["session"]
    exported, _ = check(capsys, "sessions", "export", session, *here)
    said = [
        message["content"]
        for line in exported.splitlines()
        for message in json.loads(line).get("messages", [])
    ]
    assert f"Why {hostile.PAYLOAD}?" in said
    page, _ = check(capsys, "sessions", "export", session, "--format", "markdown", *here)
    assert hostile.CLIPBOARD in page


@terminal
@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError(chr(27) + ']52;c;x' + chr(7))",
        "import logging; logging.getLogger('nexus_context').warning('%s', chr(27) + '[2J'); return 0",
        "import warnings; warnings.warn(chr(27) + '[2J', stacklevel=1); return 0",
        "import sys; sys.exit(chr(27) + '[2J')",
    ],
)
def test_what_the_interpreter_says_is_guarded(tmp_path: Path, code: str) -> None:
    """Tracebacks, warnings and log lines go to standard error by ways of their own."""
    program = (
        "import sys\nfrom nexus_daemon import cli\nfrom nexus_daemon.cli import schema\n"
        f"def run(_):\n    {code}\nschema.run = run\nsys.exit(cli.main(['schema']))\n"
    )
    shown = hostile.on_a_terminal((), hostile.environ(tmp_path), program)
    assert ("␛" in shown, hostile.steered(shown)) == (True, [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello world")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nexus_daemon", "tokens", str(tmp_path / "file")],
            env={**os.environ, "PYTHONUNBUFFERED": ""},  # written at the end
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "nexus: the output cannot be written: No space left on device\n",
    )
