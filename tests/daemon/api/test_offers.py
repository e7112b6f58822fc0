"""What an editor without a client of ours is offered: commands about its folder, answers that it shows."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from support.desk import Desk, published, tell_story
from support.fixture import write_fixture
from support.talk import Talk, call
from support.waiting import wait_until, yield_to_loop

EXECUTE = "workspace/executeCommand"


async def run(desk: Desk, talk: Talk, number: int, command: str, *arguments: Any) -> Any:
    talk.send(call(number, EXECUTE, {"command": command, "arguments": list(arguments)}))
    return await desk.reply(talk, number)


def messages(talk: Talk) -> list[str]:
    return [
        one["params"]["message"]
        for one in talk.writer.messages()
        if one.get("method") == "window/showMessage"
    ]


@pytest.mark.parametrize("argument", [(), (None,), ({},), ([],)])
def test_a_command_is_about_the_only_folder_and_its_answer_is_shown(
    tmp_path: Path, argument: tuple[Any, ...]
) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        reply = await run(desk, talk, 1, "nexus.context.usage", *argument)
        assert reply["result"]["total"] > 0
        assert [text for text in messages(talk) if text.startswith("The context of /a costs ")]
        reply = await run(desk, talk, 2, "nexus.status")
        assert "serves 1 folder" in messages(talk)[-1]
        layers = await run(desk, talk, 3, "nexus.context.layers", *argument)
        assert layers["result"]["layers"]
        assert messages(talk)[-1].startswith("The layers of /a, the nearest last: defaults ")
        created = await run(desk, talk, 4, "nexus.workspace.init", *argument)
        assert created["result"]["created"]
        assert messages(talk)[-1].startswith(f"Created {desk.tree.path('/a/.nexus3/')}")
        await run(desk, talk, 5, "nexus.workspace.init", *argument)
        assert messages(talk)[-1].startswith("Nothing was created: ")
        sessions = await run(desk, talk, 6, "nexus.session.list", *argument)
        assert "sessions" in sessions["result"], "what is not listed answers, too"

    tell_story(tmp_path, story)


def test_with_two_folders_a_command_must_name_one(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client("/a", "/lone")
        assert "workspaceFolder" in (await run(desk, talk, 1, "nexus.context.usage"))["error"]["message"]
        reply = await run(desk, talk, 2, "nexus.context.usage", {"workspaceFolder": desk.uri("/lone")})
        assert reply["result"]["total"] > 0

    tell_story(tmp_path, story)


def test_a_click_on_a_lens_opens_the_context(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        talk.send(call(1, "textDocument/codeLens", {"textDocument": {"uri": desk.uri("/a/NEXUS.md")}}))
        lens = (await desk.reply(talk, 1))["result"][0]["command"]
        reply = await run(desk, talk, 2, lens["command"], *lens["arguments"])
        assert "error" not in reply
        (text,) = messages(talk)
        path = Path(text.rpartition(" it is in ")[2].partition(".md")[0] + ".md")
        assert "A." in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o400

    tell_story(tmp_path, story)


def test_an_editor_that_can_opens_the_context_at_what_the_lens_counts(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client(capabilities={"window": {"showDocument": {"support": True}}})
        talk.send(call(1, "textDocument/codeLens", {"textDocument": {"uri": desk.uri("/a/NEXUS.md")}}))
        lens = (await desk.reply(talk, 1))["result"][0]["command"]
        talk.send(call(2, EXECUTE, {"command": lens["command"], "arguments": lens["arguments"]}))

        def asked() -> list[Any]:
            return [one for one in talk.writer.messages() if one.get("method") == "window/showDocument"]

        (request,) = await wait_until(asked)
        talk.send({"jsonrpc": "2.0", "id": request["id"], "result": {"success": True}})
        assert "error" not in await desk.reply(talk, 2)
        assert messages(talk) == []
        path = Path(unquote(urlsplit(request["params"]["uri"]).path))
        place = request["params"]["selection"]
        lines = path.read_text().splitlines()[place["start"]["line"] : place["end"]["line"] + 1]
        assert "A." in lines

    tell_story(tmp_path, story)


NESTED = """
//- /a/.nexus3/config.json
{"context": {"ancestor_depth": 3}}
//- /a/packages/api/AGENTS.md
@missing.md
//- /a/packages/api/.mcp.json
{"mcpServers": {"a": {}}}
//- /a/packages/web/.nexus3/skills/s/SKILL.md
x
"""


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/a/packages/api/AGENTS.md", "prompt.import-missing"),
        ("/a/packages/api/.mcp.json", "mcp.no-transport"),
        ("/a/packages/web/.nexus3/skills/s/SKILL.md", "skill.front-matter"),
    ],
)
@pytest.mark.parametrize("folders", [("/a",), ()], ids=["a root", "no root"])
def test_a_nested_file_is_checked_and_the_files_above_are_not_blamed(
    tmp_path: Path, folders: tuple[str, ...], path: str, code: str
) -> None:
    async def story(desk: Desk) -> None:
        write_fixture(NESTED, Path(desk.tree.root))
        talk = await desk.client(*folders, root=bool(folders))
        desk.open(talk, path, Path(desk.tree.path(path)).read_text())
        await wait_until(lambda: desk.shown(talk, path))
        assert code in (desk.shown(talk, path) or [])
        config = desk.uri("/a/.nexus3/config.json")
        above = [one["params"] for one in published(talk) if one["params"]["uri"] == config]
        if folders:
            assert [one for one in above if one["diagnostics"]] == []
            status = await desk.ask(talk, 1, "nexus/status")
            assert sum(one["errors"] + one["warnings"] for one in status["folders"]) >= 1

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (
            "/a/skills/foo/SKILL.md",
            (
                "is not checked: "
                "a skill is read at .nexus3/skills/foo/SKILL.md, or likewise in .claude and .agents"
            ),
        ),
        ("/a/SOUL.md", "is not checked: it is read in .nexus3 alone"),
        (
            "/a/GEMINI.md",
            "is an instruction file of Gemini CLI. Write @GEMINI.md in NEXUS.md to read it, too",
        ),
        ("/a/notes.md", None),
        ("/a/.nexus3/SOUL.md", None),
        ("/a/packages/api/AGENTS.md", None),
    ],
)
def test_a_file_that_is_not_checked_says_why_once(tmp_path: Path, path: str, reason: str | None) -> None:
    async def story(desk: Desk) -> None:
        fixture = "//- /a/NEXUS.md\nA.\n//- /a/GEMINI.md\nG.\n//- /a/packages/api/AGENTS.md\nB.\n"
        write_fixture(fixture, Path(desk.tree.root))
        talk = await desk.client("/a")
        for _ in range(2):
            desk.open(talk, path, "X.\n")
            await yield_to_loop()
            desk.close(talk, path)
        texts = [
            one["params"]["message"]
            for one in talk.writer.messages()
            if one.get("method") == "window/logMessage"
        ]
        assert texts == ([] if reason is None else [f"Nexus: {desk.tree.path(path)} {reason}."])

    tell_story(tmp_path, story)
