"""`nexus trust`, and what it changes for commands and open windows."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from nexus_context.disk.user_state import NoStateDirectoryError
from nexus_context.folder.trust import trust_file
from nexus_daemon.cli import main
from nexus_daemon.workspace.inputs import load_inputs
from support.commands import output_of, use_home
from support.desk import Desk, tell_story
from support.fixture import Fixture, write_fixture
from support.waiting import wait_until

FIXTURE = """
//- /home/a/NEXUS.md
Rules.
//- /home/a/.nexus3/mcp.json
{"mcpServers": {"here": {"command": "sh"}}}
//- /home/a/b/NEXUS.md
More rules.
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def test_a_folder_is_trusted_listed_and_revoked(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree.path("/home/a")
    assert "trusts" not in output_of(tree, capsys, "trust", "--list")
    assert "| here | stdio | local | untrusted folder |" in output_of(tree, capsys, "show", folder)
    text = "~/a is trusted: Nexus may run git and the MCP servers that you approve there.\n"
    assert output_of(tree, capsys, "trust", folder) == text
    assert output_of(tree, capsys, "trust", folder) == text.replace("is trusted", "is already trusted")
    assert output_of(tree, capsys, "trust", "--list") == "~/a\n"
    assert json.loads(output_of(tree, capsys, "trust", "--list", "--json")) == {"folders": ["/home/a"]}
    assert os.stat(trust_file(os.environ)).st_mode & 0o777 == 0o600
    assert "| here | stdio | local | configured |" in output_of(tree, capsys, "show", folder)
    inner = tree.path("/home/a/b")
    assert "as a part of ~/a; revoke that" in output_of(tree, capsys, "trust", "--revoke", inner, code=1)
    assert output_of(tree, capsys, "trust", "--revoke", folder) == "~/a is no longer trusted.\n"
    assert output_of(tree, capsys, "trust", "--revoke", folder) == "~/a was not trusted.\n"
    assert "| here | stdio | local | untrusted folder |" in output_of(tree, capsys, "show", folder)


def test_a_link_trusts_what_it_leads_to(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    os.symlink(tree.path("/home/a"), tree.path("/link"))
    assert output_of(tree, capsys, "trust", tree.path("/link")).startswith("~/a is trusted")
    assert "configured" in output_of(tree, capsys, "show", tree.path("/link"))


def test_what_is_no_directory(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a directory" in output_of(tree, capsys, "trust", tree.path("/home/a/NEXUS.md"), code=2)
    assert "is not a directory" in output_of(tree, capsys, "trust", tree.path("/nowhere"), code=2)


def test_no_place_for_the_list(
    tree: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(tree.path("/state")).write_text("no directory\n")
    assert "cannot be written" in output_of(tree, capsys, "trust", tree.path("/home/a"), code=1)

    def fail(_: object) -> str:
        raise NoStateDirectoryError

    monkeypatch.setattr("nexus_context.folder.trust.state_directory", fail)
    assert load_inputs(os.environ).trusted is False
    assert "NEXUS_STATE" in output_of(tree, capsys, "trust", tree.path("/home/a"), code=1)


def test_a_message_tells_changed_files_of_a_trusted_folder(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tree.path("/home/a")
    subprocess.run(["git", "init", "-qb", "main", folder], check=True)
    assert "not tracked" not in output_of(tree, capsys, "show", folder, "--message", "Why?")
    output_of(tree, capsys, "trust", folder)
    assert "Changed files: 3 not tracked" in output_of(tree, capsys, "show", folder, "--message", "Why?")


def test_an_open_window_follows_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        desk.daemon.load_inputs = load_inputs({"HOME": desk.tree.path("/home"), **state})
        talk = await desk.client()

        async def is_trusted(trusted: bool) -> None:
            await wait_until(lambda: desk.connection(talk).folders.trusts(desk.tree.path("/a")) is trusted)

        await is_trusted(False)
        assert main(["trust", desk.tree.path("/a")]) == 0
        await is_trusted(True)
        assert main(["trust", "--revoke", desk.tree.path("/a")]) == 0
        await is_trusted(False)

    state = {"NEXUS_STATE": str(tmp_path / "state")}
    monkeypatch.setenv("NEXUS_STATE", state["NEXUS_STATE"])
    tell_story(tmp_path, story)
