"""What the next request could reuse of the last one: told with the usage, before anybody pays for it."""

from pathlib import Path
from typing import Any

from support.desk import CONFIG, Desk, tell_story
from support.talk import Talk, tell
from support.waiting import wait_until

NEXUS = "/a/NEXUS.md"
TURN = [
    {"role": "user", "content": "Who calls sign()?"},
    {"role": "assistant", "content": "Only open() does."},
]
OPTIONS = {
    "additionalSystemPrompt": "Answer in Serbian.",
    "additionalTools": [{"name": "search", "description": "Find.", "inputSchema": {"type": "object"}}],
}


async def cache(desk: Desk, talk: Talk, message_id: int, **params: object) -> Any:
    return (await desk.ask(talk, message_id, "nexus/context/usage", **params)).get("cache")


def breaks(talk: Talk) -> list[Any]:
    told = [one["params"] for one in talk.writer.messages() if one.get("method") == "nexus/context/didChange"]
    caches = [one["usage"].get("cache", {}) for one in told]
    return [one for one in caches if "broke" in one]


def test_an_edit_breaks_what_was_sent_and_taking_it_back_mends_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(
            talk, CONFIG, '{"context": {"replay": "plain"}}'
        )  # else a note tells it, and nothing breaks
        desk.open(talk, NEXUS, "A.\n")
        assert await cache(desk, talk, 2) is None
        turn = await desk.assemble(talk, 3, message="Hello.", options=OPTIONS)
        sent = turn["metadata"]["stablePrefixTokens"]
        assert await cache(desk, talk, 4) == {"reusedTokens": sent, "prefixTokens": sent}
        await desk.ask(talk, 5, "nexus/session/append", messages=TURN)
        grown = await cache(desk, talk, 6)
        assert (grown.keys(), grown["reusedTokens"]) == ({"reusedTokens", "prefixTokens"}, sent)
        assert grown["prefixTokens"] > sent

        type_text(desk, talk, "A. Be brief.\n", 2)
        broken = await cache(desk, talk, 7)
        assert (await wait_until(lambda: breaks(talk)))[-1] == broken
        source = broken["broke"].pop("source")
        assert source["uri"] == desk.uri(NEXUS)
        assert broken["broke"].pop("tokens") == sent - broken["reusedTokens"] > 0
        assert (broken["broke"].pop("category"), broken["broke"].pop("label")) == (
            "system",
            "Project Configuration",
        )
        assert await cache(desk, talk, 8, session="other") is None

        type_text(desk, talk, "A.\n", 3)
        assert await cache(desk, talk, 9) == grown
        again = await desk.assemble(talk, 10, message="Go on.", options=OPTIONS)
        assert again["metadata"]["cache"] == grown

    tell_story(tmp_path, story)


def test_a_compaction_breaks_it_and_a_cleared_conversation_has_none(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 2, "nexus/session/append", messages=TURN * 12)
        await desk.assemble(talk, 3, message="Hello.")
        assert "broke" not in await cache(desk, talk, 4)
        assert await desk.ask(talk, 5, "nexus/session/compact")
        assert (await cache(desk, talk, 6))["broke"]["category"] == "history"
        await desk.ask(talk, 7, "nexus/session/clear")
        assert await cache(desk, talk, 8) is None

    tell_story(tmp_path, story)


def type_text(desk: Desk, talk: Talk, text: str, version: int) -> None:
    document = {"uri": desk.uri(NEXUS), "version": version}
    talk.send(tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}))
