"""`nexus show --messages`: what a model would be sent of a real conversation, what is cut and why.

Listed is what is sent, a line a message; where the cut is, a line says what is not. Piped, all lines are
there; on a terminal, of many only the first and the last.
"""

import os
import re
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
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.conversation.repair import Repair
from nexus_context.conversation.transcripts import Conversation, Transcript
from nexus_context.conversation.view import View
from nexus_context.errors import Severity, Span
from nexus_context.prompt.render import Fragment, Prompt
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.cli.tables import say

FORMATS = {
    "neutral": "messages",
    "openai": "OpenAI messages",
    "anthropic": "Anthropic messages",
    "claude-code": "Claude Code session",
    "tau-bench": "tau-bench records",
}
COLOURS = {"system": "cyan", "user": "green", "assistant": "yellow", "tool": "magenta"}
MOST_LINES = 60
"""Messages up to which all are listed on a terminal; of more, the first and the last of these counts."""
FIRST_LINES, LAST_LINES = 10, 30
MOST_TEXT = 200
"""Code points of a message that are shown."""
MOST_REPAIRS = 10
LEAST_CACHED = 1_024
"""Tokens below which providers cache nothing."""


class WrongUsage(Exception):  # noqa: N818 (what the user did, not what failed)
    """Options that do not fit the file; says how they would."""


class Opened(NamedTuple):
    """The conversation to show, what it is in words, and whether something of the file could not be read."""

    conversation: Conversation
    source: str
    partial: bool


def open_transcript(name: str, wanted: str | None) -> Opened | None:
    """Read the conversation `wanted` of a file: a number, `all`, or None for the first.

    The name `-` is standard input. What is wrong with the file is told on standard error; None if nothing of
    it can be shown. Raises WrongUsage for a file or a conversation that is not there.
    """
    shown = "standard input" if name == "-" else name
    if name == "-":
        data = sys.stdin.buffer.read(transcripts.LIMIT + 1)
    else:
        found = files.read_bytes(os.path.abspath(name), limit=transcripts.LIMIT)
        if found.status == "missing":
            raise WrongUsage(f"{name} does not exist.")
        if any(problem.code == "layer.not-a-file" for problem in found.problems):
            kind = "a directory" if files.is_dir(os.path.abspath(name)) else "no ordinary file"
            raise WrongUsage(f"{name} is {kind}; give a file, or - for standard input.")
        for problem in found.problems:
            output.complain("show", f"{name}: {problem.message}")
        if found.data is None:
            return None
        data = found.data
    transcript = transcripts.read(data, shown)
    _tell(shown, transcript)
    if not transcript.conversations:
        return None
    conversation, which = _chosen(transcript.conversations, wanted)
    source = f"{visible_line(os.path.basename(shown))}: {FORMATS[transcript.format or 'neutral']}{which}"
    partial = any(problem.severity is Severity.ERROR for problem in transcript.problems)
    return Opened(conversation, source, partial)


def with_prompt(snapshot: Snapshot, text: str, model: str | None) -> Snapshot:
    """The folder with another system prompt; `model` becomes its setting."""
    whole = Span(0, len(text))
    title = "system prompt of the transcript"
    fragments = (Fragment("transcript", None, title, whole, None, whole),) if text else ()
    values = {"context": {"datetime": {"placement": "event"}}, "provider": {"model": model}}
    effective = snapshot.effective
    changed = msgspec.structs.replace(effective, values=deep_merge(effective.values, values))
    layers = msgspec.structs.replace(snapshot.layers, effective=changed)
    return msgspec.structs.replace(snapshot, layers=layers, prompt=Prompt(text, fragments), is_fixed=True)


