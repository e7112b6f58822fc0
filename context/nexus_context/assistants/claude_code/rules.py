"""Computes what Claude Code sends of a folder's files, by its own requests.

1. Managed instructions come first, then the user's. Then come, for each directory from the outermost down to
   the folder, `CLAUDE.md`, `.claude/CLAUDE.md`, the rules in `.claude/rules`, and `CLAUDE.local.md`.
2. A file is followed by its imports, at most DEEPEST files deep, each file once. Only the user's files may
   import files outside of the folder, or others where the user approved it.
3. If no directory has a file of rule 1 with text, `AGENTS.md` and `.claude/AGENTS.md` are read.
4. Text is sent without front matter, comments and white space around it (`reading.markdown`).
5. Only the names and descriptions of skills and agents are sent. A CLAUDE.md below the folder follows, with
   its imports, the first read below its directory.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.claude_code.agents import claude_agents, read_output_style
from nexus_context.assistants.claude_code.definition_checks import check_definitions
from nexus_context.assistants.claude_code.front_matter import fields_of, matches_nothing, path_patterns
from nexus_context.assistants.claude_code.intentions import DEEPEST, WrittenImport, check_import, check_text
from nexus_context.assistants.claude_code.name_checks import FileNames, check_names
from nexus_context.assistants.claude_code.rule_syntax import parse_rule
from nexus_context.assistants.claude_code.settings import (
    config_directory,
    is_set,
    managed_directory,
    read_state,
)
from nexus_context.assistants.claude_code.skills import NO_BUNDLED_SKILLS, claude_skills
from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.path_globs import PathGlob
from nexus_context.assistants.reading.profile_types import (
    NESTED_WHEN,
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
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.working_tree import (
    directories_below,
    find_working_tree,
    is_within,
    parents,
)
from nexus_context.errors import Problem, Severity, Span

VERSION = "2.1.330"
PROGRAM = f"Claude Code {VERSION}"
MEMORY_PAGE = "https://code.claude.com/docs/en/memory"
LARGEST = 4 << 20  # bytes of one file
MOST_RULE_DIRECTORIES = 500
MOST_IMPORTS = 1_000
"""Of one file, that are followed: each is looked up on the disk."""
LONG = 40_000  # characters of one file, from which Claude Code itself warns
NOTES = os.path.join("memory", "MEMORY.md")
NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
_DISABLED = "CLAUDE_CODE_DISABLE_CLAUDE_MDS"
AGENTS_MODES = ("claude-md-or-agents-md", "claude-md", "claude-md-and-agents-md", "managed-only")
AGENTS_OPTION = ("pluginConfigs", "agents-md@builtin", "options", "instructionFiles")
AGENTS_PAGE = "https://github.com/anthropics/claude-code/tree/main/mods/agents-md"
AGENTS_NAMES = ("AGENTS.md", ".claude/AGENTS.md")
RULES = os.path.join(".claude", "rules")
OWN_SWITCHES = (
    *("agent", "autoMemoryEnabled", "disableBundledSkills"),
    *("skillListingBudgetFraction", "skillListingMaxDescChars"),
)
"""Settings with which the program's own prompt or tools have another size."""
TEXT_SUFFIXES = frozenset(
    {
        ".md", ".txt", ".text", ".json", ".yaml", ".yml", ".toml", ".xml", ".csv", ".html", ".htm",
        ".css", ".scss", ".sass", ".less", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".mts",
        ".cts", ".py", ".pyi", ".pyw", ".rb", ".erb", ".rake", ".go", ".rs", ".java", ".kt", ".kts",
        ".scala", ".c", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".hxx", ".cs", ".swift", ".sh",
        ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".env", ".ini", ".cfg", ".conf",
        ".config", ".properties", ".sql", ".graphql", ".gql", ".proto", ".vue", ".svelte", ".astro",
        ".ejs", ".hbs", ".pug", ".jade", ".php", ".pl", ".pm", ".lua", ".r", ".R", ".dart", ".ex",
        ".exs", ".erl", ".hrl", ".clj", ".cljs", ".cljc", ".edn", ".hs", ".lhs", ".elm", ".ml",
        ".mli", ".f", ".f90", ".f95", ".for", ".cmake", ".make", ".makefile", ".gradle", ".sbt",
        ".rst", ".adoc", ".asciidoc", ".org", ".tex", ".latex", ".lock", ".log", ".diff", ".patch"
    }
)  # fmt: skip
HEADER = (
    "<system-reminder>\nCodebase and user instructions are shown below. Be sure to adhere to these "
    "instructions. "
    "IMPORTANT: These instructions OVERRIDE any default behavior and you MUST follow them exactly as written."
)
FOOTER = "\n</system-reminder>"
PROJECT_LABEL = " (project instructions, checked into the codebase)"
LABELS: dict[str, str] = {
    "user": " (user's private global instructions for all projects)",
    "local": " (user's private project instructions, not checked in)",
    "managed": " (organization-managed policy instructions)",
    "memory": " (user's auto-memory, persists across conversations)",
}

