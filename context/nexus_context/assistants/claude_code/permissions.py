"""Decides whether Claude Code allows a call of a tool, asks the user, or denies it. Seen in runs of 2.1.330.

1. Deny rules count before ask rules, and these before allow rules, whatever file they are in. Nothing narrows
   a deny rule.
2. A deny rule for a whole tool takes the tool out of the request.
3. `Edit(path)` covers every tool that writes files, `Read(path)` every one that reads them. To deny reading
   is to deny writing, too; to allow editing is to allow reading, too. `Write(path)` has no effect; `Write`
   alone allows that tool everywhere.
4. If no rule decides, the mode does: `acceptEdits` allows edits in the folder, `dontAsk` denies what would be
   asked, and `bypassPermissions` allows it.
5. Nothing is known of a tool that was not tried. The decision says so, and that Claude Code asks.
"""

import os

from msgspec.structs import replace

from nexus_context.assistants.claude_code.bash_permissions import decide_script
from nexus_context.assistants.claude_code.permission_rules import (
    KINDS,
    PermissionSettings,
    absolute_path,
    is_protected,
    read_permissions,
)
from nexus_context.assistants.claude_code.rule_syntax import PREFIX_ENDS
from nexus_context.assistants.claude_code.settings import VERSION
from nexus_context.assistants.claude_code.skills import find_guarded_skills
from nexus_context.assistants.claude_code.web_permissions import covers_domain, is_open_site, read_address
from nexus_context.assistants.permissions.decision import (
    Decision,
    ExplainedCall,
    PermissionReader,
    PermissionRule,
)
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings

