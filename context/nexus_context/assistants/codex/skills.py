"""Computes what Codex sends of each skill: its name, its description and the path of its file.

1. Codex also lists its own skills, and shortens the paths by a table of directories. Neither is counted here.
2. All lines together may take 2 % of the model's window, at four bytes a token. If they need more, each
   description in turn gets one more character, so that short ones stay whole. If not even the names fit, the
   last skills are left out.
3. Skills of the project come first; each group is sorted by name.
4. In the user's settings, `skills.config` leaves out skills by name or file, and
   `skills.include_instructions` leaves out all. `allow_implicit_invocation` in `agents/openai.yaml` beside a
   skill leaves that one out.
5. A SKILL.md is ignored if it is a link, or if the name of its directory begins with a dot. Of a description
   only the first 1,024 characters count.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.codex.front_matter import skill_texts
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, LaterFile, SentBlock, SentPart
from nexus_context.assistants.reading.yaml_fields import UnreadableError, read_fields
from nexus_context.errors import Problem, Severity, Span

SKILL = "SKILL.md"
DEEPEST = 6
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1_024
POLICY = ("agents", "openai.yaml")
WINDOW = 272_000  # tokens, of all models that Codex 0.169.0 knows but three, and of those it does not know
MOST_TOKENS = WINDOW * 2 // 100
OWN = (("imagegen", 570), ("openai-docs", 624), ("skill-creator", 106), ("skill-installer", 225))
"""The skills of Codex 0.169.0, with the length of their descriptions, which take a share of the tokens."""


class _Skill(NamedTuple):
    """`place` is the path below its root, which in a request has a short name."""

    name: str
    description: str
    path: str
    place: str

    def tokens(self, length: int) -> int:
        """Of the line with so many characters of the description, as Codex counts them."""
        size = len(f"- {self.name}: (file: r0/{self.place})\n".encode())
        if length:
            size += len(self.description[:length].encode()) + 1
        return -(-size // 4)


def codex_skills(
    disk: Disk,
    settings: AssistantSettings,
    home: str,
    directories: list[str],
    *,
    later: list[LaterFile],
    problems: list[Problem],
) -> Iterator[SentBlock]:
    """Yield the list of skills that Codex sends, if there are any. `directories` lead from the project's root
    to the folder.
    """
    if settings.value("skills", "include_instructions") is False:
        return
    agents = os.path.join(".agents", "skills")
    roots = [  # a skill with several links is that of the first of these
        *((os.path.join(directory, ".codex", "skills"), True) for directory in reversed(directories)),
        (os.path.join(home, "skills"), False),
        (os.path.join(settings.where.user_home, agents), False),
        *((os.path.join(directory, agents), True) for directory in directories),
    ]
    visited: set[str] = set()
    refused_paths: list[str] = []
    keyed_skills = [
        (not is_project, skill.name, skill.path, skill)
        for root, is_project in roots
        for skill in _skills(disk, root, "", 0, visited=visited, refused=refused_paths)
    ]
    keyed_skills.sort(key=lambda keyed_skill: keyed_skill[:3])
    skills = []
    for *_, skill in keyed_skills:
        if not _is_off(disk, settings, skill):
            if _is_for_users(disk, skill.path):
                later.append(LaterFile(skill.path, "skill", "when the user calls it (`agents/openai.yaml`)"))
            else:
                skills.append(skill)
    has_own = settings.value("skills", "bundled", "enabled") is not False
    own_skills = [_Skill(name, "x" * size, "", f"{name}/{SKILL}") for name, size in OWN] if has_own else []
    lengths = _lengths([*own_skills, *skills])[len(own_skills) :]
    parts = []
    for skill, length in zip(skills, lengths, strict=True):
        if length is not None:
            line = f"- {skill.name}: {skill.description[:length]}{' ' if length else ''}"
            span = Span(0, len(line.rstrip()))
            parts.append(SentPart(f"{line}(file: {skill.path})\n", "skill", skill.path, content=span))
    problems.extend(_cut_problems(skills, lengths))
    message = (
        "Codex does not list this skill: it needs a front matter with a `description` that is one text, and "
        f"a name of {LONGEST_NAME} characters at most. Quote values, and set each field once."
    )
    problems.extend(
        Problem(
            path,
            Span(0, min(3, len(disk.text(path) or ""))),
            "assistant.void",
            Severity.ERROR,
            message=message,
        )
        for path in refused_paths
    )
    if parts:
        yield SentBlock("skills", "developer", tuple(parts), complete=False)


def _skills(
    disk: Disk, root: str, place: str, depth: int, *, visited: set[str], refused: list[str]
) -> Iterator[_Skill]:
    directory = os.path.join(root, place) if place else root
    real = disk.real(directory)
    if real in visited:
        return
    visited.add(real)
    path = os.path.join(directory, SKILL)
    is_file = dict(disk.entries(directory)).get(SKILL) == "file"
    text = disk.text(path) if is_file else None
    texts = skill_texts(text or "") or {}
    description, name = texts.get("description"), texts.get("name") or os.path.basename(directory)
    if text is not None and (description is None or len(name) > LONGEST_NAME):
        refused.append(path)
        return
    if description is not None:
        if len(description) > LONGEST_DESCRIPTION:
            description = f"{description[: LONGEST_DESCRIPTION - 3]}..."
        yield _Skill(name, description, path, os.path.join(place, SKILL))
        return
    for name, entry in sorted(disk.entries(directory)) if depth < DEEPEST else ():
        if entry in ("directory", "link") and not name.startswith("."):
            yield from _skills(
                disk, root, os.path.join(place, name), depth + 1, visited=visited, refused=refused
            )


def _is_off(disk: Disk, settings: AssistantSettings, skill: _Skill) -> bool:
    """Whether the user's settings leave a skill out; the last entry that names it counts."""
    is_off = False
    for file in settings.files:
        table = file.values.get("skills")
        entries = table.get("config") if isinstance(table, dict) and file.scope in ("managed", "user") else ()
        for entry in entries or ():
            path, name = entry.get("path"), entry.get("name")
            if name == skill.name or (isinstance(path, str) and disk.real(path) == disk.real(skill.path)):
                is_off = entry.get("enabled") is False
    return is_off


