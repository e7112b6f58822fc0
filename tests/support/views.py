"""What holds of every view of a conversation."""

import msgspec

from nexus_context.conversation.budget import history_rows
from nexus_context.conversation.shortening import LEAST
from nexus_context.conversation.view import View
from nexus_context.tokens import TokenCounter
from support.histories import pairing_errors


def check(view: View, counter: TokenCounter) -> None:
    """What holds of every view, whatever the history, the strategy and the budget."""
    history, grouping = view.history, view.history.grouping
    messages = view.messages()
    sound, repairs, _ = view.sound_messages()
    # every token that a provider is sent is counted, and has its row
    added = sum(view.added.values())
    assert counter.count_messages(sound) + added == view.tokens
    assert sum(view.sizes(counter)) + view.repair_tokens == view.tokens
    sizes = msgspec.structs.replace(view, added={}).sizes(counter)
    assert sizes == [counter.count_messages([message]) for message in messages]
    assert sum(row.tokens for row in history_rows(view, counter)) == view.tokens
    # the newest message is there, at most shortened
    if history.messages:
        newest = len(history) - 1
        assert messages[-1] == view.replaced.get(newest, history.sent[newest])
    # groups are whole, save where the result of a call that was cut comes late and there is no room for both
    groups = [*grouping.groups, len(history)]
    assert view.head in groups or view.start not in groups
    if view.strategy != "simple" and view.start not in groups:
        group = max(start for start in groups if start < view.start)
        needed = [*history.messages[: group + 1][-8:], *history.messages[group : view.start]]
        assert view.tokens - view.repair_tokens + counter.count_messages(needed) > view.room
    # the conversation begins with the user where it can
    known = history.messages[history.least_start : view.start + 1]
    if view.start and any(one.role == "user" for one in known):
        assert messages[0].role == "user" or view.head
    # it is too long only where nothing more can be left out or shortened
    if view.over and history.messages:
        assert view.start >= grouping.groups[-1]
        assert (view.head <= history.leading.stop, view.note) == (True, None)
        kept = [view.replaced.get(at, history.sent[at]) for at in range(view.start, view.end)]
        assert all(counter.count_messages([one]) <= LEAST for one in kept if one.role == "tool")
    # providers accept it
    assert pairing_errors(sound) == []
    assert bool(repairs) or sound == messages
