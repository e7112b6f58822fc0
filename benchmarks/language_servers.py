"""Nexus beside the JSON language servers of VS Code, a bare pipe and an echo.

All servers get the same files, an empty home and, where they need it, Nexus's own schema. Diagnostics count
only if they are correct: one error, on the expected line and column. The peers' waiting time counts, because
people wait for it, too. The client decodes nothing before its clock has stopped.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from benchmarks.documents import Document, Error, config, edit, error_column
from benchmarks.lsp_client import Client, ServerError, request
from benchmarks.processes import proportional_mb, resident_mb
from benchmarks.promises import ROOT, Measured, Promise, Run, promises, take_turns
from benchmarks.servers import (
    COLD,
    CONFIG,
    NEW_PEER,
    NEXUS,
    OLD_PEER,
    SHARED,
    Echo,
    Lane,
    changed,
    config_uri,
    opened,
    pulled,
    started,
)

OWN, SHARED_WINDOW, COLD_WINDOW = Lane(NEXUS), Lane(SHARED), Lane(COLD)
OLD, NEW = Lane(OLD_PEER), Lane(NEW_PEER)
NEW_PULL = Lane(NEW_PEER, "pull")
SMALL_LINES = 60
ERRORS: tuple[Error, ...] = ("schema", "syntax")
LIMITS = {(60, "schema"): 0.8, (60, "syntax"): 0.8, (5_000, "schema"): 1.2, (5_000, "syntax"): 2.5}
"""A text with an error is read anew after each edit: of 5,000 lines in 20 to 30 ms."""
CASES = [(f"{lines:,} lines, {error} error", lines, error) for lines in (60, 5_000) for error in ERRORS]
SETTLE_S = 1.0  # before resident memory is read
HISTORY_MESSAGES = 40  # of the session that is assembled
WIRE_MESSAGES = 200
WIRE_MESSAGE_CHARS = 10_000  # 200 of them: 2 MB
BARE_PIPE, ASYNCIO_PIPE = "bare pipe", "bare pipe, asyncio"
EXAMPLE = ROOT / "examples/company/backend/auth-service"


# ---------------------------------------------------------------- start-up


@promises(
    Promise("reply to initialize", 0.75, OLD_PEER),
    Promise("first diagnostics", 0.65, OLD_PEER),
    Promise("reply to initialize, a daemon runs", 0.3, OLD_PEER),
    Promise("reply to initialize, its daemon starts", 1.2, OLD_PEER),
)
def startup(run: Run) -> Iterator[Measured]:
    """Spawn → initialize reply, and spawn → the right diagnostics of a small file with one schema error."""
    document = config(SMALL_LINES, "schema")
    path = run.folder("startup", {CONFIG: document.text})
    # the daemon that the cold lane leaves is the warm one of the next
    lanes = (COLD_WINDOW, SHARED_WINDOW, OWN, OLD, NEW, NEW_PULL)
    steps = {lane.name: partial(_start, run, lane, path, document) for lane in lanes}
    turns = take_turns(steps, run.pick(full=20, quick=4), warm=2)
    for what, lane, measure in (
        ("reply to initialize", OWN, "initialize"),
        ("first diagnostics", OWN, "diagnostics"),
        ("reply to initialize, a daemon runs", SHARED_WINDOW, "initialize"),
        ("reply to initialize, its daemon starts", COLD_WINDOW, "initialize"),
    ):
        yield what, turns[lane.name, measure], turns[OLD.name, measure]
    run.note_turns("Start, ms", turns)


def _start(run: Run, lane: Lane, path: Path, document: Document) -> dict[str, float]:
    with started(lane, run, path) as (client, initialize_s):
        first = _open(client, lane, config_uri(path), document)
        return {"initialize": initialize_s * 1e3, "diagnostics": (first.at - client.started) * 1e3}


# ---------------------------------------------------------------- edit → diagnostics


@promises(
    *(Promise(f"edit of {name}", LIMITS[lines, error], NEW_PULL.name, "p95") for name, lines, error in CASES),
    *(Promise(f"edit of {name}, shared daemon", 2.0, "a daemon of its own") for name, _, _ in CASES),
)
def edits(run: Run) -> Iterator[Measured]:
    """One typed character → the right diagnostics of that text; two file lengths, two kinds of error."""
    lanes = (OWN, SHARED_WINDOW, OLD, NEW, NEW_PULL)
    for name, lines, error in CASES:
        document = config(lines, error)
        path = run.folder(f"edit-{lines}-{error}", {CONFIG: document.text})
        with ExitStack() as stack:
            typists = [Typist(stack, run, lane, path, document) for lane in lanes]
            steps: dict[str, Callable[[], float]] = {typist.lane.name: typist.type for typist in typists}
            # peers wait 300 and 500 ms before each push
            slow = take_turns(steps, run.pick(full=8, quick=2))
            quick = {lane: step for lane, step in steps.items() if lane not in (OLD.name, NEW.name)}
            turns = take_turns(quick, run.pick(full=200, quick=25), warm=5)
        yield f"edit of {name}", turns[OWN.name], turns[NEW_PULL.name]
        yield f"edit of {name}, shared daemon", turns[SHARED_WINDOW.name], turns[OWN.name]
        run.note_turns(f"Edit of {name}, ms", turns)
        run.note_turns(f"Edit of {name}, with their waits, ms", slow)


class Typist:
    """Types one character in a document, takes it out again, and so on; each time the error must move."""

    def __init__(
        self, stack: ExitStack, run: Run, lane: Lane, path: Path, document: Document, *, file: str = CONFIG
    ) -> None:
        self.lane = lane
        self._start = partial(_enter, stack, lane, run, path)
        self._uri = (path / file).as_uri()
        self._document = document
        self._client: Client | None = None
        self._column = 0
        self._version = 1
        self._typed = 0

    def type(self) -> float:
        """One edit; the milliseconds from its first byte to the last byte of the right diagnostics."""
        if self._client is None:  # learns at which column of its line this server reports the error
            self._client = self._start()
            self._column = _open(self._client, self.lane, self._uri, self._document).column
        self._version += 1
        data = changed(self._uri, self._version, edit(self._document, insert=not self._typed))
        self._typed = 1 - self._typed
        diagnosis = _diagnose(self._client, self.lane, self._uri, data, self._judge)
        return (diagnosis.at - diagnosis.sent) * 1e3

    def _judge(self, items: list[Any]) -> int | None:
        column = error_column(items, self._document, typed=self._typed)
        return column if column == self._column else None


def _enter(stack: ExitStack, lane: Lane, run: Run, path: Path) -> Client:
    client, _ = stack.enter_context(started(lane, run, path))
    return client


class Diagnosis(NamedTuple):
    """Right diagnostics: perf_counter of the first byte sent, of their last byte, and the error's column."""

    sent: float
    at: float
    column: int