def _is_for_users(disk: Disk, path: str) -> bool:
    """Whether `agents/openai.yaml` beside a skill leaves it out of the list; a wrong value costs the file."""
    text = disk.text(os.path.join(os.path.dirname(path), *POLICY))
    try:
        fields = read_fields(text or "").values
    except UnreadableError:
        return False
    policy, interface = fields.get("policy"), fields.get("interface")
    if not isinstance(policy, dict) or not isinstance(interface, dict | None):
        return False
    products = policy.get("products")
    is_for_others = isinstance(products, list) and bool(products) and "codex" not in products
    return policy.get("allow_implicit_invocation") is False or is_for_others


def _lengths(skills: list[_Skill]) -> list[int | None]:
    """How many characters of each description are sent; None for a skill that is left out."""
    if sum(skill.tokens(len(skill.description)) for skill in skills) <= MOST_TOKENS:
        return [len(skill.description) for skill in skills]
    least_tokens = [skill.tokens(0) for skill in skills]
    remaining = MOST_TOKENS - sum(least_tokens)
    if remaining < 0:
        used_tokens, kept_lengths = 0, list[int | None]()
        for tokens in least_tokens:
            kept_lengths.append(0 if used_tokens + tokens <= MOST_TOKENS else None)
            used_tokens += tokens if kept_lengths[-1] == 0 else 0
        return kept_lengths
    lengths, costs, changed = [0] * len(skills), least_tokens[:], True
    while changed:
        changed = False
        for index, skill in enumerate(skills):
            if lengths[index] < len(skill.description):
                cost = skill.tokens(lengths[index] + 1)
                if cost - costs[index] <= remaining:
                    remaining -= cost - costs[index]
                    lengths[index], costs[index], changed = lengths[index] + 1, cost, True
    return [*lengths]


def _cut_problems(skills: list[_Skill], lengths: list[int | None]) -> Iterator[Problem]:
    """One problem for all skills that are shortened or left out."""
    cut_skills = [
        (skill, length)
        for skill, length in zip(skills, lengths, strict=True)
        if length is None or length < len(skill.description)
    ]
    if cut_skills:
        skill, length = cut_skills[-1]
        effect = (
            "leaves out this skill" if length is None else f"cuts this description after {length} characters"
        )
        message = (
            f"Codex {effect}, and shortens {len(cut_skills)} in all: its list of skills has 2 % of the "
            f"model's window, {MOST_TOKENS:,} tokens. Shorten descriptions, or turn skills off in "
            "`skills.config`."
        )
        yield Problem(skill.path, Span(0, 0), "assistant.cut", Severity.WARNING, message=message)
