"""Show what the model will see in a folder: the system prompt, where each part comes from, what it costs.

In a pipe or a file the prompt is exact; on a terminal its control characters are made visible. --message
adds the last user message, which carries the time and the state of git. --session lists what is sent of a
stored conversation, --messages what is sent of a file, what is cut and why. --agent shows all this for an
agent of the folder, --for what another assistant reads there (Claude Code, Codex, opencode, …). The figures
of Nexus are for the model last picked for the folder or session in an editor, unless the settings name a
provider.
"""

import argparse
import shlex
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from nexus_context import assembly
from nexus_context.assembly.git import GitState, find, look
from nexus_context.assembly.git import read as read_git
from nexus_context.config import fixes
from nexus_context.config.picked_model import leaves_model_to_editor
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.transcripts import Conversation
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.errors import RequestError, Severity
from nexus_context.manager import ContextManager
from nexus_context.prompt.render import Prompt
from nexus_context.prompt.token_attribution import fragment_tokens
from nexus_context.snapshot import Snapshot, for_choice
from nexus_context.tokens.models import model_names
from nexus_context.visible import visible_line
from nexus_daemon import protocol, results
from nexus_daemon.api import context
from nexus_daemon.cli import assistant_option, output, show_agents, show_turn
from nexus_daemon.cli.folder import absolute, folder_of, read, short_path
from nexus_daemon.cli.invocation import current
from nexus_daemon.lsp.convert import Locator

