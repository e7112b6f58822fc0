"""Memory as tools: their arguments and answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import Message
from nexus_context.conversation.tools import Filter, select
from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger
from nexus_context.memory import queries
from nexus_context.memory.levels import Levels, MemorySettings, settings_of
from support.ledgers import turn_of
from support.provider_rules import check_anthropic, check_openai

FOLDER = "/home/a"


@pytest.fixture
def levels(tmp_path: Path) -> Iterator[Levels]:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    for session, text in (("main", "Never push to main."), ("other", "Always deploy with helm.")):
        ledger.append(FOLDER, session, turn_of(Message("user", text)))
    yield Levels(ledger)
    ledger.close()


def check(levels: Levels, tool: str, arguments: Any, expected: list[str], **given: Any) -> None:
    """The lines of an answer, without its times."""
    answer = queries.run(tool, arguments, levels=levels, workspace=FOLDER, session="main", **given)
    assert [line.partition(", 20")[0] for line in answer.split("\n")] == expected


def test_what_the_tools_answer(levels: Levels) -> None:
    main = ["[session main, turn 1", "user: Never push to main."]
    other = ["[session other, turn 1", "user: Always deploy with helm."]
    check(levels, "query_l2_memory", {}, main)
    check(levels, "query_l2_memory", {"limit": 3, "session_id": "other"}, other)
    check(levels, "query_l2_memory", '{"limit": 1.0}', main)
    check(levels, "query_l4_memory", {"query": "helm"}, [other[0], "user: Always deploy with «helm»."])
    check(levels, "query_l4_memory", {"query": "nowhere"}, [EMPTY["query_l4_memory"]])
    check(levels, "query_l4_memory", {"query": "helm", "session_id": "main"}, [EMPTY["query_l4_memory"]])
    check(levels, "query_l3_memory", None, [EMPTY["query_l3_memory"]])
    off = MemorySettings(l2_limit=0)
    check(levels, "query_l2_memory", "", [EMPTY["query_l2_memory"]], settings=off)


EMPTY = {
    "query_l2_memory": "Nothing that matters is remembered of this session.",
    "query_l3_memory": "This session has no summaries yet.",
    "query_l4_memory": "No earlier conversation of this workspace matches.",
}


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"),
    [
        ("query_l5_memory", {}, "unknown-tool", "query_l5_memory.*query_l2_memory, query_l3_memory"),
        ("query_l2_memory", {"limit": 0}, "bad-argument", "query_l2_memory: limit is 0; .* from 1 to 50"),
        ("query_l2_memory", {"limit": 51}, "bad-argument", "limit is 51"),
        ("query_l2_memory", {"limit": True}, "bad-argument", "limit is True"),
        ("query_l2_memory", {"limit": "3"}, "bad-argument", "limit is '3'"),
        ("query_l2_memory", {"session_id": 3}, "bad-argument", "session_id is of type int"),
        ("query_l3_memory", {"session_id": "gone"}, "unknown-session", "'gone'.*'other', 'main'"),
        ("query_l3_memory", {"query": "x"}, "bad-argument", "no argument 'query'. Known: limit, session_id"),
        ("query_l4_memory", {"query": ["x"]}, "bad-argument", "query is of type list"),
        ("query_l4_memory", {"query": "x" * 1_001}, "bad-argument", "query has 1,001 characters"),
        ("query_l4_memory", [1], "bad-argument", "arguments are of type list"),
        ("query_l4_memory", "{", "bad-argument", "arguments are not valid JSON"),
    ],
)
def test_arguments_that_cannot_be(levels: Levels, tool: str, arguments: Any, code: str, said: str) -> None:
    with pytest.raises(RequestError, match=said) as failed:
        queries.run(tool, arguments, levels=levels, workspace=FOLDER)
    assert failed.value.code == code


def test_an_answer_is_never_too_long(levels: Levels) -> None:
    for number in range(60):
        rule = Message("user", f"Never do {number}. " + "word " * 400)
        for message in (rule, Message("assistant", ".")):
            levels.ledger.append(FOLDER, "long", turn_of(message))
    answer = queries.run("query_l4_memory", {"query": "word", "limit": 50}, levels=levels, workspace=FOLDER)
    assert len(answer) < queries.LONGEST_ANSWER + 200
    many = queries.run(
        "query_l2_memory",
        {"session_id": "long", "limit": 50},
        levels=levels,
        workspace=FOLDER,
        settings=MemorySettings(l2_limit=50),
    )
    assert len(many) < queries.LONGEST_ANSWER + 200
    assert "more are not shown" in many


def test_definitions_are_tools_of_both_providers() -> None:
    tools = queries.definitions()
    assert [tool["name"] for tool in tools] == list(queries.NAMES)
    assert select(tools, rules=Filter(sandbox=True)).tools == tools  # they only read
    body, said = formats.openai("m", "", [Message("user", "Why?")], tools, {})
    check_openai(body)
    assert said == []
    body, said = formats.anthropic("m", "", [Message("user", "Why?")], tools, {"max_tokens": 9})
    check_anthropic(body)
    assert said == []
    assert all(field["description"] for tool in tools for field in tool["inputSchema"]["properties"].values())


@given(
    st.dictionaries(
        st.sampled_from(["limit", "session_id", "query", "x"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
    | st.text()
    | st.lists(st.integers())
)
def test_whatever_a_model_gives_is_answered_or_refused(arguments: Any) -> None:
    levels = Levels(NOTHING)  # type: ignore[arg-type]
    for tool in queries.NAMES:
        try:
            answer = queries.run(tool, arguments, levels=levels, workspace=FOLDER, session="main")
        except RequestError as error:
            assert error.code in ("bad-argument", "unknown-session")
        else:
            assert answer == EMPTY[tool]


class Nothing:
    """A ledger without sessions."""

    def find(self, *_: Any) -> None: ...

    def head(self, *_: Any) -> None: ...

    def sessions(self, _: str) -> list[Any]:
        return []

    @property
    def pages(self) -> "Nothing":
        return self

    def search(self, *_: Any, **__: Any) -> list[Any]:
        return []


NOTHING = Nothing()


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({}, MemorySettings()),
        ({"l1_messages": 0, "l2_limit": None, "knowledge": {"top_k": 3}}, MemorySettings(l1_messages=0)),
        ({"l2_limit": 4, "l3_limit": 5}, MemorySettings(l2_limit=4, l3_limit=5)),
    ],
)
def test_settings_of_the_configuration(section: dict[str, Any], expected: MemorySettings) -> None:
    assert settings_of(section) == expected
