"""Computes what Codex sends of a folder's files, by its own requests and its source.

1. The user's file is AGENTS.override.md, else AGENTS.md, in `$CODEX_HOME`. White space around its text is
   removed.
2. In each directory from the project's root down to the folder, the first of these that is a file is read:
   AGENTS.override.md, AGENTS.md, the names in `project_doc_fallback_filenames`. The root is the nearest
   directory with one of `project_root_markers` (`.git`); if there is none, only the folder itself is
   searched.
3. Together, the project's files are cut at `project_doc_max_bytes` (32 KiB). An empty file still counts as
   the first.
"""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from nexus_context.assistants.codex.agents import codex_agents
from nexus_context.assistants.codex.permission_checks import check_rules
from nexus_context.assistants.codex.settings import (
    codex_home,
    is_file_name,
    is_trusted,
    project_files,
    project_root,
)
from nexus_context.assistants.codex.skills import codex_skills
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    Assistant,
    AssistantSettings,
    Cut,
    IgnoredFile,
    InstructionReader,
    LaterFile,
    Rule,
    Scope,
    Sent,
    SentBlock,
    SentPart,
)
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.toml import read_toml
from nexus_context.assistants.reading.working_tree import parents
from nexus_context.errors import Problem, Severity, Span

VERSION = "0.169.0"
PROGRAM = f"Codex {VERSION}"
PAGE = "https://developers.openai.com/codex/guides/agents-md"
OVERRIDE, NAME = "AGENTS.override.md", "AGENTS.md"
MOST_BYTES = 32 << 10
USER_SEPARATOR = "\n\n--- project-doc ---\n\n"
SEPARATOR = "\n\n"
FOOTER = "\n</INSTRUCTIONS>"

ASSISTANT = Assistant(
    name="codex",
    title="Codex",
    version=VERSION,
    verified="run",
    model="gpt-5-codex",
    own_tokens=10_500,
    names=(OVERRIDE, NAME),
    reads="AGENTS.md",
    limit=MOST_BYTES,
    rules=(
        Rule("$CODEX_HOME/AGENTS.override.md, else $CODEX_HOME/AGENTS.md (~/.codex)", PAGE),
        Rule("one file of each directory from the root of the project down to the folder", PAGE),
        Rule("AGENTS.override.md before AGENTS.md before `project_doc_fallback_filenames`", PAGE),
        Rule("the root is the nearest directory with one of `project_root_markers`: .git", PROGRAM),
        Rule("files of the project are cut at `project_doc_max_bytes` together: 32 KiB", PAGE),
        Rule("an empty override hides the AGENTS.md beside it", PROGRAM),
        Rule("`@path` and front matter are sent as they stand", PROGRAM),
        Rule("`developer_instructions` of its settings, before these files", PROGRAM),
        Rule("the list of skills has 2 % of the model's window: longer descriptions are cut", PROGRAM),
        Rule("`agents/openai.yaml` of a skill may leave it out of the list", PROGRAM),
        Rule("`agents/**/*.toml` beside its settings: their names and descriptions", PROGRAM),
    ),
)


def read_codex(disk: Disk, settings: AssistantSettings) -> Sent:
    """Compute what Codex sends of a folder's files: with every request, later, and never."""
    surroundings = settings.where
    home = codex_home(surroundings)
    ignored: list[IgnoredFile] = []
    later: list[LaterFile] = []
    problems: list[Problem] = []
    user = _user_part(disk, home, ignored)
    root = project_root(disk, settings)
    chain = parents(surroundings.folder)
    directories = list(reversed(chain[: chain.index(root) + 1]))
    limit = settings.value("project_doc_max_bytes")
    is_valid = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
    byte_limit = int(limit) if is_valid and limit is not None else MOST_BYTES
    paths = list(_project_files(disk, directories, settings, ignored))
    parts = list(
        _project_parts(
            disk, paths, surroundings.folder, byte_limit=byte_limit, ignored=ignored, problems=problems
        )
    )
    problems = _weighed(disk, settings, problems, paths, byte_limit=byte_limit)
    blocks = list(_developer_instructions(settings))
    if user is not None or parts:
        blocks.append(_instructions(user, parts, surroundings.folder))
    blocks.extend(codex_skills(disk, settings, home, directories, later=later, problems=problems))
    blocks.extend(codex_agents(disk, settings, ignored=ignored, problems=problems))
    cut_names = (os.path.basename(problem.path) for problem in problems if problem.code == "assistant.cut")
    is_shortened = "SKILL.md" in cut_names  # and so are its own skills
    has_agents = any(block.kind == "agents" for block in blocks)  # which a tool of theirs is for
    problems += check_rules(disk, settings)
    return Sent(
        tuple(blocks),
        tuple(later),
        tuple(ignored),
        tuple(problems),
        changes_own=is_shortened or has_agents or _changes_own(settings),
    )


def _changes_own(settings: AssistantSettings) -> bool:
    """Whether settings replace Codex's prompt, switch tools, or remove its own skills from the list."""
    if settings.value("features") or settings.value("model_instructions_file") is not None:
        return True
    is_listed = settings.value("skills", "include_instructions") is not False
    return not is_listed or settings.value("skills", "bundled", "enabled") is False


def _developer_instructions(settings: AssistantSettings) -> Iterator[SentBlock]:
    """The `developer_instructions` of the nearest settings file that has them."""
    for file in reversed(settings.files):
        text = file.values.get("developer_instructions")
        if isinstance(text, str):
            if text.strip():
                part = SentPart(text, "settings", file.path, content=Span(0, len(text)))
                yield SentBlock("instructions", "developer", (part,))
            return


