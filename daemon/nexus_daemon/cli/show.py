"""Show what the model will see in a folder: the system prompt, where each part comes from, what it costs.

On a terminal this is what the assistant reads that is in use there, as `nexus` alone says; the first line
names it, with the reason. --for picks another one, and --for nexus Nexus's own prompt. In a pipe or a file,
with --format, and with any option that is about requests of Nexus, it is always Nexus's own prompt; in
a pipe, standard error says so if another assistant is in use.

In a pipe or a file the prompt is exact; on a terminal its control characters are made visible. --message
adds the last user message, which carries the time and the state of git. --session lists what is sent of a
stored conversation, --messages what is sent of a file, what is cut and why. --agent shows all this for an
agent of the folder. The figures of Nexus are for the model last picked for the folder or session in an
editor, unless the settings name a provider.
"""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.config import fixes
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.errors import RequestError, Severity
from nexus_context.text.visible import visible_line
from nexus_context.tokens.models import get_model_limits, model_names
from nexus_context.turn.request import FORMATS
from nexus_daemon import protocol
from nexus_daemon.api import config, context
from nexus_daemon.cli import assistant_option, output, show_agents, show_turn
from nexus_daemon.cli.asking import FolderClient, reading
from nexus_daemon.cli.assistant_option import NEXUS
from nexus_daemon.cli.folder import absolute, folder_of, short_path
from nexus_daemon.lsp.convert import uri_to_path

if TYPE_CHECKING:  # most prompts are shown without a transcript
    from nexus_daemon.cli import show_messages

