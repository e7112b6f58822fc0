"""Runs the workers: which subject answers which question, in which virtualenv, for how long at most."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from benchmarks.conversation.fact_quality import MODELS, UNCUT, WalkedWithFacts
from benchmarks.conversation.speed import Adding, Encoding, Stepping
from benchmarks.conversation.subject import (
    NEXUS,
    OURS,
    PEERS,
    PER_TURN,
    SURVIVORS,
    WITH_FACTS,
    Entry,
)
from benchmarks.conversation.survival import WINDOWS, Survived
from benchmarks.conversation.traces import ROOT
from benchmarks.conversation.worker import Walked

LOCK = ROOT / "benchmarks/peers/requirements.txt"
VENV = ROOT / "benchmarks/.peers/.venv"  # not committed
BUDGETS = (16_000, 8_000, 2_500, 40_000)  # tokens; the targets are held at the first
FACT_BUDGETS = (BUDGETS[0], UNCUT)
TIMEOUT_S = 900.0
MOST_TURNS = 300
FACT_TIMEOUT_S = 1_200.0  # uncut, a request that is refused is read twice

Answer = TypeVar("Answer")


class Rounds(msgspec.Struct, frozen=True):
    """How much is measured. `seconds` is the most that the steps of one subject at one size take."""

    sizes: tuple[int, ...]
    steps: int
    seconds: float
    encodings: int


FULL = Rounds(sizes=(1_000, 10_000, 100_000), steps=2_000, seconds=20.0, encodings=200)
QUICK = Rounds(sizes=(1_000, 10_000), steps=100, seconds=2.0, encodings=30)


class Failure(msgspec.Struct, frozen=True):
    """A question that a subject did not answer, and why."""

    subject: str
    question: str
    reason: str


class Outcome(msgspec.Struct):
    """Everything that was measured, by subject."""

    walks: dict[str, list[Walked]] = {}
    steps: dict[str, list[Stepping]] = {}
    added: dict[str, Adding] = {}
    encoded: dict[str, Encoding] = {}
    with_facts: dict[str, list[WalkedWithFacts]] = {}
    turns: dict[str, list[Stepping]] = {}
    survived: dict[str, list[Survived]] = {}
    failures: list[Failure] = []


def install_peers() -> None:
    """Makes the virtualenv of the peers from the locked versions, unless they are the installed ones."""
    stamp = VENV / LOCK.name
    if stamp.is_file() and stamp.read_bytes() == LOCK.read_bytes():
        return
    print(f"installing the peers into {VENV} (once)", file=sys.stderr)
    venv.create(VENV, clear=True, with_pip=True)
    command = [str(VENV / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*command, "--requirement", str(LOCK)], check=True)
    shutil.copyfile(LOCK, stamp)


def run(
    rounds: Rounds, *, ours_only: bool = False, facts_only: bool = False, survival_only: bool = False
) -> Outcome:
    """Asks every subject everything. Walks share the cores; what is timed runs alone."""
    outcome = Outcome()
    if not facts_only:
        compact(outcome, ours_only=ours_only)
    if survival_only:
        return outcome
    walk_with_facts(outcome, ours_only=ours_only)
    time_turns(outcome, rounds, ours_only=ours_only)
    if facts_only:
        return outcome
    entries = OURS if ours_only else (*OURS, *PEERS)
    budgets = [str(budget) for budget in BUDGETS]
    _say("walking the chats")

    def walks(entry: Entry) -> list[Walked] | None:
        return _ask(outcome, entry, list[Walked], "walk", *budgets)

    walked = [entry for entry in entries if entry.walked]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outcome.walks = _answered(walked, pool.map(walks, walked))
    timed = [entry for entry in entries if entry.timed]
    for size in rounds.sizes:
        _say(f"timing add + build at {size:,} messages")
        for entry in timed:
            asked = (str(size), str(rounds.steps), str(rounds.seconds))
            stepped = _ask(outcome, entry, Stepping, "step", *asked)
            outcome.steps.setdefault(entry.name, []).extend([stepped] if stepped else [])
    _say("timing counts and encodings")
    outcome.added = _answered(
        timed, (_ask(outcome, entry, Adding, "add") if entry.name == NEXUS else None for entry in timed)
    )
    encodings = str(rounds.encodings)
    outcome.encoded = _answered(
        timed, (_ask(outcome, entry, Encoding, "encode", encodings) for entry in timed)
    )
    return outcome


def compact(outcome: Outcome, *, ours_only: bool) -> None:
    """Compacts the chats and the made coding sessions."""
    _say("compacting")
    windows = [str(window) for window in WINDOWS]
    for entry in SURVIVORS.values():
        if not ours_only or entry.home == "nexus":
            survived = _ask(outcome, entry, list[Survived], "survive", *windows)
            outcome.survived[entry.name] = survived or []


def walk_with_facts(outcome: Outcome, *, ours_only: bool) -> None:
    """Walks the chats with facts in every turn."""
    _say("walking the chats with facts in every turn")
    budgets = [str(budget) for budget in FACT_BUDGETS]
    asked = [
        (entry, vendor)
        for vendor in MODELS
        for entry in WITH_FACTS.values()
        if not ours_only or entry.home == "nexus"
    ]

    def ask(entry: Entry, vendor: str) -> list[WalkedWithFacts] | None:
        return _ask(outcome, entry, list[WalkedWithFacts], vendor, *budgets)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (entry, _), walked in zip(asked, pool.map(lambda one: ask(*one), asked), strict=True):
            outcome.with_facts.setdefault(entry.name, []).extend(walked or [])


def time_turns(outcome: Outcome, rounds: Rounds, *, ours_only: bool) -> None:
    """Times turns with facts."""
    for size in rounds.sizes:
        _say(f"timing turns with facts at {size:,} messages")
        for entry in WITH_FACTS.values():
            if entry.name != PER_TURN and (not ours_only or entry.home == "nexus"):
                asked = (str(size), str(min(rounds.steps, MOST_TURNS)), str(rounds.seconds))
                stepped = _ask(outcome, entry, Stepping, "turn", *asked)
                outcome.turns.setdefault(entry.name, []).extend([stepped] if stepped else [])


def _answered(entries: Iterable[Entry], answers: Iterable[Answer | None]) -> dict[str, Answer]:
    return {entry.name: each for entry, each in zip(entries, answers, strict=True) if each is not None}


def _ask(
    outcome: Outcome, entry: Entry, answer: type[Answer], question: str, *arguments: str
) -> Answer | None:
    """One question in a process of its own; None, and a failure, if there is no answer."""
    python = sys.executable if entry.home == "nexus" else str(VENV / "bin/python")
    command = [python, "-m", "benchmarks.conversation.worker", entry.name, question, *arguments]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "context", ROOT / "tests")))
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": paths}
    if "NEXUS_CORPORA" in os.environ:
        environment["NEXUS_CORPORA"] = os.environ["NEXUS_CORPORA"]
    asked = " ".join((question, *arguments))
    timeout = FACT_TIMEOUT_S if question in (*MODELS, "survive") else TIMEOUT_S
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=timeout, check=True
        )
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=answer)
    except subprocess.TimeoutExpired:
        outcome.failures.append(Failure(entry.name, asked, f"took longer than {timeout:g} s"))
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        outcome.failures.append(Failure(entry.name, asked, said[-1] if said else str(error)))
    return None


def _say(text: str) -> None:
    print(f"{text} …", file=sys.stderr)
