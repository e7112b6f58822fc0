"""A value that a nearer layer overrides is greyed out, with a link to the one in force."""

from pathlib import Path
from typing import Any

from support.desk import Desk, published, tell_story, write
from support.waiting import wait_until

PARENT = '{"compaction": {"threshold": 0.7, "enabled": true}}'


def test_a_value_that_does_not_count_is_greyed_out(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/home/.nexus3/config.json", PARENT)
        write(desk, "/a/.nexus3/config.json", '{"compaction": {"threshold": 0.9}}')
        talk = await desk.client()
        desk.open(talk, "/home/.nexus3/config.json", PARENT)
        uri = desk.uri("/home/.nexus3/config.json")

        def hints() -> list[Any]:
            sent = [each["params"] for each in published(talk) if each["params"]["uri"] == uri]
            return sent[-1]["diagnostics"] if sent else []

        await wait_until(lambda: len(hints()) == 1)
        (hint,) = hints()
        assert (hint["code"], hint["severity"], hint["tags"]) == ("config.overridden", 4, [1])
        assert hint["range"] == {"start": {"line": 0, "character": 16}, "end": {"line": 0, "character": 27}}
        (related,) = hint["relatedInformation"]
        assert related["location"]["uri"] == desk.uri("/a/.nexus3/config.json")

    tell_story(tmp_path, story)
