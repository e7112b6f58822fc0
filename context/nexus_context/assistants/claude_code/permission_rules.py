"""Reads the permission rules of Claude Code, and says which tools and paths each covers.

1. A rule is `Tool` or `Tool(pattern)`; `Tool(*)` means `Tool`, but allows files in the folder only.
   The project's allow rules do not count in a folder that the user does not trust.
2. `mcp__server` stands for all tools of a server. `*` in a name counts below a server; in deny and ask rules
   it counts everywhere.
3. Paths follow gitignore, without regard to case. `x` matches at every depth, `a/b` below the folder, `/x`
   below the directory of the settings file, `//x` from the root, `~/x` from the home. In deny and ask rules,
   `x/**` means `x`.
4. A deny or ask rule covers a link if it covers the link's own path or its target. To allow a link, both must
   be covered.
5. Files in the folder and its additional directories are read without a question. Edits of `.git`, `.claude`,
   and settings of shells and editors are asked about even if a rule allows them.
"""

import functools
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from nexus_context.assistants.claude_code.rule_syntax import parse_rule
from nexus_context.assistants.permissions.decision import PermissionRule, RuleKind
from nexus_context.assistants.permissions.wildcards import with_stars
from nexus_context.assistants.reading.profile_types import AssistantSettings, AssistantSettingsFile
from nexus_context.disk.files import exists, is_dir
from nexus_context.errors import Span

KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")
_PROTECTED = re.compile(
    r"(?:.*/)?(?:\.(?:git|claude|vscode|idea|husky|cargo|devcontainer|mvn|config/git)(?:[. ]*|::\$DATA)"
    r"(?:/.*)?"
    r"|\.(?:mcp\.json|claude\.json|bashrc|bash_profile|bash_login|bash_aliases|z(?:shrc|profile|shenv|login|logout)"
    r"|profile|gitconfig|gitmodules|npmrc|yarnrc(?:\.yml)?|envrc|ripgreprc|bunfig\.toml|pre-commit-config\.yaml)"
    r"|bunfig\.toml|lefthook\.yml|pyrightconfig\.json|[^/]*~\d.*|[^/]+\.(?:/.*)?)",
    re.DOTALL | re.IGNORECASE,
)
_CLASS_LETTERS = tuple("bBcdDfknrsStuvwWx0123456789")  # with `\` before it, the program takes it for a class
_UNESCAPED_BLANKS = re.compile(r"(?<![\\\s])\s+\Z")


class PermissionSettings(msgspec.Struct, frozen=True):
    """The permission rules in force in a folder, and the directories that their patterns refer to.

    `bases` maps the path of each settings file to the directory that `/x` in its rules starts from. Files in
    `roots`, whose links are resolved, may be read without a question. `real_path` resolves the links of a
    path. `guarded_skills` are the names of skills that need an approval. `found` is a cache: it keeps the
    rules of each tool that was asked for.
    """

    folder: str
    user_home: str
    rules: dict[RuleKind, tuple[PermissionRule, ...]]
    mode: str
    roots: tuple[str, ...]
    bases: dict[str, str]
    real_path: Callable[[str], str]
    guarded_skills: frozenset[str] = frozenset()
    found: dict[tuple[RuleKind, str], tuple[PermissionRule, ...]] = {}

    def matching(self, kind: RuleKind, tool: str) -> tuple[PermissionRule, ...]:
        """Return the rules of a kind that are about a tool, whatever their patterns."""
        tool_rules = self.found.get((kind, tool))
        if tool_rules is None:
            tool_rules = tuple(rule for rule in self.rules[kind] if covers_tool(rule, tool))
            self.found[kind, tool] = tool_rules
        return tool_rules

    def covering(
        self, kind: RuleKind, tool: str, path: str, *, is_linked: bool = True
    ) -> list[PermissionRule]:
        """Return the rules with a pattern that covers a path. With `is_linked`, a rule that covers the target
        of the path's links counts, too.
        """
        paths = {path, self.real_path(path)} if is_linked else {path}
        rules = [rule for rule in self.matching(kind, tool) if rule.pattern is not None]
        return [
            rule
            for at, rule in enumerate(rules)
            if any(
                covers_path(rule, candidate_path, self)
                and not self._is_excepted(rule, candidate_path, rules[at:])
                for candidate_path in paths
            )
        ]

    def _is_excepted(self, rule: PermissionRule, path: str, later_rules: list[PermissionRule]) -> bool:
        """Whether a later rule `!pattern` takes a path out again. It does not if the rule covers a directory
        above the path. A deny or ask rule keeps what `!pattern` covers only by such a directory, too.
        """
        parent = os.path.dirname(path)
        exceptions = (
            replace(other, pattern=other.pattern[1:])
            for other in later_rules
            if other.pattern is not None and other.pattern.startswith("!")
        )
        return any(
            covers_path(exception, path, self)
            and not covers_path(rule, parent, self)
            and (rule.kind == "allow" or not covers_path(exception, parent, self))
            for exception in exceptions
        )

    def allowing(self, tool: str, path: str) -> list[PermissionRule]:
        """Return the rules with a pattern that allow a path. The path and the target of its links must each
        be covered by one.
        """
        covering_rules = [
            self.covering("allow", tool, candidate_path, is_linked=False)
            for candidate_path in dict.fromkeys((path, self.real_path(path)))
        ]
        return [rule for rules in covering_rules for rule in rules] if all(covering_rules) else []

    def is_whole(self, rule: PermissionRule, path: str) -> bool:
        """Whether a rule covers a path by being about all of its tool. `Tool(*)` allows the folder only."""
        is_narrow = rule.kind == "allow" and rule.text.endswith("(*)")
        return rule.pattern is None and (not is_narrow or self.holds(path))

    def holds(self, path: str) -> bool:
        """Whether a path is in a directory in which files may be read without a question."""
        real = self.real_path(path)
        return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in self.roots)


