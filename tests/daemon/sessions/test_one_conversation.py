"""Any steps of two windows and a Python program on one session: memory, ledger and a replay are the same."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message
from nexus_context.conversation.times import local_time
from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Turn
from nexus_context.turn.manager import ContextManager
from nexus_daemon.sessions import operations
from support.session_windows import check, long_talk, say_compacted, windows

WHO = st.integers(0, 1)


def replay(turns: Iterable[Turn]) -> list[Message]:
    """The messages that the turns of a thread leave, by what the ledger says of each step."""
    steps = [*turns]
    messages = [(turn, message) for turn in steps for message in turn.messages]
    force: list[Turn] = []
    for turn in steps:
        if turn.type == "compaction":
            force.append(turn)
        elif turn.type == "undo":
            while force.pop().compaction != turn.compaction:
                pass
    if not force:
        return [message for turn, message in messages if turn.type == "query"]
    last = force[-1]
    kept = [messages[at][1] for low, high in last.kept for at in range(low, high)]
    later = [message for turn, message in messages[last.first + 1 :] if turn.type == "query"]
    return [*last.messages, *kept, *later]


class OneConversation(RuleBasedStateMachine):
    """Each rule is a step of somebody; whoever takes it may know nothing of the steps before."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.windows = self._stack.enter_context(windows(2))
        root = self.windows[0].root
        self.ledger = open_ledger(environ={"NEXUS_STATE": str(root / "state")})
        self._stack.callback(self.ledger.close)
        self.folder = root / "a"
        self.program = ContextManager(ledger=self.ledger, folder=self.folder, model="gpt-4o")
        self._words = iter(range(1_000_000))

    def teardown(self) -> None:
        for window in self.windows:
            window.close()
        self._stack.close()

    # ------------------------------------------------------------ the daemon's steps

    @rule(who=WHO, count=st.integers(1, 3))
    def say(self, who: int, count: int) -> None:
        self.windows[who].say(*self._next(count))
        self._check_window(who)

    @rule(who=WHO)
    def talk(self, who: int) -> None:
        long_talk(self.windows[who], turns=4, words=60)

    @rule(who=WHO)
    def say_compacted(self, who: int) -> None:
        say_compacted(self.windows[who], *self._next(1))
        self._check_window(who)

    @rule(who=WHO)
    def compact(self, who: int) -> None:
        with suppress(CompactionError, RequestError):
            self.windows[who].compact()
            self._check_window(who)

    @rule(who=WHO)
    def undo(self, who: int) -> None:
        with suppress(LedgerError):
            operations.undo_compaction(self.windows[who].scope, None)
            self._check_window(who)

    @rule(who=WHO)
    def clear(self, who: int) -> None:
        operations.clear(self.windows[who].scope)
        self._check_window(who)

    @precondition(lambda self: self._replayed())  # the first request has an opening that the ledger lacks
    @rule(who=WHO)
    def assemble(self, who: int) -> None:
        self.windows[who].assemble()

    @rule(who=WHO)
    def restart(self, who: int) -> None:
        self.windows[who] = self.windows[who].restarted()

    # ------------------------------------------------------------ the program's

    @rule(count=st.integers(1, 3))
    def add(self, count: int) -> None:
        self.program.add(
            Message("assistant" if at % 2 else "user", words) for at, words in enumerate(self._next(count))
        )
        self._check_program()

    @rule()
    def compact_in_the_program(self) -> None:
        with suppress(RequestError):
            self.program.compact(made_at=local_time())
            self._check_program()

    @precondition(lambda self: self.program.compactions)
    @rule()
    def undo_in_the_program(self) -> None:
        with suppress(RequestError):
            self.program.undo_compaction()
            self._check_program()

    # ------------------------------------------------------------ what holds

    @invariant()
    def windows_hold_what_the_ledger_says(self) -> None:
        expected = [message.content for message in self._replayed()]
        for window in self.windows:
            check(window)
            assert window.held() == expected

    def _check_window(self, who: int) -> None:
        """A window that has written knows what all have written, before it looks at the ledger again."""
        conversation = self.windows[who].conversation
        if conversation.state.loaded is None:
            self._check_history(conversation.manager.history)

    def _check_program(self) -> None:
        """So does a program."""
        self._check_history(self.program.history)

    def _check_history(self, history: History) -> None:
        assert [one.content for one in history.messages] == [one.content for one in self._replayed()]

    def _replayed(self) -> list[Message]:
        workspace = self.windows[0].ledger.workspace
        exists = self.ledger.find(workspace, "main") is not None
        return replay(self.ledger.turns(workspace, "main")) if exists else []

    def _next(self, count: int) -> Iterator[str]:
        return (f"Words {next(self._words)}." for _ in range(count))


TestOneConversation = OneConversation.TestCase
TestOneConversation.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=[*HealthCheck]
)
