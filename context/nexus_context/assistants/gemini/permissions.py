"""Decides what Gemini CLI does with a call of a tool in a session with a user: by its bundle (0.61.0), and
runs.

1. The first rule that matches decides (`policies`); if none does, Gemini CLI asks. The folder is taken to be
   trusted.
2. A rule without arguments allows a script as a whole, or asks about it. Then each command in it must be
   allowed by a rule of its own, also in substitutions and after `bash -c`. One command that is denied denies
   the whole script.
3. A script with a redirection is asked about, unless its rule has `allowRedirection` or edits are accepted.
4. A rule that asks lets a command pass that only reads (`ls`, `git log`), if it is the whole script and all
   its arguments are in the folder. A rule that allows still asks before `rm -f`, `find -delete` and links.
5. Files outside of the folder are refused, and so are `.env`, `.git` and `node_modules` in it. Edits of build
   files (`package.json`, `Makefile`) are asked about.
6. A tool that is denied with any arguments is not in the request.
"""

import os
import re
import shlex
from typing import Any

import msgspec

from nexus_context.assistants.gemini.ignored_files import find_ignoring, ignore_files
from nexus_context.assistants.gemini.policies import (
    EXCLUDED,
    KINDS,
    MODES,
    SHELL,
    PolicyRule,
    read_rules,
    tables,
    write_arguments,
)
from nexus_context.assistants.gemini.safe_commands import is_dangerous, only_reads
from nexus_context.assistants.permissions.decision import (
    Decision,
    ExplainedCall,
    Outcome,
    PermissionReader,
    PermissionRule,
)
from nexus_context.assistants.permissions.shell import nodes_below, parse_bash, text_of
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.assistants.reading.settings import texts_of

VERSION = "0.61.0"
MOST_PARTS = 200
_COMMANDS = ("command", "declaration_command", "unset_command", "test_command")
_REDIRECTIONS = ("redirected_statement", "file_redirect", "heredoc_redirect", "herestring_redirect")
_WRAPPER = re.compile(r"\s*(?:\S+/)?(?:sh|bash|zsh)\s+-c\s+", re.IGNORECASE)
_READING = "read_file"
_EDITING = ("replace", "write_file")
_BLOCKED = {".git", ".env", "node_modules"}
_OUTCOMES: dict[str, Outcome] = {"allow": "allowed", "ask_user": "asks", "deny": "denied"}


class GeminiPermissions(msgspec.Struct, frozen=True):
    """The rules in a folder, and what else decides.

    Files in `roots`, whose links are resolved, may be read and written. `servers` are the servers of the
    settings that are started. `unread` is a policy file with a pattern that only Gemini CLI can read.
    `ignore_files` are the names of the files that hide others from its tool for reading. `found` is a cache:
    it keeps the rules of each tool that was asked for.
    """

    rules: tuple[PolicyRule, ...]
    mode: str
    folder: str
    roots: tuple[str, ...]
    user_home: str
    servers: dict[str, Any]
    unread: str | None
    ignore_files: tuple[str, ...]
    disk: Disk
    found: dict[tuple[str, str | None], tuple[PolicyRule, ...]] = {}

    def deciding_rule(self, tool: str, server: str | None, arguments: str) -> PolicyRule | None:
        """Return the rule that decides on a call, None if no rule covers it. `arguments` is what
        `write_arguments` gives.
        """
        return next(self.matching(tool, server, arguments), None)

    def matching(self, tool: str, server: str | None, arguments: str) -> Any:
        """Yield the rules that cover a call, the one that decides first. `arguments` is what
        `write_arguments` gives.
        """
        tool_rules = self.found.get((tool, server))
        if tool_rules is None:
            tool_rules = tuple(rule for rule in self.rules if rule.covers_tool(tool, server, self.mode))
            self.found[tool, server] = tool_rules
        return (rule for rule in tool_rules if rule.covers_arguments(arguments))


class _Verdict(msgspec.Struct, frozen=True):
    """What a rule makes of a call or of a part of it."""

    decision: str
    rule: PolicyRule | None
    reason: str = ""
    part: str | None = None


def read_permissions(settings: AssistantSettings, disk: Disk) -> GeminiPermissions:
    """Read what the settings and policy files say about calls."""
    rules, unread = read_rules(settings, disk)
    servers: dict[str, Any] = {}
    for values in settings.each("mcpServers"):
        servers |= {name: server for name, server in values.items() if isinstance(server, dict)}
    allowed, excluded = (texts_of(settings.value("mcp", key)) for key in ("allowed", "excluded"))
    return GeminiPermissions(
        rules=tuple(rules),
        mode=MODES.get(str(settings.value("general", "defaultApprovalMode")), "default"),
        folder=disk.real(settings.where.folder),
        roots=tuple(
            disk.real(os.path.join(settings.where.folder, directory))
            for directory in (".", *texts_of(settings.value("context", "includeDirectories")))
        ),
        user_home=settings.where.user_home,
        servers={
            name: server
            for name, server in servers.items()
            if name not in excluded and (not allowed or name in allowed)
        },
        unread=unread,
        ignore_files=ignore_files(settings),
        disk=disk,
    )


