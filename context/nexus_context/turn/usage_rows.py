"""Counts what the parts of a request cost, row by row."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nexus_context.conversation.body_shape import BodyShape, added_tokens
from nexus_context.conversation.budget import UsageRow
from nexus_context.conversation.message import GAP, Message, sent_content
from nexus_context.errors import Span
from nexus_context.folder.prompt.render import Fragment, Prompt
from nexus_context.folder.prompt.token_attribution import RowKey, fragment_tokens, row_key
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import TokenCounter, count_message, count_spans
from nexus_context.tokens.estimates import is_estimated
from nexus_context.turn.last_message import git_text, head, takes_memory
from nexus_context.turn.request import Request

CHANGES = "changed instructions and tools"
"""Label of the row for a note in the current message."""


def system_rows(prompt: Prompt, counter: TokenCounter) -> list[UsageRow]:
    """Return a row for each file of each layer and for each other section, in the order of the prompt."""
    return prompt_rows(prompt, fragment_tokens(prompt, counter), counter)


def prompt_rows(prompt: Prompt, counts: Sequence[int], counter: TokenCounter) -> list[UsageRow]:
    tokens: dict[RowKey, int] = {}
    sources: dict[RowKey, list[Fragment]] = {}
    for fragment, count in zip(prompt.fragments, counts, strict=True):
        key = row_key(fragment)
        tokens[key] = tokens.get(key, 0) + count
        sources.setdefault(key, []).append(fragment)
    rows = []
    for key, count in tokens.items():
        path, span = _source(sources[key])
        rows.append(UsageRow("system", key[2], count, counter.exact, path=path, span=span))
    return rows


def _source(fragments: Sequence[Fragment]) -> tuple[str | None, Span | None]:
    """The file of the first fragment with a source text, and the range that its fragments cover."""
    first_fragment = next(
        (fragment for fragment in fragments if fragment.source.start < fragment.source.end), fragments[0]
    )
    if first_fragment.path is None:
        return None, None
    own_spans = [fragment.source for fragment in fragments if fragment.path == first_fragment.path]
    return first_fragment.path, Span(
        min(span.start for span in own_spans), max(span.end for span in own_spans)
    )


def event_rows(
    snapshot: Snapshot,
    request: Request,
    current: Message | None,
    counter: TokenCounter,
    *,
    now: datetime | None,
    shape: BodyShape,
    memory: int = 0,
) -> tuple[UsageRow, ...]:
    """Return the rows of the last message: git's state, the note on changes, and the rest without the
    `memory` tokens.

    Memory has its own rows. If the body sends the note as a message of its own, its row includes the tokens
    that this adds.
    """
    if current is None:
        return ()
    content = sent_content(current)
    git = 0 if now is None else _git_tokens(snapshot, request, content, counter, now=now)
    changes = _note_tokens(current, content, counter)
    tokens = count_message(counter, content, current.tool_calls, current.role) - memory - git - changes
    images = isinstance(content, list) and any(
        isinstance(part, dict) and is_estimated(part) for part in content
    )
    added = added_tokens(current, counter, shape) if changes or current.name else 0
    parts = (("git state", git), (CHANGES, changes + added if changes else 0))
    part_rows = (UsageRow("event", label, size, counter.exact) for label, size in parts if size)
    is_empty = request.message is not None and request.message.content == ""
    label = "current message (still empty)" if is_empty else "current message"
    tokens += 0 if changes else added
    return (*part_rows, UsageRow("event", label, tokens, counter.exact and not images))


def _note_tokens(current: Message, content: Any, counter: TokenCounter) -> int:
    """Tokens of what the message tells of changed instructions and tools."""
    preamble = current.preamble
    if preamble is None or not preamble.changes:
        return 0
    text = content if isinstance(content, str) else content[0]["text"]
    start = len(preamble.text) - len(preamble.changes)
    end = min(len(preamble.text) + len(GAP), len(text))
    return count_spans(counter, text, [0, start, end, len(text)])[1]


def _git_tokens(
    snapshot: Snapshot, request: Request, content: Any, counter: TokenCounter, *, now: datetime
) -> int:
    """Tokens of git's state, which ends the head of the message."""
    text_of_git = git_text(snapshot, request) if takes_memory(request) else ""
    if not text_of_git:
        return 0
    text = content if isinstance(content, str) else content[0]["text"]
    end = len(head(snapshot, request, now=now))
    return count_spans(counter, text, [0, end - len(text_of_git), end, len(text)])[1]
