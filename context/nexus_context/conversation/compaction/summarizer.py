"""Asks summarizers for a summary, and checks their answers.

1. The request repeats the messages as they were last sent and adds the instruction as the last user message,
   so that the provider's cache serves the whole conversation.
2. Summarizers are tried in order. One that fails or returns nothing is skipped and listed in the receipt. If
   all fail, `CompactionError` is raised and the conversation stays unchanged.
3. A model's answer counts as a summary only if it has a heading, as the instruction demands, and at most
   MOST_OVER times the tokens of the limit. An apology has no heading. Models count tokens badly.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from nexus_context.conversation.compaction.extract_facts import Facts
from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.message_secrets import without_secrets
from nexus_context.folder.prompt import texts
from nexus_context.tokens import TokenCounter
from nexus_context.tokens.estimates import json_text

SUMMARY_TOKENS = 4_000
"""The tokens of a summary that is requested without a limit."""
MOST_OVER = 1.5
"""Times the limit that a model's summary may take; the instruction asks for less than there is room for."""

_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+\S|\*\*\S)", re.MULTILINE)


class SummaryRequest(msgspec.Struct, frozen=True):
    """A request to a summarizer. `limit` is the largest number of tokens that its text may have."""

    messages: tuple[Message, ...]  # to send to a model: as last sent, then the instruction
    replaced: tuple[Message, ...]  # what the summary will stand for
    limit: int
    preserved: tuple[Message, ...] = ()  # what stays beside the summary
    pins: tuple[str, ...] = ()
    instructions: str | None = None
    model: str | None = None


class Summarizer(Protocol):
    """Writes summaries. If it raises an exception, only this attempt fails, and the next summarizer is
    tried.
    """

    @property
    def name(self) -> str:
        """The summarizer's name in the receipt, such as `editor`, `anthropic` or `extractive`."""
        ...

    async def summarize(self, request: SummaryRequest) -> str:
        """Return a summary of `request.replaced` with at most `request.limit` tokens."""
        ...


class Written(msgspec.Struct, frozen=True):
    """A summary and its summarizer. `failures` says which summarizers were tried before and why each
    failed.
    """

    text: str
    summarizer: str
    failures: tuple[str, ...] = ()
    model: str | None = None
    facts: Facts | None = None  # of the replaced messages, if the summarizer extracted them
    index: IdentifierIndex | None = None  # of their names, likewise


async def first_summary(summarizers: Iterable[Summarizer], request: SummaryRequest) -> Written:
    """Try the summarizers in order and return the first summary that is not empty. Raise `CompactionError` if
    there is none.
    """
    failures: list[str] = []
    for summarizer in summarizers:
        try:
            text = await summarizer.summarize(request)
        except Exception as error:  # noqa: BLE001 - whatever it raises, the next one is tried
            failures.append(f"{summarizer.name}: {str(error) or type(error).__name__}")
            continue
        if text and text.strip():
            return Written(text.strip(), summarizer.name, tuple(failures))
        failures.append(f"{summarizer.name}: an empty summary")
    reasons = "; ".join(failures) or "there is no summarizer"
    raise CompactionError(
        f"Nothing was compacted because no summarizer wrote a summary ({reasons}).", code="no-summary"
    )


def find_flaw(answer: str, *, limit: int, counter: TokenCounter) -> str | None:
    """Return why a model's answer is not a summary of at most `limit` tokens. Return None if it is one, or if
    it is empty.
    """
    if not answer.strip():
        return None  # `first_summary` reports it
    if not _HEADING.search(answer):
        return "the answer is not a summary: it has none of the headings that were requested"
    tokens = counter.count(answer)
    if tokens > MOST_OVER * limit:
        return f"the summary takes {tokens:,} tokens; at most {limit:,} were requested"
    return None


def build_summarize_prompt(
    messages: Iterable[Message] = (),
    *,
    limit: int = SUMMARY_TOKENS,
    preserved: int = 0,
    pins: Sequence[str] = (),
    instructions: str | None = None,
) -> str:
    """Build the prompt that asks a model for a summary of at most `limit` tokens.

    `messages` are put before the question as text, for a model that takes a single text. Leave them out if
    the request has the messages themselves (`Plan.request`). The newest `preserved` messages stay beside the
    summary, and the prompt says so.
    """
    parts = [transcript] if (transcript := _transcript(messages)) else []
    parts.append(texts.text("compaction_instruction").format(limit=limit))
    if preserved:
        parts.append(texts.text("compaction_kept").format(kept=preserved))
    if pins:
        pinned = "\n".join(f"<pin>\n{pin}\n</pin>" for pin in pins)
        parts.append(texts.text("compaction_pins").format(pins=pinned))
    if instructions and instructions.strip():
        parts.append(texts.text("compaction_own").format(instructions=instructions.strip()))
    return "\n\n".join(parts)


def _transcript(messages: Iterable[Message]) -> str:
    """Messages as text: who speaks, what is said, and the tool calls with their arguments."""
    blocks = []
    for message in map(without_secrets, messages):
        calls = [f"{call.name} {json_text(call.arguments)}" for call in message.tool_calls]
        speaker = f"{message.role} {message.name}" if message.name else message.role
        lines = [line for line in (text_of(message), *calls) if line]
        blocks.append("\n".join([f"[{speaker}]", *lines]))
    return "\n\n".join(blocks)
