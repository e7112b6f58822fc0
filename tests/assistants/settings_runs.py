"""Settings of Claude Code with one strange value each, and what the real program did with the file.

`claude_settings.jsonl` has a row for each: the settings, or the text of a file, and the effect: `void`
(nothing of the file counts), `skipped` (one entry does not) or `kept`. The file leaves CLAUDE.md out, so
that CLAUDE.md is sent again where the file is void.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from assistants import programs
from assistants.provider_stand_in import ProviderStandIn

ROWS = Path(__file__).with_name("claude_settings.jsonl")
SKIPPED = "These settings entries were skipped"


def rows() -> list[dict[str, Any]]:
    """The rows, each with `text`, the content of the file."""
    listed = [json.loads(line) for line in ROWS.read_text().splitlines()]
    for row in listed:
        row.setdefault("text", json.dumps({"claudeMdExcludes": ["**/CLAUDE.md"], **row.get("settings", {})}))
    return listed


def run_row(row: dict[str, Any]) -> str:
    """The effect of a row in the real program."""
    program = programs.PROGRAMS["claude-code"]
    with tempfile.TemporaryDirectory(prefix="settings-") as root, ProviderStandIn(None) as provider:
        work = Path(root, "work")
        Path(work, ".claude").mkdir(parents=True)
        Path(root, "home").mkdir()
        Path(work, "CLAUDE.md").write_text("The gate is red.\n")
        Path(work, ".claude", "settings.json").write_text(row["text"])
        run = programs.run(
            program,
            programs.install(program),
            work,
            home=Path(root, "home"),
            address=provider.address,
            environ={},
        )
        sent = json.dumps([request.body for request in provider.requests])
    if "The gate is red." in sent:
        return "void"
    return "skipped" if SKIPPED in run.output else "kept"
