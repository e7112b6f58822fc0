"""`nexus/assistant/*`: what other assistants read in a folder."""

from pathlib import Path
from typing import Any

from support.asking import Asking, check, write
from support.desk import Desk


def read(result: Any) -> list[tuple[str, str, bool]]:
    """Name, role and whether it is in every request, of each file of a result."""
    return [(file["uri"].rpartition("/")[2], file["role"], file["loaded"]) for file in result["files"]]


def test_unsaved_text_counts_as_saved(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/AGENTS.md", "On disk.\n")
        write(desk, "/a/CLAUDE.md", "Not for Codex.\n")
        before = await ask("assistant/context", assistant="codex")
        assert read(before) == [
            ("AGENTS.md", "user", True),
            ("CLAUDE.md", "none", False),
            ("AGENTS.md", "none", False),
            ("AGENTS.md", "none", False),
        ]
        desk.open(ask.talk, "/a/AGENTS.md", "Much longer text that is not saved.\n")
        after = await ask("assistant/context", assistant="codex")
        assert read(after) == read(before)
        assert after["total"] - before["total"] == 5
        assert after["problems"] == before["problems"]

    check(tmp_path, story)


def test_all_assistants_are_listed_with_the_client_s_own(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        listed = (await ask("assistant/list"))["assistants"]
        assert [(each["name"], each["verified"]) for each in listed] == [
            ("claude-code", "run"),
            ("codex", "run"),
            ("opencode", "run"),
            ("gemini", "run"),
            ("copilot", "documentation"),
            ("cursor", "documentation"),
        ]

    check(tmp_path, story)
