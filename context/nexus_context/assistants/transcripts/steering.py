"""Finds what the user says in Claude Code while the model works: the records of its queue.

Source: what programs that read these files have measured, with versions up to 2.1.28x.

1. `enqueue` has the text. `dequeue` sends the oldest text at the end of a turn, as a user's record. `remove`
   sends one within a turn, as an attachment (`queued_command`); in some versions and in the desktop client
   there is no other record of it. `popAll` gives all texts back to the user's input.
2. Since version 2.1.246 a removal says `absorbed_mid_turn`. In a file whose removals have reasons, a removal
   without a reason, or with another one, took the text back.
3. A text that no other record has counts as said where it was sent, or where it was queued if it was never
   sent.
4. Notifications of tasks use the same queue. They are not the user's words.
5. A message is never inserted between calls and their results.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts.records import Report
from nexus_context.conversation.message import Message

_ABSORBED = "absorbed_mid_turn"
_NOTIFICATION = re.compile(r"\s*(?:<[a-z][\w-]*>|\[SYSTEM NOTIFICATION|\{\s*\"task_id\")", re.IGNORECASE)
_TAKEN_BACK = "that the user took back before it was sent"
_NOTIFIED = "with notifications of tasks that waited in the queue"


def is_notification(attachment: Any) -> bool:
    """Whether a queued command is a notification rather than the user's words."""
    kind = text_in(attachment, "origin", "kind")
    if kind is not None and kind != "human":
        return True
    prompt = field(attachment, "prompt")
    return field(attachment, "commandMode") == "task-notification" or (
        kind is None and isinstance(prompt, str) and prompt.lstrip().startswith("<task-notification>")
    )


def unsent(values: Sequence[dict[str, Any]], report: Report) -> list[tuple[int, int]]:
    """List the user's texts that only the queue has, in order. Each is the index where it was sent, and the
    index of the record with the text.
    """
    operations = [at for at, value in enumerate(values) if value.get("type") == "queue-operation"]
    if not operations:
        return []
    spoken = _Spoken(values)
    texts = []
    for at, text_at in sorted(_find_sent(values, operations, spoken, report)):
        text = values[text_at]["content"]
        if spoken.take(text):
            continue
        if _NOTIFICATION.match(text):
            report.leave("notification", _NOTIFIED)
        else:
            texts.append((at, text_at))
    return texts


def _find_sent(
    values: Sequence[dict[str, Any]], operations: Sequence[int], spoken: "_Spoken", report: Report
) -> Iterator[tuple[int, int]]:
    """Yield where each text of the queue was sent, and its record. Texts that were taken back are counted."""
    reasons = any(text_in(values[at], "reason") for at in operations)
    queue = _Queue(values)
    for at in operations:
        value = values[at]
        match value.get("operation"):
            case "enqueue" if text_in(value, "content"):
                queue.add(at)
            case "dequeue":
                text_at = queue.pop(None)
                if text_at is not None and not spoken.follows(at, values[text_at]["content"]):
                    yield at, text_at
            case "remove":
                text_at = queue.pop(value.get("content"))
                reason = text_in(value, "reason")
                if text_at is None or spoken.take(values[text_at]["content"]):
                    continue
                if reason == _ABSORBED or not (reason or reasons):
                    yield at, text_at
                else:
                    report.leave("taken-back", _TAKEN_BACK)
            case "popAll":
                report.leave("taken-back", _TAKEN_BACK, len(queue.clear()))
    yield from ((text_at, text_at) for text_at in queue.clear())


class Waiting:
    """Keeps the texts that are still to be inserted, in the order in which they were sent."""

    def __init__(self, texts: Iterable[tuple[int, int]]) -> None:
        self._texts = list(texts)
        self._next = 0
        self._open: set[str] = set()  # calls without a result
        self._read = 0  # messages

    def take_before(self, at: int, messages: Sequence[Message]) -> list[int]:
        """Return the indices of the records to insert before the record at index `at`. `messages` are all
        messages before that.

        Nothing is inserted between calls and their results.
        """
        for message in messages[self._read :]:
            if message.role == "assistant":
                self._open = {call.id for call in message.tool_calls}
            elif message.role == "tool":
                self._open.discard(message.tool_call_id or "")
        self._read = len(messages)
        places: list[int] = []
        while not self._open and self._next < len(self._texts) and self._texts[self._next][0] < at:
            places.append(self._texts[self._next][1])
            self._next += 1
        return places

    def take_rest(self) -> list[int]:
        """Return the indices of the records that were not inserted yet."""
        places = [text_at for _, text_at in self._texts[self._next :]]
        self._next = len(self._texts)
        return places


class _Queue:
    """The texts that wait, oldest first, by the places of their records."""

    def __init__(self, values: Sequence[dict[str, Any]]) -> None:
        self._values = values
        self._places: OrderedDict[int, None] = OrderedDict()
        self._by_text: dict[str, deque[int]] = {}

    def add(self, text_at: int) -> None:
        self._places[text_at] = None
        self._by_text.setdefault(self._values[text_at]["content"].strip(), deque()).append(text_at)

    def pop(self, text: Any) -> int | None:
        """Take out the oldest one with this text; without a text, the oldest one."""
        if not isinstance(text, str):
            text_at = next(iter(self._places), None)
            text = "" if text_at is None else self._values[text_at]["content"]
        places = self._by_text.get(text.strip())
        if not places:
            return None
        text_at = places.popleft()
        del self._places[text_at]
        return text_at

    def clear(self) -> list[int]:
        """Take out all; their places."""
        places = [*self._places]
        self._places, self._by_text = OrderedDict(), {}
        return places


class _Spoken:
    """The texts of the user's records and queued commands; each accounts for one text of the queue."""

    def __init__(self, values: Sequence[dict[str, Any]]) -> None:
        self._counts: dict[str, int] = {}
        self._next: list[int] = [-1] * len(values)  # the next record of the user after each one
        self._values = values
        self._lines: tuple[int, set[str]] = (-1, set())  # of the last record that was asked for
        next_record = -1
        for at in range(len(values) - 1, -1, -1):
            self._next[at] = next_record
            texts = [text.strip() for text in _texts(values[at])]
            for text in texts:
                self._counts[text] = self._counts.get(text, 0) + 1
            if texts:
                next_record = at

    def take(self, text: str) -> bool:
        """Whether a record has the text; it then stands for no other one."""
        count = self._counts.get(text.strip(), 0)
        self._counts[text.strip()] = max(count - 1, 0)
        return count > 0

    def follows(self, at: int, text: str) -> bool:
        """Whether the user's next record joins the text with others of the queue."""
        next_record = self._next[at]
        if next_record < 0:
            return False
        if self._lines[0] != next_record:
            joined_lines = (text.split("\n") for text in _texts(self._values[next_record]))
            self._lines = (next_record, {line.strip() for lines in joined_lines for line in lines})
        lines = [line.strip() for line in text.strip().split("\n")]
        return len(lines) < len(self._lines[1]) and all(line in self._lines[1] for line in lines)


def _texts(value: dict[str, Any]) -> Iterator[str]:
    """What the user said in a record."""
    attachment = value.get("attachment")
    if value.get("type") == "attachment" and field(attachment, "type") == "queued_command":
        content = field(attachment, "prompt")
    elif value.get("type") == "user":
        content = field(value, "message", "content")
    else:
        return
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (text for part in content if (text := text_in(part, "text")) is not None)
