"""`nexus/knowledge/*`: what a turn would get of the knowledge base, and what is indexed."""

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.workspace import knowledge
from support.asking import Asking, check
from support.desk import CONFIG, Desk, write
from support.waiting import wait_until

DEPLOY = "# Deploy\n\nTalk.\n\n## Rollback 🚀\n\nRun `make rollback` with sk-live-4242424242424242424242.\n"
QUESTION = "When is a rollback possible?"


def configure(desk: Desk, ask: Asking, *paths: str, **more: object) -> None:
    """Set the paths, and write the files."""
    write(desk, "/a/docs/deploy.md", DEPLOY)
    write(desk, "/a/docs/style.md", "Names are short. A rollback has none.\n")
    values = {"provider": {"model": "gpt-4o"}, "memory": {"knowledge": {"paths": paths, **more}}}
    desk.open(ask.talk, CONFIG, json.dumps(values))


async def settled(ask: Asking) -> Any:
    """The status once all files are indexed and their directories watched."""

    async def settled_status() -> Any:
        status = await ask("knowledge/status")
        return None if "updating" in status else status

    return await wait_until(settled_status)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "PATIENCE_S", 10.0)  # a busy machine may take longer to index the files


def test_a_query_has_the_passages_of_a_turn_with_that_message(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        configure(desk, ask, "docs")
        answer = await ask("knowledge/query", query=QUESTION)
        best, second = answer["passages"]
        assert {**best, "score": 0.0, "tokens": 0} == {
            "uri": desk.uri("/a/docs/deploy.md"),
            "range": {"start": {"line": 4, "character": 0}, "end": {"line": 6, "character": 56}},
            "heading": "Deploy › Rollback 🚀",
            "text": "## Rollback 🚀\n\nRun `make rollback` with ******************************.",
            "tokens": 0,
            "score": 0.0,
            "matchedBy": ["words"],
        }
        assert best["score"] > second["score"] > 0
        turn = await ask("context/assemble", message=QUESTION)
        rows = [row["source"] for row in turn["usage"]["rows"] if row["category"] == "memory"]
        assert rows == [{"uri": one["uri"], "range": one["range"]} for one in (best, second)]
        assert (await ask("knowledge/query", query=QUESTION, limit=1))["passages"] == [best]
        enough = await ask("knowledge/query", query=QUESTION, maxTokens=best["tokens"])
        assert enough["passages"] == [best]
        assert (await ask("knowledge/query", query=QUESTION, maxTokens=1))["passages"] == []
        await settled(ask)
        assert await ask("knowledge/query", query="Something else?") == {"passages": []}

    check(tmp_path, story)


def test_status_says_what_is_indexed(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        nothing = {"paths": [], "files": 0, "passages": 0}
        assert await ask("knowledge/status") == nothing
        assert await ask("knowledge/query", query=QUESTION) == {"passages": []}
        assert not Path(desk.tree.path("/state/knowledge")).exists()
        configure(desk, ask, "docs", "notes/*.md", "../x")
        status = await settled(ask)
        problems, index = status.pop("problems"), status.pop("index")
        assert Path(index).parent == Path(desk.tree.path("/state/knowledge"))
        paths = [desk.tree.path("/a/docs"), desk.tree.path("/a/notes/*.md")]
        assert status == {"paths": paths, "files": 2, "passages": 3}
        assert [one["code"] for one in problems] == ["config.scope", "config.knowledge"]

    check(tmp_path, story)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"query": "  "}, "query is empty; give words or a question."),
        ({"query": "a", "limit": 0}, "limit is 0; it must be a whole number from 1 to 100."),
        ({"query": "a", "limit": 101}, "limit is 101; it must be a whole number from 1 to 100."),
        ({"query": "a", "maxTokens": 0}, "maxTokens is 0; it must be a whole number of at least 1."),
    ],
)
def test_a_query_that_cannot_be_is_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        assert await ask.refused("knowledge/query", **params) == ("bad-option", message)

    check(tmp_path, story)