def read_permissions(
    settings: AssistantSettings,
    real_path: Callable[[str], str],
    *,
    trusted: bool = True,
    mode: str | None = None,
) -> PermissionSettings:
    """Read the rules, mode and directories of settings. `mode` is given at the command line, and replaces the
    one in the files.
    """
    where = settings.where
    rules: dict[RuleKind, list[PermissionRule]] = {kind: [] for kind in KINDS}
    modes, directories = ["default"], [where.folder]
    for file in settings.files:
        permissions = file.values.get("permissions")
        permissions = permissions if isinstance(permissions, dict) else {}
        is_trusted = trusted or file.scope != "project"
        for kind in KINDS:
            if kind != "allow" or is_trusted:
                rules[kind] += _rules(file, kind, permissions.get(kind))
        default_mode = permissions.get("defaultMode")
        if isinstance(default_mode, str):
            is_ignored = default_mode == "bypassPermissions" and file.scope in ("project", "local")
            modes.append("default" if is_ignored else default_mode)
        if is_trusted:
            added_directories = permissions.get("additionalDirectories")
            directories += [directory for directory in added_directories or () if isinstance(directory, str)]
    chosen_mode = mode or modes[-1]
    is_disabled = "disable" in settings.each("permissions", "disableBypassPermissionsMode")
    if chosen_mode == "bypassPermissions" and is_disabled:
        chosen_mode = "default"
    roots = (absolute_path(directory, where.folder, where.user_home) for directory in directories)
    roots = (root for root in roots if root == where.folder or _may_be_root(root, real_path))
    return PermissionSettings(
        folder=where.folder,
        user_home=where.user_home,
        rules={kind: tuple(kind_rules) for kind, kind_rules in rules.items()},
        mode=chosen_mode,
        roots=tuple(map(real_path, roots)),
        bases={file.path: _base(file, where.folder) for file in settings.files},
        real_path=real_path,
    )


def covers_tool(rule: PermissionRule, tool: str) -> bool:
    """Whether a rule is about a tool, whatever its pattern."""
    if rule.tool == tool:
        return True
    if not tool.startswith("mcp__"):
        return rule.tool == "*" and rule.kind == "deny"
    server = tool.split("__")[1]
    if rule.tool == f"mcp__{server}":
        return True
    is_below = rule.tool.startswith(f"mcp__{server}__")
    may_be_wide = "*" in rule.tool and (is_below or rule.kind != "allow")
    return may_be_wide and wildcard(rule.tool).fullmatch(tool) is not None


def is_protected(path: str) -> bool:
    """Whether Claude Code asks before it edits a file even if a rule allows that."""
    return _PROTECTED.fullmatch(path) is not None


