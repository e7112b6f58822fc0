"""Figures of sessions: what a request costs, which records are of one answer, and what a sum lacks."""

import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_context.assistants.claude_code.records import UNPRICED
from nexus_context.assistants.claude_code.session_files import EARLIER, directory_name
from nexus_context.assistants.claude_code.sub_agents import list_agents
from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.importing import read_transcript
from nexus_context.assistants.mirror import mirror_files
from nexus_context.assistants.mirror.excerpts import peek_folder
from nexus_context.assistants.mirror.transcript_files import file_at
from nexus_context.assistants.opencode.session_files import watched
from nexus_context.assistants.sessions.prices import ALL_ALIKE, RequestPrice
from nexus_context.assistants.sessions.report import SessionReport
from nexus_context.assistants.sessions.session_types import AssistantSession, Place, Usage
from nexus_context.assistants.tracking import find_sessions
from nexus_context.assistants.tracking.conversations import join_conversations
from nexus_context.assistants.tracking.follow import SessionFollower
from nexus_context.conversation.message import text_of
from nexus_context.disk import zstd
from nexus_context.ledger import open_ledger
from support.assistant_logs import OpencodeDatabase
from support.assistant_transcripts import BEGUN, FOLDER, Claude, Codex, Record, lines, time_at, write
from support.ledgers import turn

OPUS = "claude-opus-4-6"
THOUSAND: Any = {"fresh": 1_000, "output": 1_000}


def report_of(tmp_path: Path, *records: Any, assistant: str = "claude-code") -> SessionReport:
    flat = [one for each in records for one in (each if isinstance(each, list) else [each])]
    path = write(tmp_path / "session.jsonl", flat)
    return follow(path, assistant=assistant).report()


def follow(path: Path, **values: Any) -> SessionFollower:
    about = {"assistant": "claude-code", "id": "s1", "folder": FOLDER, "changed": "2026-11-23T09:00:00Z"}
    follower = SessionFollower(AssistantSession(path=str(path), **(about | values)))
    follower.advance()
    return follower


# ---------------------------------------------------------------- prices


@pytest.mark.parametrize(
    ("model", "usage", "dollars", "lacks"),
    [
        (OPUS, {}, 0.03, []),
        (OPUS, {"speed": "standard", "service_tier": "standard", "inference_geo": "not_available"}, 0.03, []),
        (OPUS, {"speed": "fast"}, 0.18, []),
        (OPUS, {"service_tier": "batch"}, 0.015, []),
        (OPUS, {"inference_geo": "us", "speed": "fast"}, 0.198, []),
        (OPUS, {"server_tool_use": {"web_search_requests": 3}}, 0.06, []),
        ("claude-haiku-4-5", {"speed": "fast"}, 0.006, ["no price of fast for claude-haiku-4-5"]),
        (OPUS, {"speed": "turbo"}, 0.03, [f"no price of turbo for {OPUS}"]),
        (OPUS, {"service_tier": "priority"}, 0.03, [f"no price of priority for {OPUS}"]),
        ("stealth/ox", {}, None, ["no price of stealth/ox"]),
        ("claude-sonnet-4-5", {"cache_read_input_tokens": 199_000}, 0.0777, []),
        ("claude-sonnet-4-5", {"cache_read_input_tokens": 199_001}, 0.0059 + 0.1194 + 0.0226, []),
    ],
)
def test_a_price_is_a_function_of_the_whole_usage(
    tmp_path: Path, model: str, usage: Record, dollars: float | None, lacks: list[str]
) -> None:
    claude = Claude(model=model)
    report = report_of(tmp_path, claude.asks("Hi"), claude.answers("Hello", usage=usage, **THOUSAND))
    assert report.cost_usd == (None if dollars is None else pytest.approx(dollars, abs=0.0006))
    assert list(report.lacks) == lacks


def test_an_adviser_costs_what_its_model_costs(tmp_path: Path) -> None:
    claude = Claude(model="claude-sonnet-4-6")
    executor = {"input_tokens": 1_000, "output_tokens": 100}
    adviser = {"input_tokens": 2_000, "output_tokens": 500, "model": OPUS}
    last = {"input_tokens": 1_600, "output_tokens": 100}
    iterations = [
        {"type": "message", **executor},
        {"type": "advisor_message", **adviser},
        {"type": "message", **last},
    ]
    answer = claude.answers("Done", fresh=1_000, output=200, usage={"iterations": iterations})
    report = report_of(tmp_path, claude.asks("Hi"), answer)
    assert report.cost_usd == pytest.approx((2_600 * 3 + 200 * 15 + 2_000 * 5 + 500 * 25) / 1e6)
    assert report.total == Usage(fresh=4_600, output=700)
    assert report.window.used == 1_600


def test_one_iteration_is_the_request(tmp_path: Path) -> None:
    claude = Claude(model=OPUS)
    usage = {"iterations": [{"type": "message", "input_tokens": 1_000, "output_tokens": 1}]}
    report = report_of(tmp_path, claude.answers("Done", usage=usage, **THOUSAND))
    assert report.cost_usd == pytest.approx(0.03)
    assert report.total.output == 1_000


def test_keys_of_usage_that_are_not_known_are_named(tmp_path: Path) -> None:
    claude = Claude(model=OPUS)
    usage = {"quantum_tokens": 7, "server_tool_use": {"web_search_requests": 0, "video_requests": 2}}
    report = report_of(tmp_path, claude.answers("Done", usage=usage))
    assert report.unread == {"usage/quantum_tokens": 1, "usage/video_requests": 1}


