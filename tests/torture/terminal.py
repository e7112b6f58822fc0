"""Names and texts that steer a terminal, in every place of a folder: no command passes them on."""

import contextlib
import io
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from nexus_daemon.cli import output
from support import hostile
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong

PIECES = (
    *(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))),
    *"\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069",
    *(
        "::",
        "##[",
        "[2J",
        "]52;c;",
        "\\",
        "[red]",
        "[/]",
        ":warning:",
        "\ud800",
        "é",
        "日",
        " ",
        "text",
        "0;1m",
    ),
)
LONGEST = 40  # pieces of a text
WHOLE = 200
"""Texts from which on all commands are run, too, each in a process of its own; of fewer, every eighth."""


def run(texts: int, seed: int = 1) -> Outcome:
    """So many texts through the door, on a terminal and in a pipe; then every command on a real terminal."""
    if sys.platform == "win32":
        return Outcome("hostile terminal texts", skipped="there are no pseudo-terminals")
    watch, dice = Watch(), dice_of(seed)
    wrong = [line for _ in range(texts) for line in _through_the_door(_text(dice))]
    commands = 0
    with tempfile.TemporaryDirectory(prefix="nexus-terminal-") as name:
        root = Path(name)
        for arguments in hostile.commands(hostile.folder(root), root)[:: 1 if texts >= WHOLE else 8]:
            commands += 1
            shown = hostile.on_a_terminal(arguments, hostile.environ(root))
            wrong += [f"{arguments[:2]}: {char!r}" for char in hostile.steered(shown)]
    figures = (
        Figure("texts printed in each way", texts, at_least=1),
        Figure("commands on a terminal", commands, at_least=30 if texts >= WHOLE else 4),
        Figure("characters that steer, workflow commands", len(wrong), at_most=0),
        nothing_wrong(()),
    )
    return Outcome("hostile terminal texts", figures, tuple(wrong), seconds=watch.seconds)


def _text(dice: random.Random) -> str:
    return "".join(dice.choices(PIECES, k=dice.randint(1, LONGEST)))


class _Stream(io.StringIO):
    """A stream that is, or is not, a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def _through_the_door(text: str) -> Iterator[str]:
    """What is wrong with what comes out."""
    ways: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("line", output.line),
        ("page", output.page),
        ("data", output.data),
        ("complain", lambda said: output.complain("check", said)),
        ("table", lambda said: output.console().print(said, soft_wrap=True)),
    )
    for terminal in (True, False):
        for name, way in ways:
            stream = _Stream(terminal=terminal)
            with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
                way(text)
            shown = stream.getvalue()
            if name == "data" and not terminal:
                if shown != text:
                    yield f"data: {text!r} is not exact in a pipe"
                continue
            if hostile.steered(shown, coloured=name == "table"):
                yield f"{name}: {text!r} steers as {shown!r}"
            if not terminal and hostile.COMMANDS.search(shown):
                yield f"{name}: {text!r} is a workflow command as {shown!r}"