def _open(client: Client, lane: Lane, uri: str, document: Document) -> Diagnosis:
    judge: Callable[[list[Any]], int | None] = partial(error_column, document=document, typed=0)
    return _diagnose(client, lane, uri, opened(uri, document.text), judge)


def _diagnose(
    client: Client, lane: Lane, uri: str, data: bytes, judge: Callable[[list[Any]], int | None]
) -> Diagnosis:
    """Sends `data` (and the pull, in a pull lane); waits for diagnostics in which `judge` finds the error."""
    if lane.way == "pull":
        number = client.next_id()
        reply = client.exchange(data + pulled(uri, number), number)
        column = judge(reply.result["items"])
        if column is None:
            raise ServerError(f"wrong diagnostics: {reply.result['items']}")
        return Diagnosis(reply.sent, reply.at, column)
    sent = client.send(data)
    at, items = client.published(uri, lambda items: judge(items) is not None)
    column = judge(items)
    assert column is not None
    return Diagnosis(sent, at, column)


# ---------------------------------------------------------------- memory


@promises(
    Promise("resident memory with a vocabulary", 2.0, OLD_PEER, unit="MB"),
)
def memory(run: Run) -> Iterator[Measured]:
    """Resident memory with one folder and one open file; of nexus after it has loaded its vocabulary.

    It loads that soon after a window has opened, so that what it announces is what it answers.
    """
    document = config(SMALL_LINES, "schema")
    path = run.folder("memory", {CONFIG: document.text})
    steps = {lane.name: partial(_weigh, run, lane, path, document) for lane in (OWN, OLD, NEW)}
    turns = take_turns(steps, run.pick(full=5, quick=2), warm=0)
    yield "resident memory with a vocabulary", turns[OWN.name, "vocabulary"], turns[OLD.name, "resident"]
    run.note_turns("Memory, MB", turns)


