"""Completion and hovers in a settings file beside the JSON language servers of VS Code.

Each turn types one character and then asks, as an editor does. An answer counts only if it is right:
completion has the keys of the object, a hover the documentation of the key.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.documents import Document, config, edit
from benchmarks.language_servers import NEW, OLD, OWN
from benchmarks.lsp_client import Client, ServerError
from benchmarks.promises import Measured, Promise, Run, promises, take_turns
from benchmarks.servers import CONFIG, Lane, changed, config_uri, opened, started

KEY_LINE, KEY_COLUMN = 1, 5  # within `"context"`
ASKED = {"completion": "views", "hover": "kept within the window"}
"""What an answer must have: a key beside the one that is written, a word of the key's documentation."""
SIZES = {60: 3.0, 5_000: 3.0}
"""The limits by the number of lines: an answer takes 2 ms and 15 ms, which nobody feels."""
NAMES = {(what, lines): f"{what} in {lines:,} lines" for what in ASKED for lines in SIZES}


@promises(*(Promise(name, SIZES[lines], OLD.name, "p95") for (_, lines), name in NAMES.items()))
def answers(run: Run) -> Iterator[Measured]:
    """One typed character, then completion or a hover at a key, up to the last byte of the answer."""
    for (what, lines), name in NAMES.items():
        document = config(lines, "schema")
        path = run.folder(f"{what}-{lines}", {CONFIG: document.text})
        with ExitStack() as stack:
            steps = {
                lane.name: _Asker(stack, run, lane, path, document=document, what=what).ask
                for lane in (OWN, OLD, NEW)
            }
            turns = take_turns(steps, run.pick(full=200, quick=25), warm=5)
        yield name, turns[OWN.name], turns[OLD.name]
        run.note_turns(f"{name}, ms", turns)


class _Asker:
    """Types a character in a document, or takes it out again, and asks what stands at a key."""

    def __init__(
        self, stack: ExitStack, run: Run, lane: Lane, path: Path, *, document: Document, what: str
    ) -> None:
        self._start = partial(stack.enter_context, started(lane, run, path))
        self._uri = config_uri(path)
        self._document = document
        self._what = what
        self._client: Client | None = None
        self._version = 1
        self._typed = 0

    def ask(self) -> float:
        """The milliseconds from the first byte of the question to the last of the answer."""
        if self._client is None:
            self._client, _ = self._start()
            self._client.send(opened(self._uri, self._document.text))
        self._version += 1
        self._client.send(changed(self._uri, self._version, edit(self._document, insert=not self._typed)))
        self._typed = 1 - self._typed
        position = {"line": KEY_LINE, "character": KEY_COLUMN}
        params: dict[str, Any] = {"textDocument": {"uri": self._uri}, "position": position}
        reply = self._client.request(f"textDocument/{self._what}", params)
        if ASKED[self._what] not in str(reply.result):
            raise ServerError(f"wrong answer: {str(reply.result)[:200]}")
        return reply.seconds * 1e3
