"""The measures: what is timed, in which order. Servers take turns in every round, so drift hits all."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from benchmarks.documents import Document, Error, config, edit, error_column
from benchmarks.figures import Figures
from benchmarks.lsp_client import Client, ServerError, request
from benchmarks.processes import proportional_mb, resident_mb
from benchmarks.servers import ROOT, Lane, Sandbox, changed, config_uri, folder, opened, pulled, started

SMALL_LINES = 60
LARGE_LINES = 5_000
ERRORS: tuple[Error, ...] = ("schema", "syntax")
EDITS_PER_ROUND = 5  # of pull lanes and nexus, for each edit of a peer that waits out its debounce
SETTLE_S = 1.0  # before resident memory is read
HISTORY_MESSAGES = 40  # of the session that is assembled
WIRE_MESSAGES = 200
WIRE_MESSAGE_CHARS = 10_000  # 200 of them: 2 MB
BARE_PIPE = "bare pipe"
JSON_PIPE = "bare pipe + JSON"  # for information
ASYNCIO_PIPE = "bare pipe, asyncio"


class Rounds(msgspec.Struct, frozen=True):
    """How often each measure is repeated; the first `warm` rounds are thrown away."""

    warm: int
    startup: int
    edits: int
    assemble: int
    wire: int
    memory: int


FULL = Rounds(warm=2, startup=20, edits=40, assemble=300, wire=40, memory=5)
QUICK = Rounds(warm=1, startup=4, edits=5, assemble=40, wire=8, memory=2)


class Bench(NamedTuple):
    """What every measure needs."""

    figures: Figures
    lanes: tuple[Lane, ...]
    sandbox: Sandbox
    rounds: Rounds

    @property
    def nexus(self) -> Lane | None:
        return next((lane for lane in self.lanes if lane.server == "nexus" and lane.way == "push"), None)

    @property
    def shared(self) -> Lane | None:
        return next((lane for lane in self.lanes if lane.is_shared and not lane.is_cold), None)


# ---------------------------------------------------------------- start-up


def startup(bench: Bench) -> None:
    """Spawn → initialize reply, and spawn → the right diagnostics of a small file with one schema error."""
    document = config(SMALL_LINES, "schema")
    path = folder(bench.sandbox, "startup", document)
    for number in range(bench.rounds.warm + bench.rounds.startup):
        # the daemon that the cold lane leaves is the warm one of the next round
        for lane in sorted(bench.lanes, key=lambda lane: not lane.is_cold):
            step = partial(_start_once, bench, lane, path, document, keep=number >= bench.rounds.warm)
            bench.figures.attempt("startup", lane.name, step)


def _start_once(bench: Bench, lane: Lane, path: Path, document: Document, *, keep: bool) -> None:
    with started(lane, bench.sandbox, path) as (client, initialize_s):
        shown = _open(client, lane, config_uri(path), document)
        if keep:
            bench.figures.add("startup / initialize", lane.name, initialize_s * 1e3)
            bench.figures.add("startup / first diagnostics", lane.name, (shown.at - client.started) * 1e3)


# ---------------------------------------------------------------- edit → diagnostics


def edits(bench: Bench) -> None:
    """One typed character → the right diagnostics of that text; two file lengths, two kinds of error."""
    for lines in (SMALL_LINES, LARGE_LINES):
        for error in ERRORS:
            _edit_case(
                bench, f"edit / {lines:,} lines, {error} error", f"{lines}-{error}", config(lines, error)
            )


def _edit_case(bench: Bench, measure: str, name: str, document: Document) -> None:
    path = folder(bench.sandbox, f"edit-{name}", document)
    with ExitStack() as stack:
        lanes = [lane for lane in bench.lanes if not lane.is_cold]
        typists = {lane.name: Typist(lane, config_uri(path), document) for lane in lanes}
        for lane in lanes:
            bench.figures.attempt(
                measure, lane.name, partial(_seat, stack, typists[lane.name], bench.sandbox, path)
            )
        for number in range(bench.rounds.warm + bench.rounds.edits):
            for typist in typists.values():
                step = partial(_type_round, bench.figures, measure, typist, keep=number >= bench.rounds.warm)
                bench.figures.attempt(measure, typist.lane.name, step)


class Typist:
    """Types one character in a document, takes it out again, and so on; each time the error must move."""

    def __init__(self, lane: Lane, uri: str, document: Document) -> None:
        self.lane = lane
        self._uri = uri
        self._document = document
        self._client: Client | None = None
        self._column = 0
        self._version = 1
        self._typed = 0

    def sit(self, client: Client) -> None:
        """Opens the document and learns at which column of its line this server reports the error."""
        self._client = client
        self._column = _open(client, self.lane, self._uri, self._document).column

    def type(self) -> float:
        """One edit; the milliseconds from its first byte to the last byte of the right diagnostics."""
        assert self._client is not None
        self._version += 1
        data = changed(self._uri, self._version, edit(self._document, insert=not self._typed))
        self._typed = 1 - self._typed
        shown = _diagnose(self._client, self.lane, self._uri, data, self._judge)
        return (shown.at - shown.sent) * 1e3

    def _judge(self, items: list[Any]) -> int | None:
        column = error_column(items, self._document, typed=self._typed)
        return column if column == self._column else None


def _seat(stack: ExitStack, typist: Typist, sandbox: Sandbox, path: Path) -> None:
    client, _ = stack.enter_context(started(typist.lane, sandbox, path))
    typist.sit(client)


def _type_round(figures: Figures, measure: str, typist: Typist, *, keep: bool) -> None:
    waits = typist.lane.way == "push" and not typist.lane.is_own
    for _ in range(1 if waits else EDITS_PER_ROUND):
        milliseconds = typist.type()
        if keep:
            figures.add(measure, typist.lane.name, milliseconds)


class Shown(NamedTuple):
    """Right diagnostics: perf_counter of the first byte sent, of their last byte, and the error's column."""

    sent: float
    at: float
    column: int