def print_sent(opened: Opened, made: assembly.AssembledContext, target: float, counter: TokenCounter) -> None:
    """What is sent, line by line, with what is not in its place, and what was repaired.

    `target` is the share of the budget that a cut aims at.
    """
    out = output.console()
    say(out, opened.source)
    if opened.conversation.system is not None:
        say(out, "The system prompt is the transcript's own; the folder's is not sent.")
    out.print()
    rows = list(_rows(made, target, counter))
    if out.is_terminal and len(rows) > MOST_LINES:
        rows[FIRST_LINES:-LAST_LINES] = _folded(rows[FIRST_LINES:-LAST_LINES], _mark(made))
    for row in rows:
        _print(out, row, _mark(made))
    indexes = _indexes(made.view)
    counts = Counter(_repaired(repair, indexes) for repair in made.view.sound_messages().repairs)
    for said, count in list(counts.items())[:MOST_REPAIRS]:
        times = f" ({count:,} times)" if count > 1 else ""
        say(out, Text.assemble(("repaired: ", "yellow"), said, times))
    if len(counts) > MOST_REPAIRS:
        out.print(Text(f"and {_count(len(counts) - MOST_REPAIRS, 'other repair')}", "yellow"))
    out.print()


def print_prefix(made: assembly.AssembledContext) -> None:
    """What of this request the next one begins with again, where providers cache so little."""
    tokens = made.metadata["stablePrefixTokens"]
    if tokens >= LEAST_CACHED:
        say(
            output.console(),
            f"{_mark(made)}{tokens:,} tokens (tools, system prompt, history) will be the same at the start "
            "of the next request, so that a provider's cache can serve them.",
        )


# ---------------------------------------------------------------- reading


def _tell(name: str, transcript: Transcript) -> None:
    """The problems, with their lines."""
    for problem, line in zip(transcript.problems, transcript.lines, strict=True):
        if not problem.span.end and problem.message.startswith("The file "):
            said = f"{name} {problem.message.removeprefix('The file ')}"
            output.complain("show", said)
            continue
        place = name if line is None else f"{name}:{line}"
        output.complain("show", f"{place}: {problem.message}")


def _chosen(given: Sequence[Conversation], wanted: str | None) -> tuple[Conversation, str]:
    """The wanted conversation, and which of the file's it is, in words."""
    if wanted == "all":
        which = f", {len(given):,} conversations as one" if len(given) > 1 else ""
        return (transcripts.joined(given) if which else given[0]), which
    number = 1 if wanted is None else int(wanted) if wanted.isascii() and wanted.isdecimal() else 0
    if not 1 <= number <= len(given):
        raise WrongUsage(
            f"--conversation {wanted}: the file has {_count(len(given), 'conversation')}; "
            f"give a number from 1 to {len(given)}, or all."
        )
    if len(given) == 1:
        return given[0], ""
    name = given[number - 1].name
    called = f" ({visible_line(name)})" if name not in ("", str(number)) else ""
    which = f", conversation {number:,} of {len(given):,}{called}; --conversation N or all shows others"
    return given[number - 1], which


# ---------------------------------------------------------------- the list


class _Row(NamedTuple):
    """A message that is sent, with its number in the transcript; without a role, what is said in between."""

    text: str
    tokens: int
    role: str = ""
    number: str = "–"
    mark: str = ""


def _rows(made: assembly.AssembledContext, target: float, counter: TokenCounter) -> Iterator[_Row]:
    view, sums = made.view, made.view.history.sums(counter)
    messages = view.history.messages
    spent = made.metadata["tokens"]
    unsent = _unsent(view)
    if made.prompt.text:
        yield _Row(_first_line(made.prompt.text), spent.get("system", 0), "system")

    def row(index: int, mark: str = "") -> _Row:
        message, tokens = messages[index], sums[index + 1] - sums[index]
        if index in view.shortened:
            mark = f"shortened from {_mark(made)}{tokens:,} tokens"
            message = view.shortened[index]
            tokens = count_message(counter, content_of(message), message.tool_calls)
        if index in unsent:
            mark = "left out"
        return _Row(_line(message), tokens, message.role, f"{index + 1:,}", mark)

    if view.start:
        kept = "kept" if view.strategy == "middle_out" else "pinned"
        yield from (row(index, kept) for index in range(view.head))
        lost = sums[view.start] - sums[view.head]
        if view.anchor is not None:
            lost -= sums[view.anchor + 1] - sums[view.anchor]
        if view.removed:
            yield _Row(_why(made, lost, target), lost)
        if view.note is not None:
            said = _first_line(text_of(view.note))
            yield _Row(said, view.note_tokens, "user", mark="names and values of these")
        if view.anchor is not None:
            yield row(view.anchor, "how this turn began")
    yield from (row(index) for index in range(view.start, view.end))
    if made.current_message is not None:
        yield _Row(_line(made.current_message), spent.get("event", 0), "user", mark="current message")


