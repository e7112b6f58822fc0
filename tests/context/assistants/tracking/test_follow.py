"""Reports of sessions, from transcripts as the programs write them."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.claude_code.steps import ClaudeCodeSteps
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.codex.steps import CodexSteps
from nexus_context.assistants.sessions import record_reader as reader
from nexus_context.assistants.sessions.followed import FollowedFile
from nexus_context.assistants.sessions.report import SessionReport
from nexus_context.assistants.sessions.session_types import Place
from nexus_context.assistants.tracking import AssistantSession, Usage, find_sessions
from nexus_context.assistants.tracking.follow import SessionFollower
from nexus_context.assistants.tracking.followers import SessionFollowers
from support.assistant_transcripts import (
    BEGUN,
    FOLDER,
    Claude,
    Codex,
    Record,
    calls,
    example_session,
    lines,
    thinks,
    write,
)

T0 = BEGUN.timestamp()


@pytest.fixture
def claude() -> Claude:
    return Claude()


def follow(path: Path, assistant: str = "claude-code", **values: Any) -> SessionFollower:
    session = AssistantSession(
        assistant=assistant, id="s1", path=str(path), folder=FOLDER, changed="2026-11-23T09:00:00Z"
    )
    follower = SessionFollower(session, **values)
    follower.advance()
    return follower


def report_of(
    tmp_path: Path, *records: Record | bytes | Sequence[Record], assistant: str = "claude-code", **values: Any
) -> SessionReport:
    path = write(tmp_path / "session.jsonl", flat(records))
    return follow(path, assistant, **values).report()


def flat(records: Iterable[Any]) -> list[Record | bytes]:
    return list(chain.from_iterable(one if isinstance(one, list) else [one] for one in records))


def parts(report: SessionReport) -> dict[str, int]:
    """Tokens by category and label."""
    return {
        " ".join(filter(None, (part.category, part.server, part.label))): part.tokens
        for part in report.window.parts
    }


def causes(report: SessionReport) -> list[tuple[str, int]]:
    return [(miss.cause, miss.tokens) for miss in report.misses]


# ---------------------------------------------------------------- Claude Code


def test_all_of_a_session(tmp_path: Path) -> None:
    claude, records = example_session()
    report = report_of(tmp_path, records)
    assert report.requests == 4
    assert report.total == Usage(fresh=40, cache_read=40_000, cache_write=47_300, output=215)
    assert (report.total_origin, report.cost_origin) == ("nexus", "nexus")
    assert report.cost_usd == pytest.approx(
        (40 * 3 + 40_000 * 0.3 + 47_300 * 3.75 + 215 * 15) / 1e6, rel=1e-6
    )
    assert causes(report) == [("first", 22_010), ("idle", 22_900), ("compaction", 1_410)]
    assert report.window.used == 19_410 == sum(part.tokens for part in report.window.parts)
    compaction = report.compactions[0]
    assert (compaction.trigger, compaction.before, compaction.after) == ("manual", 23_040, 19_410)
    assert compaction.dropped is not None
    assert "Never change a published price." in compaction.dropped.instructions
    assert "SHOP-4711" in compaction.dropped.identifiers
    assert "src/total_cache.py" in compaction.dropped.paths
    tools = {(tool.server, tool.tool): tool for tool in report.tools}
    assert tools.keys() == {(None, "Read"), ("tickets", "find_ticket")}
    assert tools[None, "Read"].in_window == 0 < tools[None, "Read"].tokens
    assert report.instructions == (f"{FOLDER}/CLAUDE.md",)
    assert (report.unread, report.damaged, report.long_lines, report.skipped_bytes) == ({}, 0, 0, 0)
    assert claude.session not in report.id  # the id is the one that the caller knows


def test_records_of_one_answer_count_once(tmp_path: Path, claude: Claude) -> None:
    answer = claude.answers(thinks("Hm."), "A", calls("Read"), write=1_000, output=50)
    report = report_of(tmp_path, claude.asks("Hi"), answer, answer)
    assert (report.requests, report.total) == (1, Usage(fresh=10, cache_write=1_000, output=50))
    assert [tool.calls for tool in report.tools] == [1]


def test_the_last_record_of_an_answer_has_its_whole_output(tmp_path: Path, claude: Claude) -> None:
    first, last = claude.answers("A", "B", write=1_000, output=1)
    last["message"]["usage"] = {**last["message"]["usage"], "output_tokens": 90}
    report = report_of(tmp_path, claude.asks("Hi"), first, last)
    assert (report.total.output, report.requests) == (90, 1)
    assert report.last is not None
    assert report.last.output == 90


def test_growth_is_shared_by_length(tmp_path: Path, claude: Claude) -> None:
    report = report_of(
        tmp_path,
        claude.asks("Hi"),
        claude.answers(calls("Read", "a"), calls("mcp__shop__find", "b"), write=10_000, output=40),
        claude.returns("a", "x" * 3_000),
        claude.returns("b", "y" * 1_000),
        claude.answers("Done", read=10_010, write=1_590, fresh=10),
    )
    window = parts(report)
    # 1,590 new tokens, which is more than 1,040 by length: the results are in proportion 3 to 1
    assert window["results Read"] == pytest.approx(3 * window["results shop find"], rel=0.01)
    assert sum(window.values()) == report.window.used == 11_610
    assert window["results Read"] + window["results shop find"] == pytest.approx(1_600 * 1_000 / 1_040, abs=5)


def test_definitions_divide_what_is_the_programs(tmp_path: Path, claude: Claude) -> None:
    tools = [
        {"name": "Read", "description": "x" * 1_000},
        {"name": "mcp__shop__find", "description": "y" * 3_000},
    ]
    shape = {"system": [{"type": "text", "text": "z" * 4_000}], "tools": tools}
    report = report_of(
        tmp_path,
        claude.asks("Hi"),
        {"type": "api-request-shape", "shapeHash": "1", "shape": shape},
        claude.answers("A", write=8_000, fresh=0),
    )
    window = parts(report)
    assert window["tools shop"] > 2.5 * window["tools"] > 0
    assert window["system"] == pytest.approx(4_000, rel=0.1)
    assert sum(window.values()) == 8_000


def test_texts_that_take_more_than_the_request_are_scaled(tmp_path: Path, claude: Claude) -> None:
    report = report_of(tmp_path, claude.asks("x" * 40_000), claude.answers("A", write=100, fresh=0))
    assert parts(report) == {"user": 100}


def test_what_is_not_in_the_transcript_comes_from_the_profile(tmp_path: Path, claude: Claude) -> None:
    records = [claude.asks("Hi"), *claude.answers("A", write=8_000, fresh=0)]
    report = report_of(tmp_path, records, list_files=lambda _: [("/home/ana/shop/CLAUDE.md", 500.0)])
    assert parts(report)["instructions /home/ana/shop/CLAUDE.md"] == 500
    assert report.instructions == ("/home/ana/shop/CLAUDE.md",)
    records.insert(1, claude.loads("/home/ana/shop/AGENTS.md"))
    report = report_of(tmp_path, records, list_files=lambda _: pytest.fail("it is in the transcript"))
    assert report.instructions == ("/home/ana/shop/AGENTS.md",)


@pytest.mark.parametrize(
    ("change", "cause", "detail"),
    [
        ({"minute": 4}, None, ""),
        ({"minute": 6}, "idle", ""),
        ({"minute": 4, "model": "claude-opus-4-5"}, "model", "claude-sonnet-4-5 → claude-opus-4-5"),
        ({"minute": 4, "version": "2.1.331"}, "version", "2.1.330 → 2.1.331"),
        ({"minute": 4, "file": "Other rules"}, "instructions", "/home/ana/shop/CLAUDE.md"),
        ({"minute": 4, "shape": "2"}, "tools", ""),
        ({"minute": 4, "nothing": True}, "rewritten", ""),
    ],
)
def test_the_cause_of_a_miss(
    tmp_path: Path, claude: Claude, change: dict[str, Any], cause: str | None, detail: str
) -> None:
    def shape(name: str) -> Record:
        system = [{"type": "text", "text": name * 100}]
        return {"type": "api-request-shape", "shapeHash": name, "shape": {"system": system, "tools": []}}

    path = "/home/ana/shop/CLAUDE.md"
    records = [claude.asks("Hi"), claude.loads(path), shape("1"), *claude.answers("A", write=9_000)]
    claude.minute = change["minute"]
    claude.model = change.get("model", claude.model)
    claude.version = change.get("version", claude.version)
    if "file" in change:
        records.append(claude.loads(path, change["file"]))
    records.append(shape(change.get("shape", "1")))
    read = 9_000 if cause is None else 0
    records += [claude.asks("And?"), *claude.answers("B", read=read, write=9_100 - read)]
    report = report_of(tmp_path, records)
    misses = report.misses[1:]
    assert [(miss.cause, miss.tokens, miss.detail) for miss in misses] == (
        [] if cause is None else [(cause, 9_000, detail)]
    )
    if cause == "idle":
        (miss,) = misses
        assert (miss.at, miss.idle_s) == (T0 + 360, 360.0)
        assert miss.cost_usd == pytest.approx(9_000 * ((9_100 * 3.75 + 10 * 3) / 9_110 - 0.3) / 1e6)


def test_a_little_less_from_the_cache_is_no_miss(tmp_path: Path, claude: Claude) -> None:
    first = claude.answers("A", write=9_000)
    for lost, expected in ((1_000, []), (1_100, [("rewritten", 1_100)])):
        later = claude.answers("B", read=9_000 - lost, write=100 + lost)
        assert causes(report_of(tmp_path, claude.asks("Hi"), first, later))[1:] == expected


@pytest.mark.parametrize(("read", "price"), [(10_140, 0.3), (0, 3.75), (5_070, (0.3 + 3.75) / 2)])
def test_what_a_tool_costs(tmp_path: Path, claude: Claude, read: int, price: float) -> None:
    records = [
        claude.asks("Hi"),
        *claude.answers(calls("Read", "t", path="x"), write=10_000, fresh=0, output=40),
        claude.returns("t", "x" * 400),
        *claude.answers("A", read=10_000, write=140, fresh=0, output=10),
    ]
    (tool,) = report_of(tmp_path, records).tools
    assert (tool.calls, tool.tokens, tool.in_window) == (1, 100, 100)
    # 40 tokens of the answer, then they and the result are new
    cost = 40 * 15 + 140 * 3.75
    assert tool.cost_usd == pytest.approx(cost / 1e6)
    more = claude.answers("B", read=read, write=10_150 - read, fresh=0)
    (tool,) = report_of(tmp_path, records, more).tools
    assert tool.cost_usd == pytest.approx((cost + 140 * price) / 1e6, rel=1e-3)


def test_a_call_that_failed(tmp_path: Path, claude: Claude) -> None:
    records = [claude.asks("Hi"), *claude.answers(calls("Read", "t"), write=9_000)]
    report = report_of(tmp_path, records, claude.returns("t", "no such file", is_error=True))
    assert [(tool.calls, tool.errors) for tool in report.tools] == [(1, 1)]


def test_a_model_without_prices(tmp_path: Path) -> None:
    claude = Claude(model="local-model")
    report = report_of(tmp_path, claude.asks("Hi"), claude.answers(calls("Read"), write=9_000))
    assert (report.cost_usd, report.cost_origin, report.window.size) == (None, None, None)
    assert [tool.cost_usd for tool in report.tools] == [None]
    assert report.cache is not None
    assert (report.cache.cold_usd, report.cache.cold_at) == (None, None)


def test_an_instruction_file_that_was_written_meanwhile(tmp_path: Path, claude: Claude) -> None:
    rules = tmp_path / "CLAUDE.md"
    rules.write_text("x")
    os.utime(rules, (T0 + 30, T0 + 30))
    records = [claude.asks("Hi"), claude.loads(str(rules)), *claude.answers("A", write=9_000)]
    claude.minute = 1
    report = report_of(tmp_path, records, claude.answers("B", write=9_100))
    assert (report.misses[-1].cause, report.misses[-1].detail) == ("instructions", str(rules))


def test_what_is_written_for_an_hour_lives_for_an_hour(tmp_path: Path, claude: Claude) -> None:
    records = [claude.asks("Hi"), *claude.answers("A", write=9_000, hour=True)]
    claude.minute = 50
    report = report_of(tmp_path, records, claude.answers("B", read=9_000, write=100, hour=True, output=5))
    assert causes(report) == [("first", 9_010)]
    cache = report.cache
    assert cache is not None
    assert (cache.lifetime_s, cache.cold_at, cache.next_tokens) == (3_600, T0 + 50 * 60 + 3_600, 9_115)
    assert cache.cold_usd == pytest.approx(9_115 * 6 / 1e6)
    assert cache.warm_usd == pytest.approx((9_110 * 0.3 + 5 * 6) / 1e6)


def test_the_programs_own_sums_win(tmp_path: Path, claude: Claude) -> None:
    records = [claude.asks("Hi"), *claude.answers("A", write=9_000)]
    sums = claude.sums_up(0.5, inputTokens=30, cacheCreationInputTokens=10_000, outputTokens=70)
    report = report_of(tmp_path, records, sums)
    assert (report.cost_usd, report.cost_origin, report.total_origin) == (0.5, "program", "program")
    assert report.total == Usage(fresh=30, cache_write=10_000, output=70)
    report = report_of(tmp_path, records, sums, claude.answers("B", read=9_000, fresh=0, output=10))
    assert report.cost_usd == pytest.approx(0.5 + (9_000 * 0.3 + 10 * 15) / 1e6)
    assert (report.cost_origin, report.total.cache_read, report.total.output) == ("both", 9_000, 80)


def test_a_compaction_without_a_request_since(tmp_path: Path, claude: Claude) -> None:
    report = report_of(
        tmp_path,
        claude.asks("Hi"),
        claude.answers("A", write=9_000, fresh=0),
        claude.compacts("x" * 400, before=9_020, after=100),
    )
    assert report.window.is_estimate
    assert parts(report) == {"system": 9_000 - 0, "summary": 100} or parts(report)["summary"] == 100
    assert (report.compactions[0].trigger, report.compactions[0].after) == ("auto", 100)
    assert report.cache is not None
    assert (report.cache.next_tokens, report.cache.cold_at) == (report.window.used, None)
    assert (report.cache.warm_usd, report.cache.cold_usd is not None) == (None, True)


def test_what_a_summary_keeps_is_not_dropped(tmp_path: Path, claude: Claude) -> None:
    todo = {"todos": [{"content": "Write tests for the gate", "status": "pending"}]}
    records = [
        claude.asks("Always use tabs. Look at src/gate.py and src/lock.py."),
        *claude.answers(calls("TodoWrite", "t", **todo), write=9_000),
        claude.returns("t", "ok"),
        *claude.answers("I look.", read=9_000),
        *claude.compacts("src/gate.py was read.", before=9_100, after=20),
    ]
    dropped = report_of(tmp_path, records).compactions[0].dropped
    assert dropped is not None
    assert dropped.tasks == ("Write tests for the gate",)
    assert "Always use tabs." in dropped.instructions
    assert dropped.paths == ("src/lock.py",)


def test_messages_that_a_compaction_preserves_are_not_dropped(tmp_path: Path, claude: Claude) -> None:
    records = [claude.asks("Look at src/gate.py."), *claude.answers("And src/lock.py.", write=9_000)]
    boundary, summary = claude.compacts("Nothing.", before=9_100, after=20)
    boundary["compactMetadata"]["preservedMessages"] = {"uuids": [records[1]["uuid"]]}
    report = report_of(tmp_path, records, boundary, summary)
    assert report.compactions[0].dropped is not None
    assert report.compactions[0].dropped.paths == ("src/gate.py",)
    assert parts(report)["answers"] > 0


def test_secrets_are_no_dropped_items(tmp_path: Path, claude: Claude) -> None:
    secret = "sk-ant-api03-" + "Ab3" * 30
    records = [claude.asks(f"Always use the key {secret}."), *claude.answers("Yes.", write=9_000)]
    report = report_of(tmp_path, records, claude.compacts("Nothing.", before=9_000, after=10))
    assert report.compactions[0].dropped is not None
    assert secret not in repr(report.compactions)


def test_sub_agents_have_windows_of_their_own(tmp_path: Path, claude: Claude) -> None:
    path = tmp_path / "session.jsonl"
    agent = Claude(model="claude-haiku-4-5")
    directory = tmp_path / "session" / "subagents"
    write(directory / "agent-a1.jsonl", [agent.asks("Look around"), *agent.answers("A", write=500, output=5)])
    (directory / "agent-a1.meta.json").write_text('{"agentType": "Explore", "description": "look"}')
    write(
        path,
        flat([claude.asks("Hi"), claude.answers("A", write=9_000), claude.asks("Inline", isSidechain=True)]),
    )
    follower = follow(path)
    report = follower.report()
    assert [(each.id, each.title, each.requests, each.window) for each in report.agents] == [
        ("a1", "look", 1, 510),
        (claude.session, "Inline", 0, 0),
    ]
    assert report.total == Usage(fresh=20, cache_write=9_500, output=25)
    assert report.window.used == 9_010
    with (directory / "agent-a1.jsonl").open("ab") as file:
        file.write(lines(agent.answers("B", read=500, output=1)))
    assert follower.advance()
    assert follower.report().agents[0].requests == 2


def test_a_report_follows_what_is_appended(tmp_path: Path, claude: Claude) -> None:
    path = write(tmp_path / "session.jsonl", flat([claude.asks("Hi"), claude.answers("A", write=9_000)]))
    follower = follow(path)
    first = follower.report()
    assert (follower.advance(), follower.report() is first) == (False, True)
    data = lines(claude.answers("B", read=9_000, write=50))
    with path.open("ab") as file:
        file.write(data[:-20])
    follower.advance()
    assert follower.report().requests == 1
    with path.open("ab") as file:
        file.write(data[-20:])
    assert (follower.advance(), follower.report().requests) == (True, 2)
    write(path, flat([claude.asks("New"), claude.answers("C", write=10)]))
    follower.advance()
    assert (follower.report().requests, follower.report().total.cache_write) == (1, 10)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"\0\0\0", {"damaged": 1}),
        (b'{"type": "assis', {"damaged": 1}),
        (b"[1]", {"damaged": 1}),
        (b"\xff\xfe", {"damaged": 1}),
        (b'{"a":' * 5_000, {"damaged": 1}),
        (b"", {"damaged": 0}),
        (b'{"type": "later-kind"}', {"unread": {"later-kind": 1}}),
        (b"{}", {"unread": {"None": 1}}),
        (b'{"type": "user", "message": 3}', {"damaged": 0}),
        (b'{"type": "assistant", "message": {"usage": "odd", "content": [3, {"type": 4}]}}', {"damaged": 0}),
        (b'{"type": "system", "subtype": "compact_boundary", "compactMetadata": []}', {"damaged": 0}),
        (b'{"type": "attachment", "attachment": {"type": "instructions", "files": [3, {}]}}', {"damaged": 0}),
        (b'{"type": "api-request-shape", "shape": {"tools": 3, "system": 4}}', {"damaged": 0}),
        (b'{"type": "cost-state", "totalCostUSD": true, "modelUsage": 3}', {"damaged": 0}),
    ],
)
def test_odd_lines_are_counted_and_harm_nothing(
    tmp_path: Path, claude: Claude, line: bytes, expected: dict[str, Any]
) -> None:
    records: list[Any] = [claude.asks("Hi"), line, *claude.answers("A", write=9_000)]
    report = report_of(tmp_path, *records)
    assert {name: getattr(report, name) for name in expected} == expected
    assert report.requests >= 1


def test_unknown_kinds_do_not_fill_the_memory(tmp_path: Path) -> None:
    report = report_of(tmp_path, *(json.dumps({"type": f"kind {n}"}).encode() for n in range(200)))
    assert (len(report.unread), sum(report.unread.values())) == (51, 200)


def test_a_large_transcript_is_read_from_its_end(
    tmp_path: Path, claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WHOLE", 10_000)
    monkeypatch.setattr(reader, "TAIL", 5_000)
    records = [claude.asks("Old"), *claude.answers("A", write=50_000)]
    records += [claude.asks("x" * 20_000), *claude.answers("B", read=50_000, write=9_000)]
    records += [claude.asks("New"), *claude.answers("C", read=59_000, write=100, fresh=0)]
    report = report_of(tmp_path, records)
    assert report.skipped_bytes > 0
    assert report.misses == ()
    assert parts(report)["earlier"] > 50_000
    assert sum(parts(report).values()) == report.window.used


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["ask", "answer", "call", "compact", "attach", "load"]),
            st.integers(0, 3_000),
            st.integers(0, 60_000),
        ),
        max_size=25,
    )
)
def test_the_parts_always_sum_to_what_the_provider_counted(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    claude, records = Claude(), []
    sent = 0
    for at, (kind, length, tokens) in enumerate(steps):
        if kind == "ask":
            records.append(claude.asks("x" * length))
        elif kind == "answer":
            sent = tokens + 5
            records += claude.answers("y" * length, read=tokens, fresh=5, output=length)
        elif kind == "call":
            sent = tokens + 5
            records += claude.answers(calls("Read", f"c{at}", path="z" * length), write=tokens, fresh=5)
            records.append(claude.returns(f"c{at}", "r" * length))
        elif kind == "compact":
            records += claude.compacts("s" * length, before=tokens, after=length)
            sent = 0
        elif kind == "attach":
            records.append(claude.attaches("note", "a" * length))
        else:
            records.append(claude.loads("/r.md", "i" * length))
    report = report_of(tmp_path_factory.mktemp("sums"), records)
    used = sum(part.tokens for part in report.window.parts)
    assert used == report.window.used
    assert all(part.tokens > 0 for part in report.window.parts)
    if sent:
        assert used == sent
    assert report.total.sent == sum(
        record["message"]["usage"]["input_tokens"]
        + record["message"]["usage"]["cache_read_input_tokens"]
        + record["message"]["usage"]["cache_creation_input_tokens"]
        for record in records
        if record["type"] == "assistant"
    )


# ---------------------------------------------------------------- Codex


@pytest.mark.parametrize("has_records", [True, False])
def test_a_rollout(tmp_path: Path, has_records: bool) -> None:
    codex = Codex()
    server_call = codex.calls("find", "b", q="x")
    server_call["payload"]["namespace"] = "mcp__shop"
    report = report_of(
        tmp_path,
        codex.begins(),
        codex.says("<permissions>", role="developer", kind="permissions.instructions"),
        codex.loads(),
        codex.says("Always use tabs. Where is src/gate.py?"),
        codex.calls("exec_command", "a", cmd="ls"),
        server_call,
        codex.uses(10_000, records=has_records),
        codex.returns("a", "x" * 900),
        codex.returns("b", "y" * 300),
        codex.says("Done.", role="assistant"),
        codex.uses(10_400, cached=9_900, records=has_records),
        later(codex).uses(0, output=0)[-1:],  # the same sums again
        assistant="codex",
    )
    assert (report.requests, report.total) == (2, Usage(fresh=10_500, cache_read=9_900, output=40))
    assert (report.window.used, report.window.size) == (10_400, 258_400)
    window = parts(report)
    assert sum(window.values()) == 10_400
    assert {"results exec_command", "results shop find", "instructions /home/ana/shop"} <= window.keys()
    assert window["results exec_command"] > 2 * window["results shop find"]
    assert report.cost_usd == pytest.approx((10_500 * 1.25 + 9_900 * 0.125 + 40 * 10) / 1e6)
    assert (report.cost_origin, report.total_origin) == ("nexus", "program")
    assert causes(report) == [("first", 10_000)]
    assert report.cache is not None
    assert report.cache.cold_at is None


def later(codex: Codex) -> Codex:
    codex.minute += 1
    return codex


def test_a_compaction_of_codex(tmp_path: Path) -> None:
    codex = Codex()
    records = [
        *codex.begins(),
        codex.says("Always use tabs. Where is src/gate.py?"),
        codex.says("There.", role="assistant"),
        *codex.uses(10_000),
        codex.says("Summary.", role="assistant", metadata={}),
    ]
    records[-1]["metadata"] = {"compaction_output": True}
    records += codex.uses(6_000, cached=5_900)
    records += [codex.compacts("Another language model started: nothing."), codex.says("And now?")]
    records += [codex.says("Well.", role="assistant"), *codex.uses(9_000, cached=6_000)]
    report = report_of(tmp_path, records, assistant="codex")
    (compaction,) = report.compactions
    assert (compaction.before, compaction.after) == (10_020, 9_000)
    assert compaction.dropped is not None
    assert compaction.dropped.instructions == ("Always use tabs.",)
    assert (report.requests, causes(report)[1:]) == (3, [("compaction", 3_000)])
    assert report.total.sent == 25_000


def test_odd_records_of_codex(tmp_path: Path) -> None:
    codex = Codex()
    report = report_of(
        tmp_path,
        codex.begins(),
        {"type": "later"},
        {"type": "response_item", "payload": {"type": "later"}},
        {"type": "response_item", "payload": {"type": "message", "content": [3, {"text": 4}]}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": 3}}},
        {"type": "token_usage_record", "payload": {"usage": "odd"}},
        {"type": "compacted", "payload": {"replacement_history": [3, {}]}},
        b"\0",
        assistant="codex",
    )
    assert report.unread == {"later": 1, "response_item/later": 1, "response_item/None": 1}
    assert report.damaged == 1


# ---------------------------------------------------------------- opencode

OPENCODE = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text,
    model text, cost real, tokens_input integer, tokens_output integer, tokens_cache_read integer,
    tokens_cache_write integer, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer,
    data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_updated integer, data text);
"""