@pytest.mark.parametrize(
    ("usage", "cost", "unread"),
    [
        ({"input_tokens": 2_000.0}, 0.035, []),
        ({"input_tokens": "2000"}, 0.025, ["usage/input_tokens"]),
        ({"output_tokens": -5, "input_tokens": 1_000}, 0.005, ["usage/output_tokens"]),
        ({"cache_read_input_tokens": 10**30}, 0.03, ["usage/cache_read_input_tokens"]),
        ({"server_tool_use": {"web_search_requests": "3"}}, 0.03, ["usage/web_search_requests"]),
        # a gateway may state no sum of what was written to the cache
        (
            {"cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000}},
            0.03 + 0.00625 + 0.02,
            [],
        ),
        (
            {"cache_creation": {"ephemeral_24h_input_tokens": 1_000}},
            0.03625,
            ["usage/ephemeral_24h_input_tokens"],
        ),
        ({"iterations": [{"type": "message", "quark_tokens": 3}]}, 0.03, ["usage/quark_tokens"]),
    ],
)
def test_counts_that_cannot_be_read_are_named(
    tmp_path: Path, usage: Record, cost: float, unread: list[str]
) -> None:
    claude = Claude(model=OPUS)
    report = report_of(tmp_path, claude.answers("Done", usage=usage, **THOUSAND))
    assert report.cost_usd == pytest.approx(cost)
    assert list(report.unread) == unread


def test_keys_of_codex_usage_that_are_not_known_are_named(tmp_path: Path) -> None:
    codex = Codex()
    counted = codex.uses(1_000, records=False)
    for record in counted:
        record["payload"]["info"]["last_token_usage"] |= {"audio_input_tokens": 7}
    report = report_of(tmp_path, codex.begins(), codex.says("A"), counted, assistant="codex")
    assert report.unread == {"usage/audio_input_tokens": 1}


def test_a_long_request_of_codex(tmp_path: Path) -> None:
    codex = Codex(model="gpt-5.4")
    records = [codex.begins(), codex.says("Hi"), codex.uses(278_476, cached=7_936, output=630)]
    report = report_of(tmp_path, *records, assistant="codex")
    assert report.cost_usd == pytest.approx((270_540 * 5 + 7_936 * 0.5 + 630 * 22.5) / 1e6)


def test_the_cost_that_a_record_states_is_believed(tmp_path: Path) -> None:
    claude = Claude(model="stealth/ox")
    report = report_of(tmp_path, claude.answers("Done", costUSD=0.02))
    assert (report.cost_usd, report.lacks) == (0.02, {})


# ---------------------------------------------------------------- identity of an answer


def linked(*records: Record) -> list[Record]:
    """The records in a chain of parents."""
    parents = [None, *(one["uuid"] for one in records)]
    return [{**one, "parentUuid": parent} for one, parent in zip(records, parents, strict=False)]


def test_the_first_record_may_have_no_usage_yet(tmp_path: Path) -> None:
    claude = Claude()
    first = claude.answers("Hm.", fresh=0, output=0)
    last = claude.answers("Hello", fresh=1_000, read=9_000, output=200)
    last[0] |= {"requestId": "req_1", "message": {**last[0]["message"], "id": "msg_1"}}
    report = report_of(tmp_path, linked(claude.asks("Hi"), *first, *last))
    assert (report.requests, report.window.used) == (1, 10_000)
    assert report.total == Usage(fresh=1_000, cache_read=9_000, output=200)
    assert report.lacks == {}


@pytest.mark.parametrize(
    ("first", "second", "is_between", "requests"),
    [
        ("req_1", "req_1", False, 1),
        ("req_1", None, False, 1),
        (None, "req_1", False, 1),
        (None, None, False, 1),
        ("req_1", "req_2", False, 2),
        ("req_1", "req_1", True, 2),
        (None, None, True, 2),  # a gateway that gives all answers one id
    ],
)
def test_which_records_are_of_one_answer(
    tmp_path: Path, first: str | None, second: str | None, is_between: bool, requests: int
) -> None:
    claude = Claude()
    message = {"id": "msg_same"}
    one = claude.answers("A", write=1_000, message=message, requestId=first)
    between = [claude.asks("Go on")] if is_between else []
    other = claude.answers("B", write=1_000, message=message, requestId=second)
    report = report_of(tmp_path, linked(claude.asks("Hi"), *one, *between, *other))
    assert (report.requests, report.total.cache_write) == (requests, 1_000 * requests)


def test_texts_of_a_record_that_is_written_again_count_once(tmp_path: Path) -> None:
    claude = Claude()
    records = linked(claude.asks("word " * 1_000), *claude.answers("A", write=5_000))
    again = linked(claude.asks("More"), *claude.answers("B", read=5_000, write=100))
    twice = report_of(tmp_path / "twice", records, [{**one, "parentUuid": None} for one in records], again)
    once = report_of(tmp_path / "once", records, again)
    assert (twice.window.parts, twice.total, twice.requests) == (once.window.parts, once.total, once.requests)


@pytest.mark.parametrize(("stop", "estimated"), [(None, 1_000), ("end_turn", 0)])
def test_an_answer_that_was_recorded_before_it_ended_is_estimated(
    tmp_path: Path, stop: str | None, estimated: int
) -> None:
    claude = Claude(model=OPUS)
    answer = claude.answers("abcd" * 1_000, output=3, message={"stop_reason": stop})
    for followed in ([], [claude.asks("And?"), *claude.answers("Yes", message={"stop_reason": "end_turn"})]):
        report = report_of(tmp_path, claude.asks("Hi"), answer, followed)
        own = 20 if followed else 0
        assert report.estimated == pytest.approx(estimated, rel=0.2)
        assert report.total.output == 3 + report.estimated + own
        assert report.cost_usd == pytest.approx((10 * report.requests * 5 + report.total.output * 25) / 1e6)


# ---------------------------------------------------------------- what a sum covers


def test_a_process_that_counts_from_zero_is_added(tmp_path: Path) -> None:
    claude = Claude()
    claude.version = "2.1.260"
    usage = {"inputTokens": 10, "cacheCreationInputTokens": 200_000, "outputTokens": 100}
    more = {"inputTokens": 10, "cacheReadInputTokens": 200_000, "outputTokens": 500}
    first = [*claude.answers("A", write=200_000, output=100), claude.sums_up(0.05, **usage)]
    second = [*claude.answers("B", read=200_000, output=500), claude.sums_up(0.11, **more)]
    report = report_of(
        tmp_path, first, second
    )  # 0.11 is no less than 0.05, but less was sent than was recorded
    assert report.cost_usd == pytest.approx(0.16)
    assert report.total == Usage(fresh=20, cache_write=200_000, cache_read=200_000, output=600)
    claude.version = "2.1.330"
    whole = {"inputTokens": 20, "cacheCreationInputTokens": 200_000, "cacheReadInputTokens": 200_000}
    third = [*claude.answers("C"), claude.sums_up(0.12, **whole, outputTokens=600)]
    assert report_of(tmp_path, first, third).cost_usd == pytest.approx(0.12)


def test_a_counter_of_codex_that_starts_over_is_added(tmp_path: Path) -> None:
    first, second = Codex(), Codex()
    records = [first.begins(), first.says("A"), first.uses(100_000, records=False)]
    records += [second.says("B"), second.uses(101_000, cached=100_000, records=False)]
    report = report_of(tmp_path, *records, assistant="codex")
    assert report.total.sent == 201_000
    assert report.lacks == {}


def test_a_sum_says_what_it_lacks(tmp_path: Path) -> None:
    claude = Claude(model=OPUS)
    other = {"model": "stealth/ox"}
    answers = [*claude.answers("B", message=other), *claude.answers("C", message=other)]
    report = report_of(tmp_path, claude.answers("A", **THOUSAND), answers)
    assert report.cost_usd == pytest.approx(0.03)
    assert report.lacks == {"no price of stealth/ox": 2}


def test_the_summarys_own_request_is_not_recorded(tmp_path: Path) -> None:
    claude = Claude(model=OPUS)
    records = [*claude.answers("A"), *claude.compacts("Summary", before=1_000, after=100)]
    assert list(report_of(tmp_path, records).lacks.values()) == [1]
    usage = {"inputTokens": 2_000, "outputTokens": 500}
    assert report_of(tmp_path, records, claude.sums_up(0.5, **usage)).lacks == {}


def test_the_programs_own_caveat_stays(tmp_path: Path) -> None:
    claude = Claude(model="stealth/ox")
    sums = claude.sums_up(0.3181, inputTokens=10, outputTokens=20) | {"hasUnknownModelCost": True}
    report = report_of(tmp_path, claude.answers("A"), sums)
    assert (report.cost_usd, list(report.lacks)) == (0.3181, ["models whose price Claude Code does not know"])


def listed_cost(home: Path) -> RequestPrice:
    (session,) = find_sessions(Place(str(home), {})).sessions
    (conversation,) = join_conversations((), [session])
    return conversation.cost


def test_a_list_says_what_a_stated_cost_lacks(tmp_path: Path) -> None:
    claude = Claude(model="stealth/ox")
    sums = claude.sums_up(0.3, inputTokens=10, outputTokens=20)
    records = [claude.asks("Hi"), *claude.answers("A"), sums]
    for changes, lacks in (({}, ()), ({"hasUnknownModelCost": True}, (UNPRICED,))):
        write(claude.path(tmp_path), [*records[:-1], sums | changes], minute=len(lacks))
        assert listed_cost(tmp_path) == RequestPrice(0.3, lacks)
    old = [{**record, "version": "2.1.260"} for record in records]  # each process counted from zero
    write(claude.path(tmp_path), old, minute=2)
    assert listed_cost(tmp_path) == RequestPrice(0.3)
    write(claude.path(tmp_path), [*old, *old], minute=3)
    assert listed_cost(tmp_path) == RequestPrice(0.3, (EARLIER,))


@pytest.mark.parametrize(("requests", "lacks"), [(1, ()), (2, (ALL_ALIKE,))])
def test_the_price_of_a_listed_sum_is_that_of_the_last_model(
    requests: int, lacks: tuple[str, ...], tmp_path: Path
) -> None:
    codex = Codex(model="gpt-5.4")
    path = tmp_path / ".codex/sessions/2026/11/23/rollout-2026-11-23T09-00-00-01a2.jsonl"
    counted = [record for _ in range(requests) for record in codex.uses(1_000, records=False)]
    write(path, [*codex.begins(), codex.says("A"), *counted])
    cost = listed_cost(tmp_path)
    assert cost.usd is not None
    assert cost.lacks == lacks


@pytest.mark.parametrize("has_time", [False, True])
def test_a_statement_includes_the_sub_agents_before_it(tmp_path: Path, has_time: bool) -> None:
    claude = Claude(model=OPUS)
    path, agent = claude.path(tmp_path), Claude(model=OPUS, session="agent")
    agent.minute = 2  # it runs when the session ends
    sums = claude.sums_up(0.06, inputTokens=2_000, outputTokens=2_000)
    if has_time:
        sums |= {"startTime": int(BEGUN.timestamp() * 1_000), "totalDuration": 180_000}
    write(path, [claude.asks("Hi"), *claude.answers("A", **THOUSAND), sums])
    inner = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    records = agent.answers("B", isSidechain=True, **THOUSAND)
    write(inner, records)
    report = follow(path).report()
    assert report.cost_usd == pytest.approx(0.06)
    assert report.total == Usage(fresh=2_000, output=2_000)
    agent.minute = 4
    write(inner, [*records, *agent.answers("C", isSidechain=True, **THOUSAND)], minute=4)
    report = follow(path).report()
    later = 1_000 if has_time else 2_000  # without a time, what came after the session's last request
    assert report.total == Usage(fresh=2_000 + later, output=2_000 + later)
    assert report.cost_usd == pytest.approx(0.06 + later * 30 / 1e6)


def test_a_fork_does_not_lack_what_its_origin_lacks(tmp_path: Path) -> None:
    claude = Claude(model=OPUS, session="first")
    records = [claude.asks("Hi"), *claude.answers("A"), *claude.compacts("Sum", before=1_000, after=100)]
    unended = {"stop_reason": None}
    records += claude.answers("word " * 300, output=1, message=unended)
    write(claude.path(tmp_path), records)
    records = [{**record, "sessionId": "second"} for record in records]
    claude.session, claude.minute = "second", 1
    write(claude.path(tmp_path), [*records, claude.asks("More"), *claude.answers("B")], minute=1)
    fork, origin = (SessionFollower(session) for session in find_sessions(Place(str(tmp_path), {})).sessions)
    for follower in (fork, origin):
        follower.advance()
    assert (fork.report().fork_of, fork.report().lacks, fork.report().estimated) == ("first", {}, 0)
    assert len(origin.report().lacks) == 1
    assert origin.report().estimated > 300


# ---------------------------------------------------------------- one walk


def test_sub_agents_are_found_wherever_they_are(tmp_path: Path) -> None:
    claude = Claude(model=OPUS)
    claude.version = "2.0.60"  # it had them beside the session
    path = claude.path(tmp_path)
    write(path, [claude.asks("Hi"), *claude.answers("A")])
    beside = path.parent
    below = beside / claude.session / "subagents"
    for place, session in (
        (below / "agent-a1.jsonl", claude.session),
        (below / "workflows" / "wf_1" / "agent-a2.jsonl", claude.session),
        (beside / "agent-b1.jsonl", claude.session),
        (beside / "agent-c1.jsonl", "another"),
        (below / "workflows" / "wf_1" / "journal.jsonl", claude.session),
    ):
        agent = Claude(model=OPUS, session=session)
        write(place, [agent.asks("Look", isSidechain=True), *agent.answers("B", isSidechain=True)])
    follower = follow(path, id=claude.session)
    report = follower.report()
    assert [agent.id for agent in report.agents] == ["a1", "a2", "b1"]
    assert report.total == Usage(fresh=40, output=80)
    followed = {one for one in follower.paths if one.endswith(".jsonl")}
    assert set(list_agents(str(path))) == followed - {str(path)}


def test_a_file_that_was_copied_counts_once(tmp_path: Path) -> None:
    claude = Claude(model=OPUS)
    path = claude.path(tmp_path)
    records = [claude.asks("Hi"), *claude.answers("A")]
    write(path, records)
    write(path.parent.parent / "-another-place" / path.name, records, minute=1)
    agent = Claude(model=OPUS, session="agent")
    below = path.with_suffix("") / "subagents"
    records = agent.answers("B", isSidechain=True)
    for place in (below, below / "workflows" / "wf_1"):
        write(place / "agent-a1.jsonl", records)
    assert len(find_sessions(Place(str(tmp_path), {})).sessions) == 1
    report = follow(path).report()
    assert [(agent.id, agent.requests) for agent in report.agents] == [("a1", 1)]
    assert report.total == Usage(fresh=20, output=40)


# ---------------------------------------------------------------- what the program states


def test_the_window_is_what_the_program_asked_for(tmp_path: Path) -> None:
    claude = Claude()
    plain = report_of(tmp_path, claude.answers("A"))
    assert plain.window.size == 200_000
    assert report_of(tmp_path, claude.answers("A", requestedModel="sonnet[1m]")).window.size == 1_000_000


def test_what_was_sent_shows_a_larger_window(tmp_path: Path) -> None:
    claude = Claude()
    assert report_of(tmp_path, claude.answers("A", read=350_000)).window.size == 1_000_000


@pytest.mark.parametrize(
    ("before", "trigger", "largest", "size"),
    [
        (167_000, "auto", 167_000, 200_000),
        (167_000, "manual", 167_000, 1_000_000),
        (167_000, "auto", 300_000, 1_000_000),
        (900_000, "auto", 900_000, 1_000_000),
    ],
)
def test_where_a_session_was_compacted_shows_its_window(
    tmp_path: Path, before: int, trigger: str, largest: int, size: int
) -> None:
    claude = Claude(model=OPUS)
    compacted = claude.compacts("Summary", before=before, after=5_000, trigger=trigger)
    report = report_of(tmp_path, claude.answers("A", read=largest), compacted, claude.answers("B"))
    assert report.window.size == size


@pytest.mark.parametrize(("stated", "lifetime"), [("1h", 3_600), ("5m", 300), ("off", None), (None, 300)])
def test_how_long_the_cache_lives_is_what_was_asked_for(
    tmp_path: Path, stated: str | None, lifetime: int | None
) -> None:
    claude = Claude()
    report = report_of(tmp_path, claude.answers("A", read=5_000, promptCacheRequested=stated))
    assert report.cache is not None
    assert report.cache.lifetime_s == lifetime


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ({"type": "tools_changed"}, ("tools", "")),
        ("system_changed", ("tools", "")),
        ("model_changed", ("model", "model_changed")),
        ("solar_flare", ("rewritten", "solar_flare")),
    ],
)
def test_the_providers_reason_for_a_miss_is_believed(
    tmp_path: Path, reason: Any, cause: tuple[str, str]
) -> None:
    claude = Claude()
    message = {"diagnostics": {"cache_miss_reason": reason}}
    missed = claude.answers("B", write=9_000, message=message)
    report = report_of(tmp_path, claude.answers("A", write=8_000), missed)
    assert (report.misses[-1].cause, report.misses[-1].detail) == cause


