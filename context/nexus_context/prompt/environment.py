"""What the prompt says about the host: name, system, processor, terminal, mode."""

import os
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from nexus_context.files import PROMPT_LIMIT, read_text
from nexus_context.prompt import texts

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
WINDOWS_11_BUILD = 22_000

_ASSIGNMENT = re.compile(r"^([A-Z_]+)=(.*)$", re.MULTILINE)


class Environment(msgspec.Struct, frozen=True):
    """Facts that do not change while the process runs. `terminal` is None outside the REPL."""

    host: str
    os: str
    arch: str
    terminal: str | None
    mode: str


def detect(mode: Literal["repl", "server", "editor"], *, environ: Mapping[str, str]) -> Environment:
    """Read the host, once per process. Starts no process and never raises for what the host lacks."""
    import platform  # only here: it is slow to import

    system = platform.system()
    uname = os.uname() if hasattr(os, "uname") else None
    version = ""
    if system == "Darwin":
        version = platform.mac_ver()[0]
    elif system == "Windows":
        version = platform.win32_ver()[1]
    elif system == "Linux":
        version = next(
            (text for path in OS_RELEASE if (text := read_text(path, limit=PROMPT_LIMIT).text)), ""
        )
    release = uname.release if uname else platform.release()
    return Environment(
        host=one_line(uname.nodename if uname else platform.node()) or "unknown",
        os=one_line(describe_system(system, release, version)),
        arch=one_line(uname.machine if uname else platform.machine()) or "unknown",
        terminal=describe_terminal(environ) if mode == "repl" else None,
        mode=texts.text(f"mode_{mode}"),
    )


def describe_system(system: str, release: str, version: str) -> str:
    """Name and version of the operating system.

    `system` and `release` are those of uname; `version` is the macOS version, the Windows build
    ("10.0.22631") or the text of os-release.
    """
    if system == "Darwin":
        return f"macOS {version}".strip()
    if system == "Windows":
        return _describe_windows(version)
    if system != "Linux":
        return f"{system} {release}".strip() or "unknown"
    if "microsoft" in release.lower():
        return f"Linux ({'WSL2' if 'WSL2' in release or 'microsoft' in release else 'WSL1'} on Windows)"
    fields = {name: value.strip().strip("\"'") for name, value in _ASSIGNMENT.findall(version)}
    name = fields.get("NAME") or fields.get("PRETTY_NAME") or "Linux"
    return f"{name} {fields.get('VERSION_ID', '')}".strip()


def describe_terminal(environ: Mapping[str, str]) -> str | None:
    """Terminal program and TERM, as in `vscode (xterm-256color)`; None if neither is known."""
    program = environ.get("TERM_PROGRAM") or ("Windows Terminal" if environ.get("WT_SESSION") else "")
    term = environ.get("TERM", "")
    if program and term:
        return one_line(f"{program} ({term})")
    return one_line(program or term) or None


def one_line(text: str) -> str:
    """The text with every run of white space as one space: a value cannot add lines to the prompt."""
    return " ".join(text.split())


def _describe_windows(version: str) -> str:
    build = version.rpartition(".")[2]
    if not build.isdecimal():
        return "Windows"
    return f"Windows {11 if int(build) >= WINDOWS_11_BUILD else 10} (build {build})"
