"""A ledger that another program keeps locked: all who ask are told at once, and who reads need not wait."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from nexus_context import ledger
from nexus_context.ledger import connections
from nexus_context.ledger.store import Ledger
from nexus_daemon.cli import main
from support.desk import Desk, tell_story
from support.talk import Talk, call

QUESTIONS = (
    "nexus/context/usage",
    "nexus/context/assemble",
    "nexus/session/list",
    "nexus/session/messages",
    "nexus/agent/list",
)


@contextmanager
def locked(path: Path, mode: str) -> Iterator[None]:
    """Another connection has begun to write; with `EXCLUSIVE` not even readers come in."""
    with closing(apsw.Connection(str(path))) as holder:
        holder.execute(f"PRAGMA locking_mode = {mode}")
        holder.execute("BEGIN IMMEDIATE")
        holder.execute("CREATE TABLE IF NOT EXISTS held (x)")
        yield
        holder.execute("ROLLBACK")


async def check(desk: Desk, talk: Talk, first: int, questions: tuple[str, ...]) -> list[str]:
    """What each of these comes to, all asked at once: `ok`, or the code of the error."""
    for number, method in enumerate(questions, first):
        params: dict[str, Any] = {"workspaceFolder": desk.uri("/a")}
        if method == "nexus/session/append":
            params["messages"] = [{"role": "user", "content": "b"}]
        talk.send(call(number, method, params))
    replies = await asyncio.gather(*(desk.reply(talk, first + index) for index in range(len(questions))))
    return [one["error"]["data"]["code"] if "error" in one else "ok" for one in replies]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HELD", 0.2)


def test_who_cannot_open_it_is_told_with_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state" / "ledger.db"
    path.parent.mkdir()
    ledger.open_ledger(str(path)).close()
    opened: list[str | None] = []
    open_ledger = ledger.open_ledger

    def counted(where: str | None = None, *, environ: Mapping[str, str] | None = None) -> Ledger:
        opened.append(where)
        return open_ledger(where, environ=environ)

    monkeypatch.setattr(ledger, "open_ledger", counted)

    async def story(desk: Desk) -> None:
        with locked(path, "EXCLUSIVE"):  # a ledger that is there is opened for a client that comes
            talk = await desk.client()
            assert await check(desk, talk, 1, QUESTIONS) == ["ledger-busy"] * len(QUESTIONS)
            assert len(opened) == 1  # nobody waited for the patience of another
        assert await check(desk, talk, 20, QUESTIONS) == ["ok"] * len(QUESTIONS)

    tell_story(tmp_path, story)


def test_who_reads_need_not_wait_and_who_writes_is_told(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await desk.ask(talk, 1, "nexus/session/append", messages=[{"role": "user", "content": "a"}])
        append = "nexus/session/append"
        with locked(tmp_path / "state" / "ledger.db", "NORMAL"):
            assert await check(desk, talk, 2, QUESTIONS) == ["ok"] * len(QUESTIONS)
            assert await check(desk, talk, 10, (append, *QUESTIONS, append)) == [
                "ledger-busy",
                *["ok"] * len(QUESTIONS),
                "ledger-busy",
            ]
        assert await check(desk, talk, 30, (append,)) == ["ok"]

    tell_story(tmp_path, story)


def test_the_command_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path))
    path = tmp_path / "ledger.db"
    ledger.open_ledger(str(path)).close()
    with locked(path, "EXCLUSIVE"):
        assert main(["sessions", "list", "--folder", str(tmp_path)]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert (
        f"Another program keeps the ledger {path} locked; it was not opened. Try again in a moment." in said
    )