EPILOG = """\
strategies, for a conversation that does not fit:
  oldest_first, smart  cut the oldest messages, up to the start of a turn, or of a step of the last one
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
        choices=("text", "json", *(form for form in FORMATS if form != "neutral")),
        default="text",
        help="json: the result of nexus/context/assemble; openai (chat completions), openai-responses, "
        "anthropic, gemini: a request body (default: text)",
    )
    assistant_option.add_option(
        command,
        "show what this assistant reads in the folder, or nexus; all: a table of who reads what. With "
        "--tokens, --source, --layers or --format json (default: the one in use on a terminal, else nexus)",
        besides=(NEXUS,),
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
    complaint = show_agents.wrong_usage(options) or show_turn.wrong_usage(options)
    if options.assistant not in (None, NEXUS):
        complaint = complaint or assistant_option.wrong_usage(options)
    if folder is None:
        complaint = f"{options.path} does not exist."
    if folder is None or complaint is not None:
        output.complain("show", f"{complaint}")
        return 2
    if options.assistant not in (None, NEXUS):
        return _show_assistant(folder, options)
    try:
        with reading("show", folder) as client:
            chosen_view = _choose_view(client, options)
            if chosen_view is None:
                return _show(client, folder, options)
    except _UnreadableError:
        return 1
    except RequestError as error:
        message = str(error)
        if error.code == "no-model":
            message = (
                f"--format {options.format} needs a model, and none is set: use --model, or set "
                "provider.model in config.json."
            )
        output.complain("show", message)
        return 2 if error.code == show_turn.WRONG_USAGE else 1
    options.assistant = chosen_view
    return _show_assistant(folder, options)


def _show_assistant(folder: Path, options: argparse.Namespace) -> int:
    from nexus_daemon.cli.show_assistant import show_assistant  # most prompts are of Nexus

    return show_assistant(folder, options)


def _choose_view(client: FolderClient, options: argparse.Namespace) -> str | None:
    """Choose the assistant to show if none is named; None means Nexus. Tells a person which one, and why.

    A script gets Nexus's own prompt; standard error says so where another one is in use.
    """
    is_open = options.assistant is None and options.format == "text"
    if not is_open or assistant_option.option_of_nexus(options):
        return None
    from nexus_daemon.api import view  # as above

    views = client.ask(view.list_views, protocol.FolderParams(client.uri)).views
    first_view, *other_views = (
        view_info for view_info in views if view_info.in_use or view_info.name == NEXUS
    )
    if not output.is_read_by_person():
        used_view = next(
            (view_info for view_info in (first_view, *other_views) if view_info.name != NEXUS), None
        )
        if used_view is not None:
            hint = f"{used_view.title}: {used_view.reason}; --for {used_view.name} shows what it reads"
            output.complain("show", f"this is Nexus's own prompt. {hint}.")
        return None
    if other_views:
        other_view = next((view_info for view_info in other_views if view_info.name == NEXUS), other_views[0])
        hint = f"--for {other_view.name} shows {other_view.title}, --for all who reads what"
        output.line(f"{first_view.title}: {first_view.reason}. {hint}.")
    return None if first_view.name == NEXUS else first_view.name


class _UnreadableError(Exception):
    """Nothing of a file can be read, as was printed."""


def _show(client: FolderClient, folder: Path, options: argparse.Namespace) -> int:
    """Print what the options request; returns the exit code."""
    if options.session is not None:
        options.session = client.find_session(options.session).session
    view = show_agents.view_of(options)
    if view is not None:
        show_agents.check_agent(client, view)
    if options.diff is not None:
        return _compare(client, options, view)
    event, tools = show_turn.event_of(options.event), show_turn.tools_of(options.tools)
    transcript = None if options.messages is None else _open_transcript(options)
    if options.memory:
        from nexus_daemon.cli.knowledge import settled_status

        with suppress(RequestError):  # what fails is told with the turn
            settled_status(client)
    request = _request(client, options, view, event=event, tools=tools, opened=transcript)
    assembled = client.ask(context.assemble, request)
    _warn(client, assembled, options)
    if options.format != "text":
        output.json_value(_as_json(assembled))
        return 1 if transcript is not None and transcript.partial else 0
    if transcript is not None:
        return _print_transcript(transcript, assembled, options)
    if options.layers:
        from nexus_daemon.cli import tables

        layers = client.ask(context.layers, protocol.LayersParams(client.uri, view_as=view))
        tables.print_layers(layers, display_path=partial(short_path, folder=str(folder)))
    if options.tokens:
        return _print_usage(assembled.usage)
    if not options.layers:
        _print_text(client, assembled, options, view)
    return 0


def _open_transcript(options: argparse.Namespace) -> "show_messages.Opened":
    """The conversation of a file; RequestError if it cannot be shown."""
    from nexus_daemon.cli import show_messages

    try:
        transcript = show_messages.open_transcript(options.messages, options.conversation)
    except show_messages.WrongUsage as error:
        raise RequestError(f"{error}", code=show_turn.WRONG_USAGE) from None
    if transcript is None:
        raise _UnreadableError
    return transcript


def _request(
    client: FolderClient,
    options: argparse.Namespace,
    view: protocol.ViewAs | None,
    *,
    event: dict[str, Any] | None,
    tools: list[dict[str, Any]],
    opened: "show_messages.Opened | None",
) -> protocol.AssembleParams:
    """The turn that the options describe, as a dry run."""
    model, prompt = options.model, None
    messages: list[Message] | None = None if options.session is not None or options.memory else []
    if opened is not None:
        conversation = opened.conversation
        messages, tools = list(conversation.messages), [*conversation.tools, *tools]
        model = model or _model_of_settings(client) or conversation.model
        if conversation.system is not None or options.no_folder:
            prompt = conversation.system or ""
    return protocol.AssembleParams(
        client.uri,
        options.session,
        message=Message("user", options.message) if options.message else None,
        event=event,
        format="neutral" if options.format in ("text", "json") else options.format,
        options=protocol.AssembleOptions(
            model=model,
            max_context_tokens=options.budget,
            truncation_strategy=options.strategy,
            skills=options.skill,
            additional_tools=tools,
        ),
        dry_run=protocol.DryRun(view_as=view, memory=options.memory, messages=messages, system_prompt=prompt),
    )


def _model_of_settings(client: FolderClient) -> str | None:
    settings = client.ask(config.effective, protocol.AgentViewParams(client.uri)).config
    model: str | None = settings["provider"].get("model")
    return model


def _compare(client: FolderClient, options: argparse.Namespace, view: protocol.ViewAs | None) -> int:
    """Print the differences between the contexts of two agents."""
    other_view = show_agents.other_view(options)
    if other_view is not None:
        show_agents.check_agent(client, other_view)
    first_context, second_context = (
        client.ask(
            context.assemble,
            protocol.AssembleParams(
                client.uri,
                options=protocol.AssembleOptions(model=options.model),
                dry_run=protocol.DryRun(view_as=compared_view, memory=False, messages=[]),
            ),
        )
        for compared_view in (view, other_view)
    )
    _warn(client, first_context, options)
    return show_agents.print_difference(first_context, second_context, options)


def _print_text(
    client: FolderClient,
    assembled: protocol.AssembledContext,
    options: argparse.Namespace,
    view: protocol.ViewAs | None,
) -> None:
    """Print the prompt, what is sent of the session, and the last user message."""
    text = assembled.system_prompt + "\n"
    if options.source:
        text = _with_sources(client, assembled, view)
    output.data(text)
    last_message = _last_message(assembled)
    explanation = assembled.explanation
    if options.session is not None and explanation is not None:
        from nexus_daemon.cli import show_messages

        output.line("")
        last_message = last_message.lstrip("\n")
        sent_count = sum(message.position is not None for message in explanation.messages)
        count = output.counted(sent_count + (explanation.cut.messages if explanation.cut else 0), "message")
        source = f"── session {visible_line(options.session)}: {count} since the last compaction"
        show_messages.print_sent(source, assembled, is_own=False)
        show_messages.print_pending(assembled)
    output.data(last_message)


def _budget(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a valid number of tokens; it must be at least 1")
    return int(text)


def _warn(client: FolderClient, assembled: protocol.AssembledContext, options: argparse.Namespace) -> None:
    """Say what the model was picked for, and warn of anything that makes the figures doubtful."""
    for failure in assembled.metadata.get("memory", {}).get("failures", ()):
        output.complain("show", f"not all is remembered: {failure}")
    explanation = assembled.explanation
    if explanation is not None and explanation.picked_for is not None:
        is_own = explanation.picked_for == "session" and options.session is not None
        origin = f"as session {options.session!r} is" if is_own else "last picked for this folder"
        output.complain("show", f"for the model {assembled.model}, {origin}; --model names another.")
    errors = sum(problem.severity == Severity.ERROR for problem in assembled.problems)
    if errors:
        noun = "error" if errors == 1 else "errors"
        hypothetical = options.folder is not None or options.role is not None  # an agent that does not exist
        path = assembled.workspace_path if hypothetical else options.path
        path_argument = "" if path == "." else f" {shlex.quote(path)}"
        output.complain("show", f"{errors} {noun} in this folder's files: run nexus check{path_argument}")
    if options.model and not get_model_limits(options.model, _models(client)).known:
        suggestion = fixes.meant(options.model.rpartition("/")[2], model_names())
        guess = "its window is a guess, counts are estimates" + (
            f"; did you mean {suggestion}?" if suggestion else ""
        )
        output.complain("show", f"{options.model} is not a known model: {guess}")


def _models(client: FolderClient) -> dict[str, Any]:
    settings = client.ask(config.effective, protocol.AgentViewParams(client.uri)).config
    return settings.get("models") or {}


def _print_transcript(
    opened: "show_messages.Opened", assembled: protocol.AssembledContext, options: argparse.Namespace
) -> int:
    """Print what is sent of a transcript, or what its tokens are spent on; returns the exit code."""
    from nexus_daemon.cli import show_messages

    if not options.tokens:
        show_messages.print_sent(opened.source, assembled, is_own=opened.conversation.system is not None)
    if _print_usage(assembled.usage):
        return 1
    show_messages.print_prefix(assembled)
    return 1 if opened.partial else 0


def _print_usage(token_usage: protocol.TokenUsage) -> int:
    """Print the table of tokens; the exit code is 1 if the request does not fit."""
    from nexus_daemon.cli import tables

    tables.print_usage(token_usage)
    if token_usage.over:
        tables.print_overflow(token_usage)
    return 1 if token_usage.over else 0


def _last_message(assembled: protocol.AssembledContext) -> str:
    """Format the last user message under a heading. Empty if there is no message."""
    if assembled.current_message is None:
        return ""
    mark = "" if assembled.usage.counter.exact else "≈"
    tokens = sum(row.tokens for row in assembled.usage.rows if row.category in ("event", "memory"))
    return f"\n── last user message ({mark}{tokens:,} tokens)\n{text_of(assembled.current_message)}\n"


def _as_json(assembled: protocol.AssembledContext) -> Any:
    """The body of the request, or the result of the dry run without what people read."""
    if assembled.request is not None:
        return assembled.request
    return msgspec.structs.replace(assembled, explanation=None)


def _with_sources(
    client: FolderClient, assembled: protocol.AssembledContext, view: protocol.ViewAs | None
) -> str:
    """The prompt, with a line before each part that names its source."""
    mark = "" if assembled.usage.counter.exact else "≈"
    parts = []
    for fragment, text in show_agents.fragments_with_text(assembled):
        source = "generated by Nexus"
        if fragment.source is not None:
            lines = fragment.source.range
            first_line, last_line = lines.start.line + 1, lines.end.line + 1
            path = uri_to_path(fragment.source.uri) or fragment.source.uri
            source = f"{visible_line(path)}:{first_line}" + (
                f"-{last_line}" if last_line > first_line else ""
            )
        parts.append(f"── {source} ({mark}{fragment.tokens:,} tokens)\n")
        parts.append(text if text.endswith("\n") else text + "\n")
    return "".join((*parts, *_not_sent(client, view)))


def _not_sent(client: FolderClient, view: protocol.ViewAs | None) -> Iterator[str]:
    """A line for each instruction file that is not in the prompt, with the reason."""
    layers = client.ask(context.layers, protocol.LayersParams(client.uri, view_as=view))
    for layer in layers.layers:
        for file in layer.files:
            if file.status == "conditional":
                reason = f"is sent with turns about files that match {file.applies_to}"
                path = uri_to_path(file.uri) or file.uri
                yield f"── not here: {visible_line(f'{path}: {reason}')}\n"
    for skipped in layers.skipped:
        yield f"── not read: {visible_line(f'{skipped.path}: {skipped.reason}')}\n"
