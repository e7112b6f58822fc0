"""What was sent once is sent again: prompt and tools stay as they were, and notes tell what changed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.budget import EARLIER_CHANGES
from nexus_context.conversation.frozen import Frozen, changes_between, frozen_of, frozen_text, parts_of
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger import open_ledger
from nexus_context.turn.assembly import assemble, measure
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.models import model_of
from nexus_context.turn.prefix import compare
from nexus_context.turn.request import AssembledContext, Options, Request
from support.fixture import write_fixture
from support.folders import load_folder
from support.views import check as check_view

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RULES = "# Rules\nUse tabs.\nTest first.\n" + "Keep it short and simple, every time.\n" * 40
LONG = "Behind the wall, where it has always been. " * 200
CONFIG = '{"provider": {"model": "claude-sonnet-4-5"}}'
SEPARATOR = "\n\n---\n\n"
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
OPEN = {"name": "open", "description": "Opens.", "parameters": {"type": "object"}}


class Talk:
    """A conversation in a folder whose files change."""

    def __init__(self, root: Path, config: str = CONFIG, **manager: Any) -> None:
        self.root, self.config, self.rules = root, config, RULES
        self.conversation = ContextManager(started=NOON, **manager)
        self.contexts: list[AssembledContext] = []
        self.now = NOON
        self.load()

    def load(self, rules: str | None = None, *, config: str | None = None, more: str = "") -> None:
        self.rules = self.rules if rules is None else rules
        self.config = config or self.config
        files = {"config.json": self.config, "NEXUS.md": self.rules}
        text = "".join(f"//- /home/a/.nexus3/{name}\n{content}\n" for name, content in files.items())
        self.snapshot: Snapshot = load_folder(write_fixture(text + more, self.root), "/home/a")

    def ask(self, text: str | None = "Where?", *, minutes: float = 1, **request: Any) -> AssembledContext:
        self.now += timedelta(minutes=minutes)
        message = None if text is None else Message("user", text)
        context = assemble(
            self.snapshot, self.conversation, Request(message=message, **request), now=self.now
        )
        check_view(context.view, model_of(self.snapshot, request.get("options", Options()).model)[1])
        assert sum(row.tokens for row in context.usage.rows) == context.usage.total
        self.contexts.append(context)
        return context

    def answer(self, *messages: Message) -> None:
        turn_message = self.contexts[-1].turn_message
        turn = [turn_message, *messages]
        self.conversation.add(turn if messages else [*turn, Message("assistant", LONG)])

    def turn(self, text: str = "Where?", **request: Any) -> AssembledContext:
        context = self.ask(text, **request)
        self.answer()
        return context


def beginning(context: AssembledContext) -> list[bytes]:
    """What a request begins with, as bytes."""
    last = [] if context.current_message is None else [context.current_message]
    messages = [*context.history, *last]
    return [
        msgspec.json.encode(context.tools),
        context.system_prompt.encode(),
        *map(msgspec.json.encode, messages),
    ]


def note(context: AssembledContext) -> str:
    """What the message of a request tells of changes."""
    message = context.turn_message
    return "" if message.preamble is None else message.preamble.changes


def check(talk: Talk, *, anew: Sequence[int] = ()) -> None:
    """Each request begins with the bytes of the one before, but those of these numbers."""
    for number, (before, now) in enumerate(zip(talk.contexts, talk.contexts[1:], strict=False), 1):
        same = beginning(now)[: len(beginning(before))] == beginning(before)
        assert same == (number not in anew), number
        counter = model_of(talk.snapshot, now.model)[1]
        assert (compare(before.prefix, now.prefix, counter).broke is None) == same


# ---------------------------------------------------------------- notes


def test_an_edit_is_told_by_the_next_message(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn()
    talk.load(RULES.replace("Use tabs.", "Use spaces."))
    context = talk.turn("And now?")
    path = f"{tmp_path}/home/a/.nexus3/NEXUS.md"
    assert note(context) == (
        "<changes>\n"
        "Instructions and tools have changed since they were sent at the beginning. What follows replaces "
        "what is said there.\n\n"
        f'These lines of "Project Configuration" ({path}) no longer apply:\nUse tabs.\n\n'
        f'These lines of "Project Configuration" ({path}) are new and apply from now on:\n'
        "# Rules\nUse spaces.\n"
        "</changes>"
    )
    talk.turn()
    talk.turn()
    check(talk)
    assert [bool(note(each)) for each in talk.contexts] == [False, True, False, False]
    rows = {row.label: row.tokens for row in talk.contexts[-1].usage.rows}
    assert rows[EARLIER_CHANGES] == pytest.approx(
        next(row.tokens for row in context.usage.rows if row.label == "changed instructions and tools"), abs=2
    )
    written = [content_of(one) for one in talk.conversation.history.messages if one.role == "user"][1:]
    assert written == ["Where?", "And now?", "Where?", "Where?"]


def test_what_is_taken_back_is_told_too(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn()
    talk.load(RULES + "Ask before you push.\n")
    talk.turn()
    talk.load(RULES)
    context = talk.turn()
    assert "no longer apply:\nAsk before you push." in note(context)
    assert note(talk.turn()) == ""
    check(talk)
    assert talk.contexts[-1].pending is None


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("A\nB\nC", "A\nC", "These lines of P no longer apply:\nB"),
        ("A\nB\nC\n" * 9, "A\nB\nC\n" * 9 + "D", "These lines of P are new and apply from now on:\nD"),
        (
            "A\nB\nA\nC",
            "A\nB\nC",
            "P has changed. It now reads as follows; nothing else of its earlier text applies:\nA\nB\nC",
        ),  # A remains elsewhere
        (
            "A\nB",
            "B\nA",
            "P has changed. It now reads as follows; nothing else of its earlier text applies:\nB\nA",
        ),
        (
            "one\ntwo\nthree",
            "1",
            "P has changed. It now reads as follows; nothing else of its earlier text applies:\n1",
        ),
    ],
)
def test_a_note_says_lines_or_the_whole_text(tmp_path: Path, before: str, after: str, text: str) -> None:
    talk = Talk(tmp_path)
    sent = []
    for rules in (before, after):
        talk.load(rules)
        sent.append(talk.ask().proposal.frozen)
    old, new = (frozen.sent for frozen in sent if frozen is not None)
    changes = changes_between(old, new, separator=SEPARATOR)
    path = f"{tmp_path}/home/a/.nexus3/NEXUS.md"
    name, head = f'"Project Configuration" ({path})', f"## Project Configuration\nSource: {path}\n\n"
    assert [change.text.replace(name, "P").replace(head, "") for change in changes] == [text]


def test_a_skill_that_is_switched_on_and_off(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    skill = "---\nname: forge\ndescription: How to forge\n---\nHeat it.\n"
    talk.load(more=f"//- /home/a/.nexus3/skills/forge/SKILL.md\n{skill}")
    talk.turn()
    on = note(talk.turn(options=Options(skills=["forge"])))
    assert "\n## Skill: forge\n" in on
    assert on.endswith("Heat it.\n</changes>")
    assert note(talk.turn(options=Options(skills=["forge"]))) == ""
    off = note(talk.turn())
    assert "It now reads as follows; nothing else of its earlier text applies:\n- forge: How to forge" in off
    assert "Heat it." not in off
    check(talk)


def test_a_tool_that_goes_is_told_and_still_sent(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    both, one = Options(additional_tools=[LOOK, OPEN]), Options(additional_tools=[LOOK])
    talk.turn(options=both)
    gone = talk.turn(options=one)
    assert "The tool open is gone. Do not call it." in note(gone)
    assert [tool["name"] for tool in gone.tools] == ["look", "open"]
    assert "The tool open can be called again." in note(talk.turn(options=both))
    check(talk)


def test_bodies_tell_it_as_a_system_message_where_there_are_such(tmp_path: Path) -> None:
    talk = Talk(tmp_path, '{"provider": {"name": "openai", "model": "gpt-5.1"}}')
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    now = talk.ask("And now?", format="openai")
    talk.answer()
    later = talk.ask("Why?", format="openai")
    assert now.request is not None
    assert later.request is not None
    roles = [message["role"] for message in now.request["messages"]]
    assert roles == ["system", "user", "assistant", "system", "user"]
    assert "Ask first." in str(now.request["messages"][3])
    assert later.request["messages"][:5] == now.request["messages"]
    assert "Ask first." not in str(now.request["messages"][4])


# ---------------------------------------------------------------- decisions


def test_nothing_is_frozen_before_the_conversation_continues(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask()
    talk.load(RULES + "Ask first.\n")
    assert "Ask first." in talk.turn().system_prompt
    check(talk, anew=[1])


DECISIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "an edit": ({}, False),
    "another model": ({"options": Options(model="claude-opus-4-5")}, True),
    "a tool of the request": ({"options": Options(additional_tools=[LOOK, OPEN])}, True),
    "a disabled tool": ({"options": Options(additional_tools=[LOOK], disabled_tools=["look"])}, True),
    "a sandbox": ({"options": Options(additional_tools=[LOOK], sandbox=True)}, True),
    "a tool that went": ({"options": Options()}, False),
    "the cache is cold": ({"minutes": 6}, True),
    "the cache is warm": ({"minutes": 4}, False),
    "the clock went back": ({"minutes": -60}, False),
    "an event": ({"text": None, "event": {"alarm": "fire"}}, False),
}


@pytest.mark.parametrize("case", DECISIONS)
def test_what_renders_the_prompt_anew(tmp_path: Path, case: str) -> None:
    talk = Talk(tmp_path)
    options = Options(additional_tools=[LOOK])
    talk.turn(options=options)
    talk.load(RULES + "Ask first.\n")
    request, anew = DECISIONS[case]
    context = talk.ask(**{"options": options, **request})
    assert ("Ask first." in context.system_prompt) == anew
    assert ("Ask first." in note(context)) != anew
    assert (context.pending is None) == anew


def test_a_turn_with_reasoning_stays_although_the_cache_is_cold(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask()
    talk.answer(Message("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "x"}]))
    talk.load(RULES + "Ask first.\n")
    context = talk.ask(minutes=60)
    assert "Ask first." in note(context)
    assert context.pending is not None
    assert context.pending.loses_reasoning


def test_a_short_history_is_written_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.load("Short.")
    talk.ask()
    talk.answer(Message("assistant", "There."))
    talk.load("Short.\n\n" + "".join(f"Rule {number}: keep it simple.\n" for number in range(60)))
    assert note(talk.ask()) == ""
    check(talk, anew=[1])


def test_a_message_that_was_added_before_its_request_has_no_note(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    talk.conversation.add([Message("user", "Why?")])
    assert "Ask first." in talk.ask(None).system_prompt


def test_a_change_during_a_turn_is_told_with_the_next(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn()
    talk.ask()
    talk.answer(
        Message("assistant", None, (ToolCall("c", "look", {}),)), Message("tool", "a wall", tool_call_id="c")
    )
    talk.load(RULES + "Ask first.\n")
    within = talk.ask(None)
    assert within.pending is not None
    assert [change.told for change in within.pending.changes] == [False]
    talk.conversation.add([Message("assistant", "There.")])
    assert "Ask first." in note(talk.ask())
    check(talk)


def test_a_note_that_was_not_appended_is_told_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    talk.ask()
    talk.conversation.add([Message("user", "Where?"), Message("assistant", LONG)])  # without its preamble
    assert "Ask first." in note(talk.ask())


def test_plain_replay_renders_each_request_anew(tmp_path: Path) -> None:
    talk = Talk(tmp_path, '{"context": {"replay": "plain"}}')
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    context = talk.turn()
    assert "Ask first." in context.system_prompt
    assert note(context) == ""
    assert talk.conversation.frozen is None


def test_what_replaces_the_history_drops_state_and_notes(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    for number in range(8):
        talk.load(RULES + f"Rule {number}.\n")
        talk.turn()
    talk.conversation.compact(made_at=talk.now)
    context = talk.ask()
    assert "Rule 7." in context.system_prompt
    assert "<changes>" not in str(context.history)
    talk.conversation.undo_compaction()
    talk.load(RULES + "Rule 9.\n")
    context = talk.turn()
    assert "Rule 9." in context.system_prompt
    assert "<changes>" not in str(context.history)  # they would contradict the newer prompt
    talk.load(RULES)
    assert "Rule 9." in note(talk.turn())


def test_pending_says_what_it_costs_to_apply(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    measured = measure(talk.snapshot, talk.conversation, now=talk.now)
    assert measured.pending is not None
    (change,) = measured.pending.changes
    path = f"{tmp_path}/home/a/.nexus3/NEXUS.md"
    assert (change.kind, change.label, change.path, change.told) == (
        "changed",
        "Project Configuration",
        path,
        False,
    )
    first = talk.contexts[0]
    before = [row.tokens for row in first.usage.rows if row.path != path]
    assert 2_000 < measured.pending.tokens < measured.usage.total
    assert measured.pending.tokens + before[0] <= measured.usage.total
    assert measured.pending.cost == pytest.approx(measured.pending.tokens * (3.75 - 0.3) / 1e6, abs=1e-6)
    assert talk.ask().pending == msgspec.structs.replace(measured.pending)
    talk.answer()
    later = measure(talk.snapshot, talk.conversation, now=talk.now).pending
    assert later is not None
    assert [one.told for one in later.changes] == [True]
    talk.conversation.freeze(None)  # apply it now
    assert "Ask first." in talk.ask().system_prompt


@pytest.mark.parametrize(("lifetime", "write"), [("5m", 3.75), ("1h", 6.0)])
def test_the_price_of_applying_now_is_that_of_the_lifetime(
    tmp_path: Path, lifetime: str, write: float
) -> None:
    talk = Talk(tmp_path, CONFIG[:-1] + f', "context": {{"cache_ttl": "{lifetime}"}}}}')
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    pending = talk.ask().pending
    assert pending is not None
    assert pending.cost == round(pending.tokens * (write - 0.3) / 1e6, 6)


def test_a_state_survives_a_restart(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    stored: dict[str, Any] = {"ledger": ledger, "folder": "/home/a"}
    talk = Talk(tmp_path, **stored)
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    talk.turn()
    talk.conversation = ContextManager(**stored)
    assert note(talk.turn()) == ""
    talk.load(RULES)
    talk.conversation = ContextManager(**stored)
    assert "no longer apply:\nAsk first." in note(talk.turn())
    for before, now in pairwise(talk.contexts):
        assert beginning(now)[: len(beginning(before))] == beginning(before)
    ledger.fork("/home/a", "main", to="other")
    fork = ContextManager(**stored, session="other")
    assert fork.frozen == talk.conversation.frozen
    talk.conversation.compact(made_at=talk.now)
    assert ContextManager(**stored).frozen is None
    assert ContextManager(**stored, session="other").frozen == fork.frozen
    ledger.close()


def test_a_state_is_json(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.turn(options=Options(additional_tools=[LOOK]))
    talk.load(RULES + "Ask first.\n")
    talk.turn()
    frozen = talk.conversation.frozen
    assert isinstance(frozen, Frozen)
    assert frozen.told is not None
    assert frozen_text(frozen_of(frozen_text(frozen))) == frozen_text(frozen)
    assert frozen_of('{"number": 1}') is None
    assert frozen_of(None) is None


# ---------------------------------------------------------------- any order of events


NUMBERS = count()
TURNS = ["turn", "turn", "turn", "loop", "cold"]
STEPS = [*TURNS, "rules", "rules", "tool", "look", "compact", "undo", "restart", "apply"]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=30))
def test_the_model_always_has_the_present_files(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    """Bytes are only added, unless the prompt is rendered anew; prompt and notes together are the files."""
    window = '"context": {"max_tokens": 9000, "reserve_tokens": 500}'
    talk = Talk(tmp_path, CONFIG[:-1] + f", {window}}}")
    ledger = open_ledger(str(tmp_path / f"{next(NUMBERS)}.db"))
    stored: dict[str, Any] = {"ledger": ledger, "folder": "/home/a"}
    talk.conversation = ContextManager(**stored)
    tools: list[Any] = []
    broken = True  # what replaced the history was not sent yet
    for step, size in steps:
        options = Options(additional_tools=tools)
        if step == "rules":
            talk.load("".join(f"Rule {number}: keep it simple.\n" for number in range(size, size + 30)))
        elif step == "tool":
            tools = [LOOK, OPEN][: size % 3]
        elif step in ("compact", "undo", "restart", "apply"):
            replace_history(talk, step, stored)
            broken = True
        elif step == "look":
            measure(talk.snapshot, talk.conversation, request=Request(options=options), now=talk.now)
        else:
            before = talk.contexts[-1] if talk.contexts else None
            text = f"Question {size}: {'why? ' * 100 * size}"
            now = talk.ask(text, minutes=9 if step == "cold" else 0.1, options=options)
            state = now.proposal.frozen
            assert state is not None
            check_state(talk, state, now, options)
            if before is not None and not broken and talk.conversation.frozen is not None:
                anew = state.sent is not talk.conversation.frozen.sent
                same = beginning(now)[: len(beginning(before))] == beginning(before)
                assert same or anew or now.view.moved
            broken = False
            call = (Message("assistant", None, (ToolCall(f"c{size}", "look", {}),)),)
            result = (Message("tool", "a wall " * size, tool_call_id=f"c{size}"),)
            talk.answer(*((*call, *result) if step == "loop" else (Message("assistant", "There."),)))
    ledger.close()


def replace_history(talk: Talk, step: str, stored: dict[str, Any]) -> None:
    try:
        if step == "compact":
            talk.conversation.compact(made_at=talk.now)
        elif step == "undo":
            talk.conversation.undo_compaction()
        elif step == "restart":
            talk.conversation = ContextManager(**stored)
        else:
            talk.conversation.freeze(None)
    except Exception as error:  # noqa: BLE001 - nothing to compact or to undo
        assert type(error).__name__ in ("CompactionError", "RequestError", "LedgerError")


def check_state(talk: Talk, state: Frozen, context: AssembledContext, options: Options) -> None:
    """What is sent is the state; the notes that are sent are exactly those since it was frozen."""
    assert context.system_prompt == state.sent.prompt.text
    assert context.tools == list(state.sent.tools)
    fresh = assemble(talk.snapshot, ContextManager(), Request(options=options), now=talk.now)
    present = parts_of(fresh.prompt, SEPARATOR)
    assert parts_of(state.latest.prompt, SEPARATOR) == present
    assert list(state.latest.tools) == fresh.tools
    sent_notes = [text for text in map(str, map(content_of, context.history)) if "<changes>" in text]
    ours = [
        message
        for message in talk.conversation.history.messages
        if message.preamble is not None
        and message.preamble.changes
        and message.preamble.frozen == state.number
    ]
    assert len(sent_notes) == len(ours)
    assert bool(ours or note(context)) or state.told is None


def test_text_that_leaves_earlier_turns_renders_the_prompt_anew(tmp_path: Path) -> None:
    """All messages would still be sent, but not as they were: the cache is lost from the first of them on."""
    talk = Talk(tmp_path, CONFIG[:-1] + ', "context": {"max_tokens": 9000, "reserve_tokens": 500}}')
    event = {"log": "The gate is open. " * 60}
    talk.turn(event=event)
    talk.load(RULES + "Ask first.\n")
    while not talk.contexts[-1].view.replaced:
        talk.ask(event=event)
        talk.answer(Message("assistant", "There."))
    last = talk.contexts[-1]
    assert last.view.removed == 0
    assert "Ask first." in last.system_prompt
    assert "Ask first." not in talk.contexts[-2].system_prompt


def test_a_cut_renders_the_prompt_anew_and_drops_the_notes(tmp_path: Path) -> None:
    talk = Talk(tmp_path, CONFIG[:-1] + ', "context": {"max_tokens": 12000, "reserve_tokens": 500}}')
    talk.turn()
    talk.load(RULES + "Ask first.\n")
    anew = []
    for number in range(1, 9):
        context = talk.ask()
        state = context.proposal.frozen
        assert state is not None
        check_state(talk, state, context, Options())
        talk.answer()
        if "Ask first." in context.system_prompt and "Ask first." not in talk.contexts[-2].system_prompt:
            anew.append(number)
            assert context.view.moved
    assert len(anew) == 1
    moved = [number for number, context in enumerate(talk.contexts) if context.view.moved]
    assert moved[0] == anew[0]
    check(talk, anew=moved)
