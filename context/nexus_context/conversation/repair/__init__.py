"""A broken history as one that providers accept; every repair is said.

1. Each call of an assistant has one result, and the results stand right after the message with their calls.
   A missing result becomes a text that says so, a result without a call is left out, and one that stands
   elsewhere is moved, whatever came between. Of several results of one call the last counts.
2. Each call has an id of its own: the second call `id` becomes `id-2`, together with its result. Results
   belong to the calls before them, in order; where they are too few, to the newest calls.
3. A result without an id answers the newest message before it with a call that has no result: the call of
   the same tool, else the first. A call without an id gets one.
4. Calls stand with an assistant: those of another role get a message of their own. Anthropic's blocks
   `tool_use` and `tool_result` inside a content become calls and results.
5. A message that says nothing is left out, but for results: a tool may return nothing.
6. Text is what UTF-8 can encode (U+FFFD for half a surrogate pair), and JSON no deeper than MOST_DEPTH.
7. A sound history comes back as it is. A repair changes nothing before its place.

Reading order: report, values, single, pairing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nexus_context.conversation.message import Message
from nexus_context.conversation.repair.is_valid import sound_part
from nexus_context.conversation.repair.pairing import Pairing
from nexus_context.conversation.repair.report import Repair
from nexus_context.conversation.repair.single import Step, steps_of
from nexus_context.conversation.repair.values import MOST_DEPTH

__all__ = ["MOST_DEPTH", "Repair", "Traced", "repaired", "traced"]


class Traced(NamedTuple):
    """Sound messages, what was repaired, and for each message the index of the one that it comes from."""

    messages: list[Message]
    repairs: list[Repair]
    origins: Sequence[int]


def repaired(messages: Iterable[Message]) -> tuple[list[Message], list[Repair]]:
    """The messages as providers accept them, and what was repaired. A sound list is returned itself."""
    made = traced(messages)
    return made.messages, made.repairs


def traced(messages: Iterable[Message]) -> Traced:
    """`repaired`, and where each message comes from."""
    given = messages if isinstance(messages, list) else list(messages)
    start, ids = sound_part(given)
    if start == len(given):
        return Traced(given, [], range(start))
    repairs: list[Repair] = []
    steps = [step for at in range(start, len(given)) for step in steps_of(at, given[at], repairs)]
    if any(step.message.tool_call_id in ids for step in steps):  # a late result of an earlier call
        steps = [*map(Step, range(start), given), *steps]
        start, ids = 0, set()
    made = Pairing(steps, repairs, ids).ordered()
    if not repairs:
        return Traced(given, [], range(len(given)))
    repairs.sort(key=lambda repair: -1 if repair.index is None else repair.index)
    messages = [*given[:start], *(step.message for step in made)]
    return Traced(messages, repairs, [*range(start), *(step.origin for step in made)])
