"""What holds for every test: none of them ever sees the user's own state, and none is about speed.

The variables are set before any test is collected, for this process and all that it starts.
"""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

RAM_DISK = "/dev/shm"
ROOM = 2 << 30  # bytes


def use_ram_disk() -> None:
    """Make temporary files where an fsync takes no time: ledgers make thousands, of milliseconds each.

    Whoever sets TMPDIR has the last word. A disk that runs no programs will not do.
    """
    if sys.platform == "linux" and "TMPDIR" not in os.environ and os.access(RAM_DISK, os.W_OK):
        status = os.statvfs(RAM_DISK)
        if status.f_bavail * status.f_frsize > ROOM and not status.f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"], tempfile.tempdir = RAM_DISK, None


use_ram_disk()
STATE = tempfile.mkdtemp(prefix="nexus-tests-")
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
LOGS = os.environ["NEXUS_LOG"] = os.path.join(STATE, "logs")
for name in ("NEXUS_STATE", "XDG_STATE_HOME"):  # the second where a test hands on no variables of its own
    os.environ[name] = STATE

# no test asks the keyring of whoever runs it
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

# else `nexus status` and `nexus stop` are about daemons that other tests, or the user, have started
RUNTIME = os.environ["XDG_RUNTIME_DIR"] = os.path.join(STATE, "run")
os.mkdir(RUNTIME, 0o700)

# in a script's background Ctrl-C is ignored, and so it would be by what tests start: no handler is inherited
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda *_: None)

for name in ("default", "ci"):  # a busy machine is no bug; how quick things are, benchmarks say
    settings.register_profile(name, settings.get_profile(name), deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

pytest_plugins = ["support.fuzzing", "support.resources"]


from nexus_daemon.lsp import client_log  # noqa: E402 - with the variables above
from support import stall_rule  # noqa: E402

stall_rule.watch_loops()
_reports = stall_rule.ReportFile(os.path.join(STATE, "stalls"))
os.environ.update(_reports.variables(os.environ))


def pytest_collection_finish() -> None:
    """What collection made stays: a collection of garbage need not walk through 9,000 tests each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    """A test's clients leave with it: else they keep their daemons in memory and get what later tests log."""
    yield
    for server in tuple(client_log._servers):  # noqa: SLF001 - only a test leaves without ending its connection
        client_log.leave(server)


@pytest.fixture(autouse=True)
def stall_reports() -> Iterator[stall_rule.ReportFile]:
    """Fail a test that blocked an event loop of the daemon (`support/stall_rule.py`)."""
    list(stall_rule.stalls_in(_reports))
    yield _reports
    blocked = list(stall_rule.stalls_in(_reports))
    if blocked:
        pytest.fail("\n".join(blocked), pytrace=False)
