"""Links and definitions of open documents, asked by an editor."""

from pathlib import Path
from typing import Any

from support.desk import Desk, tell_story, write
from support.talk import Talk

TEXT = "Read @docs/rules.md first.\n"


async def ask(desk: Desk, talk: Talk, number: int, what: str, path: str, **params: Any) -> Any:
    return await desk.ask(
        talk, number, f"textDocument/{what}", textDocument={"uri": desk.uri(path)}, **params
    )


def test_an_import_leads_to_its_file_in_any_instruction_file(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/docs/rules.md", "Be brief.\n")
        talk = await desk.client()
        at = {"position": {"line": 0, "character": 8}}
        assert await ask(desk, talk, 1, "definition", "/a/CLAUDE.md", **at) == []  # not open
        desk.open(talk, "/a/CLAUDE.md", TEXT)  # which Nexus does not read beside NEXUS.md
        (place,) = await ask(desk, talk, 2, "definition", "/a/CLAUDE.md", **at)
        assert place["uri"] == desk.uri("/a/docs/rules.md")
        (link,) = await ask(desk, talk, 3, "documentLink", "/a/CLAUDE.md")
        assert (link["target"], link["range"]["start"]["character"]) == (place["uri"], 5)
        assert await ask(desk, talk, 4, "documentLink", "/a/.nexus3/config.json") == []

    tell_story(tmp_path, story)


def test_a_file_that_is_not_saved_yet_is_there(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(talk, "/a/NEXUS.md", TEXT)
        assert await ask(desk, talk, 1, "documentLink", "/a/NEXUS.md") == []
        desk.open(talk, "/a/docs/rules.md", "Be brief.\n")
        assert len(await ask(desk, talk, 2, "documentLink", "/a/NEXUS.md")) == 1
        desk.close(talk, "/a/NEXUS.md")
        assert await ask(desk, talk, 3, "documentLink", "/a/NEXUS.md") == []

    tell_story(tmp_path, story)
