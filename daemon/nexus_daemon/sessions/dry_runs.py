"""Explain each part of a dry run: the source of the prompt, the messages that are sent, the cut.

1. A message has the position that it has in the conversation. The rows include messages that are left out of
   what a provider gets.
2. Nothing here changes the conversation.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from nexus_context.config.merge import deep_merge
from nexus_context.conversation.message import Message, content_of, sent_content, text_of, without_preamble
from nexus_context.conversation.repair import Repair
from nexus_context.conversation.view import View
from nexus_context.errors import Span
from nexus_context.folder.prompt.render import Fragment, Prompt
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.rows import json_text
from nexus_context.text.visible import visible_line
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.turn import models
from nexus_context.turn.request import AssembledContext
from nexus_daemon import protocol
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import prompt_sources

MOST_TEXT = 200
"""The most code points of a message's beginning that are shown."""


def explain(
    assembled: AssembledContext,
    snapshot: Snapshot,
    locate: Locator,
    *,
    model: str | None,
    positions: Sequence[int],
    is_own: bool,
) -> protocol.Explanation:
    """Explain a dry run for this `model`; None means the model of the snapshot.

    `positions` are the positions of the messages in the conversation. `is_own` says that the model was picked
    for this conversation, not for the folder.
    """
    _, counter = models.model_of(snapshot, model)
    messages = _Messages(assembled, counter, positions)
    choice = snapshot.choice
    is_picked = model is None and choice is not None and choice.model is not None
    is_picked = is_picked and choice is not None and assembled.model == choice.model
    return protocol.Explanation(
        fragments=prompt_sources.fragments_of(assembled.prompt, snapshot, locate, counter),
        messages=list(messages.rows()),
        repairs=messages.repairs(),
        cut=messages.cut(snapshot.effective.get("/context/truncation_target")),
        picked_for=("session" if is_own else "folder") if is_picked else None,
    )


def line_of(message: Message) -> str:
    """Describe a message in one line: the beginning of its text, its other parts, its calls."""
    content = content_of(message)
    words = [first_line(text_of(message))]
    if isinstance(content, list):
        words += [f"[{kind}]" for kind in map(_kind, content) if kind != "text"]
    for call in message.tool_calls:
        arguments: Any = call.arguments
        encoded = arguments if isinstance(arguments, str) else json_text(arguments)
        words.append(f"→ {call.name} {encoded[:MOST_TEXT]}")
    return visible_line(" ".join(filter(None, words))[: 2 * MOST_TEXT]) or "(empty)"


def first_line(text: str) -> str:
    """Return the first line that is not blank, with an ellipsis if the text goes on."""
    lines = text[: MOST_TEXT * 8].strip().splitlines() or [""]
    head = lines[0][:MOST_TEXT].rstrip()
    return visible_line(head + (" …" if len(head) < len(text.strip()) else ""))