def decide(settings: GeminiPermissions, call: ExplainedCall) -> Decision:
    """Decide what Gemini CLI does with a call."""
    if settings.unread is not None:
        name = os.path.basename(settings.unread)
        return Decision(
            "asks", f"It is not known what Gemini CLI does: a pattern of {name} is not read here."
        )
    tool, server, arguments = tables()["tools"].get(call.tool, ""), None, dict[str, Any]()
    if call.tool.startswith("mcp__"):
        server, _, name = call.tool.removeprefix("mcp__").partition("__")
        tool = f"mcp_{server}_{name}"
        if (reason := _left_out(settings, server, name)) is not None:
            return Decision("denied", reason, is_offered=False)
    elif not tool:
        return Decision("denied", f"Gemini CLI has no tool for {call.tool}.", is_offered=False)
    else:
        input_name, argument_name = tables()["arguments"][call.tool]
        arguments = {argument_name: str(call.inputs.get(input_name, "")).replace("\0", "")}
    removing = _removing(settings, tool, server)
    if removing is not None:
        reason = f"{_name(removing)} takes the tool out of the request."
        return Decision("denied", reason, removing.rule, is_offered=False)
    if tool == SHELL:
        verdict = _check_script(settings, arguments["command"])
        text = write_arguments(arguments)
    else:
        text = write_arguments(arguments)
        verdict = _verdict(settings.deciding_rule(tool, server, text))
        if "file_path" in arguments:
            verdict = _check_path(settings, tool, arguments["file_path"], verdict)
    rules = [rule for rule in settings.matching(tool, server, text) if rule is not verdict.rule]
    winner = None if verdict.rule is None else verdict.rule.rule
    shadowed = [
        rule.rule
        for rule in rules
        if rule.rule is not None
        and rule.decision != verdict.decision
        and (winner is None or rule.rule.span != winner.span)
    ]
    return _decision(verdict, tuple(shadowed))


def _decision(verdict: _Verdict, shadowed: tuple[PermissionRule, ...]) -> Decision:
    rule = None if verdict.rule is None else verdict.rule.rule
    if rule is not None and KINDS[verdict.decision] != rule.kind:
        shadowed, rule = (rule, *shadowed), None
    return Decision(_OUTCOMES[verdict.decision], verdict.reason, rule, shadowed, part=verdict.part)


def _verdict(rule: PolicyRule | None, *, decision: str | None = None) -> _Verdict:
    effective_decision = decision or ("ask_user" if rule is None else rule.decision)
    verb = {"allow": "allows", "deny": "denies", "ask_user": "asks about"}[effective_decision]
    return _Verdict(effective_decision, rule, f"{_name(rule)} {verb} it.")


def _name(rule: PolicyRule | None) -> str:
    if rule is None:
        return "Gemini CLI's default"
    return f"`{rule.rule.text}`" if rule.rule is not None else "A rule of Gemini CLI"


def _left_out(settings: GeminiPermissions, server: str, tool: str) -> str | None:
    """Why the tool of a server is not in the request."""
    entry = settings.servers.get(server)
    if entry is None:
        return f"No settings of Gemini CLI start a server `{server}`."
    included = entry.get("includeTools")
    if (isinstance(included, list) and tool not in included) or tool in (entry.get("excludeTools") or ()):
        return f"The settings of `{server}` leave `{tool}` out."
    return None


def _removing(settings: GeminiPermissions, tool: str, server: str | None) -> PolicyRule | None:
    """The rule that takes a tool out of the request."""
    own_name = tool.removeprefix(f"mcp_{server}_")
    for rule in settings.rules:
        if rule.priority == EXCLUDED and rule.tool == own_name:
            return rule
        if rule.covers_tool(tool, server, settings.mode):
            if not rule.has_arguments:
                return rule if rule.decision == "deny" else None
            if rule.decision != "deny":
                return None
    return None


