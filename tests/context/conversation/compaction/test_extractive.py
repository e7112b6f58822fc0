"""The embedded summary: what it picks, how it fits its limit, and how it merges an earlier one."""

import time
from datetime import datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.compaction.extract_facts import Facts, Section, extract_facts
from nexus_context.conversation.compaction.extractive import extract, summary
from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.compaction.sentence_patterns import (
    boxes_in,
    decisions_in,
    findings_in,
    instructions_in,
    open_in,
    sentences_of,
)
from nexus_context.conversation.compaction.summarizer import SummaryRequest
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import create_summary_message
from nexus_context.conversation.tool_activity import activity_of
from nexus_context.tokens import TiktokenCounter
from support.chats import chat
from support.histories import BROKEN, Letters, histories

COUNTER = TiktokenCounter()
NOON = datetime(2026, 3, 4, 12, 0)

SESSION = """
user: The client times out on slow networks. Fix it in src/net/client.py, but never change the public API.
  Please keep RETRY_LIMIT at 5. I have attached the log.
read: src/net/client.py
=> class HttpClient:
      def fetch_all(self): raise TimeoutError
bash: uv run pytest tests/net -q
=> E   asyncio.exceptions.TimeoutError: deadline passed
  1 failed, 212 passed in 3.10s
assistant: The problem is that the deadline is set once, before the loop. I'll reset it for each attempt.
  What follows is only an idea.
edit: {"file_path": "src/net/client.py", "old_string": "a", "new_string": "b"}
=> Error: old_string was not found in src/net/client.py
edit: {"file_path": "src/net/client.py", "old_string": "self.deadline = now()", "new_string": "pass"}
=> ok
todo: {"todos": [{"content": "Fix the deadline", "status": "completed"}, {"content": "Document RETRY_LIMIT", "status": "pending"}]}
=> ok
bash: uv run pytest tests/net -q
=> 213 passed in 3.02s
bash: ls src
=> net
user: No, do not sleep between attempts. Also bump httpx to 0.27.2 in pyproject.toml
bash: uv lock --upgrade-package httpx
=> error: no such package index: https://pypi.corp.example/simple
assistant: The index is not reachable from here. We still need to update the lock file.
"""  # noqa: E501


def test_the_summary_of_a_coding_session() -> None:
    assert summary(chat(SESSION), COUNTER, limit=2_000) == snapshot("""\
Extractive: sentences picked from the conversation; no model wrote this.

## Goal
- The client times out on slow networks. Fix it in src/net/client.py, but never change the public API.
  Please keep RETRY_LIMIT at 5. I have attached the log.

## Messages of the user
- No, do not sleep between attempts. Also bump httpx to 0.27.2 in pyproject.toml

## Open tasks
- We still need to update the lock file.
- [ ] Document RETRY_LIMIT

## Decisions and findings
- The problem is that the deadline is set once, before the loop.
- What follows is only an idea.
- I'll reset it for each attempt.
- The index is not reachable from here.

## Files
- `src/net/client.py`: changed

## Commands
- `uv run pytest tests/net -q`: 213 passed in 3.02s
- `ls src`: net
- `uv lock --upgrade-package httpx`: failed: error: no such package index: https://pypi.corp.example/simple

## Errors
- asyncio.exceptions.TimeoutError: deadline passed (resolved since)
- Error: old_string was not found in src/net/client.py (resolved since)
- error: no such package index: https://pypi.corp.example/simple (in `uv lock --upgrade-package httpx`)

## Names and values
Symbols: now, self.deadline, fetch_all, HttpClient
Amounts and numbers: 212\
""")


def test_little_room_keeps_what_matters_most_and_says_what_is_missing() -> None:
    assert summary(chat(SESSION), COUNTER, limit=170) == snapshot("""\
Extractive: sentences picked from the conversation; no model wrote this. Left out for length: Open tasks 2, Errors 2, Decisions and findings 4, Commands 2.

## Goal
- The client times out on slow networks. Fix it in src/net/client.py, but never change the public API.
  Please keep RETRY_LIMIT at 5. I have attached the log.

## Messages of the user
- No, do not sleep between attempts. Also bump httpx to 0.27.2 in pyproject.toml

## Files
- `src/net/client.py`: changed

## Errors
- asyncio.exceptions.TimeoutError: deadline passed (resolved since)

## Names and values
Files: tests/net
Symbols: now, self.deadline\
""")  # noqa: E501


def check(text: str, section: Section, expected: list[str]) -> None:
    """The items of one section."""
    assert [item.text for item in facts_of(text).of(section)] == expected