ASSISTANT = Assistant(
    name="claude-code",
    title="Claude Code",
    version=VERSION,
    verified="run",
    model="claude-sonnet-5",
    own_tokens=29_900,
    names=(*NAMES, ".claude/rules/*.md"),
    reads="CLAUDE.md",
    rules=(
        Rule("CLAUDE.md and .claude/CLAUDE.md of the folder and of every directory above it", MEMORY_PAGE),
        Rule("CLAUDE.local.md in the same directories, after the files that are checked in", MEMORY_PAGE),
        Rule(
            "AGENTS.md and .claude/AGENTS.md only where no CLAUDE.md or CLAUDE.local.md has text, or by the "
            "option `instructionFiles` of the built-in plugin agents-md",
            AGENTS_PAGE,
        ),
        Rule("the first 200 lines or 25,000 characters of the notes that it keeps (MEMORY.md)", MEMORY_PAGE),
        Rule(
            "~/.claude/CLAUDE.md and ~/.claude/rules/*.md, or $CLAUDE_CONFIG_DIR instead of ~/.claude",
            PROGRAM,
        ),
        Rule(
            "a nested CLAUDE.md, with its imports, after the first read in or below its directory",
            MEMORY_PAGE,
        ),
        Rule("rules with `paths` follow the first read of a file that matches them", MEMORY_PAGE),
        Rule("the order of rules is the file system's", PROGRAM),
        Rule(f"imports `@path`, at most {DEEPEST - 1} deep, outside of code", MEMORY_PAGE),
        Rule("imports from outside of the folder only after the user's approval", MEMORY_PAGE),
        Rule("comments that are blocks of their own, and front matter, are not sent", PROGRAM),
        Rule("a file of more than 4 MiB is not sent", PROGRAM),
        Rule(
            "skills, commands and agents of .claude, of the user and of plugins that are on, by line", PROGRAM
        ),
        Rule(
            "1 % of the model's window for the list of skills: what does not fit has its name only", PROGRAM
        ),
        Rule("the text of the output style, and the prompt of the agent that the settings name", PROGRAM),
        Rule("`claudeMdExcludes` leaves out files of the user, the project and rules", MEMORY_PAGE),
    ),
)


class _Memory(NamedTuple):
    """An instruction file that is sent, or a rule that is sent later (`globs`)."""

    path: str
    kind: str  # managed, user, project, local: what the label says
    scope: Scope
    text: str
    importer: str | None = None
    globs: tuple[str, ...] = ()


class _Walk:
    """What was read so far, in one pass over the places."""

    def __init__(self, disk: Disk, settings: AssistantSettings) -> None:
        surroundings = settings.where
        self.disk = disk
        self.folder = surroundings.folder
        self.user_home = surroundings.user_home
        self.environ = surroundings.environ
        self.config = config_directory(surroundings)
        self.processed: set[str] = set()
        self.chain: list[str] = []  # the file that is being read, and those that import it
        self.ignored: list[IgnoredFile] = []
        self.problems: list[Problem] = []
        self.settings = settings
        self.excludes = _excludes(disk, settings)
        self.approved = _is_approved(disk, surroundings)

    def is_excluded(self, path: str, kind: str) -> bool:
        """Whether `claudeMdExcludes` leaves out a file."""
        return kind != "managed" and any(globs.matches(path.replace(os.sep, "/")) for globs in self.excludes)

    def exclusion(self, path: str) -> str:
        """Where the glob is that leaves out a file, as ` (PATH:LINE)`; else the setting."""
        for file in self.settings.files:
            values = file.values.get("claudeMdExcludes")
            for index, text in enumerate(values if isinstance(values, list) else ()):
                if isinstance(text, str) and text and PathGlob(text).matches(path.replace(os.sep, "/")):
                    return self.settings.place_in(file, ("claudeMdExcludes", index))
        return self.settings.place("claudeMdExcludes")


