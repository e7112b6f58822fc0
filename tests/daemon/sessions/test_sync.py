"""A conversation in memory is what the ledger holds, whoever wrote it, however much of it was read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.agent_result import AgentResult
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.times import local_time
from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger, turn_writer
from nexus_context.ledger.errors import LedgerError
from nexus_daemon import protocol
from nexus_daemon.sessions import compaction, operations, sync, turns, usage
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger, LedgerWriter
from nexus_daemon.sessions.sync import TurnInput
from nexus_daemon.sessions.turn_memory import TurnInputs
from support.session_windows import BLOCK, Window, check, long_talk, run, say_compacted, windows


def test_what_is_said_is_there_after_a_restart() -> None:
    with windows(1) as (window,):
        assert window.held() == []
        window.say("a", "b")
        window.say("c")
        assert window.held()[1:] == ["a", "b", "c"]
        check(window)
        assert window.restarted().held()[1:] == ["a", "b", "c"]


def test_windows_read_what_the_others_wrote() -> None:
    with windows(2) as (one, two):
        for number in range(4):
            (one if number % 2 else two).say(f"{number}")
        assert one.held()[1:] == two.held()[1:] == ["0", "1", "2", "3"]
        assert one.held()[0].startswith("[Session started: ")
        check(one)
        check(two)


def test_a_key_is_answered_with_its_turn_and_nothing_is_written() -> None:
    with windows(2) as (one, two):
        first = one.say("a", key="k")
        assert one.say("a", key="k") == two.say("a", key="k") == first
        assert one.say("a", key="l") != first
        assert two.held()[1:] == ["a", "a"]
        two.scope.ledger.clear("main")
        assert one.say("a", key="k") != first  # it went with what was cleared
        assert one.held()[1:] == ["a"]


def test_who_comes_too_late_gets_a_fork() -> None:
    with windows(2) as (one, two):
        seen = one.say("a").turn
        assert one.say("b", parent=seen).forked is False
        late = two.say("c", parent=seen, key="k")
        assert (late.session, late.forked) == ("main (2)", True)
        assert two.say("c", parent=seen, key="k") == late
        assert two.held()[1:] == ["a", "b"]
        two.conversation = Conversation("main (2)")
        assert two.held()[1:] == ["a", "c"]
        with pytest.raises(LedgerError, match="has no turn 'never'"):
            one.say("d", parent="never")
        assert one.held()[1:] == ["a", "b"]


def test_a_compaction_of_nexus_makes_no_fork() -> None:
    with windows(1) as (window,):
        long_talk(window)
        seen = window.say("What was that?", "This.").turn
        window.compact()
        assert window.say("On.", parent=seen).forked is False
        window.scope.ledger.undo("main", None)
        assert window.say("On.", parent=window.conversation.last_turn).forked is False


def test_a_compaction_is_in_force_everywhere_and_can_be_taken_back() -> None:
    with windows(2) as (one, two):
        long_talk(one)
        before = two.held()
        receipt = one.compact()
        after = one.held()
        assert after[0].startswith("[CONTEXT SUMMARY]")
        assert len(after) < len(before)
        check(one)
        assert two.held() == after
        check(two)
        two.say("On.")
        assert one.held() == [*after, "On."]
        assert operations.undo_compaction(one.scope, receipt.id).total == usage.read_usage(two.scope).total
        assert one.held() == two.held() == [*before, "On."]
        assert [window.conversation.state.undone for window in (one, two)] == [True, True]
        check(two)
        with pytest.raises(LedgerError, match="no compaction"):
            operations.undo_compaction(two.scope, None)
        two.compact()
        assert one.held() == two.held()
        assert [window.conversation.state.undone for window in (one, two)] == [False, False]
        check(one)


def test_a_compaction_by_a_server_is_in_force_everywhere_and_can_be_taken_back() -> None:
    with windows(2) as (one, two):
        long_talk(one)
        before = two.held()
        one.told.clear()
        turn = say_compacted(one, "Here.", key="k").turn
        kept = [[BLOCK], [{"type": "text", "text": "Here."}]]
        last = one.conversation.last_turn
        assert [(change.reason, change.turn) for change in one.told] == [
            ("appended", turn),
            ("compacted", last),
        ]
        assert one.held() == two.held() == kept
        check(one)
        check(two)
        assert say_compacted(one, "Here.", key="k").turn == say_compacted(two, "Here.", key="k").turn == turn
        assert two.say("On.", parent=turn).forked is False
        assert one.held() == two.held() == [*kept, "On."]
        late = say_compacted(one, "Late.", parent=turn)
        assert late.forked
        for window, name in ((one, late.session), (two, "copy")):
            if name == "copy":  # a compaction belongs to the turn that it came with
                two.ledger.fork("main", "copy", turn)
            window.conversation = Conversation(name)
        assert one.held() == [[BLOCK], [{"type": "text", "text": "Late."}]]
        assert two.held() == kept
        operations.undo_compaction(one.scope, None)
        assert one.held() == [*kept, "Where?", [{"type": "text", "text": "Late."}]]
        operations.undo_compaction(two.scope, None)
        assert two.held() == [*before, "Where?", kept[1]]


def test_a_compaction_by_a_server_that_cannot_be_written_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with windows(1) as (window,):
        window.say("a", "b")
        before, told = window.held(), list(window.told)

        def full(*_: object) -> Any:
            raise LedgerError("There is no room left.", code="ledger-full")

        with monkeypatch.context() as patch:
            patch.setattr(turn_writer, "compact", full)  # the turn itself is written by then
            with pytest.raises(LedgerError, match="no room"):
                say_compacted(window, "Lost.", key="k")
        assert (window.held(), window.told) == (before, told)
        check(window)
        say_compacted(window, "Here.", key="k")
        assert window.held() == [[BLOCK], [{"type": "text", "text": "Here."}]]


def test_a_compaction_that_a_server_was_faster_than_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with windows(2) as (one, two):
        long_talk(one)
        compact = FolderLedger.compact

        def slow(*arguments: Any) -> Any:
            say_compacted(two, "Here.")
            return compact(*arguments)

        monkeypatch.setattr(FolderLedger, "compact", slow)
        with pytest.raises(LedgerError) as refused:
            one.compact()
        assert refused.value.code == "head-moved"
        assert one.held() == two.held() == [[BLOCK], [{"type": "text", "text": "Here."}]]
        check(one)


def test_a_compaction_that_was_due_is_written_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "LEAST_READ", 0)
    with windows(2) as (one, two):
        long_talk(one, 60, words=60)
        assembled = two.assemble()  # until then this window has read only the end
        assert two.conversation.state.compaction == assembled.metadata["compaction"]["id"]
        assert assembled.parent_turn == two.conversation.last_turn
        check(two)
        assert one.held() == two.held()
        assert one.say("Go on.", parent=assembled.parent_turn).forked is False


def test_a_compaction_is_not_held_up_by_a_window_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with windows(2) as (one, two):
        long_talk(one)
        compact = FolderLedger.compact
        late = ["And this?", "Or that?"]

        def slow(*arguments: Any) -> Any:
            for text in late:
                two.say(text)
            return compact(*arguments)

        monkeypatch.setattr(FolderLedger, "compact", slow)
        before = one.held()
        receipt = one.compact()
        held = one.held()
        assert held[-2:] == late
        assert held[0].startswith("[CONTEXT SUMMARY]")
        assert held[1:-2] == before[receipt.replaced_messages :]  # nothing but what it summarized is gone
        assert held == two.held()
        check(one)
        operations.undo_compaction(two.scope, receipt.id)
        assert one.held() == [*before, *late]
        check(one)


def test_a_compaction_that_is_due_is_not_held_up_either(monkeypatch: pytest.MonkeyPatch) -> None:
    with windows(2) as (one, two):
        long_talk(one, 60, words=60)
        compact = FolderLedger.compact

        def slow(*arguments: Any) -> Any:
            two.say("And this?")
            return compact(*arguments)

        monkeypatch.setattr(FolderLedger, "compact", slow)
        assembled = one.assemble()
        assert assembled.metadata["compaction"]["id"] == one.conversation.state.compaction
        assert one.held()[-1] == "And this?"
        assert one.held() == two.held()
        check(one)


@pytest.mark.parametrize("late", [[], ["And this?"]])
def test_a_compaction_goes_on_where_more_of_its_conversation_was_loaded(
    late: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its summary is written, another request may need all messages."""
    monkeypatch.setattr(sync, "LEAST_READ", 0)
    monkeypatch.setattr(sync, "READ_TOKENS", 0)
    with windows(2) as (one, two):
        long_talk(one, 60, words=60)
        draft = compaction.plan(two.scope, protocol.CompactParams("file:///a"))
        plan = draft.task.plan
        assert plan.missing
        two.scope.follow_all()
        assert not two.conversation.manager.history.gap.messages
        for text in late:
            two.say(text)
        receipt = compaction.apply(two.scope, draft, None)
        assert receipt.id == two.conversation.state.compaction
        assert two.held()[0].startswith("[CONTEXT SUMMARY]")
        kept = len(plan.preserved) + len(late)
        assert len(two.held()) == 1 + kept
        assert one.held() == two.held()
        check(two)
        operations.undo_compaction(one.scope, receipt.id)
        one.scope.follow_all()
        assert len(one.conversation.positions) == receipt.replaced_messages + kept


