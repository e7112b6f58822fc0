"""A process that swaps files and directories for links at full speed: no text from outside gets into a load.

1. Everything in the workspace that is read is exchanged with something else again and again, in one step
   each (`renameat2`): files and directories with links that lead out, a link that leads to a file inside with
   one that leads out, files with a FIFO and with a directory.
2. Meanwhile the folder is loaded, from nothing and after an earlier load, with all that it imports, its
   skills, its knowledge base, and what HEAD says.
"""

import ctypes
import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from nexus_context.folder.loading import load
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.knowledge import KnowledgeIndex, Settings, query, refresh, settings_of
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.turn import git
from support.fixture import write_file
from support.folders import load_inputs
from torture.children import Voice, children
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong

INSIDE, OUTSIDE = "insidetext", "outsidetext"
EXCHANGE = 2  # flag of renameat2
AT_FDCWD = -100
EVERY = 10  # loads to one look at the knowledge base and at HEAD
FRESH = 3  # loads to one from nothing
SAID_EVERY = 200  # rounds of the swapper
HEAR_EVERY = 100  # loads
HOST = Environment(host="box", os="Debian", arch="x86_64", terminal=None, mode="Editor")
SKILL = "---\nname: {name}\ndescription: A {mark} skill.\n---\n{mark}\n"
CONFIG = """{{"context": {{"include_readme": true, "sections": [{{"name": "{mark}", "file": "section.md"}}]}},
"memory": {{"knowledge": {{"paths": ["knowledge"]}}}}}}"""

FILES = {
    "AGENTS.md": "{mark}\n",
    ".nexus3/SOUL.md": "{mark}\n",
    ".nexus3/skills/far/SKILL.md": SKILL.replace("{name}", "far"),
    "app/.nexus3/config.json": CONFIG,
    "app/.nexus3/skills/one/SKILL.md": SKILL.replace("{name}", "one"),
    "app/.agents/skills/two/SKILL.md": SKILL.replace("{name}", "two"),
    "app/.claude/skills/three/SKILL.md": SKILL.replace("{name}", "three"),
    "app/docs/a.md": "{mark}\n@deep/b.md\n",
    "app/docs/deep/b.md": "{mark}\n",
    "app/notes.md": "{mark}\n",
    "app/context.md": "{mark}\n",
    "app/section.md": "{mark}\n",
    "app/README.md": "{mark}\n",
    "app/knowledge/a.md": "{mark}\n",
    "app/knowledge/below/b.md": "{mark}\n",
    "app/.git/HEAD": "ref: refs/heads/{mark}\n",
}
"""What there is, inside and outside alike but for the mark."""

RULES = "app/.nexus3/NEXUS.md"
OUT = (
    "AGENTS.md",
    ".nexus3",
    "app/.nexus3/config.json",
    "app/.nexus3/skills/one",
    "app/.agents/skills",
    "app/.claude/skills/three/SKILL.md",
    "app/docs",
    "app/notes.md",
    "app/section.md",
    "app/knowledge/a.md",
    "app/knowledge/below",
    "app/.git/HEAD",
)
"""What is swapped for a link that leads out."""