def read_claude_code(disk: Disk, settings: AssistantSettings) -> Sent:
    """Compute what Claude Code sends of a folder's files: with every request, later, and never."""
    walk = _Walk(disk, settings)
    memories: list[_Memory] = []
    is_off = is_set(walk.settings.where, _DISABLED)
    if not is_off:
        memories = _with_agents_files(walk, list(_memories(walk)))
        memories.extend(_kept_notes(walk))
    sent_memories = [memory for memory in memories if not memory.globs]
    later = []
    for memory in memories:
        useful = ", ".join(glob for glob in memory.globs if not matches_nothing(glob))
        if useful:
            later.append(LaterFile(memory.path, "rule", f"after a file that matches {useful} is read"))
        elif memory.globs:
            _refuse(walk, memory.path, "Its `paths` match no file, so it is never sent.")
    ignored, problems = walk.ignored, walk.problems
    blocks = [
        *_instructions(sent_memories),
        *read_output_style(disk, settings, ignored=ignored, problems=problems),
        *claude_agents(disk, settings, ignored=ignored, problems=problems),
        *claude_skills(disk, settings, later=later, ignored=ignored, problems=problems),
    ]
    names = FileNames(disk, settings.where)
    problems += [
        *_long_files(sent_memories),
        *check_names(disk, settings, names),
        *check_definitions(disk, settings.where, names),
    ]
    has_own = any(os.path.basename(memory.path) == "CLAUDE.md" for memory in sent_memories)
    problems = [*problems]  # without those of nested files, which are checked in their own directory
    if not is_off:
        later += _nested_files(walk)
    return Sent(
        tuple(blocks),
        tuple(later),
        tuple(walk.ignored),
        tuple(problems),
        nested_names=() if has_own or is_off else ("AGENTS.md",),
        explain_unread=lambda path: _explain_unread(walk, memories, path),
        changes_own=_changes_own(settings),
    )


def _nested_files(walk: _Walk) -> Iterator[LaterFile]:
    """The files of directories below the folder, each followed by its imports."""
    for directory in directories_below(walk.disk, walk.folder)[0][1:]:
        entries = {name for name, _ in walk.disk.entries(directory)}
        for name in NAMES:
            if name.split("/")[0] not in entries:
                continue
            kind = "local" if name == "CLAUDE.local.md" else "project"
            for memory in _file(walk, os.path.join(directory, *name.split("/")), kind, scope="nested"):
                if memory.importer is None:
                    relative_directory = os.path.relpath(directory, walk.folder)
                    when = (
                        NESTED_WHEN
                        if "/" not in name
                        else f"after a file in or below {relative_directory} is read"
                    )
                    yield LaterFile(memory.path, "nested", when)
                else:
                    importer = os.path.relpath(memory.importer, walk.folder)
                    yield LaterFile(memory.path, "import", f"with {importer}, which imports it")


def _changes_own(settings: AssistantSettings) -> bool:
    """Whether settings change Claude Code's own prompt and tools: the tools denied as a whole, too."""
    denied = (text for texts in settings.each("permissions", "deny") for text in texts_of(texts))
    rules = filter(None, (parse_rule(text, "deny") for text in denied))
    return (
        any(settings.value(key) is not None for key in OWN_SWITCHES)
        or is_set(settings.where, NO_BUNDLED_SKILLS)
        or settings.value("permissions", "defaultMode") == "plan"
        or any(rule.content is None and not rule.tool.startswith("mcp__") for rule in rules)
    )


def _instructions(memories: list[_Memory]) -> Iterator[SentBlock]:
    if not memories:
        return
    parts = [SentPart(HEADER, "program")]
    for memory in memories:
        label = f"\n\nContents of {memory.path}{LABELS.get(memory.kind, PROJECT_LABEL)}:\n\n"
        content = Span(len(label), len(label) + len(memory.text))
        parts.append(
            SentPart(
                label + memory.text, memory.scope, memory.path, content=content, importer=memory.importer
            )
        )
    yield SentBlock("instructions", "user", (*parts, SentPart(FOOTER, "program")))


