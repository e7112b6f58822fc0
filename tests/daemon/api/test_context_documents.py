"""Virtual documents of contexts: their content, their links, and when an editor reads them again."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from nexus_daemon.workspace.client_refresh import PAUSE_S
from support.desk import Desk, tell_story
from support.talk import Message, Talk, result, tell, user
from support.waiting import wait_until, yield_to_loop

READS = {"workspace": {"textDocumentContent": {"dynamicRegistration": True}}}
FILES = {"/a/NEXUS.md": "# Rules\n\nBe brief.\nSay why.\n", "/a/CLAUDE.md": "# Claude\n\nNo lists.\n"}


def uri_of(desk: Desk, name: str) -> str:
    return f"nexus-context:{desk.uri('/a').removeprefix('file://')}/{name}"


async def text_of(desk: Desk, talk: Talk, number: int, uri: str) -> str:
    found: Any = await desk.ask(talk, number, "workspace/textDocumentContent", uri=uri)
    text: str = found["text"]
    return text


async def ask(desk: Desk, talk: Talk, number: int, what: str, uri: str, **params: Any) -> Any:
    return await desk.ask(talk, number, f"textDocument/{what}", textDocument={"uri": uri}, **params)


def at(text: str, words: str) -> dict[str, int]:
    before = text[: text.index(words)]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def requests(talk: Talk, method: str) -> list[Message]:
    return [one for one in talk.writer.messages() if one.get("method") == method]


def test_an_editor_is_asked_to_read_virtual_documents(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client(capabilities=READS)
        talk.send(tell("initialized", {}))
        (request,) = await wait_until(partial(requests, talk, "client/registerCapability"))
        (registration,) = request["params"]["registrations"]
        assert registration["method"] == "workspace/textDocumentContent"
        assert registration["registerOptions"] == {"schemes": ["nexus-context"]}
        talk.send(result(request["id"], None))
        other = await desk.client()
        other.send(tell("initialized", {}))
        await yield_to_loop(10)
        assert requests(other, "client/registerCapability") == []

    tell_story(tmp_path, story)


def test_a_line_of_a_file_leads_to_where_it_lands(tmp_path: Path) -> None:
    """Unsaved text, too; and where the client reads no virtual documents, or has its own, nowhere."""

    async def story(desk: Desk) -> None:
        talk, other = await desk.client(capabilities=READS), await desk.client()
        ours = await desk.client(capabilities={**READS, "experimental": {"nexus": {}}})
        texts = {
            "/a/CLAUDE.md": "# Claude\n\nOne.\n\nNo lists.\n",
            "/a/NEXUS.md": "Say why.\n",
            "/a/docs/x.md": "No.",
        }
        for path, text in texts.items():
            desk.open(talk, path, text)
            desk.open(other, path, text)
            desk.open(ours, path, text)
        asked = [("/a/CLAUDE.md", "No lists", "claude-code.md"), ("/a/NEXUS.md", "Say why", "nexus.md")]
        for number, (path, words, name) in enumerate(asked, start=1):
            where = {"position": at(texts[path], words)}
            (place,) = await ask(desk, talk, number, "implementation", desk.uri(path), **where)
            assert place["uri"] == uri_of(desk, name)
            text = await text_of(desk, talk, number + 10, place["uri"])
            assert text.split("\n")[place["range"]["start"]["line"]].startswith(words)
            for client in (other, ours):
                assert await ask(desk, client, number, "implementation", desk.uri(path), **where) == []
        unread = await ask(
            desk, talk, 30, "implementation", desk.uri("/a/docs/x.md"), position=at("No.", "No")
        )
        assert unread == []

    tell_story(tmp_path, story, FILES)


def test_each_line_of_a_context_leads_to_its_source(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client(capabilities=READS)
        places = {"nexus.md": ("/a/NEXUS.md", "Say why"), "claude-code.md": ("/a/CLAUDE.md", "No lists")}
        places["next-request.md"] = places["nexus.md"]
        for number, (name, (path, words)) in enumerate(places.items()):
            uri = uri_of(desk, name)
            text = await text_of(desk, talk, 10 * number + 1, uri)
            where = at(text, words)
            (place,) = await ask(desk, talk, 10 * number + 2, "definition", uri, position=where)
            assert place["uri"] == desk.uri(path), name
            assert place["range"]["start"] == at(FILES[path], words), name
            links = await ask(desk, talk, 10 * number + 3, "documentLink", uri)
            targets = [each["target"] for each in links]
            assert f"{desk.uri(path)}#L1,1" in targets, name
            assert all(each["range"]["start"]["line"] == each["range"]["end"]["line"] for each in links)
            assert await ask(desk, talk, 10 * number + 4, "documentSymbol", uri) is None
            assert await ask(desk, talk, 10 * number + 5, "codeLens", uri) == []

    tell_story(tmp_path, story, FILES)


def test_a_document_that_is_not_there(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client(capabilities=READS)
        ask_content = partial(desk.refusal, talk, method="workspace/textDocumentContent")
        code, _ = await ask_content(message_id=1, uri=uri_of(desk, "aider.md"))
        assert code == "unknown-assistant"
        code, _ = await ask_content(message_id=2, uri="nexus-context:/elsewhere/nexus.md")
        assert code == "unknown-folder"
        code, _ = await ask_content(message_id=3, uri=uri_of(desk, "nexus.md?agent%3Dnobody"))
        assert code == "unknown-agent"

    tell_story(tmp_path, story, FILES)


def test_a_change_of_the_folder_has_the_editor_read_it_again(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        refresh = "workspace/textDocumentContent/refresh"
        talk = await desk.client(capabilities=READS)
        uri = uri_of(desk, "nexus.md")
        await text_of(desk, talk, 1, uri)
        desk.open(talk, "/a/NEXUS.md", "# Rules\n\nBe kind.\n")
        (request,) = await wait_until(partial(requests, talk, refresh))
        assert request["params"] == {"uri": uri}
        talk.send(result(request["id"], None))
        assert "Be kind." in await text_of(desk, talk, 2, uri)
        talk.send(tell("textDocument/didClose", {"textDocument": {"uri": uri}}))
        assert desk.connection(talk).contexts.get(uri) is None

    tell_story(tmp_path, story, FILES)


def test_a_conversation_that_grows_has_the_next_request_read_again(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        refresh = "workspace/textDocumentContent/refresh"
        talk = await desk.client(capabilities=READS)
        uri = uri_of(desk, "next-request.md")
        await text_of(desk, talk, 11, uri)
        await asyncio.sleep(2 * PAUSE_S)
        for request in requests(talk, refresh):  # the folder was still checked
            talk.send(result(request["id"], None))
        talk.writer.forget()
        await text_of(desk, talk, 12, uri)
        await asyncio.sleep(2 * PAUSE_S)
        assert requests(talk, refresh) == []  # to read it changes nothing
        await desk.ask(talk, 13, "nexus/session/append", messages=[user("Who is there?")])
        (request,) = await wait_until(partial(requests, talk, refresh))
        talk.send(result(request["id"], None))
        assert (await text_of(desk, talk, 14, uri)).endswith(", user ──\n\nWho is there?")

    tell_story(tmp_path, story, FILES)


def test_a_context_is_shown_in_the_form_that_the_editor_has(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        shows = {"window": {"showDocument": {"support": True}}}
        argument = {"workspaceFolder": desk.uri("/a"), "assistant": "claude-code"}
        command = {"command": "nexus.showInContext", "arguments": [argument]}
        virtual = await desk.client(capabilities={**READS, **shows})
        assert await opened(virtual, command) == uri_of(desk, "claude-code.md")
        plain = await desk.client(capabilities=shows)
        uri = await opened(plain, command)
        file = Path(desk.tree.path("/state/contexts/a-claude-code.md"))
        assert uri == file.as_uri()
        assert "No lists." in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o400
        assert await opened(plain, command, 2) == uri  # again
        where = {"position": at(file.read_text(), "No lists")}
        (place,) = await ask(desk, plain, 3, "definition", uri, **where)
        assert place["uri"] == desk.uri("/a/CLAUDE.md")

    tell_story(tmp_path, story, FILES)


async def opened(talk: Talk, command: Any, number: int = 1) -> str:
    """The URI that a command has an editor open."""
    talk.send({"jsonrpc": "2.0", "id": 90 + number, "method": "workspace/executeCommand", "params": command})
    show = (await wait_until(lambda: requests(talk, "window/showDocument")[number - 1 :]))[0]
    talk.send(result(show["id"], {"success": True}))
    await talk.settle()
    uri: str = show["params"]["uri"]
    return uri