def _open(client: Client, lane: Lane, uri: str, document: Document) -> Shown:
    judge: Callable[[list[Any]], int | None] = partial(error_column, document=document, typed=0)
    return _diagnose(client, lane, uri, opened(uri, document.text), judge)


def _diagnose(
    client: Client, lane: Lane, uri: str, data: bytes, judge: Callable[[list[Any]], int | None]
) -> Shown:
    """Sends `data` (and the pull, in a pull lane); waits for diagnostics in which `judge` finds the error."""
    if lane.way == "pull":
        number = client.next_id()
        reply = client.exchange(data + pulled(uri, number), number)
        column = judge(reply.result["items"])
        if column is None:
            raise ServerError(f"wrong diagnostics: {reply.result['items']}")
        return Shown(reply.sent, reply.at, column)
    sent = client.send(data)
    at, items = client.published(uri, lambda items: judge(items) is not None)
    column = judge(items)
    assert column is not None
    return Shown(sent, at, column)


# ---------------------------------------------------------------- memory


def memory(bench: Bench) -> None:
    """Resident memory with one folder and one open file; of nexus, again after it has loaded a vocabulary."""
    document = config(SMALL_LINES, "schema")
    path = folder(bench.sandbox, "memory", document)
    for _ in range(bench.rounds.memory):
        for lane in bench.lanes:
            if lane.way == "push" and not lane.is_shared:  # the shared daemon is another process
                bench.figures.attempt(
                    "memory", lane.name, partial(_weigh, bench.figures, lane, bench.sandbox, path, document)
                )


def _weigh(figures: Figures, lane: Lane, sandbox: Sandbox, path: Path, document: Document) -> None:
    with started(lane, sandbox, path) as (client, _):
        _open(client, lane, config_uri(path), document)
        _read_memory(figures, lane, client, "")
        if lane.server == "nexus":
            client.request("nexus/tokens/count", {"texts": ["How many tokens is this?"]})
            _read_memory(figures, lane, client, ", vocabulary loaded")


def _read_memory(figures: Figures, lane: Lane, client: Client, state: str) -> None:
    time.sleep(SETTLE_S)
    figures.add(f"memory / resident{state}", lane.name, resident_mb(client.process.pid), "MB")
    figures.add(f"memory / proportional{state}", lane.name, proportional_mb(client.process.pid), "MB")


# ---------------------------------------------------------------- assemble


def assemble(bench: Bench, workspace: Path) -> None:
    """nexus/context/assemble on `workspace` with a session of HISTORY_MESSAGES messages."""
    if bench.nexus is not None:
        bench.figures.attempt("assemble", bench.nexus.name, partial(_assemble, bench, bench.nexus, workspace))


def _assemble(bench: Bench, lane: Lane, workspace: Path) -> None:
    if not workspace.is_dir():
        raise ServerError(f"{workspace} is no directory: name another with --workspace")
    where = {"workspaceFolder": workspace.as_uri(), "session": "bench"}
    roles = ("user", "assistant")
    history = [
        {"role": roles[n % 2], "content": f"Message {n}: {_prose(600)}"} for n in range(HISTORY_MESSAGES)
    ]
    with started(lane, bench.sandbox, workspace) as (client, _):
        client.request("nexus/session/append", where | {"messages": history})
        for number in range(bench.rounds.warm + bench.rounds.assemble):
            reply = client.request(
                "nexus/context/assemble", where | {"message": f"Question {number}: what is next?"}
            )
            if not reply.result["systemPrompt"] or not reply.result["history"]:
                raise ServerError("assembled without a system prompt or without history")
            if number >= bench.rounds.warm:
                bench.figures.add("assemble / assemble", lane.name, reply.seconds * 1e3)


# ---------------------------------------------------------------- wire


