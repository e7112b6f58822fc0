"""Shows a turn: Markdown and a line for each call on a terminal, only the text in a pipe."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nexus_context.text.visible import visible_line
from nexus_daemon.cli import output
from nexus_daemon.protocol.chat import ChatItem

if TYPE_CHECKING:
    from rich.live import Live
    from rich.markdown import Markdown
    from rich.text import Text

LONGEST_CALL = 300
"""Characters of a call's arguments, or of a failure, on the screen."""
LONGEST_UNFINISHED = 2_000
"""Characters of a growing block that are laid out anew with each piece."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


class Screen:
    """Shows the items of turns. `is_plain` is true without a terminal: only the answer's text is printed.

    If `shows_text` is false, the text is not printed either. `has_ended_line` is true if nothing was printed
    since the last line end. `failure` is the error that kept the text from being written to the end, or None.
    """

    def __init__(self, *, is_plain: bool, shows_text: bool = True) -> None:
        self.has_ended_line = True
        self.failure: OSError | None = None
        self._is_plain = is_plain
        self._shows_text = shows_text
        self._console = None if is_plain else output.console()
        self._text = ""
        self._live: Live | None = None
        self._thinks = False

    def show(self, items: Sequence[ChatItem]) -> None:
        """Show the items of a turn."""
        for item in items:
            if item.kind == "text":
                self._add_text(item.text or "")
            elif item.kind == "notice":
                self.flush()
                output.beside(f"{item.text}\n")
            elif not self._is_plain:
                self._show_step(item)
            elif item.kind == "toolCall" and not self.has_ended_line:
                self._add_text("\n")  # another answer follows

    def flush(self) -> None:
        """Print what is not printed yet, since something else follows."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._text and self._console is not None:
            self._print(self._text)
        self._text = ""

    def _add_text(self, text: str) -> None:
        if self._is_plain:
            if self._shows_text and text:
                try:
                    output.page(text)
                except (
                    OSError
                ) as error:  # its reader has gone, or the disk is full: the turn is still recorded
                    self.failure, self._shows_text = error, False
                    return
                self.has_ended_line = text.endswith("\n")
            return
        self._thinks = False
        self._text += text
        finished_blocks, self._text = split_blocks(self._text)
        if finished_blocks:
            if self._live is not None:
                self._live.stop()
                self._live = None
            self._print(finished_blocks)
        if self._text.strip():
            self._show_unfinished()

    def _print(self, text: str) -> None:
        from rich.markdown import Markdown

        if self._console is not None:
            self._console.print(Markdown(text))

    def _show_unfinished(self) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop"
            )
            self._live.start()
        self._live.update(self._unfinished(), refresh=True)

    def _unfinished(self) -> "Markdown | Text":
        """What is not whole yet; of a text that fills a screen, its end as it is, which takes less time."""
        from rich.markdown import Markdown
        from rich.text import Text

        columns, rows = (80, 24) if self._console is None else self._console.size
        if len(self._text) <= LONGEST_UNFINISHED and self._text.count("\n") < rows:
            return Markdown(self._text)
        return Text("\n".join(self._text[-columns * (rows - 1) :].splitlines()[1 - rows :]))

    def _show_step(self, item: ChatItem) -> None:
        if item.kind == "thinking":
            if not self._thinks:
                self.flush()
                self._dim("Thinking …")
                self._thinks = True
        elif item.kind == "toolCall":
            self.flush()
            self._dim(f"{_of_agent(item)}> {item.name} {short_json(item.arguments, LONGEST_CALL)}")
        elif item.kind == "toolResult":
            text = item.text or ""
            size = output.counted(text.count("\n") + 1, "line")
            outcome = f" failed: {short_json(text, LONGEST_CALL)}" if item.is_error else f": {size}"
            self._dim(f"{_of_agent(item)}  {item.name}{outcome}")

    def _dim(self, text: str) -> None:
        from rich.text import Text

        if self._console is not None:
            self._console.print(Text(visible_line(text), "dim"))


def _of_agent(item: ChatItem) -> str:
    return "" if item.agent is None else f"{item.agent} "


def split_blocks(text: str) -> tuple[str, str]:
    """Split a Markdown text that still grows: its complete blocks, and the rest, which may still change."""
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    end = len(text)
    while (end := text.rfind("\n\n", 0, end)) > 0:
        while fences and fences[-1] >= end:
            fences.pop()
        if len(fences) % 2 == 0:
            return text[: end + 2], text[end + 2 :]
    return "", text


def short_json(value: Any, limit: int) -> str:
    """Return a value on one line: a text as it is, all else as JSON.

    If it is longer than `limit`, it is cut, and the end says by how much.
    """
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[:limit]}… and {len(text) - limit:,} more characters"
