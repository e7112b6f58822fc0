"""Whatever a record of a transcript holds, the import reports what is wrong and where, and continues."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.assistants.importing import importers, read_transcript
from nexus_context.assistants.transcripts import chat_records
from nexus_context.ledger.store import Ledger
from nexus_context.text import read_limits
from nexus_context.tokens import get_token_counter
from nexus_daemon.cli import main
from support import hostile_transcripts as hostile
from support.ledgers import ledger_in
from torture.figures import dice_of
from torture.imports import outcome_of
from torture.ledgers import WORKSPACE

HEADER = '{"format": "nexus-session", "version": 1, "session": "s"}\n'
GOOD = '{"role": "user", "content": "Said."}\n'


@pytest.mark.parametrize("form", hostile.FORMS)
@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 32), lines=st.integers(1, 4))
@example(seed=3489421156, lines=3)  # nor does one of Codex with a `uuid` that is one
@example(seed=3453, lines=1)  # a `uuid` that is no text does not make it a file of Claude Code
def test_any_record_is_imported_exactly_or_refused(
    form: str, seed: int, lines: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with ledger_in(path) as ledger:
        data = hostile.file(dice_of(seed), form, lines)
        problems, messages = outcome_of(importer_of(ledger), ledger, form, data, "/x/f.jsonl")
        assert problems or messages


@pytest.mark.parametrize("form", hostile.FORMS[:5] + hostile.FORMS[6:])
@given(seed=st.integers(0, 1 << 32), lines=st.integers(1, 4), entire=st.booleans())
def test_no_record_causes_an_internal_error(form: str, seed: int, lines: int, entire: bool) -> None:
    transcript = read_transcript(hostile.file(dice_of(seed), form, lines), "/x/f", entire=entire)
    assert [problem.message for problem in transcript.problems if problem.code == "internal"] == []


@pytest.mark.parametrize("seed", range(26))
def test_any_record_is_shown_or_refused(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NEXUS_HOME", raising=False)
    path = tmp_path / "t.jsonl"
    forms = [form for form in hostile.FORMS if form != "nexus"]  # our own is an export
    form = forms[seed % len(forms)]
    path.write_bytes(hostile.file(dice_of(seed), form, 3))
    for shape in ([], ["--conversation", "all"]):
        code = main(["show", str(tmp_path), "--messages", str(path), *shape])
        shown = capsys.readouterr()
        assert code in (0, 1), shown.err
        assert "Traceback" not in shown.err and "internal" not in shown.err


def importer_of(ledger: Ledger) -> importers.Importer:
    return importers.Importer(ledger, WORKSPACE, lambda _: get_token_counter())


def check(record: Any, said: str, *, form: str = "") -> None:
    """A record between two good ones is refused, or kept, with its line; the good ones are read."""
    text = form + GOOD + (record if isinstance(record, str) else json.dumps(record)) + "\n" + GOOD
    contents = importers.read(text.encode(), "/x/chat.jsonl")
    place = 2 + form.count("\n")
    assert [
        f"{line}: {problem.message}" for line, problem in zip(contents.lines, contents.problems, strict=True)
    ] == ([f"{place}: {said}"] if said else [])
    (session,) = contents.sessions
    assert session.messages == (2 if said else 3)


def test_parts_of_any_type() -> None:
    kinds: tuple[Any, ...] = (["text"], {}, 7, None, [["image"]])
    for kind in kinds:
        check({"role": "user", "content": [{"type": kind, "text": "x"}]}, "")


def test_what_cannot_be_kept() -> None:
    message = "The line is not a valid message: "
    check({"role": "user", "content": 7}, f"{message}its content is a number, not text or a list of parts")
    check({"role": "user", "content": "x", "timestamp": True}, "")


def test_an_error_of_ours_leaves_out_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    neutral = chat_records.neutral

    def failing(value: Any) -> Any:
        if value["content"] == "broken":
            raise ZeroDivisionError("no reason")
        return neutral(value)

    monkeypatch.setattr(chat_records, "neutral", failing)
    said = "The line cannot be read because of an error in Nexus (ZeroDivisionError: no reason). "
    check({"role": "user", "content": "broken"}, f"{said}It is left out; please report this.")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"\ud800": 1}, "surrogates not allowed"),
        ({"model": "\ud800"}, "`model` holds half a surrogate pair."),
        ({"compaction": "\udc00", "type": "compaction"}, "`compaction` holds half a surrogate pair."),
        ({"messages": [{"role": "king"}]}, "Invalid enum value 'king'"),
    ],
)
def test_a_turn_of_an_export_that_cannot_be_kept(fields: dict[str, Any], said: str) -> None:
    turn = {"seq": 1, "type": "query", "created": "", "messages": [{"role": "user", "content": "Said."}]}
    text = HEADER + json.dumps(turn) + "\n" + json.dumps(turn | fields) + "\n" + json.dumps(turn) + "\n"
    contents = importers.read(text.encode(), "/x/export.jsonl")
    (problem,) = contents.problems
    assert contents.lines == (3,)
    assert problem.message.startswith("The line is not a valid turn: ") and said in problem.message
    assert contents.sessions[0].messages == 2


def test_half_a_surrogate_pair_in_an_export_comes_back(tmp_path: Path) -> None:
    message = {"role": "user", "content": "\ud800", "meta": {"\udc00": ["\ud800"]}}
    turn = {"seq": 1, "type": "query", "created": "", "messages": [message]}
    data = (HEADER + json.dumps(turn) + "\n").encode()
    with ledger_in(tmp_path / "ledger.db") as ledger:
        assert outcome_of(importer_of(ledger), ledger, "claude-code", data, "/x/export.jsonl") == (0, 1)


def test_counts_that_cannot_be_are_made_anew() -> None:
    said = {"role": "user", "content": "Said. " * 1_000}
    turn = {"seq": 1, "type": "query", "created": "", "messages": [said]}
    for counts in ([-1], [0], [29], [1 << 80], [1 << 63], [True], []):
        line = turn | {"counter": "cl100k_base", "counts": counts}
        contents = importers.read((HEADER + json.dumps(line) + "\n").encode(), "/x/export.jsonl")
        assert all(turn.counts == () for one in contents.sessions for turn in one.turns)


# ---------------------------------------------------------------- limits


def test_what_grows_too_much_is_refused_before_it_is_unpacked() -> None:
    packed = gzip.compress(b"\n" * (200 << 20), 9)
    tracemalloc.start()
    found = read_limits.unpacked(packed, 1 << 30)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == read_limits.Unpacked(b"", found.problem, refused=True)
    assert found.problem == snapshot(
        "The file is not a transcript: it unpacks to more than 250 times its size."
    )
    assert most < 160 << 20  # one step at the largest ratio, twice while the buffer grows


@pytest.mark.parametrize("tail", [b"", b"rubbish", b"\x1f\x8brubbish"])
def test_several_members_are_unpacked(tail: bytes) -> None:
    parts = [b"a" * 100_000, b"", b"b" * 70_000]
    found = read_limits.unpacked(b"".join(map(gzip.compress, parts)) + tail, 1 << 20)
    assert found.data == b"".join(parts)
    assert (found.problem is None) == (tail != b"\x1f\x8brubbish")


@pytest.mark.parametrize(
    ("text", "count"),
    [("[]", 1), ('["a,b{", {"c": [1, 2]}]', 5), ('"' + "," * 50, 0), (r'["\"", ",,,,"]', 2), ('["', 1)],
)
def test_values_are_counted_outside_of_strings(text: str, count: int) -> None:
    assert read_limits.values_in(text, 4) == min(count, 5)


def test_a_file_with_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = '{"seq": 1, "type": "query", "created": "", "messages": [{"role": "user", "content": "Said."}]}\n'
    record = '{"role": "user", "content": "x", "meta": [' + "{}," * 200 + "{}]}\n"
    monkeypatch.setattr(read_limits, "MOST_VALUES", 100)
    monkeypatch.setattr("nexus_context.assistants.importing.jsonl.MOST_VALUES", 100)
    messages = []
    for text in (GOOD + record, HEADER + turn * 40):
        contents = importers.read(text.encode(), "/x/chat.jsonl")
        assert contents.sessions == ()
        messages.append(contents.problems[0].message)
    assert messages == snapshot(
        [
            "The file holds more than the 100 JSON values that are read at most. Split it.",
            "The file holds more than the 100 JSON values that are read at most. Split it.",
        ]
    )


def test_a_line_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_context.assistants.importing.jsonl.LONGEST_LINE", 200)
    turn = {"seq": 1, "type": "query", "created": "", "messages": [{"role": "user", "content": "Said."}]}
    long = turn | {"model": "m" * 200}
    text = HEADER + "\n\n" + json.dumps(long) + "\n" + json.dumps(turn) + "\n"
    contents = importers.read(text.encode(), "/x/export.jsonl")
    assert contents.lines == (4,)
    assert contents.problems[0].message == snapshot(
        "The line has 307 characters, and at most 200 are read. It is left out."
    )
    assert contents.sessions[0].messages == 1
