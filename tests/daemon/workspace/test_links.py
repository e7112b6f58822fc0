"""Files behind symbolic links in an editor: the open document is the file, whichever name it has."""

import itertools
import os
from pathlib import Path

from support.desk import Desk, tell_story
from support.waiting import wait_until

PREVIEW = "nexus/context/preview"
BROKEN = "Read @docs/missing.md first.\n"


def test_what_is_typed_in_the_file_behind_a_link_counts(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        rules = Path(desk.tree.path("/a/CLAUDE.md"))
        rules.write_text("Old rules.\n")
        Path(desk.tree.path("/a/NEXUS.md")).unlink()
        os.symlink("CLAUDE.md", desk.tree.path("/a/AGENTS.md"))
        talk = await desk.client()
        assert "Old rules." in (await desk.ask(talk, 1, PREVIEW))["text"]
        desk.open(talk, "/a/CLAUDE.md", BROKEN)
        await wait_until(lambda: desk.shown(talk, "/a/CLAUDE.md"))
        assert desk.shown(talk, "/a/CLAUDE.md") == ["prompt.import-missing"]
        assert "Old rules." not in (await desk.ask(talk, 2, PREVIEW))["text"]
        desk.close(talk, "/a/CLAUDE.md")
        assert "Old rules." in (await desk.ask(talk, 3, PREVIEW))["text"]
        assert desk.shown(talk, "/a/CLAUDE.md") == []

    tell_story(tmp_path, story)


def test_a_change_on_disk_of_the_file_behind_a_link_is_noticed(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        rules = Path(desk.tree.path("/docs/rules.md"))
        rules.parent.mkdir()
        rules.write_text("Old rules.\n")
        os.mkdir(desk.tree.path("/home/.nexus3"))
        os.symlink(str(rules), desk.tree.path("/home/.nexus3/SOUL.md"))
        talk = await desk.client()
        assert "Old rules." in (await desk.ask(talk, 1, PREVIEW))["text"]
        await wait_until(lambda: [one for one in desk.daemon.watcher.watched if str(rules.parent) in one])
        rules.write_text("New rules.\n")
        numbers = itertools.count(2)

        async def has_new_rules() -> bool:
            return "New rules." in (await desk.ask(talk, next(numbers), PREVIEW))["text"]

        await wait_until(has_new_rules)

    tell_story(tmp_path, story)
