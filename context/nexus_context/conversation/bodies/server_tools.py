"""Decides which calls and results of Anthropic's server tools can be sent: only those that have their
counterpart.

1. A result answers the call in the same turn of the assistant. Neighboring messages of the assistant are one
   turn: an answer that paused (`pause_turn`) and its continuation.
2. If a server tool is called beside a client's tool, the server waits: its result is in the next answer,
   after the client's results. Code that called tools may take several such answers.
3. Only the client's results may stand between a call and its result. After any other message, a call without
   a result is left out.
4. A call without a result at the end stays, because the server continues it: either in a paused answer, which
   must come last and unchanged, or with the client's results.

Sources, read in November 2026: "Server tools" (pause_turn, mixed turns) and "Programmatic tool calling" in
the documentation of the Claude API.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message, type_of
from nexus_context.conversation.repair import RepairLog

CALLS = ("server_tool_use", "mcp_tool_use")
_TYPES = frozenset((*CALLS, *parts.SERVER_RESULTS))
PAUSED = "pause_turn"
"""The stop reason of an answer that the server wants back to go on with it."""

_PartIndex = tuple[int, int]  # a message and a part of its content


def paired(messages: Sequence[Message], origins: Sequence[int], log: RepairLog) -> Sequence[Message]:
    """Return the messages without server tool calls that lack a result, and without results that lack a
    call.
    """
    if not any(map(_has_server_tool, messages)):
        return messages
    halves: dict[int, set[int]] = {}
    for index, part in _Pairing(messages).halves:
        halves.setdefault(index, set()).add(part)
    sent_messages = list(messages)
    for index in sorted(halves):
        content: Any = messages[index].content
        remaining_parts = [part for at, part in enumerate(content) if at not in halves[index]]
        sent_messages[index] = msgspec.structs.replace(messages[index], content=remaining_parts)
        text = "A server tool call without a result, or a result without its call, is left out."
        log.add("server-tool-left-out", text, origins[index])
    return sent_messages


def is_paused(messages: Sequence[Message]) -> bool:
    """Whether the last message is an answer that the server wants back to continue it.

    Its meta then has the `stop_reason` of a pause, or it ends with a part of a server tool. An answer that
    calls a tool of the client is never paused.
    """
    last_message = messages[-1] if messages else None
    if last_message is None or last_message.role != "assistant" or last_message.tool_calls:
        return False
    if isinstance(last_message.meta, dict) and last_message.meta.get("stop_reason") == PAUSED:
        return True
    return (
        isinstance(last_message.content, list)
        and bool(last_message.content)
        and _server_id(last_message.content[-1]) is not None
    )


class _Pairing:
    """`halves` are the places of calls and results that are left out."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.halves: set[_PartIndex] = set()
        self._open: dict[str, _PartIndex] = {}  # calls without a result
        self._late: set[str] = set()  # those of earlier turns
        self._callers: set[Any] = set()  # what called the client's tools in this turn
        self._has_calls = False
        in_turn = False
        for index, message in enumerate(messages):
            if message.role == "assistant":
                if not in_turn:
                    self._late, self._callers, self._has_calls = set(self._open), set(), False
                in_turn = True
                self._read(index, message)
            elif message.role == "tool":
                if in_turn:
                    self._end_turn()
                in_turn = False
            elif not parts.is_blank(message.content):
                self._drop(set(self._open))
                in_turn = False
        if in_turn and not is_paused([self._without_halves(messages)]):
            self._end_turn()

    def _without_halves(self, messages: Sequence[Message]) -> Message:
        """The last message without halves of pairs, as it is sent."""
        last_message, index = messages[-1], len(messages) - 1
        if not any(half[0] == index for half in self.halves):
            return last_message
        content: Any = last_message.content
        remaining_parts = [part for at, part in enumerate(content) if (index, at) not in self.halves]
        return msgspec.structs.replace(last_message, content=remaining_parts)

    def _read(self, index: int, message: Message) -> None:
        self._has_calls = self._has_calls or bool(message.tool_calls)
        content: Any = message.content
        for at, part in enumerate(content if isinstance(content, list) else ()):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in ("tool_call", "tool_use") and isinstance(part.get("caller"), dict):
                self._callers.add(part["caller"].get("tool_id"))
            server_id = _server_id(part)
            if server_id is None:
                continue
            name, is_result = server_id
            if is_result == (name in self._open):
                if is_result:
                    del self._open[name]
                else:
                    self._open[name] = (index, at)
            else:
                self.halves.add((index, at))

    def _end_turn(self) -> None:
        """Leave out what this turn had to answer, or what does not wait for the client's results."""
        waits = self._callers if self._has_calls else set()
        self._drop({name for name in self._open if name in self._late and name not in waits})
        if not self._has_calls:
            self._drop(set(self._open))

    def _drop(self, names: set[str]) -> None:
        self.halves.update(self._open.pop(name) for name in names)


def _has_server_tool(message: Message) -> bool:
    content: Any = message.content
    return (
        content.__class__ is list
        and message.role == "assistant"
        and any(type_of(part) in _TYPES for part in content)
    )


def _server_id(part: Any) -> tuple[str, bool] | None:
    """The id of a server tool call, and whether this is its result; None for other parts."""
    if type_of(part) not in _TYPES or not isinstance(parts.read_part(part), parts.ProviderPart):
        return None
    return (str(part["id"]), False) if part["type"] in CALLS else (str(part["tool_use_id"]), True)