class _Messages:
    """The messages of a dry run."""

    def __init__(self, assembled: AssembledContext, counter: TokenCounter, positions: Sequence[int]) -> None:
        self._assembled = assembled
        self._view = assembled.view
        self._counter = counter
        self._positions = positions
        self._unsent = _unsent(assembled.view)

    def rows(self) -> "Iterator[protocol.ExplainedMessage]":
        """The messages that are sent, oldest first, from the system prompt to the current one."""
        yield from self._before_cut()
        view = self._view
        if view.start and view.note is not None:
            text = first_line(text_of(view.note))
            yield protocol.ExplainedMessage(role="user", text=text, tokens=view.note_tokens, state="note")
        if view.start and view.anchor is not None:
            yield self._row(view.anchor, "anchor")
        yield from (self._row(index) for index in range(view.start, view.end))
        current = self._assembled.current_message
        if current is not None:
            tokens = self._spent("event")
            yield protocol.ExplainedMessage(
                role="user", text=line_of(current), tokens=tokens, state="current"
            )

    def cut(self, target: float) -> protocol.ExplainedCut | None:
        view, token_usage = self._view, self._assembled.usage
        if not view.start or not view.removed:
            return None
        sums = view.history.sums(self._counter)
        lost = sums[view.start] - sums[view.head]
        if view.anchor is not None:
            lost -= sums[view.anchor + 1] - sums[view.anchor]
        return protocol.ExplainedCut(
            at=sum(1 for _ in self._before_cut()),
            messages=view.removed,
            tokens=lost,
            whole_tokens=token_usage.total - view.tokens + view.original_tokens,
            starts_turn=view.history.messages[view.start].role == "user",
            strategy=view.strategy,
            target=target,
        )

    def repairs(self) -> list[str]:
        indexes = _indexes(self._view)
        counts = Counter(self._repaired(repair, indexes) for repair in self._view.sound_messages().repairs)
        return [f"{text} ({count:,} times)" if count > 1 else text for text, count in counts.items()]

    def _before_cut(self) -> "Iterator[protocol.ExplainedMessage]":
        view, prompt = self._view, self._assembled.prompt.text
        if prompt:
            text, tokens = first_line(prompt), self._spent("system")
            yield protocol.ExplainedMessage(role="system", text=text, tokens=tokens)
        if view.start:
            state = "kept" if view.strategy == "middle_out" else "pinned"
            yield from (self._row(index, state) for index in range(view.head))

    def _row(self, index: int, state: str = "sent") -> protocol.ExplainedMessage:
        view = self._view
        message = view.history.messages[index]
        sent_message = view.replaced.get(index, message)
        tokens = self._tokens(sent_message)
        is_shortened = index in view.shortened
        preamble = None
        if not is_shortened and sent_message.preamble is not None:
            preamble = tokens - self._tokens(without_preamble(sent_message))
        return protocol.ExplainedMessage(
            role=message.role,
            text=line_of(sent_message if is_shortened else message),
            tokens=tokens,
            state="left-out" if index in self._unsent else state,
            position=self._position(index),
            whole_tokens=self._tokens(message) if is_shortened else None,
            preamble_tokens=preamble,
        )

    def _repaired(self, repair: Repair, indexes: Sequence[int | None]) -> str:
        """The text of a repair, with the number of its message in the conversation."""
        text = repair.text[:1].lower() + repair.text[1:].rstrip(".")
        if repair.index is not None and repair.index < len(indexes):
            index = indexes[repair.index]
            number = "–" if index is None else f"{self._position(index) + 1:,}"
            text = re.sub(rf"\bmessage {repair.index + 1}\b", f"message {number}", text)
        return visible_line(text)

    def _position(self, index: int) -> int:
        return self._positions[index] if index < len(self._positions) else index

    def _tokens(self, message: Message) -> int:
        return count_message(self._counter, sent_content(message), message.tool_calls, message.role)

    def _spent(self, category: str) -> int:
        tokens_by_category: dict[str, int] = self._assembled.metadata["tokens"]
        return tokens_by_category.get(category, 0)


def _indexes(view: View) -> list[int | None]:
    """The index in the history of each message among `view.messages()`; None for the note."""
    note = () if view.note is None else (None,)
    anchor = () if view.anchor is None else (view.anchor,)
    return [*range(view.head), *note, *anchor, *range(view.start, view.end)]


def _unsent(view: View) -> set[int]:
    """Return the indexes of listed messages that no provider is sent."""
    sound = view.sound_messages()
    if isinstance(sound.origins, range):
        return set()
    sent_indexes = set(sound.origins)
    return {
        index
        for listed_index, index in enumerate(_indexes(view))
        if index is not None and listed_index not in sent_indexes
    }


def _kind(part: Any) -> str:
    return str(part.get("type", "part")) if isinstance(part, dict) else "part"


def with_prompt(snapshot: Snapshot, text: str) -> Snapshot:
    """Return the folder's snapshot with `text` as its system prompt, and without the time in the prompt."""
    full_span = Span(0, len(text))
    title = "system prompt of the transcript"
    fragments = (Fragment("transcript", None, title, full_span, path=None, source=full_span),)
    effective = snapshot.effective
    values = deep_merge(effective.values, {"context": {"datetime": {"placement": "event"}}})
    layers = msgspec.structs.replace(
        snapshot.layers, effective=msgspec.structs.replace(effective, values=values)
    )
    prompt = Prompt(text, fragments if text else ())
    return msgspec.structs.replace(snapshot, layers=layers, prompt=prompt, is_fixed=True)