def test_the_programs_prompt_is_no_more_than_in_the_first_request(tmp_path: Path) -> None:
    claude = Claude()
    records = [claude.asks("word " * 100), *claude.answers("A", write=10_000)]
    for sent in (40_000, 90_000):  # texts that the transcript does not have
        records += [claude.asks("word " * 100), *claude.answers("B", read=sent)]
    report = report_of(tmp_path, records)
    system = sum(part.tokens for part in report.window.parts if part.category == "system")
    assert system <= 10_010
    assert sum(part.tokens for part in report.window.parts) == 90_010


@pytest.mark.parametrize(
    ("titles", "title"),
    [
        ([], "hello there"),
        ([("ai-title", "aiTitle", "By the model")], "By the model"),
        ([("custom-title", "customTitle", "IBIS"), ("ai-title", "aiTitle", "By the model")], "IBIS"),
        ([("custom-title", "customTitle", "IBIS"), ("custom-title", "customTitle", "IBEX")], "IBEX"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_session_has_the_title_that_it_was_given(
    tmp_path: Path, titles: list[tuple[str, str, str]], title: str, is_first: bool
) -> None:
    claude = Claude()
    given = [{"type": kind, name: text, "sessionId": claude.session} for kind, name, text in titles]
    records = [claude.asks("hello there"), *claude.answers("A")]
    write(claude.path(tmp_path), [*given, *records] if is_first else [*records, *given])
    assert [one.prompt for one in find_sessions(Place(str(tmp_path), {})).sessions] == [title]


# ---------------------------------------------------------------- stores


@pytest.mark.parametrize("reader", [gzip, None])
def test_a_compressed_rollout_is_read_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Any
) -> None:
    monkeypatch.setattr(zstd, "_find_reader", lambda: reader)  # all of them are opened as gzip's
    codex = Codex()
    rollout = [*codex.begins(), codex.says("Where is the ZEBRA gate?"), *codex.uses(5_000, records=False)]
    path = codex.path(tmp_path)
    path.parent.mkdir(parents=True)
    compressed = path.with_name(f"{path.name}.zst")
    compressed.write_bytes(gzip.compress(lines(rollout)))
    listed = find_sessions(Place(str(tmp_path), {}), assistants=["codex"])
    if reader is None:
        reason = "it is compressed with zstd, which needs Python 3.14 or pip install backports.zstd"
        assert listed.failures == ((str(compressed), reason),)
        return
    assert [(one.prompt, one.total) for one in listed.sessions] == [
        ("Where is the ZEBRA gate?", Usage(fresh=5_000, output=20))
    ]
    report = follow(compressed, assistant="codex").report()
    assert report.window.used == 5_000


def test_a_damaged_compressed_file_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd, "_find_reader", lambda: gzip)
    path = Codex().path(tmp_path)
    path.parent.mkdir(parents=True)
    path.with_name(f"{path.name}.zst").write_bytes(b"none")
    failures = find_sessions(Place(str(tmp_path), {}), assistants=["codex"]).failures
    assert ["gzipped" in reason for _, reason in failures] == [True]


def test_the_database_that_opencode_is_told_is_read(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {"OPENCODE_DB": "/srv/other.db"})
    root = f"{tmp_path}/.local/share/opencode"
    assert [*watched(place, "")][::2] == [f"{root}/opencode.db", "/srv/other.db"]
    assert [*watched(Place(str(tmp_path), {"OPENCODE_DB": "b.db"}), "")][2] == f"{root}/b.db"


# ---------------------------------------------------------------- the folder of a session


def test_a_name_has_a_hyphen_for_each_unit_of_utf_16() -> None:
    assert directory_name("/home/ana/😀-é") == "-home-ana-----"


@pytest.mark.parametrize("is_all", [True, False])
@pytest.mark.parametrize("is_moved", [True, False])
def test_a_renamed_folder_keeps_its_history(tmp_path: Path, is_all: bool, is_moved: bool) -> None:
    folder = tmp_path / "new-shop"
    folder.mkdir()
    claude = Claude(str(tmp_path / "old.shop"))
    records = [claude.asks("Hi"), *claude.answers("A")]
    if is_moved:  # by the program; otherwise the user renamed the folder, and that of its sessions
        records.append({"type": "relocated", "relocatedCwd": str(folder), "sessionId": claude.session})
    path = Claude(str(folder)).path(tmp_path)
    write(path, records)
    sessions = find_sessions(Place(str(tmp_path), {}), None if is_all else str(folder)).sessions
    assert [one.folder for one in sessions] == [str(folder)]
    assert peek_folder(file_at(str(path), "claude-code")) == str(folder)  # type: ignore[arg-type]
    assert find_sessions(Place(str(tmp_path), {}), str(tmp_path / "old.shop")).sessions == ()


def test_a_session_that_went_into_a_directory_is_of_the_folder_that_holds_it(tmp_path: Path) -> None:
    claude = Claude("/home/ana/shop")
    records = [claude.asks("Hi", cwd="/home/ana/shop/src"), claude.asks("Back"), *claude.answers("A")]
    write(claude.path(tmp_path), records)
    assert [one.folder for one in find_sessions(Place(str(tmp_path), {})).sessions] == ["/home/ana/shop"]


# ---------------------------------------------------------------- forks


def forked_claude(home: Path) -> tuple[Claude, Claude]:
    """A session and its fork, which repeats it and goes on."""
    first, second = Claude(model=OPUS), Claude(model=OPUS, session="fork")
    records = linked(first.asks("The NARWHAL plan."), *first.answers("A", write=100_000))
    write(first.path(home), records)
    origin = {"forkedFrom": {"sessionId": first.session, "messageUuid": "x"}}
    copies = [{**one, "sessionId": "fork", **origin} for one in records]
    own = [first.asks("The fork goes on."), *first.answers("B", read=100_000, write=500)]
    write(second.path(home), [*copies, *[{**one, "sessionId": "fork"} for one in own]], minute=1)
    return first, second


def unmarked_claude(home: Path, *, goes_on: bool, stated: tuple[float, ...] = (0.5, 0.8, 1.2)) -> Claude:
    """A session, a fork as `--fork-session` makes it, and a fork of that; perhaps the first goes on later."""
    claude = Claude(model=OPUS, session="first")
    records: list[Record] = []
    for minute, (name, cost) in enumerate(zip(("first", "second", "third"), stated, strict=True)):
        claude.session, claude.minute = name, minute
        records = [{**one, "sessionId": name} for one in records]
        records += [
            claude.asks(f"What of {name}?"),
            *claude.answers("No.", read=1_000 * (minute + 1), fresh=0),
        ]
        sent = sum(one["message"]["usage"]["cache_read_input_tokens"] for one in records[1::2])
        states = claude.sums_up(cost, cacheReadInputTokens=sent)
        write(claude.path(home), [*records, states], minute=minute)
        if goes_on and not minute:
            claude.minute = 9
            later = [claude.asks("Later?"), *claude.answers("Later.", read=40_000, fresh=0)]
            states = claude.sums_up(9.5, cacheReadInputTokens=41_000)
            write(
                claude.path(home),
                [*records, claude.sums_up(cost, cacheReadInputTokens=1_000), *later, states],
            )
    return claude


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_fork_without_marks_counts_only_its_own_requests(tmp_path: Path, goes_on: bool) -> None:
    unmarked_claude(tmp_path, goes_on=goes_on)
    expected = {
        "first": (None, 41_000, 9.5) if goes_on else (None, 1_000, 0.5),
        "second": ("first", 2_000, 0.3),
        "third": ("second", 3_000, 0.4),
    }
    sessions = find_sessions(Place(str(tmp_path), {})).sessions
    assert {
        one.id: (one.fork_of, one.total and one.total.sent, one.cost_usd and round(one.cost_usd, 9))
        for one in sessions
    } == expected
    for session in sessions:
        report = follow(Path(session.path), id=session.id, fork_of=session.fork_of).report()
        figures = report.fork_of, report.total.sent, round(report.cost_usd or 0, 9)
        assert (figures, report.requests) == (expected[session.id], 1 + (goes_on and session.id == "first"))


def test_a_fork_of_a_compacted_session_begins_with_the_compaction(tmp_path: Path) -> None:
    claude = Claude(model=OPUS, session="first")
    before = [claude.asks("One?"), *claude.answers("One.", read=1_000, fresh=0)]
    kept = claude.compacts("So far.", before=1_000, after=100)
    claude.minute = 1
    kept += [claude.asks("Two?"), *claude.answers("Two.", read=3_000, fresh=0)]
    stated = claude.sums_up(0.5, cacheReadInputTokens=6_000)  # with the request for the summary
    claude.minute = 2
    fork = [claude.asks("Three?"), *claude.answers("Three.", read=4_000, fresh=0)]
    claude.minute = 3
    later = [claude.asks("Four?"), *claude.answers("Four.", read=6_000, fresh=0)]
    last = claude.sums_up(0.9, cacheReadInputTokens=12_000)
    write(claude.path(tmp_path), [*before, *kept, stated, *later, last], minute=3)
    claude.session = "second"
    own = claude.sums_up(0.7, cacheReadInputTokens=10_000)
    write(claude.path(tmp_path), [*({**one, "sessionId": "second"} for one in [*kept, *fork]), own], minute=2)
    found = {one.id: one for one in find_sessions(Place(str(tmp_path), {})).sessions}
    assert (found["first"].fork_of, found["second"].fork_of) == (None, "first")
    assert [one.total and one.total.sent for one in (found["first"], found["second"])] == [12_000, 4_000]
    report = follow(Path(found["second"].path), id="second", fork_of="first").report()
    assert (report.total.sent, round(report.cost_usd or 0, 9), report.requests) == (4_000, 0.2, 1)


def test_what_a_branch_states_is_its_own(tmp_path: Path) -> None:
    """After `/branch` the program counts anew: nothing of the origin is in it."""
    first, second = Claude(model=OPUS, session="first"), "second"
    records = [first.asks("One?"), *first.answers("One.", read=1_000, fresh=0)]
    write(first.path(tmp_path), [*records, first.sums_up(0.5, cacheReadInputTokens=1_000)])
    first.session, first.minute = second, 1
    origin = {"forkedFrom": {"sessionId": "first", "messageUuid": "x"}}
    copies = [{**one, "sessionId": second, **origin} for one in records]
    own = [first.asks("Two?"), *first.answers("Two.", read=3_000, fresh=0)]
    write(first.path(tmp_path), [*copies, *own, first.sums_up(0.7, cacheReadInputTokens=3_000)], minute=1)
    found = {one.id: one for one in find_sessions(Place(str(tmp_path), {})).sessions}
    assert (found[second].fork_of, found[second].total, found[second].cost_usd) == (
        "first",
        Usage(cache_read=3_000),
        0.7,
    )
    report = follow(Path(found[second].path), id=second, fork_of="first").report()
    assert (report.total.sent, report.cost_usd) == (3_000, 0.7)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_kept_fork_without_marks_shares_the_turns_of_its_origin(tmp_path: Path, goes_on: bool) -> None:
    unmarked_claude(tmp_path, goes_on=goes_on)
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        for _ in range(2):  # the second run finds nothing new
            mirror_files(ledger, str(tmp_path), {})
        kept = {one.origin.id: one for one in ledger.sessions() if one.origin is not None}
        assert [kept[name].forked_from for name in ("second", "third")] == [
            kept["first"].name,
            kept["second"].name,
        ]
        assert len(ledger.pages.search("second")) == 1


def test_a_fork_counts_only_its_own_requests(tmp_path: Path) -> None:
    forked_claude(tmp_path)
    fork, origin = sorted(
        find_sessions(Place(str(tmp_path), {})).sessions, key=lambda one: one.fork_of is None
    )
    assert (fork.fork_of, origin.fork_of) == (origin.id, None)
    report = follow(Path(fork.path), id=fork.id).report()
    assert (report.requests, report.total.sent, report.window.used) == (1, 100_510, 100_510)
    assert report.misses == ()


@pytest.mark.parametrize("has_origin", [True, False])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_fork_of_codex_counts_from_where_it_began(
    tmp_path: Path, has_origin: bool, is_repeated: bool
) -> None:
    origin, fork = Codex(session="01a1"), Codex(session="01a2")
    shared = [origin.says("One."), *origin.uses(100_000, records=False)]
    if has_origin:
        write(origin.path(tmp_path), [*origin.begins(), *shared])
    begun = fork.begins()
    begun[0]["payload"] |= {"forked_from_id": "01a1", "timestamp": begun[0]["timestamp"]}
    begun[0]["payload"] |= {} if is_repeated else {"history_base": {"thread_id": "01a1"}}
    fork.uses(100_000, records=False)  # it goes on counting
    fork.minute = 5
    own = [fork.says("Two."), *fork.uses(120_000, cached=110_000, records=False)]
    copies = [{**one, "timestamp": begun[0]["timestamp"]} for one in shared] if is_repeated else []
    path = write(fork.path(tmp_path), [*begun, *copies, *own])
    session = next(one for one in find_sessions(Place(str(tmp_path), {})).sessions if one.id == "01a2")
    expected = Usage(fresh=10_000, cache_read=110_000, output=20)
    assert (session.fork_of, session.total, session.prompt) == ("01a1", expected, "Two.")
    follower = SessionFollower(session)
    follower.advance()
    assert (follower.report().total, follower.report().requests) == (expected, 1)
    assert path == Path(session.path)


def write_old_fork(home: Path) -> None:
    """A session of Codex, and a fork whose file does not repeat it."""
    origin, fork = Codex(session="01a1"), Codex(session="01a2")
    write(origin.path(home), [*origin.begins(), origin.says("One."), *origin.uses(100_000, records=False)])
    fork.minute = 5
    begun = fork.begins()
    begun[0]["payload"] |= {"forked_from_id": "01a1", "history_base": {"thread_id": "01a1"}}
    begun[0]["payload"] |= {"timestamp": begun[0]["timestamp"]}
    fork.minute = 6
    write(fork.path(home), [*begun, fork.says("Two."), *fork.uses(120_000, records=False)])


@pytest.mark.parametrize("is_continued", [False, True])
def test_a_fork_that_was_kept_without_its_origin_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_continued: bool
) -> None:
    write_old_fork(tmp_path)
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        with monkeypatch.context() as old:
            for name in ("fork_of", "shared_until"):
                old.setattr(CodexRecord, name, None)
            mirror_files(ledger, str(tmp_path), {})
        for row in ledger.mirrors.files().values():
            progress = json.loads(row.progress)
            del progress["shared_until"], progress["fork_of"]
            ledger.mirrors.write([], [msgspec.structs.replace(row, progress=json.dumps(progress))])
        kept = {one.origin.id: one for one in ledger.sessions() if one.origin is not None}
        assert {one.forked_from for one in kept.values()} == {None}
        if is_continued:  # here: nothing of that is lost
            one = kept["01a2"]
            ledger.append(one.workspace, one.name, turn("u3"))
        for _ in range(2):
            mirror_files(ledger, str(tmp_path), {})
        kept = {one.origin.id: one for one in ledger.sessions() if one.origin is not None}
        assert (kept["01a2"].forked_from is None) == is_continued
        said = [
            text_of(message)
            for each in ledger.turns(kept["01a2"].workspace, kept["01a2"].name)
            for message in each.messages
        ]
        assert said[-1] == "u3" if is_continued else said[0] == "One."
        assert len(ledger.sessions()) == 2