def _memories(walk: _Walk) -> Iterator[_Memory]:
    """All files of rules 1 and 2, in order."""
    managed = managed_directory()
    yield from _file(walk, os.path.join(managed, "CLAUDE.md"), "managed", scope="managed")
    yield from _rules(walk, os.path.join(managed, RULES), "managed")
    yield from _file(walk, os.path.join(walk.config, "CLAUDE.md"), "user", scope="user")
    yield from _rules(walk, os.path.join(walk.config, "rules"), "user")
    for directory, reads_project in _directories(walk):
        scope: Scope = "project" if directory == walk.folder else "parent"
        if reads_project:
            for name in NAMES[:2]:
                yield from _file(walk, os.path.join(directory, name), "project", scope=scope)
            yield from _rules(walk, os.path.join(directory, RULES), "project")
        yield from _file(walk, os.path.join(directory, "CLAUDE.local.md"), "local", scope="local")


def _directories(walk: _Walk) -> Iterator[tuple[str, bool]]:
    """From the outermost directory but the root down to the folder; whether its checked-in files are read.

    A worktree inside the main working tree does not read the files of that, which are its own already.
    """
    repository = find_working_tree(walk.disk, walk.folder)
    for directory in reversed(parents(walk.folder)[:-1]):
        is_main = (
            repository is not None
            and repository.root != repository.main
            and is_within(repository.root, repository.main)
            and is_within(directory, repository.main)
            and not is_within(directory, repository.root)
        )
        if is_main:
            for name in NAMES[:2]:
                path = os.path.join(directory, name)
                if walk.disk.is_file(path):
                    reason = (
                        "The worktree has its own copy, so the copy of the main working tree is not read."
                    )
                    walk.ignored.append(IgnoredFile(path, reason))
        yield directory, not is_main


def _kept_notes(walk: _Walk) -> Iterator[_Memory]:
    """The index of the notes that Claude Code keeps for the repository."""
    is_off = walk.settings.value("autoMemoryEnabled") is False
    if is_off or is_set(walk.settings.where, "CLAUDE_CODE_DISABLE_AUTO_MEMORY"):
        return
    directory = walk.settings.value("autoMemoryDirectory")
    if directory and (directory.startswith(("/", "~/")) or os.path.isabs(directory)):
        path = os.path.join(_import_target(directory, walk.folder, walk.user_home), os.path.basename(NOTES))
    else:
        repository = find_working_tree(walk.disk, walk.folder)
        root = walk.folder if repository is None else repository.store
        slug = re.sub(r"[^A-Za-z0-9]", "-", root)
        path = os.path.join(walk.config, "projects", slug, NOTES)
    text = markdown.shorten_notes(markdown.trim(walk.disk.text(path) or ""))
    if text:
        yield _Memory(path, "memory", "memory", text)


def _with_agents_files(walk: _Walk, memories: list[_Memory]) -> list[_Memory]:
    """Rule 3: AGENTS.md instead of, or by a setting besides, CLAUDE.md."""
    mode = _agents_mode(walk)
    if mode == "managed-only":
        says = f"The setting `instructionFiles`{walk.settings.place(*AGENTS_OPTION)}"
        walk.ignored.extend(
            IgnoredFile(memory.path, f"{says} allows managed instructions only.")
            for memory in memories
            if memory.kind != "managed"
        )
        return [memory for memory in memories if memory.kind == "managed"]
    if mode == "claude-md" or (mode == "claude-md-or-agents-md" and any(_claude_files(walk, memories))):
        return memories
    walk.processed = {os.path.join(walk.config, "CLAUDE.md"), os.path.join(managed_directory(), "CLAUDE.md")}
    additions: dict[str, list[_Memory]] = {}
    paths = {memory.path for memory in memories}
    texts = {memory.text for memory in memories if memory.kind in ("project", "local")}
    for directory, reads_project in _directories(walk):
        scope: Scope = "project" if directory == walk.folder else "parent"
        for name in AGENTS_NAMES if reads_project else ():
            for memory in _file(walk, os.path.join(directory, name), "project", scope=scope):
                if memory.path not in paths and memory.text not in texts:
                    paths.add(memory.path)
                    additions.setdefault(directory, []).append(memory)
    for directory, items in additions.items():
        index = _insertion(memories, directory)
        memories = [*memories[:index], *items, *memories[index:]]
    return memories


def _agents_mode(walk: _Walk) -> str:
    """The option of the built-in plugin, from the settings of the user and of the organization."""
    mode = AGENTS_MODES[0]
    of_others = [file for file in walk.settings.files if file.scope in ("user", "managed")]
    for option in AssistantSettings(walk.settings.where, tuple(of_others)).each(*AGENTS_OPTION):
        mode = option if option in AGENTS_MODES else mode
    return mode


