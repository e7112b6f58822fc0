"""One daemon for several windows: `nexus serve --remote=auto` in real processes."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_daemon.shared import client, election, hello
from nexus_daemon.shared.goodbye import METHOD
from nexus_daemon.shared.identity import DirectPlace, NoSharedDaemonError, find_place
from support.client import Client
from support.descriptors import open_files
from support.editor import Editor
from support.shared import SharedHome, shared_home, wait_diagnosed
from support.waiting import block_until

TREE = """
//- /.nexus3/NEXUS.md
Be brief.
//- /.nexus3/config.json
{"provider": {"model": "gpt-4o"}}
"""
HELLO = {"role": "user", "content": "Hello"}


@pytest.fixture(params=["socket", "port"])
def either_home(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SharedHome]:
    """A home whose daemon has a Unix socket, and one whose daemon has a port of the loopback interface."""
    with shared_home(tmp_path / "home", "tcp" if request.param == "port" else "") as home:
        yield home


def turns(window: Editor, folder: str | Path) -> list[str]:
    messages = window.ask("session/messages", folder)["messages"]
    return [one["content"] for one in messages if not one["content"].startswith("[Session started")]


def command_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]


def append(window: Editor, folder: str | Path, text: str, **params: object) -> None:
    window.ask("session/append", folder, messages=[{"role": "user", "content": text}], **params)


# ---------------------------------------------------------------- one daemon


def test_two_windows_share_a_daemon_and_a_session_live(either_home: SharedHome) -> None:
    home = either_home
    with home.window() as one, home.window() as two:
        root = one.tree(TREE).root
        one.hello(root)
        two.hello(root)
        pids = {window.request("nexus/status", {})["connections"] for window in (one, two)}
        assert pids == {2}
        append(one, root, "From one")
        changed = two.wait_method("nexus/session/didChange")["params"]
        assert (changed["session"], changed["by"]) == ("main", "other")
        append(two, root, "From two")
        assert turns(one, root) == turns(two, root) == ["From one", "From two"]
        one.stop()
        assert turns(two, root) == ["From one", "From two"]
        two.stop()
    assert home.pid() is not None  # it stays for the next window


def test_many_starts_at_once_elect_one_daemon(home: SharedHome) -> None:
    windows = [home.window() for _ in range(6)]
    try:
        for window in windows:
            window.hello()
        assert {window.request("nexus/status", {})["connections"] for window in windows} == {6}
    finally:
        for window in windows:
            window.kill()


def test_the_socket_and_its_directory_are_the_users_alone(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        place = home.place
        modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (place.directory, place.socket, place.lock)]
        assert modes == [0o700, 0o600, 0o600]


@pytest.mark.parametrize("name", ["NEXUS_HOME", "NEXUS_STATE"])
def test_another_home_or_state_is_another_daemon(home: SharedHome, name: str) -> None:
    with home.window() as one, home.window({name: str(home.home / "other")}) as two:
        one.hello()
        two.hello()
        assert [window.request("nexus/status", {})["connections"] for window in (one, two)] == [1, 1]
        other = find_place({**os.environ, **home.variables, name: str(home.home / "other")})
        home.stop(other)


def test_each_window_has_its_own_environment_and_umask(home: SharedHome) -> None:
    """The first window starts the daemon, and the second one has what that lacks."""
    servers = '{"mcpServers": {"t": {"command": "sh", "args": ["${OWN_KEY}"]}}}'
    umask = os.umask(0o022)
    os.umask(umask)
    with home.window() as one, home.window({"OWN_KEY": "x"}) as two:
        root = one.tree(f"//- /.nexus3/mcp.json\n{servers}\n//- /new/x\n").root
        new = os.path.join(root, "new")
        codes = []
        for window in (one, two):
            window.hello(root, new)
            problems = window.ask("context/layers", root)["problems"]
            codes.append([one["code"] for one in problems])
        assert codes == [["mcp.unset-variable"], []]
        two.ask("workspace/init", new)
        assert stat.S_IMODE(os.stat(os.path.join(new, ".nexus3", "config.json")).st_mode) == 0o644 & ~umask


def test_it_ends_when_nobody_has_used_it_for_a_while(home: SharedHome) -> None:
    settings = home.home / ".nexus3" / "config.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"daemon": {"idle_minutes": 0.005}}))
    with home.window() as window:
        window.hello()
        window.stop()
    block_until(lambda: not client.is_running(home.place))
    assert not os.path.exists(home.place.socket)


def test_a_window_that_comes_in_time_keeps_it_from_ending(home: SharedHome) -> None:
    """Also if it says nothing for long: its edits on the disk are noticed by the daemon alone."""
    settings = home.home / ".nexus3" / "config.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"daemon": {"idle_minutes": 0.04}}))
    with home.window() as window:
        window.hello()
        window.stop()
    pid = home.pid()
    with home.window() as window:
        root = window.tree(TREE).root
        window.hello(root)
        window.layers(root)
        time.sleep(3.5)  # longer than it may be idle
        Path(root, ".nexus3", "config.json").write_text('{"tools": 1}')
        window.until(lambda: window.codes(Path(root, ".nexus3", "config.json")))
        assert home.pid() == pid


def test_it_outlives_the_terminal_of_the_window_that_started_it(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        pid = home.pid()
        assert pid is not None
        assert os.getsid(pid) != os.getsid(window.process.pid)
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        os.kill(window.process.pid, signal.SIGKILL)
        window.wait_exit()
    assert home.pid() == pid


# ---------------------------------------------------------------- its death


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_a_window_does_not_notice_that_its_daemon_ends(either_home: SharedHome, number: int) -> None:
    home = either_home
    with home.window() as window:
        root = Path(window.tree(TREE).root)
        config = root / ".nexus3" / "config.json"
        window.hello()
        window.add(root)
        window.open(config, '{"a" 1}')
        window.type(config, '{"provider": 1}')
        append(window, root, "Before")
        before = wait_diagnosed(window, config, 2)
        first = home.pid()
        home.end(number)
        assert turns(window, root) == ["Before"]
        assert home.pid() not in (None, first)
        window.type(config, '{"provider": 2}')
        assert wait_diagnosed(window, config, 3) == before == ["config.type"]
        assert METHOD not in str(window.received)
        assert [one["id"] for one in window.received if "method" not in one] == sorted(
            {one["id"] for one in window.received if "method" not in one}
        )
        window.goodbye()


def test_diagnostics_that_the_next_daemon_does_not_confirm_are_taken_back(home: SharedHome) -> None:
    with home.window() as window:
        root = Path(window.tree(TREE).root)
        config = root / ".nexus3" / "config.json"
        config.write_text('{"a": 1}')
        window.hello(root)
        block_until(lambda: window.codes(config))
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)  # so that the next daemon alone sees the file as it is then
        config.write_text("{}")
        os.kill(pid, signal.SIGKILL)
        block_until(lambda: not window.codes(config))


def test_a_request_that_may_have_been_carried_out_fails_and_a_repeatable_one_is_sent_again(
    home: SharedHome,
) -> None:
    with home.window() as window:
        root = window.tree(TREE).root
        window.hello(root)
        append(window, root, "Before")
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        folder = {"workspaceFolder": Path(root).as_uri()}
        message = {"messages": [HELLO]}
        unsafe = window.send_request("nexus/session/append", {**folder, **message})
        keyed = window.send_request("nexus/session/append", {**folder, **message, "idempotencyKey": "k"})
        reading = window.send_request("nexus/session/messages", folder)
        os.kill(pid, signal.SIGKILL)
        failure = window.wait_reply(unsafe)["error"]
        assert failure["data"] == {"code": "daemon-restarted", "problems": []}
        assert "nexus/session/append" in failure["message"]
        assert "result" in window.wait_reply(keyed)
        assert "result" in window.wait_reply(reading)
        assert turns(window, root) == ["Before", "Hello"]


def test_a_stopped_daemon_starts_again_only_when_the_editor_says_something(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        home.stop()
        assert window.process.poll() is None
        assert not client.is_running(home.place)
        assert window.request("nexus/status", {})["connections"] == 1


def test_after_a_stop_a_window_that_is_silent_follows_the_one_that_goes_on(home: SharedHome) -> None:
    with home.window() as one, home.window() as two:
        root = one.tree(TREE).root
        one.hello(root)
        two.hello(root)
        home.stop()
        assert not client.is_running(home.place)

        def is_told() -> bool:
            append(one, root, "After")  # the first ones come before the other window is back
            return bool(two.said("nexus/session/didChange"))

        block_until(is_told)


def test_an_isolated_python_starts_an_isolated_daemon(home: SharedHome) -> None:
    command = [sys.executable, "-I", "-m", "nexus_daemon", "serve", "--remote=auto"]
    with Client(command, cwd=home.home, env=home.variables) as window:
        window.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        first = home.pid()
        assert first is not None
        assert "-I" in command_of(first)
        os.kill(first, signal.SIGKILL)  # the window starts the next one, which is not a fork
        block_until(lambda: home.pid() not in (None, first))
        second = home.pid()
        assert second is not None
        assert command_of(second)[1:] == ["-I", "-m", "nexus_daemon", "serve", "--shared"]


def test_the_daemon_has_a_name_and_nothing_of_the_editor(home: SharedHome) -> None:
    nexus = [sys.executable, "-P", "-m", "nexus_daemon", "serve", "--remote=auto"]
    with Client(["sh", "-c", 'exec "$@" 7<. 9<.', "sh", *nexus], cwd=home.home, env=home.variables) as window:
        window.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        process_id = home.pid()
        assert process_id is not None
        daemon, targets = Path(f"/proc/{process_id}"), open_files(process_id)
        assert (daemon / "comm").read_text() == "nexusd\n"
        assert (daemon / "cwd").readlink() == Path("/")
        assert str(home.home) not in targets.values()
        assert (targets["0"], targets["1"]) == (os.devnull, os.devnull)


def test_an_exit_without_shutdown_is_reported_as_by_a_server_of_its_own(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        window.notify("exit")
        assert window.wait_exit() == 1


def test_a_window_that_closes_its_side_leaves(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        window.close_input()
        assert window.wait_exit() == 1
    with home.window() as window:
        window.hello()
        assert window.request("nexus/status", {})["connections"] == 1


# ---------------------------------------------------------------- versions


def greet(home: SharedHome, **changes: str) -> tuple[str, str]:
    """The status and message that a client with these fields gets."""
    fields = client.fields_for("editor", home.place, home.variables)
    pairs = [(name, changes.get(name, value)) for name, value in fields.pairs]
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(home.place.socket)
    with connected, connected.makefile("rb") as file:
        connected.sendall(hello.encode(hello.Fields(pairs)))
        reply = hello.decode(file.read(hello.body_length(file.readline()[:-1])))
    return reply.get("status"), reply.get("message")


def test_a_newer_client_replaces_the_daemon_and_no_window_loses_anything(home: SharedHome) -> None:
    with home.window() as window:
        root = window.tree(TREE).root
        window.hello(root)
        append(window, root, "Before")
        first = home.pid()
        assert greet(home, version="99.0.0")[0] == "replaced"
        append(window, root, "After")
        assert turns(window, root) == ["Before", "After"]
        assert home.pid() not in (None, first)


def test_a_window_of_another_protocol_has_another_daemon(home: SharedHome) -> None:
    """The newer version does not end the windows of the older one, and `nexus stop` ends both."""
    run = "from nexus_daemon.process import version; version.PROTOCOL = 2\n"
    run += "from nexus_daemon.__main__ import main; raise SystemExit(main())"
    with home.window() as window:
        window.hello()
        with Client([sys.executable, "-c", run, "serve", "--remote=auto"], env=home.environ) as other:
            assert other.initialize()["capabilities"]["experimental"]["nexus"]["protocol"] == 2
            places = block_until(lambda: client.places_of_other_protocols(home.place, home.environ))
            assert len(places) == 1
            pids = {one.request("nexus/status", {})["pid"] for one in (window, other)}
            assert len(pids) == 2
            stopped = subprocess.run(
                [sys.executable, "-m", "nexus_daemon", "stop"],
                env=home.environ,
                capture_output=True,
                text=True,
            )
            assert stopped.returncode == 0, stopped.stderr
            assert {pid for pid in pids if f"process {pid}, has ended" in stopped.stdout} == pids


def test_an_older_client_is_served(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        assert greet(home, version="0.0.1") == ("ok", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"facts": "HOME=/other"}, "another NEXUS_HOME, NEXUS_STATE or home directory has another daemon"),
        ({"purpose": "tea"}, "does not know the purpose 'tea'"),
    ],
)
def test_a_client_that_is_refused_is_told_why(
    home: SharedHome, changes: dict[str, str], message: str
) -> None:
    with home.window() as window:
        window.hello()
        status, text = greet(home, **changes)
        assert (status, message in text) == ("refused", True)


# ---------------------------------------------------------------- without a daemon


@pytest.mark.parametrize("obstacle", ["switched off", "not private", "a file", "not a daemon"])
def test_without_a_shared_daemon_a_window_has_one_of_its_own(home: SharedHome, obstacle: str) -> None:
    directory = home.runtime / "nexus"
    variables = {}
    reason = ""
    server = socket.socket(socket.AF_UNIX)
    if obstacle == "switched off":
        variables, reason = {"NEXUS_DAEMON": "off"}, "NEXUS_DAEMON is off"
    elif obstacle == "not private":
        directory.mkdir()
        directory.chmod(0o755)
        reason = f"other users can enter {directory}: run `chmod 700 {directory}`"
    elif obstacle == "a file":
        directory.write_text("")
        reason = f"{directory} is not a directory: remove it"
    else:
        server.bind(home.place.socket)
        server.listen()  # and never answers
        reason = "the daemon did not answer within 5 s"
    with server, home.window(variables) as window:
        root = window.tree(TREE).root
        window.hello(root)
        assert window.request("nexus/status", {})["connections"] == 1
        assert window.ask("context/usage", root)["total"] > 0
        window.goodbye()
        assert f"this window has a daemon of its own: {reason}" in window.stderr
    if obstacle in ("not private", "a file"):
        with pytest.raises(NoSharedDaemonError):
            home.place  # noqa: B018
        directory.unlink() if directory.is_file() else directory.chmod(0o700)


def test_a_stale_socket_and_lock_are_in_nobodys_way(home: SharedHome) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(home.place.socket)
    stale.close()
    Path(home.place.lock).write_text("")
    with home.window() as window:
        window.hello()
        assert window.request("nexus/status", {})["connections"] == 1


# ---------------------------------------------------------------- direct use, and those who should not


def test_an_editor_may_speak_the_protocol_at_the_socket_itself(home: SharedHome) -> None:
    with home.window() as window:
        window.hello()
        with home.connect() as connected:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nexus/status"}).encode()
            connected.sendall(b"content-length: %d\r\n\r\n%s" % (len(body), body))
            assert b"-32002" in connected.recv(4096)


@pytest.mark.parametrize(
    "first",
    [
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /nexus/status HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"NEXUS/2 10\n0123456789",
        b"NEXUS/1 -5\n",
        b"NEXUS/1 999999999\n",
        b"NEXUS/1 00000000000000000000000000000001\n",
        b"NEXUS/1 3\nabc",
        b"NEXUS/1 4\nabc\0",
        b"\n",
        b"\0" * 100,
    ],
)
def test_other_first_bytes_end_the_connection_alone(either_home: SharedHome, first: bytes) -> None:
    home = either_home
    with home.window() as window:
        window.hello()
        with home.connect() as connected:
            connected.sendall(first)
            assert rest_of(connected) == b""
        assert window.request("nexus/status", {})["connections"] == 1


@pytest.mark.parametrize("first", [b"Content-Length: x\r\n\r\n", b"Content-Lengt: 3\r\n\r\n{}"])
@pytest.mark.parametrize("is_greeted", [True, False])
def test_a_broken_first_frame_ends_the_connection_and_is_no_failure_of_the_daemon(
    tmp_path: Path, first: bytes, *, is_greeted: bool
) -> None:
    with shared_home(tmp_path / "home", has_own_log=True) as home:
        with home.window() as window:
            window.hello(home.home)
            fields = client.fields_for("editor", home.place, home.variables)
            with home.connect() as connected:
                connected.sendall((hello.encode(fields) if is_greeted else b"") + first)
                with contextlib.suppress(ConnectionError):
                    while connected.recv(4096):
                        pass
            assert window.request("nexus/status", {})["connections"] == 1
            window.stop()
        home.end()
        errors = home.logged_errors()
    assert [line for line in errors if "nexus_daemon.lsp.link: closing" not in line] == []


@pytest.mark.parametrize("way", ["socket", "port"])
def test_a_server_for_direct_use(tmp_path: Path, way: str) -> None:
    with shared_home(tmp_path / "home") as home:
        path = str(home.runtime / "own.sock")
        arguments = ["--socket", path] if way == "socket" else ["--tcp", "0"]
        command = [sys.executable, "-m", "nexus_daemon", "serve", *arguments]
        environ = {**os.environ, **home.variables}
        with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            text = server.stderr.readline()
            if way == "socket":
                assert text == f"nexus serve listens at {path}. Ctrl-C ends it.\n"
                place = DirectPlace(path, has_socket=True)
            else:
                place = DirectPlace(text.split("token is in ")[1].split(". ")[0], has_socket=False)
            block_until(lambda: os.path.exists(place.address))
            greeted = client.connect(place, client.fields_for("editor", place, home.variables))
            assert greeted is not None
            with contextlib.closing(greeted.socket) as connected:
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "nexus/status"}).encode()
                connected.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                assert b"-32002" in connected.recv(4096)
            server.terminate()
            assert server.wait(10) == 0
            assert not os.path.exists(place.address)
        assert not client.is_running(home.place)


@pytest.mark.parametrize("kind", ["a file", "a socket that somebody listens at", "a stale socket"])
def test_a_server_for_direct_use_takes_nothing_but_a_stale_socket(tmp_path: Path, kind: str) -> None:
    with shared_home(tmp_path / "home") as home, socket.socket(socket.AF_UNIX) as other:
        path = home.runtime / "own.sock"
        if kind == "a file":
            path.write_text("mine")
        else:
            other.bind(str(path))
            if kind != "a stale socket":
                other.listen()
        command = [sys.executable, "-m", "nexus_daemon", "serve", "--socket", str(path)]
        environ = {**os.environ, **home.variables}
        with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as server:
            if kind == "a stale socket":
                place = DirectPlace(str(path), has_socket=True)
                fields = client.fields_for("stop", place, {})
                greeted = block_until(lambda: client.connect(place, fields))
                assert greeted is not None
                greeted.socket.close()
                assert server.wait(10) == 0
            else:
                assert server.wait(10) == 1
                assert server.stderr is not None
                reason = f"{path} exists, and is not the socket of a server that is gone"
                assert server.stderr.read().splitlines()[-1] == f"nexus serve: cannot listen: {reason}"
                assert path.exists()


@pytest.mark.parametrize("proof", [b"", b"0" * 64, b"\xff" * 64])
def test_a_port_is_of_no_use_without_its_token(tmp_path: Path, proof: bytes) -> None:
    with shared_home(tmp_path / "home", "tcp") as home, home.window() as window:
        window.hello()
        assert stat.S_IMODE(os.stat(home.place.token).st_mode) == 0o600
        greeting = hello.encode(client.fields_for("editor", home.place, {}))
        with home.connect() as connected:
            connected.sendall(hello.PROOF_MAGIC + hello.random_number() + b"\n")
            assert len(connected.recv(4096)) == 2 * hello.NUMBER + 2
            connected.sendall(proof + b"\n" + greeting)
            assert rest_of(connected) == b""
        for first in (greeting, b"Content-Length: 2\r\n\r\n{}"):  # nor is the protocol itself
            with home.connect() as connected:
                connected.sendall(first)
                assert rest_of(connected) == b""
        assert window.request("nexus/status", {})["connections"] == 1


def rest_of(connected: socket.socket) -> bytes:
    """What a connection has until its end; a reset ends it, too."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connected.recv(4096):
            received += data
    return received


