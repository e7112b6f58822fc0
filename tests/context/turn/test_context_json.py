"""Which message of a turn has which part of the turn's record."""

from typing import Any, cast

import pytest

from nexus_context.conversation.message import Message
from nexus_context.turn.context_json import message_contexts

USER = {"injectedAt": "2026-11-20T12:00:00+00:00", "event": {"hookCount": 2}}
MEMORY = {"included": ["docs/deploy.md"]}


@pytest.mark.parametrize(
    ("roles", "record", "expected"),
    [
        ("user assistant tool assistant", {"system": {}, "user": USER}, [USER, None, None, None]),
        ("user user assistant user", {"user": USER}, [None, USER, None, None]),
        ("user assistant", {"user": USER, "memory": MEMORY}, [{**USER, "memory": MEMORY}, None]),
        ("user", {"memory": MEMORY}, [{"memory": MEMORY}]),
        ("user", {"system": {"files": []}}, [None]),
        ("tool assistant", {"user": USER}, [None, None]),
        ("assistant user", {"user": USER}, [None, None]),
        ("user", None, [None]),
        ("user", {"user": "text"}, [None]),
        ("", {"user": USER}, []),
    ],
)
def test_each_message_has_its_part(roles: str, record: Any, expected: list[Any]) -> None:
    assert message_contexts([Message(cast("Any", role), "x") for role in roles.split()], record) == expected
