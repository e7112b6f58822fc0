"""What of a history a model is sent: cut when it no longer fits, and then left alone for many turns.

1. A cut stays until the budget is exceeded again; until then each request begins with the same bytes.
2. In front of what is kept stand, in this order: the pinned first messages of the user (not with `sliding`,
   `recency` and `simple`), the names and values of what is cut, and the message that the user's turn began
   with, if the cut lies within the turn. So the first message is a user's.
3. What is new and larger than half of the room is shortened rather than that all else is cut for it: tool
   results only, each once. When the newest group alone does not fit, its largest results are shortened.
4. What still does not fit is sent nowhere: `View.over` says so, for the caller to refuse.
5. A cut made for a request becomes the conversation's when the conversation goes on from there. Until then
   every request cuts for itself: a long draft changes nothing. Who only looks proposes nothing.
6. The cost of a request does not grow with the history: only what is new, and what a cut removes, is read.
7. Where only the beginning and the end of the history are loaded, the cut lies behind the gap, even if what
   is loaded would fit: what is not loaded counts as cut. Not with `middle_out`, which looks at all.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nexus_context.conversation import truncation
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message
from nexus_context.conversation.shorten_result import LEAST, shorten_result, water_level
from nexus_context.conversation.summary import is_summary
from nexus_context.conversation.truncation import Strategy
from nexus_context.conversation.view import View
from nexus_context.tokens import TokenCounter, count_message

if TYPE_CHECKING:
    from nexus_context.conversation.identifiers import IdentifierIndex

LARGEST_NEW = 0.5
"""Share of the room that a new tool result may take before others are cut for it."""

LARGEST_SUMMARY = 0.5
"""Share of the room that a summary of earlier messages may take to be kept."""

REMEMBERED = 1_000
"""Messages before a cut whose names are read."""

MOST_RETRIES = 4
"""Times that a cut is made anew because what is repaired in it does not fit."""

TRIED = 4
"""Cuts that are remembered while the conversation does not go on: for other drafts, tools, prompts."""


class Policy(msgspec.Struct, frozen=True):
    """How a history is kept within its budget (the section `context` of config.json)."""

    strategy: Strategy = "oldest_first"
    target: float = 0.6  # share of the available tokens that a cut goes down to
    keep_recent_turns: int = 3
    pin_first: bool = True
    identifier_tokens: int = 600  # the most that names and values of the cut part may take; 0: none


class Budget(msgspec.Struct, frozen=True):
    """Tokens for everything that is sent, and what all but the history takes of them."""

    available: int
    fixed: int

    @property
    def room(self) -> int:
        return self.available - self.fixed


class _Cut(msgspec.Struct, frozen=True):
    """One cut: what is left out, and what stands for it. `index` has read what it leaves out up to `read`."""

    start: int = 0
    head: int = 0
    note: Message | None = None
    note_tokens: int = 0
    index: "IdentifierIndex | None" = None
    read: int = 0
    shortened: Mapping[int, tuple[Message, int]] = {}  # the message, and the tokens that it saves

    def saved(self, start: int) -> int:
        """Tokens saved by what is shortened from `start` on."""
        return sum(saved for index, (_, saved) in self.shortened.items() if index >= start)


class _Front(NamedTuple):
    """What of a cut stays the same while messages are added. What is sent are `tokens` with all messages'."""

    cut: _Cut
    anchor: int | None
    tokens: int
    shortened: Mapping[int, Message]


class _Fit(NamedTuple):
    """A cut with the tokens of what is sent, those that repairs add, and those without a new cut."""

    cut: _Cut
    tokens: int
    repairs: int
    uncut: int


