"""What `nexus check --for` and agnix find in set-ups whose effect in the real program is recorded: a table.

    python -m benchmarks.peer_findings > benchmarks/results/DATE-agnix.md

1. The set-ups are `tests/assistants/spellings.jsonl` and `claude_settings.jsonl`: one file each, and what the
   program did with it. A set-up is broken if a rule that names files is always or never sent, if a skill or
   an agent is missing or has not its description, or if of settings something does not count.
2. A finding is an error or a warning about the file. What is found in a set-up that works is a false alarm,
   unless it is about another value that has no effect, such as a key that the program does not know: the
   recordings do not show that.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.assistant_checks import AGNIX, install_agnix
from benchmarks.promises import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from assistants import settings_runs, spelling_runs
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Severity

NAMES_FILES = re.compile(r"src|docs|\.(?:ts|md)\b|paths: (?:\d|true|false)")
PLACES = {**spelling_runs.DIRECTORIES, ("claude-code", "settings"): ".claude/settings.json"}
AGNIX_LEVELS = ("error", "warning")


class SetUp(NamedTuple):
    """A file of a program, what it says, and whether the program does not do that."""

    program: str
    kind: str
    text: str
    is_broken: bool


def set_ups() -> Iterator[SetUp]:
    """All set-ups whose effect is recorded."""
    for row in spelling_runs.rows():
        kind, text, sent = row["kind"], row["text"], row["sent"]
        if kind == "paths":
            yield SetUp(row["program"], kind, text, not sent or (sent == "always" and _names_files(text)))
        elif kind in ("skill", "agent") and "disable-model-invocation" not in text:
            yield SetUp(row["program"], kind, text, sent is None or "MK" in sent or sent.endswith(": ---"))
    for row in settings_runs.rows():
        yield SetUp("claude-code", "settings", row["text"], row["effect"] != "kept")


def _names_files(text: str) -> bool:
    return NAMES_FILES.search(text) is not None and '"**' not in text


def found_by_nexus(each: SetUp, work: Path, file: Path) -> bool:
    """Whether Nexus reports an error or a warning about a file."""
    profile = read_profile(
        each.program, Surroundings(str(work), str(work.parent / "home"), {}), counted=False
    )
    return any(
        problem.path == str(file) and problem.severity <= Severity.WARNING for problem in profile.problems
    )


def found_by_agnix(work: Path, file: Path) -> bool:
    """Whether agnix does."""
    command = [install_agnix(), "--format", "json", str(work)]
    output = subprocess.run(command, capture_output=True, check=False).stdout
    found = json.loads(output)["diagnostics"]
    return any(work / one["file"] == file and one["level"] in AGNIX_LEVELS for one in found)


def main() -> None:
    """Write the tables."""
    counts: dict[tuple[str, str], list[int]] = {}
    lists: dict[str, list[str]] = {}
    for each in set_ups():
        with tempfile.TemporaryDirectory() as directory:
            work = Path(directory).resolve() / "work"
            file = work / PLACES[each.program, each.kind].format(n=1)
            file.parent.mkdir(parents=True)
            file.write_bytes(
                f"{each.text.replace('{n}', 'n1')}{'' if each.kind == 'settings' else 'Text.'}".encode()
            )
            by_nexus, by_agnix = found_by_nexus(each, work, file), found_by_agnix(work, file)
        row = counts.setdefault((each.program, each.kind), [0] * 7)
        row[0] += 1
        row[1] += each.is_broken
        row[2 if each.is_broken else 4] += by_nexus
        row[3 if each.is_broken else 5] += by_agnix
        if by_nexus != by_agnix or by_nexus != each.is_broken:
            who = (
                "both"
                if by_nexus and by_agnix
                else "nexus"
                if by_nexus
                else "agnix"
                if by_agnix
                else "neither"
            )
            what = "broken" if each.is_broken else "works"
            text = each.text.replace("\n", "⏎").replace("|", "\\|").replace("`", "'")
            line = f"| {each.program} {each.kind} | `{text[:90]}` |"
            lists.setdefault(f"{what}, reported by {who}", []).append(line)
    write = sys.stdout.write
    write(
        f"# Nexus beside {AGNIX}\n\n{(__doc__ or '').partition(chr(10) * 2)[2].partition(chr(10) * 2)[2]}\n"
    )
    write("| set-ups | all | broken | found by nexus | by agnix | false alarms of nexus | of agnix |\n")
    write("|---|---|---|---|---|---|---|\n")
    for (program, kind), row in counts.items():
        write(f"| {program} {kind} | {' | '.join(map(str, row[:6]))} |\n")
    for title, lines in sorted(lists.items()):
        write(
            f"\n## {title.capitalize()}: {len(lines)}\n\n| file | text |\n|---|---|\n"
            + "\n".join(lines)
            + "\n"
        )


if __name__ == "__main__":
    main()
