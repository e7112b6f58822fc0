"""Reads chat histories of aider (`.aider.chat.history.md`): one conversation for each start of aider.

Source: aider `io.py` (`append_chat_history`) and `utils.py` (`split_chat_history_markdown`).

1. A line `# aider chat started at …` begins a conversation.
2. The user's lines begin with `#### `, aider's own with `> `; both end with two spaces, so headings and
   quotations in an answer are not confused with them. In a file without these spaces, the beginnings alone
   decide.
3. All other lines are the model's answer. The file says nothing of the system prompt, files or tool calls.
4. Commands to aider and its own texts are left out and counted, except commands that ask the model something.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.transcripts.conversation import Conversation, Draft
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.errors import Span

_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*\r?$", re.MULTILINE)
_USER, _AIDER, _END = "#### ", "> ", "  "
_CUT_MARKS = ("####", ">", "# aider chat started at ")  # a file that ends with the beginning of one was cut
_ASKS = ("/ask ", "/code ", "/architect ", "/context ", "/help ")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MODEL = re.compile(r"(?:Main model|Model): (\S+) with ")
_AIDER_OUTPUT = "that aider said itself"
_COMMANDS = "with commands to aider"


class _Block(NamedTuple):
    """Consecutive lines of one speaker; `span` is their place in the file."""

    speaker: str
    text: str
    span: Span


def is_text(text: str) -> bool:
    """Whether a text is a chat history of aider."""
    return text.lstrip()[:1] not in ("{", "[") and _START.search(text) is not None


def convert(text: str, report: Report) -> list[Conversation]:
    """Convert a history to conversations, in order."""
    starts = [*_START.finditer(text)]
    spaced = re.search(r"^#### .*  \r?$", text, re.MULTILINE) is not None
    conversations = []
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        draft = Draft(report)
        for block in _blocks(text, start.end(), end, spaced):
            _add(draft, block)
        conversations.append(draft.conversation(name=start[1]))
    report.leave("before", "before the first start of aider", int(bool(text[: starts[0].start()].strip())))
    return conversations


def _add(draft: Draft, block: _Block) -> None:
    record = Record(None, block.span, "The line")
    if block.speaker == "aider":
        draft.report.leave("own", _AIDER_OUTPUT, block.text.count("\n") + 1, "line")
        model = _MODEL.search(block.text)
        draft.model = draft.model or (model[1] if model else None)
        return
    if block.speaker == "user":
        command = block.text.startswith(("/", "!")) and not block.text.startswith(_ASKS)
        if command or block.text == "<blank>":
            draft.report.leave("command", _COMMANDS, noun="message")
            return
    draft.add(record, {"role": block.speaker, "content": block.text})


def _blocks(text: str, start: int, end: int, spaced: bool) -> Iterator[_Block]:
    """The blocks of a conversation; those of white space only are skipped."""
    speaker, lines, block_start, block_end = "", list[str](), start, start
    at = start
    for match in _LINE.finditer(text, start, end):
        line = match[0]
        content = line.rstrip("\r\n")
        is_cut = not line.endswith("\n")
        if is_cut and any(mark.startswith(content) or content.startswith(mark) for mark in _CUT_MARKS):
            break
        line_speaker, line_text = _line(content, spaced and not is_cut)
        if line_speaker == "assistant" and not content.strip() and speaker in ("user", "aider"):
            line_speaker = "blank"
        if line_speaker != speaker:
            yield from _block(speaker, lines, Span(block_start, block_end))
            speaker, lines, block_start = line_speaker, [], at
        lines.append(line_text)
        at += len(line)
        block_end = at
    yield from _block(speaker, lines, Span(block_start, block_end))


def _block(speaker: str, lines: list[str], span: Span) -> Iterator[_Block]:
    text = "\n".join(lines).strip("\n" if speaker == "assistant" else None)
    if speaker not in ("", "blank") and text.strip():
        yield _Block(speaker, text, span)


def _line(line: str, spaced: bool) -> tuple[str, str]:
    """Whose line it is, and what it says."""
    for speaker, mark in (("user", _USER), ("aider", _AIDER)):
        if line.startswith(mark) and (not spaced or line.endswith(_END)):
            return speaker, line[len(mark) :].rstrip()
    return "assistant", line