@pytest.mark.parametrize("step", ["compact", "undo", "clear"])
def test_a_compaction_of_another_conversation_is_refused(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with windows(2) as (one, two):
        long_talk(one)
        two.compact()
        long_talk(one)
        compact = FolderLedger.compact

        def slow(*arguments: Any) -> Any:
            monkeypatch.setattr(FolderLedger, "compact", compact)
            act(two, step, 0)
            two.say("On.")
            return compact(*arguments)

        monkeypatch.setattr(FolderLedger, "compact", slow)
        with pytest.raises(LedgerError) as refused:
            one.compact()
        assert refused.value.code == "head-moved"
        assert one.held() == two.held()
        check(one)


def test_windows_that_find_a_compaction_due_at_once_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with windows(2) as (one, two):
        long_talk(one, 60, words=60)
        compact = FolderLedger.compact
        others = [two]

        def slow(*arguments: Any) -> Any:
            if others:
                others.pop().assemble()
            return compact(*arguments)

        monkeypatch.setattr(FolderLedger, "compact", slow)
        assert one.assemble().metadata["compaction"] == {"reached": True}
        assert one.conversation.state.compaction == two.conversation.state.compaction is not None
        assert one.held() == two.held()
        ledger = one.ledger.store
        types = [turn.type for turn in ledger.turns(one.ledger.workspace, "main")]
        assert types.count("compaction") == 1


def test_what_cannot_be_written_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with windows(1) as (window,):
        long_talk(window, words=40)
        before, told = window.held(), list(window.told)

        def full(*_: object) -> Any:
            raise LedgerError("There is no room left.", code="ledger-full")

        with monkeypatch.context() as patch:
            for method in ("append", "compact", "clear"):
                patch.setattr(window.ledger.store, method, full)
            with pytest.raises(LedgerError, match="no room"):
                window.say("lost", key="k")
            with pytest.raises(LedgerError, match="no room"):
                window.compact()
            with pytest.raises(LedgerError, match="no room"):
                operations.clear(window.scope)
            assert window.held() == before
            report = window.assemble().metadata["compaction"]
            assert report == {"reached": False, "problem": "There is no room left."}
        assert window.told == told
        check(window)
        window.say("kept", key="k")
        assert window.held()[-1] == "kept"


def test_a_turn_has_what_it_was_made_of() -> None:
    with windows(1) as (window,):
        window.say("a")
        assembled = window.assemble()
        window.say("Go on.", "Yes.", event={"id": "e1"})
        window.say("b", model="other")
        third, second, first = reversed(list(window.ledger.store.turns(window.ledger.workspace, "main")))
        assert (first.context, first.model) == (None, None)
        assert (second.context, second.model) == (assembled.metadata["contextJson"], "gpt-4o")
        assert (second.event, second.permissions) == ({"id": "e1"}, assembled.permissions)
        assert (first.parent, second.parent, third.parent) == (None, first.id, second.id)
        assert (third.context, third.model) == (None, "other")
        assert assembled.parent_turn == first.id


def test_of_a_long_history_only_what_can_be_sent_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "LEAST_READ", 0)
    with windows(2) as (one, two):
        long_talk(one, 60, words=60)
        spent = usage.read_usage(two.scope)
        gap = two.conversation.manager.history.gap
        assert gap.messages > 50
        assert len(two.conversation.manager) == len(one.conversation.manager) == 121
        assert spent.total <= spent.available
        appended = operations.append(two.scope, TurnInput(AgentResult([Message("user", "more")])))[1]
        assert appended is not None
        assert appended.count == 122
        assert page_of(two, 3) == page_of(one, 3)
        assert two.conversation.manager.history.gap == gap
        assert two.assemble(strategy="middle_out").usage.total <= spent.available
        assert two.conversation.manager.history.gap == (0, 0, 0)
        check(two)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(
            ["say", "say", "say", "long", "server", "compact", "undo", "clear", "delete", "usage", "all"]
        ),
    ),
    max_size=25,
)


