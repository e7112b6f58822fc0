"""`nexus show --messages`: what a model is sent of a real conversation, what is cut and why.

The list has a line per message sent, and a line for the cut. In a pipe it is complete; on a terminal, the
middle of a long list is left out.
"""

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.text import Text

from nexus_context import assembly, files
from nexus_context.config.merge import deep_merge
from nexus_context.conversation import transcripts
from nexus_context.conversation.message import Message, content_of, sent_content, text_of, without_preamble
from nexus_context.conversation.repair import Repair
from nexus_context.conversation.transcripts import Conversation, Transcript
from nexus_context.conversation.view import View
from nexus_context.errors import Severity, Span
from nexus_context.prompt.render import Fragment, Prompt
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.visible import visible_line
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.tables import ROLE_COLOURS, print_sentence

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
    "opencode": "opencode session",
    "claude-web": "Claude's data export",
    "aider": "aider history",
}
MOST_LINES = 60
"""Messages to list on a terminal; of longer conversations, the first and the last are listed."""
FIRST_LINES, LAST_LINES = 10, 30
MOST_TEXT = 200
"""Code points of a message to print."""
MOST_REPAIRS = 10
LEAST_CACHED = 1_024
"""Tokens below which providers cache nothing."""


class WrongUsage(Exception):  # noqa: N818 (what the user did, not what failed)
    """Options that do not fit the file; the message says what fits."""


class Opened(NamedTuple):
    """The conversation to print, what it is in words, and whether part of the file could not be read."""

    conversation: Conversation
    source: str
    partial: bool


def open_transcript(name: str, choice: str | None) -> Opened | None:
    """Read one conversation of a file: `choice` is its number, `all`, or None for the first.

    The name `-` is standard input. Problems of the file are printed to standard error; None if nothing of it
    could be read. WrongUsage for a file or a conversation that does not exist.
    """
    label = "standard input" if name == "-" else name
    if name == "-":
        data = sys.stdin.buffer.read(transcripts.LIMIT + 1)
    else:
        read = files.read_bytes(invocation.current().absolute(name), limit=transcripts.LIMIT)
        if read.status == "missing":
            raise WrongUsage(f"{name} does not exist.")
        if any(problem.code == "layer.not-a-file" for problem in read.problems):
            kind = (
                "a directory" if files.is_dir(invocation.current().absolute(name)) else "not a regular file"
            )
            raise WrongUsage(f"{name} is {kind}; give a file, or - for standard input.")
        for problem in read.problems:
            output.complain("show", f"{name}: {problem.message}")
        if read.data is None:
            return None
        data = read.data
    transcript = transcripts.read_transcript(data, label)
    _print_problems(label, transcript)
    if not transcript.conversations:
        return None
    conversation, which = _choose(transcript.conversations, choice)
    source = f"{visible_line(os.path.basename(label))}: {FORMATS[transcript.format or 'neutral']}{which}"
    partial = any(problem.severity is Severity.ERROR for problem in transcript.problems)
    return Opened(conversation, source, partial)


def with_prompt(snapshot: Snapshot, text: str, model: str | None) -> Snapshot:
    """The folder with this system prompt; `model` becomes its setting."""
    whole = Span(0, len(text))
    title = "system prompt of the transcript"
    fragments = (Fragment("transcript", None, title, whole, path=None, source=whole),) if text else ()
    values = {"context": {"datetime": {"placement": "event"}}, "provider": {"model": model}}
    effective = snapshot.effective
    changed = msgspec.structs.replace(effective, values=deep_merge(effective.values, values))
    layers = msgspec.structs.replace(snapshot.layers, effective=changed)
    return msgspec.structs.replace(snapshot, layers=layers, prompt=Prompt(text, fragments), is_fixed=True)