def _indexes(view: View) -> list[int | None]:
    """The index in the transcript of each message among `view.messages()`; None for the note."""
    note = () if view.note is None else (None,)
    anchor = () if view.anchor is None else (view.anchor,)
    return [*range(view.head), *note, *anchor, *range(view.start, view.end)]


def _unsent(view: View) -> set[int]:
    """The indexes of messages that are listed and that no provider is sent."""
    sound = view.sound_messages()
    if not sound.repairs:
        return set()
    sent = set(sound.origins)
    return {index for place, index in enumerate(_indexes(view)) if index is not None and place not in sent}


def _repaired(repair: Repair, indexes: Sequence[int | None]) -> str:
    """What was repaired, with the number that its message has in the list."""
    said = repair.text[:1].lower() + repair.text[1:].rstrip(".")
    if repair.index is not None and repair.index < len(indexes):
        index = indexes[repair.index]
        number = "–" if index is None else f"{index + 1:,}"
        said = re.sub(rf"\bmessage {repair.index + 1}\b", f"message {number}", said)
    return visible_line(said)


def _why(made: assembly.AssembledContext, lost: int, target: float) -> str:
    """How much is not sent and why; where it was cut, and how far."""
    view, spent = made.view, made.usage
    everything = spent.total - view.tokens + view.original_tokens
    kept = f" of {spent.limit:,}, {spent.reserved:,} being kept for the answer" if spent.reserved else ""
    mark = _mark(made)
    if view.strategy == "recency":
        aim = "to the last turns"
    else:
        starts = view.history.messages[view.start].role == "user"
        where = "the start of" if starts else "a place within"
        aim = f"at {where} a turn, to at most {100 * target:g} % of what is available"
    return (
        f"{_count(view.removed, 'message')}, {mark}{lost:,} tokens not sent: "
        f"all would be {mark}{everything:,}, available are {spent.available:,}{kept}; "
        f"cut {aim} ({view.strategy})"
    )


def _folded(rows: Sequence[_Row], mark: str) -> list[_Row]:
    """A line for the messages among the rows, and what is said in between."""
    sent = [row for row in rows if row.role]
    tokens = sum(row.tokens for row in sent)
    count = _count(len(sent), "more message")
    said = f"{count} sent, {mark}{tokens:,} tokens: piped (| less), all are listed"
    return [*(row for row in rows if not row.role), _Row(said, tokens, mark="folded")]


def _print(out: Console, row: _Row, mark: str) -> None:
    if not row.role:
        style = "dim" if row.mark else "bold red"
        say(out, Text(f"— {row.text} —", style))
        return
    line = Text.assemble(
        (f"{row.number:>7}  ", "dim"),
        (f"{row.role:<9}", COLOURS.get(row.role, "")),
        f"{f'{mark}{row.tokens:,}':>10}  ",
        (f"[{row.mark}] " if row.mark else "", "bold"),
        row.text,
    )
    out.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _line(message: Message) -> str:
    """A message in one line: how its text begins, what else it holds, the calls that it makes."""
    content = content_of(message)
    said = [_first_line(text_of(message))]
    if isinstance(content, list):
        said += [f"[{kind}]" for kind in map(_kind, content) if kind != "text"]
    for call in message.tool_calls:
        given: Any = call.arguments
        encoded = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        said.append(f"→ {call.name} {encoded[:MOST_TEXT]}")
    return visible_line(" ".join(filter(None, said))[: 2 * MOST_TEXT]) or "(empty)"


def _kind(part: Any) -> str:
    return str(part.get("type", "part")) if isinstance(part, dict) else "part"


def _first_line(text: str) -> str:
    """The first line that is not blank, and whether there is more."""
    lines = text[: MOST_TEXT * 8].strip().splitlines() or [""]
    head = lines[0][:MOST_TEXT].rstrip()
    return visible_line(head + (" …" if len(head) < len(text.strip()) else ""))


def _mark(made: assembly.AssembledContext) -> str:
    """What stands before a count that is an estimate."""
    return "" if made.usage.exact else "≈"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
