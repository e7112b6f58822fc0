"""Exports: a whole session as JSON lines and back, and as Markdown without loss."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.assistants.importing import importers, jsonl
from nexus_context.assistants.importing.importers import Importer
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import as_summary
from nexus_context.errors import Problem
from nexus_context.ledger import markdown
from nexus_context.ledger.records import Counted, NewCompaction, NewTurn, ServerCompaction, Turn
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import SimpleTokenCounter
from support.ledgers import turn_of

HERE, THERE = "/work/here", "/work/there"
SUMMARY = as_summary(Message("user", "[CONTEXT SUMMARY] so far"))


def counter_of(model: str | None) -> SimpleTokenCounter:
    return SimpleTokenCounter()


def exported(ledger: Ledger, workspace: str, session: str) -> str:
    parameters = parameters_of(ledger, workspace, session)
    return "".join(jsonl.lines(session, ledger.turns(workspace, session), parameters))


def parameters_of(ledger: Ledger, workspace: str, session: str) -> Mapping[str, Any]:
    stored = ledger.find(workspace, session)
    assert stored is not None
    return stored.parameters


def imported(ledger: Ledger, workspace: str, text: str) -> tuple[Problem, ...]:
    contents = importers.read(text.encode(), "/x/export.jsonl")
    importer = Importer(ledger, workspace, counter_of)
    for found in contents.sessions:
        importer.add(found)
    return contents.problems


def filled(ledger: Ledger, name: str = "main") -> None:
    """A session with whatever a session can have."""
    call = ToolCall("c1", "read", {"path": "a.py", "deep": [1, 2.5, None, "é"]})
    ledger.append(HERE, name, turn(Message("user", "one"), Message("assistant", None, (call,))))
    ledger.append(HERE, name, turn(Message("tool", "result", tool_call_id="c1", name="read"), model="gpt-4o"))
    compact(ledger, name, "first", ((0, 1),))
    ledger.append(HERE, name, turn(Message("user", [{"type": "text", "text": "two"}], meta={"k": 1})))
    compact(ledger, name, "second", ((1, 3),))
    ledger.undo(HERE, name)
    ledger.append(
        HERE, name, turn(Message("user", "three", timestamp=1.5, tokens=7), context={"time": "now"})
    )


def turn(*messages: Message, **about: Any) -> NewTurn:
    return turn_of(*messages, tokens=3, **about)


def compact(ledger: Ledger, session: str, name: str, kept: tuple[tuple[int, int], ...]) -> None:
    head = ledger.head(HERE, session)
    assert head is not None
    receipt = {"id": name, "replacedMessages": 2}
    ledger.compact(
        HERE,
        session,
        NewCompaction(
            id=name, seq=head.seq, summary=Counted(SUMMARY, 9), counter="test", kept=kept, receipt=receipt
        ),
    )


PARAMETERS = {"temperature": 0.2, "thinking": {"level": "high"}}


@pytest.mark.parametrize("parameters", [{}, PARAMETERS])
def test_parameters_go_with_the_session(ledger: Ledger, parameters: dict[str, Any]) -> None:
    ledger.create(HERE, "main", parameters=parameters)
    filled(ledger)
    text = exported(ledger, HERE, "main")
    assert ("parameters" in text.partition("\n")[0]) == bool(parameters)
    assert imported(ledger, THERE, text) == ()
    assert parameters_of(ledger, THERE, "main") == parameters
    assert exported(ledger, THERE, "main") == text
    other = {"temperature": 1}
    ledger.create("/work/other", "main", parameters=other)
    imported(ledger, "/work/other", text)
    assert parameters_of(ledger, "/work/other", "main") == other
    assert parameters_of(ledger, "/work/other", "main (2)") == parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"temperature": 9, "top_p": 0.5},
            "The parameter temperature of the session 'main' is left out: ",
        ),
        ({"temprature": 0.5, "top_p": 0.5}, "The parameter temprature of the session 'main' is left out: "),
        ([1], "The header of the session cannot be read: Expected `object`, got `array` - at `$.parameters`"),
    ],
)
def test_parameters_that_cannot_be_are_reported(ledger: Ledger, parameters: Any, message: str) -> None:
    filled(ledger)
    header, _, rest = exported(ledger, HERE, "main").partition("\n")
    changed = json.dumps({**json.loads(header), "parameters": parameters})
    (problem,) = imported(ledger, THERE, f"{changed}\n{rest}")
    assert problem.message.startswith(message)
    if isinstance(parameters, dict):
        assert parameters_of(ledger, THERE, "main") == {"top_p": 0.5}
        assert len(list(ledger.turns(THERE, "main"))) == len(list(ledger.turns(HERE, "main")))
    else:
        assert ledger.find(THERE, "main") is None


def test_a_compaction_by_a_server_is_exported_and_imported_the_same(ledger: Ledger) -> None:
    filled(ledger)
    summary = Message("assistant", [{"type": "compaction", "id": "c", "encrypted_content": "ZW5j" * 1_000}])
    compaction = ServerCompaction("server", Counted(summary, 9), 1)
    answered = turn(Message("user", "Where?"), Message("assistant", "Here."), compaction=compaction)
    ledger.append(HERE, "main", answered)
    text = exported(ledger, HERE, "main")
    assert imported(ledger, THERE, text) == ()
    assert exported(ledger, THERE, "main") == text
    assert ledger.pages.receipt(THERE, "main") == ledger.pages.receipt(HERE, "main")
    before, after = ledger.history(HERE, "main"), ledger.history(THERE, "main")
    assert before is not None and after is not None
    assert (after.messages, after.compaction) == (before.messages, "server")
    assert [one.message for one in after.messages] == [summary, Message("assistant", "Here.")]
    ledger.undo(THERE, "main")
    assert ledger.upkeep.verify().sound
    restored = ledger.history(THERE, "main")
    assert restored is not None
    assert [one.message.content for one in restored.messages][-2:] == ["Where?", "Here."]


def test_what_is_exported_and_imported_is_exported_the_same(ledger: Ledger) -> None:
    filled(ledger)
    text = exported(ledger, HERE, "main")
    assert imported(ledger, THERE, text) == ()
    assert exported(ledger, THERE, "main") == text
    before, after = ledger.history(HERE, "main"), ledger.history(THERE, "main")
    assert before is not None and after is not None
    assert (after.messages, after.compaction) == (before.messages, before.compaction) != ((), None)
    ledger.undo(THERE, "main")  # what can be taken back still can


def test_a_line_holds_all_that_is_known_of_a_turn(ledger: Ledger) -> None:
    filled(ledger)
    lines = [json.loads(line) for line in exported(ledger, HERE, "main").splitlines()]
    assert lines[0] == {"format": "nexus-session", "version": 1, "session": "main"}
    assert [line["type"] for line in lines[1:]] == [
        "query", "query", "compaction", "query", "compaction", "undo", "query",
    ]  # fmt: skip
    del lines[3]["created"]
    assert lines[3] == {
        "seq": 3,
        "type": "compaction",
        "messages": [
            {"role": "user", "content": "[CONTEXT SUMMARY] so far", "meta": {"isCompactSummary": True}}
        ],
        "compaction": "first",
        "receipt": {"id": "first", "replacedMessages": 2},
        "kept": [[0, 1]],
        "counter": "test",
        "counts": [9],
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.text() | st.none() | st.lists(JSON, max_size=3),
    st.lists(st.builds(ToolCall, st.text(), st.text(), JSON), max_size=2).map(tuple),
    meta=JSON,
)


class Step(msgspec.Struct, frozen=True):
    """One thing that happens to a session."""

    kind: str
    messages: list[Message]
    about: Any
    kept: float


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["query", "query", "compaction", "undo"]),
        st.lists(MESSAGES, min_size=1, max_size=3),
        JSON,
        st.floats(0, 1),
    ),
    max_size=8,
)


@given(STEPS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_any_session_comes_back(ledger: Ledger, steps: list[Step]) -> None:
    name = f"session {len(ledger.sessions(HERE))}"
    head = ledger.create(HERE, name).head
    in_force: list[str] = []
    for number, step in enumerate(steps):
        if step.kind == "query":
            ledger.append(HERE, name, turn(*step.messages, event=step.about, context=step.about, model="m"))
        elif step.kind == "compaction" and head.messages:
            in_force.append(f"c{number}")
            compact(ledger, name, in_force[-1], ((0, max(1, int(step.kept * head.messages))),))
        elif step.kind == "undo" and in_force:
            at = int(step.kept * (len(in_force) - 1))
            ledger.undo(HERE, name, in_force[at])
            del in_force[at:]
        head = ledger.head(HERE, name) or head
    text = exported(ledger, HERE, name)
    workspace = f"{THERE}/{name}"
    assert imported(ledger, workspace, text) == ()
    assert exported(ledger, workspace, name) == text


def test_several_sessions_in_one_file(ledger: Ledger) -> None:
    filled(ledger, "a")
    filled(ledger, "b")
    ledger.append(HERE, "b", turn(Message("user", "more")))
    text = exported(ledger, HERE, "a") + exported(ledger, HERE, "b")
    assert imported(ledger, THERE, text) == ()
    assert {one.name for one in ledger.sessions(THERE)} == {"a", "b"}


@pytest.mark.parametrize("broken", ["{broken", '{"seq": 1}'])
def test_of_a_broken_export_the_rest_is_imported(ledger: Ledger, broken: str) -> None:
    filled(ledger)
    lines = exported(ledger, HERE, "main").splitlines()
    lines[1] = broken
    (session,), problems, _ = jsonl.read(jsonl.split("\n".join(lines)), "/x/export.jsonl")
    # what keeps positions, and what takes that back, cannot be right any more
    assert [one.type for one in session.turns] == ["query"] * 3
    starts = ["The line is no", *["A compaction follows"] * 2, "An undo follows"]
    assert all(one.message.startswith(start) for one, start in zip(problems, starts, strict=True))
    assert problems[0].span == (len(lines[0]) + 1, len(lines[0]) + 1 + len(broken))
    assert imported(ledger, THERE, "\n".join(lines)) == tuple(problems)
    assert [one.type for one in ledger.turns(THERE, "main")] == ["query"] * 3


def test_an_undo_of_nothing_is_left_out() -> None:
    header = '{"format": "nexus-session", "version": 1, "session": "a"}\n'
    query = '{"seq": 1, "type": "query", "created": ""}\n'
    undo = '{"seq": 2, "type": "undo", "created": "", "compaction": "c"}'
    (session,), (problem,), _ = jsonl.read(jsonl.split(header + query + undo), "/x/export.jsonl")
    assert [one.type for one in session.turns] == ["query"]
    assert problem.message == "An undo takes back 'c', which is not in force; it is left out."


def test_undos_take_back_the_newest_of_a_name_and_what_came_after_it() -> None:
    names = ("c", "c", "d")
    compactions = [line_of("compaction", name) for name in names]
    undos = [line_of("undo", name) for name in ("c", "c", "c")]
    lines = [HEADER_LINE, *compactions, *undos]
    (session,), problems, places = jsonl.read(jsonl.split("\n".join(lines)), "/x/export.jsonl")
    assert [turn.compaction for turn in session.turns] == ["c", "c", "d", "c", "c"]
    assert places == [7]  # `d` went with the second `c`
    assert problems[0].message == snapshot("An undo takes back 'c', which is not in force; it is left out.")


def test_forty_thousand_compactions_are_read_in_linear_time() -> None:
    count = 40_000
    lines = [HEADER_LINE, *(line_of("compaction", f"c{at}") for at in range(count))]
    lines += [line_of("undo", f"c{at}") for at in reversed(range(count))]
    began = time.thread_time()
    (session,), problems, _ = jsonl.read(jsonl.split("\n".join(lines)), "/x/export.jsonl")
    assert (len(session.turns), problems) == (2 * count, [])
    assert time.thread_time() - began < 15  # half a second; it was half a minute


HEADER_LINE = json.dumps({"format": "nexus-session", "version": 1, "session": "s"})


def line_of(kind: str, name: str) -> str:
    said = [{"role": "user", "content": name}] if kind == "compaction" else []
    return json.dumps({"seq": 1, "type": kind, "created": "", "messages": said, "compaction": name})


def test_a_newer_export_is_refused(ledger: Ledger) -> None:
    (problem,) = imported(ledger, THERE, '{"format": "nexus-session", "version": 2, "session": "a"}\n{}')
    assert problem.message == snapshot(
        "The session 'a' was exported by a newer version of Nexus (format 2, but only 1 is "
        "supported); install that version to import it."
    )
    assert ledger.sessions(THERE) == []


# ---------------------------------------------------------------- Markdown


def page(*messages: Message, **about: Any) -> str:
    one = Turn(id="t", seq=1, type="query", created="2026-01-02", tokens=0, messages=messages, **about)
    return "".join(markdown.pieces("main", [one]))


def test_a_page() -> None:
    call = ToolCall("c1", "read", {"path": "a.py"})
    assert page(
        Message("user", "Read it."),
        Message("assistant", "Yes:", (call,)),
        Message("tool", "```py\nx\n```", tool_call_id="c1", name="read"),
        model="gpt-4o",
    ) == snapshot("""\
