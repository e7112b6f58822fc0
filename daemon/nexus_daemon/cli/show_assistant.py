"""Runs `nexus show --for`: what another assistant reads in a folder, and the table of who reads what."""

import argparse
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from nexus_context.assistants.reading.profile_types import LISTED, Profile, SentBlock, SentPart, Surroundings
from nexus_context.assistants.views.mcp_servers import STARTS
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import AssistantUse, WhoReadsWhat, who_reads_what
from nexus_context.errors import Severity
from nexus_context.text.lines import LineIndex
from nexus_context.text.visible import visible_line
from nexus_daemon.api.assistant import build_context
from nexus_daemon.assistants.hooks import loaded_files
from nexus_daemon.cli import output, tables
from nexus_daemon.cli.assistant_option import ALL
from nexus_daemon.cli.surroundings import surroundings_of
from nexus_daemon.cli.tables import LEAST_PATH, Column

PLACES = {"system": "system prompt", "user": "first user message", "developer": "developer message"}
_BAR = 20


def show_assistant(folder: Path, options: argparse.Namespace) -> int:
    """Print what the options request; return the exit code."""
    surroundings = surroundings_of(folder)
    if options.assistant == ALL:
        return _print_all(surroundings, options)
    profile = read_profile(options.assistant, surroundings)
    if options.format == "json":
        output.json_value(build_context(profile))
        return 0
    _warn(profile, options)
    if options.layers:
        _print_layers(profile)
    if options.tokens:
        _print_tokens(profile)
    if not (options.layers or options.tokens):
        _print_text(profile, with_source=options.source)
    _print_comparison(profile, surroundings, is_wanted=options.layers or options.tokens or options.source)
    return 0


def _print_comparison(profile: Profile, surroundings: Surroundings, *, is_wanted: bool) -> None:
    """Say whether the last session here loaded these files, by its hooks; what differs, always."""
    session = loaded_files.find_session(surroundings.environ, profile.assistant.name, surroundings.folder)
    if session is None:
        return
    paths = [part.path for part in profile.parts if part.path is not None and part.scope not in LISTED]
    comparison = loaded_files.compare(session, paths)
    loaded_at = output.local_time(datetime.fromtimestamp(session.at, UTC).isoformat())
    for file in comparison.unexpected:
        why = f"{file.reason}, from {file.parent}" if file.parent else file.reason
        output.complain(
            "show",
            f"the session of {loaded_at} loaded {file.path} ({why}), although its profile does not list it.",
        )
    for path in comparison.absent:
        output.complain(
            "show", f"the session of {loaded_at} did not load {path}, although its profile lists it."
        )
    if comparison.agrees and is_wanted:
        output.line(
            f"Confirmed by a session of {profile.assistant.title} at {loaded_at}: it loaded these files."
        )


def _warn(profile: Profile, options: argparse.Namespace) -> None:
    cuts = [part for part in profile.parts if part.cut is not None]
    path_argument = "" if options.path == "." else f" {shlex.quote(options.path)}"
    for part in cuts:
        if part.cut is not None:
            lines = f"lines {part.cut.first_line:,}–{part.cut.last_line:,} are never read"
            output.complain("show", f"{part.path}: {part.cut.reason}: {lines}")
    problems = sum(problem.severity <= Severity.WARNING for problem in profile.problems)
    if problems and not cuts:
        count = output.counted(problems, "problem")
        output.complain("show", f"{count}: run nexus check --for {profile.assistant.name}{path_argument}")


def _title(profile: Profile) -> str:
    assistant = profile.assistant
    mark = "" if profile.exact else "≈"
    version = f"{assistant.version}, by its own requests"
    if assistant.verified == "documentation":
        version = f"by documentation of {assistant.version}"
    files = f"{assistant.title} ({version}): {mark}{profile.total:,} tokens of files in every request"
    if profile.request_tokens is None:
        return files
    return f"{files}, ≈{profile.request_tokens:,} with its prompt and tools"


def _print_text(profile: Profile, *, with_source: bool) -> None:
    """Print the exact texts, each below its place in the request."""
    mark = "" if profile.exact else "≈"
    if with_source:
        output.line(f"── {_title(profile)}")
    for block in profile.blocks:
        tokens = sum(part.tokens for part in block.parts)
        addition = "" if block.complete else "; the assistant adds text of its own"
        output.line(f"── {block.kind}, in the {PLACES[block.place]} ({mark}{tokens:,} tokens{addition})")
        text = "".join(_sourced(profile, block)) if with_source else block.text
        output.data(text if text.endswith("\n") else text + "\n")
    if not profile.blocks:
        names = profile.assistant.names
        name = "AGENTS.md" if "AGENTS.md" in names else names[0]
        output.line(
            f"── {profile.assistant.title} sends nothing of this folder's files; write {name} to begin that"
        )
    if with_source:
        for later_file in profile.later:
            output.line(
                f"── later: {later_file.path} ({mark}{later_file.tokens:,} tokens): sent {later_file.when}"
            )
        for ignored in profile.ignored:
            output.line(f"── not read: {ignored.path}: {ignored.reason}")


def _sourced(profile: Profile, block: SentBlock) -> Iterator[str]:
    mark = "" if profile.exact else "≈"
    for part in block.parts:
        source = f"text of {profile.assistant.title}" if part.path is None else _source_text(profile, part)
        yield f"── {source} ({mark}{part.tokens:,} tokens)\n"
        yield part.text if part.text.endswith("\n") else part.text + "\n"


