"""Who writes a summary, and what they are asked.

1. The request repeats the messages as they were last sent and puts the instruction last, as a user's message:
   so all that a provider has cached of the conversation is read from its cache.
2. Summarizers are asked in order. One that fails or writes nothing is passed over, and said so. When nobody
   writes a summary, that is a `CompactionError`, and the conversation stays as it was.
3. What a model answers is a summary only if it has a heading, as the instruction asks for (an apology has
   none), and is no longer than MOST_OVER of the limit: models count badly.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from nexus_context.conversation.compaction.errors import CompactionError
from nexus_context.conversation.compaction.extract_facts import Harvest
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.prompt import texts
from nexus_context.tokens import TokenCounter
from nexus_context.tokens.estimates import json_text

LONGEST_QUOTE = 2_000
"""Characters of one message's text in `build_summarize_prompt`."""
MOST_OVER = 1.5
"""Times the limit that a model's summary may take: what it is asked for is less than there is room for."""

_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+\S|\*\*\S)", re.MULTILINE)


class SummaryRequest(msgspec.Struct, frozen=True):
    """What a summarizer is asked. `limit` is the most tokens that its text may have."""

    messages: tuple[Message, ...]  # to send to a model: as last sent, then the instruction
    replaced: tuple[Message, ...]  # what the summary will stand for
    limit: int
    pins: tuple[str, ...] = ()
    instructions: str | None = None
    model: str | None = None


class Summarizer(Protocol):
    """Writes summaries. Whatever it raises counts as a failure of this one attempt."""

    @property
    def name(self) -> str:
        """Who it is, for the receipt: `editor`, `anthropic`, `extractive`."""

    async def summarize(self, request: SummaryRequest) -> str:
        """A summary of `request.replaced`, of at most `request.limit` tokens."""


class Written(msgspec.Struct, frozen=True):
    """A summary, who wrote it, and who failed before that and why."""

    text: str
    summarizer: str
    failures: tuple[str, ...] = ()
    model: str | None = None
    harvest: Harvest | None = None  # what the replaced messages say, where the summarizer worked that out


async def first_summary(summarizers: Iterable[Summarizer], request: SummaryRequest) -> Written:
    """The first summary that is not empty. `CompactionError` if there is none."""
    failures: list[str] = []
    for summarizer in summarizers:
        try:
            text = await summarizer.summarize(request)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the next one is asked
            failures.append(f"{summarizer.name}: {str(error) or type(error).__name__}")
            continue
        if text and text.strip():
            return Written(text.strip(), summarizer.name, tuple(failures))
        failures.append(f"{summarizer.name}: an empty summary")
    reasons = "; ".join(failures) or "there is no summarizer"
    raise CompactionError(
        f"Nothing was compacted, because nobody wrote a summary ({reasons}).", code="no-summary"
    )


def flaw_of(answer: str, *, limit: int, counter: TokenCounter) -> str | None:
    """Why what a model answered is no summary of at most `limit` tokens; None where it is one, or empty."""
    if not answer.strip():
        return None  # `first_summary` says so
    if not _HEADING.search(answer):
        return "the answer is no summary: it has none of the headings that were asked for"
    tokens = counter.count(answer)
    if tokens > MOST_OVER * limit:
        return f"the summary takes {tokens:,} tokens, and {limit:,} were asked for"
    return None


def instruction(
    *, limit: int, kept: int = 0, pins: Sequence[str] = (), instructions: str | None = None
) -> Message:
    """What a model is asked, as the last message: the newest `kept` messages before it stay as they are."""
    parts = [texts.text("compaction_instruction").format(limit=limit)]
    if kept:
        parts.append(texts.text("compaction_kept").format(kept=kept))
    if pins:
        pinned = "\n".join(f"<pin>\n{pin}\n</pin>" for pin in pins)
        parts.append(texts.text("compaction_pins").format(pins=pinned))
    if instructions and instructions.strip():
        parts.append(texts.text("compaction_own").format(instructions=instructions.strip()))
    return Message("user", "\n\n".join(parts))


def build_summarize_prompt(messages: Sequence[Message], *, limit: int = 4_000) -> str:
    """The conversation as one text with the instruction last, for a model that is sent nothing else."""
    asked = text_of(instruction(limit=limit))
    conversation = "\n\n".join(map(_quoted, messages))
    return texts.text("compaction_transcript").format(conversation=conversation, instruction=asked)


def _quoted(message: Message) -> str:
    lines = [f"<{message.role}>"]
    content = content_of(message)
    if content:
        lines.append(shortened(text_of(message) or json_text(content), LONGEST_QUOTE))
    lines += [
        shortened(f"{call.name} {json_text(call.arguments)}", LONGEST_QUOTE) for call in message.tool_calls
    ]
    return "\n".join([*lines, f"</{message.role}>"])


def shortened(text: str, most: int) -> str:
    """The text in at most about `most` characters: its beginning, a note of what is left out, its end."""
    if len(text) <= most:
        return text
    tail = most // 3
    note = texts.text("summary_shortened").format(characters=len(text) - most)
    return f"{text[: most - tail]} {note} {text[-tail:]}"
