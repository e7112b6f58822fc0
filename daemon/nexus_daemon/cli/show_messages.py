"""Runs `nexus show --messages`: what a model is sent of a real conversation, what is cut and why.

The list has a line per message sent, and a line for the cut. In a pipe it is complete; on a terminal, the
middle of a long list is left out.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from nexus_context.assistants.importing import LIMIT, Conversation, Transcript, joined, read_transcript
from nexus_context.disk import files
from nexus_context.errors import Severity
from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.tables import ROLE_COLOURS, print_sentence
from nexus_daemon.lsp.convert import uri_to_path

FORMATS = {
    "neutral": "messages",
    "openai": "OpenAI messages",
    "anthropic": "Anthropic messages",
    "claude-code": "Claude Code session",
    "tau-bench": "tau-bench records",
    "codex": "Codex session",
    "responses": "items of OpenAI's Responses API",
    "gemini": "Gemini contents",
    "gemini-cli": "Gemini CLI session",
    "pydantic-ai": "pydantic-ai messages",
    "openhands": "OpenHands events",
    "swe-agent": "SWE-agent trajectory",
    "vscode-chat": "VS Code chat",
    "copilot-cli": "Copilot CLI session",
    "opencode": "opencode session",
    "claude-web": "Claude's data export",
    "aider": "aider history",
}
MOST_LINES = 60
"""Messages to list on a terminal; of longer conversations, the first and the last are listed."""
FIRST_LINES, LAST_LINES = 10, 30
MOST_REPAIRS = 10
LEAST_CACHED = 1_024
"""Tokens below which providers cache nothing."""


class WrongUsage(Exception):  # noqa: N818 (what the user did, not what failed)
    """Raised for options that do not fit the file. The message says what fits."""


class Opened(NamedTuple):
    """The conversation to print. `source` says in words what it is.

    `partial` is true if a part of the file could not be read.
    """

    conversation: Conversation
    source: str
    partial: bool


def open_transcript(name: str, choice: str | None) -> Opened | None:
    """Read one conversation of a file: `choice` is its number, `all`, or None for the first.

    The name `-` is standard input. Problems of the file are printed to standard error. None if nothing of the
    file could be read. WrongUsage for a file or a conversation that does not exist.
    """
    label = "standard input" if name == "-" else name
    if name == "-":
        data = sys.stdin.buffer.read(LIMIT + 1)
    else:
        file_read = files.read_bytes(invocation.current().absolute(name), limit=LIMIT)
        if file_read.status == "missing":
            raise WrongUsage(f"{name} does not exist.")
        if any(problem.code == "layer.not-a-file" for problem in file_read.problems):
            kind = (
                "a directory" if files.is_dir(invocation.current().absolute(name)) else "not a regular file"
            )
            raise WrongUsage(f"{name} is {kind}; give a file, or - for standard input.")
        for problem in file_read.problems:
            output.complain("show", f"{name}: {problem.message}")
        if file_read.data is None:
            return None
        data = file_read.data
    transcript = read_transcript(data, label)
    _print_problems(label, transcript)
    if not transcript.conversations:
        return None
    conversation, selection_text = _choose(transcript.conversations, choice)
    source = (
        f"{visible_line(os.path.basename(label))}: {FORMATS[transcript.format or 'neutral']}{selection_text}"
    )
    partial = any(problem.severity is Severity.ERROR for problem in transcript.problems)
    return Opened(conversation, source, partial)


def print_sent(source: str, assembled: protocol.AssembledContext, *, is_own: bool) -> None:
    """Print what is sent, line by line, the cut in its place, and what was repaired.

    `source` says what the conversation is. If `is_own`, the system prompt is the conversation's own.
    """
    explanation = assembled.explanation
    assert explanation is not None  # noqa: S101 - a dry run has one
    out, mark = output.console(), _mark(assembled)
    print_sentence(out, source)
    if is_own:
        print_sentence(out, "The system prompt is the transcript's own; the folder's is not sent.")
    out.print()
    rows: list[_Row] = [_row(message, mark) for message in explanation.messages]
    if explanation.cut is not None:
        rows.insert(explanation.cut.at, _Row(_why(explanation.cut, assembled.usage), explanation.cut.tokens))
    if out.is_terminal and len(rows) > MOST_LINES:
        rows[FIRST_LINES:-LAST_LINES] = _folded(rows[FIRST_LINES:-LAST_LINES], mark)
    for row in rows:
        _print(out, row, mark)
    repairs = explanation.repairs
    for repair in repairs[:MOST_REPAIRS]:
        print_sentence(out, Text.assemble(("repaired: ", "yellow"), repair))
    if len(repairs) > MOST_REPAIRS:
        out.print(Text(f"and {output.counted(len(repairs) - MOST_REPAIRS, 'other repair')}", "yellow"))
    out.print()


def print_prefix(assembled: protocol.AssembledContext) -> None:
    """Print how much the next request has in common with this one, if providers cache that."""
    tokens = assembled.metadata["stablePrefixTokens"]
    if tokens >= LEAST_CACHED:
        print_sentence(
            output.console(),
            f"{_mark(assembled)}{tokens:,} tokens (tools, system prompt, history) will be the same at the "
            "start of the next request: a provider's cache can serve them.",
        )


def print_pending(assembled: protocol.AssembledContext) -> None:
    """Print what changed since the prompt and tools above were sent, and what applying it now costs."""
    pending = assembled.usage.pending
    if pending is None:
        return
    out = output.console()
    for change in pending.changes:
        path = None if change.source is None else uri_to_path(change.source.uri)
        name = f"the tool {change.label}" if change.tool else path or change.label
        notice = "a message told it" if change.told else "the next message tells it"
        sentence = f"{visible_line(name)} was {change.kind} since it was sent: {notice}."
        print_sentence(out, Text.assemble(("pending: ", "yellow"), sentence))
    cost = "" if pending.cost_usd is None else f" (${pending.cost_usd:.4f})"
    lost = " Thinking in the history is lost then." if pending.loses_thinking else ""
    print_sentence(
        out,
        f"To begin with the present files instead, {_mark(assembled)}{pending.tokens:,} tokens are written "
        f"again{cost}: nexus sessions rebase {shlex.quote(assembled.session)}.{lost}",
    )
    out.print()


# ---------------------------------------------------------------- reading


def _print_problems(name: str, transcript: Transcript) -> None:
    """Print the problems, with their lines, to standard error."""
    for problem, line in zip(transcript.problems, transcript.lines, strict=True):
        if not problem.span.end and problem.message.startswith("The file "):
            output.complain("show", f"{name} {problem.message.removeprefix('The file ')}")
            continue
        location = name if line is None else f"{name}:{line}"
        output.complain("show", f"{location}: {problem.message}")


def _choose(conversations: Sequence[Conversation], choice: str | None) -> tuple[Conversation, str]:
    """The chosen conversation, and which of the file's it is, in words."""
    count = len(conversations)
    if choice == "all":
        if count == 1:
            return conversations[0], ""
        return joined(conversations), f", {count:,} conversations as one"
    number = 1 if choice is None else int(choice) if choice.isascii() and choice.isdecimal() else 0
    if not 1 <= number <= count:
        raise WrongUsage(
            f"--conversation {choice}: the file has {output.counted(count, 'conversation')}; "
            f"use a number from 1 to {count}, or all."
        )
    conversation = conversations[number - 1]
    if count == 1:
        return conversation, ""
    name = conversation.name
    title = f" ({visible_line(name)})" if name not in ("", str(number)) else ""
    selection_text = f", conversation {number:,} of {count:,}{title}; --conversation N or all selects others"
    return conversation, selection_text


