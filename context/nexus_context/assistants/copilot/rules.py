"""Computes what GitHub Copilot in VS Code reads of a folder's files, by its documentation.

1. These are sent with every request: `.github/copilot-instructions.md`; AGENTS.md, CLAUDE.md,
   .claude/CLAUDE.md and CLAUDE.local.md at the root of the workspace; and the user's ~/.claude/CLAUDE.md. No
   order is documented. Each has a setting that switches it off.
2. `*.instructions.md` in the directories of `chat.instructionsFilesLocations` are sent with every request if
   `applyTo` is `'**'`. With other globs they are sent with requests about matching files, and without
   `applyTo` only where somebody attaches them. Rules of Claude Code are sent by their `paths`.
3. Instructions in the user's profile of VS Code or of an organization are not files of the folder.
4. Of each skill the name and the description are listed, unless `chat.useAgentSkills` is off.
5. GitHub's agents and Copilot's command line also read GEMINI.md at the root and AGENTS.md below it. So it is
   no problem that VS Code does not read these.

The texts around the files are not documented, so only the files' own are counted.
"""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from nexus_context.assistants.copilot.settings import (
    DEFAULT_LOCATIONS,
    LOCATIONS,
    instruction_locations,
    is_on,
    user_directory,
)
from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_fields import field_list
from nexus_context.assistants.reading.profile_types import (
    Assistant,
    AssistantSettings,
    IgnoredFile,
    InstructionReader,
    LaterFile,
    Rule,
    Scope,
    Sent,
    SentBlock,
    SentPart,
    Surroundings,
)
from nexus_context.assistants.reading.skill_entries import find_skills
from nexus_context.config.globs import Globs, GlobsError
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.copilot import ALWAYS, DEEPEST, DIRECTORY, NO_FIELD, SUFFIX, read_header

PAGE = "https://code.visualstudio.com/docs/agent-customization/custom-instructions"
SOURCE = "https://github.com/microsoft/vscode/tree/main/src/vs/workbench/contrib/chat/common/promptSyntax"
ELSEWHERE_PAGE = (
    "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-custom-instructions"
)
READ_ELSEWHERE = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""What GitHub's agents and Copilot's command line read at the root, whatever VS Code does."""
NESTED = "chat.useNestedAgentsMdFiles"
NESTED_SWITCHES = (NESTED, "chat.useAgentsMdFile")
"""What nested AGENTS.md files need."""
APPLYING = "chat.includeApplyingInstructions"
SKILLS_PAGE = "https://code.visualstudio.com/docs/agent-customization/agent-skills"
SKILLS = "chat.useAgentSkills"
SKILL_DIRECTORIES = (
    *(".github/skills", ".claude/skills", ".agents/skills"),
    *("~/.copilot/skills", "~/.claude/skills", "~/.agents/skills"),
)
CLAUDE_FILES = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "~/.claude/CLAUDE.md")
ALWAYS_BY_SWITCH = {
    "github.copilot.chat.codeGeneration.useInstructionFiles": (ALWAYS,),
    "chat.useAgentsMdFile": ("AGENTS.md",),
    "chat.useClaudeMdFile": CLAUDE_FILES,
}
"""The files that are sent with every request, by the setting that switches them off."""

ASSISTANT = Assistant(
    name="copilot",
    title="GitHub Copilot",
    version="2026-11",
    verified="documentation",
    model="gpt-5",
    names=(
        ALWAYS,
        "AGENTS.md",
        "CLAUDE.md",
        ".claude/CLAUDE.md",
        "CLAUDE.local.md",
        f"{DIRECTORY}/*{SUFFIX}",
    ),
    reads="its own files, AGENTS.md and CLAUDE.md",
    rules=(
        Rule(".github/copilot-instructions.md of the workspace", PAGE),
        Rule("AGENTS.md at the workspace's root (`chat.useAgentsMdFile`)", PAGE),
        Rule("CLAUDE.md there, in .claude and ~/.claude, CLAUDE.local.md (`chat.useClaudeMdFile`)", PAGE),
        Rule(
            "*.instructions.md of .github/instructions and ~/.copilot/instructions by their `applyTo`", PAGE
        ),
        Rule("`applyTo` is one text, with commas", PAGE),
        Rule(".claude/rules and ~/.claude/rules by their `paths`", PAGE),
        Rule("`chat.instructionsFilesLocations` adds directories and switches others off", PAGE),
        Rule(f"nested AGENTS.md only with `{NESTED}` and `chat.useAgentsMdFile`", SOURCE),
        Rule("skills of .github, .claude and .agents, and of ~/.copilot: name and description", SKILLS_PAGE),
        Rule("GEMINI.md at the root and nested AGENTS.md, but not in VS Code", ELSEWHERE_PAGE),
    ),
)


def read_copilot(disk: Disk, settings: AssistantSettings) -> Sent:
    """Compute what Copilot sends of a folder's files: with every request, later, and never."""
    surroundings = settings.where
    instructions = _Instructions()
    for switch, names in ALWAYS_BY_SWITCH.items():
        for name in names:
            path = _path(surroundings, name)
            text = (disk.text(path) or "").removeprefix("\ufeff") if disk.is_file(path) else ""
            if not is_on(settings, switch):
                reason = f"VS Code does not read it: `{switch}` is off{settings.place(switch)}."
                instructions.ignored.append(IgnoredFile(path, reason, is_problem=name not in READ_ELSEWHERE))
            elif text.strip():
                scope: Scope = "user" if name.startswith("~") else "project"
                instructions.parts.append(SentPart(text, scope, path, content=Span(0, len(text))))
    instructions.ignored = [file for file in instructions.ignored if disk.is_file(file.path)]
    is_applied = is_on(settings, APPLYING)
    locations = instruction_locations(settings)
    for location in dict.fromkeys((*locations, *DEFAULT_LOCATIONS)):
        location_path = _path(surroundings, location)
        suffix = ".md" if location.endswith(".claude/rules") else SUFFIX
        for path in (
            [location_path]
            if disk.is_file(location_path)
            else _instruction_files(disk, location_path, 0, suffix)
        ):
            if location not in locations:
                instructions.ignored.append(
                    IgnoredFile(path, f"`{LOCATIONS}`{settings.place(LOCATIONS)} leaves out {location}.")
                )
            elif not is_applied:
                reason = f"`{APPLYING}` is off{settings.place(APPLYING)}."
                instructions.ignored.append(IgnoredFile(path, reason))
            else:
                _add_instructions(instructions, path, disk.text(path) or "", suffix)
    nested = ("AGENTS.md",) if all(is_on(settings, switch) for switch in NESTED_SWITCHES) else ()
    blocks = []
    if instructions.parts:
        blocks.append(SentBlock("instructions", "system", tuple(instructions.parts), complete=False))
    skills = tuple(find_skills(disk, [_path(surroundings, name) for name in SKILL_DIRECTORIES]))
    if skills and is_on(settings, SKILLS):
        entries = tuple(skill.entry for skill in skills)
        blocks.append(SentBlock("skills", "system", entries, complete=False))
        instructions.later.extend(skill.file for skill in skills)
    else:
        reason = f"`{SKILLS}` is off{settings.place(SKILLS)}."
        instructions.ignored.extend(
            IgnoredFile(skill.file.path, reason, is_problem=False) for skill in skills
        )
    return Sent(
        tuple(blocks),
        tuple(instructions.later),
        tuple(instructions.ignored),
        tuple(instructions.problems),
        nested_names=nested,
        explain_unread=lambda path: _explain_unread(settings, path),
    )