GIT_S = 5.0  # that git may take
EPILOG = """\
strategies, for a conversation that does not fit:
  oldest_first, smart  cut the oldest messages, up to the start of a turn
  middle_out           the same, but keep the beginning of the conversation
  sliding              cut the oldest messages, up to any message that can come first
  simple               cut message by message, and drop calls without results
  recency              cut all but the last turns (context.keep_recent_turns)

exit codes: 0 success; 1 the result does not fit, or a file could not be read in full; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="a folder (default: .)")
    command.add_argument(
        "--tokens", action="store_true", help="print a table of what the tokens are spent on"
    )
    command.add_argument(
        "--source",
        action="store_true",
        help="print its file and lines before each part, then the files that are not read and why",
    )
    command.add_argument(
        "--layers",
        action="store_true",
        help="print a table of the layers, their files and the skipped directories",
    )
    command.add_argument(
        "--message",
        metavar="TEXT",
        help="add this user message, with what Nexus puts before it",
    )
    command.add_argument(
        "--skill", action="append", default=[], metavar="NAME", help="activate this skill (repeatable)"
    )
    command.add_argument("--model", help="use this model instead of the picked or configured one")
    command.add_argument(
        "--budget",
        type=_budget,
        metavar="N",
        help="limit the context to N tokens, including those reserved for the answer",
    )
    command.add_argument(
        "--strategy",
        choices=STRATEGIES,
        help="what to cut first from a conversation that does not fit; see below",
    )
    command.add_argument(
        "--format",
        choices=("text", "json", *(form for form in assembly.FORMATS if form != "neutral")),
        default="text",
        help="json: the result of nexus/context/assemble; openai (chat completions), openai-responses, "
        "anthropic, gemini: a request body (default: text)",
    )
    assistant_option.add_option(
        command,
        "show what this assistant reads in the folder, not Nexus; all: a table of who reads what. With "
        "--tokens, --source, --layers or --format json",
    )
    show_agents.arguments(command)
    show_turn.arguments(command)
    _conversation_arguments(command)


def _conversation_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("a conversation")
    group.add_argument(
        "--messages",
        metavar="FILE",
        help="list what is sent of this conversation: messages or requests (OpenAI, Anthropic) as JSON lines "
        "or a list, a Claude Code session, or tau-bench records, plain or gzipped; - for standard input. "
        "The file's own system prompt replaces the folder's",
    )
    group.add_argument(
        "--conversation",
        metavar="N|all",
        help="of a file with several conversations: the number of one, or all joined (default: 1)",
    )
    group.add_argument(
        "--no-folder", action="store_true", help="leave out the folder's system prompt, but use its settings"
    )


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.path))
    wrong = show_agents.wrong_usage(options) or show_turn.wrong_usage(options)
    wrong = wrong or assistant_option.wrong_usage(options)
    if folder is None:
        wrong = f"{options.path} does not exist."
    if folder is None or wrong is not None:
        output.complain("show", f"{wrong}")
        return 2
    if options.assistant is not None:
        from nexus_daemon.cli.show_assistant import show_assistant

        return show_assistant(folder, options)
    try:
        return _show(folder, options)
    except RequestError as error:
        message = str(error)
        if error.code == "no-model":
            message = (
                f"--format {options.format} needs a model, and none is set: use --model, or set "
                "provider.model in config.json."
            )
        output.complain("show", message)
        return 2 if error.code == show_turn.WRONG_USAGE else 1


def _show(folder: Path, options: argparse.Namespace) -> int:
    """Print what the options request; returns the exit code."""
    snapshot = read(folder)
    options.session = show_turn.full_name(snapshot, options.session)
    if options.model is None and options.messages is None:
        snapshot = _with_picked_model(snapshot, options.session)
    snapshot, other = show_agents.resolve_views(snapshot, options)
    _warn(snapshot, options)
    if other is not None:
        return show_agents.print_difference(snapshot, other, options)
    options.turn = show_turn.read_turn(str(folder), snapshot, options, show_agents.session_of(snapshot))
    if options.messages is not None:
        return _show_messages(snapshot, folder, options)
    if options.conversation is not None or options.no_folder:
        output.complain("show", "--conversation and --no-folder go with --messages FILE.")
        return 2
    if options.format != "text":
        output.json_value(_result(snapshot, folder, options))
        return 0
    if options.tokens or options.layers:
        return _print_tables(snapshot, folder, options)
    return _print_text(snapshot, folder, options)


def _print_text(snapshot: Snapshot, folder: Path, options: argparse.Namespace) -> int:
    """Print the prompt, what is sent of the session, and the last user message."""
    assembled = _context(snapshot, folder, options)
    text = assembled.prompt.text + "\n"
    if options.source:
        text = _with_sources(snapshot, assembled.prompt, options.model)
    output.data(text)
    last_message = _last_message(assembled)
    if options.session is not None:
        from nexus_daemon.cli import show_messages

        output.line("")
        last_message = last_message.lstrip("\n")
        target = snapshot.effective.get("/context/truncation_target")
        _, counter = assembly.model_of(snapshot, options.model)
        conversation = Conversation(tuple(options.turn.messages))
        count = output.counted(len(conversation.messages), "message")
        source = f"── session {visible_line(options.session)}: {count} since the last compaction"
        opened = show_messages.Opened(conversation, source, partial=False)
        show_messages.print_sent(opened, assembled, target, counter)
        show_messages.print_pending(assembled, options.session)
    output.data(last_message)
    return 0


def _budget(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a valid number of tokens; it must be at least 1")
    return int(text)


def _with_picked_model(snapshot: Snapshot, session: str | None) -> Snapshot:
    """The folder for the model last picked for it, or for a session, in an editor, as the editor shows it.

    It stays as it is if the settings name a provider, if nothing was picked, or if the ledger cannot be
    read. No ledger is created.
    """
    if not leaves_model_to_editor(snapshot.effective):
        return snapshot
    try:
        choice = show_turn.picked_model(snapshot, session)
    except RequestError as error:
        output.complain("show", f"the model picked in the editor cannot be read: {error}")
        return snapshot
    if choice is None or choice.model is None:
        return snapshot
    whose = "last picked for this folder" if session is None else f"as session {session!r} is"
    output.complain("show", f"for the model {choice.model}, {whose}; --model names another.")
    return for_choice(snapshot, choice)


def _warn(snapshot: Snapshot, options: argparse.Namespace) -> None:
    """Warn of what makes the figures doubtful: errors in the files, an unknown model."""
    errors = sum(problem.severity is Severity.ERROR for problem in snapshot.problems)
    if errors:
        noun = "error" if errors == 1 else "errors"
        hypothetical = options.folder is not None or options.role is not None  # an agent that does not exist
        path = snapshot.folder if hypothetical else options.path
        where = "" if path == "." else f" {shlex.quote(path)}"
        output.complain("show", f"{errors} {noun} in this folder's files: run nexus check{where}")
    if options.model and not assembly.model_of(snapshot, options.model)[0].known:
        near = fixes.meant(options.model.rpartition("/")[2], model_names())
        guess = "its window is a guess, counts are estimates" + (f"; did you mean {near}?" if near else "")
        output.complain("show", f"{options.model} is not a known model: {guess}")


def _show_messages(snapshot: Snapshot, folder: Path, options: argparse.Namespace) -> int:
    """Print what is sent of a transcript, or what else the options request."""
    from nexus_daemon.cli import show_messages, tables

    if options.source or options.layers:
        output.complain("show", "--source and --layers are about the folder; leave out --messages.")
        return 2
    try:
        opened = show_messages.open_transcript(options.messages, options.conversation)
    except show_messages.WrongUsage as error:
        output.complain("show", f"{error}")
        return 2
    if opened is None:
        return 1
    conversation = opened.conversation
    options.model = options.model or snapshot.effective.get("/provider/model") or conversation.model
    if conversation.system is not None or options.no_folder:
        snapshot = show_messages.with_prompt(snapshot, conversation.system or "", options.model)
        options.model = None  # it is a setting now
    if options.format != "text":
        output.json_value(_result(snapshot, folder, options, conversation))
        return 1 if opened.partial else 0
    assembled = _context(snapshot, folder, options, conversation=conversation)
    if not options.tokens:
        target = snapshot.effective.get("/context/truncation_target")
        _, counter = assembly.model_of(snapshot, options.model)
        show_messages.print_sent(opened, assembled, target, counter)
    spent = results.usage(assembled.usage, Locator(snapshot.layers, "utf-32"))
    tables.print_usage(spent)
    if spent.over:
        tables.print_overflow(spent)
        return 1
    show_messages.print_prefix(assembled)
    return 1 if opened.partial else 0


def _context(
    snapshot: Snapshot,
    folder: Path,
    options: argparse.Namespace,
    form: str = "neutral",
    conversation: Conversation | None = None,
) -> assembly.AssembledContext:
    turn: show_turn.StoredTurn = options.turn
    manager = ContextManager()
    manager.correction = turn.correction
    manager.add(turn.messages if conversation is None else conversation.messages)
    if conversation is None:
        manager.freeze(turn.frozen)
    request = assembly.Request(
        message=Message("user", options.message) if options.message else None,
        event=turn.event,
        git=_git(snapshot) if options.message or turn.event is not None else None,
        session=options.session or show_agents.session_of(snapshot),
        session_parameters=turn.parameters,
        format=form,
        options=assembly.Options(
            model=options.model,
            max_context_tokens=options.budget,
            truncation_strategy=options.strategy,
            skills=options.skill,
            additional_tools=(
                *(() if conversation is None else conversation.tools),
                *show_turn.tools_of(turn),
            ),
        ),
    )
    now = datetime.now().astimezone()
    if not options.memory:
        return assembly.assemble(snapshot, manager, request, now=now)
    bare = assembly.assemble(snapshot, manager, msgspec.structs.replace(request, format="neutral"), now=now)
    text = options.message or ""
    items = show_turn.memory_items(str(folder), snapshot, turn, history=bare.history, text=text)
    return assembly.assemble(snapshot, manager, request, now=now, memory=items)


def _git(snapshot: Snapshot) -> GitState | None:
    """The state of git, which is run only in a folder that the user trusts."""
    if not snapshot.effective.get("/context/git"):
        return None
    if snapshot.contents.trusted:
        return look(snapshot.folder, environ=current().environ, timeout_s=GIT_S)
    repository = find(snapshot.folder)
    return None if repository is None else read_git(repository)


def _last_message(assembled: assembly.AssembledContext) -> str:
    """The last user message below a heading like those of sources; empty if there is none."""
    if assembled.current_message is None:
        return ""
    mark = "" if assembled.usage.exact else "≈"
    spent = assembled.usage.by_category()
    tokens = spent.get("event", 0) + spent.get("memory", 0)
    return f"\n── last user message ({mark}{tokens:,} tokens)\n{text_of(assembled.current_message)}\n"


def _result(
    snapshot: Snapshot, folder: Path, options: argparse.Namespace, conversation: Conversation | None = None
) -> Any:
    form = "neutral" if options.format == "json" else options.format
    assembled = _context(snapshot, folder, options, form=form, conversation=conversation)
    if assembled.request is not None:
        return assembled.request
    params = protocol.AssembleParams(workspace_folder=folder.as_uri(), agent=snapshot.agent)
    locate = Locator(snapshot.layers, "utf-16")
    return results.assembled(
        assembled, snapshot, params, locate, folder=folder.as_uri(), metadata=assembled.metadata
    )


def _with_sources(snapshot: Snapshot, prompt: Prompt, model: str | None) -> str:
    """The prompt, with a line before each part that names its source."""
    locate = Locator(snapshot.layers, "utf-32")
    _, counter = assembly.model_of(snapshot, model)
    mark = "" if counter.exact else "≈"
    parts = []
    for fragment, tokens in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True):
        place = "generated by Nexus"
        if fragment.path is not None:
            lines = locate.range(fragment.path, fragment.source)
            first, last = lines.start.line + 1, lines.end.line + 1
            place = f"{visible_line(fragment.path)}:{first}" + (f"-{last}" if last > first else "")
        parts.append(f"── {place} ({mark}{tokens:,} tokens)\n")
        text = prompt.text[fragment.span.start : fragment.span.end]
        parts.append(text if text.endswith("\n") else text + "\n")
    return "".join((*parts, *_not_sent(snapshot)))


def _not_sent(snapshot: Snapshot) -> Iterator[str]:
    """A line for each instruction file that is not in the prompt, with the reason."""
    for each in snapshot.contents.conditional:
        reason = f"is sent with turns about files that match {each.applies_to}"
        yield f"── not here: {visible_line(f'{each.block.path}: {reason}')}\n"
    for skipped in snapshot.layers.not_read:
        yield f"── not read: {visible_line(f'{skipped.path}: {skipped.reason}')}\n"


def _print_tables(snapshot: Snapshot, folder: Path, options: argparse.Namespace) -> int:
    """Print the requested tables; returns the exit code."""
    from nexus_daemon.cli import tables

    if options.layers:
        layers = context.build_layers(
            snapshot, Locator(snapshot.layers, "utf-32"), datetime.now().astimezone()
        )
        tables.print_layers(layers, display_path=partial(short_path, folder=str(folder)))
    if options.tokens:
        spent = results.usage(_context(snapshot, folder, options).usage, Locator(snapshot.layers, "utf-32"))
        tables.print_usage(spent)
        if spent.over:
            tables.print_overflow(spent)
            return 1
    return 0
