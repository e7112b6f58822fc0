"""`nexus show --messages`: what is sent of a real conversation, what is cut and why."""

import gzip
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import main
from support.commands import run_nexus, use_home
from support.fixture import Fixture, write_fixture
from support.json_lines import json_lines

FIXTURE = """
//- /home/a/.nexus3/NEXUS.md
Project rules.
//- /home/a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "context": {"reserve_tokens": 100, "reserve_tool_tokens": 0}}
"""
ROW = re.compile(r" +(–|[\d,]+) +(system|user|assistant|tool) +≈?[\d,]+  (.*)")
GIVE = "use a number from 1 to 3, or all."
CORPORA = Path(os.environ.get("NEXUS_CORPORA") or Path(__file__).resolve().parents[3] / "shared" / "data")
CORPUS = CORPORA / "tau-bench" / "gpt-4o-airline.json.gz"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


class Ran:
    """One run of `nexus show --messages`: exit code, output and errors, the tree's root left out."""

    def __init__(
        self, tree: Fixture, capsys: pytest.CaptureFixture[str], records: Any, *arguments: str
    ) -> None:
        path = Path(tree.root, "t.jsonl")
        if records is not None:
            path.write_bytes(records if isinstance(records, bytes) else json_lines(records).encode())
        command = ("show", tree.path("/home/a"), "--messages", str(path), *arguments)
        self.code, self.out, self.err = run_nexus(capsys, *command, root=tree.root)

    @property
    def rows(self) -> list[list[str]]:
        """Number, role and text of the messages listed."""
        found = [ROW.fullmatch(line) for line in self.out.splitlines()]
        return [list(row.groups()) for row in found if row is not None]


def turns(count: int, *, words: int = 40) -> list[dict[str, Any]]:
    """Turns of a question, a call, its result and an answer."""
    found: list[dict[str, Any]] = []
    for turn in range(count):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
        found += [
            {"role": "user", "content": f"Question {turn}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"Found {turn}\n" + "word " * words},
            {"role": "assistant", "content": f"Answer {turn}."},
        ]
    return found


def test_what_fits_is_listed(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, turns(1), "--budget", "4000")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("t.jsonl: OpenAI messages\n")
    assert ran.rows == [
        ["–", "system", "# System Configuration …"],
        ["1", "user", "Question 0?"],
        ["2", "assistant", '→ look {"at":1}'],
        ["3", "tool", "Found 0 …"],
        ["4", "assistant", "Answer 0."],
    ]
    assert "not sent" not in ran.out
    assert "≈" not in ran.out
    assert "≈" in Ran(tree, capsys, turns(1), "--model", "claude-sonnet-4-5").out.splitlines()[2]
    assert "of 3,900 tokens for gpt-4o" in ran.out
    assert "\x1b" not in ran.out


def test_what_does_not_fit_is_told(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, turns(60), "--budget", "2000", "--no-folder")
    assert (ran.code, ran.err) == (0, "")
    (cut,) = [line for line in ran.out.splitlines() if line.startswith("—")]
    assert cut == snapshot(
        "— 195 messages, 3,912 tokens not sent: the whole is 4,800, available are 1,900 of "
        "2,000, with 100 reserved for the answer; cut at the start of a turn, to at most 60 "
        "% of what is available (oldest_first) —"
    )
    assert ran.rows[0] == ["1", "user", "[pinned] Question 0?"]
    assert ran.rows[-1] == ["240", "assistant", "Answer 59."]
    assert sum(row[0].isdigit() for row in ran.rows) == 240 - 195


def test_other_strategies(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, turns(60), "--budget", "2000", "--no-folder", "--strategy", "recency")
    assert "cut to the last turns (recency)" in ran.out
    with pytest.raises(SystemExit):
        Ran(tree, capsys, turns(60), "--strategy", "luck")


def test_a_shortened_result_is_marked(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, turns(1, words=4000), "--budget", "2000", "--no-folder")
    assert ran.rows == snapshot(
        [
            ["1", "user", "Question 0?"],
            ["2", "assistant", '→ look {"at":1}'],
            ["3", "tool", "[shortened from 4,009 tokens] Found 0 …"],
            ["4", "assistant", "Answer 0."],
        ]
    )


def test_repairs_are_told(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, turns(2)[:2])
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line.startswith("repaired: ")] == snapshot(
        ["repaired: the call c0 of look has no result; a text says so"]
    )


