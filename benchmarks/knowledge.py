"""The knowledge base over 10,000 files: how long it takes to make, to look again, and to answer a message.

Files are made of the paragraphs of this repository's documents and code, in a seeded order, each with words
of its own: so that common words are common and rare ones rare. Run `python -m benchmarks.knowledge [files]`.
"""

import random
import re
import sys
import tempfile
import time
from pathlib import Path

from nexus_context.errors import Span
from nexus_context.memory.knowledge import Index, Place, Settings, query, refresh
from nexus_context.tokens import get_token_counter

FILES = 10_000
QUERIES = 200
OWN_WORDS = 60_000
SYLLABLES = (
    "ka",
    "ro",
    "mi",
    "ten",
    "su",
    "al",
    "vor",
    "ne",
    "qui",
    "dra",
    "ple",
    "zon",
    "fi",
    "ber",
    "gu",
    "mar",
)
REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    draw = random.Random(1)  # noqa: S311 - the same files each time
    with tempfile.TemporaryDirectory() as root:
        docs = Path(root) / "docs"
        messages, size = written(docs, count, draw)
        print(f"{count:,} files, {size / 1e6:.1f} million characters")
        index = Index(str(Path(root) / "index.db"))
        settings = Settings((Place(str(docs), (), None, "global", root, root, Span(0, 0)),))
        for name in ("make the index", "look again"):
            started = time.perf_counter()
            refresh(index, settings)
            print(f"{name:16} {time.perf_counter() - started:8.2f} s")
        files, passages = index.totals()
        print(f"{'holds':16} {files:,} files, {passages:,} passages")
        answered(index, messages)
        index.close()


def written(docs: Path, count: int, draw: random.Random) -> tuple[list[str], int]:
    """Write the files; messages that are parts of them, and how many characters there are."""
    sources = sorted(
        [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("*/nexus_*/**/*.py")]
    )
    paragraphs = [
        part for path in sources for part in re.split(r"\n\s*\n", path.read_text()) if len(part) > 60
    ]
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) for _ in range(OWN_WORDS)]
    messages: list[str] = []
    size = 0
    for number in range(count):
        own = draw.choices(words, k=30)
        parts = [f"# {' '.join(own[:3])}"]
        for _ in range(max(1, int(draw.lognormvariate(2.2, 0.8)))):
            text = draw.choice(paragraphs).split(" ")
            for _ in range(len(text) // 12 + 1):
                text[draw.randrange(len(text))] = draw.choice(own)
            parts.append(" ".join(text))
        path = docs / f"{number % 97}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(parts))
        size += sum(map(len, parts))
        if len(messages) < QUERIES:
            found = " ".join(parts).split()
            start = draw.randrange(len(found))
            messages.append(" ".join(found[start : start + draw.choice([3, 8, 20, 60, 400])]))
    return messages, size


def answered(index: Index, messages: list[str]) -> None:
    """Print how long the answers take, the first round and a second."""
    counter = get_token_counter()
    counter.count("load the vocabulary")
    for name in ("query, cold", "query, warm"):
        taken = []
        for message in messages:
            started = time.perf_counter()
            query(index, message, counter, top_k=5, max_tokens=2000)
            taken.append((time.perf_counter() - started) * 1000)
        taken.sort()
        median, p95, most = taken[len(taken) // 2], taken[len(taken) * 95 // 100], taken[-1]
        print(f"{name:16} median {median:6.1f} ms, p95 {p95:6.1f} ms, max {most:6.1f} ms")


if __name__ == "__main__":
    main()
