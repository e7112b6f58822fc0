"""What the prompt says about the host."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.folder.prompt.environment import (
    MAX_FACT,
    Environment,
    Host,
    describe,
    describe_system,
    describe_terminal,
    detect,
    os_release,
)

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n'
EDITOR = "Editor (language server)"


def check(host: Host, environ: dict[str, str], expected: Environment) -> None:
    """The description of a host in the REPL."""
    assert describe(host, "repl", environ=environ) == expected


def test_hosts_are_described() -> None:
    repl = "Interactive REPL"
    check(
        Host("Linux", "box", "6.1.0-18-amd64", "x86_64", DEBIAN),
        {"TERM": "xterm"},
        Environment("box", "Debian GNU/Linux 12", "x86_64", "xterm", repl),
    )
    check(
        Host("Linux", "desk", "6.6.0-mine", "aarch64", "NAME=Ubuntu\nVERSION_ID=24.04\n"),
        {"WSL_DISTRO_NAME": "Ubuntu-24.04", "WT_SESSION": "1"},
        Environment("desk", "Linux (WSL2 on Windows, Ubuntu 24.04)", "aarch64", "Windows Terminal", repl),
    )
    check(Host(""), {}, Environment("unknown", "unknown", "unknown", None, repl))


@pytest.mark.parametrize(
    ("system", "release", "version", "expected"),
    [
        ("Linux", "6.1.0-18-amd64", DEBIAN, "Debian GNU/Linux 12"),
        ("Linux", "6.1.0-18-amd64", "PRETTY_NAME='Void Linux'\n", "Void Linux"),
        ("Linux", "6.8.0", "NAME='Arch Linux'\n", "Arch Linux"),
        ("Linux", "6.8.0", "# NAME=no\r\nNAME=Alpine\r\nVERSION_ID=3.20.1\r\n", "Alpine 3.20.1"),
        ("Linux", "6.8.0", 'NAME="A \\"quoted\\" \\$name"\n', 'A "quoted" $name'),
        ("Linux", "6.8.0", "", "Linux"),
        ("Linux", "6.8.0", "no assignment\n=\nNAME=\n", "Linux"),
        (
            "Linux",
            "5.15.153.1-microsoft-standard-WSL2",
            DEBIAN,
            "Linux (WSL2 on Windows, Debian GNU/Linux 12)",
        ),
        ("Linux", "5.15.153.1-microsoft-standard-WSL2", "", "Linux (WSL2 on Windows)"),
        ("Linux", "4.19.84-microsoft-standard", "", "Linux (WSL2 on Windows)"),
        ("Linux", "4.4.0-22621-Microsoft", DEBIAN, "Linux (WSL1 on Windows, Debian GNU/Linux 12)"),
        ("Darwin", "24.1.0", "15.1", "macOS 15.1"),
        ("Darwin", "24.1.0", "", "macOS"),
        ("Windows", "11", "10.0.22631", "Windows 11 (build 22631)"),
        ("Windows", "10", "10.0.19045", "Windows 10 (build 19045)"),
        ("Windows", "2022Server", "10.0.20348", "Windows Server 2022 (build 20348)"),
        ("Windows", "10", "", "Windows"),
        ("Windows", "10", "10.0.²", "Windows"),
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x\x1b[31m \x1b y\u2028z", "x[31m y z"),
        ("a\u202eb\u200bc\ufe01d\U000e0041e", "abcde"),
        ("Müller\udcff-Mac", "Müller-Mac"),
        ("n" * (MAX_FACT + 1), "n" * (MAX_FACT - 1) + "…"),
    ],
)
def test_names_that_others_gave_bring_nothing_into_the_prompt(name: str, shown: str) -> None:
    host = Host("Linux", name, machine=name, version=f'NAME="{name}"\n')
    told = describe(host, "editor", environ={})
    assert (told.host, told.arch, told.terminal, told.mode) == (shown, shown, None, EDITOR)
    assert describe_terminal({"TERM": name}) == shown


@given(st.text(max_size=400), st.text(max_size=400))
def test_every_fact_is_one_short_line(given: str, release: str) -> None:
    host = Host("Linux", given, release, given, f'NAME="{given}"\nVERSION_ID={given}\n')
    told = describe(host, "repl", environ={"TERM": given, "TERM_PROGRAM": given})
    for fact in (told.host, told.os, told.arch, told.terminal or ""):
        assert len(fact) <= 3 * MAX_FACT
        assert fact.isprintable()
        assert len(fact.splitlines()) <= 1


@pytest.mark.skipif(sys.platform == "win32", reason="links and devices of POSIX")
def test_only_an_ordinary_os_release_is_read(tmp_path: Path) -> None:
    paths = tuple(str(tmp_path / name) for name in ("directory", "loop", "nul", "large", "good", "other"))
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nul").write_bytes(b"NAME=\0")
    (tmp_path / "large").write_bytes(b"NAME=x\n" * (1 << 20))
    (tmp_path / "good").write_text(DEBIAN)
    (tmp_path / "other").write_text("NAME=other\n")
    assert os_release(paths) == DEBIAN
    assert os_release(paths[:4]) == ""


def test_the_host_is_detected() -> None:
    environ = {"TERM": "xterm"}
    repl, server, editor = (detect(mode, environ=environ) for mode in ("repl", "server", "editor"))
    assert (repl.mode, server.mode, editor.mode) == (
        "Interactive REPL",
        "HTTP JSON-RPC Server",
        EDITOR,
    )
    assert (repl.terminal, server.terminal, editor.terminal) == ("xterm", None, None)
    assert repl.host and repl.os and repl.arch
    assert (repl.host, repl.os, repl.arch) == (server.host, server.os, server.arch)
