"""Say what the assistants in use here do with a call, a setting, a line of a file, or an MCP server.

  'Bash(npm test)'        a call, as in a rule of Claude Code; also 'Read(.env)', 'WebFetch(https://…)',
                          mcp__server__tool. It is allowed, asked about or denied, and by which rule.
                          Known for Claude Code, Codex, opencode and Gemini CLI.
  permissions.allow       a setting: the value in force, and the files that set it.
  AGENTS.md:14            a line of a file, or AGENTS.md alone: who reads it, where it lands, what it costs.
  mcp:github              an MCP server: who starts it, from which file, and what its tools cost.

Anything else is a command of Bash. With --file, each command of a script is explained.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.tracking.in_use import NEXUS, view_title
from nexus_context.assistants.views.permissions import Explanation, calls_of_script
from nexus_context.assistants.views.subjects import SERVER
from nexus_context.disk import files
from nexus_context.errors import RequestError
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.api.explain import Scene, build, build_answers, explain_folder_calls
from nexus_daemon.cli import output
from nexus_daemon.cli.assistant_option import ALL
from nexus_daemon.cli.folder import absolute, folder_of, read, short_path
from nexus_daemon.cli.surroundings import surroundings_of
from nexus_daemon.lsp.convert import uri_to_path

EPILOG = "exit codes: 0 explained; 1 it cannot be explained; 2 wrong usage"
VIEWS = (*PROGRAMS, NEXUS)


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "what",
        nargs="?",
        metavar="WHAT",
        help="'Bash(npm test)', 'git push', permissions.allow, AGENTS.md:14, mcp:github",
    )
    command.add_argument("--file", metavar="SCRIPT", help="explain each command of this script instead")
    command.add_argument("--folder", default=".", help="the folder to work in (default: .)")
    command.add_argument(
        "--for",
        dest="assistant",
        choices=(*VIEWS, ALL),
        help="explain for this assistant alone (default: those in use in the folder)",
    )
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="json: the result of nexus/explain (default: text)",
    )


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.folder))
    if folder is None or (options.what is None) == (options.file is None):
        complaint = (
            "name what to explain, or a script with --file" if folder else f"{options.folder} does not exist"
        )
        output.complain("explain", f"{complaint}.")
        return 2
    requested_views = {None: None, ALL: VIEWS}.get(options.assistant, (options.assistant,))
    try:
        if options.file is not None:
            return _run_script(options, _scene(folder), requested_views)
        answers = build(options.what, _scene(folder, options.what), requested_views).answers
    except RequestError as error:
        output.complain("explain", str(error))
        return 1
    if options.format == "json":
        output.json_value({"answers": msgspec.to_builtins(answers)})
        return 0
    for answer in answers:
        _print(answer_lines(answer))
    return 0


def _scene(folder: Path, what: str = "") -> Scene:
    """The folder as of now; the MCP servers of Nexus only if one is asked for."""
    servers: Sequence[protocol.ServerInfo] = ()
    if what.strip().startswith(SERVER):
        from nexus_daemon.api import mcp
        from nexus_daemon.cli.asking import reading

        with reading("explain", folder) as client:
            servers = client.ask(mcp.servers, protocol.ServersParams(client.uri)).servers
    surroundings, now = surroundings_of(folder), datetime.now(UTC)
    return Scene(surroundings, Disk(), read(folder), encoding="utf-16", now=now, servers=servers)


def _run_script(options: argparse.Namespace, scene: Scene, requested_views: Sequence[str] | None) -> int:
    """Explain each command of a script."""
    calls = calls_of_script(_script(options.file))
    explanations = explain_folder_calls(
        calls, scene, requested_views or scene.in_use, is_wanted=requested_views is not None
    )
    if options.format == "json":
        answers = [
            answer
            for explanation in explanations
            for answer in build_answers(explanation, scene.disk, "utf-16")
        ]
        output.json_value({"answers": msgspec.to_builtins(answers)})
        return 0
    for explanation in explanations:
        _print_script(explanation, scene.disk)
    return 0


def _script(path: str) -> str:
    file_read = files.read_text(str(absolute(path)), limit=files.PROMPT_LIMIT)
    if file_read.text is None:
        why = file_read.problems[0].message if file_read.problems else "The file does not exist."
        raise RequestError(f"{path}: {why}", code="unreadable-script")
    return file_read.text


def _print_script(explanation: Explanation, disk: Disk) -> None:
    """Print what one assistant does with each command."""
    output.line(f"{explanation.title} {explanation.version}")
    if explanation.stops is not None:
        output.line(f"  It does not start here: {visible_line(explanation.stops)}")
    for answer, (call, _) in zip(
        build_answers(explanation, disk, "utf-16"), explanation.decisions, strict=True
    ):
        _print(_lines(answer, str(call.inputs.get("command", call.tool)), is_command=True))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        output.line(line)


def answer_lines(answer: protocol.ExplainAnswer) -> Iterator[str]:
    """Yield the lines of an answer, the name of its assistant first."""
    yield f"{view_title(answer.assistant)} {answer.version}"
    yield from _lines(answer, answer.reason)


def _lines(answer: protocol.ExplainAnswer, head: str, *, is_command: bool = False) -> Iterator[str]:
    """The lines below the name of the assistant; the head is the reason, or the command."""
    verdict = f"{answer.verdict:<8} " if answer.verdict is not None else ""
    indent = " " * (len(verdict) + 2)
    yield f"  {verdict}{visible_line(head)}".rstrip()
    if is_command and answer.verdict != "allowed":
        yield f"{indent}{visible_line(answer.reason)}"
    if answer.value is not None:
        yield f"{indent}{visible_line(msgspec.json.encode(answer.value).decode())}"
    for link in answer.chain:
        path = short_path(uri_to_path(link.uri) or link.uri)
        location = f"{path}:{link.range.start.line + 1}"
        yield f"{indent}{location}: {visible_line(link.value)}{_mark(answer, wins=link.wins)}"
    if answer.tokens:
        yield f"{indent}{'' if answer.exact else '≈ '}{output.counted(answer.tokens, 'token')}"
    for text in filter(None, (answer.documentation, answer.note)):
        yield f"{indent}{visible_line(text)}"


def _mark(answer: protocol.ExplainAnswer, *, wins: bool) -> str:
    if answer.verdict is None and answer.tokens is not None:  # a line of a file
        return ""
    if not wins:
        return " (does not count)"
    return " (counts)" if answer.verdict is None else " (decides)"