# ---------------------------------------------------------------- the list


class _Row(NamedTuple):
    """A message that is sent, with its number in the transcript; without a role, a remark in between."""

    text: str
    tokens: int
    role: str = ""
    number: str = "–"
    mark: str = ""


_STATES = {
    "kept": "kept",
    "pinned": "pinned",
    "note": "names and values of these",
    "anchor": "how this turn began",
    "left-out": "left out",
    "current": "current message",
}
"""What the list says of a message in each state."""


def _row(message: protocol.ExplainedMessage, mark: str) -> _Row:
    remark = _STATES.get(message.state, "")
    if not remark and message.whole_tokens is not None:
        remark = f"shortened from {mark}{message.whole_tokens:,} tokens"
    elif not remark and message.preamble_tokens is not None:
        remark = f"{mark}{message.preamble_tokens:,} of them event and memory text"
    number = "–" if message.position is None else f"{message.position + 1:,}"
    return _Row(message.text, message.tokens, message.role, number=number, mark=remark)


def _why(cut: protocol.ExplainedCut, token_usage: protocol.TokenUsage) -> str:
    """Say how much is not sent and why, and where it was cut."""
    reserve = (
        f" of {token_usage.limit:,}, with {token_usage.reserved:,} reserved for the answer"
        if token_usage.reserved
        else ""
    )
    mark = "" if token_usage.counter.exact else "≈"
    if cut.strategy == "recency":
        aim = "to the last turns"
    else:
        cut_place = "the start of" if cut.starts_turn else "a place within"
        aim = f"at {cut_place} a turn, to at most {100 * cut.target:g} % of what is available"
    return (
        f"{output.counted(cut.messages, 'message')}, {mark}{cut.tokens:,} tokens not sent: "
        f"the whole is {mark}{cut.whole_tokens:,}, available are {token_usage.available:,}{reserve}; "
        f"cut {aim} ({cut.strategy})"
    )


def _folded(rows: Sequence[_Row], mark: str) -> list[_Row]:
    """One line for the messages among the rows, and the remarks between them."""
    messages = [row for row in rows if row.role]
    tokens = sum(row.tokens for row in messages)
    count = output.counted(len(messages), "more message")
    text = f"{count} sent, {mark}{tokens:,} tokens: a pipe (| less) lists all"
    return [*(row for row in rows if not row.role), _Row(text, tokens, mark="folded")]


def _print(out: Console, row: _Row, mark: str) -> None:
    if not row.role:
        style = "dim" if row.mark else "bold red"
        print_sentence(out, Text(f"— {row.text} —", style))
        return
    line = Text.assemble(
        (f"{row.number:>7}  ", "dim"),
        (f"{row.role:<9}", ROLE_COLOURS.get(row.role, "")),
        f"{f'{mark}{row.tokens:,}':>10}  ",
        (f"[{row.mark}] " if row.mark else "", "bold"),
        row.text,
    )
    out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _mark(assembled: protocol.AssembledContext) -> str:
    """The mark before an estimated count."""
    return "" if assembled.usage.counter.exact else "≈"
