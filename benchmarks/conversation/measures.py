"""How libraries keep a conversation sendable when it exceeds its budget: cache, recall, survival, speed.

Chats are replayed message by message, each library in its own process, the peers in their own virtualenv.
Shares and counts are Nexus's; the peers stand beside it in the report's further tables. "The first chat" is
tau-bench where its file is present, else a made one.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from shutil import copyfile
from typing import TypeVar

import msgspec
from benchmarks.conversation.fact_quality import MODELS, UNCUT, FactQuality, WalkedWithFacts
from benchmarks.conversation.speed import Adding, Encoding, Stepping
from benchmarks.conversation.subject import NEXUS, PEERS, SURVIVORS, WITH_FACTS, Entry
from benchmarks.conversation.survival import KINDS, WINDOWS, Survival, Survived
from benchmarks.conversation.walk import Quality
from benchmarks.conversation.worker import Walked
from benchmarks.promises import ROOT, Measured, Promise, Run, Series, UnavailableError, promises
from benchmarks.servers import install

LOCK = ROOT / "benchmarks/peers/requirements.txt"
VENV = ROOT / "benchmarks/.peers/.venv"  # not committed
BUDGET = 16_000  # tokens; at 2,500 one file is often larger
BUDGETS = (BUDGET, 2_500)
ALL_CHATS, PEERS_CHATS = 9, 2
SIZES = (1_000, 10_000, 100_000)
VALIDITY = {
    "broken": "a broken pair",
    "wrong_start": "a wrong start",
    "over_budget": "more than the budget",
    "lost": "the newest message lost",
    "no_system": "the system prompt lost",
    "failed": "a refusal",
}
NAMES_KEPT = {40_000: 0.83, 100_000: 0.80}  # by window
TOKENIZER = "tiktoken on the same text"

Answer = TypeVar("Answer")


# ---------------------------------------------------------------- walks


@promises(
    *(Promise(f"requests with {what}", 0, unit="") for what in VALIDITY.values()),
    Promise("read from the cache, first chat", 0.94, unit="", at_least=True),
    Promise("cost of a sent token, first chat", 0.17, unit=""),
    Promise("recall of identifiers, first chat", 0.95, unit="", at_least=True),
)
def walks(run: Run) -> Iterator[Measured]:
    """Before each step of the assistant the request is checked; shares are those at 16,000 tokens."""
    budgets = BUDGETS[:1] if run.is_quick else BUDGETS
    chats = run.pick(full=ALL_CHATS, quick=1)
    walked = ask(run, NEXUS, list[Walked], "walk", chats, *budgets)
    for name, what in VALIDITY.items():
        yield f"requests with {what}", sum(getattr(walk.quality, name) for walk in walked)
    first = walked[0].quality
    yield "read from the cache, first chat", first.hit
    yield "cost of a sent token, first chat", first.cost
    yield "recall of identifiers, first chat", first.recall
    peers = [] if run.is_quick else [entry.name for entry in PEERS if entry.walked]
    answers = ask_all(
        run, {name: partial(ask, run, name, list[Walked], "walk", PEERS_CHATS, BUDGET) for name in peers}
    )
    for name, walk in [(NEXUS, walk) for walk in walked] + list(answers):
        _note_walk(run, name, walk)


def _note_walk(run: Run, name: str, walk: Walked) -> None:
    quality: Quality = walk.quality
    counts = {what: getattr(quality, what) for what in ("requests", "full", *VALIDITY)}
    shares = {"hit": quality.hit, "cost": quality.cost, "recall": quality.recall, "far": quality.far}
    run.note(f"Conversation: {walk.trace}, {walk.budget:,} tokens", name, **counts, **shares)


# ---------------------------------------------------------------- walks with facts


@promises(
    Promise("requests refused for thinking behind a change", 0, unit=""),
    Promise("requests refused for anything else", 0, unit=""),
    Promise("read from the cache, first chat", 0.95, unit="", at_least=True),
    Promise("cost of a sent token, first chat", 0.14, unit=""),
    Promise("recall of identifiers, first chat", 0.95, unit="", at_least=True),
    Promise("read from the cache, any chat uncut", 0.97, unit="", at_least=True),
    Promise("cost of a sent token, any chat uncut", 0.14, unit=""),
)
def facts(run: Run) -> Iterator[Measured]:
    """Each turn carries the time, a file, git's state and memory; of the two vendors the worse one counts."""
    budgets = (BUDGET,) if run.is_quick else (BUDGET, UNCUT)

    chats = run.pick(full=ALL_CHATS, quick=1)

    def questions(name: str, *arguments: int) -> dict[str, Callable[[], list[WalkedWithFacts]]]:
        ask_one = partial(ask, run, name, list[WalkedWithFacts])
        return {f"{name}, {vendor}": partial(ask_one, vendor, *arguments) for vendor in MODELS}

    walked = list(ask_all(run, questions(NEXUS, chats, *budgets), is_needed=True))
    mine = [walk for _, walk in walked]
    for name in () if run.is_quick else WITH_FACTS:
        walked += ask_all(run, questions(name, 1, BUDGET)) if name != NEXUS else ()
    for name, walk in walked:
        _note_facts(run, name, walk)
    yield "requests refused for thinking behind a change", sum(walk.quality.refused for walk in mine)
    yield "requests refused for anything else", sum(walk.quality.invalid for walk in mine)
    first = [walk.quality for walk in mine if (walk.trace, walk.budget) == (mine[0].trace, BUDGET)]
    yield "read from the cache, first chat", min(quality.hit for quality in first)
    yield "cost of a sent token, first chat", max(quality.cost for quality in first)
    yield "recall of identifiers, first chat", min(quality.recall for quality in first)
    uncut = [walk.quality for walk in mine if walk.budget == UNCUT]
    if not uncut:
        raise UnavailableError("only in a full run")
    yield "read from the cache, any chat uncut", min(quality.hit for quality in uncut)
    yield "cost of a sent token, any chat uncut", max(quality.cost for quality in uncut)


