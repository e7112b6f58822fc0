"""The lenses of the assistants in use: title, tooltip, and the place in what they send."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import file_uses
from nexus_daemon.api.assistant_views import build_preview
from nexus_daemon.features.reader_lens import FileReader, RequestRoom, reader_lenses
from nexus_daemon.lsp.convert import Locator, Texts
from support.fixture import write_fixture

REPOSITORY = "//- /a/.git/HEAD\nref\n//- /a/.git/objects/x\n//- /a/.git/refs/x\n"
WRITTEN = "//- /a/CLAUDE.md\nUse tabs.$0\n"
LONG = "Word. " * 8_000  # Codex reads 32 KiB
IMPORTED = "//- /a/CLAUDE.md\n@style.md\n//- /a/style.md\nNo tabs.$0\n"


def lens(text: str, program: str, root: Path, window: int | None = 200_000) -> Any:
    """The lens of a program on the file with the cursor, and the text that it counts; None without one."""
    fixture = write_fixture(REPOSITORY + text, root)
    path = os.path.realpath(fixture.cursor_path or "")
    profile = read_profile(program, Surroundings(os.path.realpath(root / "a"), str(root / "home"), {}))
    use = file_uses(profile).get(path)
    if use is None:
        return None, None
    preview = build_preview(profile, Locator(profile, "utf-32"), 1)
    room = None if window is None else RequestRoom(window, "Of a model.")
    reader = FileReader(profile, use, room, preview)
    [found] = reader_lenses([reader], path, Locator(Texts(), "utf-32"), folder="file:///a")
    command = msgspec.to_builtins(found)["command"]
    [target] = command["arguments"]
    command["title"] = re.sub(r"[\d,]+ tokens", "N tokens", command["title"])  # its path is counted, too
    assert (command["command"], target["assistant"]) == ("nexus.showInContext", program)
    counted = target.get("prompt")
    if counted is None:
        return command, None
    starts = [0, *(at + 1 for at, one in enumerate(preview.text) if one == "\n")]
    begin, end = (starts[counted[key]["line"]] + counted[key]["character"] for key in ("start", "end"))
    return command, preview.text[begin:end]


@pytest.mark.parametrize(
    ("program", "text", "title", "counted"),
    [
        ("claude-code", WRITTEN, "Claude Code: ≈ N tokens · < 0.1 % of 200k", "Use tabs."),
        ("claude-code", IMPORTED, "Claude Code: ≈ N tokens · < 0.1 % of 200k", "No tabs."),
        ("codex", "//- /a/AGENTS.md\nUse tabs.$0\n", "Codex: N tokens · < 0.1 % of 200k", "Use tabs.\n"),
        ("opencode", IMPORTED, None, None),
        ("codex", "//- /a/CLAUDE.md\nUse tabs.$0\n", "Codex: not read · ", None),
        ("claude-code", "//- /a/sub/CLAUDE.md\nUse tabs.$0\n", "Claude Code: sent ", None),
        ("claude-code", "//- /a/README.md\nUse tabs.$0\n", None, None),
    ],
)  # fmt: skip
def test_what_an_assistant_does_with_a_file(
    program: str, text: str, title: str | None, counted: str | None, tmp_path: Path
) -> None:
    command, shown = lens(text, program, tmp_path)
    assert shown == counted
    assert (command is None) == (title is None)
    if title is not None and title.endswith(" "):
        assert command["title"].startswith(title)
        assert command["tooltip"].startswith(title.partition(":")[0])
    else:
        assert (command and command["title"]) == title
        assert command is None or command["tooltip"].endswith(": Of a model.")


def test_a_file_that_is_cut_says_where(tmp_path: Path) -> None:
    command, _ = lens(f"//- /a/AGENTS.md\nFirst.\n{LONG}\nLast.$0\n", "codex", tmp_path)
    assert (
        command["title"] == "Codex: N tokens · 5.5 % of 200k · cut at 32,768 bytes: lines 2–3 are never read"
    )


def test_a_model_that_is_not_known_has_no_share(tmp_path: Path) -> None:
    command, _ = lens("//- /a/CLAUDE.md\nUse tabs.$0\n", "claude-code", tmp_path, None)
    assert command["title"] == "Claude Code: ≈ N tokens"
