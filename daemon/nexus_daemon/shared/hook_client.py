"""Run `nexus hook`: hand the event of an assistant's hook to the shared daemon, and print its answer, if any.

1. The assistant waits for this process, and must never notice it. Whatever goes wrong, the exit code is 0,
   and only an answer of the daemon is printed. A timer ends the process after LIMIT_S.
2. Nothing slow is imported: no `socket`, no `json`. The payload goes to the daemon as it came.
3. Most events have no answer: the process ends as soon as the daemon's socket has the payload.
4. SPOOLED events are first appended to a small file, and the daemon reads them from there. So no event is
   lost if the daemon hangs, or dies before it has read them. Without a daemon, the next one reads the file.
   STARTING events start a daemon, without waiting for it.
"""

import os
import sys

from nexus_daemon.process.version import PROTOCOL, __version__
from nexus_daemon.shared import hello
from nexus_daemon.shared.identity import NoSharedDaemonError, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nexus_daemon.shared.identity import Place

PURPOSE = "hook"
LIMIT_S = 2.0  # for an event with an answer: the usual ones take milliseconds
QUIET_LIMIT_S = 0.25  # for all others
MOST_BYTES = 4 * 1024 * 1024  # bytes of a payload
MOST_SPOOLED = 256 * 1024  # bytes of the spool
LONGEST_SPOOLED = 16 * 1024  # bytes of a payload in it
SPOOLED = ("InstructionsLoaded", "PreCompact")
STARTING = ("SessionStart", "PreCompact", "session.created")
ANSWERED = ("SessionStart", "UserPromptSubmit", "BeforeAgent")
_COMPACT = b"compact"  # in the payload of a session that goes on after a compaction
_VARIABLES = (
    *("HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"),
    *("XDG_DATA_HOME", "XDG_CONFIG_HOME"),
    *("NEXUS_HOME", "NEXUS_STATE", "XDG_STATE_HOME", "LOCALAPPDATA", "CLAUDE_PID"),
)
_READ = 64 * 1024  # bytes


def run(arguments: "Sequence[str]") -> int:
    """Handle `nexus hook <assistant> <event> [--memory] [--tokens N]`. Always returns 0."""
    try:
        if len(arguments) >= 2:
            _run(arguments[0], arguments[1], arguments[2:], os.environ)
    except Exception:  # noqa: BLE001, S110 - the assistant goes on, whatever went wrong
        pass
    return 0


def _run(assistant: str, event: str, options: "Sequence[str]", environ: "Mapping[str, str]") -> None:
    _limit(LIMIT_S if event in ANSWERED else QUIET_LIMIT_S)
    payload = _read_payload()
    if payload is None:
        return
    has_answer = event in ANSWERED and (event != "SessionStart" or _COMPACT in payload)
    try:
        place = find_place(environ)
    except NoSharedDaemonError:
        return
    process_fields = (
        ("purpose", PURPOSE),
        ("version", __version__),
        ("protocol", str(PROTOCOL)),
        ("facts", place.facts),
    )
    call_fields = (("assistant", assistant), ("event", event), *(("option", option) for option in options))
    is_spooled = event in SPOOLED and spool(place, assistant, event, payload)
    content = ("spooled", "1") if is_spooled else ("payload", os.fsdecode(payload))
    content_fields = (("answer", str(int(has_answer))), content)
    variables = {name: environ[name] for name in _VARIABLES if name in environ}
    message = hello.encode(hello.with_environ((*process_fields, *call_fields, *content_fields), variables))
    if not _send(place, message, is_answered=has_answer) and event in STARTING:
        _start()


def _limit(seconds: float) -> None:
    """End this process after a time, whatever it waits for."""
    if os.name == "nt":
        return  # sockets have time limits, and the assistant ends hooks that take long
    signals: Any = __import__("_signal")  # `signal` itself builds enumerations

    signals.signal(signals.SIGALRM, lambda *_: os._exit(0))
    signals.setitimer(signals.ITIMER_REAL, seconds)


def _read_payload() -> bytes | None:
    """The bytes of standard input; None if they are too many, or nothing that a JSON text can be."""
    data = bytearray()
    while piece := os.read(0, _READ):
        data += piece
        if len(data) > MOST_BYTES:
            return None
    return bytes(data) if data.lstrip()[:1] == b"{" and b"\0" not in data else None


def _send(place: "Place", message: bytes, *, is_answered: bool) -> bool:
    """Send a message to the daemon and print its answer; False if none runs."""
    if place.has_socket:
        import _socket

        connected = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connected.settimeout(LIMIT_S)
        try:
            connected.connect(place.socket)
        except OSError:
            return False
        if not is_users_process(connected):
            return True
    else:
        from nexus_daemon.shared.client import NotReadyError, open_loopback
        from nexus_daemon.shared.identity import NoSharedDaemonError

        try:
            connected = open_loopback(place, LIMIT_S)
        except (NotReadyError, NoSharedDaemonError):
            return False
    connected.sendall(message)
    if is_answered:
        _print_answer(connected)
    return True


def is_users_process(connected: "Socket") -> bool:
    """Whether the process at the other end, which gets the user's prompt, belongs to the user.

    True if the system cannot tell.
    """
    if sys.platform != "linux":
        return True  # the socket is in a directory that only the user can enter
    import _socket

    credentials = connected.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


def _print_answer(connected: "Socket") -> None:
    data = b""
    while piece := connected.recv(_READ):
        data += piece
        line, newline, body = data.partition(b"\n")
        if newline and len(body) >= hello.body_length(line):
            break
    answer = os.fsencode(hello.decode(data.partition(b"\n")[2]).get("output"))
    while answer:
        answer = answer[os.write(1, answer) :]


def spool(place: "Place", assistant: str, event: str, payload: bytes) -> bool:
    """Append an event to the file for the daemon.

    Return False if the event is too long, or the file is full or cannot be written.
    """
    if len(payload) > LONGEST_SPOOLED or not payload.strip():
        return False
    line = b"%s\t%s\t%s\n" % (
        assistant.encode(),
        event.encode(),
        payload.replace(b"\n", b" ").replace(b"\r", b" "),
    )
    path = spool_path(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        while True:
            descriptor = os.open(path, flags, 0o600)
            try:
                if os.fstat(descriptor).st_size + len(line) > MOST_SPOOLED:
                    return False
                os.write(descriptor, line)
                if _is_at(descriptor, path):
                    return True
            finally:
                os.close(descriptor)  # else the daemon has taken the file meanwhile, maybe before the line
    except OSError:
        return False


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def spool_path(place: "Place") -> str:
    """Return the path of the file with spooled events: a line each, with assistant, event and payload."""
    return os.path.join(place.directory, f"{place.name}.hooks")


def _start() -> None:
    """Have a daemon start, without waiting for it; it ends at once if one has started meanwhile."""
    if os.name == "nt":
        return
    isolation = "-I" if sys.flags.isolated else "-P"
    command = (sys.executable, isolation, "-m", "nexus_daemon", "serve", "--shared")
    null = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    )
    try:
        os.posix_spawn(command[0], command, os.environ, file_actions=null, setsid=True)
    except NotImplementedError:
        os.posix_spawn(command[0], command, os.environ, file_actions=null)