@pytest.mark.parametrize("answers", [1, 6, 12, 30])
@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_what_is_sent_of_a_part_is_what_would_be_sent_of_all(
    role: str, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "LEAST_READ", 0)
    with windows(3) as (writer, part, whole):
        long_talk(writer, 60, words=60)
        writer.say("Do all of this.")
        for number in range(answers):  # one long turn, of which little may be read at first
            call = ToolCall(f"c{number}", "run", {})
            if role == "tool":
                result = Message("tool", "word " * 300, tool_call_id=call.id)
                operations.append(
                    writer.scope, TurnInput(AgentResult([Message("assistant", None, (call,)), result]))
                )
            else:
                step = Message("assistant", f"Step {number}. " + "word " * 60)
                operations.append(writer.scope, TurnInput(AgentResult([step])))
        whole.scope.follow_all()
        sent = [window.assemble(strategy="oldest_first") for window in (part, whole)]
        assert (
            part.conversation.manager.history.gap.messages
            > 0
            == whole.conversation.manager.history.gap.messages
        )
        part_sent, whole_sent = (msgspec.json.encode(one.history) for one in sent)
        assert part_sent == whole_sent
        assert sent[0].usage == sent[1].usage


def test_windows_that_begin_a_session_at_once_open_it_once() -> None:
    with windows(2) as (one, two):
        for window in (one, two, one):
            window.conversation = Conversation("main")  # has looked before the others wrote
            turn_input = TurnInput(AgentResult([Message("user", "x")]))
            sync.append(window.conversation, window.ledger, window.snapshot, turn_input, now=local_time())
            check(window)
        assert one.held() == two.held()
        assert [str(one).startswith("[Session started") for one in one.held()] == [True, False, False, False]


