"""`nexus/conversation/*`: one list, one search and one page for what is kept and what is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from inline_snapshot import snapshot

from support.asking import FILES, Asking
from support.assistant_logs import ClaudeLog, CodexLog, OpencodeDatabase
from support.desk import Desk, tell_story
from support.talk import Message

SECRET = "ghp_" + "a1B2" * 9
TRANSCRIPT = "conversation/transcript"
PACKAGE = "/a/web"


class PackageClient(Asking):
    """A client that asks about a package of the repository /a."""

    async def reply(self, method: str, **params: object) -> Message:
        return await super().reply(method, **{"workspaceFolder": self.desk.uri(PACKAGE), **params})


def check(tmp_path: Path, story: Callable[[Desk, Asking], Any]) -> None:
    async def told(desk: Desk) -> None:
        await story(desk, PackageClient(desk, await desk.client(PACKAGE)))

    tell_story(tmp_path, told, FILES)


async def have_sessions(desk: Desk, ask: Asking) -> Path:
    """One of Nexus, one inside the package, one above it, one beside it. The user's home."""
    home = Path(desk.tree.path("/home"))
    claude = ClaudeLog(home, "c1", folder=desk.tree.path("/a/web/src"))
    claude.user(f"Where is the harbour of {SECRET}?")
    claude.answer("Behind the gate.")
    CodexLog(home, "r1", folder=desk.tree.path("/a")).user("Is the harbour open?")
    CodexLog(home, "b1", folder=desk.tree.path("/a/api")).user("Is this harbour beside it?")
    messages = [{"role": "user", "content": "The harbour master called."}]
    await ask("session/append", session="main", messages=messages)
    return home