def forked_opencode(home: Path) -> OpencodeDatabase:
    """A session, a fork of it that goes on, and a fork of the fork."""
    database = OpencodeDatabase(home)
    database.session("o1")
    database.message("o1", "user", "One")
    database.answer("o1", "Two", 1_000)
    database.fork("o1", "o2")
    database.message("o2", "user", "Three")
    database.answer("o2", "Four", 200)
    database.fork("o2", "o3")
    database.message("o3", "user", "Five")
    database.answer("o3", "Six", 30)
    return database


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        ("", {"o1": (None, 1_000, 0.01), "o2": ("o1", 200, 0.01), "o3": ("o2", 30, 0.01)}),
        ("o1", {"o2": (None, 1_200, 0.02), "o3": ("o2", 30, 0.01)}),
        ("o2", {"o1": (None, 1_000, 0.01), "o3": ("o1", 230, 0.02)}),
        ("o1 o2", {"o3": (None, 1_230, 0.03)}),
    ],
)
def test_each_request_of_opencode_is_counted_once(
    tmp_path: Path, gone: str, expected: dict[str, tuple[str | None, int, float]]
) -> None:
    database = forked_opencode(tmp_path)
    for name in gone.split():
        database.connection.execute("DELETE FROM message WHERE session_id = ?", (name,))
        database.connection.execute("DELETE FROM session WHERE id = ?", (name,))
    sessions = find_sessions(Place(str(tmp_path), {})).sessions
    followers = {one.id: SessionFollower(one) for one in sessions}
    figures = {one.id: (one.fork_of, one.total.fresh, one.cost_usd) for one in sessions if one.total}
    assert {name: (*rest, round(cost or 0, 9)) for name, (*rest, cost) in figures.items()} == expected
    for name, follower in followers.items():
        follower.advance()
        report = follower.report()
        assert (report.fork_of, report.total.fresh, round(report.cost_usd or 0, 9)) == expected[name]
    assert sum(follower.report().requests for follower in followers.values()) == 3


