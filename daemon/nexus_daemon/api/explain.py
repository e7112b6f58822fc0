"""`nexus/explain`: what assistants let a model do in a folder, and which rule of which file decides."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from nexus_context.assistants.permissions.decision import Decision, PermissionRule
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import Surroundings
from nexus_context.assistants.views.permissions import Explanation, explain_calls, read_call
from nexus_context.text.lines import LineIndex
from nexus_daemon import protocol
from nexus_daemon.lsp import convert

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

VOID = "assistant.void"
NOT_STOPPED = {
    "claude-code": {
        "Read": "A deny of reading stops the commands that are known to read files. It does not "
        "stop programs and scripts, `grep -r` in a directory above, or a name that a pattern of the "
        "shell stands for.",
        "Bash": "A deny of a command does not stop what runs it by itself: a script, `find "
        "-exec`, `eval`, or other spellings of its options.",
    },
    "codex": {
        "Bash": "A rule for a command does not stop it in a script with a redirection, a "
        "variable, brackets, a substitution, or a bare `*` or `~`, after `env`, `sudo` or `time`, in "
        "`bash -c`, or with other options before its words.",
    },
    "opencode": {
        "bash": "A deny of a command does not stop what runs it by itself, such as a script.",
        "edit": "A deny of edits does not stop commands that write, such as `echo x > FILE`.",
        "external_directory": "A deny is held against the arguments of a few commands. `head "
        "FILE`, `ls ..` and redirections are not stopped.",
        "read": "A deny of reading stops the tool alone: it does not stop `cat`.",
    },
    "gemini": {
        "run_shell_command": "A rule for the beginning of a command does not stop other "
        "spellings of it, such as an absolute path.",
    },
}
"""What a rule that denies does not stop, by the assistant and the tool of the rule."""


async def explain(client: "Connection", params: protocol.ExplainParams) -> protocol.ExplainResult:
    """What assistants do with a call of a tool, by their settings in the folder: allow it, ask, or deny it.

    An open document's unsaved text wins over the disk, as if it were saved.
    """
    folder, inputs = client.folders.at(params.workspace_folder), client.folders.load_inputs
    surroundings = Surroundings(folder.path, inputs.user_home, inputs.environ)
    disk = Disk(dict(client.folders.overlays))
    encoding = client.capabilities.position_encoding
    return await client.read(partial(build, params, surroundings, disk=disk, encoding=encoding))


def build(
    params: protocol.ExplainParams, surroundings: Surroundings, *, disk: Disk, encoding: str
) -> protocol.ExplainResult:
    """The result for a folder. RequestError if the call or the assistant is not known."""
    explanations = explain_calls([read_call(params.what)], disk, surroundings, assistant=params.assistant)
    return protocol.ExplainResult(
        [answer for each in explanations for answer in build_answers(each, disk, encoding)]
    )


def build_answers(explanation: Explanation, disk: Disk, encoding: str) -> Iterator[protocol.ExplainAnswer]:
    """The answer of an assistant on each call, with positions in an encoding of LSP."""
    for _, decision in explanation.decisions:
        chain = [_link(decision.rule, disk, encoding, wins=True)] if decision.rule is not None else []
        chain += [_link(rule, disk, encoding, wins=False) for rule in decision.shadowed]
        yield protocol.ExplainAnswer(
            assistant=explanation.assistant,
            version=explanation.version,
            verdict=decision.outcome,
            offered=decision.is_offered,
            reason=decision.reason,
            chain=chain,
            part=decision.part,
            note=_note(explanation, decision),
        )


def _note(explanation: Explanation, decision: Decision) -> str | None:
    """Which settings do not count, and what a rule that denies does not stop."""
    settings = {file.path for file in explanation.settings.files}
    voided = [
        each.path for each in explanation.settings.problems if each.code == VOID and each.path in settings
    ]
    notes = [f"Nothing of {path} counts: `nexus check` says why." for path in dict.fromkeys(voided)]
    rule = decision.rule
    if rule is not None and decision.outcome == "denied" and decision.is_offered:
        notes += filter(None, [NOT_STOPPED.get(explanation.assistant, {}).get(rule.tool)])
    return " ".join(notes) or None


def _link(rule: PermissionRule, disk: Disk, encoding: str, *, wins: bool) -> protocol.ExplainLink:
    text = disk.text(rule.path) or ""
    return protocol.ExplainLink(
        uri=convert.path_to_uri(rule.path),
        range=convert.range_of(LineIndex(text), rule.span, encoding),
        value=f"{rule.kind} {rule.text}",
        wins=wins,
    )
