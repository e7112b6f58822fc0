"""Large files wait for a vocabulary: it is loaded once, and the folders that waited are read again."""

from pathlib import Path

import pytest

from nexus_context.folder.prompt import size
from nexus_context.tokens.vocabulary import VocabularyError
from nexus_daemon.workspace import vocabulary_loader
from support.desk import Desk, tell_story
from support.waiting import wait_until

NEXUS = "/a/NEXUS.md"
LONG = "Always write the tests first.\n" * 10_240


@pytest.mark.parametrize("damaged", [False, True])
def test_a_large_file_is_told_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool) -> None:
    loaded: list[str] = []

    def load(encoding: str) -> None:
        loaded.append(encoding)
        if damaged:
            raise VocabularyError("damaged")

    def there(encoding: str) -> bool:
        return encoding in loaded and not damaged

    monkeypatch.setattr(size, "is_loaded", there)
    monkeypatch.setattr(vocabulary_loader, "is_loaded", there)
    monkeypatch.setattr(vocabulary_loader, "load_encoding", load)
    monkeypatch.setattr(vocabulary_loader, "PAUSE_S", 0.5)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        (folder,) = desk.daemon.windows.folders
        assert folder.snapshot is not None
        assert folder.snapshot.contents.waits_for is None
        desk.open(talk, NEXUS, LONG)
        waiting = await folder.current()
        assert (waiting.contents.waits_for, loaded) == ("o200k_base", [])
        assert not desk.shown(talk, NEXUS)
        await wait_until(lambda: loaded)
        desk.open(talk, NEXUS, LONG + "More.\n")  # what is typed meanwhile loads nothing again
        if damaged:
            assert (await folder.current()).contents.waits_for == "o200k_base"
        else:
            assert await wait_until(lambda: desk.shown(talk, NEXUS)) == ["prompt.size"]
            assert (await folder.current()).contents.waits_for is None
        assert loaded == ["o200k_base"]

    tell_story(tmp_path, story)


def test_a_large_file_of_an_agent_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_loader, "PAUSE_S", 0.01)
    monkeypatch.setattr(size, "is_loaded", lambda encoding: encoding in loaded)
    monkeypatch.setattr(vocabulary_loader, "is_loaded", lambda encoding: encoding in loaded)
    monkeypatch.setattr(vocabulary_loader, "load_encoding", lambda encoding: loaded.append(encoding))
    loaded: list[str] = []

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        rules = Path(desk.tree.path("/a/big/AGENTS.md"))
        rules.parent.mkdir()
        rules.write_text(LONG)
        await desk.ask(talk, 1, "nexus/agent/spawn", agentId="big", cwd="big")
        assert await wait_until(lambda: desk.shown(talk, "/a/big/AGENTS.md")) == ["prompt.size"]
        assert loaded == ["o200k_base"]

    tell_story(tmp_path, story)
