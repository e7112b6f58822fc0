"""A new process that loads the model of the search by meaning and prints what that costs, as JSON."""

import itertools
import sys
import time
from pathlib import Path

import msgspec
from benchmarks.knowledge.measures import Cost, passages_of_documents

from nexus_context.memory.knowledge import find_model, load_model

THOUSAND = 1_000


def main() -> None:
    """Measure and print."""
    passages = list(itertools.islice(passages_of_documents(), THOUSAND))
    before = _resident()
    started = time.process_time()
    __import__("model2vec")
    imported = time.process_time()
    model = load_model(find_model())
    loaded = time.process_time()
    model.embed(passages)
    embedded = time.process_time()
    model.embed(["How do I undo a compaction?"])
    ended = time.process_time()
    cost = Cost(
        import_s=imported - started,
        load_s=loaded - imported,
        thousand_s=embedded - loaded,
        message_ms=(ended - embedded) * 1e3,
        megabytes=_resident() - before,
    )
    sys.stdout.buffer.write(msgspec.json.encode(cost))


def _resident() -> float:
    """Resident memory in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    main()
