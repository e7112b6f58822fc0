"""Answer `nexus/explain`: what the views of a folder do with a call, a setting, a line of a file, or a
server.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from nexus_context.assistants.permissions.decision import Decision, ExplainedCall, PermissionRule
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.tracking.in_use import NEXUS, read_views
from nexus_context.assistants.views.permissions import Explanation, explain_calls
from nexus_context.assistants.views.subjects import SERVER, FileLine, NamedServer, read_subject
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.lines import LineIndex
from nexus_daemon import protocol
from nexus_daemon.api import mcp, resolve
from nexus_daemon.api.explain_files import check_spelling, explain_line, explain_server, explain_setting
from nexus_daemon.lsp import convert

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection
    from nexus_daemon.windows.live_folder import LiveFolder

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
"""(assistant, tool of a rule) → what a rule that denies this tool does not stop."""


class Scene(NamedTuple):
    """The inputs of an explanation: the folder as of now, and what is known of the MCP servers of Nexus
    there.

    `encoding` is the LSP encoding of the positions in answers.
    """

    surroundings: Surroundings
    disk: Disk
    snapshot: Snapshot
    encoding: str
    now: datetime
    servers: Sequence[protocol.ServerInfo] = ()

    @property
    def in_use(self) -> tuple[str, ...]:
        """Return the names of the views that are in use in the folder."""
        views = read_views(self.surroundings, self.disk, self.snapshot.effective)
        return tuple(view.name for view in views.in_use)


async def explain(client: "Connection", params: protocol.ExplainParams) -> protocol.ExplainResult:
    """Explain what the views of a folder do with a tool call, a setting, a line of a file, or an MCP server.

    An open document's unsaved text wins over the disk, as if it were saved.
    """
    folder = client.folders.at(params.workspace_folder)
    scene = await scene_of(client, folder, has_servers=params.what.strip().startswith(SERVER))
    names = None if params.assistant is None else (params.assistant,)
    return await client.read(build, params.what, scene, names)


async def scene_of(
    client: "Connection", folder: "LiveFolder", *, has_servers: bool, is_fresh: bool = True
) -> Scene:
    """Collect the inputs of an explanation from a folder as its client has it.

    With `has_servers` the MCP servers of Nexus are included. With `is_fresh` the snapshot includes every
    change; without it the snapshot at hand is used.
    """
    inputs, servers = client.folders.load_inputs, list[protocol.ServerInfo]()
    if has_servers:
        servers = (await mcp.servers(client, protocol.ServersParams(folder.uri))).servers
    snapshot = None if is_fresh else folder.snapshot
    return Scene(
        Surroundings(folder.path, inputs.user_home, inputs.environ),
        Disk(dict(client.folders.overlays)),
        snapshot or await resolve.snapshot_of(client, folder, None),
        encoding=client.capabilities.position_encoding,
        now=client.now(),
        servers=servers,
    )


def build(what: str, scene: Scene, requested_views: Sequence[str] | None) -> protocol.ExplainResult:
    """Return the answers of the requested views, or of the views in use if none were requested.

    RequestError if there is no answer.
    """
    unknown = [name for name in requested_views or () if name not in PROGRAMS and name != NEXUS]
    if unknown:
        views = ", ".join((*PROGRAMS, NEXUS))
        raise RequestError(f"There is no view {unknown[0]}. The views are: {views}.", code="bad-option")
    subject = read_subject(what, scene.surroundings, scene.disk)
    names = requested_views or scene.in_use
    if isinstance(subject, NamedServer):
        return protocol.ExplainResult(explain_server(subject, names, scene))
    if isinstance(subject, FileLine):
        return protocol.ExplainResult(explain_line(subject, names, scene))
    if answers := explain_setting(what.strip(), names, scene, is_exclusive=requested_views is not None):
        return protocol.ExplainResult(answers)
    if subject.inputs.get("command") == what.strip():
        check_spelling(what.strip(), names, scene)
    explanations = explain_folder_calls([subject], scene, names, is_wanted=requested_views is not None)
    answers = [
        answer
        for explanation in explanations
        for answer in build_answers(explanation, scene.disk, scene.encoding)
    ]
    answers += [
        protocol.ExplainAnswer(
            name,
            PROGRAMS[name].instructions.assistant.version,
            f"What {PROGRAMS[name].title} allows is not known.",
        )
        for name in names
        if name != NEXUS and not PROGRAMS[name].has_permissions
    ]
    return protocol.ExplainResult(answers)


def explain_folder_calls(
    calls: list[ExplainedCall], scene: Scene, names: Sequence[str], *, is_wanted: bool
) -> list[Explanation]:
    """Explain what the named assistants do with calls.

    If Nexus knows the rules of none of them, explain all assistants.

    With `is_wanted` the user named the assistants. Then it is a RequestError if Nexus knows the rules of
    none.
    """
    with_permissions = [name for name in names if name != NEXUS and PROGRAMS[name].has_permissions]
    assistants = with_permissions or (names if is_wanted else tuple(PROGRAMS))
    return explain_calls(calls, scene.disk, scene.surroundings, assistants=assistants)


def build_answers(explanation: Explanation, disk: Disk, encoding: str) -> Iterator[protocol.ExplainAnswer]:
    """Build an assistant's answer for each call, with positions in the LSP encoding `encoding`."""
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
    """Say which settings do not count, and what a rule that denies a call does not stop."""
    settings = {file.path for file in explanation.settings.files}
    voided = [
        problem.path
        for problem in explanation.settings.problems
        if problem.code == VOID and problem.path in settings
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