def _note_facts(run: Run, name: str, walk: WalkedWithFacts) -> None:
    quality: FactQuality = walk.quality
    room = "uncut" if walk.budget == UNCUT else f"{walk.budget:,} tokens"
    counts = {
        what: getattr(quality, what) for what in ("requests", "full", "over_budget", "refused", "invalid")
    }
    shares = {
        "hit": quality.hit,
        "cost": quality.cost,
        "recall": quality.recall,
        "add + build, µs": quality.step_us,
    }
    run.note(f"With facts in every turn: {walk.trace}, {room}", name, **counts, **shares)


# ---------------------------------------------------------------- survival


@promises(
    *(
        Promise(f"names needed next, after a compaction at {window:,}", least, unit="", at_least=True)
        for window, least in NAMES_KEPT.items()
    ),
    Promise("edited files, after a compaction at 200,000", 1.0, unit="", at_least=True),
    Promise("orders word for word, at any window", 0.95, unit="", at_least=True),
    Promise("errors word for word, at any window", 0.8, unit="", at_least=True),
    Promise("orders after five compactions", 1.0, unit="", at_least=True),
    Promise("plain facts of 6 after five, worst session", 4, unit="", at_least=True),
    Promise("a compaction", 2.2, "tiktoken on the history", "worst"),
)
def survival(run: Run) -> Iterator[Measured]:
    """What compactions without a model leave of made coding sessions that no phrase list was tuned to."""
    sessions = {item.window: item.survival for item in ask(run, NEXUS, list[Survived], "survive", *WINDOWS)}
    for window in NAMES_KEPT:
        yield f"names needed next, after a compaction at {window:,}", sessions[window].names.value or 0.0
    yield "edited files, after a compaction at 200,000", sessions[200_000].marks["edited"].value or 0.0
    for kind in ("order", "error"):
        shares = [item.marks[kind].value or 0.0 for item in sessions.values()]
        yield f"{kind}s word for word, at any window", min(shares)
    five = [item for item in sessions.values() if item.least_plain is not None]
    yield "orders after five compactions", min(item.five["orders"].value or 0.0 for item in five)
    yield "plain facts of 6 after five, worst session", min(item.least_plain or 0 for item in five)
    times = [value for item in sessions.values() for value in item.milliseconds]
    yield (
        "a compaction",
        Series(times),
        Series([value for item in sessions.values() for value in item.count_ms]),
    )
    names = [] if run.is_quick else [name for name in SURVIVORS if name != NEXUS]
    steps = {name: partial(ask, run, name, list[Survived], "survive", *WINDOWS) for name in names}
    for name, item in [(NEXUS, Survived(window, item)) for window, item in sessions.items()] + list(
        ask_all(run, steps)
    ):
        _note_survival(run, name, item)


