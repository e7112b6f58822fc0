"""The daemon's threads share few arenas of malloc."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from nexus_daemon.workspace.malloc_arenas import MOST_ARENAS

PROGRAM = """
import ctypes, sys, threading
from nexus_daemon.workspace.workers import Workers

if sys.argv[1] == "limited":
    Workers(lambda: None)
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.fopen.restype = ctypes.c_void_p
everybody = threading.Barrier(16)

def allocate():
    library.malloc(ctypes.c_size_t(10_000))
    everybody.wait()

threads = [threading.Thread(target=allocate) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(library.fopen(sys.argv[2].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no arenas")
@pytest.mark.parametrize(("kind", "is_limited"), [("limited", True), ("plain", False)])
def test_arenas(tmp_path: Path, kind: str, is_limited: bool) -> None:
    report = tmp_path / "report.xml"
    subprocess.run([sys.executable, "-c", PROGRAM, kind, str(report)], check=True)
    arenas = report.read_text().count("<heap nr=")
    assert (arenas <= MOST_ARENAS) == is_limited
