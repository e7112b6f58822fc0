"""Which messages a compaction keeps word for word, and which it replaces.

1. Walk back from the newest group while the groups fit the budget. A group is never split, and the newest is
   kept even where it alone is larger than the budget.
2. Begin at the first turn's start among them instead, where that keeps at least TURN_SHARE of their tokens:
   a conversation that begins with a user's message is easier to follow.
3. An earlier summary is never among what is kept: it is folded into the new one.
4. Where only an earlier summary would be replaced, nothing is.
"""

from collections.abc import Sequence
from itertools import accumulate

from nexus_context.conversation.compaction.summary import is_summary
from nexus_context.conversation.groups import Grouping
from nexus_context.conversation.message import Message, content_of
from nexus_context.tokens import TokenCounter, count_message

TURN_SHARE = 0.5


def select(messages: Sequence[Message], counts: Sequence[int], *, budget: int, earliest: int = 0) -> int:
    """The index from which messages are kept; 0: nothing to replace.

    `counts` are the tokens of each message, `budget` the tokens that the kept ones may take. None before
    `earliest` is kept.
    """
    if not messages:
        return 0
    grouping = Grouping(messages[:earliest])
    if earliest:
        grouping.skip()
    for message in messages[earliest:]:
        grouping.add(message)
    sums = [0, *accumulate(counts)]
    summary = max((index for index, message in enumerate(messages) if is_summary(message)), default=-1)
    groups = [start for start in grouping.groups if start > summary and start >= earliest]
    if not groups:
        return earliest
    start = groups[-1]
    for group in reversed(groups):
        if sums[-1] - sums[group] > budget and group != groups[-1]:
            break
        start = group
    least = TURN_SHARE * (sums[-1] - sums[start])
    turn = next((turn for turn in grouping.turns if turn >= start), None)
    if turn is not None and sums[-1] - sums[turn] >= least:
        start = turn
    return 0 if not earliest and all(map(is_summary, messages[:start])) else start


def select_messages_for_compaction(
    messages: Sequence[Message],
    token_counter: TokenCounter,
    available_budget: int,
    recent_preserve_ratio: float = 0.25,
) -> tuple[list[Message], list[Message]]:
    """`(to_summarize, to_preserve)`: `select` with counts made here and the ratio as the budget."""
    counts = [count_message(token_counter, content_of(each), each.tool_calls) for each in messages]
    start = select(messages, counts, budget=int(available_budget * recent_preserve_ratio))
    return list(messages[:start]), list(messages[start:])
