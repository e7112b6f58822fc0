"""Selects the history to send: cut when it no longer fits, then left alone for many turns.

1. A cut stays until the budget is exceeded again. Until then each request begins with the same bytes.
2. Before the messages that stay come, in this order: the leading system messages, the pinned first user
   messages (not with `sliding`, `recency` and `simple`), a note with the names and values of what is cut
   (`Policy.note_room`), and the user message that began the turn, if the cut lies within a turn. So the first
   message that is not a system message is the user's.
   What was said before the last turn is sent without its preamble from then on: the event and memory text of
   its time. If that alone is enough, no message is cut. What messages tell of changes in a prompt and tools
   that are not the sent ones any more (`frozen`) is never sent.
3. A new tool result larger than half of the room is shortened, once, so that not everything else is cut for
   it. If the newest group alone does not fit, its largest results are shortened, then the longest texts of
   the assistant, and last those of users. First each is shortened to at least LEAST_TEXT of the room, then
   further in the same order. If even that is too much after many parallel calls, a few words replace the
   oldest results, one by one.
4. If the messages still do not fit, `View.over` is true, and the caller refuses the request.
5. The cut of a request becomes permanent when the conversation continues from that request. Until then every
   request makes its own cut, so that a long draft changes nothing. Read-only callers never propose a cut.
6. The cost of a request does not grow with the history: only new messages, and those that a cut removes, are
   read.
7. If only the beginning and the end of the history are loaded, the cut lies after the gap, even if the loaded
   messages would fit, because the missing ones count as cut. `middle_out` needs all messages instead.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nexus_context.conversation import truncation
from nexus_context.conversation.body_shape import AS_IT_IS, BodyShape
from nexus_context.conversation.history import History
from nexus_context.conversation.message import (
    Message,
    Role,
    content_of,
    sent_message,
    without_changes,
    without_preamble,
)
from nexus_context.conversation.shortening import LEAST, leave_out_result, shorten_message, water_level
from nexus_context.conversation.summary import is_summary, server_compaction
from nexus_context.conversation.truncation import Strategy
from nexus_context.conversation.view import View
from nexus_context.tokens import TokenCounter, count_message

if TYPE_CHECKING:
    from nexus_context.conversation.cut_note import CutNote

LARGEST_NEW = 0.5
"""Share of the room that a new tool result may take before others are cut for it."""

LEAST_TEXT = 0.125
"""Share of the room to which a result is shortened before what people wrote is shortened for it."""

SHORTENED_ROLES: tuple[Role, ...] = ("tool", "assistant", "user")
"""Whose texts are shortened, in this order."""

LARGEST_SUMMARY = 0.5
"""Share of the room up to which a summary of earlier messages stays."""

NOTE_SHARE = 0.25
"""Share of a large room that the note may take."""

NOTE_HALF = 2_000
"""Tokens of room at which the note may take half of that share: in a small room messages are worth more."""

LEAST_NOTE_SHARE = 0.1
"""Share of any room that the note may take."""

LARGEST_NOTE = 16_000
"""Tokens that the note takes at most: about as many as the names that are remembered have."""

MOST_INDEXED = 1_000
"""Most messages before a cut whose names are read."""

MOST_RETRIES = 4
"""Attempts at a cut whose repairs make it exceed the room."""

CACHED_FITS = 4
"""Cuts that are cached until the conversation continues: for other drafts, tools, prompts."""


class Policy(msgspec.Struct, frozen=True):
    """How a history is kept within its budget (the section `context` of config.json)."""

    strategy: Strategy = "oldest_first"
    target: float = 0.6  # share of the available tokens that a cut goes down to
    keep_recent_turns: int = 3
    pin_first: bool = True
    identifier_tokens: int | None = None  # the most that names and values of the cut part may take

    def note_room(self, room: int) -> int:
        """Return the tokens for the names and values of what is cut. `room` is the number of tokens for the
        whole history.

        It is the share NOTE_SHARE · room / (room + NOTE_HALF) of the room: 20 % of 8,000 tokens, 24 % of
        40,000. It is at least LEAST_NOTE_SHARE of the room, and at most LARGEST_NOTE and `identifier_tokens`
        tokens.
        """
        room = max(room, 0)
        share = max(NOTE_SHARE * room / (room + NOTE_HALF), LEAST_NOTE_SHARE)
        max_tokens = (
            LARGEST_NOTE if self.identifier_tokens is None else min(self.identifier_tokens, LARGEST_NOTE)
        )
        return min(int(share * room), max_tokens)


class Budget(msgspec.Struct, frozen=True):
    """The tokens that are available for a request, and those that everything except the history takes
    (`fixed`).
    """

    available: int
    fixed: int

    @property
    def room(self) -> int:
        return self.available - self.fixed


class _Replacement(NamedTuple):
    """The message sent in place of another, and the tokens saved; `is_short`: its text is shortened."""

    message: Message
    saved: int
    is_short: bool = False


class _Cut(msgspec.Struct, frozen=True):
    """One cut: what is left out, and what replaces it. `note_source` has read the messages up to `read`."""

    start: int = 0
    head: int = 0
    note: Message | None = None
    note_tokens: int = 0
    note_source: "CutNote | None" = None
    read: int = 0
    replaced: Mapping[int, _Replacement] = {}

    def saved(self, start: int, end: int | None = None) -> int:
        """Tokens saved by what is sent instead of the messages from `start` to `end`."""
        if not self.replaced:
            return 0
        return sum(
            replacement.saved
            for index, replacement in self.replaced.items()
            if index >= start and (end is None or index < end)
        )


class _Front(NamedTuple):
    """The constant part of a cut while messages are added; `tokens` plus those of all messages are sent."""

    cut: _Cut
    anchor: int | None
    tokens: int
    replaced: Mapping[int, Message]


class _Fit(NamedTuple):
    """A cut with the tokens that are sent, that repairs add, and that a request without a new cut takes.

    `added` are those that the body adds (`View.added`).
    `moved`: it is another cut than that of the last request.
    """

    cut: _Cut
    tokens: int
    repairs: int
    uncut: int
    added: Mapping[int, int] = {}
    moved: bool = False


class Window:
    """The cut of one history for one tokenizer, policy and model window (rules above)."""

    def __init__(self, history: History, counter: TokenCounter, policy: Policy) -> None:
        self._history = history
        self._counter = counter
        self._policy = policy
        self._least = history.least_start  # the earliest possible cut
        self._settled = _Cut()
        self._proposed = self._settled
        self._front = _Front(self._settled, None, 0, {})  # of the last cut
        self._size_before = 0  # number of messages at the last call
        self._settled_size = self._proposed_size = 0  # number of messages when these cuts were made
        self._fits: dict[tuple[Budget, BodyShape], _Fit] = {}  # since the conversation continued

    def fit(self, budget: Budget, *, shape: BodyShape = AS_IT_IS) -> View:
        """Return the messages to send. They exceed the budget only if nothing more can be shortened."""
        fit = self._cached_fit(budget, shape)
        self._proposed, self._proposed_size = fit.cut, len(self._history)
        return self._view(fit, budget, self._history.sums(self._counter))

    def look(self, budget: Budget, *, shape: BodyShape = AS_IT_IS) -> View:
        """Return the same as `fit` for a caller that sends nothing, so that the cut does not become the
        conversation's (rule 5).
        """
        return self._view(self._cached_fit(budget, shape), budget, self._history.sums(self._counter))

    def demand(self, budget: Budget) -> int:
        """Return the tokens of the next request if it cuts nothing more than the last request did."""
        fit = self._cached_fit(budget, AS_IT_IS)
        if self._proposed_size == len(self._history):
            return self._size(self._proposed, self._history.sums(self._counter))
        return fit.uncut

    def _cached_fit(self, budget: Budget, shape: BodyShape) -> _Fit:
        if self._policy.strategy == "middle_out":
            self._history.needs_all()
        size = len(self._history)
        if size > self._size_before:  # the conversation continued from the last request
            self._settled, self._settled_size = self._proposed, self._proposed_size
            self._size_before = size
            self._fits.clear()
        key = budget, shape
        fit = self._fits.get(key) if self._fits else None
        if fit is None:
            fit = self._fits[key] = self._try(budget, shape, self._history.sums(self._counter))
            if len(self._fits) > CACHED_FITS:
                del self._fits[next(iter(self._fits))]
        return fit

    def _try(self, budget: Budget, shape: BodyShape, sums: Sequence[int]) -> _Fit:
        """The cut for a request of this budget."""
        if not len(self._history):
            return _Fit(self._settled, 0, 0, 0)
        full_room, policy = budget.room, self._policy
        settled = self._without_notes(self._settled, shape.number, sums)
        cut = self._with_whole_group(settled, full_room, sums)
        tokens = self._size(cut, sums)
        repairs = self._repair_tokens(cut, tokens, budget, sums)
        added = self._added(cut, shape)
        uncut = tokens + repairs + sum(added.values())
        if self._history.gap.messages and not self._settled_size:  # the first cut lies after the gap
            uncut += self._history.gap.tokens
            cut = self._cut_at(cut, self._least, self._pinned(full_room, sums), policy.note_room(full_room))
            tokens = self._size(cut, sums)
            repairs, added = self._repair_tokens(cut, tokens, budget, sums), self._added(cut, shape)
        room = full_room
        for _ in range(MOST_RETRIES):
            extra_tokens = repairs + sum(added.values())
            if tokens + extra_tokens <= full_room:
                break
            room = min(room, full_room - max(extra_tokens, 0))
            cut = self._cut_to_fit(cut, Budget(budget.fixed + room, budget.fixed), budget, sums)
            tokens = self._size(cut, sums)
            repairs, added = self._repair_tokens(cut, tokens, budget, sums), self._added(cut, shape)
            if repairs + sum(added.values()) <= 0:
                break
        return _Fit(cut, tokens, repairs, uncut, added=added, moved=self._is_moved(settled, cut))

    def _added(self, cut: _Cut, shape: BodyShape) -> Mapping[int, int]:
        """Tokens that the body adds to the messages that are sent."""
        if not shape.format or not self._history.reshaped:
            return {}
        added = self._history.added_tokens(self._counter, shape)
        anchor = self._anchor(cut.head, cut.start)
        return {
            index: tokens
            for index, tokens in added.items()
            if index not in cut.replaced and (index < cut.head or index >= cut.start or index == anchor)
        }

    def _is_moved(self, settled: _Cut, cut: _Cut) -> bool:
        """Whether a message of the last request is not sent, or not as it was."""
        if cut is settled:
            return False
        if (cut.start, cut.head, cut.note) != (settled.start, settled.head, settled.note):
            return True
        settled_size = self._settled_size
        settled_replaced = settled.replaced
        return any(
            index < settled_size and replacement != settled_replaced.get(index)
            for index, replacement in cut.replaced.items()
        )

    def _repair_tokens(self, cut: _Cut, tokens: int, budget: Budget, sums: Sequence[int]) -> int:
        """Tokens that repairs add: placeholder results, minus what is left out."""
        anchor = self._front_of(cut, sums).anchor
        if self._history.grouping.is_sound(cut.head, anchor, cut.start, len(self._history)):
            return 0
        view = self._view(_Fit(cut, tokens, 0, tokens), budget, sums)
        messages, sizes = view.messages(), view.sizes(self._counter)
        sound = view.sound_messages()
        total = 0
        for message, origin in zip(sound.messages, sound.origins, strict=True):
            original = messages[origin]
            is_same = message.content is original.content and len(message.tool_calls) == len(
                original.tool_calls
            )
            total += sizes[origin] if is_same else self._counter.count_messages([message])
        return total - tokens

    # ------------------------------------------------------------ sizes

    def _size(self, cut: _Cut, sums: Sequence[int]) -> int:
        return self._front_of(cut, sums).tokens + sums[-1]

    def _front_of(self, cut: _Cut, sums: Sequence[int]) -> _Front:
        front = self._front
        if front.cut is cut:
            return front
        start = cut.start
        head = sums[cut.head] - cut.saved(0, min(cut.head, start))
        tokens = head + cut.note_tokens + self._tail(cut, start, sums) - sums[-1]
        replaced = {index: replacement.message for index, replacement in cut.replaced.items()}
        front = _Front(cut, self._anchor(cut.head, start), tokens, replaced)
        if start < len(self._history):  # else the next message may need an anchor
            self._front = front
        return front

    def _tail(self, cut: _Cut, start: int, sums: Sequence[int]) -> int:
        """Tokens from `start` on, with the user message that began the turn."""
        anchor = self._anchor(cut.head, start)
        lead = 0 if anchor is None else sums[anchor + 1] - sums[anchor] - cut.saved(anchor, anchor + 1)
        return lead + sums[-1] - sums[start] - cut.saved(start)

    def _anchor(self, head: int, start: int) -> int | None:
        """The user message to put before `start`, unless `start` is one."""
        messages = self._history.messages
        if not start or start >= len(messages) or messages[start].role == "user":
            return None
        questions = self._history.grouping.questions
        turn = bisect_right(questions, start) - 1
        if turn < 0:
            return None
        anchor = questions[turn]
        if anchor < self._least:  # the beginning of the turn is not loaded
            return None
        while anchor + 1 < start and messages[anchor + 1].role == "user":
            anchor += 1
        return anchor if anchor >= head else None

    # ------------------------------------------------------------ cutting

    def _with_whole_group(self, cut: _Cut, room: int, sums: Sequence[int]) -> _Cut:
        """Move the cut before its group if a late result joined messages around it and there is room."""
        groups = self._history.grouping.groups
        start = groups[bisect_right(groups, cut.start) - 1]
        if start == cut.start or self._policy.strategy == "simple":
            return cut
        grouped_cut = msgspec.structs.replace(cut, start=start, head=min(cut.head, start))
        return grouped_cut if self._size(grouped_cut, sums) <= room else cut

    def _cut_to_fit(self, last_cut: _Cut, budget: Budget, full_budget: Budget, sums: Sequence[int]) -> _Cut:
        """Cut to fit a budget; the target is a share of `full_budget`."""
        room = budget.room
        cut = self._with_whole_group(self._shorten_new(last_cut, room, sums), room, sums)
        if self._size(cut, sums) <= room:
            return cut
        policy = self._policy
        note_room = policy.note_room(room)
        pinned = self._pinned(room, sums)
        target = max(
            int(policy.target * full_budget.available) - full_budget.fixed, int(policy.target * room) // 2
        )
        target = min(target, room)
        cut = self._without_preambles(cut, pinned, sums)
        if self._size(cut, sums) <= target:
            return cut
        front = sums[pinned] - cut.saved(0, pinned) + note_room
        pinning = msgspec.structs.replace(cut, head=pinned)
        need = truncation.Need(
            size=lambda start: self._tail(pinning, start, sums) + front,
            target=target,
            room=room,
            after=cut.start,
            keep_recent_turns=policy.keep_recent_turns,
        )
        group_end = truncation.first_group_end(self._history)
        first_group = max(sums[group_end] - sums[pinned], 0)
        sent_range = truncation.cut(policy.strategy, self._history, need, first_group=first_group)
        start = self._with_question(sent_range.start, after=max(cut.start, sent_range.head, pinned))
        new_cut = self._cut_at(cut, start, max(sent_range.head, min(pinned, start)), note_room)
        return new_cut if self._size(new_cut, sums) <= room else self._squeeze(new_cut, note_room, room, sums)

    def _without_preambles(self, cut: _Cut, pinned: int, sums: Sequence[int]) -> _Cut:
        """Send messages before the last turn as their authors wrote them, without preambles."""
        history = self._history
        last_turn = history.grouping.questions[-1] if history.grouping.questions else 0
        anchor = self._anchor(cut.head, cut.start)
        begin = cut.start if anchor is None else anchor
        replaced = dict(cut.replaced)
        preambles = history.preambles
        for position in (
            *range(bisect_left(preambles, pinned)),
            *range(bisect_left(preambles, begin), len(preambles)),
        ):
            index = preambles[position]
            replacement = replaced.get(index)
            if index < last_turn and (
                replacement is None or (index in history.notes and not replacement.is_short)
            ):
                message = sent_message(without_preamble(history.messages[index]))
                if message == history.sent[index]:
                    continue
                tokens = count_message(self._counter, content_of(message), message.tool_calls, message.role)
                replaced[index] = _Replacement(message, sums[index + 1] - sums[index] - tokens)
        return cut if replaced == cut.replaced else msgspec.structs.replace(cut, replaced=replaced)

    def _without_notes(self, cut: _Cut, number: int, sums: Sequence[int]) -> _Cut:
        """Leave out the notes on prompts and tools other than those of this number."""
        messages = self._history.messages
        replaced = dict(cut.replaced)
        anchor = self._anchor(cut.head, cut.start)
        for index in self._history.notes:
            preamble = messages[index].preamble
            is_sent = index < cut.head or index >= cut.start or index == anchor
            if is_sent and index not in replaced and preamble is not None and preamble.frozen != number:
                message = sent_message(without_changes(messages[index]))
                tokens = count_message(self._counter, content_of(message), message.tool_calls, message.role)
                replaced[index] = _Replacement(message, sums[index + 1] - sums[index] - tokens)
        return cut if len(replaced) == len(cut.replaced) else msgspec.structs.replace(cut, replaced=replaced)

    def _with_question(self, start: int, *, after: int) -> int:
        """The start, or the user message right before it, which would be sent anyway."""
        messages = self._history.messages
        begins = start - 1 > after and messages[start - 1].role == "user" != messages[start].role
        return start - 1 if begins else start

    def _pinned(self, room: int, sums: Sequence[int]) -> int:
        """Count the messages pinned at the beginning: those that are not too large.

        A summary is pinned with every strategy, since it stands for what is gone, and that of a provider's
        server at any size, as are leading system messages with what they stand behind; then come the first
        user messages.
        """
        messages = self._history.messages
        if self._history.gap.messages:
            messages = messages[: self._history.gap.lead]
        pinned = 0
        if messages and is_summary(messages[0]):
            pinned = int(sums[1] <= room * LARGEST_SUMMARY or self._has_server_compaction)
        pinned = max(pinned, self._history.leading.stop)
        if not self._policy.pin_first or self._policy.strategy not in ("oldest_first", "smart"):
            return pinned
        max_tokens = room * truncation.LARGEST_HEAD + sums[pinned]
        for message in islice(messages, pinned, None):
            if message.role != "user" or sums[pinned + 1] > max_tokens:
                break
            pinned += 1
        return pinned

    @property
    def _has_server_compaction(self) -> bool:
        """Whether the history begins with a compaction by a provider's server, which nothing can replace."""
        messages = self._history.messages
        return bool(messages) and server_compaction(messages[0]) is not None

    def _cut_at(self, last_cut: _Cut, start: int, head: int, note_room: int) -> _Cut:
        source, read, note, tokens = last_cut.note_source, last_cut.read, None, 0
        if note_room >= LEAST:
            source = _new_note(self._history.gap.messages) if source is None else source.copy()
            begin = max(read, head)
            recent = max(begin, start - MOST_INDEXED)  # names of older ones would have faded
            source.skip(recent - begin)
            source.extend(self._history.messages[recent:start])
            read = max(read, start)
            text = source.render(self._counter, note_room - count_message(self._counter, ""))
            note = Message("user", text) if text else None
            tokens = count_message(self._counter, text) if text else 0
        anchor = self._anchor(head, start)
        replaced = {
            index: replacement
            for index, replacement in last_cut.replaced.items()
            if index < head or index == anchor or index >= start
        }
        return _Cut(
            start=start,
            head=head,
            note=note,
            note_tokens=tokens,
            note_source=source,
            read=read,
            replaced=replaced,
        )

    def _squeeze(self, cut: _Cut, note_room: int, room: int, sums: Sequence[int]) -> _Cut:
        """Give up one thing after the other if the newest group is too large with what precedes it.

        A late result makes one group of everything since its call; it is left out rather than the whole
        request refused.
        """
        grouping = self._history.grouping
        newest = max(grouping.groups[-1], cut.start)
        least_head = min(cut.head, max(self._history.leading.stop, int(self._has_server_compaction)))
        least = int(room * LEAST_TEXT)
        for start in (newest, *(turn for turn in grouping.questions[-1:] if turn > newest)):
            full_cut = self._cut_at(cut, start, cut.head, note_room)
            for lighter in (
                full_cut,
                msgspec.structs.replace(full_cut, head=least_head),
                msgspec.structs.replace(full_cut, head=least_head, note=None, note_tokens=0),
            ):
                shortened = self._shorten_texts("tool", lighter, room, sums, least=least)
                if self._size(shortened, sums) <= room:
                    return shortened
        for limit in (least, LEAST):
            for role in SHORTENED_ROLES:
                shortened = self._shorten_texts(role, shortened, room, sums, least=limit)
                if self._size(shortened, sums) <= room:
                    return shortened
        return self._leave_results_out(shortened, room, sums)

    # ------------------------------------------------------------ shortening

    def _shorten_new(self, cut: _Cut, room: int, sums: Sequence[int]) -> _Cut:
        """Shorten results since the last cut that are larger than half of the room."""
        limit = int(room * LARGEST_NEW)
        begin = max(self._settled_size, cut.start)
        large = [
            index
            for index in range(begin, len(self._history))
            if sums[index + 1] - sums[index] > max(limit, LEAST)
            and self._history.messages[index].role == "tool"
            and index not in cut.replaced
        ]
        return self._shorten(cut, dict.fromkeys(large, limit), sums)

    def _shorten_texts(self, role: Role, cut: _Cut, room: int, sums: Sequence[int], *, least: int) -> _Cut:
        """Shorten the longest texts of a role that stay to one size such that everything fits, or to `least`.

        An answer with parts stays as it is: they may be the provider's own.
        """
        over = self._size(cut, sums) - room
        anchor = self._anchor(cut.head, cut.start)
        messages, leading = self._history.messages, self._history.leading
        opening = range(min(leading.start, cut.head))  # a summary before them may be long
        sizes = {
            index: sums[index + 1] - sums[index] - (cut.replaced[index].saved if index in cut.replaced else 0)
            for index in (*opening, *(() if anchor is None else (anchor,)), *range(cut.start, len(messages)))
            if messages[index].role == role
            and (role != "assistant" or isinstance(messages[index].content, str))
        }
        if over <= 0 or not sizes:
            return cut
        limit = max(water_level(sorted(sizes.values(), reverse=True), sum(sizes.values()) - over), least)
        return self._shorten(cut, {index: limit for index, size in sizes.items() if size > limit}, sums)

    def _leave_results_out(self, cut: _Cut, room: int, sums: Sequence[int]) -> _Cut:
        """Replace the oldest results by a few words each until everything fits."""
        over = self._size(cut, sums) - room
        replaced = dict(cut.replaced)
        for index in range(cut.start, len(self._history)):
            message = self._history.messages[index]
            if over <= 0 or message.role != "tool":
                continue
            short, tokens = leave_out_result(message, self._counter)
            saved = sums[index + 1] - sums[index] - tokens
            extra_saved = saved - (replaced[index].saved if index in replaced else 0)
            if extra_saved > 0:
                replaced[index] = _Replacement(short, saved, is_short=True)
                over -= extra_saved
        return msgspec.structs.replace(cut, replaced=replaced)

    def _shorten(self, cut: _Cut, limits: Mapping[int, int], sums: Sequence[int]) -> _Cut:
        if not limits:
            return cut
        replaced = dict(cut.replaced)
        for index, limit in limits.items():
            size = sums[index + 1] - sums[index]
            message, tokens = self._history.messages[index], size
            if message.preamble is not None:
                message = sent_message(without_preamble(message))
                tokens = count_message(self._counter, content_of(message), message.tool_calls, message.role)
            short, short_tokens = shorten_message(message, tokens, limit, self._counter)
            replaced[index] = _Replacement(short, size - short_tokens, is_short=short is not message)
        return msgspec.structs.replace(cut, replaced=replaced)

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
            replaced=front.replaced,
            shortened=tuple(
                sorted(index for index, replacement in cut.replaced.items() if replacement.is_short)
            ),
            tokens=fit.tokens + fit.repairs + sum(fit.added.values()),
            added=fit.added,
            repair_tokens=fit.repairs,
            original_tokens=sums[-1] + self._history.gap.tokens,
            room=budget.room,
            end=len(self._history),
            moved=fit.moved,
        )


def _new_note(unread: int) -> "CutNote":
    """A note of nothing that counts `unread` messages as read."""
    # many patterns: the first diagnostics of an editor need not wait for them
    from nexus_context.conversation.cut_note import CutNote

    return CutNote(unread)
