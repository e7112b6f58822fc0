"""The model that the user picks in the editor: what is shown and what triggers are counted for it."""

from pathlib import Path
from typing import Any

import pytest

from support.desk import CONFIG, Desk, tell_story

SAID = "The vault opens at nine and closes at five. " * 40
LONG = [{"role": "user", "content": SAID}, {"role": "assistant", "content": SAID}] * 8
PICKED = {"model": "gpt-4o", "maxContextTokens": 9_000}


async def usage(desk: Desk, talk: Any, message_id: int) -> tuple[str, int]:
    spent = await desk.ask(talk, message_id, "nexus/context/usage")
    return spent["model"], spent["limit"]


def test_usage_is_counted_for_the_model_of_the_last_turn(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        settings = await usage(desk, talk, 2)
        await desk.assemble(talk, 3, options=PICKED)  # a look
        assert await usage(desk, talk, 4) == settings
        turn = await desk.assemble(talk, 5, message="Go on.", options=PICKED)
        assert (turn["usage"]["model"], turn["usage"]["limit"]) == ("gpt-4o", 9_000)
        assert await usage(desk, talk, 6) == ("gpt-4o", 9_000)
        told = await desk.ask(talk, 7, "nexus/session/append", messages=LONG[:2])
        assert (told["usage"]["model"], told["usage"]["limit"]) == ("gpt-4o", 9_000)
        turn = await desk.assemble(talk, 8, message="Go on.")  # which names none
        assert (turn["usage"]["model"], turn["usage"]["limit"]) == ("gpt-4o", 9_000)
        assert await usage(desk, talk, 9) == ("gpt-4o", 9_000)

    tell_story(tmp_path, story)


def test_what_is_sent_besides_counts_too(tmp_path: Path) -> None:
    """The tools that a chat offers are in each of its requests: figures and cache are of the same thing."""

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        turn = await desk.assemble(talk, 2, message="Go on.", options=PICKED | {"memoryTools": True})
        spent = await desk.ask(talk, 3, "nexus/context/usage")
        rows = [row for row in turn["usage"]["rows"] if row["category"] != "event"]
        stored = [row for row in rows if row["category"] != "history"]  # without the opening of the session
        assert spent["rows"] == stored
        assert spent["total"] == sum(row["tokens"] for row in stored)
        assert spent["cache"]["prefixTokens"] == sum(row["tokens"] for row in rows)

    tell_story(tmp_path, story)


def test_a_turn_for_it_is_compacted_when_it_is_due(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 2, "nexus/session/append", messages=LONG)
        looked = await desk.assemble(talk, 3, options=PICKED)
        assert "compaction" not in looked["metadata"]
        turn = await desk.assemble(talk, 4, message="Go on.", options=PICKED)
        assert turn["metadata"]["compaction"]["receipt"]["replacedMessages"] > 0
        assert turn["usage"]["total"] < 0.8 * turn["usage"]["available"]

    tell_story(tmp_path, story)


@pytest.mark.parametrize("more", [{"truncationStrategy": "sliding"}, {"reserveTokens": 100}])
def test_who_tries_another_way_of_cutting_compacts_nothing(tmp_path: Path, more: dict[str, Any]) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 2, "nexus/session/append", messages=LONG)
        turn = await desk.assemble(talk, 3, message="Go on.", options=PICKED | more)
        assert "compaction" not in turn["metadata"]

    tell_story(tmp_path, story)


def test_settings_that_name_a_provider_have_the_last_word(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        Path(desk.tree.path(CONFIG)).write_text('{"provider": {"name": "openai", "model": "gpt-4.1"}}')
        talk = await desk.client()
        settings = await usage(desk, talk, 2)
        await desk.ask(talk, 3, "nexus/session/append", messages=LONG)
        turn = await desk.assemble(talk, 4, message="Go on.", options=PICKED)
        assert "compaction" not in turn["metadata"]
        assert await usage(desk, talk, 5) == settings

    tell_story(tmp_path, story)


def test_a_look_is_not_what_a_turn_was_made_of(tmp_path: Path) -> None:
    """Panels look at what would be sent at any time, also between a turn's request and its append."""

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.assemble(talk, 2, message="Go on.", options=PICKED)
        await desk.assemble(talk, 3, options={"model": "gpt-4.1"})
        await desk.ask(talk, 4, "nexus/session/append", messages=LONG[:2])
        lines = (await desk.ask(talk, 5, "nexus/session/export", format="jsonl"))["text"]
        assert '"model":"gpt-4o"' in lines
        assert "gpt-4.1" not in lines

    tell_story(tmp_path, story)
