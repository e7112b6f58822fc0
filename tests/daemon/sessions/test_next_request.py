"""What is predicted of a turn is what it is sent with: to the token, row by row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.desk import Desk, tell_story, write
from support.talk import Talk

COPILOT = "/a/.github/copilot-instructions.md"
MESSAGE = "hi"
MODEL = {"model": "gpt-4.1", "maxContextTokens": 100_000, "memoryTools": True, "agentTools": True}


async def check(
    desk: Desk,
    talk: Talk,
    number: int,
    attached: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    *,
    options: Mapping[str, object] = {},
    turn_tools: Sequence[Mapping[str, object]] = (),
) -> tuple[Any, Any]:
    """Predict a turn and take it: all rows but that of the message are equal; that differs by the text."""
    attachments = [{"uri": desk.uri(path)} for path in attached]
    about = [desk.uri(path) for path in files]
    tools = list(turn_tools)
    next_turn = {"attachments": attachments, "options": options, "files": about, "turnTools": tools}
    predicted = await desk.ask(talk, number, "nexus/context/usage", nextTurn=next_turn)
    turn = await desk.assemble(
        talk,
        number + 1,
        message=MESSAGE,
        attachments=attachments[::-1],
        files=about,
        options=options,
        turnTools=tools,
    )
    *rows, message = predicted["rows"]
    *sent, spoken = turn["usage"]["rows"]
    counted = await desk.ask(talk, number + 2, "nexus/tokens/count", texts=[MESSAGE], model=turn["model"])
    assert rows == sent
    assert (message["label"], spoken["label"]) == ("current message (still empty)", "current message")
    assert message["tokens"] + counted["total"] == spoken["tokens"]
    assert predicted["total"] + counted["total"] == turn["usage"]["total"]
    return predicted, turn


@pytest.mark.parametrize("options", [{}, {"memoryTools": True}, {"agentTools": True}, MODEL])
@pytest.mark.parametrize("placement", ["event", "system", "off"])
@pytest.mark.parametrize("attached", [(), (COPILOT,), (COPILOT, "/a/CLAUDE.md", "/a/NEXUS.md")])
def test_a_first_turn(
    tmp_path: Path, options: dict[str, object], placement: str, attached: tuple[str, ...]
) -> None:
    async def story(desk: Desk) -> None:
        settings = f'{{"context": {{"datetime": {{"placement": "{placement}"}}}}}}'
        write(desk, "/a/.nexus3/config.json", settings)
        write(desk, COPILOT, "Use tabs.\n")
        write(desk, "/a/CLAUDE.md", "# Claude\n\nBe kind!\n")
        write(desk, "/a/.git/HEAD", "ref: refs/heads/main\n")
        await check(desk, await desk.client(), 1, attached, options=options)

    tell_story(tmp_path, story)


def test_later_turns_are_made_with_what_the_last_one_was_request_basis(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, COPILOT, "Use tabs.\n")
        talk = await desk.client()
        await check(desk, talk, 1, (COPILOT,), options=MODEL)
        said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
        await desk.ask(talk, 10, "nexus/session/append", messages=said)
        predicted = await desk.ask(talk, 11, "nexus/context/usage", nextTurn={"options": {"model": "gpt-4o"}})
        assert (predicted["model"], predicted["limit"]) == ("gpt-4.1", 100_000)
        await check(desk, talk, 20, (COPILOT,), options=MODEL)

    tell_story(tmp_path, story)


def test_a_message_that_waits_for_the_agent_is_predicted_and_still_waits(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        sent = {"source": "tester", "target": "main", "content": "The build is red."}
        await desk.ask(talk, 1, "nexus/agent/message", **sent)
        predicted, turn = await check(desk, talk, 2)
        assert any(row["category"] == "memory" for row in predicted["rows"])
        assert "The build is red." in str(turn["currentMessage"])

    tell_story(tmp_path, story)


def test_without_a_next_turn_the_usage_is_that_of_the_conversation(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        usage = await desk.ask(await desk.client(), 1, "nexus/context/usage")
        assert {row["category"] for row in usage["rows"]} == {"system"}

    tell_story(tmp_path, story)


@pytest.mark.parametrize("about", [(), ("/a/src/x.py",)])
def test_copilots_files_that_are_sources(tmp_path: Path, about: tuple[str, ...]) -> None:
    async def story(desk: Desk) -> None:
        listed = '".github/copilot-instructions.md", ".github/instructions/*.instructions.md"'
        settings = f'{{"context": {{"instruction_files": ["NEXUS.md", {listed}]}}}}'
        write(desk, "/a/.nexus3/config.json", settings)
        write(desk, COPILOT, "Use tabs.\n")
        path = "/a/.github/instructions/python.instructions.md"
        write(desk, path, "---\napplyTo: '**/*.py'\n---\nType everything.\n")
        predicted, turn = await check(desk, await desk.client(), 1, (COPILOT,), about)
        assert "Use tabs." in turn["systemPrompt"]
        rows = [row["label"] for row in predicted["rows"] if row["category"] == "memory"]
        label = "For these files: .github/instructions/python.instructions.md"
        assert rows == ([label] if about else [])

    tell_story(tmp_path, story)


def test_tools_of_one_turn_are_predicted_and_sent_with_that_turn_only(tmp_path: Path) -> None:
    read, write_tool = (
        {"name": f"{verb}_notes", "description": f"{verb} the notes"} for verb in ("read", "write")
    )

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        predicted, turn = await check(desk, talk, 1, options=MODEL, turn_tools=[read])
        assert [tool["name"] for tool in turn["tools"] if "notes" in tool["name"]] == ["read_notes"]
        said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
        await desk.ask(talk, 10, "nexus/session/append", messages=said)
        await check(desk, talk, 20, options=MODEL, turn_tools=[read, write_tool])
        await desk.ask(talk, 30, "nexus/session/append", messages=said)
        predicted, turn = await check(desk, talk, 40, options=MODEL)
        tools = [tool["name"] for tool in turn["tools"] if "notes" in tool["name"]]
        assert tools == ["read_notes", "write_notes"]  # still sent, and a note says that they are gone
        pending = [(one["kind"], one["label"]) for one in predicted["pending"]["changes"] if one.get("tool")]
        assert pending == [("removed", "read_notes"), ("removed", "write_notes")]
        assert "The tool read_notes is gone. Do not call it." in str(turn["currentMessage"])

    tell_story(tmp_path, story)


def test_a_tool_that_the_next_turn_will_not_have_breaks_what_the_provider_reuses(tmp_path: Path) -> None:
    tool = {"name": "read_notes", "description": "Read the notes"}

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.assemble(talk, 1, message=MESSAGE, options=MODEL, turnTools=[tool])
        next_turns: list[dict[str, Any] | None] = [
            None,
            {"options": MODEL, "turnTools": [tool]},
            {"options": MODEL},
        ]
        usages = [
            await desk.ask(talk, number, "nexus/context/usage", nextTurn=next_turn)
            for number, next_turn in enumerate(next_turns, 2)
        ]
        assert ["broke" in usage["cache"] for usage in usages] == [False, False, True]

    tell_story(tmp_path, story)


def test_a_tool_of_one_turn_is_disabled_like_any_other(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/.nexus3/config.json", '{"tools": {"disabled": ["read_*"]}}')
        tools = [{"name": "read_notes"}, {"name": "write_notes"}]
        _, turn = await check(desk, await desk.client(), 1, turn_tools=tools)
        assert [tool["name"] for tool in turn["tools"]] == ["write_notes"]
        assert turn["metadata"]["toolsLeftOut"] == {"read_notes": "disabled"}

    tell_story(tmp_path, story)
