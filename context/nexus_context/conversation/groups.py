"""Finds where the atomic groups and the turns of a growing conversation begin.

1. A group is a single message, or an assistant message with tool calls and all its results. It is kept or cut
   as a whole: providers reject a call without its result and a result without its call.
2. A late result, after other messages, belongs to the group of its call, together with everything in between,
   if its call is at most LATE messages back. Otherwise it is an orphan, which `repair` sends as a marked
   text, because groups must not grow without bound.
3. A turn begins with a user message that does not follow a user message.
4. The second call with the same id is renamed to `id-2`, and so is its result, because some models reuse ids,
   which providers reject. The numbers count all calls of the conversation, so a cut renames nothing. A result
   answers the newest message that waits for it; if that message has several calls with the id, their results
   answer them in order. A result that repeats an answer right after it, or names no call, belongs to the
   group as well.
5. Anything else that `repair` would change is noted when a message arrives, so that a sound conversation is
   never searched.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.repair import is_clean, is_clean_call, is_plain_part

LATE = 64
"""Most messages between a call and its result."""


class _Call(NamedTuple):
    """A call: where its group starts, and the id that it is sent with."""

    start: int
    name: str


class Grouping:
    """The group starts, turn starts and broken messages of the messages so far, as ascending indexes.

    `questions` has all turn starts, including those inside groups, where no cut is possible.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.groups: list[int] = []
        self.turns: list[int] = []
        self.questions: list[int] = []
        self.broken: list[int] = []
        self.renamed: dict[int, Message] = {}
        self._size = 0
        self._last_role = ""
        self._used: dict[str, int] = {}  # how often a call id was used
        self._newest: dict[str, _Call] = {}  # the newest call of an id
        self._open: dict[str, list[_Call]] = {}  # calls of an id without a result, oldest first
        self._oldest_open = 0
        for message in messages:
            self.add(message)

    def __len__(self) -> int:
        return self._size

    @property
    def unanswered(self) -> bool:
        """Whether a tool call in the last `LATE` messages still has no result."""
        return bool(self._open)

    def is_sound(self, head: int, anchor: int | None, start: int, end: int) -> bool:
        """Whether `messages[:head]`, the message at `anchor` and `[start:end]` need no repair."""
        if self._open or not self.broken:
            return not self._open
        lone = () if anchor is None else ((anchor, anchor + 1),)
        parts = ((0, head), *lone, (start, end))
        return all(bisect_left(self.broken, a) == bisect_left(self.broken, b) for a, b in parts)

    def add(self, message: Message) -> None:
        """Add the next message."""
        index = self._size
        self._size = index + 1
        if self._open and index - self._oldest_open > LATE:
            self._give_up(index)
        role = message.role
        if role == "tool":
            self._add_result(message, index)
        else:
            self.groups.append(index)
            if role == "user" and self._last_role != "user":
                self.turns.append(index)
                self.questions.append(index)
            if message.tool_calls:
                self._add_calls(message, index)
        if not _is_plain(message):
            self._note(index)
        self._last_role = role

    def skip(self) -> None:
        """Mark a gap, in which messages are not added. No group or turn spans it."""
        self._last_role = ""
        self._open.clear()
        self._newest.clear()

    def _add_calls(self, message: Message, index: int) -> None:
        if not self._open:
            self._oldest_open = index
        call_ids: list[str] = []
        for call in message.tool_calls:
            if not call.id or call.id in self._open or message.role != "assistant":
                self._note(index)
            opened = self._newest[call.id] = _Call(index, self._fresh(call.id))
            self._open.setdefault(call.id, []).append(opened)
            call_ids.append(opened.name)
        if call_ids != [call.id for call in message.tool_calls]:
            calls = (
                msgspec.structs.replace(call, id=name)
                for call, name in zip(message.tool_calls, call_ids, strict=True)
            )
            self.renamed[index] = msgspec.structs.replace(message, tool_calls=tuple(calls))

    def _fresh(self, call: str) -> str:
        """A unique id to send a call with; `repair` handles an empty one."""
        count = self._used.get(call, 0) + 1
        self._used[call] = count
        if count == 1 or not call:
            return call
        while f"{call}-{count}" in self._used:
            count += 1
        self._used[call] = count
        self._used[f"{call}-{count}"] = 1
        return f"{call}-{count}"

    def _add_result(self, message: Message, index: int) -> None:
        name = message.tool_call_id or ""
        call, may_merge = self._answered(name), True
        if call is None:
            self._note(index)
            call, may_merge = self._belongs_to(name), not name
        elif call.start == self.groups[-1] and call.name == name:
            return  # nearly always
        if call is not None and name and name != call.name:
            self.renamed[index] = msgspec.structs.replace(message, tool_call_id=call.name)
        if call is None or not (may_merge or call.start >= self.groups[-1]):
            self.groups.append(index)
            return
        group_index = bisect_right(self.groups, call.start) - 1
        if group_index + 1 < len(self.groups):  # other messages came between
            del self.groups[group_index + 1 :]
            del self.turns[bisect_right(self.turns, self.groups[group_index]) :]
            self._note(call.start)
            self._note(index)

    def _answered(self, name: str) -> _Call | None:
        """The open call that a result of that id answers; it is closed."""
        waiting = self._open.get(name)
        if not waiting:
            return None
        newest = waiting[-1].start
        at = (
            0
            if len(waiting) == 1
            else next(at for at, open_call in enumerate(waiting) if open_call.start == newest)
        )
        call = waiting.pop(at)
        if not waiting:
            del self._open[name]
        if self._open:
            self._oldest_open = min(calls[0].start for calls in self._open.values())
        return call

    def _belongs_to(self, name: str) -> _Call | None:
        """The call of a result that no open call matches: it answers a call again, or names none."""
        if name:
            return self._newest.get(name)
        return max((calls[-1] for calls in self._open.values()), default=None)

    def _give_up(self, index: int) -> None:
        for name, calls in list(self._open.items()):
            late = [call for call in calls if index - call.start > LATE]
            for call in late:
                self._note(call.start)
            if len(late) < len(calls):
                self._open[name] = calls[len(late) :]
            else:
                del self._open[name]
        self._oldest_open = min((calls[0].start for calls in self._open.values()), default=index)

    def _note(self, index: int) -> None:
        position = bisect_left(self.broken, index)
        if position == len(self.broken) or self.broken[position] != index:
            self.broken.insert(position, index)


def _is_plain(message: Message) -> bool:
    """Whether `repair` would leave the message by itself unchanged."""
    content: Any = message.content
    if content.__class__ is str:
        plain, blank = content.isascii() or is_clean(content), not content or content.isspace()
    elif content.__class__ is list:
        plain, blank = all(map(is_plain_part, content)), all(map(is_blank, content))
    else:
        plain, blank = not content, True
    if message.tool_calls:
        return plain and message.role == "assistant" and all(map(is_clean_call, message.tool_calls))
    return plain and (message.role == "tool" or not blank)


def group_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes at which atomic groups begin, ascending."""
    return Grouping(messages).groups
