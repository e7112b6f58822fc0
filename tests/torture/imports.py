"""Hostile transcripts and packed bombs: an import says what is wrong and goes on, in bounded memory."""

import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice, repeat
from pathlib import Path

from nexus_context.assistants.importing import importers, jsonl
from nexus_context.conversation.message import text_of
from nexus_context.ledger.records import Turn
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import get_token_counter
from support import hostile_transcripts as hostile
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.ledgers import NAME, WORKSPACE, opened

HEADER = b'{"format":"nexus-session","version":1,"session":"s"}\n'
MOST_MB = 1_024  # resident memory of an import of a bomb, the interpreter and the vocabulary included
BOMB_S = 60.0
ALL_BOMBS_FROM = 500  # files
MEASURE = """
import json, os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, used = os.wait4(child.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss]), file=sys.stderr)
"""
"""A child's memory begins with its parent's, which must be small: a process that runs tests is not."""
BATCH = 100  # files in one ledger


def run(files: int, seed: int = 1) -> Outcome:
    """So many hostile files through import, export and import again; and the bombs through the command."""
    watch = Watch()
    wrong: list[str] = []
    refused = imported = 0
    with tempfile.TemporaryDirectory(prefix="nexus-imports-") as root:
        for first in range(0, files, BATCH):  # else a ledger with many sessions would be measured
            with opened(Path(root) / f"{first}-{NAME}") as ledger:
                importer = importers.Importer(ledger, WORKSPACE, lambda _: get_token_counter())
                for number in range(first, min(first + BATCH, files)):
                    form = hostile.FORMS[number % len(hostile.FORMS)]
                    data = hostile.file(dice_of(seed * 1_000_003 + number), form, 1 + number % 3)
                    try:
                        problems, messages = outcome_of(importer, ledger, form, data, f"/x/f{number}.jsonl")
                    except Exception as error:  # noqa: BLE001 - what this looks for
                        wrong.append(f"{form} {number}: {type(error).__name__}: {error}")
                        continue
                    refused, imported = refused + problems, imported + messages
        sizes = []
        for name, bomb in islice(bombs(), None if files >= ALL_BOMBS_FROM else 2):
            size, seconds, said = command(Path(root), name, bomb)
            sizes.append(size)
            if "Traceback" in said or not said.strip():
                wrong.append(f"{name}: {said[-300:]!r}")
            if seconds > BOMB_S:
                wrong.append(f"{name}: {seconds:.0f} s")
    figures = (
        Figure("hostile files", files),
        Figure("messages imported", imported, at_least=files // 2),
        Figure("records refused with a reason", refused, at_least=files // 20),
        Figure("packed and flat bombs", len(sizes)),
        Figure("largest memory of an import of one", max(sizes), "MB", at_most=MOST_MB),
        nothing_wrong(wrong),
    )
    return Outcome("hostile imports", figures, tuple(wrong), seconds=watch.seconds)


def outcome_of(
    importer: importers.Importer, ledger: Ledger, form: str, data: bytes, path: str
) -> tuple[int, int]:
    """Import a file; how many problems were said, and how many messages are there. AssertionError if any is
    not what was read, or if a sound record is missing that no problem speaks of.
    """
    contents = importers.read(data, path)
    assert len(contents.lines) == len(contents.problems)
    assert all(line is None or line <= data.count(b"\n") + 1 for line in contents.lines)
    written: list[str] = []
    for found in contents.sessions:
        added = importer.add(found)
        turns = list(ledger.turns(WORKSPACE, added.session))
        if added.outcome == "new":
            assert said_in(turns) == said_in(found.turns), "what was read is not what is there"
        again = jsonl.read(jsonl.split("".join(jsonl.lines(added.session, turns))), path)
        assert not again.problems, again.problems
        assert said_in(again.exported[0].turns) == said_in(turns), "an export is not what is there"
        written += [text_of(message) for turn in turns for message in turn.messages]
    linked = form == "claude-code"  # a record may end the branch that the sound ones are on
    unheaded = any("header" in p.message or "newer version" in p.message for p in contents.problems)
    assert linked or unheaded or set(hostile.GOOD) <= set(written), (
        f"a sound record is missing of {data!r:.2000}"
    )
    return len(contents.problems), len(written)


def said_in(turns: tuple[Turn, ...] | list[Turn]) -> str:
    """All messages; as text, since a number that is none is not equal to itself."""
    return repr([turn.messages for turn in turns])


def bombs() -> Iterator[tuple[str, Iterable[bytes]]]:
    """Files that would take gigabytes, in pieces: the tests' own memory is small, too."""
    gigabytes = _packed(b"\n" * (16 << 20), 256)  # what each piece adds hardly shows in the ratio
    yield "newlines.jsonl.gz", [gigabytes]
    yield "own newlines.jsonl.gz", [gzip.compress(HEADER), gigabytes]
    yield "newlines.jsonl", repeat(b"\n" * (1 << 20), 60)
    yield "own newlines.jsonl", [HEADER, *repeat(b"\n" * (1 << 20), 200)]
    objects = b"{}," * (1 << 20)
    yield "objects.jsonl", [b'{"role":"user","content":"x","meta":[', *repeat(objects, 20), b"{}]}"]
    turn = b'{"seq":1,"type":"query","created":"","messages":[{"role":"user","content":"x","meta":['
    yield "own objects.jsonl", [HEADER, turn, *repeat(objects, 60), b"{}]}]}"]
    yield "one line.jsonl", [HEADER, b'{"seq":1,"type":"', *repeat(b"x" * (1 << 20), 100), b'"}']
    yield "carriage returns.jsonl", [b'{"role":1}\r', *repeat(b"\r" * (1 << 20), 60)]
    yield "nested.jsonl.gz", [_packed(b"[" * (1 << 20), 60)]


def _packed(piece: bytes, times: int) -> bytes:
    """A gzip file of so many equal pieces; after a full flush an equal piece is packed into equal bytes."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda checksum, _: zlib.crc32(piece, checksum), range(times), 0)
    size = len(piece) * times & 0xFFFF_FFFF
    return gzip.compress(b"")[:10] + block * times + packer.flush() + struct.pack("<II", checksum, size)


def command(root: Path, name: str, pieces: Iterable[bytes]) -> tuple[float, float, str]:
    """`nexus sessions import` of a file in a process of its own: megabytes, seconds, and what it said.

    The memory is 0 where the system does not say how much a child took.
    """
    folder, path, output = root / "home", root / name, root / "output"
    folder.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.writelines(pieces)
    environ = {**os.environ, "HOME": str(folder), "NEXUS_STATE": str(root / "state")}
    environ["NEXUS_HOME"] = str(folder / ".nexus3")
    arguments = ["-m", "nexus_daemon", "sessions", "import", str(path), "--folder", str(folder)]
    program = [sys.executable, *arguments]
    began = time.perf_counter()
    with output.open("wb") as out:
        if hasattr(os, "wait4"):
            measured = [sys.executable, "-S", "-c", MEASURE, *program]
            said = subprocess.run(
                measured, env=environ, stdout=out, stderr=subprocess.PIPE, check=True
            ).stderr
            *errors, figures = said.splitlines(keepends=True)
            out.writelines(errors)
            code, size = json.loads(figures)
            megabytes = size * (1 if sys.platform == "darwin" else 1 << 10) / (1 << 20)
        else:
            code, megabytes = subprocess.call(program, env=environ, stdout=out, stderr=out), 0.0
    seconds = time.perf_counter() - began
    path.unlink()
    text = output.read_text(errors="replace")
    return megabytes, seconds, text if code in (0, 1) else f"Traceback? It ended with {code}. {text}"
