"""The knowledge base of a folder in the daemon: when it is made, how long a query waits, what is fresh."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_context.folder.layers.layer_types import Layers
from nexus_context.folder.layers.read_layers import LayerInputs, read_layers
from nexus_context.memory.knowledge import vectors
from nexus_context.tokens import SimpleTokenCounter
from nexus_daemon.process import lazy
from nexus_daemon.workspace import knowledge as module
from nexus_daemon.workspace.knowledge import Knowledge
from nexus_daemon.workspace.watcher import Subscriber, Watcher
from support.fixture import write_file
from support.waiting import wait_until

TIMEOUT_S = 10.0


class Folder:
    """A folder with documents, its knowledge base, and a watcher that follows it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "app"
        self.state = root / "state"
        (self.path / ".nexus3").mkdir(parents=True)
        (self.path / "docs").mkdir()
        self.executor = ThreadPoolExecutor(4)
        self.moves = 0
        self.watcher: Watcher | None = None
        self.knowledge = Knowledge(
            str(self.path),
            self.executor,
            user_home=str(root),
            environ={"NEXUS_STATE": str(self.state)},
            on_move=self._moved,
        )

    def _moved(self) -> None:
        self.moves += 1
        if self.watcher is not None:
            self.watcher.refresh()

    def write(self, name: str, text: str) -> None:
        write_file(self.path / name, text)

    def layers(self, *paths: str, **more: object) -> Layers:
        values = {"memory": {"knowledge": {"paths": paths, **more}}} if paths else {}
        self.write(".nexus3/config.json", json.dumps(values))
        above = str(self.path.parent)
        return read_layers(str(self.path), LayerInputs(home=f"{above}/home", user_home=above, environ={}))

    async def ask(self, text: str, **limits: int) -> list[str]:
        return [each.text for each in await self.knowledge.query(text, SimpleTokenCounter(), **limits)]

    async def until(self, text: str, *expected: str) -> None:
        """Ask until this is the answer."""

        async def is_answer() -> bool:
            return await self.ask(text) == list(expected)

        await wait_until(is_answer)

    def names(self) -> list[str]:
        return sorted(os.path.relpath(path, self.path) for path in self.knowledge.watched())


def check(root: Path, story: Callable[[Folder], Awaitable[None]]) -> None:
    """Run a story in a folder; nothing is left behind."""

    async def run() -> None:
        folder = Folder(root)
        try:
            await story(folder)
        finally:
            if folder.watcher is not None:
                await folder.watcher.close()
            await asyncio.wait_for(folder.knowledge.close(), TIMEOUT_S)
            folder.executor.shutdown()

    asyncio.run(run())


def test_nothing_is_made_before_the_first_query(tmp_path: Path) -> None:
    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        assert await folder.ask("red") == []
        folder.knowledge.configure(folder.layers())
        assert await folder.ask("red") == []
        folder.knowledge.configure(folder.layers("docs", "../x"))
        folder.knowledge.changed(None)
        await wait_until(lambda: folder.knowledge.problems)  # those of the settings are known at once
        assert (folder.names(), folder.state.exists(), folder.moves) == ([], False, 1)
        await folder.until("red", "red")
        assert (folder.names(), folder.moves) == (["docs"], 2)
        assert [each.code for each in folder.knowledge.problems] == ["config.scope"]

    check(tmp_path, story)


def test_limits_are_those_of_the_settings_unless_given(tmp_path: Path) -> None:
    async def story(folder: Folder) -> None:
        for number in range(9):
            folder.write(f"docs/{number}.md", f"red {number}")
        folder.knowledge.configure(folder.layers("docs"))
        await folder.until("red", *(f"red {number}" for number in range(5)))
        assert len(await folder.ask("red", top_k=7)) == 7
        assert await folder.ask("red", max_tokens=0) == []

    check(tmp_path, story)


def test_a_query_does_not_wait_for_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, real = threading.Event(), lazy.knowledge.refresh

    def slow(*args: Any, **named: Any) -> Any:
        assert go_on.wait(TIMEOUT_S)
        return real(*args, **named)

    monkeypatch.setattr(lazy.knowledge, "refresh", slow)

    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs"))
        async with asyncio.timeout(TIMEOUT_S / 2):
            assert await folder.ask("red") == []
        go_on.set()
        await folder.until("red", "red")

    check(tmp_path, story)


def test_other_settings_are_followed(tmp_path: Path) -> None:
    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.write("more/b.md", "red too")
        folder.knowledge.configure(folder.layers("docs"))
        await folder.until("red", "red")
        folder.knowledge.configure(folder.layers("more"))
        await folder.until("red", "red too")
        assert folder.names() == ["more"]
        folder.knowledge.configure(folder.layers())
        assert await folder.ask("red") == []

    check(tmp_path, story)


