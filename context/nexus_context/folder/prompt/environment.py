"""Finds what the prompt says about the host: name, system, processor, terminal, mode.

1. Only facts that stay the same while the process runs: no time, no load, no state of the work.
2. Every fact is one line of at most MAX_FACT visible characters: others may control the host's files and
   names, which must not add headings or hidden instructions to a prompt.
3. A Linux under Windows is recognized by its kernel's name. If the user built that kernel, the distribution's
   name in the environment shows it, which only WSL sets.
"""

import os
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from nexus_context.disk.files import PROMPT_LIMIT, read_text
from nexus_context.folder.prompt import texts

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
WINDOWS_11_BUILD = 22_000
MAX_FACT = 120  # characters

Mode = Literal["repl", "server", "editor"]

_ASSIGNMENT = re.compile(r"^([A-Z_]+)=(.*)$", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")
# the hidden characters that count as printable
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")


class Host(msgspec.Struct, frozen=True):
    """What a host reports about itself.

    `system`, `node`, `release` and `machine` are those of uname. `version` is the macOS version, the Windows
    build ("10.0.22631") or the text of os-release. Each may be empty.
    """

    system: str
    node: str = ""
    release: str = ""
    machine: str = ""
    version: str = ""


class Environment(msgspec.Struct, frozen=True):
    """Facts that do not change while the process runs. `terminal` is None outside the REPL."""

    host: str
    os: str
    arch: str
    terminal: str | None
    mode: str


def detect(mode: Mode, *, environ: Mapping[str, str]) -> Environment:
    """Describe this host for the prompt. Starts no process; never raises for missing facts."""
    return describe(read_host(), mode, environ=environ)


def describe(host: Host, mode: Mode, *, environ: Mapping[str, str]) -> Environment:
    """Describe a host for the prompt."""
    under_windows = bool(environ.get("WSL_DISTRO_NAME"))
    return Environment(
        host=_fact(host.node) or "unknown",
        os=describe_system(host.system, host.release, host.version, under_windows=under_windows),
        arch=_fact(host.machine) or "unknown",
        terminal=describe_terminal(environ) if mode == "repl" else None,
        mode=texts.text(f"mode_{mode}"),
    )


def read_host() -> Host:
    """Return what this host reports about itself."""
    import platform  # only here: it is slow to import

    system = platform.system()
    version = ""
    if system == "Darwin":
        version = platform.mac_ver()[0]
    elif system == "Windows":
        version = platform.win32_ver()[1]
    elif system == "Linux":
        version = os_release(OS_RELEASE)
    if not hasattr(os, "uname"):
        return Host(system, platform.node(), platform.release(), platform.machine(), version=version)
    uname = os.uname()
    return Host(system, uname.nodename, uname.release, uname.machine, version=version)


def os_release(paths: tuple[str, ...]) -> str:
    """Return the text of the first readable file. Empty if there is none."""
    reads = (read_text(path, limit=PROMPT_LIMIT) for path in paths)
    return next((read.text for read in reads if read.status == "loaded" and read.text), "")


def describe_system(system: str, release: str, version: str, *, under_windows: bool = False) -> str:
    """Return the name and version of the operating system. For the arguments see `Host`.

    `under_windows` is true for a Linux that WSL says it runs, whatever its kernel is called.
    """
    if system == "Darwin":
        return _fact(f"macOS {version}")
    if system == "Windows":
        return _describe_windows(release, version)
    if system != "Linux":
        return _fact(f"{system} {release}") or "unknown"
    distribution = _distribution(version)
    if not under_windows and "microsoft" not in release.lower():
        return distribution or "Linux"
    # the kernel of WSL1 is called "4.4.0-22621-Microsoft", that of WSL2 "5.15.153.1-microsoft-standard-WSL2"
    wsl = "WSL1" if "Microsoft" in release and "WSL2" not in release else "WSL2"
    return f"Linux ({wsl} on Windows{', ' if distribution else ''}{distribution})"


def describe_terminal(environ: Mapping[str, str]) -> str | None:
    """Return the terminal program and TERM, as in `vscode (xterm-256color)`. None if neither is known."""
    program = _fact(environ.get("TERM_PROGRAM") or ("Windows Terminal" if environ.get("WT_SESSION") else ""))
    term = _fact(environ.get("TERM", ""))
    if program and term:
        return f"{program} ({term})"
    return program or term or None


def one_line(text: str) -> str:
    """Return the text with a space for each run of white space: a value cannot add lines to the prompt."""
    return " ".join(text.split())


def _fact(text: str) -> str:
    """A fact by rule 2."""
    line = one_line(text[: 2 * MAX_FACT])
    if not (line.isascii() and line.isprintable()):
        line = one_line(_SELECTORS.sub("", "".join(char for char in line if char.isprintable())))
    return line if len(line) <= MAX_FACT else line[: MAX_FACT - 1] + "…"


def _distribution(os_release_text: str) -> str:
    """Name and version of a Linux distribution from its os-release; empty if it has neither."""
    fields = {name: _unquoted(value.strip()) for name, value in _ASSIGNMENT.findall(os_release_text)}
    if fields.get("NAME"):
        return _fact(f"{fields['NAME']} {fields.get('VERSION_ID', '')}")
    return _fact(fields.get("PRETTY_NAME", ""))


def _unquoted(value: str) -> str:
    """A value as a shell reads it: in quotes or not, with escapes in double ones."""
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1]
    return _ESCAPED.sub(r"\1", value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value)


def _describe_windows(release: str, version: str) -> str:
    build = version.rpartition(".")[2]
    if not (build.isascii() and build.isdecimal() and len(build) <= 9):
        return "Windows"
    server = release.removesuffix("Server")
    if server != release:
        return _fact(f"Windows Server {server} (build {build})")
    return f"Windows {11 if int(build) >= WINDOWS_11_BUILD else 10} (build {build})"