def _source_text(profile: Profile, part: SentPart) -> str:
    last_line = LineIndex(profile.texts.get(part.path or "") or "").position(
        len(profile.texts.get(part.path or "") or "")
    )[0]
    cut = f", cut at line {part.cut.first_line}" if part.cut is not None else ""
    importer = f", imported by {part.importer}" if part.importer is not None else ""
    return visible_line(f"{part.path}:1-{max(last_line, 1)} ({part.scope}{importer}{cut})")


def _print_tokens(profile: Profile) -> None:
    mark = "" if profile.exact else "≈"
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("scope", footer="total")
    table.add_column("file", footer=f"counted with {profile.counter}", overflow="fold")
    table.add_column("tokens", justify="right", footer=f"{mark}{profile.total:,}")
    table.add_column("share", justify="right")
    table.add_column("", min_width=_BAR)
    for kind, part in ((block.kind, part) for block in profile.blocks for part in block.parts):
        share = part.tokens / max(profile.total, 1)
        name = f"around the {kind}" if part.path is None else profile.shorten(part.path)
        cells = (part.scope, name, f"{mark}{part.tokens:,}", f"{share:.0%}")
        table.add_row(*cells, Text("█" * round(_BAR * share)))
    out = output.console()
    tables.print_sentence(out, _title(profile))
    out.print(table)
    for file in profile.later:
        text = f"{profile.shorten(file.path)} ({mark}{file.tokens:,} tokens) is sent {file.when}"
        out.print(Text.assemble(("later ", "yellow"), visible_line(text)), soft_wrap=not out.is_terminal)


def _print_layers(profile: Profile) -> None:
    mark = "" if profile.exact else "≈"
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("scope", "file", "status"):
        table.add_column(name, overflow="fold")
    table.add_column("tokens", justify="right")
    for part in profile.parts:
        if part.path is not None:
            status = "sent" if part.cut is None else f"cut from line {part.cut.first_line:,} on"
            name = profile.shorten(part.path)
            table.add_row(part.scope, f"@{name}" if part.importer else name, status, f"{mark}{part.tokens:,}")
    for later_file in profile.later:
        name = profile.shorten(later_file.path)
        table.add_row(later_file.scope, name, f"sent {later_file.when}", f"{mark}{later_file.tokens:,}")
    out = output.console()
    tables.print_sentence(out, _title(profile))
    out.print(table)
    _print_servers(profile)
    for ignored in profile.ignored:
        text = f"{profile.shorten(ignored.path)}: {ignored.reason}"
        out.print(Text.assemble(("not read ", "yellow"), visible_line(text)), soft_wrap=not out.is_terminal)


def _print_servers(profile: Profile) -> None:
    out = output.console()
    for server in profile.servers:
        reason = "" if server.reason is None else f": {server.reason}"
        server_text = f"{server.name} ({server.scope}, {profile.shorten(server.path)})"
        text = visible_line(f"{server_text} {STARTS[server.start]}{reason}")
        out.print(Text.assemble(("MCP server ", "yellow"), text), soft_wrap=not out.is_terminal)
    if profile.servers:
        text = "The cost of their tools is not known without starting them, and Nexus never starts them."
        out.print(text, soft_wrap=not out.is_terminal)


def _print_all(surroundings: Surroundings, options: argparse.Namespace) -> int:
    result = who_reads_what(surroundings)
    if options.format == "json":
        output.json_value([build_context(profile) for profile in result.profiles])
        return 0
    paths = [visible_line(result.profiles[0].shorten(row.path)) for row in result.files]
    paths += ["around the files", "own prompt, tools"]
    columns = [Column("file", paths, least=LEAST_PATH, footer="every request", cut="start")]
    for profile in result.profiles:
        mark = "" if profile.exact else "≈"
        cells = [_cell(row.uses[profile.assistant.name]) for row in result.files]
        surrounding_tokens = sum(part.tokens for part in profile.parts if part.path is None)
        own_tokens, request_tokens = profile.own_tokens, profile.request_tokens
        cells += [
            f"{mark}{surrounding_tokens:,}" if surrounding_tokens else "–",
            "?" if own_tokens is None else f"≈{own_tokens:,}",
        ]
        total = f"{mark}{profile.total:,} + ?" if request_tokens is None else f"≈{request_tokens:,}"
        columns.append(Column(profile.assistant.title, cells, justify="right", footer=total))
    out = output.console()
    tables.print_columns(columns)
    out.print(
        "–: not read · later: sent when something happens · +: part of it later · cut: only in part · "
        "?: not known",
        soft_wrap=True,
    )
    documented = [
        profile.assistant.title for profile in result.profiles if profile.assistant.verified != "run"
    ]
    out.print(f"By documentation, not by their own requests: {', '.join(documented)}.", soft_wrap=True)
    if options.source:
        _print_reasons(result)
    return 0


def _print_reasons(result: WhoReadsWhat) -> None:
    for row in result.files:
        output.line(f"── {result.profiles[0].shorten(row.path)}")
        for profile in result.profiles:
            use = row.uses[profile.assistant.name]
            if use.reason is not None:
                output.line(f"   {profile.assistant.title}: {use.reason}")


def _cell(use: AssistantUse) -> str:
    mark = "" if use.exact else "≈"
    if use.use == "unread":
        return "–"
    tokens = f"{mark}{use.tokens:,}" if use.tokens else ""
    if use.use == "later" and tokens:
        return f"{tokens}+"
    return tokens if use.use == "sent" else f"{use.use} {tokens}".rstrip()
