"""A profile beside what the program sent: instruction text, its place, the entries of skills and agents.

1. The texts must be equal, byte for byte, and at the same place of the request.
2. The tokens of a profile's parts must sum to the count of the text that was sent.
3. The assistant's own entries, those of a request from an empty folder, do not count.
"""

import difflib
import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from assistants.case_folders import slug, write_case
from assistants.cases import Case
from assistants.extraction import Extract
from nexus_context.assistants.reading.model import Profile, Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.tokens import counter_for

ROOT = "{root}"
LONGEST = 4_000  # characters of a recorded text; of a longer one the digest is recorded


class Record(NamedTuple):
    """What a program sent in a case, with `{root}` for the root: JSON values."""

    place: str | None
    instructions: str | None
    entries: list[str]


def write_folder(program: str, case: Case, root: Path) -> None:
    """Write a case's files for a program below a root.

    Gemini CLI is set to the names of the others, so that the same strings are a case for it, too.
    """
    for name in ("home", "work"):
        (root / name).mkdir(exist_ok=True)
    write_case(case.files, root, case.directory)
    settings = root / "home" / ".gemini" / "settings.json"
    if program == "gemini" and program in case.programs and len(case.programs) > 1 and not settings.exists():
        settings.parent.mkdir(exist_ok=True)
        settings.write_text('{"context": {"fileName": ["AGENTS.md", "CLAUDE.md"]}}')


def profile_of(program: str, case: Case, root: Path) -> Profile:
    """The profile of a case's folder, which is written below a root."""
    environ = {name: value.replace(ROOT, str(root)) for name, value in case.environ.items()}
    folder = os.path.realpath(f"{root}{case.directory}")
    return read_profile(program, Surroundings(folder, str(root / "home"), environ))


def extract_of(profile: Profile) -> Extract:
    """What a profile says that a request holds."""
    instructions = [block for block in profile.blocks if block.kind == "instructions" and block.complete]
    entries = [
        _entry(profile, part.text)
        for block in profile.blocks
        if block.kind != "instructions"
        for part in block.parts
    ]
    text = "".join(block.text for block in instructions)
    return Extract("+".join(block.place for block in instructions) or None, text or None, tuple(entries))


def _entry(profile: Profile, text: str) -> str:
    """An entry of a list as `extraction` finds it: of Claude Code's the first line."""
    return text.partition("\n")[0] if profile.assistant.name == "claude-code" else text.rstrip("\n")


def differences(real: Extract, profile: Profile) -> list[str]:
    """What differs, a line each; empty if the profile agrees."""
    predicted = extract_of(profile)
    lines = []
    if real.place != predicted.place:
        lines.append(f"place: the program has {real.place}, the profile {predicted.place}")
    if real.instructions != predicted.instructions:
        lines.extend(_text_difference(real.instructions or "", predicted.instructions or ""))
    if real.entries != predicted.entries:
        lines.extend(_text_difference("\n".join(real.entries), "\n".join(predicted.entries)))
    blocks = [block for block in profile.blocks if block.kind == "instructions" and block.complete]
    counted = sum(part.tokens for block in blocks for part in block.parts)
    counter = counter_for(profile.assistant.model)
    expected = sum(counter.count(block.text) for block in blocks)
    if not lines and counted != expected:
        lines.append(f"tokens: {expected} of the text that was sent, {counted} of the parts")
    return lines


def record(extract: Extract, root: Path) -> Record:
    """An extract that can be committed."""
    return Record(
        extract.place,
        None if extract.instructions is None else _portable(extract.instructions, root),
        [_portable(entry, root) for entry in extract.entries],
    )


def _portable(text: str, root: Path) -> str:
    text = text.replace(os.path.realpath(root), ROOT).replace(str(root), ROOT).replace(slug(root), "{slug}")
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{len(text)} characters, sha256 {digest}"


def unordered(value: Record) -> dict[str, Any]:
    """A record whose files are in the order of the file system, without that order."""
    pieces = (value.instructions or "").removesuffix("\n</system-reminder>").split("\n\nContents of ")
    return {"place": value.place, "pieces": sorted(pieces), "entries": sorted(value.entries)}


def _text_difference(real: str, predicted: str) -> list[str]:
    lines = difflib.unified_diff(
        real.splitlines(keepends=True), predicted.splitlines(keepends=True), "program", "profile", n=1
    )
    return [repr(line) for line in lines][:40]
