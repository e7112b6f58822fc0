"""Pulled diagnostics: what is published for others, to a client that requests them instead."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.lsp.initialize import pulls_diagnostics
from nexus_daemon.lsp.lsp_types import InitializeParams
from support.desk import CONFIG, GOOD, WRONG, Desk, published, tell_story, write
from support.talk import Message, Talk, result, tell
from support.waiting import wait_until, yield_to_loop

PULLS = {"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": True}}}
BOTH: dict[str, Any] = {"textDocument": {"diagnostic": {}, "publishDiagnostics": {}}}
REFRESH = "workspace/diagnostic/refresh"
SETTINGS = "/a/.claude/settings.json"


async def pull(desk: Desk, talk: Talk, number: int, path: str, previous: str | None = None) -> Any:
    known = {} if previous is None else {"previousResultId": previous}
    document = {"uri": desk.uri(path)}
    return await desk.ask(talk, number, "textDocument/diagnostic", textDocument=document, **known)


async def pull_all(desk: Desk, talk: Talk, number: int, previous: Any = ()) -> list[Any]:
    known = [{"uri": each["uri"], "value": each["resultId"]} for each in previous]
    report: Any = await desk.ask(talk, number, "workspace/diagnostic", previousResultIds=known)
    items: list[Any] = report["items"]
    return items


def codes(report: Any) -> list[str]:
    assert report["kind"] == "full"
    return [each["code"] for each in report["items"]]


def edit(desk: Desk, talk: Talk, path: str, text: str, version: int) -> None:
    document = {"uri": desk.uri(path), "version": version}
    talk.send(tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}))


def refreshes(talk: Talk) -> list[Message]:
    return [one for one in talk.writer.messages() if one.get("method") == REFRESH]


@pytest.mark.parametrize(
    ("capabilities", "options", "expected"),
    [
        (PULLS, None, True),
        (BOTH, None, False),
        (BOTH, {"pullDiagnostics": True}, True),
        (BOTH, {"pullDiagnostics": 1}, False),
        ({"textDocument": {"publishDiagnostics": {}}}, {"pullDiagnostics": True}, False),
        ({}, {"pullDiagnostics": True}, False),
    ],
)
def test_a_client_has_its_diagnostics_one_way(capabilities: Any, options: Any, expected: bool) -> None:
    client = InitializeParams(capabilities=capabilities, initialization_options=options)
    assert pulls_diagnostics(client) == expected


def test_a_report_is_what_others_are_sent(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        pushed, pulling = await desk.client(capabilities=BOTH), await desk.client(capabilities=PULLS)
        texts = [
            (CONFIG, WRONG),
            (SETTINGS, '{"model": }'),
            ("/a/NEXUS.md", "See @gone.md\n"),
        ]
        for number, (path, text) in enumerate(texts, 11):
            desk.open(pulling, path, text)
            report = await pull(desk, pulling, number, path)  # waits for the edit and the check
            desk.open(pushed, path, text)
            shown = await wait_until(partial(desk.shown, pushed, path))
            assert codes(report) == shown != [], path
        assert published(pulling) == []

    tell_story(tmp_path, story, {SETTINGS: "{}", "/a/CLAUDE.md": "Be brief."})


def test_a_result_that_the_client_has_is_unchanged(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client(capabilities=PULLS)
        desk.open(talk, CONFIG, WRONG)
        first = await pull(desk, talk, 11, CONFIG)
        again = await pull(desk, talk, 12, CONFIG, first["resultId"])
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        (whole,) = await pull_all(desk, talk, 13)
        assert whole == {"uri": desk.uri(CONFIG), "version": 1, **first}
        (same,) = await pull_all(desk, talk, 14, [whole])
        assert (same["kind"], same["resultId"]) == ("unchanged", first["resultId"])
        edit(desk, talk, CONFIG, GOOD, 2)
        assert codes(await pull(desk, talk, 15, CONFIG, first["resultId"])) == []
        (gone,) = await pull_all(desk, talk, 16, [whole])
        assert (gone["version"], codes(gone)) == (2, [])
        assert await pull_all(desk, talk, 17) == []
        nothing = await pull(desk, talk, 18, "/a/unread.json")
        assert codes(nothing) == []

    tell_story(tmp_path, story)


def test_a_client_pulls_again_once_it_has_another_result(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client(capabilities=PULLS)
        desk.open(talk, CONFIG, WRONG)
        await pull(desk, talk, 11, CONFIG)
        edit(desk, talk, CONFIG, GOOD, 2)
        await pull(desk, talk, 12, CONFIG)  # it has all by now
        write(desk, "/a/NEXUS.md", "See @gone.md\n")
        desk.folders.changed([desk.tree.path("/a/NEXUS.md")])
        (request,) = await wait_until(partial(refreshes, talk))
        talk.send(result(request["id"], None))
        (report,) = await pull_all(desk, talk, 13)
        assert (report["uri"], report["version"]) == (desk.uri("/a/NEXUS.md"), None)
        await yield_to_loop(10)
        assert len(refreshes(talk)) == 1

    tell_story(tmp_path, story)