def facts_of(text: str) -> Facts:
    return extract_facts(chat(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello there. How are you?", []),
        ("Never push to main. Thanks.", ["Never push to main."]),
        ("- must be fast\n- nice weather\n* use `uv`", ["must be fast", "use `uv`"]),
        ("No, that is the wrong file. Cheers.", ["No, that is the wrong file."]),
        ("No, thanks.", []),
        ("I don't have the code with me.", []),
        ("```\nmust not be read\n```\nKeep this.", ["Keep this."]),
        ("Никогда не меняй схему. Погода хорошая, не правда ли, друзья?", ["Никогда не меняй схему.", "Погода хорошая, не правда ли, друзья?"]),  # noqa: E501
        ("不要修改数据库。请使用 uv。", ["不要修改数据库。", "请使用 uv。"]),
        ("Bitte nicht löschen.", ["Bitte nicht löschen."]),
        ("Rules:\n1. Only Python 3.11", ["Only Python 3.11"]),
    ],
)  # fmt: skip
def test_instructions(text: str, expected: list[str]) -> None:
    assert [cue.text for cue in instructions_in(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I decided to keep it because it is used. Shall I go on, because it is late?", ["I decided to keep it because it is used."]),  # noqa: E501
        ("Let me look at the file. I'll check the tests.", []),
        ("I'll rename the module. Your seat is now confirmed.", ["I'll rename the module.", "Your seat is now confirmed."]),  # noqa: E501
        ("Причина в том, что порт занят. Хорошо.", ["Причина в том, что порт занят."]),
        ("问题是缓存没有更新，我已修复这个错误。好的。", ["问题是缓存没有更新，我已修复这个错误。"]),
    ],
)  # fmt: skip
def test_decisions(text: str, expected: list[str]) -> None:
    assert [cue.text for cue in decisions_in(text)] == expected


def test_open_work_is_what_nobody_checked_off() -> None:
    assert open_in("All done. We still need to update the docs. Any next steps?") == [
        "We still need to update the docs."
    ]
    assert list(boxes_in("- [ ] one\n- [x] two\n  * [X] three")) == [
        ("one", False),
        ("two", True),
        ("three", True),
    ]
    check("assistant: Plan\n  - [ ] one\n  - [ ] two\nassistant: Now\n  - [x] one", "tasks", ["two"])
    first = 'plan: {"plan": [{"step": "a", "status": "in_progress"}, {"step": "b", "status": "pending"}]}'
    check(f'{first}\n=> ok\nplan: {{"plan": [{{"step": "b", "status": "pending"}}]}}', "tasks", ["[ ] b"])


def test_files_are_changed_or_read() -> None:
    check(
        """
str_replace_based_edit_tool: {"command": "view", "path": "a.py"}
=> text
str_replace_based_edit_tool: {"command": "create", "path": "b.py"}
=> ok
apply_patch: {"input": "*** Begin Patch\\n*** Update File: src/c.py\\n@@\\n"}
=> ok
read: b.py
=> text
""",
        "files",
        ["`a.py`: read", "`src/c.py`: changed", "`b.py`: changed"],
    )


def test_commands_and_how_they_ended() -> None:
    check(
        """
bash: make
=> cc a.c
  a.c:3:1: error: unknown type name 'strin'
  make: *** [all] Error 1
bash: npm test
=> Tests: 3 passed, 3 total
  exit code: 0
shell: {"command": ["bash", "-lc", "cargo build"]}
=> Finished in 2s
bash: true
=>
""",
        "commands",
        [
            "`make`: failed: a.c:3:1: error: unknown type name 'strin'",
            "`npm test`: Tests: 3 passed, 3 total",
            "`cargo build`: Finished in 2s",
            "`true`",
        ],
    )


def test_an_error_is_resolved_when_the_same_command_ends_well() -> None:
    failing = "bash: pytest\n=> E   ValueError: bad port\nbash: mypy\n=> a.py:1: error: no type\n"
    check(failing, "errors", ["ValueError: bad port (in `pytest`)", "a.py:1: error: no type (in `mypy`)"])
    check(
        failing + "bash: pytest\n=> 3 passed",
        "errors",
        ["ValueError: bad port (in `pytest`; resolved since)", "a.py:1: error: no type (in `mypy`)"],
    )