def _claude_files(walk: _Walk, memories: list[_Memory]) -> Iterator[str]:
    """The files for which Claude Code reads no AGENTS.md."""
    for memory in memories:
        is_one = any(memory.path.replace(os.sep, "/").endswith(f"/{name}") for name in NAMES)
        is_of_project = memory.kind in ("project", "local") and memory.importer is None
        if is_one and is_of_project and is_within(walk.folder, _owner(memory.path)):
            yield memory.path


def _explain_unread(walk: _Walk, memories: list[_Memory], path: str) -> IgnoredFile | None:
    """Why an instruction file is not sent: what decided it."""
    name = os.path.basename(path)
    if name not in ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md"):
        return None
    if is_set(walk.settings.where, _DISABLED):
        place_text = walk.settings.place("env", _DISABLED) or ", as a variable"
        return IgnoredFile(path, f"`{_DISABLED}` is set{place_text}.")
    if name != "AGENTS.md":
        return None
    if _agents_mode(walk) == "claude-md":
        return IgnoredFile(
            path, f"The setting `instructionFiles`{walk.settings.place(*AGENTS_OPTION)} says so."
        )
    deciding = next(_claude_files(walk, memories), None)
    if deciding is None:
        return IgnoredFile(path, "Claude Code reads it only where there is no CLAUDE.md.")
    beside = (os.path.join(_owner(path), *file_name.split("/")) for file_name in NAMES)
    importer = next((sibling for sibling in beside if walk.disk.is_file(sibling)), None)
    reason = f"{os.path.relpath(importer or deciding, walk.folder)} is read instead. "
    if importer is None:
        reason += "Put a CLAUDE.md with `@AGENTS.md` beside this file."
    else:
        target = os.path.relpath(path, os.path.dirname(importer)).replace(os.sep, "/")
        reason += f"Import this file there: `@{target}`."
    return IgnoredFile(path, reason)


def _owner(path: str) -> str:
    """The directory that a file is for: the one around its `.claude`."""
    directory, separator, _ = path.rpartition(f"{os.sep}.claude{os.sep}")
    return directory if separator else os.path.dirname(path)


def _insertion(memories: list[_Memory], directory: str) -> int:
    """Where files of a directory go: before those of directories below it, else after all of the project."""
    local = [index for index, memory in enumerate(memories) if memory.kind in ("project", "local")]
    for index in local:
        owner = _owner(memories[index].path)
        if owner != directory and is_within(owner, directory):
            return index
    return local[-1] + 1 if local else len(memories)


def _file(
    walk: _Walk, path: str, kind: str, *, scope: Scope, depth: int = 0, importer: str | None = None
) -> Iterator[_Memory]:
    """A file and its imports, if it is to be read."""
    if path in walk.processed or depth >= DEEPEST or not _may_read(walk, path, kind, importer):
        return
    real = walk.disk.real(path)
    may_import_anything = walk.approved or kind == "user"
    if depth and not may_import_anything and not is_within(real, walk.folder):
        _refuse(walk, path, "It is outside of the folder, and such imports are not approved.")
        return
    if real != path and real in walk.processed:
        _refuse(walk, path, f"It leads to {real}, which is read already.")
        return
    walk.processed.update((path, real))
    data = walk.disk.data(path)
    suffix = os.path.splitext(path)[1].lower()
    if data is None or len(data) > LARGEST or (suffix and suffix not in TEXT_SUFFIXES):
        if data is not None:
            reason = (
                "It is larger than 4 MiB." if len(data) > LARGEST else f"Files of type {suffix} are not read."
            )
            _refuse(walk, path, reason)
        return
    matter, body = markdown.split_front_matter(walk.disk.text(path) or "")
    text = markdown.trim(markdown.strip_comments(body))
    if not text:
        _refuse(walk, path, "It has no text that is sent.")
        return
    globs = path_patterns(fields_of(matter).get("paths")) if scope == "rule" else ()
    yield _Memory(path, kind, scope, text, importer=importer, globs=globs)
    walk.problems += check_text(walk.disk, path, is_rule=scope == "rule")
    walk.chain.append(path)
    for token in markdown.import_tokens(body)[:MOST_IMPORTS]:
        target = _import_target(token.path, real, walk.user_home)
        written = WrittenImport(
            path=path,
            body=body,
            token=token,
            target=target,
            chain=(*walk.chain,),
            may_leave=may_import_anything,
            globs=globs,
        )
        walk.problems += check_import(walk.disk, walk.folder, written)
        yield from _file(walk, target, kind, scope="import", depth=depth + 1, importer=path)
    walk.chain.pop()