@pytest.mark.parametrize("value", [None, "text", b"\xff", 2**62, -1, 1.5])
def test_a_column_of_opencode_may_hold_anything(tmp_path: Path, value: Any) -> None:
    database = forked_opencode(tmp_path)
    columns = (
        "title, version, cost, tokens_input, tokens_output, tokens_cache_read, time_created, time_updated"
    )
    changes = ", ".join(f"{name} = ?1" for name in columns.split(", "))
    database.connection.execute(f"UPDATE session SET {changes} WHERE id = 'o1'", (value,))  # noqa: S608
    sessions = find_sessions(Place(str(tmp_path), {})).sessions
    assert len(sessions) == 3
    (session,) = (session for session in sessions if session.id == "o1")
    follower = SessionFollower(session)
    follower.advance()
    assert follower.report().total == Usage(fresh=1_000)  # of its requests: the row says nothing


def test_requests_whose_price_opencode_does_not_know_are_named(tmp_path: Path) -> None:
    database = OpencodeDatabase(tmp_path)
    database.session("o1", folder=FOLDER)
    database.answer("o1", "A", 1_000)
    database.answer("o1", "B", 500)
    database.connection.execute(
        "UPDATE message SET data = json_remove(data, '$.cost') WHERE data LIKE '%500%'"
    )
    (session,) = find_sessions(Place(str(tmp_path), {})).sessions
    assert len(session.lacks) == 1
    follower = SessionFollower(session)
    follower.advance()
    assert (follower.report().lacks, session.cost_usd) == ({session.lacks[0]: 1}, 0.02)


