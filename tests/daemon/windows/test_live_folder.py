"""A folder of one window."""

from typing import Any, cast

from nexus_daemon.sessions.conversations import Conversations
from nexus_daemon.windows.live_folder import MOST_AGENT_NEWS, LiveFolder

NOBODY = cast(Any, None)


def test_news_of_agents_count_once_and_the_oldest_are_forgotten() -> None:
    folder = LiveFolder("file:///a", "/a", "a", client=NOBODY, conversations=Conversations(), workers=NOBODY)
    reports = [(reason, number) for number in (1, 2) for reason in ("spawned", "disposed", "spawned")]
    assert [folder.take_agent_news(*report) for report in reports] == [True, True, False] * 2
    numbers = range(10, 10 + MOST_AGENT_NEWS)
    assert all(folder.take_agent_news("spawned", number) for number in numbers)
    assert not any(folder.take_agent_news("spawned", number) for number in numbers)
    assert folder.take_agent_news("spawned", 1)  # else a window that stays open for weeks has all of them