# main

## Turn 1

2026-01-02 · gpt-4o

### User

Read it.

### Assistant

Yes:

**Tool call** `read` `c1`

```json
{
  "path": "a.py"
}
```

### Tool result `read` of `c1`

````
```py
x
```
````
""")


def test_compactions_are_marked(ledger: Ledger) -> None:
    filled(ledger)
    text = "".join(markdown.pieces("main", ledger.turns(HERE, "main")))
    assert re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text) == snapshot("""\
# main

## Turn 1

<time>

### User

one

### Assistant

**Tool call** `read` `c1`

```json
{
  "path": "a.py",
  "deep": [
    1,
    2.5,
    null,
    "é"
  ]
}
```

## Turn 2

<time> · gpt-4o

### Tool result `read` of `c1`

```
result
```

## Turn 3: compaction

<time>

From here on the summary stands for what came before (compaction `first`); kept beside it: messages 0, counted from 0.

Receipt:

```json
{
  "id": "first",
  "replacedMessages": 2
}
```

### User

[CONTEXT SUMMARY] so far

## Turn 4

<time>

### User

two

Meta:

```json
{
  "k": 1
}
```

## Turn 5: compaction

<time>

From here on the summary stands for what came before (compaction `second`); kept beside it: messages 1 to 2, counted from 0.