def print_sent(
    opened: Opened, context: assembly.AssembledContext, target: float, counter: TokenCounter
) -> None:
    """Print what is sent, line by line, the cut in its place, and what was repaired.

    `target` is the share of the budget that a cut aims at.
    """
    out = output.console()
    print_sentence(out, opened.source)
    if opened.conversation.system is not None:
        print_sentence(out, "The system prompt is the transcript's own; the folder's is not sent.")
    out.print()
    rows = list(_rows(context, target, counter))
    if out.is_terminal and len(rows) > MOST_LINES:
        rows[FIRST_LINES:-LAST_LINES] = _folded(rows[FIRST_LINES:-LAST_LINES], _mark(context))
    for row in rows:
        _print(out, row, _mark(context))
    indexes = _indexes(context.view)
    counts = Counter(_repaired(repair, indexes) for repair in context.view.sound_messages().repairs)
    for repair_text, count in list(counts.items())[:MOST_REPAIRS]:
        times = f" ({count:,} times)" if count > 1 else ""
        print_sentence(out, Text.assemble(("repaired: ", "yellow"), repair_text, times))
    if len(counts) > MOST_REPAIRS:
        out.print(Text(f"and {output.counted(len(counts) - MOST_REPAIRS, 'other repair')}", "yellow"))
    out.print()


def print_prefix(context: assembly.AssembledContext) -> None:
    """Print how much the next request has in common with this one, if providers cache that."""
    tokens = context.metadata["stablePrefixTokens"]
    if tokens >= LEAST_CACHED:
        print_sentence(
            output.console(),
            f"{_mark(context)}{tokens:,} tokens (tools, system prompt, history) will be the same at the "
            "start of the next request: a provider's cache can serve them.",
        )


def print_pending(context: assembly.AssembledContext, session: str) -> None:
    """Print what changed since the prompt and tools above were sent, and what applying it now costs."""
    pending = context.pending
    if pending is None:
        return
    out = output.console()
    for change in pending.changes:
        name = f"the tool {change.label}" if change.is_tool else change.path or change.label
        told = "a message told it" if change.told else "the next message tells it"
        sentence = f"{visible_line(name)} was {change.kind} since it was sent: {told}."
        print_sentence(out, Text.assemble(("pending: ", "yellow"), sentence))
    cost = "" if pending.cost is None else f" (${pending.cost:.4f})"
    lost = " Thinking in the history is lost then." if pending.loses_reasoning else ""
    print_sentence(
        out,
        f"To begin with the present files instead, {_mark(context)}{pending.tokens:,} tokens are written "
        f"again{cost}: nexus sessions rebase {shlex.quote(session)}.{lost}",
    )
    out.print()


# ---------------------------------------------------------------- reading


def _print_problems(name: str, transcript: Transcript) -> None:
    """Print the problems, with their lines, to standard error."""
    for problem, line in zip(transcript.problems, transcript.lines, strict=True):
        if not problem.span.end and problem.message.startswith("The file "):
            output.complain("show", f"{name} {problem.message.removeprefix('The file ')}")
            continue
        place = name if line is None else f"{name}:{line}"
        output.complain("show", f"{place}: {problem.message}")


def _choose(conversations: Sequence[Conversation], choice: str | None) -> tuple[Conversation, str]:
    """The chosen conversation, and which of the file's it is, in words."""
    count = len(conversations)
    if choice == "all":
        if count == 1:
            return conversations[0], ""
        return transcripts.joined(conversations), f", {count:,} conversations as one"
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
    which = f", conversation {number:,} of {count:,}{title}; --conversation N or all selects others"
    return conversation, which


# ---------------------------------------------------------------- the list


class _Row(NamedTuple):
    """A message that is sent, with its number in the transcript; without a role, a remark in between."""

    text: str
    tokens: int
    role: str = ""
    number: str = "–"
    mark: str = ""


def _rows(context: assembly.AssembledContext, target: float, counter: TokenCounter) -> Iterator[_Row]:
    view, sums = context.view, context.view.history.sums(counter)
    spent = context.metadata["tokens"]
    unsent = _unsent(view)
    if context.prompt.text:
        yield _Row(_first_line(context.prompt.text), spent.get("system", 0), "system")

    def row(index: int, mark: str = "") -> _Row:
        mark = "left out" if index in unsent else mark
        return _message_row(context, index, counter, mark)

    if view.start:
        mark = "kept" if view.strategy == "middle_out" else "pinned"
        yield from (row(index, mark) for index in range(view.head))
        lost = sums[view.start] - sums[view.head]
        if view.anchor is not None:
            lost -= sums[view.anchor + 1] - sums[view.anchor]
        if view.removed:
            yield _Row(_why(context, lost, target), lost)
        if view.note is not None:
            yield _Row(
                _first_line(text_of(view.note)), view.note_tokens, "user", mark="names and values of these"
            )
        if view.anchor is not None:
            yield row(view.anchor, "how this turn began")
    yield from (row(index) for index in range(view.start, view.end))
    if context.current_message is not None:
        yield _Row(_line(context.current_message), spent.get("event", 0), "user", mark="current message")