def test_a_kept_fork_of_opencode_shares_the_turns_of_its_origin(tmp_path: Path) -> None:
    forked_opencode(tmp_path)
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        for _ in range(2):  # the second run finds nothing new
            mirror_files(ledger, str(tmp_path), {})
        kept = {one.origin.id: one for one in ledger.sessions() if one.origin is not None}
        assert [kept[name].forked_from for name in ("o1", "o2", "o3")] == [
            None,
            kept["o1"].name,
            kept["o2"].name,
        ]
        turns = {name: len(list(ledger.turns(one.workspace, one.name))) for name, one in kept.items()}
        assert turns == {"o1": 1, "o2": 2, "o3": 3}
        assert len(ledger.pages.search("Four")) == 1


def test_a_kept_fork_shares_the_turns_of_its_origin(tmp_path: Path) -> None:
    first, _ = forked_claude(tmp_path)
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        for _ in range(2):  # the second run finds nothing new
            mirror_files(ledger, str(tmp_path), {})
        origin, fork = sorted(ledger.sessions(), key=lambda one: one.forked_from is not None)
        assert fork.forked_from == origin.name
        assert [len(list(ledger.turns(FOLDER, one.name))) for one in (origin, fork)] == [1, 2]
        assert len(ledger.pages.search("NARWHAL")) == 1
        assert first.session == origin.origin.id  # type: ignore[union-attr]