@pytest.mark.parametrize(
    ("result", "flagged", "error"),
    [
        ("<tool_use_error>File has not been read yet.</tool_use_error>", True, "File has not been read yet."),
        ("Nothing happened here.", True, "Nothing happened here."),
        ("Exit code 3\ncollecting\nthe disk is full on db-1", False, "the disk is full on db-1"),
        ("Exit code 1\nlogin was refused\nbye", False, "login was refused"),
        ("src/a.ts(3,5): error TS2322: no", False, "src/a.ts(3,5): error TS2322: no"),
        (
            "  12:11  error  'a' is unused  no-unused-vars",
            False,
            "12:11  error  'a' is unused  no-unused-vars",
        ),
        ("./a.go:3:2: undefined: b", False, "./a.go:3:2: undefined: b"),
        ("Expected 3 to equal 4", False, "Expected 3 to equal 4"),
        ('{"status": 502, "message": "no answer"}', False, '{"status": 502, "message": "no answer"}'),
        ("E   KeyError: 'a'\nFAILED tests/a.py::b", False, "KeyError: 'a'"),
        ("FAILED tests/a.py::b", False, "FAILED tests/a.py::b"),
        ("all good\nexit code: 0", False, None),
    ],
)
def test_the_error_of_a_result(result: str, flagged: bool, error: str | None) -> None:
    call = Message("assistant", None, (ToolCall("1", "bash", {"command": "run"}),))
    meta = {"is_error": True} if flagged else msgspec.UNSET
    facts = extract_facts([call, Message("tool", result, tool_call_id="1", meta=meta)])
    assert [fact.text for fact in facts.of("errors")] == ([f"{error} (in `run`)"] if error else [])


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ("E       assert 120 == 90", "assert 120 == 90"),
        ("requests.exceptions.Timeout: read timed out", "requests.exceptions.Timeout: read timed out"),
        ('  File "a.py", line 3, in <module>\nKeyboardInterrupt', "KeyboardInterrupt"),
        ("src/a.ts:1:2 - error TS2304: Cannot find name.", "src/a.ts:1:2 - error TS2304: Cannot find name."),
        ("sh: 1: frobnicate: not found", "sh: 1: frobnicate: not found"),
        ("curl: (6) Could not resolve host: x", "curl: (6) Could not resolve host: x"),
        ('psql: FATAL:  role "x" does not exist', 'psql: FATAL:  role "x" does not exist'),
        ("nginx: [emerg] bind() failed", "nginx: [emerg] bind() failed"),
        ("E: Unable to locate package foo", "E: Unable to locate package foo"),
        ("! [rejected]        main -> main (fetch first)", "! [rejected]        main -> main (fetch first)"),
        ("    def test():\n        assert total == 90", None),
        ("os.path.Join: joins two paths", None),
        ("settings:\n  config.Mode: fast", None),
    ],
)
def test_what_counts_as_an_error_line(result: str, error: str | None) -> None:
    call = Message("assistant", None, (ToolCall("1", "bash", {"command": "make deploy"}),))
    activity = activity_of([call, Message("tool", result, tool_call_id="1", name="bash")])
    assert [failure.text for failure in activity.failures] == ([] if error is None else [error])


@pytest.mark.parametrize(
    ("sentence", "weight"),
    [
        ("The leak is in pool.close.", 1.2),
        ("I see: the deadlock comes from two writers in Store.flush.", 1.2),
        ("The culprit was a stale lock file.", 1.2),
        ("This means each request opens a new connection.", 1.2),
        ("It turns out the cache is never invalidated.", 2.0),
        ("The tests fail only on Windows.", 0.3),
        ("Now let me look at the tests.", None),
    ],
)
def test_findings_beside_calls(sentence: str, weight: float | None) -> None:
    cues = findings_in(sentence, is_report=False)
    assert [cue.weight for cue in cues] == ([] if weight is None else [weight])


def test_spare_room_goes_to_commands_that_only_read_and_to_remarks() -> None:
    words = "\n".join(f"bash: ls src/part_{number}\n=> {number} files" for number in range(40))
    messages = chat(f"user: Clean up.\n{words}\nbash: make all\n=> built\nassistant: Fine on all systems.")
    wide, narrow = (summary(messages, COUNTER, limit=limit) for limit in (4_000, 400))
    assert "`ls src/part_7`: 7 files" in wide
    assert "`make all`: built" in wide
    assert "`make all`: built" in narrow
    assert narrow.count("`ls src") < 20


def test_source_code_that_is_only_read_holds_no_errors() -> None:
    code = "\n  ".join(["ValueError: this stands in the documentation"] * 30)
    check(f"read: a.md\n=> {code}", "errors", [])
    check(f"bash: cat a.md\n=> {code}", "errors", [])
    check(
        "read: b.py\n=> Error: b.py does not exist", "errors", ["Error: b.py does not exist (in `read b.py`)"]
    )


