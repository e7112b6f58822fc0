"""Look for secrets in instruction files of public repositories, where each one reported is a false alarm.

    PYTHONPATH=tests python -m support.instruction_corpus CLONE…

A clone at its commit in `REPOSITORIES` has the files that were looked at last: 6,804 different ones in all.
Three alarms were given, for passwords of databases in sample answers of a service: nobody can see that they
open nothing. Lines that look like more than words are in `tests/context/text/documentation_lines.txt`.
"""

import subprocess
import sys
from collections.abc import Iterator

from nexus_context.text.redact import secrets_in_text

REPOSITORIES = {
    "github/awesome-copilot": "ab7544d03d4c49fdd07f5958e1888ad39c4118e2",
    "PatrickJS/awesome-cursorrules": "b044f956f021b6e8877f16781bcfc466a6a120e9",
    "davila7/claude-code-templates": "c2b584d4b8493e98a885b1b9aabb0736bccfe7cf",
    "sanjeed5/awesome-cursor-rules-mdc": "8fbf26908531c127a6076be0e55fbe17b57fb2d8",
    "wshobson/agents": "367cb6a4a182cf7e9b0a17c9429f7411ddd9cf35",
}
NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "SKILL.md", "copilot-instructions.md")
SUFFIXES = (".mdc", ".cursorrules", ".instructions.md", ".agent.md", ".prompt.md", ".chatmode.md")
PLACES = ("/agents/", "agents/", "/commands/", "/skills/", "rules/")


def is_instruction_file(path: str) -> bool:
    """Whether a path is that of a file that an assistant reads."""
    name = path.rpartition("/")[2]
    is_placed = name.endswith(".md") and any(place in path.lower() for place in PLACES)
    return name in NAMES or name.endswith(SUFFIXES) or is_placed


def texts_of(clone: str) -> Iterator[tuple[str, str, str]]:
    """The path, the hash and the text of each instruction file of a clone's HEAD."""
    listed = _git(clone, "ls-tree", "-r", "-z", "HEAD").decode()
    for entry in filter(None, listed.split("\0")):
        about, path = entry.split("\t", 1)
        if is_instruction_file(path):
            blob = about.split()[2]
            yield path, blob, _git(clone, "cat-file", "blob", blob).decode("utf-8", "replace")


def _git(clone: str, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", clone, *arguments], check=True, capture_output=True).stdout


def main(clones: list[str]) -> int:
    """Print every alarm; 1 if there is one."""
    blobs: set[str] = set()
    alarms = 0
    for clone in clones:
        commit = _git(clone, "rev-parse", "HEAD").decode().strip()
        if commit not in REPOSITORIES.values():
            sys.stdout.write(f"{clone} is at {commit}, which was never looked at\n")
        for path, blob, text in texts_of(clone):
            if blob not in blobs:
                blobs.add(blob)
                for span in secrets_in_text(text):
                    alarms += 1
                    line = text[: span.start].count("\n") + 1
                    sys.stdout.write(f"{clone}/{path}:{line}: {text[slice(*span)]}\n")
    sys.stdout.write(f"{len(blobs):,} files, {alarms} alarms\n")
    return 1 if alarms else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