def _note_survival(run: Run, name: str, item: Survived) -> None:
    rest: Survival = item.survival
    shares = {"names": rest.names.value, **{kind: rest.marks[kind].value for kind in KINDS}}
    five = {"orders after 5": rest.five["orders"].value, "plain after 5": rest.five["plain"].value}
    size = {
        "least of 6": rest.least_plain,
        "tokens": sum(rest.tokens) / len(rest.tokens),
        "n": rest.compactions,
    }
    run.note(f"Survival: held-out sessions, window {item.window:,} tokens", name, **shares, **five, **size)


# ---------------------------------------------------------------- speed


@promises(
    Promise("add a message, with its exact count", 3.0, TOKENIZER, unit="µs"),
    *(Promise(f"add + build at {size:,} messages", 4.0, TOKENIZER, unit="µs") for size in SIZES),
    Promise("add + build, longest history", 1.5, "the shortest", unit="µs"),
    Promise("encode 500 messages after one more", 0.06, "json.dumps", unit="µs"),
)
def speed(run: Run) -> Iterator[Measured]:
    """A message of about 60 tokens more, and the next request of 16,000 tokens; garbage collection is off."""
    added = ask(run, NEXUS, Adding, "add")
    yield "add a message, with its exact count", Series(added.added), Series(added.floor)
    steps = run.pick(full=1_000, quick=100)
    stepped = [ask(run, NEXUS, list[Stepping], "step", size, steps, 20)[0] for size in SIZES]
    for size, stepping in zip(SIZES, stepped, strict=True):
        yield f"add + build at {size:,} messages", Series(stepping.steps), Series(stepping.floor)
    yield "add + build, longest history", Series(stepped[-1].steps), Series(stepped[0].steps)
    encoding = ask(run, NEXUS, Encoding, "encode", run.pick(full=200, quick=30))
    yield "encode 500 messages after one more", Series(encoding.encoded), Series(encoding.floor)
    for name in () if run.is_quick else [entry.name for entry in PEERS if entry.timed]:
        for _, stepping in ask_all(
            run, {name: partial(ask, run, name, list[Stepping], "step", 10_000, 200, 10)}
        ):
            columns = {"p50": Series(stepping.steps).at("p50"), "first build": stepping.cold}
            run.note("Add + build at 10,000 messages, µs", name, **columns)


# ---------------------------------------------------------------- workers


def ask(run: Run, name: str, answer: type[Answer], question: str, *arguments: int) -> Answer:
    """One question to one subject in a process of its own. UnavailableError if it does not install."""
    entries: Mapping[str, Entry] = {**{entry.name: entry for entry in PEERS}, **WITH_FACTS, **SURVIVORS}
    python = sys.executable if entries[name].home == "nexus" else install_peers()
    command = [python, "-m", "benchmarks.conversation.worker", name, question, *map(str, arguments)]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "context", ROOT / "tests")))
    corpora = {key: os.environ[key] for key in ("NEXUS_CORPORA",) if key in os.environ}
    environ = run.environ | corpora | {"PYTHONPATH": paths}
    process = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, check=True)
    return msgspec.json.decode(process.stdout.splitlines()[-1], type=answer)


def ask_all(
    run: Run, questions: Mapping[str, Callable[[], list[Answer]]], *, is_needed: bool = False
) -> Iterator[tuple[str, Answer]]:
    """Ask several subjects at once; one that does not answer is noted unless it is needed."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = {name: pool.submit(question) for name, question in questions.items()}
        for name, future in futures.items():
            try:
                yield from ((name, item) for item in future.result())
            except (UnavailableError, subprocess.CalledProcessError) as error:
                if is_needed:
                    raise
                run.note("Not measured", name, why=str(error))


def install_peers() -> str:
    """Make the virtualenv of the locked peers, unless it is there; the path of its Python."""
    python, stamp = VENV / "bin/python", VENV / LOCK.name
    if not stamp.is_file() or stamp.read_bytes() != LOCK.read_bytes():
        venv.create(VENV, clear=True, with_pip=True)
        pip = (str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check")
        install(*pip, "--requirement", str(LOCK), cwd=ROOT)
        copyfile(LOCK, stamp)
    return str(python)