class OpenCodeDatabase:
    """opencode at work: `connection` stays open."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "opencode.db"
        self.connection = apsw.Connection(str(self.path))
        self.connection.execute("PRAGMA journal_mode = wal")
        self.connection.execute(OPENCODE)
        self.connection.execute(
            "INSERT INTO session VALUES ('s1', NULL, ?, 'Gate', '1.18.33', ?, 0.5, 900, 60, 8000, 0, 1, 2)",
            (FOLDER, '{"id": "m1"}'),
        )
        self._number = 0

    def add(self, data: Record, *parts: Record) -> None:
        """Add a message."""
        self._number += 1
        number, name = self._number, f"m{self._number:04}"
        self.connection.execute(
            "INSERT INTO message VALUES (?, 's1', ?, ?, ?)", (name, number, number, json.dumps(data))
        )
        for at, part in enumerate(parts):
            values = (f"{name}-{at:03}", name, number, json.dumps(part))
            self.connection.execute("INSERT INTO part VALUES (?, ?, 's1', ?, ?)", values)

    def answer(self, fresh: int, read: int, *parts: Record, **values: Any) -> None:
        """Add an answer."""
        tokens = {"input": fresh, "output": 20, "reasoning": 10, "cache": {"read": read, "write": 0}}
        time = {"created": 1_000 * self._number, "completed": 1_000 * self._number + 500}
        data = {"role": "assistant", "modelID": "m1", "tokens": tokens, "cost": 0.1, "time": time, **values}
        self.add(data, *parts)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OpenCodeDatabase]:
    opened = OpenCodeDatabase(tmp_path)
    yield opened
    opened.connection.close()


def words(text: str, **values: Any) -> Record:
    return {"type": "text", "text": text, **values}


def test_a_session_of_opencode(database: OpenCodeDatabase) -> None:
    result = {"status": "completed", "input": {"filePath": "/x.py"}, "output": "x" * 400}
    database.add({"role": "user"}, words("Always use tabs. Read src/x.py."), words("<added>", synthetic=True))
    database.answer(8_000, 0, {"type": "tool", "tool": "read", "callID": "c", "state": result})
    database.answer(150, 8_000, words("Done."), {"type": "later"})
    follower = follow(database.path, "opencode")
    report = follower.report()
    assert (report.requests, report.cost_usd, report.cost_origin) == (2, 0.5, "program")
    assert report.total == Usage(fresh=900, cache_read=8_000, output=60)
    assert (report.window.used, parts(report)["results read"] > 80) == (8_150, True)
    assert (report.unread, report.tools[0].tool) == ({"part/later": 1}, "read")
    assert (follower.advance(), follower.report() is report) == (False, True)
    database.add({"role": "user"}, {"type": "compaction", "auto": True})
    database.answer(500, 0, words("They read a file."), summary=True)
    database.add({"role": "user"}, words("And now?"))
    database.answer(5_000, 0, words("Now."))
    assert follower.advance()
    report = follower.report()
    (compaction,) = report.compactions
    assert (compaction.trigger, compaction.before, compaction.after) == ("auto", 8_180, 5_000)
    assert compaction.dropped is not None
    assert "Always use tabs." in compaction.dropped.instructions
    assert report.window.used == sum(parts(report).values()) == 5_000
    assert parts(report)["summary"] > 0


def test_a_row_that_changes_is_read_again(database: OpenCodeDatabase) -> None:
    database.add({"role": "user"}, words("Hi"))
    database.add({"role": "assistant", "tokens": {"input": 0, "output": 0}})
    follower = follow(database.path, "opencode")
    assert follower.report().requests == 0
    tokens = {"input": 700, "output": 5, "cache": {}}
    data = json.dumps({"role": "assistant", "tokens": tokens})
    database.connection.execute("UPDATE message SET data = ?, time_updated = 9 WHERE id = 'm0002'", (data,))
    assert (follower.advance(), follower.report().requests) == (True, 1)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_bytes(b"not a database" * 100)
    with pytest.raises(apsw.Error):
        follow(tmp_path / "opencode.db", "opencode")


# ---------------------------------------------------------------- followers


def test_followers_remember_the_sessions_that_are_wanted(tmp_path: Path) -> None:
    paths = []
    for number in range(8):
        claude = Claude(session=f"s{number}")
        paths.append(write(claude.path(tmp_path), flat([claude.asks("Hi"), claude.answers("A", write=10)])))
    listed = find_sessions(Place(str(tmp_path), {}), FOLDER).sessions
    followers, place = SessionFollowers(), Place(str(tmp_path), {})
    reports = [followers.report(session, place, listed) for session in listed]
    assert {report.requests for report in reports} == {1}
    assert len(followers._followers) == 6  # noqa: SLF001 - what it keeps is what this is about
    assert followers.report(listed[-1], place, listed) is reports[-1]
    followers.close()
    assert followers.report(listed[-1], place, listed) == reports[-1]


def test_sub_agents_of_codex_are_sessions_with_a_parent(tmp_path: Path) -> None:
    parent, child = Codex(session="p1"), Codex(session="c1")
    records = [*parent.begins(), parent.says("Hi"), parent.says("A", role="assistant"), *parent.uses(1_000)]
    write(parent.path(tmp_path), records)
    spawned = [*child.begins(), child.says("Look around"), *child.uses(400, cached=300)]
    spawned[0]["payload"]["parent_thread_id"] = "p1"
    path = write(child.path(tmp_path), spawned)
    followers, place = SessionFollowers(), Place(str(tmp_path), {})

    def report() -> SessionReport:
        listed = find_sessions(Place(str(tmp_path), {}), FOLDER).sessions
        return followers.report(next(one for one in listed if one.id == "p1"), place, listed)

    before = report()
    assert [(each.id, each.title, each.window) for each in before.agents] == [("c1", "Look around", 400)]
    assert before.total == Usage(fresh=1_100, cache_read=300, output=40)
    assert (before.total_origin, before.requests) == ("both", 1)
    assert before.cost_usd == pytest.approx((1_100 * 1.25 + 300 * 0.125 + 40 * 10) / 1e6)
    with path.open("ab") as file:
        file.write(lines(child.uses(500)))
    assert report().total.sent == before.total.sent + 500


@pytest.mark.parametrize(
    "record",
    [
        {"type": "response_item", "payload": {"type": ["message"]}},
        {"type": "response_item", "payload": {"type": "message", "role": [], "content": [[], {"text": 1}]}},
        {"type": "compacted", "payload": {"replacement_history": [{"type": {}}]}},
        {"type": ["event_msg"], "payload": {}},
    ],
)
def test_no_value_of_a_rollout_hides_what_follows(tmp_path: Path, record: Record) -> None:
    codex = Codex(FOLDER)
    path = write(codex.path(tmp_path), [*codex.begins(), record, *codex.uses(500)])
    followed = FollowedFile(str(path), CodexRecord, CodexSteps)
    assert followed.advance()
    assert (followed.fold.sum.usage.sent, followed.damaged) == (500, 0)


@pytest.mark.parametrize(
    "record",
    [
        {"type": "attachment", "rendered": 5, "attachment": {"type": "x"}},
        {"type": "cost-state", "totalCostUSD": 10**400, "modelUsage": {}},
        {"type": "user", "message": 5},
    ],
)
def test_no_value_of_a_session_hides_what_follows(tmp_path: Path, claude: Claude, record: Record) -> None:
    path = write(claude.path(tmp_path), [claude.asks("Hi"), record, *claude.answers("A", write=9_000)])
    followed = FollowedFile(str(path), ClaudeCodeRecord, ClaudeCodeSteps)
    assert followed.advance()
    assert (followed.fold.requests, followed.damaged) == (1, 0)
    assert len(find_sessions(Place(str(tmp_path), {}), FOLDER).sessions) == 1


def test_a_bug_in_the_work_on_a_record_costs_that_record(tmp_path: Path, claude: Claude) -> None:
    class Steps(ClaudeCodeSteps):
        def read(self, record: ClaudeCodeRecord) -> Any:
            if record.kind == "user":
                raise ZeroDivisionError
            return super().read(record)

    path = write(claude.path(tmp_path), [claude.asks("Hi"), *claude.answers("A", write=9_000)])
    followed = FollowedFile(str(path), ClaudeCodeRecord, Steps)
    assert followed.advance()
    assert (followed.fold.requests, followed.damaged) == (1, 1)


def test_what_was_read_before_a_failure_counts(
    tmp_path: Path, claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(claude.path(tmp_path), [claude.asks("Hi"), *claude.answers("A", write=9_000)])
    monkeypatch.setattr(reader, "BLOCK", path.stat().st_size - 5)
    read_lines, calls_left = reader.read_lines, [1]

    def fails(*arguments: Any) -> Any:
        if not calls_left:
            raise OSError(24, "Too many open files")
        calls_left.pop()
        return read_lines(*arguments)

    monkeypatch.setattr(reader, "read_lines", fails)
    followed = FollowedFile(str(path), ClaudeCodeRecord, ClaudeCodeSteps)
    assert followed.advance()
    assert followed.fold.first_words == "Hi"
    calls_left.extend([1, 1, 1])
    assert followed.advance()
    assert followed.fold.requests == 1
