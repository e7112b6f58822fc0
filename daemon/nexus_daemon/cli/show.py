"""Show what the model will see in a folder: the system prompt, where each part comes from, what it costs.

The prompt is exact in a pipe or a file; on a terminal its control characters are made visible. With
--message, the last user message, too, which says what is true at the moment. With --messages, what it would
be sent of a conversation, what is cut and why. With --agent, the same for an agent of the folder's. All of it
is for the model that was picked last for the folder in an editor, unless the settings name a provider.
"""

import argparse
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from nexus_context import assembly
from nexus_context.assembly.git import GitState, find
from nexus_context.assembly.git import read as read_git
from nexus_context.config import fixes
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.transcripts import Conversation
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.errors import RequestError, Severity
from nexus_context.manager import ContextManager
from nexus_context.prompt.render import Prompt
from nexus_context.prompt.token_attribution import fragment_tokens
from nexus_context.snapshot import Snapshot
from nexus_context.tokens.models import model_names
from nexus_context.visible import visible_line
from nexus_daemon import protocol, results
from nexus_daemon.api import context
from nexus_daemon.cli import output, picked, show_agents
from nexus_daemon.cli.check import absolute, folder_of, read
from nexus_daemon.lsp.convert import Locator

HELP = "print what the model will see in a folder"