def test_a_kept_fork_of_codex_has_what_came_before_it(tmp_path: Path) -> None:
    origin, fork = Codex(session="01a1"), Codex(session="01a2")
    records = [*origin.begins(), origin.says("The NARWHAL plan."), origin.says("Yes.", role="assistant")]
    records += origin.uses(1_000)
    origin.minute = 9
    later = [origin.says("Only in the origin."), origin.says("Yes.", role="assistant"), *origin.uses(2_000)]
    write(origin.path(tmp_path), [*records, *later], minute=9)
    begun = fork.begins()
    begun[0]["payload"] |= {"forked_from_id": "01a1", "history_base": {"thread_id": "01a1"}}
    begun[0]["payload"]["timestamp"] = time_at(4)
    fork.minute = 5
    own = [*begun, fork.says("Another way."), fork.says("Yes.", role="assistant"), *fork.uses(1_500)]
    write(fork.path(tmp_path), own, minute=6)  # it is older than its origin
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        mirror_files(ledger, str(tmp_path), {})
        fork.minute = 7
        write(fork.path(tmp_path), [*own, fork.says("And on."), *fork.uses(1_600)], minute=8)
        mirror_files(ledger, str(tmp_path), {})
        sessions = ledger.sessions()
        name = next(one.name for one in sessions if one.forked_from is not None)
        texts = [text_of(each) for turn in ledger.turns(FOLDER, name) for each in turn.messages]
        assert texts == ["The NARWHAL plan.", "Yes.", "Another way.", "Yes.", "And on."]
        assert (len(sessions), len(ledger.pages.search("NARWHAL"))) == (2, 1)


