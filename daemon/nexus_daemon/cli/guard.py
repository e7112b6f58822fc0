"""Guards a stream for people: no text on it steers a terminal, or a program that runs workflows."""

import re
from typing import Any, TextIO

from nexus_context.text.visible import visible

_COMMAND = re.compile(r"(?m)(^[^\S\n]*):(?=:)|##(?=\[)")


class Guard:
    """A stream for people. If `styled`, its text is guarded already, and has a terminal's styles."""

    def __init__(self, stream: "TextIO | Guard", *, styled: bool = False) -> None:
        self._stream: TextIO = stream._stream if isinstance(stream, Guard) else stream  # noqa: SLF001 - its own
        self._styled = styled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        write_guarded(self._stream, text if self._styled else visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for text in lines:
            self.write(text)


def write_guarded(stream: "TextIO | Guard", text: str) -> None:
    """Write a text. Unless the stream is a terminal, no line becomes a command of a workflow's log."""
    stream.write(text if stream.isatty() else _COMMAND.sub(_parted, text))


def _parted(match: re.Match[str]) -> str:
    return match[0] + " "
