"""Checks what is installed: versions, the commands on PATH, editors, environment variables."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib import metadata

from nexus_daemon.cli.doctor.check import Check, Status, cover_value
from nexus_daemon.cli.invocation import current
from nexus_daemon.process.version import PROTOCOL, __version__

PACKAGES = ("apsw", "lsprotocol", "msgspec", "pydantic", "pygls", "pyyaml", "tiktoken", "watchfiles")
WAL_FIXED = (3, 51, 3)
"""The first version of SQLite in which several writers cannot corrupt a database in WAL mode."""
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
VARIABLES = (
    *("PYTHONPATH", "VIRTUAL_ENV", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"),
    *("LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR"),
)
EXTENSION = "nexus.nexus-context-"
_EXTENSION_PLACES = (".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".cursor", ".windsurf")
_PLUGIN_PLACES = (
    *("nvim/site/pack/nexus/start/nexus", "nvim/lazy/nexus", "nvim/site/pack/core/opt/nexus"),
    "nvim/site/pack/deps/start/nexus",
)


def versions() -> Iterator[Check]:
    """Check the versions of Nexus and Python."""
    yield Check("versions", "nexus", "info", f"{__version__} (protocol {PROTOCOL})")
    version = platform.python_version()
    text = f"{platform.python_implementation()} {version}, {sys.executable}"
    is_supported = sys.version_info >= (3, 11)
    advice = "" if is_supported else "Install Nexus with Python 3.11 or later."
    yield Check("versions", "python", "ok" if is_supported else "fix", text, advice=advice)


def packages() -> Iterator[Check]:
    """Check that the packages that Nexus needs are installed."""
    missing_packages, present_packages = [], []
    for name in PACKAGES:
        try:
            present_packages.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing_packages.append(name)
    yield Check("versions", "packages", "info", ", ".join(present_packages) or "none")
    if missing_packages:
        advice = "Install Nexus again, in an environment of its own (uv tool install, pipx)."
        yield Check("versions", "missing packages", "fix", ", ".join(missing_packages), advice=advice)


def sqlite() -> Iterator[Check]:
    """Check the version of SQLite that apsw has."""
    import apsw

    version = apsw.sqlite_lib_version()
    numbers = tuple(int(number) for number in version.split(".")[:3])
    is_fixed = numbers >= WAL_FIXED
    needed = ".".join(map(str, WAL_FIXED))
    advice = "" if is_fixed else f"Upgrade apsw: below {needed}, several writers can damage the ledger."
    yield Check("versions", "sqlite", "ok" if is_fixed else "fix", f"{version}, by apsw", advice=advice)


def commands() -> Iterator[Check]:
    """Check which `nexus` the shell and the editors start."""
    started = sys.argv[0] if sys.argv else ""
    how = "python -m nexus_daemon" if os.path.basename(started) == "__main__.py" else started
    yield Check("installation", "started as", "info", how or "unknown")
    name = "nexus.exe" if os.name == "nt" else "nexus"
    directories = dict.fromkeys(current().environ.get("PATH", "").split(os.pathsep))
    paths = [os.path.join(directory, name) for directory in directories if directory]
    commands = [path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)]
    if not commands:
        advice = "Editors look for `nexus` on PATH: install it with `uv tool install` or `pipx install`."
        yield Check("installation", "nexus on PATH", "warning", "none", advice=advice)
        return
    different = list(dict.fromkeys(map(os.path.realpath, commands)))
    status: Status = "ok" if len(different) == 1 else "warning"
    advice = "" if len(different) == 1 else "Editors start the first one; remove the others."
    yield Check("installation", "nexus on PATH", status, ", ".join(commands), advice=advice)
    prefix = os.path.realpath(sys.prefix)
    if not different[0].startswith(prefix + os.sep) and not _runs(different[0], sys.executable):
        advice = "The first `nexus` on PATH is another installation than the one that examines itself here."
        yield Check("installation", "this installation", "warning", sys.prefix, advice=advice)


def _runs(command: str, interpreter: str) -> bool:
    """Whether a command is a script of this interpreter."""
    try:
        with open(command, "rb") as file:
            return os.fsencode(interpreter) in file.read(512)
    except OSError:
        return False


def editors() -> Iterator[Check]:
    """Find the VS Code extension and the Neovim plugin where they usually are."""
    home = os.path.expanduser("~")
    for editor_directory in _EXTENSION_PLACES:
        directory = os.path.join(home, editor_directory, "extensions")
        try:
            names = sorted(name for name in os.listdir(directory) if name.startswith(EXTENSION))
        except OSError:
            continue
        for name in names:
            version = name.removeprefix(EXTENSION)
            yield Check("installation", "VS Code extension", "info", f"{version} in {directory}")
    data = current().environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    for plugin_path in _PLUGIN_PLACES:
        path = os.path.join(data, *plugin_path.split("/"))
        if os.path.isdir(path):
            yield Check("installation", "Neovim plugin", "info", path)


def environment() -> Iterator[Check]:
    """Show the variables that change what Nexus does. Keys of providers are only named."""
    names = sorted(name for name in current().environ if name.startswith("NEXUS_"))
    names += [name for name in VARIABLES if name in current().environ]
    for name in names:
        yield Check("installation", name, "info", cover_value(name, current().environ[name]))
    keys = [name for name in KEYS if current().environ.get(name)]
    yield Check("installation", "keys that are set", "info", ", ".join(keys) or "none")
