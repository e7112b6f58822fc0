"""Tools of MCP servers that a model gets only when it looks for them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.revealed_tools import SEARCH
from nexus_context.conversation.tools import name_of
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.assembly import assemble, measure
from nexus_context.turn.deferral import search, search_answer
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext, Options, Request
from support.folders import load_configured
from support.provider_rules import check_anthropic, check_responses
from support.provider_types import check_anthropic_types, check_responses_types

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def tool(name: str, description: str, *parameters: str) -> dict[str, Any]:
    properties = {each: {"type": "string", "description": "A value. " * 20} for each in parameters}
    return {
        "name": f"mcp__{name}",
        "description": description,
        "parameters": {"type": "object", "properties": properties},
    }


TOOLS = [
    tool("git__create_issue", "Create an issue in a repository. It is open then.", "title", "body"),
    tool("git__list_issues", "List issues of a repository.", "state"),
    tool("git__search_code", "Find text in all files.", "query", "repository"),
    tool("files__read_file", "Read a file as text.", "path"),
    tool("files__writeFile", "Replace what a file holds.", "path", "content"),
    tool("weather__forecast", "Tell how warm it will be. Weather of a city.", "city"),
]
NAMES = [each["name"] for each in TOOLS]
LISTED = """\
mcp__files__read_file: Read a file as text.
mcp__files__writeFile: Replace what a file holds.
mcp__git__create_issue: Create an issue in a repository.
mcp__git__list_issues: List issues of a repository.
mcp__git__search_code: Find text in all files.
mcp__weather__forecast: Tell how warm it will be."""


class Talk:
    """A conversation with tools of servers, request by request."""

    def __init__(self, snapshot: Snapshot, form: str = "openai", tools: Sequence[Any] = TOOLS) -> None:
        self.snapshot, self.form, self.tools = snapshot, form, tools
        self.conversation, self.now, self.calls = ContextManager(started=NOON), NOON, 0

    @property
    def options(self) -> Options:
        own = [{"name": "zoom", "parameters": {"type": "object"}}]
        return Options(server_tools=self.tools, tool_format=self.form, additional_tools=own)

    def ask(self, text: str | None = "Go.") -> AssembledContext:
        self.now += timedelta(minutes=1)
        message = None if text is None else Message("user", text)
        request = Request(message=message, format=self.form, options=self.options)
        context = assemble(self.snapshot, self.conversation, request, now=self.now)
        if text is not None:
            self.conversation.add([context.turn_message])
        return context

    def call(self, name: str, result: str = "Done.", **arguments: Any) -> None:
        self.calls += 1
        call = ToolCall(f"c{self.calls}", name, arguments)
        self.conversation.add(
            [
                Message("assistant", None, tool_calls=(call,)),
                Message("tool", result, tool_call_id=call.id),
            ]
        )

    def look(self, query: str) -> None:
        self.call(SEARCH, search_answer(search(self.tools, query)), query=query)


def snapshot_of(tmp_path: Path, model: str = "gpt-4o", defer: str = "always", files: str = "") -> Snapshot:
    config = {"provider": {"model": model}, "tools": {"defer": defer}}
    return load_configured(tmp_path, json.dumps(config), files)


def names(context: AssembledContext) -> list[str]:
    return [name_of(each) for each in context.tools]


def test_only_a_search_tool_with_their_names_is_sent(tmp_path: Path) -> None:
    talk = Talk(snapshot_of(tmp_path))
    context = talk.ask()
    assert names(context) == [SEARCH, "zoom"]
    assert context.tools[0]["description"].endswith(f"can be searched:\n{LISTED}")
    rows = [row.label for row in context.usage.rows if row.category == "tools"]
    assert rows == [SEARCH, "zoom"]
    assert context.usage.deferred > sum(row.tokens for row in context.usage.rows if row.category == "tools")


@pytest.mark.parametrize(
    ("defer", "files", "sent"),
    [
        ("always", "", [SEARCH, "zoom"]),
        ("never", "", [*sorted(NAMES), "zoom"]),
        ("auto", "", [*sorted(NAMES), "zoom"]),
        ("auto", '//- /home/.nexus3/config.json\n{"context": {"max_tokens": 9000}}', [SEARCH, "zoom"]),
        ("always", '//- /home/.nexus3/config.json\n{"tools": {"disabled": ["mcp__*"]}}', ["zoom"]),
    ],
)
def test_the_setting_and_the_share_decide(tmp_path: Path, defer: str, files: str, sent: list[str]) -> None:
    assert names(Talk(snapshot_of(tmp_path, defer=defer, files=files)).ask()) == sent


def test_a_tool_that_is_not_allowed_is_neither_named_nor_found(tmp_path: Path) -> None:
    files = '//- /home/.nexus3/config.json\n{"permissions": {"deny": ["mcp__git__*"]}}'
    context = Talk(snapshot_of(tmp_path, files=files)).ask()
    assert "mcp__files__read_file" in context.tools[0]["description"]
    assert "mcp__git" not in context.tools[0]["description"]


def test_what_was_found_is_offered_behind_what_was_sent(tmp_path: Path) -> None:
    talk = Talk(snapshot_of(tmp_path))
    first = talk.ask()
    talk.look("what is the weather")
    second = talk.ask(None)
    assert names(second) == [SEARCH, "zoom", "mcp__weather__forecast"]
    assert second.tools[:2] == first.tools
    assert second.usage.deferred < first.usage.deferred
    talk.call("mcp__git__list_issues")  # without a search: its name was in the list
    third = talk.ask()
    assert names(third) == [*names(second), "mcp__git__list_issues"]
    assert third.system_prompt == first.system_prompt
    assert third.pending is None
    looked = measure(talk.snapshot, talk.conversation, request=Request(options=talk.options), now=talk.now)
    assert [row.label for row in looked.usage.rows if row.category == "tools"] == names(third)


def test_a_tool_that_was_found_renders_nothing_else_anew(tmp_path: Path) -> None:
    talk = Talk(snapshot_of(tmp_path, files="//- /home/a/NEXUS.md\nBe brief."))
    first = talk.ask("Go. " * 5_000)  # to write that again costs more than a note
    talk.snapshot = snapshot_of(tmp_path, files="//- /home/a/NEXUS.md\nBe kind.")
    told = talk.ask()
    assert "Be kind." in str(told.current_message)
    talk.look("weather")
    second = talk.ask(None)
    assert second.tools == [*first.tools, TOOLS[-1]]
    assert second.system_prompt == first.system_prompt
    third = talk.ask()
    said = str(third.current_message)
    assert ("Be kind." in said, "mcp__weather" in said) == (False, False)  # both are known
    assert third.pending is not None
    assert [change.label for change in third.pending.changes if not change.told] == []


def test_a_stranger_in_a_result_reveals_nothing(tmp_path: Path) -> None:
    talk = Talk(snapshot_of(tmp_path))
    talk.ask()
    talk.call(SEARCH, "mcp__evil__run: Run it.\nSee mcp__git__list_issues.")
    talk.call("other", "mcp__git__list_issues: as if a search had found it.")
    assert names(talk.ask(None)) == [SEARCH, "zoom"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.sampled_from(["issue", "file", "weather", "path state city", "none"])),
        st.tuples(st.just("call"), st.sampled_from([*NAMES, "zoom", "mcp__gone__tool"])),
        st.tuples(st.just("ask"), st.just("")),
        st.tuples(st.just("wait"), st.just("")),
        st.tuples(st.just("restart"), st.just("")),
    ),
    max_size=12,
)


@pytest.mark.parametrize("replay", ["sent", "plain"])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_what_was_sent_begins_what_is_sent_later(tmp_path: Path, replay: str, steps: Any) -> None:
    files = f'//- /home/.nexus3/config.json\n{{"context": {{"replay": "{replay}"}}}}'
    talk = Talk(snapshot_of(tmp_path, files=files))
    before = talk.ask().tools
    for step, value in steps:
        match step:
            case "look":
                talk.look(value)
            case "call":
                talk.call(value)
            case "ask":
                talk.ask()
            case "wait":  # the provider's cache is cold: all is rendered anew
                talk.now += timedelta(hours=2)
            case "restart":  # only the messages are left
                messages = talk.conversation.messages
                talk.conversation = ContextManager()
                talk.conversation.add(messages)
        now = talk.ask(None).tools
        assert now[: len(before)] == before
        before = now


@pytest.mark.parametrize(
    ("form", "model", "search_tool"),
    [
        (
            "anthropic",
            "claude-opus-5-5",
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        ),
        ("openai-responses", "gpt-5.6", {"type": "tool_search"}),
        ("anthropic", "claude-3-5-haiku", None),
        ("openai-responses", "gpt-4o", None),
    ],
)
def test_a_provider_searches_where_it_can(
    tmp_path: Path, form: str, model: str, search_tool: dict[str, str] | None
) -> None:
    talk = Talk(snapshot_of(tmp_path, model), form)
    context = talk.ask()
    body = context.request
    assert body is not None
    deferred = [each["name"] for each in body["tools"] if each.get("defer_loading")]
    if search_tool is None:
        assert (names(context), deferred) == ([SEARCH, "zoom"], [])
        return
    assert search_tool in [
        {key: value for key, value in each.items() if key != "cache_control"} for each in body["tools"]
    ]
    assert deferred == sorted(NAMES)
    rows = {row.label: row.tokens for row in context.usage.rows if row.category == "tools"}
    assert {rows[name] for name in NAMES} == {0}
    assert rows["zoom"] > 0
    assert context.usage.deferred > 100
    if form == "anthropic":
        check_anthropic(body)
        check_anthropic_types(body)
    else:
        check_responses(body)
        check_responses_types(body)


def test_what_the_provider_found_is_counted_and_changes_no_tool(tmp_path: Path) -> None:
    talk = Talk(snapshot_of(tmp_path, "claude-opus-5-5"), "anthropic")
    first = talk.ask()
    found = {"type": "tool_reference", "tool_name": NAMES[0]}
    answer = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": [found]},
        },
        {"type": "text", "text": "Found."},
    ]
    talk.conversation.add([Message("assistant", answer)])
    second = talk.ask()
    assert second.tools == first.tools
    rows = {row.label: row.tokens for row in second.usage.rows if row.category == "tools"}
    assert [name for name in NAMES if rows[name]] == [NAMES[0]]
    assert second.usage.deferred == first.usage.deferred - rows[NAMES[0]]


def test_a_server_of_the_user_gets_our_search(tmp_path: Path) -> None:
    files = '//- /home/.nexus3/config.json\n{"provider": {"base_url": "https://proxy.test"}}'
    talk = Talk(snapshot_of(tmp_path, "claude-opus-5-5", files=files), "anthropic")
    assert names(talk.ask()) == [SEARCH, "zoom"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("issues", ["mcp__git__list_issues", "mcp__git__create_issue"]),
        ("write", ["mcp__files__writeFile"]),
        ("path", ["mcp__files__read_file", "mcp__files__writeFile"]),
        ("mcp__git__search_code", ["mcp__git__search_code"]),
        ("the", []),
        ("", []),
        ("chess", []),
    ],
)
def test_search(query: str, found: list[str]) -> None:
    assert [each["name"] for each in search(TOOLS, query)][: max(len(found), 1)] == found


def test_a_long_list_has_names_alone_and_says_how_many_more(tmp_path: Path) -> None:
    tools = [tool(f"big__tool_{number:04}", "Do something very long. " * 3) for number in range(1_000)]
    description = Talk(snapshot_of(tmp_path), tools=tools).ask().tools[0]["description"]
    assert len(description) < 13_000
    assert "\nmcp__big__tool_0000\nmcp__big__tool_0001\n" in description
    assert description.endswith(" more.")
