"""Turns a broken history into one that providers accept, and reports every repair.

1. Each tool call has one result, and results directly follow the message with their calls. A missing result
   becomes a text that says so, a result without a call is left out, and a result elsewhere is moved. Of
   several results of one call the last counts.
2. Call ids are unique: the second call `id` becomes `id-2`, and so does its result. Results belong to the
   calls before them, in order; if there are too few, to the newest calls.
3. A result without an id answers the newest message before it that has a call without a result: the call of
   the same tool, else the first. A call without an id gets one.
4. Only assistants call tools: calls of another role move to an assistant message. Anthropic's blocks
   `tool_use` and `tool_result` inside a content become calls and results.
5. An empty message is left out, unless it is a result: a tool may return nothing.
6. Text must be encodable as UTF-8 (U+FFFD replaces half a surrogate pair), and JSON no deeper than
   MOST_DEPTH.
7. A sound history is returned unchanged. A repair changes nothing before its place.

Reading order: repair_log, values, single, is_valid, pairing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nexus_context.conversation.message import Message
from nexus_context.conversation.repair.is_valid import sound_part
from nexus_context.conversation.repair.pairing import Pairing
from nexus_context.conversation.repair.repair_log import Repair
from nexus_context.conversation.repair.single import Step, steps_of
from nexus_context.conversation.repair.values import MOST_DEPTH

__all__ = ["MOST_DEPTH", "Repair", "Traced", "repaired", "traced"]


class Traced(NamedTuple):
    """Sound messages, the repairs, and for each message the index of the one that it comes from."""

    messages: list[Message]
    repairs: list[Repair]
    origins: Sequence[int]


def repaired(messages: Iterable[Message]) -> tuple[list[Message], list[Repair]]:
    """The messages as providers accept them, and the repairs. A sound list is returned itself."""
    result = traced(messages)
    return result.messages, result.repairs


def traced(messages: Iterable[Message]) -> Traced:
    """As `repaired`, with the origin of each message."""
    original = messages if isinstance(messages, list) else list(messages)
    start, ids = sound_part(original)
    if start == len(original):
        return Traced(original, [], range(start))
    repairs: list[Repair] = []
    steps = [step for at in range(start, len(original)) for step in steps_of(at, original[at], repairs)]
    if any(step.message.tool_call_id in ids for step in steps):  # a late result of an earlier call
        steps = [*map(Step, range(start), original), *steps]
        start, ids = 0, set()
    steps_in_order = Pairing(steps, repairs, ids).ordered()
    if not repairs:
        return Traced(original, [], range(len(original)))
    repairs.sort(key=lambda repair: -1 if repair.index is None else repair.index)
    messages = [*original[:start], *(step.message for step in steps_in_order)]
    return Traced(messages, repairs, [*range(start), *(step.origin for step in steps_in_order)])
