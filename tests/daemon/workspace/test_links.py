"""Files behind symbolic links in an editor: the open document is the file, whichever name it has."""

import itertools
import os
from pathlib import Path

import pytest

from support.desk import Desk, published, tell_story
from support.talk import call
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
        await wait_until(lambda: desk.shown(talk, "/a/CLAUDE.md") == ["prompt.import-missing"])
        assert "Old rules." not in (await desk.ask(talk, 2, PREVIEW))["text"]
        desk.close(talk, "/a/CLAUDE.md")
        assert "Old rules." in (await desk.ask(talk, 3, PREVIEW))["text"]
        await wait_until(lambda: desk.shown(talk, "/a/CLAUDE.md") == [])

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


def test_a_link_that_is_open_has_what_its_file_has(tmp_path: Path) -> None:
    """CLAUDE.md is a link to AGENTS.md: what is typed in either is the text of both."""

    async def story(desk: Desk) -> None:
        Path(desk.tree.path("/a/NEXUS.md")).unlink()
        Path(desk.tree.path("/a/AGENTS.md")).write_text("Old rules.\n")
        os.symlink("AGENTS.md", desk.tree.path("/a/CLAUDE.md"))
        talk = await desk.client()
        desk.open(talk, "/a/CLAUDE.md", BROKEN)
        # beside what Claude Code minds, which reads the link and is checked at another time
        await wait_until(lambda: "prompt.import-missing" in (desk.shown(talk, "/a/CLAUDE.md") or ()))
        lenses = {"textDocument": {"uri": desk.uri("/a/CLAUDE.md")}}
        talk.send(call(1, "textDocument/codeLens", lenses))
        assert (await desk.reply(talk, 1))["result"]
        assert "missing.md" in (await desk.ask(talk, 2, PREVIEW))["text"]
        desk.open(talk, "/a/AGENTS.md", BROKEN)
        desk.close(talk, "/a/CLAUDE.md")
        assert "missing.md" in (await desk.ask(talk, 3, PREVIEW))["text"]
        await wait_until(lambda: desk.shown(talk, "/a/AGENTS.md"))
        desk.close(talk, "/a/AGENTS.md")
        assert "Old rules." in (await desk.ask(talk, 4, PREVIEW))["text"]
        await wait_until(lambda: desk.shown(talk, "/a/AGENTS.md") == [])

    tell_story(tmp_path, story)


def test_a_file_is_served_by_the_path_of_a_link_to_its_folder(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        os.symlink("a", desk.tree.path("/link"))
        talk = await desk.client()
        desk.open(talk, "/link/NEXUS.md", BROKEN)
        await wait_until(lambda: desk.shown(talk, "/link/NEXUS.md"))
        assert "missing.md" in (await desk.ask(talk, 1, PREVIEW))["text"]
        desk.close(talk, "/link/NEXUS.md")
        assert "missing.md" not in (await desk.ask(talk, 2, PREVIEW))["text"]
        await wait_until(lambda: desk.shown(talk, "/link/NEXUS.md") == [])

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "text", "expected"), [("/a/NEXUS.md", BROKEN, 1), ("/a/.nexus3/config.json", "{}", 0)]
)
def test_a_buffer_that_is_reloaded_shows_its_problems_again(
    tmp_path: Path, path: str, text: str, expected: int
) -> None:
    """Closed and opened at once with the same version and text: the client has forgotten what it showed."""

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(talk, path, text)
        await wait_until(lambda: desk.shown(talk, path) is not None)
        for number in (1, 2):
            before = len(published(talk))
            desk.close(talk, path)
            desk.open(talk, path, text)
            await desk.ask(talk, number, PREVIEW)
            await wait_until(lambda before=before: len(published(talk)) > before)  # type: ignore[misc]
            params = [one["params"] for one in published(talk)[before:]]
            shown = [one for one in params if one["uri"] == desk.uri(path)][-1]
            assert (shown.get("version"), len(shown["diagnostics"])) == (1, expected)

    tell_story(tmp_path, story)