def _explain_unread(settings: AssistantSettings, path: str) -> IgnoredFile | None:
    """Explain why VS Code does not send a file that GitHub's agents or the Copilot CLI may read."""
    directory, name = os.path.split(path)
    off = next((switch for switch in NESTED_SWITCHES if not is_on(settings, switch)), None)
    if name == "AGENTS.md" and off is not None:
        reason = f"VS Code does not read it: `{off}` is off{settings.place(off)}."
        return IgnoredFile(path, reason, is_problem=False)
    if name == "GEMINI.md" and directory == settings.where.folder:
        reason = "VS Code does not read GEMINI.md; GitHub's agents and the Copilot command line do."
        return IgnoredFile(path, reason, is_problem=False)
    return None


class _Instructions:
    """What is gathered of the files."""

    def __init__(self) -> None:
        self.parts: list[SentPart] = []
        self.later: list[LaterFile] = []
        self.ignored: list[IgnoredFile] = []
        self.problems: list[Problem] = []


def _add_instructions(instructions: _Instructions, path: str, text: str, suffix: str) -> None:
    text = text.removeprefix("\ufeff")
    if suffix == SUFFIX:
        header = read_header(path, text)
        body, globs, valid = text[header.body.start : header.body.end], header.applies_to, header.valid
        for problem in header.problems:
            message = f"Copilot sends this file only where somebody attaches it: {problem.message}"
            if "must be one text" in problem.message:
                message = "Copilot takes no list of globs: write one text, separated by commas."
            instructions.problems.append(
                replace(problem, code="assistant.no-effect", severity=Severity.WARNING, message=message)
            )
    else:  # a rule of Claude Code
        matter, body = markdown.split_front_matter(text)
        globs, valid = ", ".join(field_list(matter, "paths")) or "**", True
    if globs is None:
        reason = f"It {NO_FIELD}." if valid else "Its front matter cannot be read."
        instructions.ignored.append(IgnoredFile(path, reason))
    elif _is_everything(globs):
        instructions.parts.append(SentPart(body, "rule", path, content=Span(0, len(body))))
    else:
        instructions.later.append(LaterFile(path, "rule", f"with requests about files that match {globs}"))


def _path(surroundings: Surroundings, name: str) -> str:
    """A path of the settings, from the folder or with `~/` from the user's home."""
    if name.startswith("~/"):
        return os.path.join(surroundings.user_home, *name[2:].split("/"))
    return os.path.normpath(os.path.join(surroundings.folder, *name.split("/")))


def _is_everything(globs: str) -> bool:
    try:
        return Globs(globs).everything
    except GlobsError:
        return False


def _instruction_files(disk: Disk, directory: str, depth: int, suffix: str) -> Iterator[str]:
    for name, entry in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if entry in ("file", "link") and name.endswith(suffix) and disk.is_file(path):
            yield path
        elif entry == "directory" and depth < DEEPEST:
            yield from _instruction_files(disk, path, depth + 1, suffix)


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_copilot,
    own_place="/.github/",
    own_files="instructions of GitHub Copilot",
    list_settings=lambda where: (
        os.path.join(user_directory(where), name) for name in ("settings.json", "mcp.json")
    ),
)