def run(loads: int, seed: int = 1) -> Outcome:
    """So many loads of a folder, all of whose files are swapped meanwhile."""
    if _renameat2() is None:
        return Outcome("swapped paths", skipped="this system cannot exchange two paths in one step")
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="nexus-race-") as root:
        reader = _Reader(Path(root), seed)
        pairs = _pairs(Path(root))
        with children() as start:
            swapper = start(swap, [(str(a), str(b)) for a, b in pairs])
            for number in range(loads):
                reader.load(number)
                if number % HEAR_EVERY == 0:  # else its pipe is full, and it waits
                    swapper.hear()
            swaps = [int(words[1]) for words in swapper.hear()]
        reader.index.close()
    figures = (
        Figure("loads", loads),
        Figure("paths swapped meanwhile", max(swaps, default=0), at_least=loads // 4),
        Figure("loads with texts from inside", reader.inside, at_least=loads // 4),
        Figure("looks at the knowledge base and at HEAD", reader.looks),
        Figure("texts from outside", reader.outside, at_most=0),
        Figure("exceptions", reader.exceptions, at_most=0),
        nothing_wrong(reader.wrong),
    )
    return Outcome("swapped paths", figures, tuple(reader.wrong), seconds=watch.seconds)


def swap(voice: Voice, pairs: list[tuple[str, str]]) -> None:
    """Exchanges each pair of paths, for ever."""
    exchange = _renameat2()
    assert exchange is not None
    for number in itertools.count(1):
        for one, other in pairs:
            exchange(one, other)
        if number % SAID_EVERY == 0:
            voice.say("swapped", number * len(pairs))


class _Reader:
    """Loads the folder, and counts what comes of it."""

    def __init__(self, root: Path, seed: int) -> None:
        for mark, top in ((INSIDE, "home/work"), (OUTSIDE, "outside")):
            for name, text in FILES.items():
                content = text.replace("{mark}", mark).replace("{{", "{").replace("}}", "}")
                write_file(root / top / name, content)
        write_file(root / "home/work" / RULES, "Rules.\n@../docs/a.md\n@../notes.md\n")
        (root / "home/work/app/.nexus3/CONTEXT.md").symlink_to("../context.md")
        self._home, self._folder = str(root / "home"), str(root / "home/work/app")
        self._dice = dice_of(seed)
        self._snapshot = self._loaded(None, None)
        self._knowledge: Settings = settings_of(self._snapshot.layers, self._home)[0]
        assert self._knowledge.places
        self.index = KnowledgeIndex(str(root / "knowledge.db"))
        self.inside = self.outside = self.exceptions = self.looks = 0
        self.wrong: list[str] = []

    def load(self, number: int) -> None:
        """Load the folder once; now and then all else that is read of it."""
        try:
            texts = self._texts(number)
        except Exception as error:  # noqa: BLE001 - the figure is that there is none
            self.exceptions += 1
            self.wrong.append(f"load {number}: {type(error).__name__}: {error}")
            return
        self.inside += any(INSIDE in text for text in texts.values())
        leaked = [name for name, text in texts.items() if OUTSIDE in text]
        self.outside += len(leaked)
        if leaked:
            self.wrong.append(f"load {number}: from outside in {', '.join(leaked)}")

    def _texts(self, number: int) -> dict[str, str]:
        """Everything that was read."""
        previous = None if number % FRESH == 0 else self._snapshot
        changed = None
        if previous is not None and number % FRESH == 1:  # as after a keystroke
            changed = frozenset(self._dice.sample(previous.layers.watch, 3))
        self._snapshot = now = self._loaded(previous, changed)
        texts = {f"the text of {path}": text for path, text in now.layers.texts.items()}
        texts["the prompt"] = now.prompt.text
        if number % EVERY == 0:
            self.looks += 1
            refresh(self.index, self._knowledge)
            found = query(
                self.index, f"{OUTSIDE} {INSIDE}", SimpleTokenCounter(), top_k=50, max_tokens=10_000
            )
            texts |= {f"the knowledge of {passage.path}": passage.text for passage in found}
            repository = git.find(self._folder)
            texts["HEAD"] = str(repository and git.read(repository))
        return texts

    def _loaded(self, previous: Snapshot | None, changed: frozenset[str] | None) -> Snapshot:
        return load(self._folder, load_inputs(self._home), previous=previous, changed=changed)


def _pairs(root: Path) -> list[tuple[Path, Path]]:
    """What is exchanged with what."""
    inside, outside, beside = root / "home/work", root / "outside", root / "beside"
    beside.mkdir()
    pairs = []
    for number, name in enumerate(OUT):
        (beside / str(number)).symlink_to(outside / name)
        pairs.append((inside / name, beside / str(number)))
    (beside / "link").symlink_to(outside / "app/context.md")
    os.mkfifo(beside / "fifo")
    (beside / "directory").mkdir()
    pairs.append((inside / "app/.nexus3/CONTEXT.md", beside / "link"))
    pairs.append((inside / "app/README.md", beside / "fifo"))
    pairs.append((inside / "app/context.md", beside / "directory"))
    return pairs


def _renameat2() -> Callable[[str, str], None] | None:
    """Exchanges two paths in one step; None where the system cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return None

    def exchange(one: str, other: str) -> None:
        if call(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), EXCHANGE):
            raise OSError(ctypes.get_errno(), f"{one} and {other} are not exchanged")

    return exchange
