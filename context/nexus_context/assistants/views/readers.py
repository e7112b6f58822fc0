"""Shows who reads what: the instruction files around a folder, with what each assistant does with them."""

import os
from collections.abc import Iterable
from typing import Literal

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import LISTED, Profile, Surroundings
from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.assistants.views.profile import read_profile

Use = Literal["sent", "cut", "later", "unread"]


class AssistantUse(msgspec.Struct, frozen=True):
    """What an assistant does with a file. `tokens` is how many of its tokens are in every request; `reason`
    says why the file is not sent, or when.
    """

    use: Use
    tokens: int = 0
    exact: bool = False
    reason: str | None = None


UNREAD = AssistantUse("unread")


class FileReaders(msgspec.Struct, frozen=True):
    """A file, and what each assistant does with it: name of the assistant → use."""

    path: str
    uses: dict[str, AssistantUse]


class WhoReadsWhat(msgspec.Struct, frozen=True):
    """The instruction files around a folder in the order of their places, and the profiles that the uses are
    taken from.
    """

    files: tuple[FileReaders, ...]
    profiles: tuple[Profile, ...]


def who_reads_what(
    surroundings: Surroundings, names: Iterable[str] = PROGRAMS, *, disk: Disk | None = None
) -> WhoReadsWhat:
    """Find the instruction files around a folder and what each assistant does with them. `names` are the
    assistants.
    """
    disk = disk or Disk()
    surroundings = msgspec.structs.replace(surroundings, folder=disk.real(surroundings.folder))
    files = find_instruction_files(disk, surroundings)
    profiles = tuple(read_profile(name, surroundings, disk=disk, around=files) for name in names)
    uses = {profile.assistant.name: file_uses(profile) for profile in profiles}
    order = dict.fromkeys((*files.around, *files.nested))
    for by_path in uses.values():
        order.update(dict.fromkeys(path for path, use in by_path.items() if use.use != "unread"))
    paths = sorted((path for path in order if os.path.isabs(path)), key=lambda path: _key(path, surroundings))
    rows = (
        FileReaders(path, {name: by_path.get(path, UNREAD) for name, by_path in uses.items()})
        for path in paths
    )
    return WhoReadsWhat(tuple(rows), profiles)


def file_uses(profile: Profile) -> dict[str, AssistantUse]:
    """Return what the assistant of a profile does with each file: path → use."""
    uses = {file.path: AssistantUse("unread", reason=file.reason) for file in profile.ignored}
    for file in profile.later:
        uses[file.path] = AssistantUse("later", reason=f"Sent {file.when}.")
    for kind, part in ((block.kind, part) for block in profile.blocks for part in block.parts):
        if part.path is None:
            continue
        earlier_use = uses.get(part.path)
        tokens = part.tokens + (earlier_use.tokens if earlier_use is not None else 0)
        if part.scope in LISTED or kind != "instructions":
            uses[part.path] = AssistantUse(
                "later", tokens, profile.exact, earlier_use.reason if earlier_use else None
            )
        elif part.cut is not None:
            lines = f"lines {part.cut.first_line}–{part.cut.last_line} are never read"
            uses[part.path] = AssistantUse("cut", tokens, profile.exact, f"{part.cut.reason}: {lines}")
        else:
            uses[part.path] = AssistantUse("sent", tokens, profile.exact)
    return uses


def _key(path: str, surroundings: Surroundings) -> tuple[int, str]:
    """The user's files first, then those above and in the folder, then those below."""
    directory = os.path.dirname(path)
    inside = path.startswith(surroundings.folder + os.sep)
    rank = 2 if inside and directory != surroundings.folder else 1
    return (0 if not inside else rank, path)