def _weigh(run: Run, lane: Lane, path: Path, document: Document) -> dict[str, float]:
    with started(lane, run, path) as (client, _):
        _open(client, lane, config_uri(path), document)
        time.sleep(SETTLE_S)
        process = client.process.pid
        megabytes = {"resident": resident_mb(process), "proportional": proportional_mb(process)}
        if lane == OWN:
            client.request("nexus/tokens/count", {"texts": ["How many tokens is this?"]})
            time.sleep(SETTLE_S)
            megabytes["vocabulary"] = resident_mb(process)
        return megabytes


# ---------------------------------------------------------------- assemble


@promises(Promise("assemble", 2.2, "an echo of the same reply on pygls"))
def assemble(run: Run) -> Iterator[Measured]:
    """nexus/context/assemble of the example with a session of HISTORY_MESSAGES messages."""
    params = {"workspaceFolder": EXAMPLE.as_uri(), "session": "bench"}
    roles = ("user", "assistant")
    history = [
        {"role": roles[n % 2], "content": f"Message {n}: {_prose(600)}"} for n in range(HISTORY_MESSAGES)
    ]
    with ExitStack() as stack:
        client, _ = stack.enter_context(started(OWN, run, EXAMPLE))
        echo = Echo(stack, run)
        client.request("nexus/session/append", params | {"messages": history})
        bodies: list[bytes] = []

        def ask() -> float:
            message = f"Question {len(bodies)}: what is next?"
            reply = client.request("nexus/context/assemble", params | {"message": message})
            assert reply.result["systemPrompt"], "assembled without a system prompt"
            assert reply.result["history"], "assembled without history"
            bodies[:] = [bytes(reply.body)]
            return reply.seconds * 1e3

        steps = {"nexus": ask, "echo": lambda: echo.milliseconds(bodies[-1])}
        turns = take_turns(steps, run.pick(full=300, quick=40), warm=5)
    yield "assemble", turns["nexus"], turns["echo"]
    run.note_turns("Assemble, ms", turns)


# ---------------------------------------------------------------- long messages


@promises(
    Promise("2 MB reply", 2.0, BARE_PIPE),
    Promise("2 MB reply, shared daemon", 3.0, BARE_PIPE),
    # to look at 2 MB of JSON once takes as long as a blocking pipe does: no server that reads can be near it
    Promise("2 MB request", 2.0, ASYNCIO_PIPE),
)
def wire(run: Run) -> Iterator[Measured]:
    """2 MB out of and into a server, beside the same bytes on a bare pipe.

    Out: nexus/session/messages. In: nexus/session/append with an idempotency key that was used before,
    which is answered from memory: the 2 MB are received and decoded, but not counted and not stored again.
    """
    path = run.folder("wire", {})
    exchanges = TwoMegabytes(path.as_uri())
    with ExitStack() as stack:
        steps: dict[str, Callable[[], dict[str, float]]] = {}
        for lane in (OWN, SHARED_WINDOW):
            client, _ = stack.enter_context(started(lane, run, path))
            exchanges.fill(client)
            steps[lane.name] = partial(_exchange, client, exchanges)
        reply = run.root / "reply.json"
        reply.write_bytes(exchanges.reply)
        for name, flags in ((BARE_PIPE, ()), ("bare pipe + JSON", ("json",)), (ASYNCIO_PIPE, ("asyncio",))):
            command = (sys.executable, "-m", "benchmarks.floor", str(reply), *flags)
            floor = Client(command, cwd=ROOT, env=run.environ)
            stack.callback(floor.kill)
            steps[name] = partial(_exchange_undecoded, floor, exchanges)
        turns = take_turns(steps, run.pick(full=60, quick=10), warm=3)
    yield "2 MB reply", turns[OWN.name, "reply"], turns[BARE_PIPE, "reply"]
    yield "2 MB reply, shared daemon", turns[SHARED_WINDOW.name, "reply"], turns[BARE_PIPE, "reply"]
    yield "2 MB request", turns[OWN.name, "request"], turns[ASYNCIO_PIPE, "request"]
    run.note_turns("2 MB, ms", turns)