GONE = ("Grep", "Glob", "MultiEdit", "TodoWrite", "LS")
"""Tools of other versions: this one does not offer them, and rules for them do nothing."""
_WRITERS = {"Write": "file_path", "Edit": "file_path", "NotebookEdit": "notebook_path"}
_FREE = ("Agent", "Skill", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode")


def decide(settings: PermissionSettings, call: ExplainedCall) -> Decision:
    """Decide what Claude Code does with a call."""
    inputs = {name: _plain(str(value)) for name, value in call.inputs.items()}
    call, tool = replace(call, inputs=inputs), call.tool
    removing = next((rule for rule in settings.matching("deny", tool) if rule.pattern is None), None)
    if removing is not None:
        return Decision(
            "denied",
            f"`{removing.text}` takes the tool out of the request.",
            removing,
            tuple(settings.matching("allow", tool)),
            is_offered=False,
        )
    if tool in GONE:
        return Decision("denied", f"Claude Code no longer offers the tool {tool}.", is_offered=False)
    if tool == "Bash":
        decision = decide_script(settings, str(call.inputs.get("command", "")))
    elif tool == "Read":
        decision = _decide_read(settings, _path(settings, call, "file_path"))
    elif tool in _WRITERS:
        decision = _decide_write(settings, tool, _path(settings, call, _WRITERS[tool]))
    else:
        decision = _decide_other(settings, call)
    return _by_mode(settings, decision)


def _plain(text: str) -> str:
    """A text without what no path and no command has."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _path(settings: PermissionSettings, call: ExplainedCall, name: str) -> str:
    return absolute_path(str(call.inputs.get(name, "")).strip(), settings.folder, settings.user_home)


def _decide_read(settings: PermissionSettings, path: str) -> Decision:
    blanket_rules = {
        kind: [rule for rule in settings.matching(kind, "Read") if settings.is_whole(rule, path)]
        for kind in KINDS
    }
    covering = {kind: [*blanket_rules[kind], *settings.covering(kind, "Read", path)] for kind in KINDS}
    if covering["deny"] or covering["ask"]:
        return _ruled(covering["deny"], covering["ask"], covering["allow"])
    if settings.holds(path):
        return Decision("allowed", "Files of the folder are read without a question.")
    reached_rules = settings.allowing("Read", path)
    is_editable = not is_protected(path) and not any(
        settings.covering(kind, "Edit", path) for kind in KINDS[:2]
    )
    if not reached_rules and is_editable:
        reached_rules = settings.allowing("Edit", path)
    return _ruled(
        [],
        [],
        [*blanket_rules["allow"], *reached_rules],
        "The file is outside of the folder, and no rule allows it.",
    )


def _decide_write(settings: PermissionSettings, tool: str, path: str) -> Decision:
    denying = [rule for name in ("Edit", "Read") for rule in settings.covering("deny", name, path)]
    asking, allowing = (
        [
            *(rule for rule in settings.rules[kind] if rule.tool == tool and settings.is_whole(rule, path)),
            *(settings.covering(kind, "Edit", path) if kind == "ask" else settings.allowing("Edit", path)),
        ]
        for kind in KINDS[1:]
    )
    leads_out = tool == "Write" and not settings.holds(path) and path.startswith(settings.folder + os.sep)
    if leads_out and not any(rule.pattern is not None for rule in allowing):
        return Decision("asks", "A link leads out of the folder.", shadowed=tuple(allowing))
    if settings.mode == "plan":
        allowing = []
    if denying or asking:
        return _ruled(denying, asking, allowing)
    if is_protected(path) or is_protected(settings.real_path(path)):
        reason = "Claude Code asks about this file, whatever allows it."
        return Decision("asks", reason, shadowed=tuple(allowing))
    if not allowing and settings.mode == "acceptEdits" and settings.holds(path):
        return Decision("allowed", "The mode acceptEdits allows edits in the folder.")
    return _ruled([], [], allowing, "No rule allows the edit.")


def _decide_other(settings: PermissionSettings, call: ExplainedCall) -> Decision:
    denying, asking, allowing = (
        [rule for rule in settings.matching(kind, call.tool) if _covers_call(rule, call)] for kind in KINDS
    )
    if call.tool in ("Skill", "Agent"):
        asking = [rule for rule in asking if rule.pattern is None]  # a rule about one of them does not ask
    if denying or asking or allowing:
        return _ruled(denying, asking, allowing)
    if call.tool == "Skill" and call.inputs.get("skill", "").removeprefix("/") in settings.guarded_skills:
        if settings.mode == "plan":
            return Decision("allowed", "The mode plan allows the skill.")
        return Decision(
            "asks", "The skill brings hooks or changes which tools are allowed, and no rule allows it."
        )
    if call.tool in _FREE:
        return Decision("allowed", f"The tool {call.tool} needs no approval.")
    if call.tool == "WebFetch":
        return _decide_fetch(call)
    if call.tool == "WebSearch" or call.tool.startswith("mcp__"):
        return Decision("asks", "No rule allows it.")
    return Decision("asks", f"It is not known what Claude Code does with a tool {call.tool}.")


def _decide_fetch(call: ExplainedCall) -> Decision:
    """The decision on an address that no rule covers."""
    address = read_address(str(call.inputs.get("url", "")))
    if address is None:
        return Decision("asks", "The address cannot be read.")
    if is_open_site(address):
        return Decision("allowed", f"Claude Code reads {address.host} without a question.")
    return Decision("asks", "No rule allows it.")


def _covers_call(rule: PermissionRule, call: ExplainedCall) -> bool:
    if rule.pattern is None:
        return True
    if call.tool == "WebFetch":
        address = read_address(str(call.inputs.get("url", "")))
        return address is not None and covers_domain(rule.pattern, address.host)
    if call.tool == "Skill":
        return _covers_skill(rule.pattern, str(call.inputs.get("skill", "")))
    return call.tool == "Agent" and call.inputs.get("subagent_type") == rule.pattern


def _covers_skill(pattern: str, name: str) -> bool:
    """Whether a rule is about a skill. With `:*` or ` *` at its end it is about each that begins so."""
    pattern, name = pattern.removeprefix("/"), name.removeprefix("/")
    for end in PREFIX_ENDS:
        if pattern.endswith(end):
            return name.startswith(pattern.removesuffix(end))
    return name == pattern


def _ruled(
    denying: list[PermissionRule],
    asking: list[PermissionRule],
    allowing: list[PermissionRule],
    otherwise: str = "",
) -> Decision:
    """The decision of the first rule that counts; without any it is asked, for the reason given."""
    if denying:
        return Decision("denied", f"`{denying[0].text}` denies it.", denying[0], (*asking, *allowing))
    if asking:
        return Decision("asks", f"`{asking[0].text}` asks.", asking[0], tuple(allowing))
    if allowing:
        return Decision("allowed", f"`{allowing[0].text}` allows it.", allowing[0])
    return Decision("asks", otherwise)


def _by_mode(settings: PermissionSettings, decision: Decision) -> Decision:
    """Apply the mode to a decision. Every mode but one keeps the question of an `ask` rule."""
    if decision.outcome != "asks":
        return decision
    if settings.mode == "dontAsk":
        reason = f"{decision.reason} The mode dontAsk denies what would be asked."
        return replace(decision, outcome="denied", reason=reason)
    if settings.mode in ("auto", "plan") and decision.rule is None:
        return replace(decision, reason=f"{decision.reason} In the mode {settings.mode}, a model may decide.")
    if settings.mode == "bypassPermissions" and decision.rule is None:
        return replace(
            decision, outcome="allowed", reason="The mode bypassPermissions allows what no rule stops."
        )
    return decision


def _read(settings: AssistantSettings, disk: Disk) -> PermissionSettings:
    guarded_skills = find_guarded_skills(disk.anew(), settings)
    return replace(read_permissions(settings, disk.real), guarded_skills=guarded_skills)


PERMISSIONS = PermissionReader(VERSION, _read, decide)
"""The folder is taken to be trusted, as it is where it is worked in."""