def _message_row(context: assembly.AssembledContext, index: int, counter: TokenCounter, mark: str) -> _Row:
    """The row of a message of the history; `mark` outranks how it is sent."""
    view = context.view
    message = view.history.messages[index]
    sent = view.replaced.get(index, message)
    tokens = _tokens(sent, counter)
    if index in view.shortened:
        mark = mark or f"shortened from {_mark(context)}{_tokens(message, counter):,} tokens"
        message = sent
    elif sent.preamble is not None:
        earlier = tokens - _tokens(without_preamble(sent), counter)
        mark = mark or f"{_mark(context)}{earlier:,} of them event and memory text"
    return _Row(_line(message), tokens, message.role, number=f"{index + 1:,}", mark=mark)


def _tokens(message: Message, counter: TokenCounter) -> int:
    return count_message(counter, sent_content(message), message.tool_calls, message.role)


def _indexes(view: View) -> list[int | None]:
    """The index in the transcript of each message among `view.messages()`; None for the note."""
    note = () if view.note is None else (None,)
    anchor = () if view.anchor is None else (view.anchor,)
    return [*range(view.head), *note, *anchor, *range(view.start, view.end)]


def _unsent(view: View) -> set[int]:
    """The indexes of messages that are listed, but sent to no provider."""
    sound = view.sound_messages()
    if isinstance(sound.origins, range):
        return set()
    sent = set(sound.origins)
    return {index for place, index in enumerate(_indexes(view)) if index is not None and place not in sent}


def _repaired(repair: Repair, indexes: Sequence[int | None]) -> str:
    """The text of a repair, with the number of its message in the list."""
    text = repair.text[:1].lower() + repair.text[1:].rstrip(".")
    if repair.index is not None and repair.index < len(indexes):
        index = indexes[repair.index]
        number = "–" if index is None else f"{index + 1:,}"
        text = re.sub(rf"\bmessage {repair.index + 1}\b", f"message {number}", text)
    return visible_line(text)


def _why(context: assembly.AssembledContext, lost: int, target: float) -> str:
    """How much is not sent and why; where it was cut, and how far."""
    view, spent = context.view, context.usage
    everything = spent.total - view.tokens + view.original_tokens
    reserve = (
        f" of {spent.limit:,}, with {spent.reserved:,} reserved for the answer" if spent.reserved else ""
    )
    mark = _mark(context)
    if view.strategy == "recency":
        aim = "to the last turns"
    else:
        starts = view.history.messages[view.start].role == "user"
        where = "the start of" if starts else "a place within"
        aim = f"at {where} a turn, to at most {100 * target:g} % of what is available"
    return (
        f"{output.counted(view.removed, 'message')}, {mark}{lost:,} tokens not sent: "
        f"the whole is {mark}{everything:,}, available are {spent.available:,}{reserve}; "
        f"cut {aim} ({view.strategy})"
    )


def _folded(rows: Sequence[_Row], mark: str) -> list[_Row]:
    """One line for the messages among the rows, and the remarks between them."""
    sent = [row for row in rows if row.role]
    tokens = sum(row.tokens for row in sent)
    count = output.counted(len(sent), "more message")
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


def _line(message: Message) -> str:
    """A message in one line: the beginning of its text, its other parts, its calls."""
    content = content_of(message)
    words = [_first_line(text_of(message))]
    if isinstance(content, list):
        words += [f"[{kind}]" for kind in map(_kind, content) if kind != "text"]
    for call in message.tool_calls:
        arguments: Any = call.arguments
        encoded = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        words.append(f"→ {call.name} {encoded[:MOST_TEXT]}")
    return visible_line(" ".join(filter(None, words))[: 2 * MOST_TEXT]) or "(empty)"


def _kind(part: Any) -> str:
    return str(part.get("type", "part")) if isinstance(part, dict) else "part"


def _first_line(text: str) -> str:
    """The first line that is not blank, with an ellipsis if there is more."""
    lines = text[: MOST_TEXT * 8].strip().splitlines() or [""]
    head = lines[0][:MOST_TEXT].rstrip()
    return visible_line(head + (" …" if len(head) < len(text.strip()) else ""))


def _mark(context: assembly.AssembledContext) -> str:
    """The mark before an estimated count."""
    return "" if context.usage.exact else "≈"
