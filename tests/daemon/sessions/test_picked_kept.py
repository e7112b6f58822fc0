"""The picked model outlives the daemon, is the same in every window, and is the one that all figures are
for.
"""

import asyncio
import itertools
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from nexus_context.ledger.sqlite import SqliteLedger
from nexus_context.ledger.sqlite_tables import OptionsTable
from nexus_daemon.api import model
from support.desk import CONFIG, Desk, Story, tell_story
from support.talk import Talk, call
from support.waiting import wait_until, yield_to_loop

PICKED: dict[str, Any] = {"model": "house-model", "maxContextTokens": 60_000}
OTHER: dict[str, Any] = {"model": "gpt-4o", "maxContextTokens": 90_000}
FILE = "/a/NEXUS.md"
LONG = "Always write the tests first.\n" * 2_500  # 15,000 tokens
SAID = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello, too."}]


@asynccontextmanager
async def another(desk: Desk) -> AsyncIterator[Desk]:
    """Another process over the same folders and ledger."""
    other = Desk(desk.tree)
    try:
        yield other
    finally:
        await asyncio.wait_for(other.daemon.close(), 10)


async def pick(desk: Desk, talk: Talk, number: int, session: str = "main", **about: Any) -> Any:
    return await desk.ask(talk, number, "nexus/model/pick", session=session, **about)


async def turn(desk: Desk, talk: Talk, number: int, options: Any, session: str = "main") -> Any:
    """A turn as a chat makes it; the usage that it was assembled with."""
    about = {"session": session, "message": "Go on.", "options": options}
    made = await desk.assemble(talk, number, **about)
    await desk.ask(talk, number + 1, "nexus/session/append", session=session, messages=SAID)
    return made["usage"]


async def usage(desk: Desk, talk: Talk, number: int, session: str = "main") -> tuple[str, int]:
    spent = await desk.ask(talk, number, "nexus/context/usage", session=session)
    return spent["model"], spent["limit"]


async def denominators(desk: Desk, talk: Talk, number: int) -> dict[str, str]:
    """What the folder's figures are shares of, in all places that show them."""
    spent = await desk.ask(talk, number, "nexus/context/usage")
    problems = (await desk.ask(talk, number + 1, "nexus/context/layers"))["problems"]
    prompt = (await desk.ask(talk, number + 2, "nexus/context/preview"))["text"]
    effective = (await desk.ask(talk, number + 3, "nexus/config/effective"))["config"]
    about = {"textDocument": {"uri": desk.uri(FILE)}}
    talk.send(call(number + 4, "textDocument/codeLens", about))
    lens = (await desk.reply(talk, number + 4))["result"][0]["command"]["title"]
    return {
        "usage": f"{spent['available']:,}",
        "problem": problems[0]["message"].partition("% of the ")[2].partition(" that")[0],
        "lens": lens.partition(" of ")[2].partition(" ·")[0],
        "prompt": prompt.partition("Model: ")[2].partition("\n")[0],
        "settings": str(effective["provider"].get("model")),
    }


async def settled(desk: Desk, talk: Talk, number: int, expected: dict[str, str]) -> None:
    """Until all places show these: what other windows did is noticed within a second."""
    numbers = itertools.count(number, 5)

    async def is_settled() -> bool:
        return await denominators(desk, talk, next(numbers)) == expected

    await wait_until(is_settled)


HOUSE = {
    "usage": "58,000",
    "problem": "58,000",
    "lens": "58k",
    "prompt": "house-model",
    "settings": "house-model",
}
NOTHING = {"usage": "126,000", "problem": "126,000", "lens": "≈ 126k", "prompt": "", "settings": "None"}


def check(tmp_path: Path, story: Story, *, config: str = "{}") -> None:
    tell_story(tmp_path, story, {FILE: LONG, CONFIG: config})


