"""Conversations are listed, found and read as the ledger has them, of one folder or of all."""

from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.lsp.convert import uri_to_path
from support.desk import Desk, tell_story
from support.talk import Talk, call

TURN = [{"role": "user", "content": "Deploy."}, {"role": "assistant", "content": "Done."}]


async def append(desk: Desk, talk: Talk, number: int, session: str, messages: Any = TURN) -> None:
    await desk.ask(talk, number, "nexus/session/append", session=session, messages=messages)


@pytest.mark.parametrize(
    ("meant", "found"),
    [("plan", "plan"), ("rev", "review"), ("pla", "bad"), ("", "bad"), ("Plan", "bad"), ("other", "bad")],
)
def test_a_conversation_is_found_by_the_beginning_of_its_name(tmp_path: Path, meant: str, found: str) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number, name in enumerate(("plan", "plan B", "review"), 1):
            await append(desk, talk, number, name)
        if found == "bad":
            code, message = await desk.refusal(talk, 4, "nexus/session/find", session=meant)
            assert code == "unknown-session"
            assert ("'plan'" in message) or meant in ("other", "")
        else:
            info = await desk.ask(talk, 4, "nexus/session/find", session=meant)
            listed = (await desk.ask(talk, 5, "nexus/session/list"))["sessions"]
            assert info in listed
            assert info["session"] == found

    tell_story(tmp_path, story)


def test_the_conversations_of_all_folders_name_theirs(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await append(desk, talk, 1, "plan")
        talk.send(call(2, "nexus/session/list", {}))
        (listed,) = (await desk.reply(talk, 2))["result"]["sessions"]
        assert uri_to_path(listed.pop("workspaceFolder")) == desk.tree.path("/a")
        (own,) = (await desk.ask(talk, 3, "nexus/session/list"))["sessions"]
        assert {**own, "exact": None} == {**listed, "exact": None}

    tell_story(tmp_path, story)


def test_turns_are_read_as_they_are_stored(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number in range(1, 4):
            await append(desk, talk, number, "plan", [{"role": "user", "content": f"\x1b[1m{number}"}])
        turns = (await desk.ask(talk, 4, "nexus/session/turns", session="plan"))["turns"]
        assert [turn["seq"] for turn in turns] == [1, 2, 3]
        assert turns[2]["messages"][-1]["content"] == "\x1b[1m3"
        assert turns[1]["parent"] == turns[0]["id"]
        page: Any = {"session": "plan", "first": 2, "limit": 1}
        assert (await desk.ask(talk, 5, "nexus/session/turns", **page))["turns"] == turns[1:2]
        wrong: list[tuple[dict[str, Any], str]]
        wrong = [
            ({"first": 0}, "bad-option"),
            ({"limit": 1_001}, "bad-option"),
            ({"session": "none"}, "unknown-session"),
        ]
        for number, (params, code) in enumerate(wrong, 6):
            about = {"session": "plan", **params}
            assert (await desk.refusal(talk, number, "nexus/session/turns", **about))[0] == code

    tell_story(tmp_path, story)


def test_a_fork_is_made_at_the_number_of_a_turn(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        for number in range(1, 4):
            await append(desk, talk, number, "plan")
        await desk.ask(talk, 4, "nexus/session/fork", session="plan", to="second", turn=2)
        assert (await desk.ask(talk, 5, "nexus/session/find", session="second"))["turns"] == 2
        for number, turn in enumerate((0, 4, -1), 6):
            about: Any = {"session": "plan", "to": "third", "turn": turn}
            assert (await desk.refusal(talk, number, "nexus/session/fork", **about))[0] == "unknown-turn"
        about = {"session": "none", "to": "third", "turn": 1}
        assert (await desk.refusal(talk, 9, "nexus/session/fork", **about))[0] == "unknown-session"

    tell_story(tmp_path, story)


def test_a_search_takes_the_beginning_of_a_name(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await append(desk, talk, 1, "plan")
        await append(desk, talk, 2, "review")
        for number, (name, sessions) in enumerate((("rev", ["review"]), (None, None)), 3):
            hits = (await desk.ask(talk, number, "nexus/session/search", query="deploy", session=name))[
                "hits"
            ]
            assert [hit["session"] for hit in hits] == (sessions or [hit["session"] for hit in hits])
            assert hits
        code, _ = await desk.refusal(talk, 5, "nexus/session/search", query="deploy", session="none")
        assert code == "unknown-session"

    tell_story(tmp_path, story)


def test_what_is_remembered_is_listed(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        note = [{"role": "user", "content": "Staging is read-only.", "meta": {"pinned": True}}]
        await append(desk, talk, 1, "notes", note)
        listed = await desk.ask(talk, 2, "nexus/memory/list")
        assert ("read-only" in listed["important"][0]["text"], listed["summaries"]) == (True, [])
        assert (await desk.ask(talk, 3, "nexus/memory/list", session="plan"))["important"] == []
        tool = {"tool": "query_l2_memory", "arguments": {}}
        assert "read-only" in (await desk.ask(talk, 4, "nexus/memory/query", session=None, **tool))["text"]
        assert (await desk.refusal(talk, 5, "nexus/memory/list", limit=0))[0] == "bad-option"

    tell_story(tmp_path, story)