# ---------------------------------------------------------------- nothing understood is no success

CHAT = {
    "responderUsername": "GitHub Copilot",
    "requests": [
        {
            "message": {"text": "Where is the gate?"},
            "response": [{"kind": "progressTask"}, {"value": "Over there."}],
            "modelId": "gpt-5",
        }
    ],
}
EVENTS = [
    {"type": "session.start", "data": {"sessionId": "s1"}},
    {"type": "user.message", "data": {"content": "Where is the gate?"}},
    {
        "type": "assistant.message",
        "data": {
            "content": "I look.",
            "toolRequests": [{"toolCallId": "c1", "name": "grep", "arguments": {"pattern": "gate"}}],
        },
    },
    {"type": "tool.execution_complete", "data": {"toolCallId": "c1", "result": {"content": "gate.py"}}},
    {"type": "assistant.message", "data": {"content": "Over there."}},
]


@pytest.mark.parametrize(
    ("records", "form", "texts"),
    [
        ([CHAT], "vscode-chat", ["Where is the gate?", "Over there."]),
        (EVENTS, "copilot-cli", ["Where is the gate?", "I look.", "gate.py", "Over there."]),
    ],
)
def test_chats_of_copilot_are_read(records: list[Record], form: str, texts: list[str]) -> None:
    transcript = read_transcript(lines(records), "chat")
    assert transcript.format == form
    assert [text_of(each) for each in transcript.conversations[0].messages] == texts


def test_a_file_that_nobody_understands_is_refused_with_its_keys() -> None:
    transcript = read_transcript(lines([{"prompt_blocks": [], "quantum": 1}]), "chat")
    assert transcript.format is None
    assert "objects with the keys prompt_blocks, quantum" in transcript.problems[0].message
