"""A profile beside what the program sent: instruction text, its place, the entries of skills and agents.

1. The texts must be equal, byte for byte, and at the same place of the request.
2. The tokens of a profile's parts must sum to the count of the text that was sent.
3. The assistant's own entries, those of a request from an empty folder, do not count.
4. No other line of the request may hold a text of the folder's files.
5. With the assistant's own prompt and tools, a profile has the tokens of the whole request, within NEAR.
"""

import difflib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from assistants.case_folders import expand, slug, write_case
from assistants.cases import Case
from assistants.extraction import LISTED, Extract, blocks_of, extract, unexplained_lines
from assistants.programs import CLAUDE_MODEL
from nexus_context.assistants.reading.profile_types import Profile, SentBlock, Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.tokens import counter_for

ROOT = "{root}"
LONGEST = 4_000  # characters of a recorded text; of a longer one the digest is recorded
LONGEST_ENTRY = 400
NEAR = 0.05


class Record(NamedTuple):
    """What a program sent in a case, with `{root}` for the root: JSON values.

    `unexplained` are lines that hold a text of the folder, and that nothing of the others has. `tokens` are
    those of the whole request, by the counter of the profile; None if it sent nothing.
    """

    place: str | None
    instructions: str | None
    entries: list[str]
    unexplained: list[str]
    tokens: int | None = None


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


def profile_of(program: str, case: Case, root: Path, own_tokens: int | None = None) -> Profile:
    """The profile of a case's folder, which is written below a root.

    Its own tokens, where it claims any, are those given: of a run without a terminal, as that of a case is.
    """
    environ = {name: value.replace(ROOT, str(root)) for name, value in case.environ.items()}
    if program == "claude-code":
        environ = {"ANTHROPIC_MODEL": CLAUDE_MODEL, **environ}
    folder = os.path.realpath(f"{root}{case.directory}")
    profile = read_profile(program, Surroundings(folder, str(root / "home"), environ))
    claimed = None if profile.own_tokens is None else own_tokens
    return structs.replace(profile, own_tokens=claimed)


def extract_of(profile: Profile) -> Extract:
    """What a profile says that a request holds."""
    instructions = [block for block in profile.blocks if block.kind == "instructions" and block.complete]
    entries = [
        entry
        for block in profile.blocks
        if block.kind != "instructions"
        for entry in _entries(profile, block)
    ]
    text = "".join(block.text for block in instructions)
    return Extract("+".join(block.place for block in instructions) or None, text or None, tuple(entries))


def _entries(profile: Profile, block: SentBlock) -> list[str]:
    """The entries of a list as `extraction` finds them."""
    if profile.assistant.name == "claude-code" or (block.text.startswith("- ") and block.kind == "agents"):
        return LISTED.findall(block.text.rstrip("\n"))
    return [part.text.rstrip("\n") for part in block.parts]


def differences(
    real: Extract, profile: Profile, unexplained_texts: Sequence[str] = (), tokens: int | None = None
) -> list[str]:
    """What differs, a line each; empty if the profile agrees. `tokens` are those of the whole request."""
    predicted = extract_of(profile)
    lines = [f"nothing explains {line!r}" for line in unexplained_texts]
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
    if tokens is not None and not is_near(tokens, profile):
        lines.append(f"tokens: {tokens} of the whole request, {profile.request_tokens} of the profile")
    return lines


def is_near(tokens: int, profile: Profile, *, within: float = NEAR) -> bool:
    """Whether the tokens of a whole request are those that a profile says, if it says any."""
    claimed = profile.request_tokens
    return claimed is None or abs(tokens - claimed) <= within * tokens


def count_request(body: dict[str, Any], model: str) -> int:
    """The tokens of a whole request, its tools as JSON, by the counter of a model."""
    counter = counter_for(model)
    texts = [block.text for block in blocks_of(body) if block.place != "tools"]
    tools = json.dumps(body.get("tools") or [], ensure_ascii=False, separators=(",", ":"))
    return sum(map(counter.count, (*texts, tools)))


def record(
    found: Extract, root: Path, unexplained_texts: Sequence[str] = (), tokens: int | None = None
) -> Record:
    """An extract that can be committed, with the lines that nothing explains, and the request's tokens."""
    return Record(
        found.place,
        None if found.instructions is None else _portable(found.instructions, root),
        [_portable(entry, root, LONGEST_ENTRY) for entry in found.entries],
        [_portable(line, root) for line in unexplained_texts],
        tokens,
    )


def unexplained(
    body: dict[str, Any], empty: Sequence[dict[str, Any]], case: Case, profile: Profile, *, root: Path
) -> list[str]:
    """The lines of a request that a file of the folder put there, and that no part explains.

    `empty` are the requests of empty folders, with `{root}` for their root.
    """
    body = portable_body(body, root)
    found = unexplained_lines(body, empty, extract(profile.assistant.name, body), [expand(case.files)])
    parts = {line for block in profile.blocks for line in with_root(block.text, root).split("\n")}
    return [line for line in found if line not in parts]


def portable_body(body: dict[str, Any], root: Path) -> dict[str, Any]:
    """A request with `{root}` for the root."""
    portable: dict[str, Any] = json.loads(with_root(json.dumps(body), root))
    return portable


def with_root(text: str, root: Path) -> str:
    """A text with `{root}` for the root."""
    return text.replace(os.path.realpath(root), ROOT).replace(str(root), ROOT).replace(slug(root), "{slug}")


def _portable(text: str, root: Path, longest: int = LONGEST) -> str:
    return shorten(with_root(text, root), longest)


def shorten(text: str, longest: int) -> str:
    """A text, or the digest of a longer one."""
    if len(text) <= longest:
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