def _may_read(walk: _Walk, path: str, kind: str, importer: str | None) -> bool:
    if not walk.is_excluded(path, kind):
        return True
    if importer is not None or walk.disk.is_file(path):
        _refuse(walk, path, f"The setting `claudeMdExcludes`{walk.exclusion(path)} leaves it out.")
    return False


def _refuse(walk: _Walk, path: str, reason: str) -> None:
    if all(file.path != path for file in walk.ignored):
        walk.ignored.append(IgnoredFile(path, reason))


def _import_target(path: str, importer: str, user_home: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = os.path.join(user_home, path[2:])
    return os.path.normpath(os.path.join(os.path.dirname(importer), path))


def _rules(walk: _Walk, directory: str, kind: str) -> Iterator[_Memory]:
    """The rules in a directory and those below it: first all that are always sent, then the others."""
    rules = list(_rules_in(walk, directory, kind, visited=set()))
    yield from (rule for rule in rules if not rule.globs)
    yield from (rule for rule in rules if rule.globs)


def _rules_in(walk: _Walk, directory: str, kind: str, *, visited: set[str]) -> Iterator[_Memory]:
    real = walk.disk.real(directory)
    may_leave = walk.approved or kind == "user"
    is_outside = real != directory and not may_leave and not is_within(real, walk.folder)
    if real in visited or is_outside or len(visited) >= MOST_RULE_DIRECTORIES:
        return
    visited.add(real)
    for name, entry in walk.disk.entries(real):
        path = os.path.join(directory, name)
        target = walk.disk.real(path)
        if entry == "link" and not is_within(target, walk.folder) and not may_leave:
            _refuse(walk, path, "It is a link to outside of the folder, and those are not approved.")
        elif entry == "link" and walk.is_excluded(path, kind):
            _refuse(walk, path, f"The setting `claudeMdExcludes`{walk.exclusion(path)} leaves it out.")
        elif entry == "directory" or (entry == "link" and walk.disk.is_directory(target)):
            yield from _rules_in(walk, target, kind, visited=visited)
        elif not name.endswith(".md"):
            _refuse(walk, path, "Rules are files that end with `.md`.")
        elif walk.disk.is_file(target):
            yield from _file(walk, target, kind, scope="rule")


def _excludes(disk: Disk, settings: AssistantSettings) -> list[PathGlob]:
    """The globs of files that are left out, those with a link or `..` as they lead, too."""
    patterns = [text for value in settings.each("claudeMdExcludes") for text in texts_of(value)]
    for pattern in tuple(patterns):
        directory = os.path.dirname(re.split(r"[*?{\[]", pattern, maxsplit=1)[0])
        if directory.startswith("/") and disk.real(directory) != directory:
            patterns.append(disk.real(directory) + pattern[len(directory) :])
    return [PathGlob(pattern) for pattern in patterns if pattern]


def _is_approved(disk: Disk, surroundings: Surroundings) -> bool:
    """Whether the user approved imports from outside of the folder."""
    projects = read_state(disk, surroundings)[1].get("projects")
    repository = find_working_tree(disk, surroundings.folder)
    keys = [surroundings.folder] if repository is None else [repository.main, surroundings.folder]
    entries = [projects.get(key) for key in keys] if isinstance(projects, dict) else []
    return any(
        isinstance(entry, dict) and entry.get("hasClaudeMdExternalIncludesApproved") is True
        for entry in entries
    )


def _long_files(memories: list[_Memory]) -> Iterator[Problem]:
    for memory in memories:
        if len(memory.text) > LONG:
            message = (
                f"It has {len(memory.text):,} characters, all sent with every request; Claude Code warns "
                f"from {LONG:,}. Move what is for some files only to `.claude/rules` with `paths`."
            )
            yield Problem(memory.path, Span(0, 0), "assistant.long", Severity.WARNING, message=message)


def _list_user_files(surroundings: Surroundings) -> tuple[str, ...]:
    directory = config_directory(surroundings)
    return os.path.join(directory, "CLAUDE.md"), os.path.join(directory, "rules", "")


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_claude_code,
    own_place="/.claude/rules/",
    own_files="rules of Claude Code",
    list_user_files=_list_user_files,
    list_settings=lambda where: (os.path.join(config_directory(where), "settings.json"),),
)
