"""Agents of the settings in the daemon, looked at and started while their parents do not live."""

from pathlib import Path

import pytest

from support.asking import FILES, Asking, check
from support.desk import CONFIG, Desk, write
from support.waiting import wait_until

SETTINGS = """{"provider": {"model": "gpt-4o"}, "agents": {
  "lead": {"cwd": "api", "role": "manager"},
  "hand": {"cwd": "web", "parent": "lead", "task": "Fix it."},
  "one": {"parent": "two"}, "two": {"parent": "one"}}}"""
NAMED = {**FILES, CONFIG: SETTINGS}


def test_an_agent_is_looked_at_before_its_parents_are_started(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        seen = await ask("context/preview", viewAs={"agentId": "hand"})
        for words in ("Rules of the web.", "Rules of the api.", "Fix it.", 'Report to "lead" only.'):
            assert words in seen["text"]
        assert (await ask.ids(), ask.told()) == ([], [])
        below = await ask("context/preview", viewAs={"parent": "lead"})
        assert 'Report to "lead" only.' in below["text"]
        code, said = await ask.refused("agent/spawn", agentId="hand")
        assert (code, said.endswith(" and is not started. Start it first.")) == ("unknown-agent", True)
        assert f"is 'lead', which is defined in {desk.tree.path(CONFIG)} and" in said
        await ask("agent/spawn", agentId="lead")
        await ask("agent/spawn", agentId="hand")
        assert await ask("context/preview", agent="hand") == seen

    check(tmp_path, story, NAMED)


@pytest.mark.parametrize("path", ["/a/api/AGENTS.md", "/a/api/.nexus3/AGENT.lead.md"])
def test_what_is_looked_at_follows_the_files_of_its_parents(tmp_path: Path, path: str) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        async def seen() -> bool:
            return "Other rules." in (await ask("context/preview", viewAs={"agentId": "hand"}))["text"]

        write(desk, path, "Old rules.\n")
        assert not await seen()
        file = Path(desk.tree.path(path))
        await wait_until(lambda: any(str(file.parent) in each for each in desk.daemon.watcher.watched))
        write(desk, path, "Other rules.\n")
        await wait_until(seen)

    check(tmp_path, story, NAMED)


def test_who_cannot_be_started_cannot_be_looked_at(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        for view, code in (
            ({"agentId": "main"}, "agent-exists"),
            ({"agentId": "x", "parent": "x"}, "agent-cycle"),
            ({"agentId": "one"}, "agent-cycle"),
            ({"agentId": "x", "parent": "nobody"}, "unknown-agent"),
        ):
            assert await ask.refused("agent/spawn", **view) == await ask.refused(
                "context/preview", viewAs=view
            )
            assert (await ask.refused("context/preview", viewAs=view))[0] == code

    check(tmp_path, story, NAMED)
