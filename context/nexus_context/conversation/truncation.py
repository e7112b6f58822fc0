"""Decides where a history that is too long is cut, by one of several strategies.

1. A cut never splits an atomic group, except with `simple`, which drops the rest of a group that it splits.
2. A cut goes down to a target below the budget, so that it serves many turns. Requests then begin with the
   same bytes, which providers cache.
3. `oldest_first` (`smart`) cuts at the start of a turn. If the last turn alone is too long, it cuts between
   two groups of that turn. Such a turn has long steps with tools, so the cut goes further below the target,
   by DEEPER of the room above the target. The last `keep_recent_turns` turns stay if they fit the budget,
   even if they exceed the target.
4. `middle_out` cuts like `oldest_first` and keeps the first group. `sliding` keeps the most recent groups,
   wherever they begin. `recency` keeps the last `keep_recent_turns` turns, or fewer if they do not fit.
   `simple` cuts message by message.
5. The newest group always stays; `window` handles one that is too large.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Literal, NamedTuple

from nexus_context.conversation.history import History

Strategy = Literal["oldest_first", "smart", "middle_out", "sliding", "simple", "recency"]
STRATEGIES: tuple[Strategy, ...] = ("oldest_first", "smart", "middle_out", "sliding", "simple", "recency")

LARGEST_HEAD = 0.25
"""Share of the room up to which the beginning of the history can stay."""

DEEPER = 0.5
"""Share of the room above the target by which a cut within a turn goes below it."""


class Need(NamedTuple):
    """The goal of a cut. Sizes are in tokens.

    `size(start)` is the cost of sending the history from `start` on. `target` is the size to reach, and
    `room` the largest size. The cut must lie after the index `after`.
    """

    size: Callable[[int], int]
    target: int
    room: int
    after: int
    keep_recent_turns: int


class SentRange(NamedTuple):
    """The messages that are sent: `messages[:head]` and `messages[start:]`."""

    head: int
    start: int


def cut(strategy: Strategy, history: History, need: Need, *, first_group: int) -> SentRange:
    """Return where to cut a history that does not fit. `first_group` is the number of tokens of its first
    group.
    """
    if strategy == "sliding":
        return SentRange(0, _first_group_within(history, need))
    if strategy == "simple":
        return SentRange(0, _first_message_within(history, need))
    if strategy == "recency":
        recent = _recent(history, need)
        return SentRange(0, _first_group_within(history, need) if recent is None else recent)
    head = first_group_end(history)
    if strategy == "middle_out" and first_group <= need.room * LARGEST_HEAD and head < len(history):
        need_after_head = need._replace(
            size=lambda start: need.size(max(start, head)) + first_group, after=max(need.after, head - 1)
        )
        return SentRange(head, max(_turn_within(history, need_after_head), head))
    return SentRange(0, _turn_within(history, need))


def first_group_end(history: History) -> int:
    """Return the index at which the first group ends.

    Several user messages at the beginning count as one, and so do the leading system messages.
    """
    leading_end = end = history.leading.stop
    while end < len(history) and history.messages[end].role == "user":
        end += 1
    groups = history.grouping.groups
    group_index = bisect_left(groups, leading_end + 1)
    return end if end > leading_end else groups[group_index] if group_index < len(groups) else len(history)


def _turn_within(history: History, need: Need) -> int:
    """The first turn after the first group that reaches the target, else a group of the last turn."""
    turns = history.grouping.turns
    turn = bisect_left(turns, _first_group_within(history, need))
    if turn < len(turns):
        start = turns[turn]
    else:
        lower = max(need.target - int((need.room - need.target) * DEEPER), need.target // 2)
        start = _first_group_within(history, need._replace(target=lower))
    recent = _recent(history, need)
    return start if recent is None else min(start, recent)


def _recent(history: History, need: Need) -> int | None:
    """The start of as many recent turns as should stay and fit; None if not even the last does."""
    turns = history.grouping.turns
    if not need.keep_recent_turns:
        return None
    for start in turns[-need.keep_recent_turns :]:
        if start > need.after and need.size(start) <= need.room:
            return start
    return None


def _first_group_within(history: History, need: Need) -> int:
    """The first group after the last cut that reaches the target; at most the newest group."""
    groups = history.grouping.groups
    first_candidate = bisect_left(groups, need.after + 1)
    position = bisect_left(
        groups, True, lo=first_candidate, key=lambda start: need.size(start) <= need.target
    )
    return groups[min(position, len(groups) - 1)]


def _first_message_within(history: History, need: Need) -> int:
    """The first message that reaches the target and is not a result of a cut call."""
    newest = history.grouping.groups[-1]
    indexes = range(need.after + 1, newest)
    at = need.after + 1 + bisect_left(indexes, True, key=lambda start: need.size(start) <= need.target)
    while at < newest and history.messages[at].role == "tool":
        at += 1
    return min(at, newest)