class TwoMegabytes:
    """The two exchanges of the wire measure, and the bytes of the long reply."""

    def __init__(self, uri: str) -> None:
        self._session = {"workspaceFolder": uri, "session": "wire"}
        text = _prose(WIRE_MESSAGE_CHARS)
        self.messages = [
            {"role": ("user", "assistant")[n % 2], "content": f"{n}: {text}"} for n in range(WIRE_MESSAGES)
        ]
        self.reply = b""
        self.turn: str | None = None

    def fill(self, client: Client) -> None:
        """Stores the messages once, and keeps the server's long reply for the bare pipe."""
        number = client.next_id()
        self.turn = client.exchange(self.long_request(number), number).result["turn"]
        number = client.next_id()
        self.reply = bytes(self.check(client.exchange(self.short_request(number), number).body))

    def check(self, body: memoryview) -> memoryview:
        """The body again; ServerError unless it ends with the messages that were stored, once."""
        contents = [item["content"] for item in msgspec.json.decode(body)["result"]["messages"]]
        if contents[-WIRE_MESSAGES:] != [item["content"] for item in self.messages]:
            raise ServerError("the session does not end with the messages that were appended")
        if len(contents) > WIRE_MESSAGES + 1:
            raise ServerError(f"the session holds {len(contents)} messages, not {WIRE_MESSAGES}")
        return body

    def short_request(self, number: int) -> bytes:
        """Answered with 2 MB."""
        return request(number, "nexus/session/messages", self._session)

    def long_request(self, number: int) -> bytes:
        """2 MB, answered shortly."""
        params = self._session | {"messages": self.messages, "idempotencyKey": "benchmark"}
        return request(number, "nexus/session/append", params)


def _exchange_undecoded(floor: Client, exchanges: TwoMegabytes) -> dict[str, float]:
    """Milliseconds of the 2 MB reply and of the 2 MB request."""
    reply_s = floor.exchange_frame(exchanges.short_request(1))
    return {"reply": reply_s * 1e3, "request": floor.exchange_frame(exchanges.long_request(1)) * 1e3}


def _exchange(client: Client, exchanges: TwoMegabytes) -> dict[str, float]:
    """Milliseconds of the 2 MB reply and of the 2 MB request, both checked."""
    number = client.next_id()
    out = client.exchange(exchanges.short_request(number), number)
    exchanges.check(out.body)
    number = client.next_id()
    into = client.exchange(exchanges.long_request(number), number)
    if into.result["turn"] != exchanges.turn:
        raise ServerError("the repeated append made a new turn: its idempotency key was not honoured")
    return {"reply": out.seconds * 1e3, "request": into.seconds * 1e3}


def _prose(characters: int) -> str:
    """Code-like text with the escapes that such text needs in JSON, of about that many encoded bytes."""
    line = 'def area(width: float, height: float) -> float:\n    """Area."""\n    return width * height\n'
    return (line * (characters // len(line) + 1))[:characters]