ANY = client.LOOPBACK, 0
CANARY = "sk-canary-5f2e"
ANSWERS = {
    "nothing": b"",
    "garbage": b"x" * 4096,
    "an old greeting": hello.encode(hello.Fields((("status", "ok"), ("version", "0.1.0"), ("pid", "1")))),
    "another proof": hello.random_number() + b" " + hello.random_number() + b"\n",
}


@pytest.mark.parametrize("answer", [*ANSWERS, "the client's number"])
@pytest.mark.parametrize(
    "command",
    [["check", "."], ["stop"], ["status"], ["hook", "claude-code", "UserPromptSubmit"]],
    ids=lambda words: words[0],
)
def test_who_listens_at_the_port_of_a_dead_daemon_learns_nothing(
    tmp_path: Path, command: list[str], answer: str
) -> None:
    """Another user may listen there, and a new daemon may hold the lock before it has written its address."""
    with (
        shared_home(tmp_path / "home", "tcp") as home,
        socket.create_server((client.LOOPBACK, 0)) as impostor,
    ):
        Path(home.place.token).write_text(f"{impostor.getsockname()[1]} {'ab' * 32}\n")
        received: list[bytes] = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connected, _ = impostor.accept()
                    with connected:
                        first = connected.recv(65536)
                        received.append(first)
                        number = first.removeprefix(hello.PROOF_MAGIC)
                        reply = number[:-1] + b" " + number if answer not in ANSWERS else ANSWERS[answer]
                        connected.sendall(reply)
                        connected.settimeout(1)
                        with contextlib.suppress(TimeoutError):
                            received.append(connected.recv(65536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        lock = election.take_lock(home.place)
        assert lock is not None
        try:
            payload = f'{{"prompt": "{CANARY}"}}'
            ended = subprocess.run(
                [sys.executable, "-m", "nexus_daemon", *command],
                env={**home.environ, "OPENAI_API_KEY": CANARY},
                input=payload,
                capture_output=True,
                text=True,
                timeout=20,
                cwd=home.home,
            )
        finally:
            os.close(lock)
            impostor.close()
        data = b"".join(received)
        assert CANARY.encode() not in data
        assert b"ab" * 32 not in data
        assert b"=" not in data, "no field"
        assert "Traceback" not in ended.stderr
        assert received or command[0] == "check"


def test_the_address_of_a_dead_daemon_is_not_believed(tmp_path: Path) -> None:
    with (
        shared_home(tmp_path / "home", "tcp") as home,
        socket.create_server((client.LOOPBACK, 0)) as impostor,
    ):
        Path(home.place.token).write_text(f"{impostor.getsockname()[1]} {'ab' * 32}\n")
        impostor.settimeout(0.2)
        fields = client.fields_for("editor", home.place, home.variables)
        assert client.connect(home.place, fields) is None
        with pytest.raises(TimeoutError):
            impostor.accept()
        with home.window() as window:  # which starts a daemon, at another address
            window.hello()
            assert window.request("nexus/status", {})["connections"] == 1


def test_the_forwarder_imports_nothing_that_an_editor_waits_for() -> None:
    code = "import sys, nexus_daemon.shared.forwarder, nexus_daemon.shared.entry; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"asyncio", "msgspec", "json", "argparse", "pygls", "lsprotocol", "nexus_context", "typing"}
    assert loaded & heavy == set()