def test_what_the_watcher_tells_is_looked_at(tmp_path: Path) -> None:
    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs"))
        await folder.until("red", "red")
        folder.knowledge.changed(None)
        folder.write("docs/b.md", "blue")
        folder.knowledge.changed({str(folder.path / "docs/b.md"), "/elsewhere"})
        await folder.until("blue", "blue")
        folder.write("docs/c/d.md", "green")
        folder.knowledge.changed({str(folder.path / "docs/c")})
        await folder.until("green", "green")
        assert folder.names() == ["docs", "docs/c"]

    check(tmp_path, story)


def test_with_a_watcher_it_follows_the_disk(tmp_path: Path) -> None:
    async def story(folder: Folder) -> None:
        base = folder.knowledge
        folder.watcher = Watcher(Subscriber(base.watched, base.changed), executor=folder.executor)
        folder.watcher.start()
        base.configure(folder.layers("docs"))
        folder.write("docs/a.md", "red")
        await folder.until("red", "red")
        folder.write("docs/a.md", "blue")
        await folder.until("blue", "blue")
        folder.write("docs/deep/er/b.md", "green")
        await folder.until("green", "green")
        folder.write("docs/deep/er/b.md", "yellow")
        await folder.until("yellow", "yellow")
        (folder.path / "docs").rename(folder.path / "gone")
        await folder.until("yellow blue")

    check(tmp_path, story)


def test_without_a_watch_it_looks_again_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(folder: Folder) -> None:
        for number in range(3):
            folder.write(f"docs/{number}/a.md", "red")
        folder.knowledge.configure(folder.layers("docs"))
        await folder.until("red", "red")
        assert len(folder.names()) == 2
        folder.write("docs/a.md", "blue")
        folder.knowledge.changed(None)
        await folder.until("blue", "blue")
        folder.write("docs/a.md", "green")
        assert await folder.ask("green") == []
        monkeypatch.setattr(module, "RESCAN_S", 0.0)
        await folder.until("green", "green")

    monkeypatch.setattr(module, "MOST_WATCHED", 2)
    check(tmp_path, story)


@pytest.mark.parametrize("uptime_s", [1, 1_000_000])
def test_a_bug_is_logged_and_the_next_query_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, uptime_s: int
) -> None:
    started = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() - started + uptime_s)
    monkeypatch.setattr(module, "time", clock)
    failures, real = iter([ZeroDivisionError()]), lazy.knowledge.refresh

    def fail(*args: Any, **named: Any) -> Any:
        for failure in failures:
            raise failure
        return real(*args, **named)

    monkeypatch.setattr(lazy.knowledge, "refresh", fail)

    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs"))
        await folder.until("red", "red")

    check(tmp_path, story)
    assert [record.message for record in caplog.records] == ["updating the knowledge base failed"]


def test_closing_ends_what_is_under_way(tmp_path: Path) -> None:
    async def story(folder: Folder) -> None:
        for number in range(500):
            folder.write(f"docs/{number}.md", f"red {number}\n\n" * 50)
        folder.knowledge.configure(folder.layers("docs"))
        asking = asyncio.create_task(folder.ask("red"))
        await wait_until(folder.state.exists)
        await asyncio.wait_for(folder.knowledge.close(), TIMEOUT_S)
        await asking
        folder.knowledge.changed(None)

    check(tmp_path, story)


# ------------------------------------------------------------ by meaning

MEANING = {"enabled": True}


class Colours:
    """An embedder for which red and scarlet are the same, and everything else is something else."""

    name = "colours"
    dimensions = 2

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()
        self.failure: Exception | None = None
        self.calls = 0
        self.finds = 0
        self.loads = 0

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.calls += 1
        assert self.go_on.wait(TIMEOUT_S)
        if self.failure is not None:
            raise self.failure
        return [[1.0, 0.0] if "red" in text or "scarlet" in text else [0.0, 1.0] for text in texts]


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> Colours:
    model = Colours()
    files = lazy.knowledge.ModelFiles("colours", "/models/colours")

    def find_model(_: object) -> object:
        model.finds += 1
        return files

    def load_model(_: object) -> Colours:
        model.loads += 1
        return model

    monkeypatch.setattr(lazy.knowledge, "find_model", find_model)
    monkeypatch.setattr(lazy.knowledge, "load_model", load_model)
    return model


async def problems_are(folder: Folder, *expected: str) -> None:
    """Sooner or later these are the problems, each with the setting under it."""

    def shown() -> list[str]:
        return [
            f"{Path(each.path).read_text()[slice(*each.span)]}: {each.message}"
            for each in folder.knowledge.problems
        ]

    async with asyncio.timeout(TIMEOUT_S):
        while shown() != list(expected):
            await asyncio.sleep(0.01)


