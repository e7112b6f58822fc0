"""`nexus doctor`: what it checks, what it leaves out, and that it works when nothing else does."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_context.ledger import open_ledger
from nexus_daemon.cli import main
from nexus_daemon.cli.doctor import check as check_module
from nexus_daemon.cli.doctor import examine, machine, storage
from nexus_daemon.cli.doctor.check import Check, cover, cover_value
from support.shared import SharedHome

HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""
Places = dict[str, Path]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """A user whose home is that of Ana, on the host `workstation`."""
    places = {name: tmp_path / name for name in ("state", "work")}
    places["home"] = tmp_path / "home" / "ana"
    for path in places.values():
        path.mkdir(parents=True, mode=0o700)
    places["run"] = Path(tempfile.mkdtemp(prefix="nexus-"))  # short: the address of a socket has to be
    monkeypatch.setenv("HOME", str(places["home"]))
    monkeypatch.setenv("NEXUS_STATE", str(places["state"]))
    monkeypatch.setenv("NEXUS_LOG", str(places["state"] / "logs"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(places["run"]))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("NEXUS_HOME", raising=False)
    monkeypatch.delenv("NEXUS_DAEMON", raising=False)
    monkeypatch.setattr(check_module, "_host", lambda: "workstation")
    yield places
    shutil.rmtree(places["run"], ignore_errors=True)


def check(places: Places, *names: str) -> dict[str, str]:
    """The status of checks, by their names."""
    checks: dict[str, str] = {one.name: one.status for one in examine.examine(str(places["work"]))}
    return {name: checks[name] for name in names} if names else checks


def text_of(places: Places, name: str) -> str:
    return next(one.text for one in examine.examine(str(places["work"])) if one.name == name)


def test_everything_is_as_it_should_be(places: Places) -> None:
    open_ledger(environ=os.environ).close()
    checks = check(places)
    assert [name for name, status in checks.items() if status == "fix"] == []
    for name in (
        "python",
        "sqlite",
        "state directory",
        "runtime directory",
        "integrity",
        "problems",
        "daemon",
    ):
        assert checks[name] == "ok"
    assert checks["nexus on PATH"] == "warning"
    assert {"nexus", "packages", "system", "layers", "HOME"} - set(checks) == {"HOME"}


def break_state_directory(places: Places) -> None:
    places["state"].rmdir()
    places["state"].write_text("a file", encoding="utf-8")


def break_ledger(places: Places) -> None:
    open_ledger(environ=os.environ).close()
    path = places["state"] / "ledger.db"
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


def replace_ledger(places: Places) -> None:
    (places["state"] / "ledger.db").write_bytes(b"no database " * 1000)


def make_ledger_a_directory(places: Places) -> None:
    (places["state"] / "ledger.db").mkdir()


def open_runtime_directory(places: Places) -> None:
    (places["run"] / "nexus").mkdir()
    (places["run"] / "nexus").chmod(0o755)


def open_state_directory(places: Places) -> None:
    places["state"].chmod(0o777)


def show_state_directory(places: Places) -> None:
    places["state"].chmod(0o755)


def break_settings(places: Places) -> None:
    (places["work"] / ".nexus3").mkdir()
    (places["work"] / ".nexus3" / "config.json").write_text("{", encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "name", "status"),
    [
        (break_state_directory, "state directory", "fix"),
        (break_ledger, "integrity", "fix"),
        (replace_ledger, "integrity", "fix"),
        (make_ledger_a_directory, "integrity", "fix"),
        (open_runtime_directory, "runtime directory", "fix"),
        (open_state_directory, "state directory", "fix"),
        (show_state_directory, "state directory", "warning"),
        (break_settings, "problems", "warning"),
    ],
)
def test_what_is_broken(
    places: Places,
    damage: Callable[[Places], None],
    name: str,
    status: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(places)
    checks = check(places)
    assert checks[name] == status
    assert main(["doctor", str(places["work"])]) == (1 if status == "fix" else 0)
    out = capsys.readouterr().out
    assert f"  {status:<8}{name}: " in out
    assert out.splitlines()[-1].startswith(f"{list(checks.values()).count('fix')} to fix, ")


def test_everything_is_broken_at_once(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    """No home, no state, no runtime directory, no folder, and standard settings that cannot be read."""
    for name in ("home", "run", "work"):
        places[name].rmdir()
    break_state_directory(places)
    assert main(["doctor", str(places["work"]), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    sections = dict.fromkeys(one["section"] for one in report["checks"])
    assert (report["failed"], list(sections)) == (
        True,
        [*("versions", "installation", "system", "directories", "shared daemon", "ledger", "folder", "log")],
    )


def test_a_bug_in_one_check_is_a_line_of_the_report(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Iterator[Check]:
        yield Check("ledger", "file", "info", "before")
        raise ValueError("the user's words")

    monkeypatch.setattr(storage, "ledger", fail)
    checks = [one for one in examine.examine(str(places["work"])) if one.section == "ledger"]
    assert [(one.status, one.text) for one in checks] == [
        ("info", "before"),
        ("warning", "could not be examined: ValueError"),
    ]


def test_a_locked_ledger(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ledger(environ=os.environ).close()
    monkeypatch.setattr(storage, "HELD_MS", 10)
    assert check(places, "write lock") == {"write lock": "ok"}
    command = [sys.executable, "-c", HOLD, str(places["state"] / "ledger.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert (
            text_of(places, "write lock") == f"process {holder.pid} has kept others from writing for 0.01 s"
        )
        assert check(places, "write lock", "integrity") == {"write lock": "fix", "integrity": "ok"}


def test_the_newest_backup(places: Places) -> None:
    ledger = open_ledger(environ=os.environ)
    assert check(places, "backups") == {"backups": "info"}
    ledger.create("/work", "main")
    made = ledger.upkeep.back_up_daily()
    assert made is not None
    assert check(places, "backups") == {"backups": "ok"}
    assert text_of(places, "backups") == f"1 backup, the newest of {made[-13:-3]}"
    week_ago = os.stat(places["state"] / "ledger.db").st_mtime - storage.BACKUP_AGE_S - 60
    os.utime(made, (week_ago, week_ago))
    assert check(places, "backups") == {"backups": "warning"}
    ledger.close()


def test_nothing_is_changed(places: Places) -> None:
    """The ledger is damaged, and stays for `nexus sessions salvage`."""
    break_ledger(places)
    before = (places["state"] / "ledger.db").read_bytes()
    check(places)
    assert (places["state"] / "ledger.db").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in {home}/x and {home}", "in ~/x and ~"),
        ("/media/ana/disk, /srv/ana-b, banana", "/media/<user>/disk, /srv/ana-b, banana"),
        ("on workstation at workstation.lan, myworkstation", "on <host> at <host>.lan, myworkstation"),
        ("token=sk-a1b2c3d4e5f6g7h8i9j0", "token=***********************"),
        ("red \x1b[31m", "red ␛[31m"),
    ],
)
def test_what_is_left_out(places: Places, text: str, shown: str) -> None:
    assert cover(text.format(home=places["home"])) == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("NEXUS_TOKEN", "abc", "set"), ("NEXUS_STATE", "/a", "/a"), ("OPENAI_API_KEY", "abc", "set")],
)
def test_variables(name: str, value: str, shown: str) -> None:
    assert cover_value(name, value) == shown


def test_the_report_names_neither_user_nor_secret(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "moonlitharbour")
    monkeypatch.setenv("NEXUS_PASSWORD", "moonlitharbour")
    monkeypatch.setenv("PYTHONPATH", f"{places['home']}/lib")
    main(["doctor", str(places["work"])])
    out = capsys.readouterr().out
    assert "keys that are set: ANTHROPIC_API_KEY" in out
    assert "NEXUS_PASSWORD: set" in out
    assert "PYTHONPATH: ~/lib" in out
    assert "moonlitharbour" not in out
    assert str(places["home"]) not in out


@pytest.mark.parametrize(
    ("limit", "watches", "status"),
    [(524_288, 10, "ok"), (8_192, 10, "warning"), (8_192, 8_000, "fix"), (None, 0, "info")],
)
def test_file_watches(
    places: Places, monkeypatch: pytest.MonkeyPatch, limit: int | None, watches: int, status: str
) -> None:
    monkeypatch.setattr(machine, "read_sysctl", lambda name: limit if name == machine.WATCHES else 1024)
    monkeypatch.setattr(machine, "_watches_in_use", lambda: (watches, 1))
    assert check(places, machine.WATCHES) == {machine.WATCHES: status}


def test_two_installations(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        command = tmp_path / name / "nexus"
        command.write_text(f"#!{sys.executable}\n", encoding="utf-8")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/one{os.pathsep}{tmp_path}/one")
    assert check(places, "nexus on PATH") == {"nexus on PATH": "ok"}
    monkeypatch.setenv("PATH", f"{tmp_path}/one{os.pathsep}{tmp_path}/two")
    assert check(places, "nexus on PATH") == {"nexus on PATH": "warning"}


def test_the_editors_that_lie_where_they_usually_do(places: Places) -> None:
    (places["home"] / ".vscode" / "extensions" / "nexus.nexus-context-0.3.0").mkdir(parents=True)
    (places["home"] / ".local" / "share" / "nvim" / "lazy" / "nexus").mkdir(parents=True)
    assert text_of(places, "VS Code extension") == "0.3.0 in ~/.vscode/extensions"
    assert text_of(places, "Neovim plugin") == "~/.local/share/nvim/lazy/nexus"


# ---------------------------------------------------------------- the shared daemon


def run(home: SharedHome, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "nexus_daemon", "doctor", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **home.variables}, cwd=home.home, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def daemon_of(home: SharedHome) -> tuple[str, str]:
    """What the report says of the shared daemon."""
    _, out = run(home, "--json")
    (daemon,) = (one for one in json.loads(out)["checks"] if one["name"] == "daemon")
    return daemon["status"], daemon["text"]


def test_a_daemon_that_answers_and_one_that_hangs(home: SharedHome) -> None:
    assert daemon_of(home) == ("ok", "not running; windows start it")
    with home.window() as window:
        window.hello()
        pid = home.pid()
        assert pid is not None
        assert daemon_of(home) == ("ok", f"process {pid}, answers, 1 window")
        os.kill(pid, signal.SIGSTOP)
        assert daemon_of(home) == ("fix", f"process {pid}, the daemon did not answer within 5 s")
        os.kill(pid, signal.SIGKILL)
        window.kill()


def test_the_socket_of_a_dead_daemon_does_no_harm(home: SharedHome) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(home.place.socket)
    text = "not running, its last socket is left and does no harm; windows start it"
    assert daemon_of(home) == ("ok", text)


def events_of(path: Path) -> list[dict[str, Any]]:
    trace = json.loads(path.read_text(encoding="utf-8"))
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_a_trace_of_the_shared_daemon(home: SharedHome, tmp_path: Path) -> None:
    with home.window() as window:
        window.hello()
        command = [
            sys.executable,
            "-m",
            "nexus_daemon",
            "doctor",
            "--trace",
            str(tmp_path / "t"),
            "--seconds",
        ]
        env = {**os.environ, **home.variables}
        with subprocess.Popen(
            [*command, "2"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None:
                window.request("nexus/status", {})
            assert process.returncode == 0
    requests = [event for event in events_of(tmp_path / "t") if event["cat"] == "request"]
    assert "nexus/status" in {event["name"] for event in requests}
    assert {event["args"].get("outcome") for event in requests} <= {"ok", None}


def test_a_trace_where_no_daemon_runs(
    places: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    assert main(["doctor", str(places["work"]), "--trace", str(path)]) == 0
    names = {(event["pid"], event["cat"], event["name"]) for event in events_of(path)}
    assert (1, "request", "nexus/context/preview") in names
    assert {
        (1, "load", "load"),
        (2, "load", "load"),
        (1, "reload", "reload"),
        (2, "ledger", "ledger"),
    } <= names
    said = capsys.readouterr()
    assert said.err == "No shared daemon runs: this records how one loads the folder and answers.\n"
    assert said.out.endswith(f" written to {path}: open it at https://ui.perfetto.dev.\n")
    assert main(["doctor", "--trace", str(path)]) == 1
    assert capsys.readouterr().err == f"nexus doctor: {path} exists already; name another file.\n"


def test_a_folder_that_does_not_exist_leaves_no_trace(places: Places, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    assert main(["doctor", str(tmp_path / "none"), "--trace", str(path)]) == 1
    assert not path.exists()
