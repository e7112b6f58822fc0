"""Code lenses over the wire, and when a client is told to ask for them again."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from nexus_daemon.server import build
from support.desk import Desk, replies, tell_story
from support.server_story import configure
from support.talk import HELLO, Message, Talk, call, result, tell
from support.waiting import wait_until, yield_to_loop

NEXUS = "/a/NEXUS.md"
REFRESH = "workspace/codeLens/refresh"


async def window(desk: Desk, *, refresh: bool) -> Talk:
    talk = Talk(partial(build, lambda: desk.daemon))
    said = {"workspace": {"codeLens": {"refreshSupport": refresh}}}
    listed = [{"uri": desk.uri("/a"), "name": "a"}]
    talk.send({**HELLO, "params": {**HELLO["params"], "workspaceFolders": listed, "capabilities": said}})
    await yield_to_loop()
    return talk


async def titles(desk: Desk, talk: Talk, message_id: int, path: str = NEXUS) -> list[str]:
    return [each["title"] for each in await commands(desk, talk, message_id, path)]


async def commands(desk: Desk, talk: Talk, message_id: int, path: str) -> list[Any]:
    talk.send(call(message_id, "textDocument/codeLens", {"textDocument": {"uri": desk.uri(path)}}))
    return [each["command"] for each in (await desk.reply(talk, message_id))["result"]]


def asked(talk: Talk) -> list[Message]:
    return [one for one in talk.writer.messages() if one.get("method") == REFRESH]


async def answer(talk: Talk, number: int) -> None:
    """Wait for the client's question with this number, counted from 1, and answer it."""
    question = (await wait_until(lambda: asked(talk)[number - 1 :]))[0]
    talk.send(result(question["id"], None))


def type_text(desk: Desk, talk: Talk, text: str, version: int) -> None:
    document = {"uri": desk.uri(NEXUS), "version": version}
    talk.send(tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}))


def test_the_figures_are_those_of_the_layers_and_of_the_unsaved_text(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await window(desk, refresh=False)
        desk.open(talk, NEXUS, "# A\nOne.\n## B\nTwo and three.\n")
        whole, *headings = await titles(desk, talk, 2)
        assert headings == ["≈ 12 tokens", "≈ 7 tokens"]
        layers: Any = (await desk.ask(talk, 3, "nexus/context/layers"))["layers"]
        tokens = {one["uri"]: one.get("tokens") for layer in layers for one in layer["files"]}
        assert whole.startswith(f"Nexus: ≈ {tokens[desk.uri(NEXUS)]} tokens · ")
        assert await titles(desk, talk, 4, "/a/nothing.md") == []
        assert await titles(desk, talk, 5, "/a/.nexus3/config.json") == []

    tell_story(tmp_path, story)


def test_an_instruction_file_below_the_folder_says_who_reads_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await window(desk, refresh=False)
        desk.open(talk, NEXUS, "# A\n")
        await titles(desk, talk, 2)
        desk.open(talk, "/a/packages/api/AGENTS.md", "# API\n")
        expected = "Nexus does not send it: it is for packages/api"
        assert await titles(desk, talk, 3, "/a/packages/api/AGENTS.md") == [expected]
        assert await titles(desk, talk, 4, "/a/packages/api/README.md") == []
        assert await titles(desk, talk, 5, "/elsewhere/AGENTS.md") == []

    tell_story(tmp_path, story)


def tokens_of(title: str) -> int:
    return int(re.findall(r"\d+", title)[0])


def test_the_assistants_in_use_say_what_they_do_with_a_file(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await window(desk, refresh=False)
        first = await titles(desk, talk, 2, "/a/CLAUDE.md")
        assert [re.sub(r"\d+", "N", title) for title in first] == [
            "Claude Code: ≈ N tokens · < N.N % of NM",
            "Codex: not read · reads AGENTS.md, not CLAUDE.md",
            "Nexus: ≈ N tokens · not sent: it has no effect beside NEXUS.md",
        ]
        tooltip = (await commands(desk, talk, 9, "/a/CLAUDE.md"))[0]["tooltip"]
        assert re.sub(r"[\d,]+ tokens", "N tokens", tooltip) == (
            "Claude Code: A request to claude-sonnet-5 may take N tokens: no session here names another one."
        )
        desk.open(talk, "/a/CLAUDE.md", "Word after word.\n" * 100)
        typed = await titles(desk, talk, 3, "/a/CLAUDE.md")
        assert tokens_of(typed[0]) > tokens_of(first[0])
        desk.open(talk, "/a/.nexus3/config.json", '{"views": {"show": "gemini"}}')
        shown = await titles(desk, talk, 4, "/a/CLAUDE.md")
        assert shown[0] == "Gemini CLI: not read · reads GEMINI.md, not CLAUDE.md"
        names = [title.partition(":")[0] for title in shown]
        assert names == ["Gemini CLI", "Claude Code", "Codex", "Nexus"]

    tell_story(tmp_path, story, {"/a/CLAUDE.md": "Use tabs.\n", "/a/AGENTS.md": "Be brief.\n"})


def test_who_shows_lenses_is_told_once_when_they_are_old(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk, other = await window(desk, refresh=True), await window(desk, refresh=False)
        witness = await window(desk, refresh=True)  # has the same text as the others, after them
        await titles(desk, witness, 2)
        for each in (talk, other, witness):
            desk.open(each, NEXUS, "A.\n")
            type_text(desk, each, "B.\n", 2)
        await titles(desk, other, 2)
        await answer(witness, 1)
        assert asked(talk) == []  # it shows none
        await titles(desk, talk, 2)
        for number in range(3, 8):
            type_text(desk, talk, "C" * number, number)
            await titles(desk, talk, number)
        await wait_until(lambda: asked(talk))
        for each in (talk, other, witness):
            type_text(desk, each, "D.\n", 9)
        await answer(witness, 2)
        assert len(asked(talk)) == 1  # it has not answered yet
        await answer(talk, 1)
        await wait_until(lambda: asked(talk)[1:])
        assert asked(other) == []
        assert replies(talk, 99) == []

    tell_story(tmp_path, story)


def test_the_lenses_of_a_server_are_old_when_its_state_is(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        configure(desk)
        talk = await window(desk, refresh=True)
        await titles(desk, talk, 2, "/a/.mcp.json")
        [server] = (await desk.ask(talk, 3, "nexus/mcp/servers"))["servers"]
        assert asked(talk) == []
        await desk.ask(talk, 4, "nexus/mcp/approve", name=server["name"], hash=server["hash"])
        await answer(talk, 1)

    tell_story(tmp_path, story)