def test_one_list_of_what_is_kept_and_what_is_not(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await have_sessions(desk, ask)
        listed = await ask("conversation/list")
        rows = listed["conversations"]
        names = [
            (row["programTitle"], row["title"], row.get("tokens"), row.get("kept", False)) for row in rows
        ]
        assert names == snapshot(
            [
                ("Nexus", "main", 31, True),
                (
                    "Claude Code",
                    "Where is the harbour of ****************************************?",
                    100,
                    False,
                ),
                ("Codex", "Is the harbour open?", None, False),
            ]
        )
        assert listed["total"] == snapshot(
            {"conversations": 3, "tokens": 131, "costLacks": ["conversations of which no cost is known"]}
        )
        main, claude, codex = rows
        assert (main["session"], main["id"], main["workspaceFolder"]) == (
            "main",
            main["thread"],
            desk.uri(PACKAGE),
        )
        assert (claude["id"], claude["folder"]) == ("c1", desk.uri("/a/web/src"))
        assert (codex["id"], codex["folder"]) == ("r1", desk.uri("/a"))
        assert claude["uri"].endswith("/c1.jsonl")

    check(tmp_path, story)


def test_a_list_is_chosen_and_bounded(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await have_sessions(desk, ask)

        async def ids(**params: Any) -> list[str]:
            return [row["program"] for row in (await ask("conversation/list", **params))["conversations"]]

        assert await ids(program="codex") == ["codex"]
        assert await ids(program="nexus") == ["nexus"]
        assert await ids(since="2026-11-20T10:00:02Z") == snapshot(["nexus", "claude-code"])
        everywhere = await ask("conversation/list", workspaceFolder=None, limit=1)
        assert (len(everywhere["conversations"]), everywhere["total"]["conversations"]) == (1, 4)
        for params in ({"since": "soon"}, {"limit": 0}):
            assert (await ask.refused("conversation/list", **params))[0] == "bad-option"

    check(tmp_path, story)


def test_a_folder_that_is_open_by_a_link_has_its_own(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await have_sessions(desk, ask)
        link = Path(desk.tree.path("/linked"))
        link.symlink_to(desk.tree.path(PACKAGE))
        linked = Asking(desk, await desk.client("/linked"))
        params = {"workspaceFolder": desk.uri("/linked")}
        rows = (await linked("conversation/list", **params))["conversations"]
        assert [row["programTitle"] for row in rows] == ["Nexus", "Claude Code", "Codex"]
        assert (rows[0]["folder"], rows[0]["workspaceFolder"]) == (desk.uri("/linked"), desk.uri("/linked"))
        (hit,) = (await linked("conversation/search", query="master", **params))["hits"]
        assert hit["workspaceFolder"] == desk.uri("/linked")

    check(tmp_path, story)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        home = await have_sessions(desk, ask)
        OpencodeDatabase(home).session("o1", folder=desk.tree.path("/a"))
        path = home / ".local/share/opencode/opencode.db"
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(b"no database at all" * 100)
        for result in (await ask("conversation/list"), await ask("conversation/search", query="harbour")):
            assert [failure["message"] for failure in result["failures"]] == ["file is not a database"]

    check(tmp_path, story)


def test_a_search_in_the_ledger_and_in_files(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await have_sessions(desk, ask)
        found = await ask("conversation/search", query="harbour")
        assert [(hit["session"], hit["snippet"]) for hit in found["hits"]] == snapshot(
            [("main", "The «harbour» master called.")]
        )
        hits = sorted((hit["id"], hit["position"], hit["snippet"]) for hit in found["fileHits"])
        assert hits == snapshot(
            [
                ("c1", 0, "Where is the «harbour» of ****************************************?"),
                ("r1", 0, "Is the «harbour» open?"),
            ]
        )
        assert (found["searched"], found["named"]) == (2, [])
        named = await ask("conversation/search", query="MAI")
        assert [one["session"] for one in named["named"]] == ["main"]
        nothing = await ask("conversation/search", query="-")
        assert (nothing["hits"], nothing["fileHits"], nothing["named"]) == ([], [], [])

    check(tmp_path, story)


def test_a_conversation_that_is_not_kept_is_read_page_by_page(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        home = await have_sessions(desk, ask)
        log = ClaudeLog(home, "c2", folder=desk.tree.path("/a"))
        for number in range(4):
            log.user(f"Question {number}?")
            log.answer(f"Answer {number}.")
        about = {"program": "claude-code", "id": "c2"}
        page = await ask(TRANSCRIPT, **about, limit=3)
        assert (page["messages"], page["first"], page["end"]) == (8, 5, 8)
        assert (page["session"], page["readFrom"], page["sentUnknown"]) == (
            "Question 0?",
            "Claude Code",
            True,
        )
        turns = [
            (turn["seq"], turn["first"], [one["text"] for one in turn["messages"]]) for turn in page["turns"]
        ]
        assert turns == [(3, 4, ["Answer 2."]), (4, 6, ["Question 3?", "Answer 3."])]
        assert all(turn["turn"].startswith(page["thread"]) for turn in page["turns"])
        for params, expected in [
            ({"before": 5, "limit": 2}, (3, 5)),
            ({"first": 1, "limit": 2}, (1, 3)),
            ({"first": 6}, (6, 8)),
            ({"first": 8}, (8, 8)),
            ({"before": 0, "limit": 1}, (0, 0)),
            ({"before": 99, "limit": 2}, (6, 8)),
            ({"first": -1, "limit": 2}, (0, 2)),
        ]:
            page = await ask(TRANSCRIPT, **about, **params)
            messages = [one["position"] for turn in page["turns"] for one in turn["messages"]]
            assert ((page["first"], page["end"]), messages) == (expected, [*range(*expected)])
        for _ in range(3):
            log.user("Long. " * 100_000)
        page = await ask(TRANSCRIPT, **about)
        assert (page["first"], page["end"], page["messages"]) == (
            9,
            11,
            11,
        )  # as much as a page of the ledger
        secret = await ask(TRANSCRIPT, program="claude-code", id="c1")
        assert "a1B2" not in repr(secret)
        assert (await ask("session/list"))["sessions"][1:] == []  # nothing was kept by reading

    check(tmp_path, story)


def test_a_sub_agent_and_one_of_another_folder(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        home = await have_sessions(desk, ask)
        agent = ClaudeLog(home, "x", folder=desk.tree.path("/a/web/src"), agent="a7", session="c1")
        agent.user("Search the quay.")
        (hit,) = (await ask("conversation/search", query="quay"))["fileHits"]
        page = await ask(TRANSCRIPT, program=hit["program"], id=hit["id"])
        assert [one["text"] for turn in page["turns"] for one in turn["messages"]] == ["Search the quay."]
        beside = await ask(TRANSCRIPT, program="codex", id="b1")
        assert beside["messages"] == 1
        main = (await ask("conversation/list", program="nexus"))["conversations"][0]
        stored = await ask(TRANSCRIPT, program="nexus", id=main["id"])
        assert (stored["session"], stored["thread"], stored.get("readFrom")) == ("main", main["thread"], None)
        assert (await ask.refused(TRANSCRIPT, program="codex", id="none"))[0] == "unknown-session"
        assert (await ask.refused(TRANSCRIPT, program="cursor", id="none"))[0] == "unknown-session"
        assert (await ask.refused(TRANSCRIPT, program="codex", id="r1", limit=0))[0] == "bad-option"

    check(tmp_path, story)
