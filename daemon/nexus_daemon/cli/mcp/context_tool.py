"""Answers `show_context`: what an assistant reads in a folder, who reads a file, what Nexus itself sends."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from nexus_context.assistants.reading.profile_types import Profile, SentPart
from nexus_context.assistants.reading.working_tree import is_within
from nexus_context.assistants.views.mcp_servers import STARTS
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.readers import FileReaders, who_reads_what
from nexus_context.disk.files import is_dir
from nexus_context.errors import Severity
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import short_path
from nexus_daemon.cli.mcp.call_scope import CallScope
from nexus_daemon.cli.mcp.pages import ToolAnswer
from nexus_daemon.cli.mcp.places import surroundings_at
from nexus_daemon.shared.mcp_server.definitions import ALL, NEXUS

_ROLES = {"system": "system prompt", "user": "first user message", "developer": "developer message"}


def show_context(scope: CallScope) -> ToolAnswer:
    """Describe a file, if `path` is one, else an assistant in a directory."""
    name = scope.arguments.get("assistant") or scope.assistant or NEXUS
    if not is_dir(scope.path):
        return _describe_readers(scope)
    if name == ALL:
        return _describe_all(scope)
    return _describe_nexus(scope) if name == NEXUS else _describe_assistant(scope, name)


# ---------------------------------------------------------------- an assistant


def _describe_assistant(scope: CallScope, name: str) -> ToolAnswer:
    profile = read_profile(name, surroundings_at(scope.path))
    assistant = profile.assistant
    reader = "You read" if name == scope.assistant else f"{assistant.title} reads"
    rules = f"rules of {assistant.title} {assistant.version}"
    if assistant.verified == "documentation":
        rules = f"by documentation of {assistant.version}"
    total = f"{_tokens(profile.total, profile)} tokens of files with every request"
    title = f"{reader} {total} in {scope.path} ({rules}):"
    return ToolAnswer(title, tuple(_lines(profile, scope.folder)) or ("no file.",))


def _lines(profile: Profile, folder: str) -> Iterator[str]:
    for part in profile.parts:
        if part.path is not None:
            yield f"{_tokens(part.tokens, profile)} {short_path(part.path, folder)} ({_about(part, folder)})"
    for block in profile.blocks:
        words = sum(part.tokens for part in block.parts if part.path is None)
        if words:
            yield f"{_tokens(words, profile)} words around {block.kind}, in the {_ROLES[block.place]}"
    for later_file in profile.later:
        path = short_path(later_file.path, folder)
        yield f"later: {path} ({_tokens(later_file.tokens, profile)} tokens), sent {later_file.when}"
    for ignored in profile.ignored:
        yield f"not read: {short_path(ignored.path, folder)}: {ignored.reason}"
    for server in profile.servers:
        reason = f": {server.reason}" if server.reason is not None else ""
        server_text = f"{server.name} ({server.scope}, {short_path(server.path, folder)})"
        yield f"MCP server {server_text} {STARTS[server.start]}{reason}"
    problems = sum(problem.severity <= Severity.WARNING for problem in profile.problems)
    if problems:
        count = output.counted(problems, "problem")
        yield f"{count}: check_configuration lists them."


def _about(part: SentPart, folder: str) -> str:
    words: list[str] = [part.scope]
    if part.importer is not None:
        words.append(f"imported by {short_path(part.importer, folder)}")
    if part.cut is not None:
        words.append(f"lines {part.cut.first_line}–{part.cut.last_line} are never read: {part.cut.reason}")
    return ", ".join(words)


def _tokens(count: int, profile: Profile) -> str:
    return f"{'' if profile.exact else '≈'}{count:,}"


# ---------------------------------------------------------------- who reads what


def _describe_readers(scope: CallScope) -> ToolAnswer:
    result = who_reads_what(surroundings_at(scope.folder))
    path = short_path(scope.path, scope.folder)
    row = next(
        (reader_row for reader_row in result.files if os.path.realpath(reader_row.path) == scope.path), None
    )
    if row is None:
        return ToolAnswer(f"No assistant loads {path} as instructions in {scope.folder}.")
    return ToolAnswer(f"Who reads {path}:", tuple(_uses(row, result.profiles)))


def _uses(row: FileReaders, profiles: Sequence[Profile]) -> Iterator[str]:
    for profile in profiles:
        use = row.uses[profile.assistant.name]
        mark = "" if use.exact else "≈"
        sent_text = f"{mark}{use.tokens:,} tokens in every request" if use.tokens else use.use
        text = "not read" if use.use == "unread" else sent_text
        reason = f". {use.reason}" if use.reason is not None else ""
        if use.use == "cut":
            reason = f" ({use.reason})"
        yield f"{profile.assistant.title}: {text}{reason}"


def _describe_all(scope: CallScope) -> ToolAnswer:
    result = who_reads_what(surroundings_at(scope.path))
    totals = (f"{profile.assistant.title} {_tokens(profile.total, profile)}" for profile in result.profiles)
    lines = []
    for row in result.files:
        uses = [
            f"{profile.assistant.name} {use.use} {'' if use.exact else '≈'}{use.tokens:,}"
            if use.tokens
            else f"{profile.assistant.name} {use.use}"
            for profile in result.profiles
            if (use := row.uses[profile.assistant.name]).use != "unread"
        ]
        lines.append(f"{short_path(row.path, scope.folder)}: {', '.join(uses) or 'nobody'}")
    return ToolAnswer(f"Tokens of files in every request: {', '.join(totals)}.", tuple(lines))


# ---------------------------------------------------------------- Nexus itself


def _describe_nexus(scope: CallScope) -> ToolAnswer:
    from nexus_context.folder.prompt import texts
    from nexus_context.folder.prompt.token_attribution import fragment_tokens
    from nexus_context.turn.models import model_of
    from nexus_daemon.cli.folder import read

    snapshot = read(Path(scope.path))
    _, counter = model_of(snapshot, None)
    prompt = snapshot.prompt
    mark = "" if counter.exact else "≈"
    tokens_by_source: dict[str, int] = {}
    for fragment, tokens in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True):
        is_ours = fragment.path is None or is_within(fragment.path, str(texts.DIRECTORY.parents[1]))
        source = "text of Nexus" if is_ours else short_path(fragment.path or "", scope.folder)
        tokens_by_source[source] = tokens_by_source.get(source, 0) + tokens
    lines = [f"{mark}{tokens:,} {source}" for source, tokens in tokens_by_source.items()]
    lines += [
        f"not read: {short_path(skipped.path, scope.folder)}: {skipped.reason}"
        for skipped in snapshot.layers.not_read
    ]
    total = f"{mark}{sum(tokens_by_source.values()):,} tokens"
    return ToolAnswer(f"The system prompt of the user's own chats with Nexus has {total} here:", tuple(lines))
