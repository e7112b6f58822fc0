"""Runs the real assistants in all case folders, and compares what they send with the profiles.

It also compares the MCP servers that they start, what they do with calls of tools under many settings, which
settings of Claude Code void a file, and what they make of odd spellings of front matter and globs. Then each
of them calls a tool of `nexus mcp`, and has to send the answer with its next request. At last each runs once
with the hooks that `nexus setup` writes, and its sessions, resumed and forked, have to sum up to what the
provider was asked for.

    python -m tests.assistants [--only NAME …] [--case TEXT] [--record]

`--record` writes the table of docs/assistants.md, and `recorded.json`, which the fast tests compare with.
Exit code: 0 if all agree, 1 if not, 2 if a program cannot be installed.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, TextIO

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from assistants import (  # noqa: E402 - from the tests' directory
    agreement,
    hook_runs,
    lint_runs,
    mcp_call,
    permission_askers,
    permission_runs,
    programs,
    server_cases,
    session_runs,
    settings_runs,
    spelling_runs,
    terminal_runs,
)
from assistants.cases import CASES, GIT, Case  # noqa: E402
from assistants.extraction import Extract, extract, without_own  # noqa: E402
from assistants.provider_stand_in import ProviderStandIn  # noqa: E402
from nexus_context.assistants.programs import PROGRAMS  # noqa: E402

RECORDED = TESTS / "assistants" / "recorded.json"
PAGE = TESTS.parent / "docs" / "assistants.md"
EMPTY_REPOSITORY = Case("nothing in a repository", GIT)
TABLE = re.compile(r"(?<=<!-- agreements -->\n).*?(?=<!-- end of agreements -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=tuple(programs.PROGRAMS), default=list(programs.PROGRAMS)
    )
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--record", action="store_true", help="write the table and the recorded requests")
    options = parser.parse_args()
    recorded: dict[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    agreed = True
    for name in options.only:
        try:
            result = run_program(programs.PROGRAMS[name], options.case)
        except programs.MissingToolError as error:
            output(f"make test-assistants: {error}", file=sys.stderr)
            return 2
        recorded[name] = result
        agreed &= result["agreements"] == result["cases"]
        agreed &= check_servers(name, options.case)
        if name in mcp_call.SETTINGS and options.case in mcp_call.CASE:
            agreed &= check_mcp(programs.PROGRAMS[name])
        if not options.case:
            agreed &= run_hooks(programs.PROGRAMS[name])
            agreed &= check_sessions(programs.PROGRAMS[name])
        if options.case in "permissions":
            agreed &= check_permissions(name)
        if options.case in "spellings":
            agreed &= check_spellings(name)
        if name == "claude-code" and options.case in "settings":
            agreed &= check_settings()
            for disagreement in lint_runs.disagreements(lint_runs.KINDS):
                output(f"lints: {disagreement}")
                agreed = False
    if options.record and not options.case:
        RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        write_table(recorded)
    return 0 if agreed else 1


def check_sessions(program: programs.Program) -> bool:
    """Whether the sessions of a program have been sent what its provider was asked for."""
    if program.name not in session_runs.STEPS:
        return True
    outcome = session_runs.run_sessions(program)
    output(f"{'agrees' if outcome.agrees else 'DIFFERS'}  {program.name}  sessions  {outcome}")
    return outcome.agrees


def check_spellings(program: str) -> bool:
    """Whether a program does with each spelling what is recorded."""
    agreed = True
    rows = [row for row in spelling_runs.rows() if row["program"] == program]
    for kind in sorted({row["kind"] for row in rows}):
        ours = [row for row in rows if row["kind"] == kind]
        results = spelling_runs.real_results(program, kind, [row["text"] for row in ours])
        for row, sent in zip(ours, results, strict=True):
            if sent != row["sent"]:
                output(f"{kind} {row['text']!r}: the program sends {sent}, recorded is {row['sent']}")
                agreed = False
    return agreed


def check_permissions(program: str) -> bool:
    """Whether a program decides on each call as is recorded."""
    if program == "claude-code":
        results = permission_runs.run_rows(permission_runs.rows())
    else:
        results = permission_askers.run_rows(program, permission_askers.rows(program))
    agreed = True
    for row, outcome in results:
        if outcome != row["outcome"]:
            output(
                f"permissions: {row['call']} under {row['settings']}: {outcome}, recorded is {row['outcome']}"
            )
            agreed = False
    output(f"{'agrees ' if agreed else 'DIFFERS'}  {program}  permissions")
    return agreed


def check_settings() -> bool:
    """Whether each strange setting has the recorded effect."""
    agreed = True
    for row in settings_runs.rows():
        effect = settings_runs.run_row(row)
        if effect != row["effect"]:
            output(f"settings: {row['text']}: the program has {effect}, recorded is {row['effect']}")
            agreed = False
    return agreed


def run_program(program: programs.Program, wanted: str) -> dict[str, Any]:
    """Run a program in its cases; the version, the numbers and the records."""
    command = programs.install(program)
    version = installed_version(command)
    if version != program.version:
        output(f"{program.name}: {program.version} is pinned, but {version} is installed", file=sys.stderr)
    empty, _ = send(program, command, CASES[0])
    in_repository, comparison = send(program, command, EMPTY_REPOSITORY)
    records, agreements, claimed, own = {}, 0, 0, comparison.record["tokens"]
    at_terminal = terminal_runs.own_tokens(program, command, EMPTY_REPOSITORY)
    cases = [case for case in CASES if program.name in case.programs and wanted in case.name]
    for case in cases:
        _, comparison = send(program, command, case, empty, in_repository)
        records[case.name] = comparison.record
        agreements += not comparison.differences
        claimed += comparison.is_claimed
        output(f"{'agrees ' if not comparison.differences else 'DIFFERS'}  {program.name}  {case.name}")
        for line in comparison.differences:
            output(f"    {line}")
    output(
        f"{program.name} {version}: {agreements} of {len(cases)} agree; own prompt and tools: {own} tokens, "
        f"{at_terminal} at a terminal"
    )
    return {
        "version": version,
        "own_tokens": own,
        "own_tokens_at_terminal": at_terminal,
        "cases": len(cases),
        "agreements": agreements,
        "claimed": claimed,
        "records": records,
    }


def check_servers(name: str, wanted: str) -> bool:
    """Whether a program starts the MCP servers that the profile says."""
    agreed = True
    for case in server_cases.CASES:
        if case.program == name and wanted in case.name:
            differences = server_cases.differences(case)
            output(f"{'DIFFERS' if differences else 'agrees '}  {name}  servers: {case.name}")
            for line in differences:
                output(f"    {line}")
            agreed &= not differences
    return agreed


def check_mcp(program: programs.Program) -> bool:
    """Whether a program calls `nexus mcp` and sends its answer."""
    differences = mcp_call.differences(program)
    output(f"{'DIFFERS' if differences else 'agrees '}  {program.name}  {mcp_call.CASE}")
    for line in differences:
        output(f"    {line}")
    return not differences


def run_hooks(program: programs.Program) -> bool:
    """Set up the hooks of a program, run it, and take them out again; whether all is as it should be."""
    failures = hook_runs.run(program, programs.install(program))
    output(f"{'agrees ' if not failures else 'DIFFERS'}  {program.name}  hooks and settings")
    for failure in failures:
        output(f"    {failure}")
    return not failures


class Comparison:
    """What a case showed; whether the profile claims what the whole request costs, or that there is none."""

    def __init__(self, record: agreement.Record, differences: list[str], *, is_claimed: bool) -> None:
        self.record = record._asdict()
        self.differences = differences
        self.is_claimed = is_claimed


def send(
    program: programs.Program, command: Path, case: Case, *empty: dict[str, Any]
) -> tuple[dict[str, Any], Comparison]:
    """Run a program in a new folder of a case; its last request, and what that says beside the profile.

    `empty` is what it sends from empty folders.
    """
    with tempfile.TemporaryDirectory(prefix="case-") as directory, ProviderStandIn() as provider:
        root = Path(directory).resolve()
        agreement.write_folder(program.name, case, root)
        environ = {name: value.replace(agreement.ROOT, str(root)) for name, value in case.environ.items()}
        model = PROGRAMS[program.name].instructions.assistant.model
        own_tokens = agreement.count_request(empty[-1], model) if empty else None
        profile = agreement.profile_of(program.name, case, root, own_tokens)
        run = programs.run(
            program,
            command,
            Path(f"{root}{case.directory}"),
            home=root / "home",
            address=provider.address,
            environ=environ,
        )
        if not provider.requests and any(each.code == "assistant.stops" for each in profile.problems):
            nothing = Extract(None, None, ())
            record = agreement.Record(None, None, [], [])
            return {}, Comparison(record, agreement.differences(nothing, profile), is_claimed=True)
        if not provider.requests:
            differences = [f"the program sent nothing, and ended with {run.code}: {run.output[-400:]}"]
            return {}, Comparison(agreement.Record(None, None, [], []), differences, is_claimed=False)
        turns = [each.body for each in provider.requests if each.body.get("tools")]  # not that for a title
        body = (turns or [provider.requests[-1].body])[-1]
        own = tuple(entry for each in empty for entry in extract(program.name, each).entries)
        real = without_own(extract(program.name, body), own)
        lines = agreement.unexplained(body, empty, case, profile, root=root)
        tokens = agreement.count_request(body, model)
        record = agreement.record(real, root, lines, tokens)
        different = agreement.differences(real, profile, lines, tokens)
        comparison = Comparison(record, different, is_claimed=profile.request_tokens is not None)
        return agreement.portable_body(body, root), comparison


def installed_version(command: Path) -> str:
    """The version that a program prints."""
    with tempfile.TemporaryDirectory() as home:
        result = subprocess.run(
            [str(command), "--version"],
            capture_output=True,
            text=True,
            env={"PATH": programs.search_path(), "HOME": home},
            check=False,
        )
    match = re.search(r"\d+\.\d+\.\d+", result.stdout)
    return match[0] if match else "unknown"


def output(text: str, *, file: TextIO = sys.stdout) -> None:
    """Print a line at once."""
    file.write(text + "\n")
    file.flush()


def write_table(recorded: dict[str, Any]) -> None:
    """Write the table of agreements into the page."""
    rows = ["| Program | Version | Cases | Agreements |", "|---|---|---|---|"]
    rows.extend(
        f"| {name} | {result['version']} | {result['cases']} | {result['agreements']} |"
        for name, result in recorded.items()
    )
    text = TABLE.sub(lambda _: "\n" + "\n".join(rows) + "\n\n", PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