def test_bodies(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    records = turns(1)
    openai = json.loads(Ran(tree, capsys, records, "--format", "openai").out)
    assert openai["model"] == "gpt-4o"
    assert [message["role"] for message in openai["messages"]] == [
        "system",
        *(one["role"] for one in records),
    ]
    assert "Project rules." in openai["messages"][0]["content"]
    ran = Ran(tree, capsys, records, "--format", "anthropic", "--no-folder", "--model", "claude-sonnet-4-5")
    anthropic = json.loads(ran.out)
    assert (anthropic["model"], "system" in anthropic) == ("claude-sonnet-4-5", False)
    assert [message["role"] for message in anthropic["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    neutral = json.loads(Ran(tree, capsys, records, "--format", "json").out)
    assert [message["role"] for message in neutral["history"]] == [one["role"] for one in records]
    assert neutral["usage"]["total"] == sum(row["tokens"] for row in neutral["usage"]["rows"])


def writing(words: int) -> list[dict[str, Any]]:
    """A call that writes a long file: arguments are never shortened."""
    function = {"name": "write", "arguments": json.dumps({"text": "word " * words})}
    call = {"id": "c1", "type": "function", "function": function}
    return [
        {"role": "user", "content": "write"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]


def test_a_body_that_cannot_fit_is_refused(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, writing(5_000), "--format", "openai", "--budget", "2000", "--no-folder")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == snapshot(
        "nexus show: The context does not fit: what cannot be left out of the conversation takes "
        "5,024 tokens, and 1,900 of 1,900 are left for the conversation. Shorten the message, the"
        " system prompt or the tools, or choose a model with a larger window.\n"
    )


def test_the_transcripts_own_prompt_tools_and_model(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(tree.path("/home/a/.nexus3/config.json")).write_text("{}")
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
    body = {
        "model": "gpt-4o-mini",
        "system": "Be brief.",
        "tools": [tool],
        "messages": [{"role": "user", "content": "a"}],
    }
    ran = Ran(tree, capsys, [body])
    assert ran.out == snapshot("""\
t.jsonl: Anthropic messages
The system prompt is the transcript's own; the folder's is not sent.

      –  system            3  Be brief.
      1  user              5  a

24 of 126,000 tokens for gpt-4o-mini (0.0 %)                                                \n\
                                                                                            \n\
  category   what                                    tokens   share                         \n\
 ────────────────────────────────────────────────────────────────────────────────────────── \n\
  system     system prompt of the transcript              3     12%   ██                    \n\
  tools      look                                        16     67%   █████████████         \n\
  history    1 message                                    5     21%   ████                  \n\
                                                                                            \n\
  total      counted with o200k_base (gpt-4o-mini)       24                                 \n\
                                                                                            \n\
""")
    sent = json.loads(Ran(tree, capsys, [body], "--format", "openai").out)
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    assert sent["tools"][0]["function"]["name"] == "look"


def test_several_conversations(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        {"task_id": n, "trial": 0, "traj": [{"role": "user", "content": f"Task {n}."}]} for n in range(3)
    ]
    packed = gzip.compress(json.dumps(records).encode())
    first = Ran(tree, capsys, packed)
    assert first.out.startswith("t.jsonl: tau-bench records, conversation 1 of 3 (task 0, trial 0); ")
    assert Ran(tree, capsys, packed, "--conversation", "3").rows[-1] == ["1", "user", "Task 2."]
    whole = Ran(tree, capsys, packed, "--conversation", "all")
    assert whole.out.startswith("t.jsonl: tau-bench records, 3 conversations as one\n")
    assert [row[2] for row in whole.rows[1:]] == ["Task 0.", "Task 1.", "Task 2."]
    for wrong in ("0", "4", "x", "-1", "²"):
        ran = Ran(tree, capsys, packed, f"--conversation={wrong}")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == f"nexus show: --conversation {wrong}: the file has 3 conversations; {GIVE}\n"


def test_what_cannot_be_read(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, b'{"role": "user", "content": "a"}\n\n{"role": "user" "x"}\n{"role": "user"')
    assert ran.code == 1
    assert ran.rows[-1] == ["1", "user", "a"]
    assert ran.err == snapshot(
        "nexus show: /t.jsonl:3: Expecting ',' delimiter: remove this, or write a comma and "
        "what belongs to it. The line is left out.\n"
        "nexus show: /t.jsonl:4: The last line is unfinished: something still writes to the "
        "file. The line is left out.\n"
    )
    assert Ran(tree, capsys, b'{"role": "user", "content": "a"}\n{"role": "user"').code == 0


@pytest.mark.parametrize("data", [b"", b"Not a transcript.\n", b"\x00\x01", b"[]"])
def test_nothing_to_show(tree: Fixture, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    ran = Ran(tree, capsys, data)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("nexus show: /t.jsonl")


def test_wrong_usage(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    missing = Ran(tree, capsys, None)
    assert (missing.code, missing.out, missing.err) == (2, "", "nexus show: /t.jsonl does not exist.\n")
    assert Ran(tree, capsys, turns(1), "--source").code == 2
    assert main(["show", tree.path("/home/a"), "--no-folder"]) == 2
    assert main(["show", tree.path("/home/a"), "--messages", tree.path("/home")]) == 2
    assert capsys.readouterr().err.endswith("/home is a directory; give a file, or - for standard input.\n")
    assert main(["show", tree.path("/home/a"), "--messages", os.devnull]) == 2
    refusal = f"nexus show: {os.devnull} is not a regular file; give a file, or - for standard input.\n"
    assert capsys.readouterr().err == refusal
    for budget in ("0", "-1", "x"):
        with pytest.raises(SystemExit) as ended:
            Ran(tree, capsys, turns(1), "--budget", budget)
        assert ended.value.code == 2
        assert "argument --budget: " in capsys.readouterr().err


@pytest.mark.parametrize("extra", [[], ["--tokens"]])
def test_what_cannot_fit_is_told(tree: Fixture, capsys: pytest.CaptureFixture[str], extra: list[str]) -> None:
    ran = Ran(tree, capsys, writing(3_000), "--budget", "1000", *extra)
    assert ran.code == 1
    assert re.search(r"Does not fit: [\d,]+ tokens, [\d,]+ more than the 900 available\.\n$", ran.out)
    assert " %)" not in ran.out
    assert "next request" not in ran.out
    assert main(["show", tree.path("/home/a"), "--tokens", "--budget", "100"]) == 1
    refusal = ", the reserve of 100 tokens takes the whole budget of 100.\n"
    assert capsys.readouterr().out.endswith(refusal)


def test_the_cache_line(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"role": "user", "content": "word " * 3000}]
    assert re.search(r"\n[\d,]+ tokens \(tools, .* will be the same", Ran(tree, capsys, records).out)
    assert re.search(r"\n≈[\d,]+ tokens", Ran(tree, capsys, records, "--model", "claude-sonnet-4-5").out)
    assert "will be the same" not in Ran(tree, capsys, turns(1), "--no-folder").out


def test_repairs_name_the_number_in_the_list(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    records = [*turns(60), {"role": "tool", "tool_call_id": "gone", "content": "Lost."}]
    ran = Ran(tree, capsys, records, "--budget", "2000", "--no-folder")
    repaired = [line.partition(": ")[2] for line in ran.out.splitlines() if line.startswith("repaired: ")]
    assert repaired == snapshot(
        ["the result in message 241 answers an unknown call gone; it is sent as a marked text of the user"]
    )
    assert ran.rows[-1] == ["241", "tool", "Lost."]


@pytest.mark.parametrize(
    "data", [b"\n[2026-01-01] started\n[2026-01-02] ended\n" * 30, b"\x89PNG\r\n\x1a\n\0"]
)
def test_no_transcript_at_all(tree: Fixture, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    ran = Ran(tree, capsys, data)
    line = 2 if data.startswith(b"\n") else 1
    assert ran.code == 1
    assert ran.err.startswith(f"nexus show: /t.jsonl is not a transcript: line {line} is not JSON. Expected ")
    assert ran.err.count("\n") == 1
    assert Ran(tree, capsys, b"").err.startswith("nexus show: /t.jsonl is empty. Expected ")


def test_an_unknown_model(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(tree, capsys, turns(1), "--model", "gpt4o")
    assert ran.err == snapshot(
        "nexus show: gpt4o is not a known model: its window is a guess, counts are "
        "estimates; did you mean gpt-4o?\n"
    )
    Path(tree.path("/home/a/.nexus3/config.json")).write_text("{}")
    assert Ran(tree, capsys, turns(1), "--format", "openai").err == snapshot(
        "nexus show: --format openai needs a model, and none is set: use --model, or set "
        "provider.model in config.json.\n"
    )


def test_standard_input(
    tree: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json_lines(turns(1)).encode())))
    assert main(["show", tree.path("/home/a"), "--messages", "-"]) == 0
    assert "Answer 0." in capsys.readouterr().out


def test_nothing_steers_the_terminal(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    content = "\x1b[31mred\x07 [bold]not markup[/bold] \u202eback"
    ran = Ran(tree, capsys, [{"role": "user", "content": content}])
    assert "␛[31mred␇ [bold]not markup[/bold] �back" in ran.out
    assert "\x1b" not in ran.out


def test_many_messages_are_folded_on_a_terminal(
    tree: Fixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--budget", "100000", "--no-folder")
    piped = Ran(tree, capsys, turns(50), *arguments)
    assert len(piped.rows) == 200
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    shown = Ran(tree, capsys, turns(50), *arguments)
    assert "160 more messages sent" in shown.out
    assert "Answer 49." in shown.out
    assert max(map(len, shown.out.splitlines()[:40])) <= 100


def test_a_claude_code_session(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    def line(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, "id": f"m-{uuid}", "model": "claude-opus-4-5"}
        return {
            "type": kind,
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": "s",
            "message": message,
            **more,
        }

    side = line("user", "x", None, "Aside.", isSidechain=True)
    records = [
        line("user", "u", None, "Go."),
        side,
        line("assistant", "a", "u", [{"type": "text", "text": "Gone."}]),
    ]
    ran = Ran(tree, capsys, records)
    assert ran.code == 0
    first = "t.jsonl: Claude Code session, conversation 1 of 2; --conversation N or all selects others\n"
    assert ran.out.startswith(first)
    assert [row[1:] for row in ran.rows[1:]] == [["user", "Go."], ["assistant", "Gone."]]
    assert ran.err == ""
    assert Ran(tree, capsys, records, "--conversation", "2").rows[1][1:] == ["user", "Aside."]


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside the project")
def test_a_real_corpus(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        [
            "show",
            tree.path("/home/a"),
            "--messages",
            str(CORPUS),
            "--conversation",
            "all",
            "--budget",
            "16000",
        ]
    )
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    assert "200 conversations as one" in shown.out
    assert "to at most 60 % of what is available (oldest_first)" in shown.out
