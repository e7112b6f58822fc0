"""Nexus is updated while its daemon runs: what needs a module that is gone says so, a new daemon goes on."""

import os
import shutil
from pathlib import Path

import pytest

import nexus_context
import nexus_daemon
from support.client import ReplyError
from support.shared import shared_home
from support.waiting import block_until


def test_an_update_is_said_and_a_new_daemon_takes_over(tmp_path: Path) -> None:
    code = tmp_path / "code"
    for package in (nexus_context, nexus_daemon):
        source = Path(str(package.__file__)).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, code / source.name, ignore=ignored)
    with shared_home(tmp_path / "home") as home:
        home.variables["PYTHONPATH"] = os.pathsep.join([str(code), os.environ["PYTHONPATH"]])
        with home.window() as window:
            root = window.tree("//- /AGENTS.md\nUse tabs.\n").root
            window.hello(root)
            window.layers(root)
            pid = window.request("nexus/status", {})["pid"]
            module = code / "nexus_daemon" / "api" / "knowledge.py"
            text = module.read_text()
            module.unlink()
            with pytest.raises(ReplyError, match="Nexus was updated while its daemon ran"):
                window.ask("knowledge/status", root)
            module.write_text(text)
            block_until(lambda: window.request("nexus/status", {})["pid"] != pid)
            window.ask("knowledge/status", root)