Receipt:

```json
{
  "id": "second",
  "replacedMessages": 2
}
```

### User

[CONTEXT SUMMARY] so far

## Turn 6: compaction taken back

<time>

The compaction `second` and all later ones are not in force any more.

## Turn 7

<time>

Context, `time`:

```
now
```

### User

three
""")  # noqa: E501


@given(st.lists(st.text(alphabet="#`~-=<>ab \n\r"), max_size=4))
def test_text_is_all_there_and_makes_no_headings(texts: list[str]) -> None:
    made = page(*(Message("user", text) for text in texts))
    for text in texts:
        assert text in made or "> " + re.sub(r"\r\n?|\n", r"\g<0>> ", text) in made
    headings = [line for line in re.split(r"[\r\n]+", made) if line.startswith("#")]
    assert headings == ["# main", "## Turn 1", *["### User"] * len(texts)]


@given(st.text(alphabet="`a\n", max_size=30))
def test_a_fence_is_longer_than_any_in_it(text: str) -> None:
    first, *inner, last = markdown.fenced(text).rstrip("\n").split("\n")
    assert first == last and "\n".join(inner) == text
    assert first not in text


@pytest.mark.parametrize("rest", ['{"seq": 1, "type": "query", "cre', "[]\n{}\n"])
def test_a_broken_export_without_a_whole_turn_is_no_session(rest: str) -> None:
    header = '{"format": "nexus-session", "version": 1, "session": "a"}\n'
    sessions, problems, _ = jsonl.read(jsonl.split(header + rest), "/x/export.jsonl")
    assert sessions == []
    assert problems[-1].message == "The session 'a' has no turn that can be read; it is left out."
