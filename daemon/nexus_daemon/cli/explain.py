"""Say what each assistant does with a call of a tool here: allow it, ask, or deny it, and by which rule.

Known for Claude Code, Codex, opencode and Gemini CLI. A call is written as in a rule of Claude Code:
'Bash(npm test)', 'Read(.env)', 'WebFetch(https://example.com)', mcp__server__tool; anything else is a command
of Bash. With --file, each command of a script is explained.
"""

import argparse

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.views.permissions import (
    Explanation,
    calls_of_script,
    explain_calls,
    read_call,
)
from nexus_context.disk import files
from nexus_context.errors import RequestError
from nexus_context.text.visible import visible_line
from nexus_daemon.api.explain import build_answers
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, folder_of, short_path
from nexus_daemon.cli.surroundings import surroundings_of
from nexus_daemon.lsp.convert import uri_to_path

EPILOG = "exit codes: 0 explained; 1 it cannot be explained; 2 wrong usage"
_KNOWN = [program.name for program in PROGRAMS.values() if program.has_permissions]


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", nargs="?", metavar="CALL", help="'Bash(npm test)', 'Read(.env)', 'git push'")
    command.add_argument("--file", metavar="SCRIPT", help="explain each command of this script instead")
    command.add_argument("--folder", default=".", help="the folder to work in (default: .)")
    command.add_argument(
        "--for",
        dest="assistant",
        choices=_KNOWN,
        help="explain for this assistant alone (default: all known)",
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
        wrong = "name a call, or a script with --file" if folder else f"{options.folder} does not exist"
        output.complain("explain", f"{wrong}.")
        return 2
    disk, surroundings = Disk(), surroundings_of(folder)
    try:
        calls = [read_call(options.what)] if options.file is None else calls_of_script(_script(options.file))
        explanations = explain_calls(calls, disk, surroundings, assistant=options.assistant)
    except RequestError as error:
        output.complain("explain", str(error))
        return 1
    if options.format == "json":
        answers = [answer for each in explanations for answer in build_answers(each, disk, "utf-16")]
        output.json_value({"answers": msgspec.to_builtins(answers)})
        return 0
    for each in explanations:
        _print(each, disk, is_script=options.file is not None)
    return 0


def _script(path: str) -> str:
    read = files.read_text(str(absolute(path)), limit=files.PROMPT_LIMIT)
    if read.text is None:
        why = read.problems[0].message if read.problems else "The file does not exist."
        raise RequestError(f"{path}: {why}", code="unreadable-script")
    return read.text


def _print(explanation: Explanation, disk: Disk, *, is_script: bool) -> None:
    """Print what one assistant does."""
    output.line(f"{explanation.title} {explanation.version}")
    if explanation.stops is not None:
        output.line(f"  It does not start here: {visible_line(explanation.stops)}")
    for answer, (call, decision) in zip(
        build_answers(explanation, disk, "utf-16"), explanation.decisions, strict=True
    ):
        shown = visible_line(str(call.inputs.get("command", call.tool))) if is_script else ""
        output.line(f"  {answer.verdict:<8} {shown or visible_line(decision.reason)}".rstrip())
        if is_script and decision.outcome != "allowed":
            output.line(f"           {visible_line(decision.reason)}")
        for link in answer.chain:
            mark = "decides" if link.wins else "does not count"
            path = short_path(uri_to_path(link.uri) or link.uri)
            place = f"{path}:{link.range.start.line + 1}"
            output.line(f"           {place}: {visible_line(link.value)} ({mark})")
        if answer.note is not None:
            output.line(f"           {answer.note}")
