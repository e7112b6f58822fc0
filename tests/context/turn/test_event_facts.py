"""What the event of a turn says to the model, by the agent's role."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.turn.assembly import assemble
from nexus_context.turn.event_facts import MOST_CHARACTERS, check_event, event_text, hook_count
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.fixture import write_fixture
from support.pools import pool_of

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
EVENT = {
    "id": "e1",
    "timezone": "Asia/Tokyo",
    "platform": "imessage",
    "platformActions": ["reply", "react"],
    "hookData": {"calendar": "free until 15:00", "queue": [1, 2]},
    "subject": "The gate",
}


def check(role: str, expected: str, event: dict[str, Any] = EVENT, *, clock: bool = True) -> None:
    check_event(event)
    assert event_text(event, role=role, clock=clock) == expected


def test_facts_by_role() -> None:
    everything = """\
Platform: imessage
Available actions: reply, react
calendar: free until 15:00
queue: [1,2]
subject: The gate"""
    check("manager", everything)
    check("unified", everything)
    check("worker", "calendar: free until 15:00\nqueue: [1,2]\nsubject: The gate")


def test_the_zone_is_said_once() -> None:
    check("worker", "Timezone: UTC", {"timezone": "UTC"}, clock=False)
    check("worker", "", {"timezone": "UTC"})


def test_hook_data_is_a_text_a_list_or_named() -> None:
    for data, text, count in (
        ("a line", "a line", 1),
        (["one", {"two": 2}], 'one\n{"two":2}', 2),
        ({"a": 1}, "a: 1", 1),
        ({}, "", 0),
        (None, "", 0),
    ):
        check("worker", text, {"hookData": data})
        assert hook_count({"hookData": data}) == count


def error_of(event: dict[str, Any]) -> str:
    with pytest.raises(RequestError) as failed:
        check_event(event)
    assert failed.value.code == "bad-event"
    return str(failed.value)


def test_a_wrong_type_names_its_field() -> None:
    assert [
        error_of({"platform": 1}),
        error_of({"platformActions": "reply"}),
        error_of({"platformActions": ["reply", None]}),
        error_of({"timezone": ["UTC"]}),
        error_of({"timezone": "Mars/Olympus"}),
    ] == snapshot(
        [
            "event.platform: Expected `str | null`, got `int`.",
            "event.platformActions: Expected `array`, got `str`.",
            "event.platformActions[1]: Expected `str`, got `null`.",
            "event.timezone: Expected `str | null`, got `array`.",
            (
                "event.timezone is 'Mars/Olympus', which is not a known time zone. Use an IANA name such as "
                "`Europe/Berlin`, `UTC` or `local`."
            ),
        ]
    )


def test_an_event_of_a_megabyte_is_cut_visibly() -> None:
    text = event_text({"mail": "x" * 1_000_000, "end": "!"}, role="unified", clock=True)
    assert MOST_CHARACTERS < len(text) < MOST_CHARACTERS + 200
    assert text.startswith("mail: xxx")
    left_out = 1_000_000 + len("mail: \nend: !") - MOST_CHARACTERS
    assert f"{left_out} " in text.replace(",", "")
    assert text.endswith("x\nend: !")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(st.dictionaries(st.sampled_from(["platform", "hookData", "git", "x"]) | st.text(), JSON))
def test_any_event_is_text_or_an_error(event: dict[str, Any]) -> None:
    try:
        check_event(event)
    except RequestError as error:
        assert str(error).startswith("event.")
    else:
        assert isinstance(event_text(event, role="manager", clock=True), str)


# ---------------------------------------------------------------- in a turn


@pytest.mark.parametrize("placement", ["event", "system", "off"])
def test_the_event_sets_the_clock_of_its_turn(tmp_path: Path, placement: str) -> None:
    datetime_settings = {"placement": placement, "format": "DD.MM. HH:mm", "timezone": "UTC"}
    config = json.dumps({"context": {"datetime": datetime_settings}})
    tree = write_fixture(f"//- /home/co/.nexus3/config.json\n{config}\n", tmp_path)
    main = pool_of(tree, "/home/co").main
    context = assemble(main.snapshot, ContextManager(), Request(Message("user", "Hi"), event=EVENT), now=NOW)
    assert context.current_message is not None
    message = text_of(context.current_message)
    sent = context.prompt.text + message
    zone = "Timezone: Asia/Tokyo" if placement == "off" else "20.11. 21:00 (Asia/Tokyo)"
    assert sent.count(zone) == 1
    assert ("Timezone: Asia/Tokyo" in message) == (placement != "event")
    assert (zone in message) == (placement != "system")
    assert "12:00" not in sent


def test_a_worker_is_not_told_the_platform(tmp_path: Path) -> None:
    tree = write_fixture("//- /home/co/a/AGENTS.md\n<a>\n", tmp_path)
    pool = pool_of(tree, "/home/co")
    for role, is_told in (("worker", False), ("manager", True), ("unified", True)):
        agent = pool.spawn(role, "a", role=role)
        request = Request(Message("user", "Hi"), event=EVENT, options=Options())
        context = assemble(agent.snapshot, agent.conversation, request, now=NOW)
        assert context.current_message is not None
        text = text_of(context.current_message)
        assert ("imessage" in text, "react" in text, "The gate" in text) == (is_told, is_told, True)


def test_a_bad_event_is_refused(tmp_path: Path) -> None:
    main = pool_of(write_fixture("//- /home/co/AGENTS.md\n<co>\n", tmp_path), "/home/co").main
    with pytest.raises(RequestError, match=r"event\.platform:"):
        assemble(
            main.snapshot, ContextManager(), Request(Message("user", "Hi"), event={"platform": 1}), now=NOW
        )