def test_an_earlier_summary_is_merged_not_nested() -> None:
    earlier = create_summary_message(summary(chat(SESSION), COUNTER, limit=2_000), NOON, 20)
    later = chat(
        """
user: Use port 8443 instead.
bash: uv lock --upgrade-package httpx
=> Resolved 41 packages
todo: {"todos": [{"content": "Document RETRY_LIMIT", "status": "completed"}]}
=> ok
edit: README.md
=> ok
"""
    )
    assert summary([earlier, *later], COUNTER, limit=2_000) == snapshot("""\
Extractive: sentences picked from the conversation; no model wrote this.

## Goal
- The client times out on slow networks. Fix it in src/net/client.py, but never change the public API.
  Please keep RETRY_LIMIT at 5. I have attached the log.

## Messages of the user
- No, do not sleep between attempts. Also bump httpx to 0.27.2 in pyproject.toml
- Use port 8443 instead.

## Open tasks
- We still need to update the lock file.

## Decisions and findings
- The problem is that the deadline is set once, before the loop.
- What follows is only an idea.
- I'll reset it for each attempt.
- The index is not reachable from here.

## Files
- `src/net/client.py`: changed
- `README.md`: changed

## Commands
- `uv run pytest tests/net -q`: 213 passed in 3.02s
- `ls src`: net
- `uv lock --upgrade-package httpx`: Resolved 41 packages

## Errors
- asyncio.exceptions.TimeoutError: deadline passed (resolved since)
- Error: old_string was not found in src/net/client.py (resolved since)
- error: no such package index: https://pypi.corp.example/simple (resolved since)

## Names and values
Symbols: fetch_all, self.deadline, HttpClient
Amounts and numbers: 212\
""")


BY_A_MODEL = """
It went well so far.

## Goal
Port the parser.

## Instructions from the user
- Never use regular expressions.
- Keep it short.

## Files
- `src/parse.py`: holds the new tokenizer
- `src/old.py`: read

## Facts
The user works in UTC+3.
Ids: HAT136, ZFA04Y

## Next step
Write the tests.
"""


def test_a_summary_by_a_model_is_merged_by_its_headings() -> None:
    later = chat("edit: src/parse.py\n=> ok\nedit: src/old.py\n=> ok\nuser: Go on with the lexer.")
    assert summary([create_summary_message(BY_A_MODEL, NOON, 9), *later], COUNTER, limit=1_000) == snapshot("""\
Extractive: sentences picked from the conversation; no model wrote this.

## Goal
- Port the parser.

## Instructions from the user
- Never use regular expressions.
- Keep it short.

## Messages of the user
- Go on with the lexer.

## Files
- `src/parse.py`: holds the new tokenizer
- `src/old.py`: changed

## State
- It went well so far.
- The user works in UTC+3.
- Write the tests.

## Names and values
Ids: HAT136, ZFA04Y\
""")  # noqa: E501


def test_pins_stand_in_it_word_for_word() -> None:
    made = summary(chat(SESSION), COUNTER, limit=400, pins=["The key is KX-77.", "RETRY_LIMIT at 5"])
    assert "```pinned\nThe key is KX-77.\n```" in made
    assert COUNTER.count(made) <= 400


def test_what_is_too_long_is_shortened_with_a_mark() -> None:
    made = summary(chat(f"user: {'word ' * 3000}end of it"), COUNTER, limit=400)
    assert "characters left out …]" in made
    assert "end of it" in made
    assert COUNTER.count(made) <= 400


def test_no_room_is_an_error() -> None:
    request = SummaryRequest((), tuple(chat(SESSION)), 10)
    with pytest.raises(CompactionError) as caught:
        extract(request, COUNTER)
    assert (str(caught.value), caught.value.code) == (
        "Nothing was compacted: 10 tokens are too few for a summary.",
        "no-summary",
    )
    assert summary(request.replaced, COUNTER, limit=10) == ""


HOSTILE = ["a", "a. ", "must ", "`", "- [ ] ", "1 passed ", "Error: x\n", "$ ", "<system-reminder>", "```\n", "\ud800", "не ", "## ", "\n", "exit code: 1 "]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_a_megabyte_is_read_in_bounded_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    call = ToolCall("1", "bash", {"command": text, "path": text, "todos": [{"content": text, "status": "x"}]})
    messages = [
        Message("user", text),
        Message("assistant", text, (call,)),
        Message("tool", text, tool_call_id="1"),
        create_summary_message(text, NOON, 1),
    ]
    began = time.process_time()
    made = summary(messages, Letters(), limit=500)
    assert time.process_time() - began < 4.0
    assert Letters().count(made) <= 500


@settings(deadline=None)
@given(histories(BROKEN), st.integers(1, 600), st.lists(st.text(max_size=20), max_size=2))
def test_it_keeps_to_its_limit_whatever_the_history(
    messages: list[Message], limit: int, pins: list[str]
) -> None:
    made = summary(messages, COUNTER, limit=limit, pins=pins)
    assert COUNTER.count(made) <= limit
    assert summary(messages, COUNTER, limit=limit, pins=pins) == made
    assert not made or all(pin in made for pin in pins if pin)
    folded = [create_summary_message(made, NOON, len(messages)), *messages]
    assert COUNTER.count(summary(folded, COUNTER, limit=limit)) <= limit


@given(st.text())
def test_sentences_are_kept_as_they_are(text: str) -> None:
    for sentence in sentences_of(text):
        assert sentence.removesuffix(" […]") in text
