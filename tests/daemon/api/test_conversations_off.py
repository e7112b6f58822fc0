"""The setting `views.conversations` in a daemon: while it is off, no request and no watch opens a session."""

from pathlib import Path
from typing import Any

from nexus_context.config.conversations import NOT_READ
from support.asking import Asking
from support.assistant_logs import ClaudeLog, CodexLog, OpencodeDatabase
from support.desk import CONFIG, Desk, tell_story, write
from support.opens import session_opens
from support.waiting import wait_until

CAPABLE = {"experimental": {"nexus": {"assistantSessions": True}}}
OFF = {CONFIG: '{"views": {"conversations": false}}', "/a/CLAUDE.md": "Use tabs.\n"}


def talk_to_programs(desk: Desk) -> Path:
    """Begin a conversation with each of three programs; their user's home."""
    home, folder = Path(desk.tree.path("/home")), desk.tree.path("/a")
    ClaudeLog(home, "c1", folder=folder).user("Where is the gate?")
    CodexLog(home, "r1", folder=folder).user("Is the harbour open?")
    database = OpencodeDatabase(home)
    database.session("o1", folder=folder)
    database.message("o1", "user", "Draw the harbour.")
    return home


def test_no_request_opens_a_session(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        home = talk_to_programs(desk)
        with session_opens(home) as opened:
            ask = Asking(desk, await desk.client(capabilities=CAPABLE))
            listed = await ask("assistant/sessions")
            notice = listed.pop("notice")
            assert notice.startswith(f"{NOT_READ} See ")
            assert notice.endswith("config.json:1.")
            assert listed == {"sessions": [], "failures": []}
            refused = await ask.refused("assistant/session", assistant="codex", id="r1")
            assert refused == ("conversations-off", notice)
            views = (await ask("view/list"))["views"]
            assert {each["name"] for each in views if "used here" in each["reason"]} == set()
            assert "claude-code" in {each["name"] for each in views if each["inUse"]}
            await ask("explain", what="Bash(ls)")
            await ask("assistant/readers")
            await ask("context/usage", assistant="claude-code")
            lenses: Any = await desk.ask(
                ask.talk, 1, "textDocument/codeLens", textDocument={"uri": desk.uri("/a/CLAUDE.md")}
            )
            assert len(lenses) > 1
            await ask("session/list")
            assert (await ask("conversation/list"))["conversations"] == []
            assert (await ask("conversation/search", query="harbour"))["fileHits"] == []
            code, _ = await ask.refused("conversation/transcript", program="codex", id="r1")
            assert code == "unknown-session"
        assert opened == []
        assert list(desk.daemon.assistant_watch.paths()) == []

    tell_story(tmp_path, story, OFF)


def test_the_switch_holds_from_the_moment_on_at_which_it_is_saved(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk_to_programs(desk)
        ask = Asking(desk, await desk.client(capabilities=CAPABLE))
        assert len((await ask("assistant/sessions"))["sessions"]) == 3
        await wait_until(lambda: list(desk.daemon.assistant_watch.paths()))
        write(desk, CONFIG, OFF[CONFIG])
        await wait_until(lambda: not list(desk.daemon.assistant_watch.paths()))
        assert (await ask("assistant/sessions"))["notice"].startswith(NOT_READ)
        write(desk, CONFIG, "{}")
        await wait_until(lambda: list(desk.daemon.assistant_watch.paths()))
        assert len((await ask("assistant/sessions"))["sessions"]) == 3

    tell_story(tmp_path, story, {**OFF, CONFIG: "{}"})