class Window:
    """The cut of one history for one tokenizer, policy and model window; see the rules above."""

    def __init__(self, history: History, counter: TokenCounter, policy: Policy) -> None:
        self._history = history
        self._counter = counter
        self._policy = policy
        self._least = history.least_start  # where a cut may be at the earliest
        self._settled = _Cut()
        self._proposed = self._settled
        self._front = _Front(self._settled, None, 0, {})  # of the cut that was looked at last
        self._seen = 0  # messages that were there when last somebody looked
        self._settled_seen = self._proposed_seen = 0  # messages that these cuts have seen
        self._tried: dict[Budget, _Fit] = {}  # for budgets, since the conversation went on

    def fit(self, budget: Budget) -> View:
        """What fits the budget. It is over the budget only where nothing more can be done."""
        fit = self._cached_fit(budget)
        self._proposed, self._proposed_seen = fit.cut, len(self._history)
        return self._view(fit, budget, self._history.sums(self._counter))

    def look(self, budget: Budget) -> View:
        """What `fit` would give, for who sends nothing."""
        return self._view(self._cached_fit(budget), budget, self._history.sums(self._counter))

    def _cached_fit(self, budget: Budget) -> _Fit:
        if self._policy.strategy == "middle_out":
            self._history.needs_all()
        size = len(self._history)
        if size > self._seen:  # the conversation went on from the last request
            self._settled, self._settled_seen = self._proposed, self._proposed_seen
            self._seen = size
            self._tried.clear()
        fit = self._tried.get(budget) if self._tried else None
        if fit is None:
            fit = self._tried[budget] = self._try(budget, self._history.sums(self._counter))
            if len(self._tried) > TRIED:
                del self._tried[next(iter(self._tried))]
        return fit

    def _try(self, budget: Budget, sums: Sequence[int]) -> _Fit:
        """The cut that a request of this budget makes."""
        if not len(self._history):
            return _Fit(self._settled, 0, 0, 0)
        whole = budget.room
        cut = self._whole(self._settled, whole, sums)
        tokens = self._size(cut, sums)
        repairs = self._repair_tokens(cut, tokens, budget, sums)
        uncut = tokens + repairs
        if self._history.gap.messages and not self._settled_seen:  # the first cut lies behind the gap
            uncut += self._history.gap.tokens
            cut = self._cut_at(cut, self._least, self._pinned(whole, sums), self._note_room(whole))
            tokens = self._size(cut, sums)
            repairs = self._repair_tokens(cut, tokens, budget, sums)
        room = whole
        for _ in range(MOST_RETRIES):
            if tokens + repairs <= whole:
                break
            room = min(room, whole - max(repairs, 0))
            cut = self._cut_to_fit(cut, Budget(budget.fixed + room, budget.fixed), budget, sums)
            tokens = self._size(cut, sums)
            repairs = self._repair_tokens(cut, tokens, budget, sums)
            if repairs <= 0:
                break
        return _Fit(cut, tokens, repairs, uncut)

    def _repair_tokens(self, cut: _Cut, tokens: int, budget: Budget, sums: Sequence[int]) -> int:
        """Tokens that repairs add to what is sent: results that are made up, less what is left out."""
        anchor = self._front_of(cut, sums).anchor
        if self._history.grouping.is_sound(cut.head, anchor, cut.start, len(self._history)):
            return 0
        view = self._view(_Fit(cut, tokens, 0, tokens), budget, sums)
        messages, sizes = view.messages(), view.sizes(self._counter)
        sound = view.sound_messages()
        total = 0
        for message, origin in zip(sound.messages, sound.origins, strict=True):
            before = messages[origin]
            same = message.content is before.content and len(message.tool_calls) == len(before.tool_calls)
            total += sizes[origin] if same else self._counter.count_messages([message])
        return total - tokens

    # ------------------------------------------------------------ sizes

    def _size(self, cut: _Cut, sums: Sequence[int]) -> int:
        return self._front_of(cut, sums).tokens + sums[-1]

    def _front_of(self, cut: _Cut, sums: Sequence[int]) -> _Front:
        front = self._front
        if front.cut is cut:
            return front
        start = cut.start
        tokens = sums[cut.head] + cut.note_tokens + self._tail(cut, start, sums) - sums[-1]
        shortened = {index: message for index, (message, _) in cut.shortened.items()}
        front = _Front(cut, self._anchor(cut.head, start), tokens, shortened)
        if start < len(self._history):  # else what comes next may need an anchor
            self._front = front
        return front

    def _tail(self, cut: _Cut, start: int, sums: Sequence[int]) -> int:
        """Tokens from `start` on, with the user's message that the turn began with."""
        anchor = self._anchor(cut.head, start)
        lead = 0 if anchor is None else sums[anchor + 1] - sums[anchor]
        return lead + sums[-1] - sums[start] - (cut.saved(start) if cut.shortened else 0)

    def _anchor(self, head: int, start: int) -> int | None:
        """The user's message to put before `start`, if it is not one itself."""
        messages = self._history.messages
        if not start or start >= len(messages) or messages[start].role == "user":
            return None
        questions = self._history.grouping.asked
        turn = bisect_right(questions, start) - 1
        if turn < 0:
            return None
        anchor = questions[turn]
        if anchor < self._least:  # what the turn began with is not loaded
            return None
        while anchor + 1 < start and messages[anchor + 1].role == "user":
            anchor += 1
        return anchor if anchor >= head else None

    # ------------------------------------------------------------ cutting

    def _whole(self, cut: _Cut, room: int, sums: Sequence[int]) -> _Cut:
        """The cut; where a late result made it go through a group, and there is room, before that group."""
        groups = self._history.grouping.groups
        start = groups[bisect_right(groups, cut.start) - 1]
        if start == cut.start or self._policy.strategy == "simple":
            return cut
        whole = msgspec.structs.replace(cut, start=start, head=min(cut.head, start))
        return whole if self._size(whole, sums) <= room else cut

    def _cut_to_fit(self, last: _Cut, budget: Budget, whole: Budget, sums: Sequence[int]) -> _Cut:
        """The cut for a budget; `whole` is the one of which a target is a share."""
        room = budget.room
        cut = self._whole(self._shorten_new(last, room, sums), room, sums)
        if self._size(cut, sums) <= room:
            return cut
        policy = self._policy
        note_room = self._note_room(room)
        pinned = self._pinned(room, sums)
        front = sums[pinned] + note_room
        target = max(int(policy.target * whole.available) - whole.fixed, int(policy.target * room) // 2)
        target = min(target, room)
        pinning = msgspec.structs.replace(cut, head=pinned)
        need = truncation.Need(
            size=lambda start: self._tail(pinning, start, sums) + front,
            target=target,
            room=room,
            after=cut.start,
            keep_recent_turns=policy.keep_recent_turns,
        )
        first_group = sums[truncation.first_group_end(self._history)]
        sent = truncation.cut(policy.strategy, self._history, need, first_group=first_group)
        start = self._with_question(sent.start, after=max(cut.start, sent.head, pinned))
        new_cut = self._cut_at(cut, start, max(sent.head, min(pinned, start)), note_room)
        return new_cut if self._size(new_cut, sums) <= room else self._squeeze(new_cut, note_room, room, sums)

    def _note_room(self, room: int) -> int:
        """Tokens that names and values of what is cut may take."""
        return min(self._policy.identifier_tokens, max(room, 0) // 10)

    def _with_question(self, start: int, *, after: int) -> int:
        """The start, or the user's message right before it: it would be sent all the same."""
        messages = self._history.messages
        begins = start - 1 > after and messages[start - 1].role == "user" != messages[start].role
        return start - 1 if begins else start

    def _pinned(self, room: int, sums: Sequence[int]) -> int:
        """How many messages at the beginning are pinned, if they are not too large.

        A summary is, whatever the strategy: it stands for what is gone. So are the user's first messages.
        """
        messages = self._history.messages
        if self._history.gap.messages:
            messages = messages[: self._history.gap.lead]
        pinned = 0
        if messages and is_summary(messages[0]) and sums[1] <= room * LARGEST_SUMMARY:
            pinned = 1
        if not self._policy.pin_first or self._policy.strategy not in ("oldest_first", "smart"):
            return pinned
        most = room * truncation.LARGEST_HEAD + sums[pinned]
        for message in islice(messages, pinned, None):
            if message.role != "user" or sums[pinned + 1] > most:
                break
            pinned += 1
        return pinned

    def _cut_at(self, last: _Cut, start: int, head: int, note_room: int) -> _Cut:
        index, read, note, tokens = last.index, last.read, None, 0
        if note_room >= LEAST:
            index = _index(self._history.gap.messages) if index is None else index.copy()
            begin = max(read, head)
            recent = max(begin, start - REMEMBERED)  # the names of older ones would have faded
            index.messages += recent - begin
            index.extend(self._history.messages[recent:start])
            read = max(read, start)
            text = index.render(self._counter, note_room - count_message(self._counter, ""))
            note = Message("user", text) if text else None
            tokens = count_message(self._counter, text) if text else 0
        shortened_results = {at: shortened for at, shortened in last.shortened.items() if at >= start}
        return _Cut(start, head, note, tokens, index, read, shortened_results)

    def _squeeze(self, cut: _Cut, note_room: int, room: int, sums: Sequence[int]) -> _Cut:
        """The newest group is too large, with what stands before it: give up one thing after the other.

        A late result makes one group of all since its call. It is left out rather than all be refused for it.
        """
        grouping = self._history.grouping
        newest = max(grouping.groups[-1], cut.start)
        for start in (newest, *(turn for turn in grouping.asked[-1:] if turn > newest)):
            whole = self._cut_at(cut, start, cut.head, note_room)
            for lighter in (
                whole,
                msgspec.structs.replace(whole, head=0),
                msgspec.structs.replace(whole, head=0, note=None, note_tokens=0),
            ):
                shortened = self._shorten_group(lighter, room, sums)
                if self._size(shortened, sums) <= room:
                    return shortened
        return shortened

    # ------------------------------------------------------------ shortening

    def _shorten_new(self, cut: _Cut, room: int, sums: Sequence[int]) -> _Cut:
        """Shorten results that came since the last cut was made and are larger than half of the room."""
        limit = int(room * LARGEST_NEW)
        begin = max(self._settled_seen, cut.start)
        large = [
            index
            for index in range(begin, len(self._history))
            if sums[index + 1] - sums[index] > max(limit, LEAST)
            and self._history.messages[index].role == "tool"
            and index not in cut.shortened
        ]
        return self._shorten(cut, dict.fromkeys(large, limit), sums)

    def _shorten_group(self, cut: _Cut, room: int, sums: Sequence[int]) -> _Cut:
        """Shorten the largest results of what is kept to one size, such that all of it fits."""
        over = self._size(cut, sums) - room
        sizes = {
            index: sums[index + 1] - sums[index] - cut.shortened.get(index, (None, 0))[1]
            for index in range(cut.start, len(self._history))
            if self._history.messages[index].role == "tool"
        }
        limit = water_level(sorted(sizes.values(), reverse=True), sum(sizes.values()) - over)
        return self._shorten(cut, {index: limit for index, size in sizes.items() if size > limit}, sums)

    def _shorten(self, cut: _Cut, limits: Mapping[int, int], sums: Sequence[int]) -> _Cut:
        if not limits:
            return cut
        shortened = dict(cut.shortened)
        for index, limit in limits.items():
            size = sums[index + 1] - sums[index]
            message, tokens = shorten_result(self._history.messages[index], size, limit, self._counter)
            shortened[index] = (message, size - tokens)
        return msgspec.structs.replace(cut, shortened=shortened)

    def _view(self, fit: _Fit, budget: Budget, sums: Sequence[int]) -> View:
        cut = fit.cut
        front = self._front_of(cut, sums)
        return View(
            strategy=self._policy.strategy,
            history=self._history,
            head=cut.head,
            pinned=sums[cut.head],
            uncut_tokens=fit.uncut,
            note=cut.note,
            note_tokens=cut.note_tokens,
            anchor=front.anchor,
            start=cut.start,
            shortened=front.shortened,
            tokens=fit.tokens + fit.repairs,
            repair_tokens=fit.repairs,
            original_tokens=sums[-1] + self._history.gap.tokens,
            room=budget.room,
            end=len(self._history),
        )


def _index(unread: int) -> "IdentifierIndex":
    """A new index, with messages that it will never read."""
    # many patterns, which the first diagnostics of an editor need not wait for
    from nexus_context.conversation.identifiers import IdentifierIndex

    index = IdentifierIndex()
    index.messages = unread
    return index
