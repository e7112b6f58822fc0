"""What the assistants in use mind, as an editor shows it: at first, while one types, and after changes."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.tracking import problems_in_use
from support.desk import Desk, published, tell_story
from support.talk import Talk, tell
from support.waiting import wait_until, yield_to_loop

SETTINGS = "/b/.claude/settings.json"
CUT = '{"permissions": {"deny": ["Read(./.env)"'
WHOLE = '{"permissions": {"deny": ["Read(./.env)"]}}'
LOST = "See @docs/gone.md first.\n"


def write(desk: Desk, path: str, text: str) -> None:
    file = Path(desk.tree.path(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def is_shown(desk: Desk, talk: Talk, path: str, *codes: str) -> None:
    try:
        await wait_until(lambda: desk.shown(talk, path) == list(codes))
    except Exception as error:
        raise AssertionError(f"{path} shows {desk.shown(talk, path)}, not {codes}") from error


def sources(desk: Desk, talk: Talk, path: str) -> list[str]:
    uri = desk.uri(path)
    found: list[list[Any]] = [
        one["params"]["diagnostics"] for one in published(talk) if one["params"]["uri"] == uri
    ]
    return [diagnostic["source"] for diagnostic in found[-1]]


def edit(desk: Desk, talk: Talk, path: str, text: str, version: int) -> None:
    document = {"uri": desk.uri(path), "version": version}
    talk.send(tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}))


def test_settings_that_a_program_ignores_are_marked_under_its_name(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, SETTINGS, CUT)
        talk = await desk.client("/b")
        await is_shown(desk, talk, SETTINGS, "assistant.void")
        assert sources(desk, talk, SETTINGS) == ["Claude Code"]

    tell_story(tmp_path, story)


def test_what_is_typed_in_settings_that_nexus_does_not_read_counts(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, SETTINGS, WHOLE)
        talk = await desk.client("/b")
        desk.open(talk, SETTINGS, WHOLE)
        edit(desk, talk, SETTINGS, CUT, 2)
        await is_shown(desk, talk, SETTINGS, "assistant.void")
        edit(desk, talk, SETTINGS, WHOLE, 3)
        await is_shown(desk, talk, SETTINGS)
        desk.close(talk, SETTINGS)
        write(desk, SETTINGS, CUT)
        await is_shown(desk, talk, SETTINGS, "assistant.void")

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        (SETTINGS, CUT, "assistant.void"),
        ("/b/CLAUDE.md", LOST, "assistant.import"),
        ("/b/.claude/rules/style.md", LOST, "assistant.import"),
        ("/b/.claude/settings.local.json", CUT, "assistant.void"),
        ("/b/CLAUDE.local.md", LOST, "assistant.import"),
    ],
)
def test_a_change_on_disk_is_noticed(tmp_path: Path, path: str, text: str, code: str) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/CLAUDE.md", "Use tabs.\n")
        write(desk, SETTINGS, WHOLE)
        talk = await desk.client("/b")
        await wait_until(lambda: desk.daemon.watcher.watched)
        write(desk, path, text)
        await is_shown(desk, talk, path, code)
        os.remove(desk.tree.path(path))
        await is_shown(desk, talk, path)

    tell_story(tmp_path, story)


def test_a_folder_of_nobody_who_uses_nexus_has_no_problems_of_its_prompt(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/AGENTS.md", "Be short.\nBe short.\n" + LOST)
        write(desk, "/b/CLAUDE.md", LOST)
        write(desk, SETTINGS, WHOLE)
        talk = await desk.client("/b")
        await is_shown(desk, talk, "/b/CLAUDE.md", "assistant.import")
        codes = {one["code"] for each in published(talk) for one in each["params"]["diagnostics"]}
        assert codes == {"assistant.import"}

    tell_story(tmp_path, story)


def test_where_nexus_is_in_use_a_lost_import_is_marked_once(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/.nexus3/config.json", '{"tools": {"summery": 1}}')
        write(desk, "/b/CLAUDE.md", LOST)
        talk = await desk.client("/b")
        await is_shown(desk, talk, "/b/.nexus3/config.json", "config.unknown-key")
        write(desk, SETTINGS, CUT)
        await is_shown(desk, talk, SETTINGS, "assistant.void")
        await is_shown(desk, talk, "/b/CLAUDE.md", "prompt.import-missing")
        assert sources(desk, talk, "/b/.nexus3/config.json") == ["nexus"]

    tell_story(tmp_path, story)


def test_a_lost_import_is_marked_once_where_one_file_is_a_link_to_the_other(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/.nexus3/config.json", "{}")
        write(desk, "/b/AGENTS.md", LOST)
        os.symlink("AGENTS.md", desk.tree.path("/b/CLAUDE.md"))
        write(desk, SETTINGS, CUT)
        talk = await desk.client("/b")
        await is_shown(desk, talk, SETTINGS, "assistant.void")
        await is_shown(desk, talk, "/b/AGENTS.md", "prompt.import-missing")
        assert desk.shown(talk, "/b/CLAUDE.md") is None
        desk.open(talk, "/b/CLAUDE.md", LOST)
        await is_shown(desk, talk, "/b/CLAUDE.md", "prompt.import-missing")

    tell_story(tmp_path, story)


def test_files_of_a_folder_that_is_a_link_have_its_name(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, SETTINGS, CUT)
        os.symlink(desk.tree.path("/b"), desk.tree.path("/link"))
        talk = await desk.client("/link")
        await is_shown(desk, talk, "/link/.claude/settings.json", "assistant.void")
        assert desk.shown(talk, SETTINGS) is None
        desk.open(talk, "/link/.claude/settings.json", WHOLE)
        await is_shown(desk, talk, "/link/.claude/settings.json")
        edit(desk, talk, "/link/.claude/settings.json", CUT, 2)
        await is_shown(desk, talk, "/link/.claude/settings.json", "assistant.void")

    tell_story(tmp_path, story)


def test_another_view_has_other_problems_and_some_are_not_heard(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/.gemini/settings.json", "{")
        write(desk, "/b/.nexus3/config.json", '{"check": {"ignore": ["assistant.void"]}}')
        write(desk, SETTINGS, CUT)
        talk = await desk.client("/b")
        await is_shown(desk, talk, "/b/.gemini/settings.json", "assistant.stops")
        assert not desk.shown(talk, SETTINGS)
        write(desk, "/b/.nexus3/config.json", "{}")
        await is_shown(desk, talk, SETTINGS, "assistant.void")

    tell_story(tmp_path, story)


def test_a_bug_in_a_check_hides_nothing_that_nexus_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("nexus_context.assistants.tracking.problems_in_use.check_in_use", fail)

    async def story(desk: Desk) -> None:
        write(desk, "/b/AGENTS.md", LOST)
        talk = await desk.client("/b")
        await is_shown(desk, talk, "/b/AGENTS.md", "prompt.import-missing")
        monkeypatch.undo()
        write(desk, SETTINGS, CUT)
        await is_shown(desk, talk, SETTINGS, "assistant.void")

    tell_story(tmp_path, story)


def test_what_is_typed_during_the_first_check_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    check_in_use = problems_in_use.check_in_use

    def wait(*arguments: Any, **options: Any) -> Any:
        may_end.wait(10)
        return check_in_use(*arguments, **options)

    monkeypatch.setattr(problems_in_use, "check_in_use", wait)

    async def story(desk: Desk) -> None:
        write(desk, SETTINGS, WHOLE)
        talk = await desk.client("/b")
        desk.open(talk, SETTINGS, WHOLE)
        edit(desk, talk, SETTINGS, CUT, 2)
        await yield_to_loop()
        may_end.set()
        await is_shown(desk, talk, SETTINGS, "assistant.void")

    tell_story(tmp_path, story)


def test_changes_in_the_home_are_checked_together_a_while_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = []
    check_in_use = problems_in_use.check_in_use

    def count(*arguments: Any, **options: Any) -> Any:
        checks.append(arguments)
        return check_in_use(*arguments, **options)

    monkeypatch.setattr(problems_in_use, "check_in_use", count)
    monkeypatch.setattr("nexus_daemon.workspace.program_checks.OUTSIDE_S", 0.5)

    async def story(desk: Desk) -> None:
        write(desk, SETTINGS, WHOLE)
        write(desk, "/home/.claude/settings.json", "{}")
        talk = await desk.client("/b")
        await wait_until(lambda: desk.daemon.watcher.watched and checks)
        await asyncio.sleep(0.3)
        before = len(checks)
        for count in range(5):
            write(desk, "/home/.claude/settings.json", f'{{"cleanupPeriodDays": {count}}}')
            await asyncio.sleep(0.02)
        write(desk, "/home/.claude/settings.json", CUT)
        await is_shown(desk, talk, "/home/.claude/settings.json", "assistant.void")
        assert len(checks) <= before + 2

    tell_story(tmp_path, story)


def test_a_programs_problem_has_a_quick_fix(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        text = '{"modle": "opus"}'
        write(desk, SETTINGS, text)
        talk = await desk.client("/b")
        desk.open(talk, SETTINGS, text)
        await is_shown(desk, talk, SETTINGS, "assistant.no-effect")
        (action,) = await fixes(desk, talk, 1, character=3)
        (edits,) = action["edit"]["changes"].values()
        assert [edit["newText"] for edit in edits] == ['"model"']
        assert [each["source"] for each in action["diagnostics"]] == ["Claude Code"]
        assert await fixes(desk, talk, 2, character=len(text)) == []
        edit(desk, talk, SETTINGS, '{"model": "opus"}', 2)
        assert await fixes(desk, talk, 3, character=3) == []

    tell_story(tmp_path, story)


async def fixes(desk: Desk, talk: Talk, number: int, *, character: int) -> Any:
    place = {"line": 0, "character": character}
    where = {"textDocument": {"uri": desk.uri(SETTINGS)}, "range": {"start": place, "end": place}}
    return await desk.ask(talk, number, "textDocument/codeAction", **where, context={"diagnostics": []})


@pytest.mark.parametrize("opened", [None, '{"modle": 1}', '\ufeff{"modle": 1}'])
def test_a_byte_order_mark_moves_no_place(tmp_path: Path, opened: str | None) -> None:
    """On disk it is no character of an editor's text; a client that keeps it counts it."""

    async def story(desk: Desk) -> None:
        write(desk, SETTINGS, '\ufeff{"modle": 1}')
        talk = await desk.client("/b")
        await is_shown(desk, talk, SETTINGS, "assistant.no-effect")
        if opened is not None:
            desk.open(talk, SETTINGS, opened)
            await wait_until(lambda: published(talk)[-1]["params"].get("version") == 1)
            (action,) = await fixes(desk, talk, 1, character=3)
            assert (
                action["diagnostics"][0]["range"] == published(talk)[-1]["params"]["diagnostics"][0]["range"]
            )
        start = published(talk)[-1]["params"]["diagnostics"][0]["range"]["start"]["character"]
        assert start == (2 if opened is not None and opened.startswith("\ufeff") else 1)

    tell_story(tmp_path, story)