def _instructions(user: SentPart | None, parts: list[SentPart], folder: str) -> SentBlock:
    suffix = f" for {folder}" if parts else ""
    header = SentPart(f"# AGENTS.md instructions{suffix}\n\n<INSTRUCTIONS>\n", "program")
    between = [SentPart(USER_SEPARATOR, "program")] if user is not None and parts else []
    user_parts = [user] if user is not None else []
    return SentBlock(
        "instructions", "user", (header, *user_parts, *between, *parts, SentPart(FOOTER, "program"))
    )


def _user_part(disk: Disk, home: str, ignored: list[IgnoredFile]) -> SentPart | None:
    chosen = None
    for name in (OVERRIDE, NAME):
        path = os.path.join(home, name)
        text = (disk.text(path) or "").strip()
        if text and chosen is None:
            chosen = SentPart(text, "user", path, content=Span(0, len(text)))
        elif text and chosen is not None:
            ignored.append(IgnoredFile(path, f"{OVERRIDE} beside it is read instead."))
    return chosen


def _project_files(
    disk: Disk, directories: list[str], settings: AssistantSettings, ignored: list[IgnoredFile]
) -> Iterator[str]:
    """The file of each directory that is read."""
    fallbacks = list(filter(is_file_name, texts_of(settings.value("project_doc_fallback_filenames"))))
    for directory in directories:
        paths = [os.path.join(directory, name) for name in dict.fromkeys((OVERRIDE, NAME, *fallbacks))]
        files = [path for path in paths if disk.is_file(path)]
        yield from files[:1]
        reason = f"{os.path.basename(files[0])} beside it is read instead." if files else ""
        ignored.extend(IgnoredFile(path, reason) for path in files[1:])


def _project_parts(
    disk: Disk,
    paths: list[str],
    folder: str,
    *,
    byte_limit: int,
    ignored: list[IgnoredFile],
    problems: list[Problem],
) -> Iterator[SentPart]:
    """The parts of the project's files, up to the limit; the first has no separator."""
    remaining, separator = byte_limit, ""
    for path in paths:
        data = disk.data(path)
        if data is None:
            continue
        if remaining == 0:
            reason = f"The files before it fill the limit of {byte_limit:,} bytes (`project_doc_max_bytes`)."
            ignored.append(IgnoredFile(path, reason))
            problems.append(
                _cut_problem(disk, path, 0, f"Codex never reads this file: {reason[0].lower()}{reason[1:]}")
            )
            continue
        kept_data = data[:remaining]
        text = kept_data.decode("utf-8", "replace")
        cut = _cut(data, len(kept_data), byte_limit) if len(kept_data) < len(data) else None
        if not text.strip():
            ignored.append(IgnoredFile(path, "It is empty, and hides other names in its directory."))
            continue
        if cut is not None:
            lines = f"lines {cut.first_line}–{cut.last_line} are never read"
            problems.append(
                _cut_problem(disk, path, len(text), f"Cut at {byte_limit:,} bytes: {lines}. {_ADVICE}")
            )
        scope: Scope = "project" if os.path.dirname(path) == folder else "parent"
        content = Span(len(separator), len(separator) + len(text))
        yield SentPart(separator + text, scope, path, content=content, cut=cut)
        remaining -= len(kept_data)
        separator = SEPARATOR


def _weighed(
    disk: Disk, settings: AssistantSettings, problems: list[Problem], paths: list[str], *, byte_limit: int
) -> list[Problem]:
    """Weigh the problems of cuts: what a project's own limit prevents once it is trusted is no error."""
    where, base_files = settings.where, settings.files[:2]
    if not problems or is_trusted(disk, where, base_files):
        return problems
    limits = [
        read_toml(disk, path).value.get("project_doc_max_bytes")
        for _, path in project_files(disk, where, base_files)
    ]
    limit = next((value for value in reversed(limits) if type(value) is int), byte_limit)
    staying: list[Problem] = []
    list(_project_parts(disk, paths, where.folder, byte_limit=limit, ignored=[], problems=staying))
    places = {problem.path for problem in staying}
    note = "In a folder that the user trusts, `project_doc_max_bytes` of the project prevents that."
    return [
        problem
        if problem.path in places
        else replace(problem, severity=Severity.INFORMATION, message=f"{problem.message} {note}")
        for problem in problems
    ]


_ADVICE = "Shorten it, or raise `project_doc_max_bytes`."


def _cut(data: bytes, kept_bytes: int, byte_limit: int) -> Cut:
    last_line = data.count(b"\n") + (not data.endswith(b"\n"))
    return Cut(
        data.count(b"\n", 0, kept_bytes) + 1,
        last_line,
        len(data) - kept_bytes,
        f"cut at {byte_limit:,} bytes",
    )


def _cut_problem(disk: Disk, path: str, start: int, message: str) -> Problem:
    end = len(disk.text(path) or "")
    return Problem(path, Span(min(start, end), end), "assistant.cut", Severity.ERROR, message=message)


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_codex,
    own_place="/.codex/",
    own_files="files of Codex",
    list_user_files=lambda where: (os.path.join(codex_home(where), name) for name in (OVERRIDE, NAME)),
    list_settings=lambda where: (os.path.join(codex_home(where), "config.toml"),),
)