def test_files_are_found_by_meaning(tmp_path: Path, colours: Colours) -> None:
    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await folder.until("scarlet", "red")
        folder.write("docs/b.md", "bordeaux red")
        folder.knowledge.changed({str(folder.path / "docs/b.md")})
        await folder.until("scarlet", "red", "bordeaux red")
        (folder.path / "docs/a.md").unlink()
        folder.knowledge.changed({str(folder.path / "docs/a.md")})
        await folder.until("scarlet", "bordeaux red")
        assert folder.knowledge.problems == ()
        folder.knowledge.configure(folder.layers("docs", embeddings={"enabled": False}))
        await folder.until("scarlet")
        assert await folder.ask("red") == ["bordeaux red"]

    check(tmp_path, story)


def test_the_model_is_loaded_with_the_first_query(tmp_path: Path, colours: Colours) -> None:
    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await wait_until(lambda: colours.finds)
        await asyncio.sleep(0.05)
        assert (colours.loads, folder.state.exists()) == (0, False)
        await folder.until("scarlet", "red")
        folder.knowledge.changed(None)
        folder.write("docs/a.md", "bordeaux red")
        await folder.until("scarlet", "bordeaux red")
        assert colours.loads == 1

    check(tmp_path, story)


def test_the_least_similarity_is_a_setting(tmp_path: Path, colours: Colours) -> None:
    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "blue")
        folder.knowledge.configure(folder.layers("docs", embeddings={**MEANING, "min_similarity": 0}))
        await folder.until("scarlet", "blue")
        folder.knowledge.configure(folder.layers("docs", embeddings={**MEANING, "min_similarity": 0.1}))
        await folder.until("scarlet")

    check(tmp_path, story)


def test_a_slow_model_holds_nobody_up(tmp_path: Path, colours: Colours) -> None:
    async def story(folder: Folder) -> None:
        colours.go_on.clear()
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await folder.until("red", "red")  # while passages are embedded
        colours.go_on.set()
        await folder.until("scarlet", "red")
        colours.go_on.clear()
        before = colours.calls
        for _ in range(3):  # while a message is embedded; only the first waits for it
            assert await folder.ask("scarlet") == []
            assert await folder.ask("red") == ["red"]
        assert colours.calls == before + 1
        colours.go_on.set()
        await folder.until("scarlet", "red")

    check(tmp_path, story)


def test_a_model_that_fails_is_one_problem(tmp_path: Path, colours: Colours) -> None:
    async def story(folder: Folder) -> None:
        colours.failure = RuntimeError("no memory")
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await folder.until("red", "red")
        await problems_are(
            folder,
            "true: Files are searched by words only: the model colours failed: RuntimeError('no memory').",
        )
        assert await folder.ask("scarlet") == []
        folder.knowledge.configure(folder.layers("docs"))
        await problems_are(folder)

    check(tmp_path, story)


def test_a_missing_model_is_a_problem_before_the_first_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = lazy.knowledge.EmbeddingError("model2vec is not installed. Run: pip")

    def find_model(_: object) -> None:
        raise missing

    monkeypatch.setattr(lazy.knowledge, "find_model", find_model)
    message = "Files are searched by words only: model2vec is not installed. Run: pip."

    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await problems_are(folder, f"true: {message}")
        assert not folder.state.exists()
        await folder.until("red", "red")
        folder.knowledge.configure(folder.layers("docs", top_k=3, embeddings=MEANING))
        await problems_are(folder, f"true: {message}")
        assert len(folder.knowledge.problems) == 1
        folder.knowledge.configure(folder.layers("docs", embeddings={"enabled": False}))
        await problems_are(folder)

    check(tmp_path, story)


def test_more_passages_than_are_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, colours: Colours
) -> None:
    monkeypatch.setattr(vectors, "MOST_VECTORS", 1)

    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.write("docs/b.md", "scarlet blue")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await folder.until("red", "red")
        await problems_are(
            folder,
            "true: There are too many passages: only the first 100,000 are searched by meaning. "
            "Name fewer directories, or use patterns.",
        )

    check(tmp_path, story)


def test_a_bug_in_embedding_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, colours: Colours
) -> None:
    failures, real = iter([ZeroDivisionError()]), lazy.knowledge.find_model

    def fail(directory: str | None) -> Any:
        for failure in failures:
            raise failure
        return real(directory)

    monkeypatch.setattr(lazy.knowledge, "find_model", fail)

    async def story(folder: Folder) -> None:
        folder.write("docs/a.md", "red")
        folder.knowledge.configure(folder.layers("docs", embeddings=MEANING))
        await folder.until("scarlet", "red")

    check(tmp_path, story)
    assert [record.message for record in caplog.records] == ["embedding the knowledge base failed"]
