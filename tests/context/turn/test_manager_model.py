"""Any steps of a conversation: in memory alone, with a ledger, and as somebody reads it who comes later."""

from collections.abc import Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nexus_context.conversation.message import Message
from nexus_context.conversation.summary import is_summary
from nexus_context.conversation.times import is_opening
from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger
from nexus_context.turn.manager import ContextManager
from support.histories import Letters, conversation

FOLDER = "/work/castle"
TURNS = ("u{0}", "u{0} a{0}", "u{0} c{0} r{0} a{0}", "u{0} c{0}", "r{0}", "a{0}")


def own_messages(manager: ContextManager) -> list[Message]:
    """Its messages without the one that tells when it began."""
    return [one for one in manager.messages if not is_opening(one)]


def words(manager: ContextManager) -> list[tuple[str, object]]:
    """The roles and contents of its messages: only one with a ledger tells times."""
    return [(one.role, one.content) for one in own_messages(manager)]


class AnySteps(RuleBasedStateMachine):
    """`alone` and `stored` take the same steps; `other` has the same session of the ledger."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = TemporaryDirectory()
        self.ledger = open_ledger(f"{self._directory.name}/ledger.db")
        self.alone = ContextManager(counter=Letters())
        self.stored = self._opened()
        self.other = self._opened()
        self.is_alone = True  # whether `alone` took all steps of the session
        self.is_current = True  # whether `stored` took the last one
        self._numbers = iter(range(1_000_000))

    def teardown(self) -> None:
        self.ledger.close()
        self._directory.cleanup()

    def _opened(self) -> ContextManager:
        return ContextManager(counter=Letters(), ledger=self.ledger, folder=FOLDER)

    def _both(self) -> Iterator[ContextManager]:
        yield self.alone
        yield self.stored

    @rule(turn=st.sampled_from(TURNS))
    def add(self, turn: str) -> None:
        text = turn.format(next(self._numbers))
        for manager in self._both():
            manager.add(conversation(text))
        self.is_current = True

    @rule(turn=st.sampled_from(TURNS))
    def add_elsewhere(self, turn: str) -> None:
        self.other.add(conversation(turn.format(next(self._numbers))))
        self.is_alone = self.is_current = False

    @precondition(lambda self: bool(words(self.stored) and words(self.alone)))
    @rule(kept=st.integers(0, 3), prompt=st.sampled_from([None, "", "p1", "p2"]))
    def compact(self, kept: int, prompt: str | None) -> None:
        name = f"Summary {next(self._numbers)}"
        for manager in self._both():
            with suppress(RequestError):  # another program compacted
                own = [one for one in own_messages(manager) if not is_summary(one)]
                preserved = own[max(len(own) - kept, 0) :]
                manager.apply_compaction(Message("user", name), preserved, prompt)

    @precondition(lambda self: self.stored.compactions)
    @rule(at=st.integers(-3, -1))
    def undo(self, at: int) -> None:
        for manager in self._both():
            with suppress(RequestError):
                ids = manager.compactions
                if ids:
                    manager.undo_compaction(ids[max(at, -len(ids))])

    @rule()
    def clear(self) -> None:
        for manager in self._both():
            manager.clear_messages()
            manager.set_system_prompt("p0")
        self.is_alone = self.is_current = True

    @rule()
    def come_later(self) -> None:
        self.stored = self._opened()
        self.stored.set_system_prompt(self.alone.system_prompt)
        self.is_current = True
        self.is_alone = self.is_alone and not self.alone.compactions  # their prompts are forgotten

    @rule()
    def look(self) -> None:
        """What a request is sent changes nothing."""
        for manager in self._both():
            before = manager.revision
            manager.build_messages()
            assert manager.revision == before

    @invariant()
    def memory_is_what_the_ledger_has(self) -> None:
        if self.is_current:
            assert own_messages(self.stored) == own_messages(self._opened())
        if self.is_alone:
            assert words(self.stored) == words(self.alone)
            assert self.stored.system_prompt == self.alone.system_prompt
            assert len(self.stored.compactions) == len(self.alone.compactions)


TestAnySteps = AnySteps.TestCase
TestAnySteps.settings = settings(max_examples=60, stateful_step_count=14, deadline=None)