def covers_path(rule: PermissionRule, path: str, settings: PermissionSettings) -> bool:
    """Whether the pattern of a rule covers an absolute path."""
    pattern = _UNESCAPED_BLANKS.sub("", rule.pattern or "").removeprefix("./")
    if not pattern.strip("/") or pattern.startswith("!" if rule.kind != "allow" else ("!", "#")):
        return False
    base = settings.folder
    if pattern.startswith("//"):
        pattern, base = pattern[1:], "/"
    elif pattern.startswith("~/"):
        pattern, base = pattern[1:], settings.user_home
    elif pattern.startswith("/"):
        base = settings.bases[rule.path]
    if rule.kind != "allow":
        pattern = pattern.removesuffix("/**")
    relative = os.path.relpath(path, base)
    is_inside = relative != os.pardir and not relative.startswith(os.pardir + os.sep)
    return is_inside and _ignore_pattern(pattern).match(relative) is not None


def absolute_path(path: str, folder: str, user_home: str) -> str:
    """Return a path as a shell in the folder resolves it: `~` is the home. Null characters are removed."""
    path = path.replace("\0", "")
    if path == "~" or path.startswith("~/"):
        path = user_home + path[1:]
    return os.path.normpath(os.path.join(folder, path))


@functools.lru_cache(maxsize=4096)
def wildcard(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which `*` stands for any text."""
    return re.compile(with_stars([re.escape(text) for text in pattern.split("*")], ".*"), re.DOTALL)


@functools.lru_cache(maxsize=4096)
def _ignore_pattern(pattern: str) -> re.Pattern[str]:
    """A gitignore pattern without its signs for the base; it covers what is below a directory, too."""
    runs: list[list[str]] = [[]]  # segments between `**`
    for segment in filter(None, pattern.split("/")):
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(_segment(segment))
    if "/" not in pattern.rstrip("/") and runs[0]:
        runs.insert(0, [])  # it is not anchored
    first_run, *deeper = ("/".join(run) for run in runs)
    text = first_run
    for index, run in enumerate(run for run in deeper if run):
        slash = "/" if text and index == 0 else ""
        text += f"{slash}(?>(?:[^/]+/)*?{run}(?![^/]))/?"
    if not text:
        text = ".*"
    end = "(?:(?<=/)|(?=/)).+" if pattern.endswith("/") else "(?:(?<=/)|(?![^/]).*)"
    try:
        return re.compile(f"{text}{end}\\Z", re.DOTALL | re.IGNORECASE)
    except re.error:
        return re.compile(r"(?!)")  # the program leaves such a rule out


def _segment(segment: str) -> str:
    """A segment of a pattern as a regular expression."""
    parts, at = [""], 0
    while at < len(segment):
        sign = segment[at]
        if sign == "\\":
            escaped = segment[at + 1 : at + 2]
            parts[-1] += "(?!)" if escaped in _CLASS_LETTERS else re.escape(escaped)
            at += 2
            continue
        end = segment.find("]", at + 2) if sign == "[" else -1
        if sign == "*":
            parts.append("")
        elif end > 0:
            body = re.sub(r"([\\\[&~|])", r"\\\1", segment[at + 1 : end])
            parts[-1] += f"[\\{body}]" if body[0] in "!^" else f"[{body}]"
            at = end
        else:
            parts[-1] += "[^/]" if sign == "?" else re.escape(sign)
        at += 1
    return with_stars(parts, "[^/]*")


def _rules(file: AssistantSettingsFile, kind: RuleKind, texts: Any) -> Iterator[PermissionRule]:
    for index, text in enumerate(texts if isinstance(texts, list) else ()):
        parsed = parse_rule(text, kind) if isinstance(text, str) else None
        if parsed is None:
            continue
        pointer = ("permissions", kind, index)
        span = Span(0, 0) if file.document is None else file.document.span(pointer)
        yield PermissionRule(
            kind=kind, text=text, tool=parsed.tool, pattern=parsed.content, path=file.path, span=span
        )


def _may_be_root(path: str, real_path: Callable[[str], str]) -> bool:
    """Whether Claude Code adds a path as a directory: it is no file, and itself no link."""
    parent, name = os.path.split(path)
    is_link = name and real_path(path) != os.path.join(real_path(parent), name)
    return not is_link and (is_dir(path) or not exists(path))


def _base(file: AssistantSettingsFile, folder: str) -> str:
    return folder if file.scope in ("project", "local") else os.path.dirname(file.path)