EPILOG = """\
strategies, for a conversation that does not fit:
  oldest_first, smart  from the oldest on, up to the start of a turn
  middle_out           the same, the beginning of the conversation being kept
  sliding              from the oldest on, up to any message that can stand first
  simple               message by message, calls without their results being dropped
  recency              all but the last turns (context.keep_recent_turns)

exit codes: 0 fine; 1 the result does not fit, or a file could not be read in full; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="a folder (default: .)")
    command.add_argument("--tokens", action="store_true", help="a table of what each token is spent on")
    command.add_argument(
        "--source",
        action="store_true",
        help="before each part, the file and lines that it comes from; then what is not read, and why",
    )
    command.add_argument(
        "--layers", action="store_true", help="a table of the layers, their files and skipped places"
    )
    command.add_argument(
        "--message",
        metavar="TEXT",
        help="with this message of the user's, and what the model is told with it",
    )
    command.add_argument(
        "--skill", action="append", default=[], metavar="NAME", help="activate this skill; may be repeated"
    )
    command.add_argument("--model", help="for this model instead of the picked or configured one")
    command.add_argument(
        "--budget", type=_budget, metavar="N", help="at most this many tokens, the answer's share among them"
    )
    command.add_argument(
        "--strategy", choices=STRATEGIES, help="what leaves a conversation first that does not fit; see below"
    )
    command.add_argument(
        "--format",
        choices=("text", "json", "openai", "anthropic"),
        default="text",
        help="json: the result of nexus/context/assemble; openai, anthropic: a body to send (default: text)",
    )
    show_agents.arguments(command)
    group = command.add_argument_group("a conversation")
    group.add_argument(
        "--messages",
        metavar="FILE",
        help="list what is sent of this conversation: messages or requests (OpenAI, Anthropic) as JSON lines "
        "or a list, a session file of Claude Code, tau-bench's records, plain or gzipped; -: standard input. "
        "A system prompt of its own replaces the folder's",
    )
    group.add_argument(
        "--conversation",
        metavar="N|all",
        help="of a file with several, its number, or all as one (default: 1)",
    )
    group.add_argument(
        "--no-folder", action="store_true", help="without the folder's system prompt; its settings stay"
    )


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.path))
    wrong = show_agents.wrong_usage(options) if folder else f"{options.path} does not exist."
    if folder is None or wrong is not None:
        output.complain("show", f"{wrong}")
        return 2
    snapshot = read(folder)
    if options.model is None and options.messages is None:
        snapshot = picked.with_picked_model(snapshot, lambda note: output.complain("show", f"{note}."))
    try:
        snapshot, other = show_agents.seen(snapshot, options)
        _warn(snapshot, options)
        if other is not None:
            return show_agents.print_difference(snapshot, other, options)
        if options.messages is not None:
            return _show_messages(snapshot, folder, options)
        if options.conversation is not None or options.no_folder:
            output.complain("show", "--conversation and --no-folder go with --messages FILE.")
            return 2
        if options.format != "text":
            output.json_value(_assembled(snapshot, folder, options))
        elif options.tokens or options.layers:
            return _print_tables(snapshot, options)
        else:
            made = _context(snapshot, options)
            shown = made.prompt.text + "\n"
            if options.source:
                shown = _with_sources(snapshot, made.prompt, options.model)
            output.data(shown + _last_message(made))
    except RequestError as error:
        said = str(error)
        if error.code == "no-model":
            said = (
                f"--format {options.format} names a model, and none is set: give --model, or set "
                "provider.model in config.json."
            )
        output.complain("show", f"{said}")
        return 1
    return 0


def _budget(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and int(given)):
        raise argparse.ArgumentTypeError(f"{given} is no number of tokens; it must be at least 1")
    return int(given)


def _warn(snapshot: Snapshot, options: argparse.Namespace) -> None:
    """Say what makes the figures doubtful: errors in the files, a model that nobody knows."""
    errors = sum(problem.severity is Severity.ERROR for problem in snapshot.problems)
    if errors:
        noun = "error" if errors == 1 else "errors"
        tried = options.folder is not None or options.role is not None  # no agent that the folder has
        path = snapshot.folder if tried else options.path
        where = "" if path == "." else f" {shlex.quote(path)}"
        output.complain("show", f"{errors} {noun} in this folder's files: run nexus check{where}")
    if options.model and not assembly.model_of(snapshot, options.model)[0].known:
        near = fixes.meant(options.model.rpartition("/")[2], model_names())
        guess = "its window is a guess, counts are estimates" + (f"; did you mean {near}?" if near else "")
        output.complain("show", f"{options.model} is in no list of models: {guess}")


def _show_messages(snapshot: Snapshot, folder: Path, options: argparse.Namespace) -> int:
    """The list of what is sent of a transcript, or what else the options ask for."""
    from nexus_daemon.cli import tables, transcript

    if options.source or options.layers:
        output.complain("show", "--source and --layers tell of the folder; leave out --messages.")
        return 2
    try:
        opened = transcript.open_transcript(options.messages, options.conversation)
    except transcript.WrongUsage as error:
        output.complain("show", f"{error}")
        return 2
    if opened is None:
        return 1
    conversation = opened.conversation
    options.model = options.model or snapshot.effective.get("/provider/model") or conversation.model
    if conversation.system is not None or options.no_folder:
        snapshot = transcript.with_prompt(snapshot, conversation.system or "", options.model)
        options.model = None  # it is a setting now
    if options.format != "text":
        output.json_value(_assembled(snapshot, folder, options, conversation))
        return 1 if opened.partial else 0
    made = _context(snapshot, options, conversation=conversation)
    if not options.tokens:
        target = snapshot.effective.get("/context/truncation_target")
        _, counter = assembly.model_of(snapshot, options.model)
        transcript.print_sent(opened, made, target, counter)
    spent = results.usage(made.usage, Locator(snapshot.layers, "utf-32"))
    tables.print_usage(spent)
    if spent.over:
        tables.print_overflow(spent)
        return 1
    transcript.print_prefix(made)
    return 1 if opened.partial else 0


def _context(
    snapshot: Snapshot,
    options: argparse.Namespace,
    form: str = "neutral",
    conversation: Conversation | None = None,
) -> assembly.AssembledContext:
    manager = ContextManager()
    if conversation is not None:
        manager.add(conversation.messages)
    request = assembly.Request(
        message=Message("user", options.message) if options.message else None,
        git=_git(snapshot) if options.message else None,
        session=show_agents.session_of(snapshot),
        format=form,
        options=assembly.Options(
            model=options.model,
            max_context_tokens=options.budget,
            truncation_strategy=options.strategy,
            skills=options.skill,
            additional_tools=() if conversation is None else conversation.tools,
        ),
    )
    return assembly.assemble(snapshot, manager, request, now=datetime.now().astimezone())


def _git(snapshot: Snapshot) -> GitState | None:
    """What the daemon tells of a folder that nobody said to be trusted: files are read, git is not run."""
    if not snapshot.effective.get("/context/git"):
        return None
    repository = find(snapshot.folder)
    return None if repository is None else read_git(repository)


def _last_message(made: assembly.AssembledContext) -> str:
    """The last user message below a line of its own, as sources have them; nothing where there is none."""
    if made.current_message is None:
        return ""
    mark = "" if made.usage.exact else "≈"
    tokens = made.usage.by_category().get("event", 0)
    return f"\n── last user message ({mark}{tokens:,} tokens)\n{text_of(made.current_message)}\n"


def _assembled(
    snapshot: Snapshot, folder: Path, options: argparse.Namespace, conversation: Conversation | None = None
) -> Any:
    form = "neutral" if options.format == "json" else options.format
    made = _context(snapshot, options, form, conversation)
    if made.request is not None:
        return made.request
    params = protocol.AssembleParams(workspace_folder=folder.as_uri(), agent=snapshot.agent)
    locate = Locator(snapshot.layers, "utf-16")
    return results.assembled(made, snapshot, params, locate, folder=folder.as_uri(), metadata=made.metadata)


def _with_sources(snapshot: Snapshot, prompt: Prompt, model: str | None) -> str:
    """The prompt, each part after a line that says where it comes from."""
    locate = Locator(snapshot.layers, "utf-32")
    _, counter = assembly.model_of(snapshot, model)
    mark = "" if counter.exact else "≈"
    parts = []
    for fragment, tokens in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True):
        place = "made by Nexus"
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


def _print_tables(snapshot: Snapshot, options: argparse.Namespace) -> int:
    """The tables that are asked for, and the exit code."""
    from nexus_daemon.cli import tables

    if options.layers:
        tables.print_layers(context.build_layers(snapshot, Locator(snapshot.layers, "utf-32")))
    if options.tokens:
        spent = results.usage(_context(snapshot, options).usage, Locator(snapshot.layers, "utf-32"))
        tables.print_usage(spent)
        if spent.over:
            tables.print_overflow(spent)
            return 1
    return 0