def page_of(window: Window, limit: int, before: int | None = None) -> Any:
    return operations.read_page(window.scope, limit, before)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_pages_together_are_the_whole(limit: int, compacted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "LEAST_READ", 0)
    with windows(1) as (window,):
        long_talk(window, 30)
        if compacted:
            window.compact()
            window.say("On.", "Yes.")
        wanted = window.held()
        fresh = window.restarted()
        try:
            pages: list[Any] = []
            before: int | None = None
            for _ in range(len(wanted)):
                shown, before = page_of(fresh, limit, before)
                assert len(shown) <= limit
                pages = [*shown, *pages]
                if before is None:
                    break
            fresh.held()
            assert pages == list(fresh.conversation.manager.history.encoded())
            assert page_of(fresh, limit, fresh.conversation.positions[0]) == ([], None)
        finally:
            fresh.close()


@given(STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_is_what_the_ledger_holds(steps: list[tuple[int, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch, windows(2) as opened:
        patch.setattr(sync, "LEAST_READ", 0)
        for number, (which, step) in enumerate(steps):
            window = opened[which]
            try:
                act(window, step, number)
            except RequestError as error:
                assert error.code in (
                    "nothing-to-compact",
                    "no-gain",
                    "unknown-compaction",
                    "unknown-session",
                )
        for window in opened:
            check(window)
            window.ledger_writer.write(window.ledger_writer.look)
        assert opened[0].ledger_writer.heads == opened[1].ledger_writer.heads


def act(window: Window, step: str, number: int) -> None:
    if step == "say":
        window.say(f"Question {number}?", f"Answer {number}.")
    elif step == "long":
        long_talk(window, 3, words=50)
    elif step == "server":
        say_compacted(window, f"Answer {number}.")
    elif step == "compact":
        window.compact()
    elif step == "undo":
        operations.undo_compaction(window.scope, None)
    elif step == "clear":
        operations.clear(window.scope)
    elif step == "delete":
        window.ledger.delete("main")
        window.conversation.forget()
    elif step == "usage":
        usage.read_usage(window.scope)
    else:
        operations.read_messages(window.scope)


def test_a_ledger_on_a_server_is_not_possible_yet(tmp_path: Path) -> None:
    writer = LedgerWriter({"NEXUS_STATE": str(tmp_path)}, print)
    with pytest.raises(LedgerError, match=r"ledger\.url"):
        writer.write(lambda: writer.open("/a", path=None, url="postgresql://x"))
    assert list(tmp_path.iterdir()) == []
    own = writer.write(lambda: writer.open("/a", path=str(tmp_path / "deep" / "own.db"), url=None))
    assert own.store.location == str(tmp_path / "deep" / "own.db")
    ended = writer.close()
    assert ended is not None
    ended.result()
    with pytest.raises(LedgerError, match="is ending"):
        own.create("x", None, {})


def test_the_open_ledger_is_the_one_that_a_library_opens(tmp_path: Path) -> None:
    with windows(1, tmp_path) as (window,):
        window.say("a")
        other = open_ledger(environ={"NEXUS_STATE": str(tmp_path / "state")})
        assert [one.name for one in other.sessions(window.ledger.workspace)] == ["main"]
        other.close()


# ---------------------------------------------------------------- which request a turn answers

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def ask_model(window: Window, text: str | None, **more: Any) -> protocol.AssembledContext:
    options = protocol.AssembleOptions(**{"model": "claude-opus-5-5"} | more)
    params = protocol.AssembleParams("file:///a", message=text, format="anthropic", options=options)
    return run(turns.assemble_with(window.scope, params, TurnInputs()))


def answer_with_thought(window: Window, *before: Message, request: str | None) -> None:
    answer = Message("assistant", [THOUGHT, {"type": "text", "text": "There."}])
    operations.append(window.scope, TurnInput(AgentResult([*before, answer]), answered=request))


def thoughts(context: protocol.AssembledContext) -> int:
    return str((context.request or {})["messages"]).count("'type': 'thinking'")


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("named", [True, False])
def test_another_request_before_the_answer_loses_nothing(count: int, named: bool) -> None:
    with windows(1) as [window]:
        first = ask_model(window, "Where is the gate?")
        for number in range(count):
            ask_model(window, f"A title of {number} words?", model="claude-haiku-5-5")
        question = Message("user", "Where is the gate?")
        answer_with_thought(window, question, request=first.request_id if named else None)
        stored = list(window.ledger.store.turns(window.ledger.workspace, "main"))[-1]
        assert (stored.model, stored.messages[-2].preamble is not None) == ("claude-opus-5-5", True)
        again = ask_model(window, "And now?")
        assert (thoughts(again), again.metadata.get("repairs", [])) == (1, [])


def test_an_answer_to_a_forgotten_request_is_sent_without_its_reasoning() -> None:
    with windows(1) as [window]:
        first = ask_model(window, "Where is the gate?")
        for number in range(8):
            ask_model(window, f"A title of {number} words?")
        answer_with_thought(window, Message("user", "Where is the gate?"), request=first.request_id)
        again = ask_model(window, "And now?")
        assert (thoughts(again), [each.kind for each in again.metadata["repairs"]]) == (
            0,
            ["thinking-left-out"],
        )
