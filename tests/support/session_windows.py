"""Windows of one session: daemons without threads over a ledger that all of them write."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, TypeVar

from msgspec.structs import replace

from nexus_context.conversation.agent_result import AgentResult
from nexus_context.conversation.message import Message
from nexus_context.conversation.times import local_time
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.models import model_of
from nexus_daemon import protocol
from nexus_daemon.lsp.client_capabilities import ClientCapabilities
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import compaction, operations, turns
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger, LedgerWriter
from nexus_daemon.sessions.scope import SessionScope
from nexus_daemon.sessions.session_changes import Change
from nexus_daemon.sessions.sync import TurnInput
from nexus_daemon.sessions.turn_memory import TurnInputs
from support.fixture import write_fixture
from support.folders import load_folder

T = TypeVar("T")

SETTINGS = """
//- /a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "context": {"max_tokens": 1200, "reserve_tokens": 200}}
"""


class Inline:
    """Workers without threads."""

    async def run(self, job: Callable[..., T], /, *args: Any) -> T:
        return job(*args)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, also from within another one."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value
    raise AssertionError("it waits")


class Window:
    """One daemon with one session: its own memory over a ledger that others write, too."""

    def __init__(self, root: Path, snapshot: Snapshot) -> None:
        self.told: list[Change] = []
        self.root = root
        self.snapshot = snapshot
        self.ledger_writer = LedgerWriter({"NEXUS_STATE": str(root / "state")}, self.told.append)
        self.ledger: FolderLedger = self.ledger_writer.write(
            lambda: self.ledger_writer.open(str(root / "a"), path=None, url=None)
        )
        self.conversation = Conversation("main")

    @property
    def scope(self) -> SessionScope:
        client: Any = SimpleNamespace(
            capabilities=ClientCapabilities(), daemon=SimpleNamespace(workers=Inline()), now=local_time
        )
        folder: Any = SimpleNamespace(
            uri="file:///a", number=1, reload=SimpleNamespace(request=lambda _: None)
        )
        return SessionScope(
            client=client,
            folder=folder,
            conversation=self.conversation,
            snapshot=self.snapshot,
            ledger=self.ledger,
            locate=Locator(self.snapshot.layers, "utf-8"),
        )

    def say(self, *contents: str, **more: Any) -> Any:
        messages = [
            Message("assistant" if number % 2 else "user", text) for number, text in enumerate(contents)
        ]
        return operations.append(self.scope, TurnInput(AgentResult(messages), **more))[0]

    def compact(self) -> Any:
        return run(compaction.compact(self.scope, protocol.CompactParams("file:///a")))[0]

    def assemble(self, *, strategy: str | None = None) -> protocol.AssembledContext:
        options = protocol.AssembleOptions(truncation_strategy=strategy)
        params = protocol.AssembleParams("file:///a", message="Go on.", options=options)
        return run(turns.assemble_with(self.scope, params, TurnInputs()))

    def held(self) -> list[Any]:
        self.scope.follow_to_compact()
        return [message.content for message in self.conversation.manager.history.messages]

    def restarted(self) -> "Window":
        self.close()
        return Window(self.root, self.snapshot)

    def close(self) -> None:
        ended = self.ledger_writer.close()
        if ended is not None:
            ended.result()


@contextmanager
def windows(count: int, root: Path | None = None) -> Iterator[list[Window]]:
    """So many windows on one ledger and one session."""
    with TemporaryDirectory() as made:
        path = root or Path(made)
        snapshot = load_folder(write_fixture(SETTINGS, path), "/a")
        opened = [Window(path, snapshot) for _ in range(count)]
        try:
            yield opened
        finally:
            for window in opened:
                window.close()


def check(window: Window) -> None:
    """What the window holds is what one that knows nothing reads."""
    held = window.held()
    fresh = Window(window.root, window.snapshot)
    try:
        assert fresh.held() == held
        mine, theirs = window.conversation, fresh.conversation
        assert mine.positions == theirs.positions
        assert replace(mine.state, loaded=None) == replace(theirs.state, loaded=None)
        assert len(mine.positions) == len(mine.manager) == len(held)
        counter = model_of(window.snapshot, None)[1]
        assert mine.manager.history.tokens(counter) == theirs.manager.history.tokens(counter)
    finally:
        fresh.close()


def long_talk(window: Window, turns: int = 12, *, words: int = 20) -> None:
    for number in range(turns):
        window.say(f"Question {number}? " + "word " * words, f"Answer {number}. " + "word " * words)


BLOCK = {"type": "compaction", "content": "They greeted.", "signature": "c2ln"}


def say_compacted(window: Window, text: str, **more: Any) -> Any:
    """A turn whose answer came with a compaction by the provider's server."""
    answer = Message("assistant", [BLOCK, {"type": "text", "text": text}])
    turn_input = TurnInput(AgentResult([Message("user", "Where?"), answer]), **more)
    return operations.append(window.scope, turn_input)[0]
