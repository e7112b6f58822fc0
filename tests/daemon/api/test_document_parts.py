"""A key of Nexus whose parts several files set."""

from pathlib import Path

from support.desk import Desk, tell_story, write


def test_an_object_names_the_files_that_set_its_parts(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/home/.nexus3/config.json", '{"compaction": {"threshold": 0.7}}')
        text = '{"compaction": {"enabled": true}}'
        write(desk, "/a/.nexus3/config.json", text)
        talk = await desk.client()
        desk.open(talk, "/a/.nexus3/config.json", text)
        document = {"uri": desk.uri("/a/.nexus3/config.json")}
        where = {"textDocument": document, "position": {"line": 0, "character": 3}}
        shown = await desk.ask(talk, 1, "textDocument/hover", **where)
        lines = shown["contents"]["value"].split("\n")
        assert any(line.startswith("In force from a file: ") for line in lines)
        assert [line for line in lines if "parts of it" in line] == [
            "- ~/.nexus3/config.json:1 parts of it",
            "- .nexus3/config.json:1 parts of it",
        ]

    tell_story(tmp_path, story)
