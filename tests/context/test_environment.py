"""What the prompt says about the host."""

import pytest

from nexus_context.prompt.environment import describe_system, describe_terminal, detect

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n'


@pytest.mark.parametrize(
    ("system", "release", "version", "expected"),
    [
        ("Linux", "6.1.0-18-amd64", DEBIAN, "Debian GNU/Linux 12"),
        ("Linux", "6.8.0", "NAME='Arch Linux'\n", "Arch Linux"),
        ("Linux", "6.8.0", "", "Linux"),
        ("Linux", "5.15.153.1-microsoft-standard-WSL2", DEBIAN, "Linux (WSL2 on Windows)"),
        ("Linux", "4.4.0-22621-Microsoft", DEBIAN, "Linux (WSL1 on Windows)"),
        ("Darwin", "24.1.0", "15.1", "macOS 15.1"),
        ("Darwin", "24.1.0", "", "macOS"),
        ("Windows", "10", "10.0.22631", "Windows 11 (build 22631)"),
        ("Windows", "10", "10.0.19045", "Windows 10 (build 19045)"),
        ("Windows", "10", "", "Windows"),
        ("FreeBSD", "14.1-RELEASE", "", "FreeBSD 14.1-RELEASE"),
        ("", "", "", "unknown"),
    ],
)
def test_systems_are_told_apart(system: str, release: str, version: str, expected: str) -> None:
    assert describe_system(system, release, version) == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM_PROGRAM": "vscode", "TERM": "xterm-256color"}, "vscode (xterm-256color)"),
        ({"TERM": "screen"}, "screen"),
        ({"WT_SESSION": "1"}, "Windows Terminal"),
        ({"TERM": "a\n## Fake heading"}, "a ## Fake heading"),
        ({}, None),
    ],
)
def test_terminals_are_named(environ: dict[str, str], expected: str | None) -> None:
    assert describe_terminal(environ) == expected


def test_the_host_is_detected() -> None:
    environ = {"TERM": "xterm"}
    repl, server, editor = (detect(mode, environ=environ) for mode in ("repl", "server", "editor"))
    assert (repl.mode, server.mode, editor.mode) == (
        "Interactive REPL",
        "HTTP JSON-RPC Server",
        "Editor (language server)",
    )
    assert (repl.terminal, server.terminal, editor.terminal) == ("xterm", None, None)
    assert repl.host and repl.os and repl.arch
    assert (repl.host, repl.os, repl.arch) == (server.host, server.os, server.arch)
