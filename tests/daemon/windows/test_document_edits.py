"""Edits that editors send and no protocol describes: what can be meant is done, what cannot waits."""

from pathlib import Path
from typing import Any

import pytest

from support.desk import Desk, tell_story
from support.talk import Talk, tell
from support.waiting import wait_until

PREVIEW = "nexus/context/preview"
NOTES = "/a/NEXUS.md"


def edit(talk: Talk, desk: Desk, version: object, *changes: dict[str, Any]) -> None:
    document = {"uri": desk.uri(NOTES), "version": version}
    talk.send(tell("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)}))


def place(start: tuple[float, float], end: tuple[float, float]) -> dict[str, Any]:
    return {
        name: {"line": line, "character": character}
        for name, (line, character) in (("start", start), ("end", end))
    }


@pytest.mark.parametrize("far", [5.0, 1.7976931348623157e308, 2147483647, 9223372036854776000])
def test_a_number_past_the_end_is_the_end(tmp_path: Path, far: float) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(talk, NOTES, "Use tabs.\n")
        edit(talk, desk, 2.0, {"range": place((0.0, 4), (0, far)), "text": "pnpm."})
        assert "Use pnpm." in (await desk.ask(talk, 1, PREVIEW))["text"]

    tell_story(tmp_path, story)


def test_what_cannot_be_applied_makes_the_text_unknown_until_it_is_whole(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(talk, NOTES, "@missing.md\n")
        await wait_until(lambda: desk.shown(talk, NOTES))
        edit(talk, desk, 2, {"range": {"start": {"line": 0}}, "text": "x"})
        edit(talk, desk, 3, {"range": place((0, 0), (0, 11)), "text": "Use tabs."})
        assert "Use tabs." not in (await desk.ask(talk, 1, PREVIEW))["text"], (
            "nobody knows where it was typed"
        )
        edit(talk, desk, 4, {"text": "Use spaces.\n"})
        assert "Use spaces." in (await desk.ask(talk, 2, PREVIEW))["text"]
        await wait_until(lambda: desk.shown(talk, NOTES) == [])

    tell_story(tmp_path, story)