def test_all_figures_of_a_folder_are_for_the_picked_model(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await settled(desk, talk, 1_000, NOTHING)
        picked = await pick(desk, talk, 2, **PICKED)
        assert (picked["usage"]["model"], picked["usage"]["limit"]) == ("house-model", 60_000)
        assert "persists" not in picked
        await settled(desk, talk, 2_000, HOUSE)
        await pick(desk, talk, 3)
        await settled(desk, talk, 3_000, NOTHING)

    check(tmp_path, story)


def test_they_are_after_the_daemon_has_started_anew_before_anybody_asks_for_a_conversation(
    tmp_path: Path,
) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.client()
        sent = await turn(desk, first, 2, PICKED | {"memoryTools": True})
        async with another(desk) as later:
            talk = await later.client()
            (folder,) = later.daemon.windows.folders
            await wait_until(lambda: folder.choice)
            await settled(later, talk, 1_000, HOUSE)
            spent = await later.ask(talk, 2, "nexus/context/usage")
            rows = [row for row in sent["rows"] if row["category"] in ("system", "tools")]
            assert [row for row in spent["rows"] if row["category"] != "history"] == rows
            assert [row["category"] for row in rows].count("tools") == 3

    check(tmp_path, story)


def test_no_ledger_is_begun_where_there_is_none(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.client()
        await yield_to_loop(5)
        await asyncio.wrap_future(desk.daemon.ledgers.writer.submit(lambda: None))  # after all earlier jobs
        assert not Path(desk.tree.path("/state")).exists()

    check(tmp_path, story)


def test_what_one_window_picks_the_other_follows(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        one = await desk.client()
        async with another(desk) as there:
            other = await there.client()
            await turn(desk, one, 2, OTHER)
            await pick(there, other, 2, **PICKED)
            await settled(desk, one, 1_000, HOUSE)
            await settled(there, other, 1_000, HOUSE)
            changed = [
                m["params"]["reason"]
                for m in one.writer.messages()
                if m.get("method", "").endswith("context/didChange")
            ]
            assert "model" in changed
            await turn(desk, one, 4, OTHER)
            await until_usage(there, other, 2_000, ("gpt-4o", 90_000))

    check(tmp_path, story)


@pytest.mark.parametrize("first", ["nothing", "a turn", "a turn without an answer"])
def test_of_two_picks_the_later_counts_in_both_windows(tmp_path: Path, first: str) -> None:
    async def story(desk: Desk) -> None:
        one = await desk.client()
        if first == "a turn":
            await turn(desk, one, 100, OTHER)
        elif first != "nothing":
            await desk.assemble(one, 100, message="Go on.", options=OTHER)
        async with another(desk) as there:
            other = await there.client()
            await pick(desk, one, 2, **OTHER)
            await until_usage(there, other, 1_000, ("gpt-4o", 90_000))
            await pick(there, other, 2, **PICKED)
            await until_usage(desk, one, 2_000, ("house-model", 60_000))
            await pick(desk, one, 3)
            await until_usage(there, other, 3_000, ("", 128_000))
            assert await usage(desk, one, 4) == ("", 128_000)

    check(tmp_path, story)


async def until_usage(desk: Desk, talk: Talk, number: int, expected: tuple[str, int]) -> None:
    numbers = itertools.count(number)

    async def is_shown() -> bool:
        return await usage(desk, talk, next(numbers)) == expected

    await wait_until(is_shown)


def test_each_conversation_has_its_own_and_a_new_one_the_last(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await turn(desk, talk, 2, PICKED)
        await turn(desk, talk, 4, OTHER, "plan")
        assert await usage(desk, talk, 6) == ("house-model", 60_000)
        assert await usage(desk, talk, 7, "plan") == ("gpt-4o", 90_000)
        assert await usage(desk, talk, 8, "new") == ("gpt-4o", 90_000)
        await desk.ask(talk, 9, "nexus/session/fork", session="main", to="idea")
        assert await usage(desk, talk, 10, "idea") == ("house-model", 60_000)
        listed = (await desk.ask(talk, 11, "nexus/session/list"))["sessions"]
        said = {one["session"]: (one.get("model"), one.get("maxContextTokens")) for one in listed}
        house = ("house-model", 60_000)
        assert said == {"main": house, "idea": house, "plan": ("gpt-4o", 90_000)}

    check(tmp_path, story)


def test_the_list_says_whose_tokens_are_an_estimate(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        estimated = {"model": "claude-sonnet-4-5"}  # whose tokenizer is not public
        await turn(desk, talk, 2, OTHER, "exact")
        await turn(desk, talk, 4, estimated, "guessed")
        await turn(desk, talk, 6, OTHER, "switched")

        async def estimates() -> set[str]:
            listed = (await desk.ask(talk, next(numbers), "nexus/session/list"))["sessions"]
            return {one["session"] for one in listed if not one.get("exact", True)}

        numbers = itertools.count(8)
        assert await estimates() == {"guessed"}
        await pick(desk, talk, next(numbers), "switched", **estimated)
        assert await estimates() == {"guessed", "switched"}
        # a public tokenizer counts again, but of what is there an estimate is stored
        await pick(desk, talk, next(numbers), "guessed", **OTHER)
        await pick(desk, talk, next(numbers), "switched", **OTHER)
        assert await estimates() == {"guessed"}

    check(tmp_path, story)


def test_the_folder_shows_the_model_of_the_conversation_in_focus(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await turn(desk, talk, 2, PICKED)
        await turn(desk, talk, 4, OTHER, "plan")
        other = HOUSE | {"problem": "88,000", "lens": "88k", "prompt": "gpt-4o", "settings": "gpt-4o"}
        await settled(desk, talk, 1_000, other)  # until somebody says what is in focus, the last one
        focus = await desk.ask(talk, 6, "nexus/session/focus", session="main")
        assert focus == {"session": "main", "model": "house-model", "maxContextTokens": 60_000}
        await settled(desk, talk, 2_000, HOUSE)
        await turn(desk, talk, 7, OTHER, "plan")
        await settled(desk, talk, 3_000, HOUSE)

    check(tmp_path, story)


def test_what_is_shown_before_a_turn_is_what_is_sent(tmp_path: Path) -> None:
    """To the token, for a picked model before its first turn, and with fewer tokens allowed by the
    settings.
    """

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        picked = await pick(desk, talk, 2, **PICKED, memoryTools=True)
        about = {"message": "Go on.", "options": PICKED | {"memoryTools": True}}
        sent = await desk.assemble(talk, 3, **about)
        turn_only = ("event", "history")  # the message, and what opens the session
        rows = [row for row in sent["usage"]["rows"] if row["category"] not in turn_only]
        assert rows == picked["usage"]["rows"]
        assert (sent["usage"]["limit"], picked["usage"]["limit"]) == (50_000, 50_000)
        look = await desk.assemble(talk, 5, options=about["options"])
        assert look["systemPrompt"] == sent["systemPrompt"]

    check(tmp_path, story, config='{"context": {"max_tokens": 50000}}')


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ({"model": " "}, "`model` is empty: name a model, or leave it out."),
        (
            {"model": "a", "maxContextTokens": 0},
            "`maxContextTokens` is 0: it must be from 1 to 9007199254740991.",
        ),
        (
            {"model": "a", "maxContextTokens": 1 << 63},
            "`maxContextTokens` is 9223372036854775808: it must be from 1 to 9007199254740991.",
        ),
    ],
)
def test_what_cannot_be_picked(tmp_path: Path, about: dict[str, Any], error: str) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        talk.send(call(2, "nexus/model/pick", {"workspaceFolder": desk.uri("/a"), **about}))
        assert (await desk.reply(talk, 2))["error"]["message"] == error
        assert await usage(desk, talk, 3) == ("", 128_000)

    check(tmp_path, story)


def test_settings_that_name_another_provider_leave_nothing_to_pick(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        talk.send(call(2, "nexus/model/pick", {"workspaceFolder": desk.uri("/a"), **PICKED}))
        error = (await desk.reply(talk, 2))["error"]
        assert error["data"]["code"] == "model-of-settings"
        assert error["message"] == (
            "The settings name the provider openai, so the setting provider.model decides the model. "
            "Change that setting, or set provider.name to editor."
        )
        await turn(desk, talk, 3, PICKED)
        assert await usage(desk, talk, 5) == ("o3", 200_000)
        Path(desk.tree.path(CONFIG)).write_text('{"provider": {"model": "o3"}}')
        (folder,) = desk.daemon.windows.folders
        folder.reload.request("config")
        assert await usage(desk, talk, 6) == ("o3", 200_000)  # nor was it remembered
        await turn(desk, talk, 7, PICKED)
        assert await usage(desk, talk, 9) == ("house-model", 60_000)
        await pick(desk, talk, 10)
        assert await usage(desk, talk, 11) == ("o3", 200_000)

    check(tmp_path, story, config='{"provider": {"name": "openai", "model": "o3"}}')


def test_an_agent_that_was_asked_to_have_a_model_keeps_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await pick(desk, talk, 2, **PICKED)
        for number, (name, own_model) in enumerate((("own", "o3"), ("plain", None)), 3):
            await desk.ask(talk, number, "nexus/agent/spawn", agentId=name, cwd=".", model=own_model)
        listed = (await desk.ask(talk, 5, "nexus/agent/list"))["agents"]
        said = {one["agentId"]: (one["usage"]["model"], one["usage"]["limit"]) for one in listed}
        assert said == {"own": ("o3", 200_000), "plain": ("house-model", 60_000)}
        await pick(desk, talk, 6, **OTHER)
        listed = (await desk.ask(talk, 7, "nexus/agent/list"))["agents"]
        said = {one["agentId"]: (one["usage"]["model"], one["usage"]["limit"]) for one in listed}
        assert said == {"own": ("o3", 200_000), "plain": ("gpt-4o", 90_000)}

    check(tmp_path, story)


def test_a_ledger_that_is_in_use_holds_up_nobody_and_has_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "PATIENCE_S", 0.1)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await turn(desk, talk, 2, OTHER)
        holder = apsw.Connection(desk.tree.path("/state/ledger.db"))
        holder.execute("BEGIN IMMEDIATE")
        picked = await pick(desk, talk, 4, **PICKED)
        assert (picked["persists"], picked["usage"]["model"]) == (False, "house-model")
        assert picked["problem"] == "Another program is using the ledger; the choice is not written yet."
        await settled(desk, talk, 1_000, HOUSE)
        holder.execute("ROLLBACK")
        holder.close()
        async with another(desk) as later:
            await until_usage(later, await later.client(), 2_000, ("house-model", 60_000))

    check(tmp_path, story)


@pytest.mark.skipif(os.name == "nt", reason="rights of files are others there")
def test_where_nothing_can_be_kept_it_holds_in_this_process(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        state = Path(desk.tree.path("/state"))
        state.write_text("in the way: no directory can be made here")
        talk = await desk.client()
        picked = await pick(desk, talk, 2, **PICKED)
        assert (picked["persists"], picked["usage"]["model"]) == (False, "house-model")
        await settled(desk, talk, 1_000, HOUSE)
        assert stat.S_ISREG(state.stat().st_mode)

    check(tmp_path, story)


def test_an_edit_reads_nothing_of_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await pick(desk, talk, 2, **PICKED)
        await settled(desk, talk, 1_000, HOUSE)
        reads: list[str] = []
        for kind, name in (
            (OptionsTable, "of"),
            *((SqliteLedger, name) for name in ("sessions", "head", "state", "history")),
        ):
            real = getattr(kind, name)

            def counted(*args: Any, name: str = name, real: Any = real, **more: Any) -> Any:
                reads.append(name)
                return real(*args, **more)

            monkeypatch.setattr(kind, name, counted)
        (folder,) = desk.daemon.windows.folders
        before = (await folder.current()).revision
        desk.open(talk, FILE, LONG + "One more line.\n")
        after = await folder.current()
        assert (after.revision > before, reads) == (True, [])
        assert after.choice is not None

    check(tmp_path, story)