def _check_path(settings: GeminiPermissions, tool: str, path: str, verdict: _Verdict) -> _Verdict:
    if settings.mode == "plan" and tool in _EDITING:  # a name stands for a file in its own directory of plans
        refusal = _Verdict("deny", None, "In plan mode Gemini CLI writes its plans alone.")
        return refusal if os.path.isabs(path) else verdict
    path = settings.disk.real(os.path.join(settings.folder, path))
    root = next(
        (
            directory
            for directory in settings.roots
            if path == directory or path.startswith(directory.rstrip("/") + "/")
        ),
        None,
    )
    if root is None:
        return _Verdict("deny", None, "Gemini CLI refuses files outside of the folder.")
    if blocked := _BLOCKED & {step.lower() for step in path[len(root) :].split("/")}:
        return _Verdict("deny", None, f"Gemini CLI refuses `{min(blocked)}`, whatever allows it.")
    name = os.path.basename(path)
    is_build_file = (
        name in tables()["buildFiles"]
        or name.startswith(("Dockerfile.", "Containerfile."))
        or os.path.splitext(name)[1].lower() in tables()["buildEndings"]
    )
    if tool in _EDITING and verdict.decision == "allow" and is_build_file:
        return _Verdict("ask_user", verdict.rule, "Gemini CLI asks before it edits a file of the build.")
    ignoring = None
    if tool == _READING and verdict.decision != "deny":
        ignoring = find_ignoring(settings.disk, settings.folder, path, settings.ignore_files)
    if ignoring is None:
        return verdict
    name = os.path.relpath(ignoring, settings.folder)
    return _Verdict("deny", None, f"Gemini CLI reads no file that {name} ignores. Commands may.")


def _check_script(settings: GeminiPermissions, script: str, *, is_part: bool = False) -> _Verdict:
    """Judge a script by the rules: as a whole, and each command in it."""
    rule = settings.deciding_rule(SHELL, None, write_arguments({"command": script}))
    verdict = _verdict(rule)
    if not is_part and not (rule is not None and rule.has_arguments):
        verdict = _judge(settings, script, verdict)
    root = parse_bash(script)
    if root is None:
        return _Verdict(
            "ask_user", None, "The command is too long: it is not known what Gemini CLI does with it."
        )
    nodes = list(nodes_below(root))
    parts = [text_of(node).strip() for node in nodes if node.type in _COMMANDS]
    is_known = any(node.type in (*_COMMANDS, *_REDIRECTIONS[1:], "subshell") for node in nodes)
    if verdict.decision == "deny":
        return verdict
    if root.has_error or not is_known:
        return _Verdict("ask_user", None, "Gemini CLI asks about what it cannot read.")
    if len(parts) > MOST_PARTS:
        return _Verdict("ask_user", None, "It has too many commands: it is not known what Gemini CLI does.")
    redirects = any(node.type in _REDIRECTIONS for node in nodes)
    if (
        redirects
        and verdict.decision == "allow"
        and settings.mode != "autoEdit"
        and not (rule and rule.redirects)
    ):
        verdict = _Verdict("ask_user", rule, "Gemini CLI asks about redirections.")
    for part in parts:
        stripped = _without_shell(part)
        for inner in dict.fromkeys((stripped if stripped != part else "", part if part != script else "")):
            if inner:
                inner_verdict = _check_script(settings, inner, is_part=True)
                if inner_verdict.decision == "deny":
                    return msgspec.structs.replace(inner_verdict, part=inner_verdict.part or inner)
                if inner_verdict.decision == "ask_user" and verdict.decision == "allow":
                    verdict = msgspec.structs.replace(inner_verdict, part=inner_verdict.part or inner)
    return verdict


def _judge(settings: GeminiPermissions, script: str, verdict: _Verdict) -> _Verdict:
    """The verdict of a rule without arguments after a look at the first words of a script."""
    if verdict.decision == "deny":
        return verdict
    words = _words(script)
    if is_dangerous(words):
        return _Verdict("ask_user", verdict.rule, "Gemini CLI asks before this command, whatever allows it.")
    if verdict.decision == "ask_user" and only_reads(
        words, settings.folder, settings.user_home, settings.disk
    ):
        return _Verdict("allow", verdict.rule, "Gemini CLI lets commands pass that only read in the folder.")
    return verdict


def _words(script: str) -> list[str]:
    """The words of a script; a variable is an empty text."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    return [re.sub(r"\$(?:\w+|\{[^}]*\})", "", word) for word in words]


def _without_shell(command: str) -> str:
    """What a shell is told with `-c`."""
    match = _WRAPPER.match(command)
    if match is None:
        return command
    script = command[match.end() :].strip()
    if len(script) >= 2 and script[0] == script[-1] and script[0] in "'\"":
        return re.sub(r'\\([\\"$`])', r"\1", script[1:-1]) if script[0] == '"' else script[1:-1]
    return script


PERMISSIONS = PermissionReader(VERSION, read_permissions, decide)
