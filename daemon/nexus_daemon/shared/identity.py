"""Find out which daemon serves a process, and where its socket and lock are.

1. Two processes share a daemon if they have the same user, home, `NEXUS_HOME`, state directory, transport and
   number of the protocol. Until the windows of an older version are closed, there may be two daemons.
2. The files lie in a directory that only the user can enter: `$XDG_RUNTIME_DIR/nexus`,
   `/run/user/<uid>/nexus`, or else `nexus-<uid>` in the directory for temporary files. The first one whose
   parent exists is used. A directory that others can enter is refused.
3. The names are short, because the address of a socket has room for about 100 bytes. So a name is a checksum
   of the identity, and `hello` compares the identity itself.
4. `NEXUS_DAEMON=off` in the environment means that no shared daemon is used. With `NEXUS_TRANSPORT=tcp` the
   daemon listens on a port of the loopback interface, with a token in a file, instead of a Unix socket. It is
   for file systems without sockets. On Windows this is always the case.
"""

import os
import stat
import sys
import zlib

from nexus_daemon.process.version import PROTOCOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "NEXUS_DAEMON"
LONGEST_ADDRESS = 94  # bytes of a socket's path; the shortest limit of a system is 104, and a suffix is added
TRANSPORT = "NEXUS_TRANSPORT"
_VARIABLES = (
    "NEXUS_HOME",
    "NEXUS_STATE",
    "HOME",
    "USERPROFILE",
    "XDG_STATE_HOME",
    "LOCALAPPDATA",
    TRANSPORT,
)


class NoSharedDaemonError(Exception):
    """No shared daemon can be used. The text says why."""


class Place:
    """Where the daemon of one identity is reached. `facts` is the text of the identity."""

    __slots__ = ("directory", "facts", "has_socket", "name")

    def __init__(self, directory: str, facts: str, *, has_socket: bool = os.name != "nt") -> None:
        self.directory = directory
        self.facts = facts
        self.has_socket = has_socket
        data = os.fsencode(facts)
        self.name = f"{zlib.crc32(data):08x}{zlib.adler32(data):08x}-{PROTOCOL}"

    @property
    def socket(self) -> str:
        """The path of the Unix socket."""
        return os.path.join(self.directory, f"{self.name}.sock")

    @property
    def address(self) -> str:
        """The path of the file by which clients find the daemon: the socket, or the token file."""
        return self.socket if self.has_socket else self.token

    @property
    def token(self) -> str:
        """The path of the file with the port and token of a daemon without a Unix socket."""
        return os.path.join(self.directory, f"{self.name}.tcp")

    @property
    def errors(self) -> str:
        """The path of the file with what the interpreter wrote to standard error since the daemon's start."""
        return os.path.join(self.directory, f"{self.name}.err")

    @property
    def lock(self) -> str:
        return os.path.join(self.directory, f"{self.name}.lock")

    @property
    def is_elected(self) -> bool:
        """Whether the process that listens here holds the lock as long as it lives."""
        return True


class DirectPlace(Place):
    """Where a server listens, by the path of its socket or token file: for direct use, or of another
    identity.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str, *, has_socket: bool) -> None:
        super().__init__(os.path.dirname(path), "", has_socket=has_socket)
        self._path = path

    @property
    def socket(self) -> str:
        return self._path

    @property
    def token(self) -> str:
        return self._path

    @property
    def lock(self) -> str:
        return f"{os.path.splitext(self._path)[0]}.lock"

    @property
    def is_elected(self) -> bool:
        return os.path.exists(self.lock)  # a server for direct use has none


def find_place(environ: "Mapping[str, str]") -> Place:
    """Return the place of the daemon for this environment, and create its directory.

    NoSharedDaemonError if the user has switched the shared daemon off, or if there is no safe directory.
    """
    if environ.get(SWITCH, "").lower() in ("off", "0", "no", "false"):
        raise NoSharedDaemonError(f"{SWITCH} is {environ[SWITCH]}")
    facts = "\n".join(f"{name}={environ[name]}" for name in _VARIABLES if environ.get(name))
    has_socket = os.name != "nt" and environ.get(TRANSPORT, "").lower() != "tcp"
    place = Place(_directory(environ), facts, has_socket=has_socket)
    failure = _make_private(place.directory)
    if failure is not None:
        raise NoSharedDaemonError(failure)
    if has_socket and len(os.fsencode(place.socket)) > LONGEST_ADDRESS:
        raise NoSharedDaemonError(f"the path {place.socket} is too long for a socket: set XDG_RUNTIME_DIR")
    return place


def _directory(environ: "Mapping[str, str]") -> str:
    if os.name == "nt":
        return os.path.join(environ.get("LOCALAPPDATA") or os.path.expanduser("~"), "nexus", "run")
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_own_directory(runtime):
        return os.path.join(runtime, "nexus")
    if _is_own_directory(f"/run/user/{os.getuid()}"):
        return f"/run/user/{os.getuid()}/nexus"
    # on macOS the user's own; a shell of Nix has one for itself, which other windows do not look into
    temporary = environ.get("TMPDIR", "") if sys.platform == "darwin" else ""
    return os.path.join(temporary if os.path.isabs(temporary) else "/tmp", f"nexus-{os.getuid()}")  # noqa: S108 - `_make_private` checks it


def _is_own_directory(path: str) -> bool:
    try:
        info = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def _make_private(directory: str) -> str | None:
    """Make a directory that only the user can enter; the reason why it is not one, or None."""
    try:
        if os.name == "nt":
            os.makedirs(directory, exist_ok=True)
            return None
        try:  # noqa: SIM105 - a hook has no time to import contextlib
            os.mkdir(directory, 0o700)
        except FileExistsError:
            pass
        info = os.lstat(directory)
    except OSError as error:
        return f"{directory} cannot be used: {error.strerror}"
    if not stat.S_ISDIR(info.st_mode):
        return f"{directory} is not a directory: remove it"
    if info.st_uid != os.getuid():
        return f"{directory} belongs to another user: ask for its removal, or set XDG_RUNTIME_DIR"
    if info.st_mode & 0o077:
        return f"other users can enter {directory}: run `chmod 700 {directory}`"
    return None
