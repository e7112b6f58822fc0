"""An edit of a large AGENTS.md until its cost reaches the panel, beside counting its tokens once."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.lsp_client import Client, notification
from benchmarks.promises import Measured, Promise, Run, Step, milliseconds, promises, take_turns
from benchmarks.servers import CONFIG, NEXUS, Lane, changed, started

from nexus_context.tokens.vocabulary import load_encoding

SIZE = 300_000  # characters
WORDS = "the model reads this file before each turn and keeps to what it says about tests code style".split()  # noqa: SIM905
MODELS = ("gpt-4.1", "claude-sonnet-4-5")
FLOOR = "tiktoken on the same text"


@promises(
    *(Promise(f"edit → new usage, {model}", 5.0, FLOOR) for model in MODELS),
    *(Promise(f"edit → reply to the panel's questions, {model}", 6.0, FLOOR) for model in MODELS),
)
def instructions(run: Run) -> Iterator[Measured]:
    """From `didChange` to `nexus/context/didChange`, then to the trees that the panel draws."""
    encoding = load_encoding("o200k_base")
    text = write_instructions(SIZE)
    for model in MODELS:
        config = f'{{"provider": {{"model": "{model}"}}}}'
        folder = run.folder(model, {CONFIG: config, "AGENTS.md": text})
        with ExitStack() as stack:
            client, _ = stack.enter_context(started(Lane(NEXUS), run, folder))
            editor = Editor(client, folder.as_uri(), text)
            steps: dict[str, Step] = {
                "nexus": editor.type,
                FLOOR: partial(milliseconds, partial(encoding.encode, text)),
            }
            turns = take_turns(steps, run.pick(full=25, quick=5), warm=2)
        yield f"edit → new usage, {model}", turns["nexus", "usage"], turns[FLOOR]
        yield f"edit → reply to the panel's questions, {model}", turns["nexus", "trees"], turns[FLOOR]
        run.note_turns(f"Edit of a long AGENTS.md, {model}, ms", turns)


class Editor:
    """Types words into the middle of the file."""

    def __init__(self, client: Client, folder: str, text: str) -> None:
        self._client = client
        self._uri, self._params = f"{folder}/AGENTS.md", {"workspaceFolder": folder}
        item = {"uri": self._uri, "languageId": "markdown", "version": 1, "text": text}
        client.send(notification("textDocument/didOpen", {"textDocument": item}))
        self._total = int(client.request("nexus/context/usage", self._params).result["total"])
        self._line = text[: len(text) // 2].count("\n")
        self._version = 1

    def type(self) -> dict[str, float]:
        """Milliseconds until the new usage came, and until the trees were answered."""
        self._version += 1
        position = {"line": self._line, "character": 0}
        change = {"range": {"start": position, "end": position}, "text": f"word{self._version}\n"}
        sent = self._client.send(changed(self._uri, self._version, change))
        usage_at, self._total = _wait_for_usage(self._client, self._total)
        self._client.request("nexus/context/layers", self._params)
        trees_at = self._client.request("nexus/context/preview", self._params).at
        return {"usage": (usage_at - sent) * 1e3, "trees": (trees_at - sent) * 1e3}


def write_instructions(size: int) -> str:
    """Text as people write it for models, of at least that many characters."""
    chance = random.Random(1)  # noqa: S311  # no secret
    sections: list[str] = []
    length = 0
    while length < size:
        rules = "".join(
            f"- {' '.join(chance.choice(WORDS) for _ in range(14))} `src/m{chance.randrange(999)}.py`, see "
            f"https://docs.example.org/{chance.choice(WORDS)}.\n"
            for _ in range(9)
        )
        title = f"## Rule {len(sections) + 1}\n\nAsk @{chance.choice(WORDS)}.\n\n"
        sections.append(f"{title}{rules}\n```sh\nmake {chance.choice(WORDS)}\n```\n\n")
        length += len(sections[-1])
    return "".join(sections)


def _wait_for_usage(client: Client, before: int) -> tuple[float, int]:
    """When the next usage with another total came, and that total."""
    while True:
        at, message = client.received()
        if message.get("method") == "nexus/context/didChange":
            total = int(message["params"]["usage"]["total"])
            if total != before:
                return at, total