def wire(bench: Bench) -> None:
    """2 MB out of and into a server, beside the same bytes on a bare pipe.

    Out: nexus/session/messages. In: nexus/session/append with an idempotency key that was used before,
    which is answered from memory: the 2 MB are received and decoded, but not counted and not stored again.
    """
    path = folder(bench.sandbox, "wire", None)
    exchanges = TwoMegabytes(path.as_uri())
    turns: list[tuple[str, Callable[[], tuple[float, float]]]] = []
    with ExitStack() as stack:
        for lane in (bench.nexus, bench.shared):
            if lane is None:
                continue

            def fill(lane: Lane = lane) -> None:
                client = exchanges.fill(stack, lane, bench.sandbox, path)
                turns.append((lane.name, partial(_wire_round, client, exchanges)))

            bench.figures.attempt("wire", lane.name, fill)
        reply = bench.sandbox.root / "reply.json"
        reply.write_bytes(exchanges.reply)
        for name, flags in ((BARE_PIPE, ()), (JSON_PIPE, ("json",)), (ASYNCIO_PIPE, ("asyncio",))):
            command = (sys.executable, "-m", "benchmarks.floor", str(reply), *flags)
            floor = Client(command, cwd=ROOT, env=bench.sandbox.environment)
            stack.callback(floor.kill)
            turns.append((name, partial(_pipe_round, floor, exchanges)))
        for number in range(bench.rounds.warm + bench.rounds.wire):
            for name, turn in turns:
                step = partial(_wire_turn, bench.figures, name, turn, keep=number >= bench.rounds.warm)
                bench.figures.attempt("wire", name, step)


def _wire_turn(figures: Figures, name: str, turn: Callable[[], tuple[float, float]], *, keep: bool) -> None:
    reply_s, request_s = turn()
    if keep:
        figures.add("wire / 2 MB reply", name, reply_s * 1e3)
        figures.add("wire / 2 MB request", name, request_s * 1e3)


class TwoMegabytes:
    """The two exchanges of the wire measure, and the bytes of the long reply."""

    def __init__(self, uri: str) -> None:
        self._where = {"workspaceFolder": uri, "session": "wire"}
        text = _prose(WIRE_MESSAGE_CHARS)
        self.messages = [
            {"role": ("user", "assistant")[n % 2], "content": f"{n}: {text}"} for n in range(WIRE_MESSAGES)
        ]
        self.reply = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "result": {"session": "wire", "messages": self.messages}}
        )
        self.turn: str | None = None

    def fill(self, stack: ExitStack, lane: Lane, sandbox: Sandbox, path: Path) -> Client:
        """Starts the server, stores the messages once, and keeps its long reply for the bare pipe."""
        client, _ = stack.enter_context(started(lane, sandbox, path))
        number = client.next_id()
        self.turn = client.exchange(self.long_request(number), number).result["turn"]
        number = client.next_id()
        self.reply = bytes(self.check(client.exchange(self.short_request(number), number).body))
        return client

    def check(self, body: memoryview) -> memoryview:
        """The body again; ServerError unless it ends with the messages that were stored, once."""
        contents = [item["content"] for item in msgspec.json.decode(body)["result"]["messages"]]
        if (
            contents[-WIRE_MESSAGES:] != [item["content"] for item in self.messages]
            or len(contents) > WIRE_MESSAGES + 1
        ):
            raise ServerError(
                f"the session holds {len(contents)} messages, not the {WIRE_MESSAGES} that were appended"
            )
        return body

    def short_request(self, number: int) -> bytes:
        """Answered with 2 MB."""
        return request(number, "nexus/session/messages", self._where)

    def long_request(self, number: int) -> bytes:
        """2 MB, answered shortly."""
        params = self._where | {"messages": self.messages, "idempotencyKey": "benchmark"}
        return request(number, "nexus/session/append", params)


def _pipe_round(floor: Client, exchanges: TwoMegabytes) -> tuple[float, float]:
    """Seconds of the 2 MB reply and of the 2 MB request."""
    return floor.exchange_frame(exchanges.short_request(1)), floor.exchange_frame(exchanges.long_request(1))


def _wire_round(client: Client, exchanges: TwoMegabytes) -> tuple[float, float]:
    """Seconds of the 2 MB reply and of the 2 MB request, both checked."""
    number = client.next_id()
    out = client.exchange(exchanges.short_request(number), number)
    exchanges.check(out.body)
    number = client.next_id()
    into = client.exchange(exchanges.long_request(number), number)
    if into.result["turn"] != exchanges.turn:
        raise ServerError("the repeated append made a new turn: its idempotency key was not honoured")
    return out.seconds, into.seconds


def _prose(characters: int) -> str:
    """Code-like text with the escapes that such text needs in JSON, of about that many encoded bytes."""
    line = 'def area(width: float, height: float) -> float:\n    """Area."""\n    return width * height\n'
    return (line * (characters // len(line) + 1))[:characters]
