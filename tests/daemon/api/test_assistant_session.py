"""`nexus/assistant/sessions` and `session`, and the notification about them."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from nexus_context.assistants.tracking import followers
from support.asking import Asking, check
from support.assistant_transcripts import BEGUN, Claude, Codex, lines, write
from support.desk import Desk
from support.desk import write as write_file
from support.talk import HELLO, Message, Talk, call, result
from support.waiting import wait_until

CAPABLE = {"experimental": {"nexus": {"assistantSessions": True}}}


def sessions_of(desk: Desk, folder: str = "/a") -> tuple[Claude, Codex]:
    return Claude(desk.tree.path(folder)), Codex(desk.tree.path(folder))


def test_sessions_are_listed_and_reported(tmp_path: Path, monkeypatch: Any) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        home = Path(desk.tree.path("/home"))
        claude, codex = sessions_of(desk)
        other = Claude(desk.tree.path("/lone"), session="other")
        write(claude.path(home), [claude.asks("Hi"), *claude.answers("A", write=9_000)], minute=2)
        codex.minute = 1
        records = [*codex.begins(), codex.says("Ho"), codex.says("B", role="assistant"), *codex.uses(500)]
        write(codex.path(home), records, minute=1)
        write(other.path(home), [other.asks("Hi"), *other.answers("A", write=9_000)])
        listed = (await ask("assistant/sessions"))["sessions"]
        assert [(one["assistant"], one["id"], one["title"], one["live"]) for one in listed] == [
            ("codex", "01a2", "Ho", False),
            ("claude-code", claude.session, "Hi", False),
        ]
        assert (await ask("assistant/sessions", live=True))["sessions"] == []
        only = await ask("assistant/sessions", assistant="claude-code")
        assert [one["id"] for one in only["sessions"]] == [claude.session]
        report = await ask("assistant/session", assistant="claude-code", id=claude.session)
        assert (report["context"]["used"], report["requests"]) == (9_010, 1)
        assert sum(row["tokens"] for row in report["session"]["usage"]["rows"]) == 9_010
        code, message = await ask.refused("assistant/session", assistant="codex", id="none")
        assert (code, message.partition(" in ")[0]) == (
            "unknown-assistant-session",
            "codex has no session 'none'",
        )
        code, _ = await ask.refused("assistant/sessions", assistant="cursor")
        assert code == "unknown-assistant"
        monkeypatch.setattr(followers, "LIVE_S", 1e12)
        live = (await ask("assistant/sessions", live=True))["sessions"]
        assert [(one["usage"]["total"], one["compactions"]) for one in live] == [(500, 0), (9_010, 0)]

    check(tmp_path, story)


def test_an_instruction_file_in_the_window_leads_to_its_text(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write_file(desk, "/a/CLAUDE.md", "Be brief.\n")
        claude, _ = sessions_of(desk)
        records = [claude.asks("Hi"), *claude.answers("A", write=9_000)]
        write(claude.path(Path(desk.tree.path("/home"))), records)
        report = await ask("assistant/session", assistant="claude-code", id=claude.session)
        rows = {row["label"]: row.get("source", {}).get("uri") for row in report["session"]["usage"]["rows"]}
        assert rows["instructions CLAUDE.md"] == desk.uri("/a/CLAUDE.md")
        assert rows["the program's prompt"] is None

    check(tmp_path, story)


def test_a_secret_in_a_title_is_masked(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        claude, _ = sessions_of(desk)
        secret = "sk-ant-api03-" + "Ab3" * 30
        records = [claude.asks(f"Use {secret}"), *claude.answers("A", write=9)]
        write(claude.path(Path(desk.tree.path("/home"))), records)
        listed = await ask("assistant/sessions")
        report = await ask("assistant/session", assistant="claude-code", id=claude.session)
        assert listed["sessions"][0]["title"].startswith("Use ")
        assert secret not in repr((listed, report))

    check(tmp_path, story)


# ---------------------------------------------------------------- notifications


def news(talk: Talk) -> list[Message]:
    method = "nexus/assistant/didChange"
    return [one["params"] for one in talk.writer.messages() if one.get("method") == method]


async def told(talk: Talk, count: int) -> list[tuple[str, str]]:
    """The first notifications: session and reason."""

    def enough() -> list[Message]:
        return news(talk) if len(news(talk)) >= count else []

    return [(one["id"], one["reason"]) for one in await wait_until(enough)]


async def watched(desk: Desk, is_ready: Callable[[set[str]], bool]) -> None:
    """Wait until the directories are watched."""

    def directories() -> bool:
        return bool(desk.daemon.watcher.watched) and is_ready(set(desk.daemon.watcher.watched[-1]))

    await wait_until(directories)


def test_a_client_that_asked_is_told_of_sessions_that_change(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(HELLO["params"], "capabilities", CAPABLE)

    async def story(desk: Desk, ask: Asking) -> None:
        home = Path(desk.tree.path("/home"))
        claude, _ = sessions_of(desk)
        new, inner = Claude(claude.folder, session="new"), Claude(desk.tree.path("/a/api"), session="inner")
        other = Claude(desk.tree.path("/lone"), session="other")
        await wait_until(lambda: list(desk.daemon.assistant_watch.paths()))
        await watched(desk, lambda paths: str(home) in paths)
        path = write(claude.path(home), [claude.asks("Hi")])
        assert (await told(ask.talk, 1))[0] == (claude.session, "appeared")
        await watched(desk, lambda paths: str(path.parent) in paths)
        write(other.path(home), [other.asks("Elsewhere")])
        with path.open("ab") as file:
            file.write(lines(claude.answers("A", write=9_000)))
        assert (claude.session, "changed") in await told(ask.talk, 2)
        count = len(news(ask.talk))
        write(new.path(home), [new.asks("Me, too")])
        assert ("new", "appeared") in await told(ask.talk, count + 1)
        count = len(news(ask.talk))
        write(inner.path(home), [inner.asks("Below")])
        assert ("inner", "appeared") in await told(ask.talk, count + 1)
        assert {one["workspaceFolder"] for one in news(ask.talk)} == {desk.uri("/a")}
        assert "other" not in {one["id"] for one in news(ask.talk)}

    check(tmp_path, story)


def test_a_session_of_gemini_cli_appears_in_a_project_without_any(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(HELLO["params"], "capabilities", CAPABLE)

    async def story(desk: Desk, ask: Asking) -> None:
        project = Path(desk.tree.path("/home/.gemini/tmp/a"))
        project.mkdir(parents=True)
        (project / ".project_root").write_text(desk.tree.path("/a"))
        await watched(desk, lambda paths: str(project) in paths)
        chats = project / "chats"
        chats.mkdir()
        await watched(desk, lambda paths: str(chats) in paths)
        (chats / "session-1.jsonl").write_text('{"sessionId": "s1", "projectHash": "h"}\n')
        assert await told(ask.talk, 1) == [("s1", "appeared")]

    check(tmp_path, story)


def test_without_a_client_that_asked_nothing_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("nexus_daemon.workspace.assistant_watch._listing", lambda _: 1 / 0)

    async def story(desk: Desk, ask: Asking) -> None:
        claude, _ = sessions_of(desk)
        path = write(claude.path(Path(desk.tree.path("/home"))), [claude.asks("Hi")])
        await ask("assistant/sessions")
        assert list(desk.daemon.assistant_watch.paths()) == []
        assert not any(str(path.parent) in paths for paths in desk.daemon.watcher.watched)

    check(tmp_path, story)


def test_lenses_are_old_when_a_session_begins_and_when_its_model_is_known(
    tmp_path: Path, monkeypatch: Any
) -> None:
    refresh = {"workspace": {"codeLens": {"refreshSupport": True}}}
    monkeypatch.setitem(HELLO["params"], "capabilities", {**CAPABLE, **refresh})

    async def story(desk: Desk, ask: Asking) -> None:
        home = Path(desk.tree.path("/home"))
        write_file(desk, "/a/CLAUDE.md", "Be brief.\n")
        claude, _ = sessions_of(desk)
        lens = {"textDocument": {"uri": desk.uri("/a/CLAUDE.md")}}
        await wait_until(lambda: list(desk.daemon.assistant_watch.paths()))
        await watched(desk, lambda paths: str(home) in paths)

        async def refreshed(number: int) -> None:
            ask.talk.send(call(900 + number, "textDocument/codeLens", lens))
            await desk.reply(ask.talk, 900 + number)

            def asked() -> list[Message]:
                method = "workspace/codeLens/refresh"
                return [one for one in ask.talk.writer.messages() if one.get("method") == method][
                    number - 1 :
                ]

            if number:
                ask.talk.send(result((await wait_until(asked))[0]["id"], None))

        await refreshed(0)
        path = write(claude.path(home), [claude.asks("Hi")])
        await refreshed(1)
        await watched(desk, lambda paths: str(path.parent) in paths)
        with path.open("ab") as file:
            file.write(lines(claude.answers("A", write=9_000)))  # an answer names the model
        await refreshed(2)

    check(tmp_path, story)


def test_what_runs_here_is_said_until_it_is_over(tmp_path: Path, monkeypatch: Any) -> None:
    can_refresh = {"workspace": {"codeLens": {"refreshSupport": True}}}
    monkeypatch.setitem(HELLO["params"], "capabilities", CAPABLE | can_refresh)

    async def story(desk: Desk, ask: Asking) -> None:
        async def reason() -> str:
            views = {each["name"]: each for each in (await ask("view/list"))["views"]}
            text: str = views["claude-code"]["reason"]
            return text

        def refreshes() -> list[Message]:
            method = "workspace/codeLens/refresh"
            return [one for one in ask.talk.writer.messages() if one.get("method") == method]

        await wait_until(lambda: list(desk.daemon.assistant_watch.paths()))
        document = {"uri": desk.uri("/a/CLAUDE.md")}
        await desk.ask(ask.talk, 1, "textDocument/codeLens", textDocument=document)
        claude, _ = sessions_of(desk)
        changed = (BEGUN + timedelta(minutes=claude.minute)).timestamp()
        monkeypatch.setattr(followers, "LIVE_S", time.time() - changed + 3.0)
        write(claude.path(Path(desk.tree.path("/home"))), [claude.asks("Hi")])
        assert await told(ask.talk, 1) == [(claude.session, "appeared")]
        assert await reason() == "it runs here"
        ask.talk.send(result((await wait_until(refreshes))[0]["id"], None))
        news_of_the_end = await told(ask.talk, len(news(ask.talk)) + 1)
        assert news_of_the_end[-1] == (claude.session, "idle")
        assert (await reason()).startswith("last used here ")
        await wait_until(lambda: refreshes()[1:])

    check(tmp_path, story)
